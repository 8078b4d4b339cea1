/* forecast.h - how long a profile takes on a GPU that is not here, by its data sheet.
 *
 * Not a measurement. Prefill takes its operations; answers take their operations or the bytes that their steps read,
 * whichever takes longer: each step reads the weights, and the rows of all variants that are answered together, in
 * bf16. Variants are answered together as far as they fit beside the weights and the full cache. What a GPU reaches of
 * its peaks is profiler/score/serving.h's expectation.
 */
#ifndef EVP_FORECAST_H
#define EVP_FORECAST_H

#include "engine/transformer/engine.h"
#include "profiler/run/grid.h"
#include "profiler/score/serving.h"

struct forecast {
    const struct grid *grid;
    const struct engine *engine; // of any backend; no weights are needed
    const struct serving_gpu *gpu;
};

/* What is open in the grid. ERR_FAIL: the weights, or a context's cache beside them, do not fit the GPU. */
int forecast_open(const struct forecast *f, double *seconds, struct err *err) MUST_CHECK;

/* n contexts of n_tokens, with all configs of the grid and the questions of its mean context. */
struct forecast_size {
    int64_t n, n_tokens;
};
int forecast_sized(const struct forecast *f, struct forecast_size size, double *seconds, struct err *err) MUST_CHECK;

#endif
