/* cur - keeps tokens whose key and value are long for their neighbourhood: approximate leverage scores of a CUR
 * decomposition of keys and values; needs no queries.
 *
 *     k2[t] = |k_t|^2 / the sum of |k_u|^2 over the tokens u of t's block of `block` tokens,    v2[t] likewise
 *     score[h][t] = k2 * v2 (leverage=kv_product), (k2 + v2) / 2 (kv_avg), k2 (key) or v2 (value); over their sum
 * Blocks count from token 0, the last may be shorter; block=0 leaves out the division. The first n_sink tokens score 1,
 * above all others. Where all numbers of a block are 0 its share is 0 (nan in kvpress).
 *
 * Source: Sengupta et al., "Value-Guided KV Compression for LLMs via Approximated CUR Decomposition" (CurDKV, arXiv
 * 2509.15038); like kvpress' CURPress without use_random_leverage, with its num_sinks (n_sink) and local_window_size
 * (block).
 */
#include "methods/head_work.h"
#include "methods/registry.h"

#include <stdlib.h>

enum { DROP, LEVERAGE, BLOCK, N_SINK };
enum leverage { KV_PRODUCT, KV_AVG, KEY, VALUE };
static const char *const leverages[] = { "kv_product", "kv_avg", "key", "value", NULL };

/* s[t] = the squared length of row t of x (T, K), over that of its block. */
static void find_lengths(double *s, const float *x, const struct evp_head *head, int block)
{
    int T = head->n_tokens, K = head->head_dim;

    for (int t = 0; t < T; t++) {
        s[t] = 0;
        for (int c = 0; c < K; c++)
            s[t] += (double)x[(size_t)t * (size_t)K + (size_t)c] * (double)x[(size_t)t * (size_t)K + (size_t)c];
    }
    for (int first = 0; block > 0 && first < T; first += block) {
        int end = first + block < T ? first + block : T;
        double sum = 0;
        for (int t = first; t < end; t++)
            sum += s[t];
        for (int t = first; t < end && sum > 0; t++)
            s[t] /= sum;
    }
}

static double leverage_of(enum leverage leverage, double k2, double v2)
{
    switch (leverage) {
    case KEY: return k2;
    case VALUE: return v2;
    case KV_AVG: return (k2 + v2) / 2;
    default: return k2 * v2;
    }
}

static int score_head(const struct evp_head *head, const double *value, float *score, struct err *err)
{
    int T = head->n_tokens;
    double *k2 = malloc((size_t)T * 2 * sizeof(*k2)), *v2 = k2 + T, sum = 0;

    if (!k2)
        return err_nomem(err);
    find_lengths(k2, head->k, head, (int)value[BLOCK]);
    find_lengths(v2, head->v, head, (int)value[BLOCK]);
    for (int t = 0; t < T; t++)
        sum += k2[t] = leverage_of((enum leverage)value[LEVERAGE], k2[t], v2[t]);
    for (int t = 0; t < T; t++)
        score[t] = t < (int)value[N_SINK] ? 1 : sum > 0 ? (float)(k2[t] / sum) : 0;
    free(k2);
    return 0;
}

const struct method method_cur = {
    .name = "cur",
    .summary = "keeps tokens whose key and value are long among their neighbours'",
    .source = "Sengupta et al. 2025 (arXiv 2509.15038), kvpress CURPress",
    .param = { PARAM_DROP,
               { .name = "leverage", .words = leverages, .otherwise = KV_PRODUCT, .help = "what is scored" },
               { .name = "block",
                 .min = 0,
                 .max = 4096,
                 .otherwise = 16,
                 .whole = true,
                 .help = "tokens of a neighbourhood; 0: the whole context" },
               PARAM_N_SINK },
    .drop = &(const struct method_drop){ .scores = { .head = score_head } },
};
