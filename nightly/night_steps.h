/* night_steps.h - the steps of a night: which tool runs when, with which words.
 *
 * Without a budget everything new is profiled. With one, evp-drift checks the plan in force on the newest questions,
 * and the rest goes to a random sample of the contexts, which grows from night to night.
 *
 * Files in the state folder, where a night runs:
 *
 *     mine/                   contexts, questions and access log of tonight's logs
 *     profile.h5, table.h5    what was measured so far, and its scores
 *     drift.jsonl             what evp-drift remembers
 *     tonight.jsonl           the new plan, until it is loaded
 *     manifest.jsonl          the plan in force, with its receipt; previous.jsonl: the one before
 *     payloads/               of tonight's plan, as far as the tiers lacked them
 *     model                   the name of the model of all this
 */
#ifndef EVP_NIGHT_STEPS_H
#define EVP_NIGHT_STEPS_H

#include "nightly/run_tool.h"
#include "nightly/nightly.h"

#include <stdbool.h>

struct night_step_kind {
    const char *name;
    bool (*needed)(const struct nightly *n); // NULL: always
    int (*words)(const struct nightly *n, struct command *c, struct err *err);
    const char *figures; // names of numbers of its summary to print, separated by blanks; NULL: none
};

/* In their order; after the last one a kind without a name. */
extern const struct night_step_kind night_steps[];

/* Notes the model that the state folder belongs to. ERR_FORMAT: it belongs to another one. */
int night_take_model(const struct nightly *n, struct err *err) MUST_CHECK;

/* Puts the loaded plan in force: tonight.jsonl becomes manifest.jsonl. Done twice, it does nothing. */
int night_put_in_force(struct err *err) MUST_CHECK;

#endif
