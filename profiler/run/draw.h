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

struct draw {
    const struct contexts *contexts;
    const struct questions *questions;
    const char *size; // a number, "300"; a share of all contexts, "12%", rounded up; or a time, "3h"
    int seed;
};

struct context_sample {
    int *order;     // (contexts): their numbers, those of the sample first
    int n;          // of the sample; with a time all that have questions
    double seconds; // a time after which no more contexts are begun; 0: none
};

/* ERR_USAGE: a malformed size. ERR_NOMEM. *s is zeroed on failure. */
int sample_draw(struct context_sample *s, const struct draw *d, struct err *err) MUST_CHECK;
void sample_release(struct context_sample *s); // zeroed is fine

#endif
