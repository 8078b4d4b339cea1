/* placement.h - the parts of evp-plan: what it reads, the problem it poses, what it writes and says, how it verifies.
 *
 * Quality, bytes and times come from the table; TTFT and utility are computed anew from this run's tiers, alpha and
 * frequencies, so that one table serves many plans. Planning looks at the train questions only; quality on the test
 * questions is what a plan is reported with. Contexts are put in order of their ids before they are planned, so that
 * the order of the table's rows makes no difference.
 */
#ifndef EVP_PLACEMENT_H
#define EVP_PLACEMENT_H

#include "datasets/rules.h"
#include "loader/formats/manifest.h"
#include "loader/formats/tiers.h"
#include "planner/hull.h"
#include "planner/plan.h"
#include "profiler/table.h"

struct plan_files {
    const char *table, *tiers, *access, *rules, *previous; // NULL: not given
    enum table_want want;                                  // TABLE_PLAN or TABLE_PLAN_LENIENT
};

struct plan_input {
    struct table table;
    struct tiers tiers;
    int *row;                      // (C) the problem's contexts in order of their ids: rows of the table
    double *frequency;             // (C) by row
    struct rule *rule;             // (C) by row
    int *pin;                      // (C) by row: tier, PLAN_RECOMPUTE, or PIN_NONE
    struct plan_placement *before; // (C) by row: where the previous manifest has it; config -1: nowhere it could stay
    struct manifest previous;      // n = 0 without one
    int64_t capacity[PLAN_TIERS];
    double alpha, min_quality; // of the plan at hand; may be changed between plans
    double move_cost;          // utility per byte written that is asked for
    double move_price;         // and on top of it, to keep to the cap
    int64_t max_move;          // the cap on bytes written; INT64_MAX: none
    bool online;               // rows carry the variants that keeping the plan needs
};

enum { PIN_NONE = -2 };

int plan_input_read(struct plan_input *in, const struct plan_files *files, struct err *err) MUST_CHECK;
void plan_input_release(struct plan_input *in);

/* The problem; borrows `in`. */
struct plan_problem plan_input_problem(const struct plan_input *in);

/* Seconds to the first token of a row under a placement; utility without move costs; bytes that must be written for it.
 */
double plan_ttft(const struct plan_input *in, int row, struct plan_placement c);
double plan_worth(const struct plan_input *in, int row, struct plan_placement c);
int64_t plan_written(const struct plan_input *in, int row, struct plan_placement c);

/* Floors and pins that no placement can respect: names the context and the best that is attainable. */
int plan_check_rules(const struct plan_input *in, struct err *err) MUST_CHECK;
int plan_check_pins(const struct plan_input *in, const struct plan *plan, struct err *err) MUST_CHECK; // after solving

/* A plan that writes at most in->max_move bytes: the cost per byte is raised until it does. The bound is that of the
 * problem as asked, with the cap. */
int plan_within_moves(struct plan *plan, struct plan_input *in, enum plan_solver solver,
                      const struct plan_effort *effort, struct err *err) MUST_CHECK;

/* The header of the manifest of a plan, with totals; its tiers are borrowed from `in`: release it with
 * plan_manifest_release(). */
int plan_manifest(struct manifest *m, const struct plan_input *in, const struct plan *plan, enum plan_solver solver,
                  struct err *err) MUST_CHECK;
void plan_manifest_release(struct manifest *m);

/* Writes it, with a row for every context and every one that must go. */
int plan_write(const struct manifest *m, const struct plan_input *in, const struct plan *plan, const char *path,
               struct rows_made made, struct err *err) MUST_CHECK;

/* ---- the variants of an online plan (planner/placement/placement_variants.c) ---- */

/* A workspace for one context after the other. */
struct plan_variants {
    struct plan_input unit; // the input with every frequency 1 and no move costs: who is used never may be used later
    struct plan_problem problem;
    struct plan_candidates candidates;
    struct hull_work work;
    bool *wanted; // (V)
    struct variant_info variant[VARIANTS_MAX];
    struct variants variants;
};

/* ones: (C), each 1; borrowed, so that several threads with a workspace each share it. */
int plan_variants_init(struct plan_variants *f, const struct plan_input *in, double *ones, struct err *err) MUST_CHECK;
void plan_variants_release(struct plan_variants *f); // zeroed is fine

/* Sets f->variants to what a context can be at any prices: the points of its hulls, and what is chosen now. */
int plan_variants_find(struct plan_variants *f, int context, struct plan_placement chosen, struct err *err) MUST_CHECK;

/* Share of the accesses that each tier serves; recompute last. (n_tiers + 1) */
void plan_shares(const struct plan_input *in, const struct plan *plan, double *share);

/* What a person wants to know, on stderr. */
void plan_say(const struct plan_input *in, const struct plan *plan, const struct manifest *m);

/* Recomputes a manifest's utilities, fills and bound from the table, with none of the solver's code. */
int plan_verify(const struct plan_input *in, const struct manifest *m, struct err *err) MUST_CHECK;

#endif
