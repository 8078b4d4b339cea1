/* prefill_curve.h - the time of one prefill over its tokens, as a few points.
 *
 *     struct prefill_curve curve = { .n_tokens = n };
 *     prefill_curve_note(&curve, done, seconds);                 // after each chunk
 *     prefill_curve_keep(&curve, prefill_s, &table, &err);       // into the table of this one context
 */
#ifndef EVP_PREFILL_CURVE_H
#define EVP_PREFILL_CURVE_H

#include "base/err.h"
#include "profiler/table/table.h"

enum { PREFILL_POINTS = 64 }; // per context; more would enlarge the table and tell nothing new

struct prefill_curve {
    int n_tokens; // of the context
    int n;
    int tokens[PREFILL_POINTS];     // rising
    double seconds[PREFILL_POINTS]; // since the start
};

/* Notes that `tokens` were done `seconds` after the start. Points closer than a 64th of the context are skipped. */
void prefill_curve_note(struct prefill_curve *c, int tokens, double seconds);

/* Stores the points for t's only context. Times are scaled so that the last one is prefill_s. */
int prefill_curve_keep(const struct prefill_curve *c, double prefill_s, struct table *t, struct err *err) MUST_CHECK;

#endif
