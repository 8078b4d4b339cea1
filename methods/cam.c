/* cam - adds what a dropping method drops to the values of the kept tokens that follow.
 *
 * With A[t] = the mean attention that token t gets from the last `window` (default 64) tokens and the H/G query heads
 * of its group, m = 32, and the dropped token i, whose next m kept tokens of its head are j (fewer at the end, N of
 * them):
 *     p    = A[i] / (sum over j of A[j] / N), at least 0, at most 1; 0 where that is not a number, or N is 0
 *     V[j] = V[j] + b * V[i] / m        for each of these j; V[i] as it was before any merge
 *     sample=expected (default): b = p, the mean of what is drawn;  sample=bernoulli: b = 1 with probability p, else 0,
 *     by `seed`
 * Keys stay. Bytes are those of the dropping method.
 *
 * Source: Zhang et al., "CaM: Cache Merging for Memory-efficient LLMs Inference" (ICML 2024) and its code: p, b and V
 * as in slicev(), for streaming, where m is 16; m as in local_cam_mask(), for summaries. There one token leaves a
 * window at each step of decoding, A is summed over the steps, and b is drawn. Here all tokens leave at the end of
 * prefill, by any dropping method.
 */
#include "base/rng.h"
#include "methods/head_work.h"
#include "methods/registry.h"

#include <stdio.h>

enum { WINDOW, SAMPLE, SEED };
enum { EXPECTED, BERNOULLI };
enum { MERGE_TOKENS = 32 };

static int score(const struct kv_full *full, const double *value, float *out, struct err *err)
{
    return window_attention(full, value[WINDOW] < full->n_tokens ? (int)value[WINDOW] : full->n_tokens, out, err);
}

/* The probability that token i is merged into the n kept tokens `next`. */
static double chance(const float *a, int i, const int32_t *next, int n)
{
    double sum = 0;

    for (int j = 0; j < n; j++)
        sum += (double)a[next[j]];
    double p = (double)a[i] / (sum / n);
    return p > 1 ? 1 : p > 0 ? p : 0; // 0 / 0 is 0
}

static int merge(const struct evp_head *head, const struct host_kept *kept, const double *value, float *v,
                 struct err *err)
{
    int K = head->head_dim;
    char name[32];

    (void)err;
    snprintf(name, sizeof(name), "cam %d %d", head->layer, head->head);
    struct rng rng = rng_named((uint64_t)value[SEED], name);
    for (int i = 0, next = 0; i < head->n_tokens; i++) {
        int left = kept->n - next, n = left < MERGE_TOKENS ? left : MERGE_TOKENS;
        if (n > 0 && kept->at[next] == i) {
            next++;
            continue;
        }
        double p = n > 0 ? chance(kept->score, i, kept->at + next, n) : 0;
        if (value[SAMPLE] == BERNOULLI)
            p = rng_unit(&rng) < p;
        const float weight = (float)(p / MERGE_TOKENS), *from = head->v + (size_t)i * (size_t)K;
        float *to = v + (size_t)next * (size_t)K;
        for (int j = 0; j < n; j++)
            for (int c = 0; c < K; c++)
                to[j * K + c] += weight * from[c];
    }
    return 0;
}

static const char *const samples[] = { [EXPECTED] = "expected", [BERNOULLI] = "bernoulli", NULL };

const struct method method_cam = {
    .name = "cam",
    .summary = "adds dropped values to the next kept ones, by attention",
    .source = "Zhang et al. 2024 (ICML), github.com/zyxxmu/cam",
    .needs = NEED_WINDOW_Q,
    .param = { PARAM_WINDOW,
               { .name = "sample",
                 .otherwise = EXPECTED,
                 .words = samples,
                 .budget = true,
                 .help = "whether a token is merged by its probability, or drawn" },
               { .name = "seed",
                 .min = 0,
                 .max = 1e9,
                 .otherwise = 0,
                 .whole = true,
                 .budget = true,
                 .help = "seed of what is drawn" } },
    .merge = &(const struct method_merge){ .merge = merge, .scores = { .all = score, .bytes = window_bytes } },
};
