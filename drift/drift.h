/* drift.h - evp-drift: contexts whose answers have moved away from what a plan promises.
 *
 *     drift_begin(&d, &table, &manifest, &err);           // what the plan keeps compressed; refuses misfits
 *     drift_read_state(&d, "drift.jsonl", &err);          // what earlier nights found
 *     drift_questions(&d, &questions, &err);              // those without an answer in the table, newest first
 *     drift_take(&d, &d.at[i], &(struct drift_answer){ kept, asked_at });   // for each answer
 *     drift_settle(&d);
 *     drift_write_list(&d, path, made, &err);             // for evp-profile --cells
 *     drift_write_state(&d, "drift.jsonl", made, &err);
 *     drift_release(&d);
 *
 * Table, manifest and questions are borrowed. drift_test.h has the test.
 */
#ifndef EVP_DRIFT_H
#define EVP_DRIFT_H

#include "drift/drift_test.h"
#include "base/rows.h"
#include "formats/context.h"
#include "formats/manifest.h"
#include "profiler/table/table.h"

#include <stdbool.h>

/* Before any answer with a time: also questions without a time are new then. */
#define DRIFT_NEVER (-1.0)

/* A context that the plan keeps compressed. */
struct drift_context {
    const char *id;
    int row, config; // in the table
    int n_known;     // questions about it that the table has answers to
    double promised; // predicted quality of the placed variant, or facts kept
    double floor, frequency, prefill_s;
    struct drift_test test;
    double asked_until; // by the newest answer that was used; 0: by answers without a time; or DRIFT_NEVER
    int *question;      // (n_new): those without an answer in the table, newest first
    int n_new, n_ask;   // n_ask: the first of them, to be asked
    double sum;         // of tonight's n_seen answers
    int n_seen;
    bool tested; // the state has, or gets, a row
    bool moved;
};

struct drift {
    const struct table *table;
    const struct manifest *manifest;
    const struct questions *questions;
    bool facts; // the test is of the facts that answers keep, not of similarities
    struct drift_context *at;
    int n;
    struct map ids;      // context id -> index
    int *numbers;        // the memory of `question`
    int n_compressed;    // contexts of the plan
    int n_unknown;       // of them: not in the table, or without a prediction
    int n_absent;        // not in CONTEXTS, with new questions
    int n_over_budget;   // not asked tonight
    int n_unlisted;      // moved, but without a new question
    double false_alarms; // nights with a wrong alarm, as a share of all
    int per_context;     // at most so many questions
};

/* d has `facts` and the last two fields; the others are zero. ERR_FORMAT: the table has no predictions or was measured
 * by likelihood; the manifest is for another model, other tokens or other sizes. */
int drift_begin(struct drift *d, const struct table *t, const struct manifest *m, struct err *err) MUST_CHECK;
void drift_release(struct drift *d);

/* Gives contexts their new questions. */
int drift_questions(struct drift *d, const struct questions *q, struct err *err) MUST_CHECK;

/* ERR_FORMAT: the table was made with other weights than those of this model, or with another chat template than this
 * one, NULL: the model's own; says which. Before anything is computed. */
int drift_check_model(const struct table *t, const char *name, const char *chat_template, struct err *err) MUST_CHECK;

/* Takes the questions from contexts that CONTEXTS lacks, and refuses other numbers of tokens than the table's; may_cut:
 * there may be more. */
int drift_check_contexts(struct drift *d, const struct contexts *c, bool may_cut, struct err *err) MUST_CHECK;

/* Refuses an embedder other than the table's. */
int drift_check_embedder(const struct drift *d, const char *digest, struct err *err) MUST_CHECK;

/* Asks only what these seconds of prefill allow, the most used contexts first. */
int drift_budget(struct drift *d, double seconds, struct err *err) MUST_CHECK;

/* The number of answers that all configs give to the questions to be asked. */
int64_t drift_all_answers(const struct drift *d);

struct drift_answer {
    double kept, at; // similarity, or share of facts; when it was asked, 0: unknown
};

/* Uses an answer, unless the context has moved already. */
void drift_take(const struct drift *d, struct drift_context *c, struct drift_answer a);

/* Is it undecided whether it moved? */
bool drift_undecided(const struct drift_context *c);

/* After the last answer of a night: lifts wealth for the next one. */
void drift_settle(struct drift *d);

/* ---- files ---- */

/* made.kind is set here. A list has every config of the table for the new questions of moved contexts. */
int drift_write_list(struct drift *d, const char *path, struct rows_made made, struct err *err) MUST_CHECK;

/* The list of questions from..to-1 of each undecided context over its placed variant; *n: of how many contexts. */
struct drift_round {
    int from, to;
};
int drift_write_round(const struct drift *d, const char *path, struct drift_round round, int *n,
                      struct err *err) MUST_CHECK;

/* docs/formats/streams.md. A missing file is an empty one. Rows of other configs, and of contexts about which the table
 * has more answers now, are dropped. */
struct drift_row {
    const char *context, *config; // borrowed from the JSON
    int64_t n_known;
    struct drift_test test;
    double asked_until;
    bool facts;
};
int drift_row_read(struct drift_row *r, const struct json *row, struct err *err) MUST_CHECK;
int drift_read_state(struct drift *d, const char *path, struct err *err) MUST_CHECK;
int drift_write_state(const struct drift *d, const char *path, struct rows_made made, struct err *err) MUST_CHECK;

#endif
