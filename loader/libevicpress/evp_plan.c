/* evp_plan.c - the installed library's plans: checks every argument, serialises all calls by one lock, and copies
 * operations into memory that the caller owns. The arithmetic is in loader/libevicpress/live_plan.h. */
#include "loader/libevicpress/evicpress_plan.h"

#include "base/array.h"
#include "base/unconst.h"
#include "loader/libevicpress/evp_error.h"
#include "loader/libevicpress/evp_fork.h"
#include "loader/libevicpress/live_plan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Static_assert(sizeof(((struct evp_plan_tier *)0)->name) >= TIER_NAME, "a tier's name fits");
_Static_assert(sizeof(((struct evp_plan_state *)0)->tier) / sizeof(struct evp_plan_tier) >= LIVE_TIERS, "tiers fit");

static const double at_most_s = 1e12;

struct evp_plan {
    struct fork_safe fork;  // its lock protects everything
    pthread_mutex_t saving; // held by the thread that saves
    atomic_int waiting;     // events waiting for the lock
    struct live_plan live;
    uint64_t events;
    struct {
        struct evp_operation *at; // of the call so far; their texts are borrowed from the plan
        int n, cap;
    } todo;
};

_Static_assert(offsetof(struct evp_plan, fork) == 0, "in_child() casts the member to the plan");

/* The child does not continue another thread's save. */
static void in_child(struct fork_safe *f)
{
    struct evp_plan *plan = (struct evp_plan *)f; /* fork is its first member */

    fork_safe_renew(&plan->saving);
    plan->waiting = 0;
    live_save_end(&plan->live);
}

/* "-" is refused: a library must not use standard input and output. */
static bool is_path(const char *path)
{
    return path && strcmp(path, "-") != 0;
}

int evp_plan_open(struct evp_plan **plan, const char *manifest, struct evp_error *error)
{
    struct err err;

    *plan = NULL;
    if (!is_path(manifest))
        return evp_error_set(error, EVICPRESS_ARGUMENT, "manifest is not a path");
    struct evp_plan *p = calloc(1, sizeof(*p));
    if (!p)
        return evp_error_set(error, EVICPRESS_MEMORY, "out of memory");
    if (live_plan_open(&p->live, manifest, &err)) {
        free(p);
        return evp_error_from(error, &err, EVICPRESS_DAMAGED);
    }
    fork_safe_init(&p->fork, in_child);
    pthread_mutex_init(&p->saving, NULL);
    *plan = p;
    return EVICPRESS_OK;
}

void evp_plan_close(struct evp_plan *plan)
{
    if (!plan)
        return;
    fork_safe_release(&plan->fork);
    pthread_mutex_destroy(&plan->saving);
    live_plan_close(&plan->live);
    free(plan->todo.at);
    free(plan);
}

/* ---- operations ------------------------------------------------------------------------ */

void evp_operations_release(struct evp_operations *operations)
{
    if (!operations)
        return;
    free(unconst(operations->at));
    *operations = (struct evp_operations){ 0 };
}

static const char *tier_name(const struct live_plan *l, int tier)
{
    return tier == PLAN_RECOMPUTE ? "recompute" : l->opened.tiers.at[tier].name;
}

static struct cached cached_of(const struct live_plan *l, const struct live_context *c, struct plan_placement placement,
                               int64_t bytes)
{
    if (placement.tier == PLAN_RECOMPUTE)
        return (struct cached){ 0 };
    return (struct cached){ .token_digest = c->token_digest,
                            .config = c->variants.at[placement.config].config,
                            .bytes = bytes, /* an update may change the bytes of a config */
                            .tier = &l->opened.tiers.at[placement.tier] };
}

static const char *config_name(const struct live_context *c, struct plan_placement placement)
{
    return placement.tier == PLAN_RECOMPUTE ? "none" : c->variants.at[placement.config].config;
}

