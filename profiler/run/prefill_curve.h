/* prefill_curve.h - how the time of one prefill grows with its tokens, as a few points.
 *
 *     struct prefill_curve curve = { .n_tokens = n };
 *     prefill_curve_note(&curve, done, seconds);                 // after each chunk
 *     prefill_curve_keep(&curve, prefill_s, &table, &err);       // into the table of this one context
 */
#ifndef EVP_PREFILL_CURVE_H
#define EVP_PREFILL_CURVE_H

#include "base/err.h"
#include "profiler/table/table.h"

enum { PREFILL_POINTS = 64 }; // of one context: more would make a table of many long contexts large, and tell nothing

struct prefill_curve {
    int n_tokens; // of the context
    int n;
    int tokens[PREFILL_POINTS];     // rising
    double seconds[PREFILL_POINTS]; // since the start
};

/* `seconds` after the start `tokens` are done. Of many points those are taken that lie a 64th of the context apart. */
void prefill_curve_note(struct prefill_curve *c, int tokens, double seconds);

/* Makes the points those of t's only context. Times are scaled so that the last one is prefill_s. */
int prefill_curve_keep(const struct prefill_curve *c, double prefill_s, struct table *t, struct err *err) MUST_CHECK;

#endif
