/* uses.h - how often each context is used, learned from the uses alone.
 *
 * Per context one exponentially decaying count of uses for each of six time scales, 128 to 131,072 uses of all
 * contexts. The chance that the next use is of a context is a mixture of its shares of all counts:
 *
 *     chance = sum_j weight[j] * count[j] / (sum[j] + 1)
 *
 * Its weights are learned by one step of expectation maximisation at each use of a known context. So a crowd's chance
 * comes from the short scales while it lasts, that of a steady demand from the long ones, at the same time. A context
 * that was never used has chance 0.
 */
#ifndef EVP_USES_H
#define EVP_USES_H

enum { USES_SCALES = 6 };

/* Of one context, as of the age `at`. Zeroed: never used. */
struct use_counts {
    double n[USES_SCALES], at;
};

struct uses {
    double age, learned; // uses so far, without and with those before a restart
    double sum[USES_SCALES], weight[USES_SCALES];
};

void uses_begin(struct uses *u);

/* Goes on from what was saved: uses so far, weights. */
void uses_restore(struct uses *u, double n, const double weight[USES_SCALES]);

double uses_chance(const struct uses *u, const struct use_counts *c);

/* A use of the context. */
void uses_count(struct uses *u, struct use_counts *c);

/* Sets the counts, as they are now: `n`, or what `uses` of the `all` latest uses leave, if they came evenly. */
void uses_put(struct uses *u, struct use_counts *c, const double n[USES_SCALES]);
void uses_set(struct uses *u, struct use_counts *c, double uses, double all);

/* Sets n to the counts as they are now. */
void uses_get(const struct uses *u, const struct use_counts *c, double n[USES_SCALES]);

/* The context leaves, and its counts are 0. */
void uses_forget(struct uses *u, struct use_counts *c);

#endif
