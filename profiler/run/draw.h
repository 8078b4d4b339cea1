/* draw.h - a random sample of contexts: those that are profiled; the others become rows without measurements
 * (profiler/run/unvisited.h).
 *
 * A checksum of the seed and the context's id puts the contexts in an order, and a sample is the first of them: a
 * larger sample of the same seed holds the smaller one, and the order of the file does not matter. Contexts without
 * questions are in no sample.
 */
#ifndef EVP_DRAW_H
#define EVP_DRAW_H

#include "base/err.h"
#include "formats/context.h"

#include <stdbool.h>

struct draw {
    const struct contexts *contexts;
    const struct questions *questions;
    const char *size; // "300", or a share of all contexts, rounded up: "12%"
    int seed;
};

/* (contexts) which are in the sample, for the caller to free. ERR_USAGE: size is neither; ERR_NOMEM. */
int draw_contexts(bool **sampled, const struct draw *d, struct err *err) MUST_CHECK;

#endif
