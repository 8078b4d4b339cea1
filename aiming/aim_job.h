/* aim_job.h - shared by the files of evp-aim: its inputs, its table and the lists that it writes.
 *
 * aim_test.c lists the test questions of a plan. aim_table.c makes one table of measured and unmeasured contexts.
 * aim_list.c chooses and lists train questions. cmd/evp-aim.c reports the result; cmd/aim_rounds.c runs lists one after
 * another.
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
    const char *configs, *model, *chat, *tiers, *rules, *prior, *budget, *test, *output, *plugin;
    const char *profile_options, *score_options;
    struct opt_list access;
    double alpha, min_quality, sure, until;
    int answer_tokens, max_new_tokens, audit, rounds;
    bool truncate, run;
    char **args; // argv + 1
    int n_args;
};

/* The inputs. Contexts that cannot be profiled have no row in `table`. */
struct aim_job {
    const struct aim_options *opt;
    struct contexts contexts;
    struct questions questions;
    int **train, *n_train;   // (contexts): numbers of its train questions, in a fixed pseudo-random order
    int *numbers;            // the memory of `train`
    struct table known;      // the input TABLE; n_contexts 0: none
    struct table_rows names; // of `known`
    struct table table;      // all contexts; the planner takes it over
    struct belief prior;     // for the configs of `table`; n_configs 0: none
    int n_refused;           // contexts and questions
    void (*say_refused)(const struct grid *g); // set by the caller: reports them
};

/* Reads contexts and questions, and orders the train questions of each context. */
int aim_read(struct aim_job *j, char *const *path, struct err *err) MUST_CHECK;
void aim_release(struct aim_job *j);

/* Makes j->table: rows for all contexts that can be profiled, then for the other contexts of TABLE; all configs; the
 * predictions. path: TABLE, or NULL. */
int aim_table(struct aim_job *j, const char *path, struct err *err) MUST_CHECK;

/* ---- lists ---- */

/* The cost of a list: prefills, answers, and both in tokens of prefill. */
struct aim_cost {
    int contexts;
    int64_t answers;
    double tokens;
};

/* The cost of profiling all contexts in full, with only the train questions. */
struct aim_cost aim_full_cost(const struct aim_job *j);

/* Converts "12%" or seconds to tokens of prefill. */
int aim_budget(const struct aim_job *j, const char *text, double *budget, struct err *err) MUST_CHECK;

struct aim_out {
    const char *path; // NULL: standard output
    double budget;    // in tokens of prefill; < 0: as --budget says
    struct aim_cost cost;
    double loss;     // expected loss of choosing now, in utility; NAN: unknown
    bool too_dear;   // the list is empty only because of the budget
    bool dear_pilot; // the list is a pilot and costs more than the budget
};

/* Chooses what to ask, writes it to out->path and sets out->cost and out->loss. */
int aim_list(struct aim_job *j, struct aim_out *out, struct err *err) MUST_CHECK;

struct aim_tested {
    int n_rows, n_answers;     // in the list
    int n_unknown, n_untested; // contexts that are not in CONTEXTS; compressed contexts without test questions
};

/* Lists the test questions of the contexts that a plan keeps compressed. */
int aim_test(struct aim_job *j, struct aim_tested *tested, struct err *err) MUST_CHECK;

#endif
