/* expected_attention - keeps the tokens that future queries are expected to attend to, if these are distributed as the
 * context's own.
 *
 * Per layer, with the queries q of tokens 4 .. T - 1 before their rotation, for each query head j:
 *     m, C        = mean and covariance of q                         (divided by the number of tokens)
 *     R           = mean of the rotations by positions T .. T + n_future - 1 (default 512)
 *     z[j][t]     = (R m) . k_t / sqrt(K) + k_t . (R C R^T) k_t / (2 K)
 *     p[j][t]     = softmax of z over tokens t from 4 on
 *     score[h][t] = (mean over the group's H/G query heads of p + epsilon) * |v_t|
 *     score[h][t] = 1 + the layer's largest, for t < 4: the first tokens are always kept
 * e^z is the mean of e^(q . k / sqrt(K)) over normally distributed q. epsilon is 0 unless given; kvpress' evaluation
 * takes 0.01 behind adakv. With use_vnorm=no the factor |v_t| and epsilon are left out, as criticalkv in front wants
 * it. compress_s includes the time for the sums over queries during prefill.
 *
 * Source: Devoto et al., "Expected Attention: KV Cache Compression by Estimating Attention from Future Queries
 * Distribution" (arXiv 2510.00636); like kvpress' ExpectedAttentionPress with n_sink=4 and use_covariance.
 */
#include "methods/registry.h"

#include "base/parallel.h"
#include "kernels/pool.h"

#include <assert.h>
#include <stdlib.h>

enum { DROP, N_FUTURE, EPSILON, USE_VNORM };

/* The mean rotation: pair p of columns, p and p + half, is turned by cos[p] and sin[p]. */
struct turn {
    int half;
    double *cos, *sin; // (half)
};

/* The memory of one scoring. */
struct work {
    const struct kv_full *full;
    const double *value;
    struct turn turn;
    float *host, *device;   // (H, K + 1, K): forms
    float *z, *device_z;    // (H, T)
    float *norm;            // (G, T): -|v|, then the scores
    struct kv_rows *values; // [G]: a layer's values as keys
    bool rotates;           // the layer's queries
};

/* ---- forms --------------------------------------------------------------- */

/* The mean of a table of cosines or sines over positions T .. T + n_future - 1. */
static int mean_angles(const struct work *w, const float *table, double *mean, struct err *err)
{
    struct backend *be = w->full->backend;
    int half = w->turn.half, n = (int)w->value[N_FUTURE];
    size_t bytes = (size_t)n * (size_t)half * sizeof(*table);
    float *angle = malloc(bytes);
    int code =
        angle ? be->read(be, angle, table + (size_t)w->full->n_tokens * (size_t)half, bytes, err) : err_nomem(err);

    for (int i = 0; i < n * half && !code; i++)
        mean[i % half] += (double)angle[i] / n;
    free(angle);
    return code;
}

/* Turns the pairs of a column or row whose numbers are `step` apart. */
static void turn_pairs(float *x, int step, const struct turn *turn)
{
    for (int p = 0; p < turn->half; p++) {
        float *first = x + p * step, *second = x + (p + turn->half) * step;
        double a = (double)*first, b = (double)*second;
        *first = (float)(a * turn->cos[p] - b * turn->sin[p]);
        *second = (float)(b * turn->cos[p] + a * turn->sin[p]);
    }
}

/* Turns the moments of n queries into the form of z: (K + 1, K) in place. */
static void make_form(float *form, int K, int n, const struct turn *turn, double scale)
{
    float *mean = form + K * K;
    const double quadratic = scale * scale / 2, linear = scale;

    for (int j = 0; j < K; j++)
        mean[j] = (float)((double)mean[j] / n);
    for (int i = 0; i < K * K; i++)
        form[i] = (float)((double)form[i] / n - (double)mean[i / K] * (double)mean[i % K]);
    for (int i = 0; turn && i <= K; i++)
        turn_pairs(form + i * K, 1, turn);
    for (int j = 0; turn && j < K; j++)
        turn_pairs(form + j, K, turn);
    for (int i = 0; i < (K + 1) * K; i++)
        form[i] = (float)((double)form[i] * (i < K * K ? quadratic : linear));
}

/* ---- scores -------------------------------------------------------------- */

/* z becomes its softmax over tokens MOMENT_FIRST .. T - 1. */
static void softmax(float *z, int T)
{
    float most = -INFINITY;
    double sum = 0;

    for (int t = MOMENT_FIRST; t < T; t++)
        most = fmaxf(most, z[t]);
    for (int t = MOMENT_FIRST; t < T; t++)
        sum += (double)(z[t] = expf(z[t] - most));
    for (int t = MOMENT_FIRST; t < T; t++)
        z[t] = (float)((double)z[t] / sum);
}

/* The scores of kv head g of a layer from its -|v|; z of its query heads follow one another. */
static void score_head(void *arg, int g)
{
    const struct work *w = arg;
    int T = w->full->n_tokens, group = w->full->shape.n_heads / w->full->shape.n_kv_heads;
    float *z = w->z + (size_t)(g * group) * (size_t)T, *score = w->norm + (size_t)g * (size_t)T;

    for (int j = 0; j < group; j++)
        softmax(z + (size_t)j * (size_t)T, T);
    for (int t = MOMENT_FIRST; t < T; t++) {
        double p = 0;
        for (int j = 0; j < group; j++)
            p += (double)z[(size_t)j * (size_t)T + (size_t)t] / group;
        score[t] = (float)(w->value[USE_VNORM] != 0 ? (p + w->value[EPSILON]) * -(double)score[t] : p);
    }
}

