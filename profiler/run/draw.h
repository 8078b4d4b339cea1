/* draw.h - a random sample of contexts to profile; the others become rows without measurements
 * (profiler/run/unvisited.h).
 *
 * A checksum of seed and id orders the contexts, and a sample is the first of them: a larger sample with the same seed
 * includes the smaller one, and the order of the file does not matter. Contexts without questions are never sampled.
 */
#ifndef EVP_DRAW_H
#define EVP_DRAW_H

#include "base/err.h"
#include "formats/context.h"

#include <stdbool.h>

struct draw {
    const struct contexts *contexts;
    const struct questions *questions;
    const char *size; // a number, "300", or a share of all contexts, "12%", rounded up
    int seed;
};

/* Sets *sampled to an array (contexts) that the caller frees: whether each is in the sample. ERR_USAGE: a malformed
 * size. ERR_NOMEM. */
int draw_contexts(bool **sampled, const struct draw *d, struct err *err) MUST_CHECK;

#endif
