/* merge_cos - folds the value of each dropped token into that of the kept token with the most similar key.
 *
 * For a dropped token e of a head, t the kept token of the head with the largest cosine of keys (post-rotary):
 *     s    = cos(k_e, k_t), with norms of at least 1e-6;  0 below `threshold` (default 0)
 *     w_e  = s * |V_e| / (|V_e| + |V_t| + 1e-6)
 *     V_t  = (V_t + sum of w_e V_e) / (1 + sum of w_e)        over all e with this t; all V as before the merge
 * Keys stay. Bytes are those of the dropping method. Of equal cosines the lower position wins.
 *
 * Source: kvpress' MergingPress with merge_fraction=1, after Bolya et al., "Token Merging: Your ViT But Faster" (ICLR
 * 2023) and Wan et al., "D2O: Dynamic Discriminative Operations for Efficient Long-Context Inference of Large Language
 * Models" (arXiv 2406.13035).
 */
#include "methods/head_work.h"
#include "methods/registry.h"

#include <stdlib.h>
#include <string.h>

enum { THRESHOLD };
enum { LANES = 8, TOGETHER = 8 }; // kept keys in a panel, and dropped keys compared with it at a time
static const double least = 1e-6;

/* gcc also makes a version for AVX2, which the dynamic loader chooses. Sanitizers' own calls come before it does. */
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

/* The kept token nearest to a dropped one. */
struct nearest {
    float cosine;
    int at; // its index among the kept
};

struct merging {
    const struct evp_head *head;
    const struct host_kept *kept;
    int n_panels;
    float *panel;   // (n_panels, K, LANES): unit keys of the kept tokens; zeros beyond the last
    float *unit;    // (TOGETHER, K): unit keys of dropped tokens
    float *sum;     // (n, K): of w_e V_e
    double *weight; // (n): of w_e
};

static double norm(const float *x, int K)
{
    double squares = 0;

    for (int c = 0; c < K; c++)
        squares += (double)x[c] * (double)x[c];
    return sqrt(squares);
}

static int merging_init(struct merging *m, struct err *err)
{
    size_t K = (size_t)m->head->head_dim, n = (size_t)m->kept->n;

    m->n_panels = (m->kept->n + LANES - 1) / LANES;
    m->panel = calloc((size_t)m->n_panels * K * LANES, sizeof(*m->panel));
    m->unit = calloc(TOGETHER * K, sizeof(*m->unit));
    m->sum = calloc(n * K, sizeof(*m->sum));
    m->weight = calloc(n, sizeof(*m->weight));
    if (!m->panel || !m->unit || !m->sum || !m->weight)
        return err_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const float *k = m->head->k + (size_t)m->kept->at[i] * K;
        double length = fmax(norm(k, (int)K), least);
        for (size_t c = 0; c < K; c++)
            m->panel[(i / LANES * K + c) * LANES + i % LANES] = (float)((double)k[c] / length);
    }
    return 0;
}

static void merging_release(struct merging *m)
{
    free(m->panel);
    free(m->unit);
    free(m->sum);
    free(m->weight);
}

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

/* Cosines of TOGETHER dropped keys with the kept keys of one panel. */
static inline __attribute__((always_inline)) void compare(float dot[TOGETHER][LANES], const float *unit,
                                                          const float *panel, int K)
{
    lanes sum[TOGETHER] = { 0 }, k;

    for (int c = 0; c < K; c++) {
        memcpy(&k, panel + c * LANES, sizeof(k));
        for (int e = 0; e < TOGETHER; e++)
            sum[e] += unit[e * K + c] * k;
    }
    memcpy(dot, sum, sizeof(sum));
}

WIDE static void find_nearest(const struct merging *m, struct nearest best[TOGETHER])
{
    int K = m->head->head_dim;
    float dot[TOGETHER][LANES];

    for (int e = 0; e < TOGETHER; e++)
        best[e] = (struct nearest){ -2, 0 };
    for (int p = 0; p < m->n_panels; p++) {
        int left = m->kept->n - p * LANES, n = left < LANES ? left : LANES;
        compare(dot, m->unit, m->panel + (size_t)p * (size_t)K * LANES, K);
        for (int e = 0; e < TOGETHER; e++)
            for (int i = 0; i < n; i++)
                if (dot[e][i] > best[e].cosine)
                    best[e] = (struct nearest){ dot[e][i], p * LANES + i };
    }
}

static void add(struct merging *m, int e, const struct nearest *to)
{
    int K = m->head->head_dim;
    const float *from = m->head->v + (size_t)e * (size_t)K;
    const float *onto = m->head->v + (size_t)m->kept->at[to->at] * (size_t)K;
    double own = norm(from, K), w = (double)to->cosine * own / (own + norm(onto, K) + least);

    m->weight[to->at] += w;
    for (int c = 0; c < K; c++)
        m->sum[to->at * K + c] += (float)w * from[c];
}

/* Adds n <= TOGETHER dropped tokens. */
static void add_some(struct merging *m, const int *dropped, int n, double threshold)
{
    int K = m->head->head_dim;
    struct nearest best[TOGETHER];

    for (int e = 0; e < n; e++) {
        const float *k = m->head->k + (size_t)dropped[e] * (size_t)K;
        double length = fmax(norm(k, K), least);
        for (int c = 0; c < K; c++)
            m->unit[e * K + c] = (float)((double)k[c] / length);
    }
    find_nearest(m, best);
    for (int e = 0; e < n; e++)
        if (best[e].cosine > 0 && (double)best[e].cosine >= threshold)
            add(m, dropped[e], &best[e]);
}

static void add_all(struct merging *m, double threshold)
{
    int dropped[TOGETHER], n = 0;

    for (int t = 0, next = 0; t < m->head->n_tokens; t++) {
        if (next < m->kept->n && m->kept->at[next] == t) {
            next++;
            continue;
        }
        dropped[n++] = t;
        if (n == TOGETHER) {
            add_some(m, dropped, n, threshold);
            n = 0;
        }
    }
    add_some(m, dropped, n, threshold);
}

static int merge(const struct evp_head *head, const struct host_kept *kept, const double *value, float *v,
                 struct err *err)
{
    struct merging m = { .head = head, .kept = kept };
    int K = head->head_dim, code = kept->n > 0 ? merging_init(&m, err) : 0;

    if (!code && kept->n > 0)
        add_all(&m, value[THRESHOLD]);
    for (int i = 0; i < kept->n && !code; i++)
        for (int c = 0; c < K && m.weight[i] > 0; c++)
            v[i * K + c] = (v[i * K + c] + m.sum[i * K + c]) / (float)(1 + m.weight[i]);
    merging_release(&m);
    return code;
}

const struct method method_merge_cos = {
    .name = "merge_cos",
    .summary = "folds dropped values into those of the most similar kept keys",
    .source = "kvpress MergingPress, after Bolya et al. 2023 (arXiv 2210.09461), Wan et al. 2024 (arXiv 2406.13035)",
    .param = { { .name = "threshold",
                 .min = 0,
                 .max = 1,
                 .otherwise = 0,
                 .help = "least cosine of keys at which tokens are merged" } },
    .merge = &(const struct method_merge){ .merge = merge },
};
