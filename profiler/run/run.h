/* run.h - measuring one context: prefill once, derive every variant from it, let groups of variants answer all open
 * questions at once; the reference a second time, sampled, where the grid asks for it: what is drawn depends on the ids
 * of context and question alone. The measurements are a table of this context alone, for shards_put().
 */
#ifndef EVP_RUN_H
#define EVP_RUN_H

#include "engine/transformer/engine.h"
#include "profiler/run/grid.h"
#include "profiler/run/pace.h"
#include "profiler/run/timing.h"
#include "profiler/table/table.h"

struct run {
    struct engine *engine;
    struct session *session;
    const struct grid *grid;
    const struct table_made *made;
    const char *lineage;
    void (*progress)(void *arg, int64_t tokens); // `tokens` more of run_tokens() are done; may be NULL
    void *arg;
    struct pace *pace;     // told of what is done before progress() is; may be NULL
    struct timing *timing; // says which prefills are measured again; NULL: none
};

/* Tokens that progress will report for this work: prefill, questions and whole answers. */
int64_t run_tokens(const struct grid *g, const struct work *w);

/* out: one context, all configs, all its questions; answers that were not open are absent. Released by the caller;
 * empty on failure. */
int run_work(const struct run *run, const struct work *w, struct table *out, struct err *err) MUST_CHECK;

/* Measures the floating-point operations per second of this engine by prefilling a short piece of w; the session's
 * context is lost. */
int run_speed(const struct run *run, const struct work *w, double *flop_per_s, struct err *err) MUST_CHECK;

#endif
