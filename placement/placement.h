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
 * Quality, bytes and times come from the table. TTFT and utility are computed from the tiers, alpha and frequencies of
 * this run, so one table serves many plans. Planning looks only at the train questions; a plan is reported with its
 * quality on the test questions. Contexts are sorted by id before planning, so the order of the table's rows does not
 * matter. Nothing here prints.
 */
#ifndef EVP_PLACEMENT_H
#define EVP_PLACEMENT_H

#include "formats/manifest.h"
#include "formats/outcome.h"
#include "formats/rules.h"
#include "formats/tiers.h"
#include "planner/hull.h"
#include "planner/plan.h"
#include "profiler/table/table.h"

_Static_assert((int)TIER_MAX <= (int)PLAN_TIERS, "the planner takes all tiers that tiers.json may have");

/* ---- what is planned ---- */

/* Which qualities to plan with: predictions (planner/belief.h) or the measured means. */
enum placement_quality { QUALITY_PREDICTED, QUALITY_RAW };

struct placement_files {
    const char *table, *tiers, *rules, *previous; // NULL: not given
    const char *const *access;                    // (n_access) access logs, whose counts add up
    int n_access;                                 // 0: every context counts once
    const char *access_before; // the log of the period before, to learn rates; NULL: counts are rates
};

/* Rows that were read but not used. */
struct placement_left_out {
    int64_t accesses, accesses_unknown; // rows of the access log; rows of contexts that the table lacks
    bool unused;                        // with access logs, no context counts as used
    int64_t rules_unknown;              // rules for contexts that the table lacks
    int64_t twins;                      // contexts with the tokens of another, which has their uses
    bool predictions;                   // wanted, but the table has none
};

enum { PIN_NONE = -2 };

/* Uses of contexts that the logs do not have yet: nothing is stored of them. */
struct placement_newcomers {
    double uses;              // expected in the next period
    double gpu_s, gpu_square; // means: seconds of a GPU, which are their TTFT, and the square of these
};

/* The contexts as trees (placement_prefixes.c). Nodes are in depth-first order. */
struct placement_prefixes {
    int n;                     // N; 0: no context begins with another, or sharing is SHARING_NONE
    int *parent, *end;         // (N) -1: a root; one after the last node of the subtree
    int *row;                  // (N) of the table; -1: only a place where contexts part
    int64_t *chunk_tokens;     // (N) tokens of the whole chunks
    double *saved_s, *chunk_s; // (N) seconds of prefill that its tokens, or these chunks, save
    double *chunk_bytes;       // (N) of these chunks of an uncompressed cache
};

struct placement_input {
    struct table table;
    struct tiers tiers;
    int *row;                      // (C) the table's rows, sorted by context id: the planner's context i is row[i]
    double *frequency;             // (C) by row
    struct rule *rule;             // (C) by row
    char rules_digest[DIGEST_HEX]; // of these; "": none
    int *pin;                      // (C) by row: tier, PLAN_RECOMPUTE, or PIN_NONE
    struct plan_placement *before; // (C) by row: where the context is now and could stay; config -1: nowhere
    struct manifest previous;      // n = 0: none
    enum placement_quality kind;   // set by the caller; becomes RAW when the table has no predictions
    bool scale_same;               // qualities as good as a second answer of the uncompressed cache count as 1
    bool tested;                   // some config has answers to test questions
    const double *quality;         // (C, V) of the table: the qualities to plan with
    const float *sd;               // (C, V) of the table: their standard deviations; NULL: none
    struct placement_left_out left_out;
    int64_t capacity[PLAN_TIERS];
    int pool[PLAN_TIERS];                 // the first tier of each tier's pool
    int64_t max_bytes[PLAN_TIERS];        // the largest variant that a tier takes; INT64_MAX: no limit
    bool *allowed;                        // (V, T); NULL: every tier may hold every config
    struct placement_newcomers newcomers; // set by placement_learn_rates(), or 0 uses
    double alpha, min_quality;            // may be changed between plans
    double min_quality_worst;             // lowest quality of a variant's worst answered train question; 0: any
    double *worst;                 // (C, V) of the table, owned: that quality; NAN: none answered; NULL: not wanted
    double min_facts;              // lowest share of facts that a variant is sure to keep; 0: any
    bool fact_floors;              // there is such a floor, here or in a rule
    double slo_ttft_s, slo_weight; // promised TTFT, cost of lateness (planner/utility.h)
    int parallel_reads;            // reads at the same time that TTFT assumes, on all tiers; 0: as tiers.json says
    double decode_s_per_byte;  // seconds that an answer takes to read a kept byte once for each token; 0: not counted
    double sure_z;             // a floor is compared with quality - sure_z * sd
    double access_floor;       // lowest frequency of a context
    double access_min_match;   // share of a log's rows whose context must be in the table, or the log is refused
    double move_cost;          // utility that each written byte must bring, set by the user
    double pack_weight;        // utility that each second of packing must bring
    double move_price;         // what it must bring in addition, to stay within max_move; set by placement_solve()
    int64_t max_move;          // limit on bytes written; INT64_MAX: none
    struct manifest_load load; // rate and gpus set by the caller, the rest by placement_solve(); wait_s INFINITY: the
                               // queue grows
    bool online;               // rows carry the variants that a live plan needs; it takes all bytes as read
    bool measured_only;        // use only variants that answered train questions
    enum manifest_sharing sharing;
    struct placement_prefixes prefixes; // owned; made by placement_input_read()
};

