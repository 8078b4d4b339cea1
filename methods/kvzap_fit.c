/* kvzap_fit.c - fits kvzap's coefficients to the scores of kvzip, by least squares.
 *
 * In each layer, over all tokens t of all contexts behind the first that are always kept, with x[t] of kvzap.h:
 *
 *     A = sum of x[t] x[t]^T       B[h] = sum of x[t] log(max(score[h][t], 1e-7))       (A + ridge I) weight[h] = B[h]
 *
 * in double, by Cholesky's factors. ridge is a thousandth of the mean of A's diagonal, and 0 for the constant, so that
 * columns which tell the same share their weight. A takes 8 (2 G K + 1)^2 bytes a layer.
 */
#include "methods/kvzap.h"

#include "base/parallel.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define RIDGE 1e-3
#define LEAST 1e-7 // below it scores are rounding

struct kvzap_fit {
    int n_layers, n_kv_heads, head_dim, n; // n = 2 * G * K + 1
    int64_t n_tokens;
    double *a, *b; // (L, n, n), of which j <= i; (L, G, n)
};

struct kvzap_fit *kvzap_fit_new(const struct kv_shape *s, struct err *err)
{
    struct kvzap_fit *f = calloc(1, sizeof(*f));
    size_t n = (size_t)(2 * s->n_kv_heads * s->head_dim + 1), L = (size_t)s->n_layers;

    if (f) {
        *f = (struct kvzap_fit){ s->n_layers, s->n_kv_heads, s->head_dim, (int)n, 0, NULL, NULL };
        f->a = calloc(L * n, n * sizeof(*f->a));
        f->b = calloc(L * n, (size_t)s->n_kv_heads * sizeof(*f->b));
    }
    if (f && f->a && f->b)
        return f;
    kvzap_fit_free(f);
    err_nomem(err);
    return NULL;
}

void kvzap_fit_free(struct kvzap_fit *f)
{
    if (!f)
        return;
    free(f->a);
    free(f->b);
    free(f);
}

/* ---- sums ---------------------------------------------------------------- */

struct adding {
    struct kvzap_fit *fit;
    const struct kv_full *full;
    float *score;   // (G, T)
    const float *x; // (T, n)
    int layer;
};

/* Row i of A, and number i of each B. */
static void add_row(void *arg, int i)
{
    const struct adding *d = arg;
    size_t n = (size_t)d->fit->n, T = (size_t)d->full->n_tokens, G = (size_t)d->fit->n_kv_heads;
    double *a = d->fit->a + ((size_t)d->layer * n + (size_t)i) * n, *b = d->fit->b + (size_t)d->layer * G * n + i;

    for (size_t t = (size_t)kvzap_sink(d->full); t < T; t++) {
        const float *x = d->x + t * n;
        for (int j = 0; j <= i; j++)
            a[j] += (double)x[i] * (double)x[j];
        for (size_t g = 0; g < G; g++)
            b[g * n] += (double)x[i] * (double)d->score[g * T + t];
    }
}

static int add_layer(int layer, const float *x, void *arg, struct err *err)
{
    struct adding *d = arg;
    struct backend *be = d->full->backend;
    size_t n = (size_t)d->fit->n_kv_heads * (size_t)d->full->n_tokens;

    if (be->read(be, d->score, d->full->repeat_max + (size_t)layer * n, n * sizeof(*d->score), err))
        return err->code;
    for (size_t i = 0; i < n; i++)
        d->score[i] = logf(fmaxf(d->score[i], (float)LEAST));
    d->x = x;
    d->layer = layer;
    parallel_do(parallel_cores(), d->fit->n, add_row, d);
    return 0;
}

int kvzap_fit_add(struct kvzap_fit *f, const struct kv_full *full, struct err *err)
{
    struct adding d = { .fit = f, .full = full };

    assert(full->repeat_max && full->shape.n_layers == f->n_layers);
    d.score = malloc((size_t)f->n_kv_heads * (size_t)full->n_tokens * sizeof(*d.score));
    int code = d.score ? kvzap_each_layer(full, &(struct kvzap_work){ add_layer, &d }, err) : err_nomem(err);
    free(d.score);
    f->n_tokens += code ? 0 : full->n_tokens - kvzap_sink(full);
    return code;
}

/* ---- the solution -------------------------------------------------------- */

/* Replaces each B of a layer by its weights. false: A is not positive. */
static bool solve(double *a, double *b, int n, int n_b)
{
    double ridge = 0;

    for (int i = 0; i < n - 1; i++)
        ridge += a[(size_t)i * (size_t)n + (size_t)i] * RIDGE / (n - 1);
    for (int i = 0; i < n; i++) {
        double *row = a + (size_t)i * (size_t)n;
        row[i] += i < n - 1 ? ridge : 0;
        for (int j = 0; j <= i; j++) {
            const double *other = a + (size_t)j * (size_t)n;
            double sum = row[j];
            for (int k = 0; k < j; k++)
                sum -= row[k] * other[k];
            if (i == j && !(sum > 0))
                return false;
            row[j] = i == j ? sqrt(sum) : sum / other[j];
        }
    }
    for (int g = 0; g < n_b; g++, b += n) {
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < i; k++)
                b[i] -= a[(size_t)i * (size_t)n + (size_t)k] * b[k];
            b[i] /= a[(size_t)i * (size_t)n + (size_t)i];
        }
        for (int i = n - 1; i >= 0; i--) {
            for (int k = i + 1; k < n; k++)
                b[i] -= a[(size_t)k * (size_t)n + (size_t)i] * b[k];
            b[i] /= a[(size_t)i * (size_t)n + (size_t)i];
        }
    }
    return true;
}

static int write_all(const struct kvzap_fit *f, const char *path, const struct st_header *header, struct err *err)
{
    struct file_out out;

    if (file_create(&out, path, err))
        return err->code;
    if (safetensors_write_header(&out, header, err)) {
        file_abort(&out);
        return err->code;
    }
    for (int64_t i = 0; i < (int64_t)f->n_layers * f->n_kv_heads * f->n; i++) {
        float weight = (float)f->b[i];
        fwrite(&weight, sizeof(weight), 1, out.f);
    }
    return file_commit(&out, err);
}

int kvzap_fit_write(struct kvzap_fit *f, const char *path, const char *model_digest, struct err *err)
{
    const struct st_meta meta[] = { { "evp", "kvzap" },
                                    { "version", KVZAP_VERSION },
                                    { "model_digest", model_digest } };
    const struct st_tensor weight = {
        .name = "weight", .type = ST_F32, .n_dims = 3, .dim = { f->n_layers, f->n_kv_heads, f->n }
    };
    size_t n = (size_t)f->n, G = (size_t)f->n_kv_heads;

    for (size_t l = 0; l < (size_t)f->n_layers; l++)
        if (!solve(f->a + l * n * n, f->b + l * G * n, f->n, f->n_kv_heads))
            return err_set(err, ERR_FAIL, "%lld tokens do not determine the coefficients of layer %zu",
                           (long long)f->n_tokens, l);
    return write_all(f, path, &(struct st_header){ &weight, 1, meta, 3 }, err);
}
