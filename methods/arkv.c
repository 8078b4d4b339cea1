/* arkv - drops tokens, and keeps others as numbers of 8 bits: more of them in layers whose attention is even.
 *
 * With W = window (default 32) queries of the last tokens, post-rotary, T > W tokens, and for each of a layer's H query
 * heads x[q][t] = softmax over t of q . k_t / sqrt(K), causal within the window (all T keys), of the P = T - W tokens
 * before the window (not normalised again):
 *     score[h][t] = mean over the group of the average over 5 positions, zero beyond both ends, of
 *                   mean over q of x + 263.8108280337562 * variance over q of x (W - 1 degrees of freedom)
 *     H = - sum over heads, q and t of x log(x + 1e-10)
 *     V = sum over heads and t of the variance over q of x (W - 1 degrees of freedom)
 *     K = sum over heads and t of m4 / max(m2, 1e-8)^2, with the central moments of x over q
 *     oq = H^(1 / 7.774380648611771) * V^(1 / 5.407015096778621) * K^(1 / 5.527702582901318), of each layer
 *     rho = oq / the largest oq of all layers; 1 where that is 0
 * Of n_keep = (int)(T * (1 - drop)) tokens, at least 1, each head keeps the last W whole, the best round(rho * (n_keep
 * - W)) of the others too, half to even, and the next best as e4m3, with a scale in f16 for each token's key and for
 * its value, as fp8:scale=token. With n_keep <= W the most recent n_keep stay, all whole. Ties go to the lower
 * position.
 *
 * stats=paper takes H, V and K over keys, of each head and q, from p = x / (sum over t of x): H = - sum of p log p, V =
 * mean of (p - 1 / P)^2, K = mean of (p - 1 / P)^4 / V^2; each is then summed, in our reading of the paper. tau and
 * gamma were fitted to stats=code.
 *
 * The rows in 8 bits come before the whole ones, each in the order of the context; so at least one token is dropped,
 * and nobody takes row i for token i. Bytes per layer and kv head, with n of n_keep rows whole: n*4K + (n_keep - n)*(2K
 * + 4).
 *
 * Source: Lei and Ilager, "ARKV: Adaptive and Resource-Efficient KV Cache Management under Limited Memory Budget for
 * Long-Context Inference in LLMs" (arXiv 2603.08727) and its code: calculate_heavy_hitter(),
 * disp_var_kurt_preference(). The code drops at the end of prefill, and packs while it decodes, then in each step anew;
 * here both are done at the end of prefill. It takes W from the whole rows once more, and one scale for all heads.
 */
#include "methods/head_work.h"
#include "methods/registry.h"

#include <stdlib.h>
#include <string.h>

enum { DROP, WINDOW, STATS };
enum { STATS_CODE, STATS_PAPER };
enum { POOL = 5 }; // positions
static const double tau_h = 7.774380648611771, tau_v = 5.407015096778621, tau_k = 5.527702582901318;
static const double gamma_v = 263.8108280337562;
static const float above_all = 1e6f; // scores are at most 1 + gamma / 2

struct statistics {
    double entropy, variance, kurtosis;
};

struct observing {
    const double *value;
    float *score;             // (L * G, T)
    struct statistics *found; // [L * G]
};

/* What the W queries of one query head see. */
struct view {
    int W, T, P, K;
    float cap;              // of scores, as in struct evp_head
    float *key;             // (K, T): the keys, column by column
    float *x;               // (W, T)
    double *mean, *m2, *m4; // (T): central moments over the queries
    double *score;          // (T): sums over the group
};

static int view_init(struct view *v, const struct evp_head *head, int W, struct err *err)
{
    size_t T = (size_t)head->n_tokens, K = (size_t)head->head_dim;

    *v = (struct view){ .W = W, .T = head->n_tokens, .P = head->n_tokens - W, .K = head->head_dim, .cap = head->cap };
    v->key = malloc(K * T * sizeof(*v->key));
    v->x = malloc((size_t)W * T * sizeof(*v->x));
    v->mean = calloc(4 * T, sizeof(*v->mean));
    if (!v->key || !v->x || !v->mean)
        return err_nomem(err);
    v->m2 = v->mean + T;
    v->m4 = v->mean + 2 * T;
    v->score = v->mean + 3 * T;
    for (size_t t = 0; t < T; t++)
        for (size_t c = 0; c < K; c++)
            v->key[c * T + t] = head->k[t * K + c];
    return 0;
}