/* "keep" between two tiers with one folder still moves bytes from one tier's capacity to the other's. */
static const int kinds[N_OPERATIONS] = {
    [OP_INSERT] = EVICPRESS_INSERT, [OP_RECOMPRESS] = EVICPRESS_RECOMPRESS, [OP_MOVE] = EVICPRESS_MOVE,
    [OP_KEEP] = EVICPRESS_MOVE,     [OP_EVICT] = EVICPRESS_EVICT,
};

/* An operation whose texts are borrowed from the plan. */
static struct evp_operation operation_of(const struct live_plan *l, const struct density_op *op)
{
    const struct live_context *before = live_plan_before(l, op->context), *after = live_plan_after(l, op->context);
    struct cached was = cached_of(l, before, op->from, op->from_bytes);
    struct cached is = cached_of(l, after, op->to, op->to_bytes);

    return (struct evp_operation){ .kind = kinds[operation_between(&was, &is)],
                                   .id = after->id,
                                   .from_config = config_name(before, op->from),
                                   .from_tier = tier_name(l, op->from.tier),
                                   .to_config = config_name(after, op->to),
                                   .to_tier = tier_name(l, op->to.tier),
                                   .from_bytes = op->from_bytes,
                                   .to_bytes = op->to_bytes };
}

/* Sets text[] to the addresses of an operation's texts. */
static void texts_of(struct evp_operation *op, const char **text[5])
{
    text[0] = &op->id;
    text[1] = &op->from_config;
    text[2] = &op->from_tier;
    text[3] = &op->to_config;
    text[4] = &op->to_tier;
}

/* Notes the operations of the plan's last event. */
static int note_operations(struct evp_plan *plan, struct err *err)
{
    const struct density_state *state = density_state(plan->live.density);

    for (int i = 0; i < state->n_ops; i++)
        if (ARRAY_PUSH(&plan->todo, operation_of(&plan->live, &state->op[i])))
            return err_nomem(err);
    return 0;
}

/* Copies the noted operations into one allocation: first they, then their texts. */
static int copy_operations(const struct evp_plan *plan, struct evp_operations *out, struct err *err)
{
    size_t n = (size_t)plan->todo.n, texts = 0;
    const char **text[5];

    for (size_t i = 0; i < n; i++) {
        texts_of(&plan->todo.at[i], text);
        for (int k = 0; k < 5; k++)
            texts += strlen(*text[k]) + 1;
    }
    struct evp_operation *at = n ? malloc(n * sizeof(*at) + texts) : NULL;
    if (n && !at)
        return err_nomem(err);
    char *to = (char *)(at + n);
    for (size_t i = 0; i < n; i++) {
        at[i] = plan->todo.at[i];
        texts_of(&at[i], text);
        for (int k = 0; k < 5; k++) {
            size_t bytes = strlen(*text[k]) + 1;
            *text[k] = memcpy(to, *text[k], bytes);
            to += bytes;
        }
    }
    out->at = at;
    out->n = n;
    return 0;
}

/* ---- events ------------------------------------------------------------------------------ */

/* Locks the plan unless it is broken. Returns 0 or EVICPRESS_MEMORY. */
static int enter(struct evp_plan *plan, struct evp_error *error)
{
    plan->waiting++;
    pthread_mutex_lock(&plan->fork.lock);
    plan->waiting--;
    if (!plan->live.broken)
        return 0;
    pthread_mutex_unlock(&plan->fork.lock);
    return evp_error_set(error, EVICPRESS_MEMORY, "memory ran out in an earlier call: the plan can only be closed");
}

/* Ends a call that returned `code`: copies the operations for the caller, unlocks, returns an evp_code. */
static int leave(struct evp_plan *plan, int code, struct evp_operations *operations, struct err *err,
                 struct evp_error *error)
{
    if (!code) {
        plan->events++;
        code = operations && (note_operations(plan, err) || copy_operations(plan, operations, err)) ? err->code : 0;
        plan->live.broken = code != 0; /* the caller does not get the operations of the event */
        if (operations)
            operations->event = plan->events;
    }
    plan->todo.n = 0;
    pthread_mutex_unlock(&plan->fork.lock);
    return code ? evp_error_from(error, err, EVICPRESS_ARGUMENT) : EVICPRESS_OK;
}

