/* pyramidkv - snapkv's scores with a budget that shrinks from the first layer to the last.
 *
 * With w = window and B = T * (1 - drop), the mean budget of a layer:
 *     min = B / beta,  max = 2B - min;  if max >= T - w:  max = T - w,  min = 2B - max
 *     layer l keeps round(max - l * (max - min) / (L - 1)) pairs of each head, if T >= max >= min >= w
 *     otherwise the pyramid does not fit, and every layer keeps round(B) pairs, at least 1
 * round() rounds half to even. A pyramid needs a long context: B >= 1280 at drop = 0.5 and the defaults. The window
 * counts inside the budget.
 *
 * Source: Cai et al., "PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling" (arXiv
 * 2406.02069); like kvpress' PyramidKVPress, in the same order of floating-point operations.
 */
#include "methods/registry.h"

enum { BETA = SNAPKV_PARAMS };

static int keep(const double *value, const struct kv_shape *shape, int n_tokens, int layer)
{
    double T = n_tokens, w = value[SNAPKV_WINDOW];
    double budget = w + T * (1 - value[SNAPKV_DROP]) - w; // + w - w as in kvpress, for the same last bit
    double min = budget / value[BETA], max = budget * 2 - min;

    if (max >= T - w) {
        max = T - w;
        min = budget * 2 - max;
    }
    if (!(T >= max && max >= min && min >= w))
        return (int)fmax(1, rint(T * (1 - value[SNAPKV_DROP])));
    double step = shape->n_layers > 1 ? (max - min) / (shape->n_layers - 1) : 0;
    return (int)rint(max - layer * step);
}

const struct method method_pyramidkv = {
    .name = "pyramidkv",
    .summary = "snapkv with smaller budgets in later layers",
    .source = "Cai et al. 2024 (arXiv 2406.02069), kvpress PyramidKVPress",
    .needs = NEED_WINDOW_Q,
    .param = { PARAM_DROP,
               PARAM_WINDOW,
               PARAM_KERNEL,
               { .name = "beta",
                 .min = 1,
                 .max = 1000,
                 .otherwise = 20,
                 .whole = true,
                 .budget = true,
                 .help = "mean budget of a layer / budget of the last layer" } },
    .check = snapkv_check,
    .drop = &(const struct method_drop){ .scores = { .all = snapkv_score, .bytes = snapkv_bytes }, .keep = keep },
};
