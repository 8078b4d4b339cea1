/* lagkv - scores each token by how its key and value spread over the range of the tokens that follow; needs no queries.
 *
 * After the first n_sink tokens (default 4), with whole partitions of lag tokens (default 128), partition p, its tokens
 * t and the columns c of a head:
 *     u[t][c]     = (x[t][c] - min) / (max - min)     min, max: of column c over partition p + 1;  x: k, and likewise v
 *     s_x[t]      = softmax over the partition's t of the standard deviation of u[t] over its K columns
 *     score[h][t] = the rank of s_k + s_v within the partition, from 0, / lag
 * Sinks, the last whole partition and what follows it have no partition after them: they score 1, above all others.
 * With fewer than n_sink + 2 * lag tokens the sinks score 1 and token t after them (t - n_sink) / (T - n_sink): the
 * most recent stay. Ties go to the lower position. A column whose next partition has one value makes all scores of a
 * partition equal in kvpress (nan there); here it counts as 0.
 *
 * Source: Liang et al., "LagKV: Lag-Relative Information of the KV Cache Tells Which Tokens Are Important" (arXiv
 * 2504.04704); like kvpress' LagKVPress without cross_scoring.
 */
#include "methods/head_work.h"
#include "methods/registry.h"

#include <stdlib.h>
#include <string.h>

enum { DROP, N_SINK, LAG };
enum { LAG_MAX = 4096 };

/* The range of each column over the rows of a partition. */
struct range_of_columns {
    float *low, *high; // (K)
};

static void find_range(const struct range_of_columns *r, const float *x, int n, int K)
{
    memcpy(r->low, x, (size_t)K * sizeof(*r->low));
    memcpy(r->high, x, (size_t)K * sizeof(*r->high));
    for (int t = 1; t < n; t++)
        for (int c = 0; c < K; c++) {
            r->low[c] = fminf(r->low[c], x[t * K + c]);
            r->high[c] = fmaxf(r->high[c], x[t * K + c]);
        }
}

static float place(const struct range_of_columns *r, int c, float x)
{
    return r->high[c] > r->low[c] ? (x - r->low[c]) / (r->high[c] - r->low[c]) : 0;
}

static float deviation(const struct range_of_columns *r, const float *x, int K)
{
    double mean = 0, squares = 0;

    for (int c = 0; c < K; c++)
        mean += (double)place(r, c, x[c]) / K;
    for (int c = 0; c < K; c++)
        squares += pow((double)place(r, c, x[c]) - mean, 2);
    return (float)sqrt(squares / (K - 1));
}

/* Adds the softmax of the deviations of a partition's rows x (n, K), relative to the n rows after it, to s (n). */
static void add_spread(const struct range_of_columns *r, const float *x, int n, int K, double *s)
{
    double own[LAG_MAX], most = 0, sum = 0;

    find_range(r, x + (size_t)n * (size_t)K, n, K);
    for (int t = 0; t < n; t++) {
        own[t] = (double)deviation(r, x + t * K, K);
        most = fmax(most, own[t]);
    }
    for (int t = 0; t < n; t++)
        sum += own[t] = exp(own[t] - most);
    for (int t = 0; t < n; t++)
        s[t] += own[t] / sum;
}

/* The share of the partition's tokens below token t; of equals the later ones are below. */
static float rank_of(const double *s, int n, int t)
{
    int below = 0;

    for (int u = 0; u < n; u++)
        below += s[u] < s[t] || (s[u] == s[t] && u > t);
    return (float)below / (float)n;
}

/* Scores a context with whole partitions, the last of which has none after it. */
static void score_partitions(const struct evp_head *head, int sink, int lag, const struct range_of_columns *r,
                             float *score)
{
    int T = head->n_tokens, K = head->head_dim, n = (T - sink) / lag;
    double s[LAG_MAX];

    for (int t = 0; t < T; t++)
        score[t] = 1;
    for (int p = 0; p + 1 < n; p++) {
        int first = sink + p * lag;
        memset(s, 0, (size_t)lag * sizeof(*s));
        add_spread(r, head->k + (size_t)first * (size_t)K, lag, K, s);
        add_spread(r, head->v + (size_t)first * (size_t)K, lag, K, s);
        for (int t = 0; t < lag; t++)
            score[first + t] = rank_of(s, lag, t);
    }
}

static int score_head(const struct evp_head *head, const double *value, float *score, struct err *err)
{
    int T = head->n_tokens, sink = (int)value[N_SINK], lag = (int)value[LAG];
    float *range = malloc((size_t)head->head_dim * 2 * sizeof(*range));

    if (!range)
        return err_nomem(err);
    if (T >= sink + 2 * lag)
        score_partitions(head, sink, lag, &(struct range_of_columns){ range, range + head->head_dim }, score);
    for (int t = 0; t < T && T < sink + 2 * lag; t++)
        score[t] = t < sink ? 1 : (float)(t - sink) / (float)(T - sink);
    free(range);
    return 0;
}

const struct method method_lagkv = {
    .name = "lagkv",
    .summary = "drops tokens that spread least over those that follow",
    .source = "Liang et al. 2025 (arXiv 2504.04704), kvpress LagKVPress",
    .param = { PARAM_DROP,
               PARAM_N_SINK,
               { .name = "lag",
                 .min = 2,
                 .max = LAG_MAX,
                 .otherwise = 128,
                 .whole = true,
                 .help = "tokens of a partition" } },
    .drop = &(const struct method_drop){ .scores = { .head = score_head } },
};
