/* run.h - measures one context: prefills it once, derives every variant, and lets groups of variants answer all open
 * questions at once. Where the grid asks for it, the reference answers a second time, sampled; the draws depend only on
 * the ids of context and question. The result is a table of this context alone, for shards_put().
 */
#ifndef EVP_RUN_H
#define EVP_RUN_H

#include "engine/transformer/engine.h"
#include "methods/kvzap.h"
#include "profiler/run/grid.h"
#include "profiler/run/pace.h"
#include "profiler/run/timing.h"
#include "profiler/table/table.h"

struct run {
    struct engine *engine;
    struct session *session;
    const struct grid *grid;
    const struct table_made *made;
    struct model_digesting *digest; // waited for at the end, as made->model_digest is its; NULL: is known
    const char *lineage;
    struct kvzap_fit *fit;                       // of kvzap to contexts that are repeated; NULL: none
    void (*progress)(void *arg, int64_t tokens); // `tokens` more of the run_tokens() are done; may be NULL
    void *arg;
    struct pace *pace;     // updated before progress() is called; may be NULL
    struct timing *timing; // decides which prefills are measured again; NULL: none
};

/* The tokens that progress() reports for this work: prefill, questions and whole answers. */
int64_t run_tokens(const struct grid *g, const struct work *w);

/* The tokens that are derived for this work: its length times the variants that answer, the second, sampled one among
 * them, and once for the timing of a question. For PACE_DERIVING. */
double run_derived(const struct grid *g, const struct work *w);

/* out: one context, all configs, all its questions; answers that were not open are absent. The caller releases it; it
 * is empty after a failure. */
int run_work(const struct run *run, const struct work *w, struct table *out, struct err *err) MUST_CHECK;

/* Measures the engine's floating-point operations per second by prefilling the beginning of w. The session loses its
 * context. */
int run_speed(const struct run *run, const struct work *w, double *flop_per_s, struct err *err) MUST_CHECK;

#endif