static int refuse(struct evp_error *error, int code, const char *sentence, const char *id)
{
    struct err err;

    err_set(&err, ERR_FORMAT, "context '%.80s' %s", id, sentence);
    return evp_error_set(error, code, err.msg);
}

static bool all_zero(const uint64_t *reserved, size_t n)
{
    uint64_t any = 0;

    for (size_t i = 0; i < n; i++)
        any |= reserved[i];
    return any == 0;
}

/* Converts the caller's variants into `variant` (VARIANTS_MAX). */
static int take_variants(struct variant_info *variant, const struct evp_variant *given, size_t n, struct err *err)
{
    if (n > VARIANTS_MAX)
        return err_set(err, ERR_FORMAT, "n_variants is above %d", VARIANTS_MAX);
    if (n && !given)
        return err_set(err, ERR_FORMAT, "variant is NULL");
    for (size_t i = 0; i < n; i++) {
        if (!all_zero(given[i].reserved, sizeof(given[i].reserved) / sizeof(*given[i].reserved)))
            return err_set(err, ERR_FORMAT, "variant %zu: reserved is not zero", i + 1);
        variant[i] = (struct variant_info){ given[i].config, given[i].bytes, given[i].quality, given[i].decompress_s };
    }
    return 0;
}

/* Sets a context's digest to that of its tokens, in `digest` (DIGEST_HEX), if it has none. */
static int take_digest(struct live_context *c, const int32_t *tokens, char *digest, struct err *err)
{
    if (c->token_digest)
        return 0;
    if (!tokens || c->n_tokens < 1 || c->n_tokens > INT32_MAX)
        return err_set(err, ERR_FORMAT, tokens ? "n_tokens is out of range" : "tokens and token_digest are NULL");
    c->token_digest = digest;
    return digest_tokens(tokens, (int)c->n_tokens, digest, err);
}

/* Converts the caller's context. */
static int take_context(struct live_context *c, const struct evp_context *given, struct variant_info *variant,
                        char *digest, struct err *err)
{
    *c = (struct live_context){ .id = given->id,
                                .token_digest = given->token_digest,
                                .n_tokens = given->n_tokens,
                                .kv_bytes = given->kv_bytes,
                                .frequency = given->frequency,
                                .variants = { .at = variant,
                                              .n = (int)given->n_variants,
                                              .prefill_s = given->prefill_s,
                                              .question_s = given->question_s } };
    if (!given->id)
        return err_set(err, ERR_FORMAT, "id is NULL");
    if (!all_zero(given->reserved, sizeof(given->reserved) / sizeof(*given->reserved)))
        return err_set(err, ERR_FORMAT, "reserved is not zero");
    if (take_variants(variant, given->variant, given->n_variants, err))
        return err->code;
    return take_digest(c, given->tokens, digest, err);
}

int evp_plan_admit(struct evp_plan *plan, const struct evp_context *context, struct evp_operations *operations,
                   struct evp_error *error)
{
    struct live_context c;
    struct variant_info variant[VARIANTS_MAX];
    char digest[DIGEST_HEX];
    struct err err;

    if (operations)
        *operations = (struct evp_operations){ 0 };
    if (take_context(&c, context, variant, digest, &err))
        return evp_error_from(error, &err, EVICPRESS_ARGUMENT);
    if (enter(plan, error))
        return EVICPRESS_MEMORY;
    if (live_plan_find(&plan->live, c.id) >= 0) {
        pthread_mutex_unlock(&plan->fork.lock);
        return refuse(error, EVICPRESS_EXISTS, "is in the plan already", c.id);
    }
    return leave(plan, live_plan_add(&plan->live, &c, &err), operations, &err, error);
}

/* Locks the plan and returns the number of a context, or a negative evp_code with the plan unlocked. */
static int enter_at(struct evp_plan *plan, const char *id, struct evp_error *error)
{
    if (!id)
        return evp_error_set(error, EVICPRESS_ARGUMENT, "id is NULL");
    if (enter(plan, error))
        return EVICPRESS_MEMORY;
    int number = live_plan_find(&plan->live, id);
    if (number >= 0)
        return number;
    pthread_mutex_unlock(&plan->fork.lock);
    return refuse(error, EVICPRESS_UNKNOWN, "is not in the plan", id);
}

