/* placement.h - from a utility table and tiers to placements, operations and a manifest: the library behind evp-plan.
 *
 *     struct placement_input in = { .alpha = 1, .max_move = INT64_MAX };
 *     struct placement_plan p;
 *     struct manifest m;
 *
 *     if (placement_input_read(&in, &files, err) || placement_check_rules(&in, err)) ...
 *     if (placement_solve(&p, &in, PLAN_OPTIMAL, &effort, err)) ...
 *     if (placement_manifest(&m, &p, err) || placement_write(&m, &p, "manifest.jsonl", made, err)) ...
 *
 * Quality, bytes and times come from the table; TTFT and utility are computed again from this run's tiers, alpha and
 * frequencies, so that one table serves many plans. Planning looks at the train questions only; quality on the test
 * questions is what a plan is reported with. Contexts are put in the order of their ids before they are planned, so
 * that the order of the table's rows makes no difference. Nothing here prints.
 */
#ifndef EVP_PLACEMENT_H
#define EVP_PLACEMENT_H

#include "formats/manifest.h"
#include "formats/outcome.h"
#include "formats/rules.h"
#include "formats/tiers.h"
#include "planner/aim.h"
#include "planner/hull.h"
#include "planner/plan.h"
#include "profiler/table/table.h"

_Static_assert((int)TIER_MAX <= (int)PLAN_TIERS, "the planner takes as many tiers as tiers.json may have");

/* ---- what is planned ---- */

/* Which numbers qualities are: what is believed of them (planner/belief.h), or the means as they were measured. */
enum placement_quality { QUALITY_PREDICTED, QUALITY_RAW };

struct placement_files {
    const char *table, *tiers, *rules, *previous; // NULL: not given
    const char *const *access;                    // (n_access) access logs, whose counts add up
    int n_access;                                 // 0: every context counts once
    enum table_want want;                         // TABLE_PLAN or TABLE_PLAN_LENIENT
};

/* Rows of the files that were read but not used. */
struct placement_left_out {
    size_t cells;                       // of the table that break a rule, when lenient
    int64_t accesses, accesses_unknown; // rows of the access log, and those of contexts that the table lacks
    int64_t rules_unknown;              // rules for contexts that the table lacks
    int64_t pins_unknown;               // pins to tiers that tiers.json lacks, when lenient
    bool predictions;                   // were wanted, but the table does not say what its qualities rest on
};

enum { PIN_NONE = -2 };

struct placement_input {
    struct table table;
    struct tiers tiers;
    int *row;                      // (C) the problem's contexts in the order of their ids: rows of the table
    double *frequency;             // (C) by row
    struct rule *rule;             // (C) by row
    int *pin;                      // (C) by row: tier, PLAN_RECOMPUTE, or PIN_NONE
    struct plan_placement *before; // (C) by row: where it is and could stay; config -1: nowhere
    struct manifest previous;      // n = 0 without one
    enum placement_quality kind;   // what the caller wants; RAW after reading a table that allows no predictions
    bool tested;                   // some config has answers to test questions
    const double *quality;         // (C, V) of the table: what is planned with
    const float *sd;               // (C, V) of the table: the doubt in it; NULL: none
    struct placement_left_out left_out;
    int64_t capacity[PLAN_TIERS];
    int pool[PLAN_TIERS];          // of each tier the first tier of its pool
    int64_t max_bytes[PLAN_TIERS]; // what else a variant on a tier may have at most; INT64_MAX: no limit
    bool *allowed;                 // (V, T) NULL: every tier may hold every config
    double alpha, min_quality;     // may be changed between plans
    double min_quality_worst;      // the least quality of the worst answered train question of a variant; 0: any
    double *worst;                 // (C, V) of the table, owned: that quality, NAN: none answered; NULL: not wanted
    double slo_ttft_s, slo_weight; // the TTFT that is promised and what lateness costs (planner/utility.h)
    int parallel_reads;            // with which times are counted on all tiers; 0: as tiers.json says
    double sure_z;                 // a floor holds for a quality less so many of its sd
    double access_floor;           // the least that a context counts
    double access_min_match;       // part of a log's rows that must be of contexts of the table, or it is refused
    double move_cost;              // utility that a byte written must bring, as the user asks
    double move_price;             // what it must bring besides, to stay within max_move; set by placement_solve()
    int64_t max_move;              // the cap on bytes written; INT64_MAX: none
    bool online;                   // rows carry the variants that a live plan needs
    bool measured_only;            // only variants that answered train questions
    bool no_floors;                // quality floors are left out
};

/* Reads the files into *in, whose numbers the caller has set. Without files->tiers, in->tiers must be set. In any case
 * placement_input_release() frees, and in->left_out counts what was passed over so far. ERR_FORMAT: a table without
 * qualities, a pin to an unknown tier, a previous manifest of another model. */
int placement_input_read(struct placement_input *in, const struct placement_files *files, struct err *err) MUST_CHECK;

/* The same with a table that is in memory, with its `ids`, which *in takes over; files->table is its name. */
int placement_input_take(struct placement_input *in, struct table *t, const struct placement_files *files,
                         struct err *err) MUST_CHECK;

void placement_input_release(struct placement_input *in);

/* Reads the files, but takes tiers, frequencies, alpha, the promised TTFT and move costs from *m. *in owns the tiers
 * then, and *m borrows them. */
int placement_input_as(struct placement_input *in, struct manifest *m, const struct placement_files *files,
                       struct err *err) MUST_CHECK;

/* The problem; borrows *in. */
struct plan_problem placement_problem(const struct placement_input *in);

/* Of a row under a placement: seconds to the first token and their standard deviation, utility without move costs,
 * bytes that must be written. */
