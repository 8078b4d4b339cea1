/* forest.h - contexts whose tokens begin with another's. Whoever asks about a context finds the longest prefix of it
 * that is stored, and computes the rest: a context that is not stored gains from one that is.
 *
 * The tokens of all contexts form trees. A node is a context, or a place where contexts part. Its tokens are those of
 * its parent and more. A node is served by
 *
 *     the context itself, where it is stored
 *     else the first chunks of an uncompressed cache of a context below it, where tiers find these; the fastest tier's
 *     else what serves the parent; a root gains nothing
 *
 * and each of its uses gains what that saves over computing everything (seconds of prefill, less reading and
 * decompression, less the quality that a compressed prefix costs). So the utility of a plan is
 *
 *     sum over stored contexts of their utility  +  sum over the other nodes of (recompute + frequency * gain)
 *
 * For given prices per byte the best placements of a tree follow from one pass from its leaves to its root. Let F_v(g)
 * be the most that the subtree of v can be worth, less the price of its bytes, when the parent of v is served with the
 * gain g. Then
 *
 *     F_v(g) = max(recompute_v + frequency_v * g + sum over children k of F_k(g),  P_v)
 *
 * where P_v is the best with v stored, or served by chunks of a cache below; it does not depend on g. So F_v is convex,
 * rising and piecewise linear: a few bends, kept sorted. H_v(t) is the best when some uncompressed cache in the
 * subtree, on tier t, serves v and all above it; P_v is the maximum of these and of every candidate c of v, utility_c -
 * price * bytes_c + sum of F_k(gain_c). The sum of the roots' F(0) plus price * capacity bounds every plan (Lagrangian
 * duality, as in plan.h), and cutting planes find the best prices.
 */
#ifndef EVP_FOREST_H
#define EVP_FOREST_H

#include "planner/plan.h"

enum { FOREST_NONE = -1 };

struct forest {
    int n_tiers;       // T
    int n;             // N nodes, depth first: the nodes of a subtree follow its root
    int *parent, *end; // (N) FOREST_NONE: a tree's root; one after the last node of the subtree
    int *context;      // (N) FOREST_NONE: only a place where contexts part; every context has one node
    double *frequency; // (N) uses; 0 where there is no context
    double *part; // (N, T) gain of a use that is served by chunks of an uncompressed cache (config 0) on a tier; NAN:
                  // it has no whole chunks, nor have the other nodes of its tree. NULL: tiers do not find chunks
    /* What a use of a node below gains from a stored variant of a node's context. May be called from several
     * threads. */
    double (*gain)(const void *arg, int node, struct plan_placement at);
    const void *arg;
};

/* What serves a node that is not stored itself. */
struct forest_use {
    int node;    // the stored context that its tokens begin with; FOREST_NONE: none, or chunks
    int tier;    // PLAN_RECOMPUTE: nothing serves it; of that context, or of the chunks
    double gain; // of each use
};

/* Finds what serves each node under a plan: use (N). */
int forest_serve(const struct forest *f, const struct plan_placement *placement, struct forest_use *use,
                 struct err *err) MUST_CHECK;

/* plan_solve() of the optimal solver, for contexts that form a forest. The bound holds for every plan; the plan is
 * found by choosing again and again for some contexts, one of each tree or all leaves, while the others stay. */
int forest_solve(struct plan *plan, const struct plan_problem *problem, const struct forest *f,
                 const struct plan_effort *effort, struct err *err) MUST_CHECK;

#endif