static void view_release(struct view *v)
{
    free(v->key);
    free(v->x);
    free(v->mean);
}

/* x (T) = the attention of a query to the n keys that it sees. */
static void attend(const struct view *v, const float *q, int n, float *x)
{
    const float scale = 1 / sqrtf((float)v->K);
    float most = -INFINITY;
    double sum = 0;

    for (int t = 0; t < n; t++)
        x[t] = 0;
    for (int c = 0; c < v->K; c++)
        for (int t = 0; t < n; t++)
            x[t] += q[c] * scale * v->key[(size_t)c * (size_t)v->T + (size_t)t];
    for (int t = 0; t < n; t++) {
        x[t] = v->cap > 0 ? v->cap * tanhf(x[t] / v->cap) : x[t];
        most = fmaxf(most, x[t]);
    }
    for (int t = 0; t < n; t++)
        sum += (double)(x[t] = expf(x[t] - most));
    for (int t = 0; t < n; t++)
        x[t] = (float)((double)x[t] / sum);
}

/* The central moments of each key's attention over the queries. */
static void take_moments(struct view *v)
{
    memset(v->mean, 0, 3 * (size_t)v->T * sizeof(*v->mean));
    for (int q = 0; q < v->W; q++)
        for (int t = 0; t < v->P; t++)
            v->mean[t] += (double)v->x[q * v->T + t] / v->W;
    for (int q = 0; q < v->W; q++)
        for (int t = 0; t < v->P; t++) {
            double d = (double)v->x[q * v->T + t] - v->mean[t];
            v->m2[t] += d * d / v->W;
            v->m4[t] += d * d * d * d / v->W;
        }
}

static void add_statistics(const struct view *v, struct statistics *s)
{
    for (int q = 0; q < v->W; q++)
        for (int t = 0; t < v->P; t++) {
            float x = v->x[q * v->T + t];
            s->entropy -= (double)(x * logf(x + 1e-10f));
        }
    for (int t = 0; t < v->P; t++) {
        double m2 = fmax(v->m2[t], 1e-8);
        s->variance += v->m2[t] * v->W / (v->W - 1);
        s->kurtosis += v->m4[t] / (m2 * m2);
    }
}

static void add_paper_statistics(const struct view *v, struct statistics *s)
{
    for (int q = 0; q < v->W; q++) {
        const float *x = v->x + q * v->T;
        double sum = 0, m2 = 0, m4 = 0;
        for (int t = 0; t < v->P; t++)
            sum += (double)x[t];
        for (int t = 0; t < v->P && sum > 0; t++) {
            double p = (double)x[t] / sum, d = p - 1. / v->P;
            s->entropy -= p > 0 ? p * log(p) : 0;
            m2 += d * d / v->P;
            m4 += d * d * d * d / v->P;
        }
        s->variance += m2;
        s->kurtosis += m2 > 0 ? m4 / (m2 * m2) : 0;
    }
}

/* The score of a token before the window, pooled. */
static float pooled(const struct view *v, int t, int n_group)
{
    double sum = 0;

    for (int i = t - POOL / 2; i <= t + POOL / 2; i++)
        sum += i >= 0 && i < v->P ? v->score[i] : 0;
    return (float)(sum / POOL / n_group);
}

static void see_group(struct view *v, const struct evp_head *head, const struct observing *o)
{
    struct statistics *found = &o->found[head->layer * head->n_kv_heads + head->head];

    for (int j = 0; j < head->n_group; j++) {
        for (int q = 0; q < v->W; q++) {
            int row = (head->window - v->W + q) * head->n_group + j;
            attend(v, head->window_q + (size_t)row * (size_t)v->K, v->P + q + 1, v->x + q * v->T);
        }
        take_moments(v);
        for (int t = 0; t < v->P; t++)
            v->score[t] += v->mean[t] + gamma_v * v->m2[t] * v->W / (v->W - 1);
        (o->value[STATS] == STATS_PAPER ? add_paper_statistics : add_statistics)(v, found);
    }
}