double placement_ttft(const struct placement_input *in, int row, struct plan_placement c);
double placement_ttft_sd(const struct placement_input *in, int row, struct plan_placement c);
double placement_utility(const struct placement_input *in, int row, struct plan_placement c);
int64_t placement_written(const struct placement_input *in, int row, struct plan_placement c);

/* ERR_FAIL when no placement can respect a floor or pin: names the context and the best quality it could have. */
int placement_check_rules(const struct placement_input *in, struct err *err) MUST_CHECK;

/* ---- a plan ---- */

struct placement_plan {
    const struct placement_input *in; // borrowed
    enum plan_solver solver;
    struct plan plan; // plan_release() frees
};

/* Solves, within in->max_move. ERR_FAIL: contexts that are pinned to a tier do not fit there together, or no plan
 * writes as little as max_move. On failure nothing is left to release. */
int placement_solve(struct placement_plan *p, struct placement_input *in, enum plan_solver solver,
                    const struct plan_effort *effort, struct err *err) MUST_CHECK;

/* What planning with the measured means would have promised, and what that plan brings if the predictions hold; move
 * costs are counted in. */
struct placement_raw {
    double promised, brought;
};

/* Solves again, with the measured means. */
int placement_raw(const struct placement_plan *p, const struct plan_effort *effort, struct placement_raw *raw,
                  struct err *err) MUST_CHECK;

/* What is proven of a plan. */
struct placement_bound {
    const double *price; // (T)
    double objective, upper_bound;
};

/* The expected loss of a plan against knowing every quality: the gap, and what knowing more of each context could
 * bring at the prices (planner/evpi.h). Under the belief alone, so an estimate. NAN where qualities are not doubted. */
int placement_loss(const struct placement_input *in, const struct placement_bound *bound, double *loss,
                   struct err *err) MUST_CHECK;

/* What to ask next, at the prices (T) of a plan of *in. Both are borrowed, and so is *a by a->aim. The caller sets
 * aim.belief, visit, answer and n_questions. */
struct placement_aim {
    struct placement_input free; // *in without floors
    struct plan_problem problem;
    struct aim_problem aim;
    const double *visit;    // (C by row) cost of a prefill
    double answer;          // cost of an answer
    const int *n_questions; // (C by row)
};

void placement_aim_init(struct placement_aim *a, const struct placement_input *in, const double *price);

/* The part of the accesses that each tier serves; recompute last. (n_tiers + 1) */
void placement_shares(const struct placement_plan *p, double *share);

/* Seconds by which an access is expected to come later than in->slo_ttft_s; NAN without accesses. */
double placement_lateness(const struct placement_plan *p);

/* What a plan writes: contexts and bytes by the tier they come from and the tier they go to. */
struct placement_moves {
    struct {
        int n;
        double bytes;
    } at[PLAN_TIERS + 1][PLAN_TIERS]; // [from + 1][to]; from -1: the context was nowhere that it could stay
};

void placement_moves(const struct placement_plan *p, struct placement_moves *moves);

/* ---- its manifest ---- */

/* The header, with totals; borrows the tiers of the input. manifest_release() frees, after a failure too. */
int placement_manifest(struct manifest *m, const struct placement_plan *p, struct err *err) MUST_CHECK;

/* Writes the header and a row for every context, then one for every context that must go. */
int placement_write(const struct manifest *m, const struct placement_plan *p, const char *path, struct rows_made made,
                    struct err *err) MUST_CHECK;

/* Predicted and measured quality, means over the contexts that were profiled in full, and the mean difference with its
 * 95 % interval, plus and minus half_width. */
struct placement_audit {
    int n;
    double predicted, measured, difference, half_width;
};

/* t: read with TABLE_ALL and scored, with all train questions of some contexts over all configs. ERR_FORMAT when these
 * are fewer than 4. */
int placement_audit(struct placement_audit *a, const struct table *t, const struct manifest *m,
                    struct err *err) MUST_CHECK;

/* What placement_verify() computed. */
struct placement_proof {
    int n_contexts;
    double objective, bound, expected_loss; // expected_loss 0: the manifest says none
};

/* Computes a manifest's utilities, fills and bound again from the table, with none of the solver's code. ERR_FORMAT: a
 * sentence about the first thing that is not as the manifest says. */
int placement_verify(const struct placement_input *in, const struct manifest *m, struct placement_proof *proof,
                     struct err *err) MUST_CHECK;

/* The same for a manifest that a live plan was saved as (solver "online"), by the variants that its rows carry. */
int placement_verify_online(const struct manifest *m, struct placement_proof *proof, struct err *err) MUST_CHECK;

/* ---- the variants that a live plan needs (placement/placement_variants.c) ---- */

/* A workspace for one context after the other. */
struct placement_variants {
    struct placement_input unit; // the input with all frequencies 1 and no move costs: a context without accesses today
                                 // may have some tomorrow
    struct plan_problem problem;
    struct plan_candidates candidates;
    struct hull_work work;
    bool *wanted; // (V)
    struct variant_info variant[VARIANTS_MAX];
    struct variants variants;
};

/* ones: (C), each 1; borrowed, so that several threads with a workspace each share it. */
int placement_variants_init(struct placement_variants *f, const struct placement_input *in, double *ones,
                            struct err *err) MUST_CHECK;
void placement_variants_release(struct placement_variants *f); // zeroed is fine

/* Sets f->variants to the variants that are best for a context at any prices: the points of its hulls, and the variant
 * chosen now. */
int placement_variants_find(struct placement_variants *f, int context, struct plan_placement chosen,
                            struct err *err) MUST_CHECK;

#endif