int evp_plan_update(struct evp_plan *plan, const struct evp_update *update, struct evp_operations *operations,
                    struct evp_error *error)
{
    struct variant_info variant[VARIANTS_MAX];
    struct err err;

    if (operations)
        *operations = (struct evp_operations){ 0 };
    if (!all_zero(update->reserved, sizeof(update->reserved) / sizeof(*update->reserved)))
        return evp_error_set(error, EVICPRESS_ARGUMENT, "reserved is not zero");
    if (take_variants(variant, update->variant, update->n_variants, &err))
        return evp_error_from(error, &err, EVICPRESS_ARGUMENT);
    int number = enter_at(plan, update->id, error);
    if (number < 0)
        return number;
    struct live_update u = { update->frequency, update->variant ? variant : NULL, (int)update->n_variants };
    int code = live_plan_update(&plan->live, number, &u, &err);
    if (!code)
        plan->live.at[number].by_use = false; /* the caller knows it */
    return leave(plan, code, operations, &err, error);
}

int evp_plan_remove(struct evp_plan *plan, const char *id, struct evp_operations *operations, struct evp_error *error)
{
    struct err err;

    if (operations)
        *operations = (struct evp_operations){ 0 };
    int number = enter_at(plan, id, error);
    if (number < 0)
        return number;
    return leave(plan, live_plan_remove(&plan->live, number, &err), operations, &err, error);
}

int evp_plan_used(struct evp_plan *plan, const struct evp_use *use, struct evp_operations *operations,
                  struct evp_error *error)
{
    char digest[DIGEST_HEX];
    struct live_context c = { .id = use->id, .token_digest = use->token_digest, .n_tokens = use->n_tokens };
    struct err err;

    if (operations)
        *operations = (struct evp_operations){ 0 };
    if (!c.id || !all_zero(use->reserved, sizeof(use->reserved) / sizeof(*use->reserved)))
        return evp_error_set(error, EVICPRESS_ARGUMENT, c.id ? "reserved is not zero" : "id is NULL");
    if (!(use->at_s >= 0 && use->at_s <= at_most_s))
        return evp_error_set(error, EVICPRESS_ARGUMENT, "at_s is out of range");
    if (enter(plan, error))
        return EVICPRESS_MEMORY;
    if (live_plan_find(&plan->live, c.id) < 0) { /* the digest is computed outside the lock */
        pthread_mutex_unlock(&plan->fork.lock);
        if (take_digest(&c, use->tokens, digest, &err))
            return evp_error_from(error, &err, EVICPRESS_ARGUMENT);
        if (enter(plan, error))
            return EVICPRESS_MEMORY;
    }
    int code = live_plan_used(&plan->live, &c, use->at_s > 0 ? use->at_s : (double)NAN, &err);
    return leave(plan, code, operations, &err, error);
}

/* ---- what happened to the payloads ------------------------------------------------------------------ */

int evp_plan_lost(struct evp_plan *plan, const char *id, struct evp_error *error)
{
    struct err err;
    int number = enter_at(plan, id, error);

    if (number < 0)
        return number;
    int code = live_plan_lose(&plan->live, number, &err);
    pthread_mutex_unlock(&plan->fork.lock);
    return code ? evp_error_from(error, &err, EVICPRESS_ARGUMENT) : EVICPRESS_OK;
}

