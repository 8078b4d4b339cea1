/* online.h - a plan kept between two nights: texts and forms of the contexts, around the planner's arithmetic
 * (planner/manage.h), which knows numbers only. Not for several threads: loader/evp_plan.c locks.
 *
 * A config's number, for the planner, is its place among the forms of that context. So that a context can stay where it
 * is when it gets other forms, its present form keeps its number, and there may be holes: forms without a config.
 */
#ifndef EVP_ONLINE_H
#define EVP_ONLINE_H

#include "loader/manifest.h"
#include "planner/manage.h"

enum { ONLINE_FORMS = FORMS_MAX + 1 }; // what was and is no more may take one number

struct online_context {
    const char *id, *token_digest;
    int64_t n_tokens, kv_bytes;
    double frequency;
    struct forms forms;
    void *own; // where id, token_digest and forms lie; NULL: in the manifest that was opened
};

struct online {
    struct manifest opened;
    struct plan_problem problem; // sizes and capacities
    int64_t capacity[PLAN_TIERS];
    struct manage *manage;
    struct plan_options options; // of the event at hand
    struct online_context *at;   // by the planner's number; id NULL: none has it
    int n, room;
    struct map ids; // id -> its index in `number`
    int *number;    // (ids.n) the planner's number; -1: gone
    int number_room, n_gone;
    struct online_context old; // what the last event changed or removed, until the next one
    int old_number;            // -1: it did neither
    bool broken;               // memory ran out within an event
};

/* On failure nothing is left to release. ERR_FORMAT: no manifest of an online plan, or none that can be. */
int online_open(struct online *o, const char *path, struct err *err) MUST_CHECK;
void online_close(struct online *o);

/* The planner's number of an id, or -1. */
int online_find(const struct online *o, const char *id);

/* A context whose fields were not checked yet. Texts and forms are copied. ERR_FORMAT: it is refused, and nothing has
 * changed. After ERR_NOMEM of an event *o is broken. */
int online_add(struct online *o, const struct online_context *c, struct err *err) MUST_CHECK;

/* form NULL: the forms stay. */
int online_update(struct online *o, int number, double frequency, const struct form *form, int n_forms,
                  struct err *err) MUST_CHECK;
int online_remove(struct online *o, int number, struct err *err) MUST_CHECK;

/* The context of an operation of the last event, as it was before and as it is after. */
const struct online_context *online_before(const struct online *o, int number);
const struct online_context *online_after(const struct online *o, int number);

/* The plan as a manifest that borrows tiers and header: release it with online_manifest_release(). */
int online_manifest(const struct online *o, struct manifest *m, struct err *err) MUST_CHECK;
void online_manifest_release(struct manifest *m);

#endif
