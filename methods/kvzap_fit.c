/* kvzap_fit.c - fits kvzap's coefficients to the scores of kvzip, by least squares.
 *
 * In each layer, over all tokens t of all contexts behind the first that are always kept, with x[t] of kvzap.h:
 *
 *     A = sum of x[t] x[t]^T       B[h] = sum of x[t] log(max(score[h][t], 1e-7))       (A + ridge I) weight[h] = B[h]
 *
 * in double, by Cholesky's factors. ridge is a thousandth of the mean of A's diagonal, 0 for the constant. The rows B
 * follow those of A; together they take 8 (2 G K + 1) (2 G K + 1 + G) bytes a layer.
 */
#include "methods/kvzap.h"
#include "methods/registry.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define RIDGE 1e-3

struct kvzap_fit {
    int n_layers, n_kv_heads, n; // n = 2 * G * K + 1
    double *a;                   // (L, n + G, n)
};

struct kvzap_fit *kvzap_fit_new(const struct kv_shape *s, struct err *err)
{
    struct kvzap_fit *f = calloc(1, sizeof(*f));
    size_t n = (size_t)(2 * s->n_kv_heads * s->head_dim + 1), rows = (size_t)s->n_layers * (n + (size_t)s->n_kv_heads);
    double *a = f ? calloc(rows, n * sizeof(*a)) : NULL;

    if (a) {
        *f = (struct kvzap_fit){ s->n_layers, s->n_kv_heads, (int)n, a };
        return f;
    }
    free(f);
    err_nomem(err);
    return NULL;
}

void kvzap_fit_free(struct kvzap_fit *f)
{
    if (f)
        free(f->a);
    free(f);
}

/* Row i of a layer, of A or B. */
static double *row_of(const struct kvzap_fit *f, int layer, int i)
{
    return f->a + ((size_t)layer * (size_t)(f->n + f->n_kv_heads) + (size_t)i) * (size_t)f->n;
}

/* ---- sums ---------------------------------------------------------------- */

struct adding {
    struct kvzap_fit *fit;
    const struct kv_full *full;
    float *score; // (L * G, T)
};

static void add_row(void *arg, int layer, const float *x, int i)
{
    const struct adding *d = arg;
    int n = d->fit->n, T = d->full->n_tokens, sink = kvzip_first(d->full);
    const float *score = i < n ? NULL : d->score + (size_t)(layer * d->fit->n_kv_heads + i - n) * (size_t)T;
    double *row = row_of(d->fit, layer, i);

    x += (size_t)sink * (size_t)n;
    for (int t = sink; t < T; t++, x += n) {
        double y = score ? log(fmax((double)score[t], 1e-7)) : (double)x[i];
        for (int j = 0; j < n && j <= i; j++)
            row[j] += y * (double)x[j];
    }
}

int kvzap_fit_add(struct kvzap_fit *f, const struct kv_full *full, struct err *err)
{
    size_t bytes = (size_t)(f->n_layers * f->n_kv_heads) * (size_t)full->n_tokens * sizeof(float);
    struct adding d = { f, full, malloc(bytes) };
    const struct kvzap_work work = { add_row, &d, f->n + f->n_kv_heads };

    assert(full->repeat_max && full->shape.n_layers == f->n_layers);
    int code = d.score ? 0 : err_nomem(err);
    if (!code && (full->backend->read(full->backend, d.score, full->repeat_max, bytes, err) ||
                  kvzap_each_layer(full, &work, err)))
        code = err->code;
    free(d.score);
    return code;
}

/* ---- the solution -------------------------------------------------------- */

/* Turns A into its factor and each row of B into the weights. false: A is not positive. */
static bool solve(const struct kvzap_fit *f, int layer)
{
    double ridge = 0;

    for (int i = 0; i < f->n - 1; i++)
        ridge += row_of(f, layer, i)[i] * RIDGE / (f->n - 1);
    for (int i = 0; i < f->n + f->n_kv_heads; i++) { // rows of B go halfway, through the factor
        double *row = row_of(f, layer, i);
        for (int j = 0; j < f->n && j <= i; j++) {
            const double *other = row_of(f, layer, j);
            row[j] += i == j && i < f->n - 1 ? ridge : 0;
            for (int k = 0; k < j; k++)
                row[j] -= row[k] * other[k];
            if (i == j && !(row[j] > 0))
                return false;
            row[j] = i == j ? sqrt(row[j]) : row[j] / other[j];
        }
    }
    for (int h = 0; h < f->n_kv_heads; h++) { // and through its transpose
        double *row = row_of(f, layer, f->n + h);
        for (int i = f->n - 1; i >= 0; i--) {
            const double *factor = row_of(f, layer, i);
            row[i] /= factor[i];
            for (int k = 0; k < i; k++)
                row[k] -= factor[k] * row[i];
        }
    }
    return true;
}

int kvzap_fit_write(struct kvzap_fit *f, const char *path, const char *model_digest, struct err *err)
{
    const struct st_meta meta[] = { { "evp", "kvzap" },
                                    { "version", KVZAP_VERSION },
                                    { "model_digest", model_digest } };
    const struct st_tensor weight = {
        .name = "weight", .type = ST_F32, .n_dims = 3, .dim = { f->n_layers, f->n_kv_heads, f->n }
    };
    struct file_out out;

    for (int l = 0; l < f->n_layers; l++)
        if (!solve(f, l))
            return err_set(err, ERR_FAIL, "the contexts do not determine the coefficients of layer %d", l);
    if (file_create(&out, path, err))
        return err->code;
    if (safetensors_write_header(&out, &(struct st_header){ &weight, 1, meta, 3 }, err)) {
        file_abort(&out);
        return err->code;
    }
    for (int l = 0; l < f->n_layers; l++)
        for (int i = 0; i < f->n_kv_heads * f->n; i++) {
            float number = (float)row_of(f, l, f->n)[i];
            fwrite(&number, sizeof(number), 1, out.f);
        }
    return file_commit(&out, err);
}
