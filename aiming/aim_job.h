/* aim_job.h - what the parts of evp-aim share: its inputs, and the writing of a list.
 *
 * aim_test.c writes the test questions of a plan, aim_table.c makes one table of what was measured and of contexts that
 * were not, aim_list.c chooses and writes train questions. cmd/evp-aim.c says what came of it, cmd/aim_rounds.c runs
 * lists one after another.
 */
#ifndef EVP_AIM_JOB_H
#define EVP_AIM_JOB_H

#include "base/opt.h"
#include "base/rows.h"
#include "formats/context.h"
#include "methods/config.h"
#include "placement/placement.h"
#include "profiler/run/grid.h"

#include <stdbool.h>

/* Options, as given. */
struct aim_options {
    const char *configs, *model, *chat, *tiers, *rules, *prior, *budget, *test, *output;
    const char *profile_options, *score_options;
    struct opt_list access;
    double alpha, min_quality, sure, until;
    int answer_tokens, max_new_tokens, audit, rounds;
    bool truncate, run;
    char **args; // argv + 1
    int n_args;
};

/* What there is to ask about. Contexts that cannot be profiled are in no row of the table. */
struct aim_job {
    const struct aim_options *opt;
    struct contexts contexts;
    struct questions questions;
    int **train, *n_train;   // (contexts): numbers of its train questions, in a fixed order that no text follows
    int *numbers;            // what train points into
    struct table known;      // TABLE as it was read; n_contexts 0: none
    struct table_rows names; // of `known`
    struct table table;      // all contexts; taken by the planner
    struct belief prior;     // by the configs of `table`; n_configs 0: none
    int n_refused;           // contexts and questions
    void (*say_refused)(const struct grid *g); // set by the caller: is told of them
};

/* Reads contexts and questions, and puts the train questions of each context in order. */
int aim_read(struct aim_job *j, char *const *path, struct err *err) MUST_CHECK;
void aim_release(struct aim_job *j);

/* Makes j->table: a row for every context that can be profiled, then those that TABLE has besides; all configs; what is
 * believed. path: TABLE, or NULL. */
int aim_table(struct aim_job *j, const char *path, struct err *err) MUST_CHECK;

/* ---- lists ---- */

/* What a list costs: prefills, answers, and both in tokens of prefill. */
struct aim_cost {
    int contexts;
    int64_t answers;
    double tokens;
};

/* What profiling all contexts in full would cost, train questions alone. */
struct aim_cost aim_full_cost(const struct aim_job *j);

/* "12%" or seconds, in tokens of prefill. */
int aim_budget(const struct aim_job *j, const char *text, double *budget, struct err *err) MUST_CHECK;

struct aim_out {
    const char *path; // NULL: standard output
    double budget;    // in tokens of prefill; below 0: as --budget says
    struct aim_cost cost;
    double loss;     // what choosing now is expected to lose, in utility; NAN: not known
    bool too_dear;   // the list is empty, but for the budget it would not be
    bool dear_pilot; // the list is a pilot and costs more than the budget
};

/* Chooses what to ask, writes it to out->path and sets out->cost and out->loss. */
int aim_list(struct aim_job *j, struct aim_out *out, struct err *err) MUST_CHECK;

struct aim_tested {
    int n_rows, n_answers;     // of the list
    int n_unknown, n_untested; // contexts that are not in CONTEXTS; compressed ones without test questions
};

/* The test questions of the contexts that a plan keeps compressed. */
int aim_test(struct aim_job *j, struct aim_tested *tested, struct err *err) MUST_CHECK;

#endif