static int observe(const struct evp_head *head, void *arg, struct err *err)
{
    const struct observing *o = arg;
    int T = head->n_tokens, W = (int)o->value[WINDOW] < T ? (int)o->value[WINDOW] : T, code = 0;
    float *score = o->score + (size_t)(head->layer * head->n_kv_heads + head->head) * (size_t)T;
    struct view v = { 0 };

    if (W < T)
        code = view_init(&v, head, W, err);
    if (W < T && !code) {
        see_group(&v, head, o);
        for (int t = 0; t < v.P; t++)
            score[t] = pooled(&v, t, head->n_group);
    }
    for (int t = T - W; t < T; t++)
        score[t] = above_all + (float)(t - (T - W));
    view_release(&v);
    return code;
}

/* share (L) = each layer's rho. */
static int find_shares(const struct statistics *found, const struct kv_shape *shape, double *share, struct err *err)
{
    double most = 0;

    for (int l = 0; l < shape->n_layers; l++) {
        struct statistics s = { 0 };
        for (int g = 0; g < shape->n_kv_heads; g++) {
            const struct statistics *of = &found[l * shape->n_kv_heads + g];
            s.entropy += of->entropy;
            s.variance += of->variance;
            s.kurtosis += of->kurtosis;
        }
        share[l] = pow(fmax(s.entropy, 0), 1 / tau_h) * pow(s.variance, 1 / tau_v) * pow(s.kurtosis, 1 / tau_k);
        if (isnan(share[l]))
            return err_set(err, ERR_FAIL, "the attention in layer %d is not a number", l);
        most = fmax(most, share[l]);
    }
    for (int l = 0; l < shape->n_layers; l++)
        share[l] = most > 0 ? share[l] / most : 1;
    return 0;
}

static int score_shares(const struct kv_full *full, const double *value, float *score, double *share, struct err *err)
{
    size_t heads = (size_t)(full->shape.n_layers * full->shape.n_kv_heads);
    size_t bytes = heads * (size_t)full->n_tokens * sizeof(*score);
    struct observing o = { value, malloc(bytes), calloc(heads, sizeof(*o.found)) };
    const struct host_work work = { .needs = NEED_WINDOW_Q, .head = observe, .arg = &o };
    int code = o.score && o.found ? host_each_head(full, &work, err) : err_nomem(err);

    if (!code)
        code = find_shares(o.found, &full->shape, share, err);
    if (!code)
        full->backend->write(full->backend, score, o.score, bytes);
    free(o.score);
    free(o.found);
    return code;
}

static int whole(const double *value, double share, int n_keep)
{
    int window = (int)value[WINDOW];

    return n_keep <= window ? n_keep : window + (int)rint(share * (n_keep - window));
}

static struct quant_pair rows_of(const double *value, int head_dim)
{
    const struct quant_row row = { .format = QUANT_E4M3, .columns = head_dim, .scale = QUANT_SCALE_TOKEN };

    (void)value;
    return (struct quant_pair){ .side = { row, row } };
}

static const char *const statistics_words[] = { [STATS_CODE] = "code", [STATS_PAPER] = "paper", NULL };

const struct method method_arkv = {
    .name = "arkv",
    .summary = "drops tokens, keeps some whole and the others in 8 bits",
    .source = "Lei and Ilager 2026 (arXiv 2603.08727), github.com/Large-scale-Sustainable-Computing-LSC/ARKV",
    .needs = NEED_WINDOW_Q,
    .param = { { .name = "drop",
                 .alias = "compression_ratio",
                 .min = 0.000001, // at least one of several tokens
                 .max = 0.999999,
                 .otherwise = (double)NAN,
                 .budget = true,
                 .help = "share of KV pairs removed" },
               { .name = "window",
                 .min = 2,
                 .max = 4096,
                 .otherwise = 32,
                 .whole = true,
                 .window = true,
                 .help = "last tokens whose queries count, and that stay whole" },
               { .name = "stats",
                 .otherwise = STATS_CODE,
                 .words = statistics_words,
                 .help = "statistics of attention as in the authors' code, or over keys as in the paper" } },
    .drop = &(const struct method_drop){ .scores = { .shares = score_shares } },
    .pack = &(const struct method_pack){ .rows = rows_of, .whole = whole },
};