static void score_sinks(const struct work *w)
{
    int T = w->full->n_tokens, G = w->full->shape.n_kv_heads;
    float most = 0;

    for (int i = 0; i < G * T; i++)
        most = i % T < MOMENT_FIRST ? most : fmaxf(most, w->norm[i]);
    for (int i = 0; i < G * T; i++)
        w->norm[i] = i % T < MOMENT_FIRST ? most + 1 : w->norm[i];
}

static void form_head(void *arg, int h)
{
    const struct work *w = arg;
    int T = w->full->n_tokens, K = w->full->shape.head_dim;
    size_t one = (size_t)(K + 1) * (size_t)K;

    make_form(w->host + (size_t)h * one, K, T > MOMENT_FIRST ? T - MOMENT_FIRST : 1, w->rotates ? &w->turn : NULL,
              (double)w->full->scale);
}

static int score_layer(struct work *w, int layer, float *out, struct err *err)
{
    const struct kv_full *full = w->full;
    struct backend *be = full->backend;
    int T = full->n_tokens, H = full->shape.n_heads, G = full->shape.n_kv_heads, K = full->shape.head_dim;
    w->rotates = layer_rotates(full, layer);
    size_t one = (size_t)(K + 1) * (size_t)K, forms = (size_t)H * one, row = (size_t)T * sizeof(float);
    const struct kv_rows *rows = full->rows + layer * G;

    for (int g = 0; g < G; g++)
        w->values[g] = (struct kv_rows){ rows[g].v, NULL, T };
    be->key_norms(be, out, w->values, G, K);
    if (be->read(be, w->norm, out, (size_t)G * row, err) ||
        be->read(be, w->host, full->moments + (size_t)layer * forms, forms * sizeof(float), err))
        return err->code;
    parallel_do(parallel_cores(), H, form_head, w);
    be->write(be, w->device, w->host, forms * sizeof(float));
    be->key_forms(be, w->device_z, w->device, rows, G, H / G, K);
    if (be->read(be, w->z, w->device_z, (size_t)H * row, err))
        return err->code;
    parallel_do(parallel_cores(), G, score_head, w);
    score_sinks(w);
    be->write(be, out, w->norm, (size_t)G * row);
    return 0;
}

static size_t form_bytes(const struct kv_shape *s)
{
    return (size_t)s->n_heads * (size_t)(s->head_dim + 1) * (size_t)s->head_dim * sizeof(float);
}

static size_t score_bytes(const double *value, const struct kv_shape *shape, int n_tokens, int window)
{
    (void)value, (void)window;
    return pool_size(form_bytes(shape)) + pool_size((size_t)shape->n_heads * (size_t)n_tokens * sizeof(float));
}

static int score_all(struct work *w, float *out, struct err *err)
{
    const struct kv_full *full = w->full;
    const struct kv_shape *s = &full->shape;
    size_t layer = (size_t)s->n_kv_heads * (size_t)full->n_tokens;

    w->device = pool_take(full->pool, form_bytes(s), err);
    w->device_z = w->device ? pool_take(full->pool, (size_t)(s->n_heads * full->n_tokens) * sizeof(float), err) : NULL;
    if (!w->device_z || mean_angles(w, full->cos, w->turn.cos, err) || mean_angles(w, full->sin, w->turn.sin, err))
        return err->code;
    for (int l = 0; l < s->n_layers; l++)
        if (score_layer(w, l, out + (size_t)l * layer, err))
            return err->code;
    return 0;
}

static int score(const struct kv_full *full, const double *value, float *out, struct err *err)
{
    const struct kv_shape *s = &full->shape;
    size_t G = (size_t)s->n_kv_heads, T = (size_t)full->n_tokens, half = (size_t)full->rotary / 2;
    struct work w = { .full = full,
                      .value = value,
                      .turn = { (int)half, calloc(half, sizeof(double)), calloc(half, sizeof(double)) },
                      .host = malloc(form_bytes(s)),
                      .z = malloc((size_t)s->n_heads * T * sizeof(float)),
                      .norm = malloc(G * T * sizeof(float)),
                      .values = malloc(G * sizeof(*w.values)) };
    void *all[] = { w.turn.cos, w.turn.sin, w.host, w.z, w.norm, w.values };
    bool enough = true;

    assert(full->moments);
    for (int i = 0; i < 6; i++)
        enough = enough && all[i];
    int code = enough ? score_all(&w, out, err) : err_nomem(err);
    for (int i = 0; i < 6; i++)
        free(all[i]);
    return code;
}

static const char *const no_yes[] = { "no", "yes", NULL };

const struct method method_expected_attention = {
    .name = "expected_attention",
    .summary = "keeps what queries like the context's are expected to attend to",
    .source = "Devoto et al. 2025 (arXiv 2510.00636), kvpress ExpectedAttentionPress",
    .needs = NEED_MOMENTS,
    .param = { PARAM_DROP,
               { .name = "n_future",
                 .min = 1,
                 .max = POSITIONS_MORE,
                 .otherwise = 512,
                 .whole = true,
                 .help = "positions after the context over which the rotation of queries is averaged" },
               { .name = "epsilon",
                 .min = 0,
                 .max = 1,
                 .otherwise = 0,
                 .help = "added to the expected attention before the length of the value multiplies it" },
               { .name = "use_vnorm",
                 .otherwise = 1,
                 .words = no_yes,
                 .help = "whether the length of the value multiplies the expected attention" } },
    .drop = &(const struct method_drop){ .scores = { .all = score, .bytes = score_bytes } },
};
