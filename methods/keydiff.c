/* keydiff - drops keys that point in the direction of most keys, and keeps keys that differ.
 *
 * With k_t the keys of a kv head, rotary embedding applied:
 *     a = mean over t of k_t / |k_t|,      score[h][t] = -cos(k_t, a)
 * The mean cosine of k_t with all keys is |a| * cos(k_t, a): the same order per head, in linear time. No window, no
 * sinks.
 *     block=0     all tokens are scored at once
 *     block=N     block by block, as a cache that never holds more than N tokens over what it keeps: the first n tokens
 *                 are kept, n being what drop leaves; the next N join them, all these are scored among themselves, and
 *                 the best n stay; and so on. What is kept for one drop is no subset of what is kept for a lighter one
 * With blocks, those that stay score by the last round; those that left score below them, the later the higher.
 *
 * Source: Park et al., "KeyDiff: Key Similarity-Based KV Cache Eviction" (arXiv 2504.15364), whose blocks are those of
 * prefill; like kvpress' KeyDiffPress, with blocks like its BlockPress around it.
 */
#include "methods/head_work.h"
#include "methods/registry.h"

#include <stdlib.h>

enum { DROP, BLOCK };

static bool by_drop(const double *value)
{
    return value[BLOCK] > 0;
}

/* ---- block by block, on the host ---------------------------------------- */

/* A token in the cache and its score among those in it. */
struct seen {
    double score;
    int t;
};

/* A head while its blocks are read. */
struct rounds {
    const float *unit;  // (T, K): k_t / |k_t|
    double *anchor;     // (K): their sum over the tokens in the cache
    struct seen *cache; // (n)
    int n, K;
};

static int compare_seen(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;

    return x->score > y->score ? -1 : x->score < y->score ? 1 : x->t - y->t;
}

static void add_unit(struct rounds *r, int t, int sign)
{
    const float *unit = r->unit + (size_t)t * (size_t)r->K;

    for (int c = 0; c < r->K; c++)
        r->anchor[c] += sign * (double)unit[c];
}

static void admit(struct rounds *r, int first, int end)
{
    for (int t = first; t < end; t++) {
        r->cache[r->n++] = (struct seen){ .t = t };
        add_unit(r, t, 1);
    }
}

/* Scores the tokens in the cache among themselves, and puts the best first. */
static void rank_cache(struct rounds *r)
{
    double squares = 0;

    for (int c = 0; c < r->K; c++)
        squares += r->anchor[c] * r->anchor[c];
    for (int i = 0; i < r->n; i++) {
        const float *unit = r->unit + (size_t)r->cache[i].t * (size_t)r->K;
        double dot = 0;
        for (int c = 0; c < r->K; c++)
            dot += r->anchor[c] * (double)unit[c];
        r->cache[i].score = squares > 0 ? -dot / sqrt(squares) : 0;
    }
    qsort(r->cache, (size_t)r->n, sizeof(*r->cache), compare_seen);
}

static void read_blocks(struct rounds *r, int T, int n_keep, int block, float *score)
{
    admit(r, 0, n_keep);
    rank_cache(r);
    for (int first = n_keep; first < T; first += block) {
        int end = T - first > block ? first + block : T;
        admit(r, first, end);
        rank_cache(r);
        for (; r->n > n_keep; r->n--) {
            int t = r->cache[r->n - 1].t;
            score[t] = -2 - (float)(T - end); // below all that stay, whose cosines are at least -1
            add_unit(r, t, -1);
        }
    }
    for (int i = 0; i < r->n; i++)
        score[r->cache[i].t] = (float)r->cache[i].score;
}

static void make_units(const struct evp_head *head, float *unit)
{
    size_t K = (size_t)head->head_dim;

    for (size_t t = 0; t < (size_t)head->n_tokens; t++) {
        double squares = 0;
        for (size_t c = 0; c < K; c++)
            squares += (double)head->k[t * K + c] * (double)head->k[t * K + c];
        for (size_t c = 0; c < K; c++)
            unit[t * K + c] = squares > 0 ? (float)((double)head->k[t * K + c] / sqrt(squares)) : 0;
    }
}

static int score_blocks(const struct evp_head *head, const double *value, float *score, struct err *err)
{
    size_t T = (size_t)head->n_tokens, K = (size_t)head->head_dim;
    float *unit = malloc(T * K * sizeof(*unit));
    struct rounds r = {
        .unit = unit, .anchor = calloc(K, sizeof(*r.anchor)), .cache = calloc(T, sizeof(*r.cache)), .K = head->head_dim
    };
    int code = unit && r.anchor && r.cache ? 0 : err_nomem(err);

    if (!code) {
        make_units(head, unit);
        read_blocks(&r, head->n_tokens, keep_of_drop(value[DROP], head->n_tokens), (int)value[BLOCK], score);
    }
    free(unit);
    free(r.anchor);
    free(r.cache);
    return code;
}

/* ---- all at once -------------------------------------------------------- */

static int score(const struct kv_full *full, const double *value, float *out, struct err *err)
{
    const struct kv_shape *s = &full->shape;

    if (value[BLOCK] > 0)
        return host_score(full, &method_keydiff, value, out, err);
    full->backend->key_cosines(full->backend, out, full->rows, s->n_layers * s->n_kv_heads, s->head_dim);
    return 0;
}

const struct method method_keydiff = {
    .name = "keydiff",
    .summary = "drops keys most like the average key",
    .source = "Park et al. 2025 (arXiv 2504.15364), kvpress KeyDiffPress",
    .param = { PARAM_DROP,
               { .name = "block",
                 .min = 0,
                 .max = 65536,
                 .otherwise = 0,
                 .whole = true,
                 .help = "tokens that are scored together with those kept so far; 0: all at once" } },
    .drop = &(const struct method_drop){ .scores = { .all = score, .head = score_blocks, .by_drop = by_drop } },
};
