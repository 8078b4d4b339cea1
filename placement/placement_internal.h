/* placement_internal.h - what the files of placement/ share. */
#ifndef EVP_PLACEMENT_INTERNAL_H
#define EVP_PLACEMENT_INTERNAL_H

#include "placement/placement.h"
#include "planner/utility.h"
#include "profiler/run/timing.h"

#include <math.h>

/* Prefetching. Contexts are visited by id, which a processor cannot predict from the table's rows, and a table does not
 * fit its caches. So the data of a context is requested this many contexts ahead. */
enum { PLACEMENT_AHEAD = 4 };

static inline void placement_fetch(const void *at, size_t bytes)
{
    enum { CACHE_LINE = 64 };

    for (const char *p = at, *end = p + bytes; p < end; p += CACHE_LINE)
        __builtin_prefetch(p);
    __builtin_prefetch((const char *)at + bytes - 1);
    __asm__ volatile(""); /* GCC 12 drops calls of functions that do nothing but prefetch */
}

/* The lowest quality that a row may have. */
static inline double placement_floor(const struct placement_input *in, int row)
{
    return fmax(in->rule[row].min_quality, in->min_quality);
}

static inline struct plan_goal placement_goal(const struct placement_input *in)
{
    return (struct plan_goal){ in->alpha, in->slo_ttft_s, in->slo_weight };
}

/* Standard deviations of a row's prefill and question times; 0: unknown. */
static inline double placement_prefill_sd(const struct placement_input *in, int row)
{
    const struct table *t = &in->table;

    return t->prefill_spread ? timed_sd(t->prefill_s[row], t->prefill_spread[row], (int)t->prefill_n[row]) : 0;
}

static inline double placement_question_sd(const struct placement_input *in, int row)
{
    const struct table *t = &in->table;

    return t->question_spread ? timed_sd(t->question_s[row], t->question_spread[row], QUESTION_TIMES) : 0;
}

/* The quality that is compared with a floor. */
static inline double placement_sure(const struct placement_input *in, size_t cell)
{
    return in->quality[cell] - (in->sd ? in->sure_z * (double)in->sd[cell] : 0);
}

/* Does a cell's quality rest on answers of its own? The reference needs none. */
static inline bool placement_measured(const struct placement_input *in, size_t cell)
{
    return cell % (size_t)in->table.n_configs == 0 || !isnan(in->table.quality_train[cell]);
}

/* Is the worst question of a cell good enough? Not without an answer: this floor is about measured quality. The
 * reference always is. */
static inline bool placement_worst_allowed(const struct placement_input *in, size_t cell)
{
    const float min = (float)in->min_quality_worst; /* similarities are float */

    return !in->worst || cell % (size_t)in->table.n_configs == 0 || in->worst[cell] >= (double)min;
}

/* The lowest share of facts that a row's variants may keep. */
static inline double placement_facts_floor(const struct placement_input *in, size_t row)
{
    return fmax(in->rule[row].min_facts, in->min_facts);
}

/* Does a cell keep enough facts, surely? Not if nothing is known of them. The reference keeps all. */
static inline bool placement_facts_allowed(const struct placement_input *in, size_t cell)
{
    size_t n = (size_t)in->table.n_configs;

    if (!in->fact_floors || cell % n == 0)
        return true;
    double min = placement_facts_floor(in, cell / n), sd = (double)in->table.predicted_facts_sd[cell];
    return !(min > 0) || (double)in->table.predicted_facts[cell] - in->sure_z * sd >= min;
}

/* Does a cell have a size and a quality, and is it good enough? Its quality may be NAN. Without a floor its standard
 * deviation does not matter. */
static inline bool placement_allowed(const struct placement_input *in, size_t cell, double min)
{
    if ((in->measured_only && !placement_measured(in, cell)) || !placement_worst_allowed(in, cell) ||
        !placement_facts_allowed(in, cell))
        return false;
    return in->table.cell_bytes[cell] >= 0 && (min > 0 ? placement_sure(in, cell) : in->quality[cell]) >= min;
}

/* May a tier hold a config? */
static inline bool placement_tier_allows(const struct placement_input *in, int config, int tier)
{
    return !in->allowed || in->allowed[config * in->tiers.n + tier];
}

/* Recomputing is as good as the uncompressed cache. */
static inline double placement_quality(const struct placement_input *in, int row, struct plan_placement c)
{
    return c.tier == PLAN_RECOMPUTE ? 1 : in->quality[table_cell(&in->table, row, c.config)];
}

/* Seconds of a GPU for one use. */
static inline double placement_gpu_s(const struct placement_input *in, int row, struct plan_placement c)
{
    const struct table *t = &in->table;

    if (c.tier == PLAN_RECOMPUTE)
        return ttft_recomputed(t->prefill_s[row], t->question_s[row]);
    return ttft_stored(0, t->decompress_s[table_cell(t, row, c.config)], t->question_s[row]);
}