int evp_plan_tier_lost(struct evp_plan *plan, const char *tier, struct evp_error *error)
{
    struct live_plan *l = &plan->live;
    struct err err;
    int code = 0;

    if (!tier)
        return evp_error_set(error, EVICPRESS_ARGUMENT, "tier is NULL");
    if (enter(plan, error))
        return EVICPRESS_MEMORY;
    int t = tiers_find(&l->opened.tiers, tier);
    for (int i = 0; t >= 0 && i < l->n && !code; i++)
        if (l->at[i].id && !l->at[i].variants.pin && density_placement(l->density, i).tier == t)
            code = live_plan_lose(l, i, &err);
    pthread_mutex_unlock(&plan->fork.lock);
    if (t < 0) {
        err_set(&err, ERR_FORMAT, "the plan has no tier '%.40s'", tier);
        return evp_error_set(error, EVICPRESS_UNKNOWN, err.msg);
    }
    return code ? evp_error_from(error, &err, EVICPRESS_ARGUMENT) : EVICPRESS_OK;
}

/* ---- status and saving ------------------------------------------------------------------------------ */

static struct plan sums_of(struct live_plan *l)
{
    struct live_sums sums;

    live_sums_begin(&sums, l);
    for (int i = 0; i < l->n; i++) {
        const struct live_copy c = live_plan_copy(l, i, density_uses(l->density), l->learns);
        if (c.context.id)
            live_sums_add(&sums, l, &c.context, c.placement, &l->candidates);
    }
    return (struct plan){ .objective = sums.objective.value, .upper_bound = live_sums_bound(&sums) };
}

int evp_plan_status(struct evp_plan *plan, struct evp_plan_state *state, struct evp_error *error)
{
    *state = (struct evp_plan_state){ 0 };
    if (enter(plan, error))
        return EVICPRESS_MEMORY;
    const struct density_state *now = density_state(plan->live.density);
    const struct tiers *tiers = &plan->live.opened.tiers;
    struct plan as_plan = sums_of(&plan->live);
    state->n_contexts = now->n_contexts;
    state->objective = as_plan.objective;
    state->upper_bound = as_plan.upper_bound;
    state->gap = plan_gap(&as_plan);
    state->n_tiers = (size_t)tiers->n;
    for (int t = 0; t < tiers->n; t++) {
        memcpy(state->tier[t].name, tiers->at[t].name, TIER_NAME);
        state->tier[t].capacity = tiers->at[t].capacity;
        state->tier[t].free_bytes = now->free[t];
    }
    pthread_mutex_unlock(&plan->fork.lock);
    return EVICPRESS_OK;
}

/* Lets waiting events take the lock first: otherwise the saving thread, which released it just now, would win again. */
static void let_events_pass(struct evp_plan *plan)
{
    enum { TRIES = 100 }; // a limit, so that an endless stream of events cannot block a save

    for (int i = 0; i < TRIES && plan->waiting; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 10000 }, NULL);
}

/* Copies the plan as it is now; events continue meanwhile. */
static int copy_plan(struct evp_plan *plan, struct live_save *save, struct err *err)
{
    int code = live_save_begin(&plan->live, save, err);
    bool more = !code;

    while (more) {
        pthread_mutex_unlock(&plan->fork.lock);
        let_events_pass(plan);
        pthread_mutex_lock(&plan->fork.lock);
        more = live_save_go_on(&plan->live);
    }
    return code;
}

static int save(struct evp_plan *plan, const char *manifest, struct evp_error *error)
{
    struct live_save save;
    struct err err;

    if (enter(plan, error))
        return EVICPRESS_MEMORY;
    int code = copy_plan(plan, &save, &err);
    pthread_mutex_unlock(&plan->fork.lock);
    if (code)
        return evp_error_from(error, &err, EVICPRESS_ARGUMENT);
    code = live_save_write(&plan->live, &save, manifest, &err);
    pthread_mutex_lock(&plan->fork.lock);
    live_save_end(&plan->live);
    pthread_mutex_unlock(&plan->fork.lock);
    live_save_release(&save);
    return code ? evp_error_from(error, &err, EVICPRESS_ARGUMENT) : EVICPRESS_OK;
}

int evp_plan_save(struct evp_plan *plan, const char *manifest, struct evp_error *error)
{
    if (!is_path(manifest))
        return evp_error_set(error, EVICPRESS_ARGUMENT, "manifest is not a path");
    pthread_mutex_lock(&plan->saving);
    int code = save(plan, manifest, error);
    pthread_mutex_unlock(&plan->saving);
    return code;
}