/* Reads the files into *in; the caller has set its numbers. Without files->tiers, in->tiers must be set. Of contexts
 * with the same tokens one gets the uses of all, and the others are not stored. Call placement_input_release() even
 * after a failure; in->left_out then has the counts so far. ERR_FORMAT: a table without qualities, a pin to an unknown
 * tier, a previous manifest of another model. */
int placement_input_read(struct placement_input *in, const struct placement_files *files, struct err *err) MUST_CHECK;

/* The same with a table in memory that has its `ids`, and whose contexts all count as different. *in takes the table
 * over; files->table is its name. */
int placement_input_take(struct placement_input *in, struct table *t, const struct placement_files *files,
                         struct err *err) MUST_CHECK;

void placement_input_release(struct placement_input *in);

/* Reads the files, but takes tiers, frequencies, alpha, the promised TTFT and move costs from *m. Afterwards *in owns
 * the tiers, and *m borrows them. */
int placement_input_as(struct placement_input *in, struct manifest *m, const struct placement_files *files,
                       struct err *err) MUST_CHECK;

/* The problem; borrows *in. */
struct plan_problem placement_problem(const struct placement_input *in);

struct placement_packing {
    double gpu_s, tier_s;
};

/* For a row under a placement: TTFT in seconds, its standard deviation, utility without costs of writing, bytes that
 * must be written, the seconds of packing that takes (of a GPU for the prefill, unless a cache only moves, and of the
 * tier for the write), and its costs: move_cost for the bytes, pack_weight for the seconds. Compressing takes a few
 * percent of the prefill, and is left out. */
double placement_ttft(const struct placement_input *in, int row, struct plan_placement c);
double placement_ttft_sd(const struct placement_input *in, int row, struct plan_placement c);
double placement_utility(const struct placement_input *in, int row, struct plan_placement c);
int64_t placement_written(const struct placement_input *in, int row, struct plan_placement c);
struct placement_packing placement_packing(const struct placement_input *in, int row, struct plan_placement c);
double placement_write_cost(const struct placement_input *in, int row, struct plan_placement c);

/* ERR_FAIL when no placement can respect a floor or pin; the error names the context and its best possible quality. */
int placement_check_rules(const struct placement_input *in, struct err *err) MUST_CHECK;

/* ---- a plan ---- */

struct placement_plan {
    const struct placement_input *in; // borrowed
    enum plan_solver solver;
    struct plan plan; // plan_release() frees
};

/* Solves, within in->max_move and, with in->load.rate, at prices for the time of GPUs and tiers; where contexts begin
 * with each other, these prices are left out. If no plan is found for which there is enough time, it is the one that
 * needs least. ERR_FAIL: contexts pinned to a tier do not fit there together, or every plan writes more than max_move.
 * After a failure there is nothing to release. */
int placement_solve(struct placement_plan *p, struct placement_input *in, enum plan_solver solver,
                    const struct plan_effort *effort, struct err *err) MUST_CHECK;

/* A plan made with the measured means: the utility it promises, and the utility it brings if the predictions hold. Both
 * include move costs. */
