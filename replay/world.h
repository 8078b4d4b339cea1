/* world.h - what a replay knows of the contexts: bytes, times and answers of a utility table, and which context and
 * question each request is about.
 *
 * Each request asks one of its context's test questions; the requests of a context take them in turn, beginning
 * anywhere. So quality is that of answers, not of a mean, and over whole turns their mean is the table's. A context
 * without test questions has the quality to plan with.
 */
#ifndef EVP_WORLD_H
#define EVP_WORLD_H

#include "placement/placement.h"

struct replay_world {
    const struct placement_input *in; // borrowed
    const int32_t *row;               // (n) borrowed: the table's row of each request's context
    int n, warm;                      // requests; those before `warm` are not counted
    int32_t *question;                // (n) of the table; -1: its context has no test questions
};

/* Draws the questions; the caller has set the rest. */
int world_open(struct replay_world *w, uint64_t seed, struct err *err) MUST_CHECK;
void world_close(struct replay_world *w); // zeroed is fine

/* Of a request that finds its context at a placement: seconds of a GPU before the first token, bytes to read from the
 * placement's tier, quality of the answer. */
double world_gpu_s(const struct replay_world *w, int request, struct plan_placement at);
double world_read(const struct replay_world *w, int request, struct plan_placement at);
double world_quality(const struct replay_world *w, int request, struct plan_placement at);

/* Sets (C by row) to how often each context is asked for from one request to before another. */
void world_count(const struct replay_world *w, int first, int end, double *count);

#endif