/* Seconds in which an answer's tokens read the keys and values that the GPU has: all, or those that a config keeps. */
static inline double placement_decode_s(const struct placement_input *in, int row, struct plan_placement c)
{
    const struct table *t = &in->table;

    if (!(in->decode_s_per_byte > 0))
        return 0;
    double kept = c.tier == PLAN_RECOMPUTE ? 1 : t->keep_frac[table_cell(t, row, c.config)];
    double bytes = (isnan(kept) ? 1 : kept) * fmax((double)t->kv_bytes[row], 0);
    return in->decode_s_per_byte * bytes;
}

/* What a use costs beyond its own time; tier PLAN_RECOMPUTE: it reads nothing. */
static inline double placement_load_cost(const struct manifest_load *l, double gpu_s, int tier, int64_t bytes)
{
    return gpu_s * (l->gpu_linear + gpu_s * l->gpu_square) + (tier >= 0 ? l->byte[tier] * (double)bytes : 0);
}

/* The same on the test questions; NAN: no such answers. The uncompressed cache needs none when others have some. */
static inline double placement_quality_test(const struct placement_input *in, int row, struct plan_placement c)
{
    bool plain = c.tier == PLAN_RECOMPUTE || c.config == 0;

    return plain && in->tested ? 1 : in->table.quality_test[table_cell(&in->table, row, c.config)];
}

/* The checks of --verify for every manifest. ERR_FORMAT: a tier or pool holds more than its capacity, or a pool has
 * more than one price. price, fill: (n) */
int placement_check_fills(const struct tiers *tiers, const double *price, const double *fill,
                          struct err *err) MUST_CHECK;

/* placement_prefixes.c: the trees, as in->sharing says. */
int placement_find_prefixes(struct placement_input *in, struct err *err) MUST_CHECK;
void placement_prefixes_release(struct placement_prefixes *p);

/* What a use saves, in seconds, that finds a node's whole chunks of an uncompressed cache on a tier; NAN: there are
 * none. And one that finds a node's context stored as `at`: seconds, and gain in utility per use. */
double placement_chunks_saved(const struct placement_input *in, int node, int tier);
double placement_beginning_saved(const struct placement_input *in, int node, struct plan_placement at);
double placement_beginning_gain(const struct placement_input *in, int node, struct plan_placement at);

/* plan_solve(), or forest_solve() where contexts begin with others. */
int placement_solve_problem(struct plan *plan, const struct placement_input *in, enum plan_solver solver,
                            const struct plan_effort *effort, struct err *err) MUST_CHECK;

/* What serves a context that is not stored: zeroed but for the row if nothing does, or if it is stored. */
struct placement_use {
    int row;                  // of the stored context that its tokens begin with; -1: none
    struct plan_placement at; // of that
    double saved_s, gain;     // of each use: seconds of TTFT, utility
};

/* Sets *use, (C) by the planner's context, which the caller frees; NULL: no context begins with another. */
int placement_uses(struct placement_use **use, const struct placement_input *in, const struct plan_placement *placement,
                   struct err *err) MUST_CHECK;

/* placement_verify_prefixes.c. What serves each row of the table under placements (C) by row; the caller frees *use. */
int placement_serving(struct placement_use **use, const struct placement_input *in, const struct plan_placement *at,
                      struct err *err) MUST_CHECK;

/* The bound that prices (T) prove, without the price of the capacities. */
int placement_bound_prefixes(const struct placement_input *in, const double *price, double *bound,
                             struct err *err) MUST_CHECK;

/* What a use says of a context; use NULL: nothing serves it. */
static inline double use_saved_s(const struct placement_use *use, int i)
{
    return use ? use[i].saved_s : 0;
}

static inline double use_gain(const struct placement_use *use, int i)
{
    return use ? use[i].gain : 0;
}

/* The row and placement that a context's quality comes from: its own, or those of the stored context that serves it. */
static inline struct plan_placement use_placement(const struct placement_use *use, int i, struct plan_placement own,
                                                  int *row)
{
    if (!use || use[i].row < 0)
        return own;
    *row = use[i].row;
    return use[i].at;
}

/* Sets in->allowed, but leaves it NULL when every tier may hold every config. */
int placement_find_allowed(struct placement_input *in, struct err *err) MUST_CHECK;

/* Are there enough contexts, and tiers of one kind, to plan by kinds (planner/spread.h)? */
bool placement_has_kinds(const struct placement_input *in);

/* plan_solve() by kinds. */
int placement_solve_kinds(struct placement_plan *p, const struct plan_effort *effort, struct err *err) MUST_CHECK;

/* Without load, and with it (placement_load.c). */
int placement_solve_once(struct placement_plan *p, struct placement_input *in, enum plan_solver solver,
                         const struct plan_effort *effort, struct err *err) MUST_CHECK;
int placement_solve_load(struct placement_plan *p, struct placement_input *in, enum plan_solver solver,
                         const struct plan_effort *effort, struct err *err) MUST_CHECK;

/* ERR_FAIL when a plan puts a pinned context on another tier. */
int placement_check_pins(const struct placement_plan *p, struct err *err) MUST_CHECK;

#endif
