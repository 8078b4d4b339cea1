/* night_state.h - the files of the state folder, where a night runs:
 *
 *     mine/                   contexts, questions and access log of tonight's logs
 *     profile.h5, table.h5    what was measured so far, and its scores
 *     profile.h5.before       the profile as the night found it, a second name of the same file until it is replaced
 *     drift.jsonl             what evp-drift remembers; drifted.jsonl: what moved tonight
 *     tonight.jsonl           the new plan, until it is loaded
 *     manifest.jsonl          the plan in force, with its receipt; previous.jsonl: the one before
 *     payloads/               of tonight's plan, as far as the tiers lacked them
 *     model                   the name of the model of all this
 */
#ifndef EVP_NIGHT_STATE_H
#define EVP_NIGHT_STATE_H

#include "nightly/nightly.h"

#include <stdbool.h>

#define MINE     "mine"
#define CONTEXTS MINE "/contexts.jsonl"
#define ASKED    MINE "/questions.jsonl"
#define ACCESS   MINE "/access.jsonl"
#define BEFORE   MINE "/access-before.jsonl"
#define PROFILE  "profile.h5"
#define TABLE    "table.h5"
#define DRIFT    "drift.jsonl"
#define DRIFTED  "drifted.jsonl"
#define TONIGHT  "tonight.jsonl"
#define MANIFEST "manifest.jsonl"
#define PREVIOUS "previous.jsonl"
#define RECEIPT  "manifest.jsonl.receipt"
#define PAYLOADS "payloads"
#define REPORT   "report.html"
#define MODEL    "model"

/* Puts aside what cannot be read, as NAME.damaged, with a warning, and *healed is set: what nights can make anew is
 * made anew, and the profile, which holds what was measured, is taken from the night before. */
int night_heal(bool *healed, struct err *err) MUST_CHECK;

/* Begins anew, for another model, other weights or another chat template: takes what is placed from the tiers, and sets
 * the profile and the plan aside, as NAME.old. Interrupted, it is called again. */
int night_begin_anew(const struct nightly *n, struct err *err) MUST_CHECK;

/* Notes the model that the state folder belongs to. ERR_FORMAT: it belongs to another one. */
int night_take_model(const struct nightly *n, struct err *err) MUST_CHECK;

/* ERR_FORMAT: its weights or its chat template are others than those of the profile. What is placed has then been taken
 * from the tiers, so that nothing made with the old ones is served. */
int night_check_weights(const struct nightly *n, struct err *err) MUST_CHECK;

/* Is there a plan in force? */
bool night_has_plan(void);

/* Puts the loaded plan in force: tonight.jsonl becomes manifest.jsonl. Done twice, it does nothing. */
int night_put_in_force(struct err *err) MUST_CHECK;

#endif
