/* forecast.h - estimates the time of a profile on another GPU from its data sheet.
 *
 * A prefill takes the time of its operations. Answers take the time of their operations, those of attention to the
 * context at a lower rate, or of the bytes that their steps read, whichever is longer: each step reads the weights and
 * the rows of all variants that are answered together, in bf16. Variants are answered together as far as they fit next
 * to the weights and the uncompressed cache. profiler/score/serving.h has the assumed shares of a GPU's peaks.
 */
#ifndef EVP_FORECAST_H
#define EVP_FORECAST_H

#include "engine/transformer/engine.h"
#include "profiler/run/grid.h"
#include "profiler/score/serving.h"

struct forecast {
    const struct grid *grid;
    const struct engine *engine; // of any backend; needs no weights
    const struct serving_gpu *gpu;
};

/* Estimates all open work of the grid. ERR_FAIL: the weights with one context's cache do not fit the GPU. */
int forecast_open(const struct forecast *f, double *seconds, struct err *err) MUST_CHECK;

/* Estimates n contexts of n_tokens tokens, with all configs of the grid and the questions of its mean context. */
struct forecast_size {
    int64_t n, n_tokens;
};
int forecast_sized(const struct forecast *f, struct forecast_size size, double *seconds, struct err *err) MUST_CHECK;

#endif