struct placement_raw {
    double promised, brought;
};

/* Solves again with the measured means. */
int placement_raw(const struct placement_plan *p, const struct plan_effort *effort, struct placement_raw *raw,
                  struct err *err) MUST_CHECK;

/* Sets share (n_tiers + 1) to the share of accesses that each tier serves; recompute is last. */
void placement_shares(const struct placement_plan *p, double *share);

/* Mean quality over accesses; NAN without accesses. */
int placement_mean_quality(const struct placement_plan *p, double *mean, struct err *err) MUST_CHECK;

/* Expected seconds beyond in->slo_ttft_s, per access; NAN without accesses. */
double placement_lateness(const struct placement_plan *p);

/* What a plan writes: contexts and bytes by source and target tier. */
struct placement_moves {
    struct {
        int n;
        double bytes;
    } at[PLAN_TIERS + 1][PLAN_TIERS]; // [from + 1][to]; from -1: the context was nowhere, or could not stay
};

void placement_moves(const struct placement_plan *p, struct placement_moves *moves);

/* What carrying a plan out takes, and what all that is stored then saves: TTFT over recomputing, times frequency. */
struct placement_bill {
    int n_packed;       // contexts whose caches are made
    int n_served;       // contexts that are not stored, but begin with one that is
    double uses_served; // of those
    struct placement_packing takes;
    double saves_s;
};

int placement_bill(const struct placement_plan *p, struct placement_bill *bill, struct err *err) MUST_CHECK;

/* ---- its manifest ---- */

/* Makes the header, with totals; borrows the tiers of the input. Call manifest_release() even after a failure. */
int placement_manifest(struct manifest *m, const struct placement_plan *p, struct err *err) MUST_CHECK;

/* Writes the header, a row for every context, and a row for every context that is evicted. */
int placement_write(const struct manifest *m, const struct placement_plan *p, const char *path, struct rows_made made,
                    struct err *err) MUST_CHECK;

/* Turns the counts in in->frequency into uses expected in the next period (placement_rates.c), and sets in->newcomers.
 * before: (C by row) counts of the period before, which was as long. unknown_uses: those now of contexts that the table
 * lacks. */
void placement_learn_rates(struct placement_input *in, const double *before, double unknown_uses);

/* The mean over all requests that are expected, those of newcomers too; NAN: none are. */
double placement_mean_of_all(const struct placement_input *in, double of_known, double of_newcomers);

/* The mean time that a request waits under placements (C by context) at in->load.rate; INFINITY: the queue grows. */
int placement_wait(const struct placement_input *in, const struct plan_placement *placement, double *wait_s,
                   struct err *err) MUST_CHECK;

/* What a plan brings in a log of a later time: gain in utility over recomputing everything. */
struct placement_brought {
    double uses; // of contexts of the table, in the later log
    double promised, brought;
};

/* later: (C by row) counts. */
int placement_bring(const struct placement_plan *p, double *later, struct placement_brought *b,
                    struct err *err) MUST_CHECK;

/* The results of placement_verify(). */
struct placement_proof {
    int n_contexts;
    double objective, bound;
};

/* Recomputes a manifest's utilities, fills and bound from the table, with none of the solver's code. ERR_FORMAT: the
 * first difference from the manifest, as a sentence. */
int placement_verify(const struct placement_input *in, const struct manifest *m, struct placement_proof *proof,
                     struct err *err) MUST_CHECK;

/* The same for the manifest of a saved live plan (solver "online"), from the variants that its rows carry. */
int placement_verify_online(const struct manifest *m, struct placement_proof *proof, struct err *err) MUST_CHECK;

/* ---- the variants that a live plan needs (placement/placement_variants.c) ---- */

/* A workspace, used for one context after another. */
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

/* ones: (C), each 1; borrowed, so that several threads, each with its workspace, share it. */
int placement_variants_init(struct placement_variants *f, const struct placement_input *in, double *ones,
                            struct err *err) MUST_CHECK;
void placement_variants_release(struct placement_variants *f); // zeroed is fine

/* Sets f->variants to the points of a context's hulls (the variants that are best at some prices) and the variant
 * chosen now. */
int placement_variants_find(struct placement_variants *f, int context, struct plan_placement chosen,
                            struct err *err) MUST_CHECK;

#endif
