/* live_plan.c - the contexts of a live plan, and the events that change them.
 *
 * An event first checks its arguments and reserves memory, so that a refusal changes nothing; then the planner decides;
 * then texts and numbers are updated. Only the planner can run out of memory half-way, which breaks the plan.
 */
#include "loader/libevicpress/live_plan.h"

#include "base/array.h"
#include "base/parallel.h"
#include "codes/config_name.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { GONE_MIN = 4096 };           // ids; fewer are not worth rebuilding the map
enum { ALL_USES_MAX = 1000000000 }; // so that frequencies leave utilities in their range

/* ---- the planner's view ---------------------------------------------------------- */

static double candidates(const void *arg, int context, int64_t *bytes, double *out)
{
    const struct live_plan *l = arg;

    return live_candidates(l, &l->at[context], bytes, out);
}

/* Tells the planner how often a context is used. */
static void set_frequency(struct live_plan *l, int number, double frequency)
{
    uses_set(density_uses(l->density), density_counts(l->density, number), frequency, l->all_uses);
}

/* The candidates of a context, into l->candidates. */
static int set_candidates(struct live_plan *l, const struct live_context *c, struct err *err)
{
    return live_check_utilities(l, c, &l->candidates, err);
}

/* ---- contexts ---------------------------------------------------------------------- */

static const char *put_text(char **to, const char *s)
{
    size_t n = strlen(s) + 1;
    const char *at = *to;

    memcpy(*to, s, n);
    *to += n;
    return at;
}

/* Copies the texts and variants of a context into one allocation. */
static int copy_texts(struct live_context *c, struct err *err)
{
    size_t variants = (size_t)c->variants.n * sizeof(struct variant_info), texts = strlen(c->id) + DIGEST_HEX + 1;

    for (int i = 0; i < c->variants.n; i++)
        texts += c->variants.at[i].config ? strlen(c->variants.at[i].config) + 1 : 0;
    c->own = malloc(sizeof(*c->own) + variants + texts);
    if (!c->own)
        return err_nomem(err);
    struct variant_info *variant = (struct variant_info *)(c->own + 1);
    char *to = (char *)(c->own + 1) + variants;
    for (int i = 0; i < c->variants.n; i++) {
        variant[i] = c->variants.at[i];
        if (variant[i].config)
            variant[i].config = put_text(&to, variant[i].config);
    }
    c->id = put_text(&to, c->id);
    c->token_digest = put_text(&to, c->token_digest);
    c->variants.at = variant;
    return 0;
}

int live_plan_find(const struct live_plan *l, const char *id)
{
    int i = map_find(&l->ids, id, strlen(id));

    return i < 0 ? -1 : l->number.at[i];
}

/* Removes the ids of gone contexts once they are half of all ids. */
static int forget_gone(struct live_plan *l, struct err *err)
{
    struct map ids = { 0 };

    if (l->n_gone < GONE_MIN || l->n_gone < l->ids.n / 2)
        return 0;
    for (int k = 0; k < l->n; k++)
        if (l->at[k].id && map_add(&ids, l->at[k].id, strlen(l->at[k].id), NULL) == MAP_NOMEM) {
            map_release(&ids);
            return err_nomem(err);
        }
    for (int k = 0, i = 0; k < l->n; k++)
        if (l->at[k].id)
            l->number.at[i++] = k;
    map_release(&l->ids);
    l->ids = ids;
    l->n_gone = 0;
    return 0;
}

/* Space for one more context, and for one more id. */
static int reserve(struct live_plan *l, struct err *err)
{
    return ARRAY_GROW(l, l->n + 1) || ARRAY_GROW(&l->number, l->ids.n + 1) ? err_nomem(err) : 0;
}

/* Adds an id and returns the address for its number; NULL without memory. */
static int *add_id(struct live_plan *l, const char *id, struct err *err)
{
    bool added;
    int i = map_add(&l->ids, id, strlen(id), &added);

    if (i < 0) {
        err_nomem(err);
        return NULL;
    }
    l->n_gone -= !added;
    l->number.at[i] = -1;
    return &l->number.at[i];
}

/* ---- events ------------------------------------------------------------------------- */

/* Frees memory, or leaves it to the running save, which may still read it. */
static void drop(struct live_plan *l, struct live_own *own)
{
    if (!own)
        return;
    if (!l->save) {
        free(own);
        return;
    }
    own->next = l->save->unused;
    l->save->unused = own;
}

struct live_copy live_plan_copy(const struct live_plan *l, int number, const struct uses *uses, bool learned)
{
    struct live_copy copy = { l->at[number], density_placement(l->density, number), *density_counts(l->density, number),
                              true };

    if (learned)
        copy.context.frequency = uses_chance(uses, &copy.counts) * l->all_uses;
    return copy;
}

void live_plan_keep(struct live_plan *l, int number)
{
    struct live_save *s = l->save;

    if (s && number >= s->next && number < s->n && !s->at[number].taken)
        s->at[number] = live_plan_copy(l, number, &s->uses, s->learns);
}

/* The same for the other contexts that the event has moved, each from its first place. */
static void keep_moved(struct live_plan *l)
{
    const struct density_state *state = density_state(l->density);

    for (int i = 0; l->save && i < state->n_ops; i++) {
        const struct density_op *op = &state->op[i];
        bool kept = op->context < l->save->next || op->context >= l->save->n || l->save->at[op->context].taken;
        live_plan_keep(l, op->context);
        if (!kept)
            l->save->at[op->context].placement = op->from;
    }
}

static void begin_event(struct live_plan *l)
{
    drop(l, l->old.own);
    l->old = (struct live_context){ 0 };
    l->old_number = -1;
}

/* Ends an event of the planner, which returned `code`: marks the plan broken if that failed. */
int live_plan_end(struct live_plan *l, int code)
{
    l->broken = code != 0;
    if (!code)
        keep_moved(l);
    return code;
}

static int check_context(const struct live_plan *l, const struct live_context *c, struct err *err)
{
    struct manifest_context fields = { c->id, c->token_digest, c->n_tokens, c->kv_bytes, c->frequency, &c->variants };

    if (manifest_check_context(&fields, &l->opened.tiers, err))
        return err->code;
    for (int i = 0; i < c->variants.n; i++)
        if (config_name_check(c->variants.at[i].config, err))
            return err_wrap(err, "variant '%.80s'", c->variants.at[i].config);
    return 0;
}

int live_plan_enter(struct live_plan *l, const struct live_context *c, int *number, struct err *err)
{
    struct live_context new = *c;
    struct density_form form[LIVE_VARIANTS];

    new.variants.min_quality = l->opened.min_quality;
    begin_event(l);
    if (check_context(l, &new, err) || set_candidates(l, &new, err) || forget_gone(l, err) || reserve(l, err) ||
        copy_texts(&new, err))
        return err->code;
    int *slot = add_id(l, new.id, err);
    const struct density_context all = live_planned(l, &new, form);
    if (!slot || density_add(l->density, &all, number, err)) {
        free(new.own);
        return live_plan_end(l, err->code);
    }
    *slot = *number;
    live_plan_keep(l, *number);
    l->at[*number] = new;
    l->n += *number == l->n;
    return 0;
}

int live_plan_add(struct live_plan *l, const struct live_context *c, struct err *err)
{
    int number;

    if (live_plan_enter(l, c, &number, err))
        return err->code;
    set_frequency(l, number, c->frequency);
    return live_plan_end(l, density_settle(l->density, number, err));
}

/* Numbers the variants of an update so that `now`, the stored variant, keeps its number `at`, and no other variant gets
 * it. at -1: nothing is stored. Returns the count of numbers, including holes. */
static int number_variants(struct variant_info *to, const struct live_update *u, const struct variant_info *now, int at)
{
    int next = 0, n = 0;

    memset(to, 0, LIVE_VARIANTS * sizeof(*to));
    for (int i = 0; i < u->n_variants; i++) {
        bool stays = at >= 0 && strcmp(u->variant[i].config, now->config) == 0;
        next += next == at && !stays;
        int number = stays ? at : next++;
        to[number] = u->variant[i];
        n = number >= n ? number + 1 : n;
    }
    return n;
}

/* A pinned context stays on its tier, so one of its new variants must fit there with the other contexts. */
static int check_pin(const struct live_plan *l, const struct live_context *c, const struct plan_placement *now,
                     struct err *err)
{
    int tier = c->variants.pin ? tiers_find(&l->opened.tiers, c->variants.pin) : -1;

    if (tier < 0)
        return 0;
    const struct live_context *is = &l->at[live_plan_find(l, c->id)];
    bool beside = now->tier >= 0 && l->pool[now->tier] == l->pool[tier];
    int64_t held = beside ? is->variants.at[now->config].bytes : 0;
    int64_t free_bytes = density_state(l->density)->free[tier];

    for (int i = 0; i < c->variants.n; i++)
        if (tier_allows(&l->opened.tiers.at[tier], c->variants.at[i].config) &&
            (c->variants.at[i].bytes <= held || c->variants.at[i].bytes - held <= free_bytes))
            return 0;
    return err_set(err, ERR_FORMAT, "no variant fits tier '%s', which the context is pinned to", c->variants.pin);
}

/* Applies an update to a copy of context `number`. Unchanged variants were checked before. */
static int update_copy(struct live_plan *l, struct live_context *c, int number, const struct live_update *u,
                       struct err *err)
{
    struct plan_placement placement = density_placement(l->density, number);
    int at = placement.tier == PLAN_RECOMPUTE ? -1 : placement.config;
    struct variant_info numbered[LIVE_VARIANTS];

    c->frequency = u->frequency;
    struct live_context asked = *c;
    asked.variants.at = u->variant;
    asked.variants.n = u->variant ? u->n_variants : 0;
    if (check_context(l, &asked, err))
        return err->code;
    if (!u->variant)
        return set_candidates(l, c, err);
    if (check_pin(l, &asked, &placement, err))
        return err->code;
    c->variants.n = number_variants(numbered, u, at < 0 ? NULL : &c->variants.at[at], at);
    c->variants.at = numbered;
    return set_candidates(l, c, err) ? err->code : copy_texts(c, err);
}

int live_plan_update(struct live_plan *l, int number, const struct live_update *u, struct err *err)
{
    struct live_context new = l->at[number];
    struct density_form form[LIVE_VARIANTS];

    begin_event(l);
    if (update_copy(l, &new, number, u, err))
        return err->code;
    live_plan_keep(l, number);
    l->old = l->at[number];
    l->old_number = number;
    if (!u->variant)
        l->old.own = NULL; /* the context still uses it */
    l->at[number] = new;
    const struct density_context all = live_planned(l, &new, form);
    set_frequency(l, number, u->frequency);
    return live_plan_end(
        l, density_change(l->density, number, &all, err) || density_settle(l->density, number, err) ? err->code : 0);
}

int live_plan_remove(struct live_plan *l, int number, struct err *err)
{
    begin_event(l);
    live_plan_keep(l, number);
    if (density_remove(l->density, number, err))
        return live_plan_end(l, err->code);
    l->old = l->at[number];
    l->old_number = number;
    l->at[number] = (struct live_context){ 0 };
    l->number.at[map_find(&l->ids, l->old.id, strlen(l->old.id))] = -1;
    l->n_gone++;
    return 0;
}

int live_plan_lose(struct live_plan *l, int number, struct err *err)
{
    const struct live_context *c = &l->at[number];

    begin_event(l);
    if (c->variants.pin)
        return err_set(err, ERR_FORMAT, "context '%.80s' is pinned to tier '%s': put its payload there again", c->id,
                       c->variants.pin);
    live_plan_keep(l, number);
    density_lose(l->density, number);
    return 0;
}

const struct live_context *live_plan_before(const struct live_plan *l, int number)
{
    return number == l->old_number ? &l->old : &l->at[number];
}

const struct live_context *live_plan_after(const struct live_plan *l, int number)
{
    return l->at[number].id ? &l->at[number] : &l->old;
}

/* ---- opening ------------------------------------------------------------------------- */

/* Takes over the manifest's tiers and prices. ERR_FORMAT: a number is too large for the planner's sums. */
static int take_tiers(struct live_plan *l, struct plan *plan, struct err *err)
{
    const struct manifest *m = &l->opened;

    if (m->tiers.n > LIVE_TIERS)
        return err_set(err, ERR_FORMAT, "field 'tiers' holds %d tiers, but a live plan takes at most %d", m->tiers.n,
                       LIVE_TIERS);
    if (!isfinite(m->alpha))
        return err_set(err, ERR_FORMAT, "field 'alpha' is not a number");
    tiers_pools(&m->tiers, l->pool);
    for (int t = 0; t < m->tiers.n; t++) {
        l->capacity[t] = m->tiers.at[t].capacity;
        plan->price[t] = m->price[t];
        if (l->capacity[t] < INT64_MAX && m->price[t] * (double)l->capacity[t] > LIVE_UTILITY_MAX)
            return err_set(err, ERR_FORMAT, "field 'prices': the price of tier '%s' is out of range",
                           m->tiers.at[t].name);
    }
    l->problem = (struct plan_problem){ 0, LIVE_VARIANTS, m->tiers.n, l->capacity, candidates, l, l->pool };
    return plan_candidates_init(&l->candidates, &l->problem, err);
}

/* Converts the placement of a row: finds the number of its config, and adds its bytes to the tier's fill. */
static int take_placement(struct live_plan *l, const struct placement *p, struct plan *plan, struct err *err)
{
    struct plan_placement c = { 0, p->tier };
    const char *pin = p->variants->pin, *tier = c.tier < 0 ? "recompute" : l->opened.tiers.at[c.tier].name;

    if (pin && strcmp(pin, tier) != 0)
        return err_set(err, ERR_FORMAT, "the context is on tier '%s', but pinned to '%s'", tier, pin);
    if (c.tier != PLAN_RECOMPUTE) {
        c.config = (int)(variants_find(p->variants, p->config) - p->variants->at);
        int64_t *fill = &plan->fill[l->pool[c.tier]]; /* of the tier or its pool */
        if (!tier_allows(&l->opened.tiers.at[c.tier], p->config))
            return err_set(err, ERR_FORMAT, "tier '%s' may not hold config '%s'", tier, p->config);
        if (p->bytes > l->capacity[c.tier] - *fill)
            return err_set(err, ERR_FORMAT, "tier '%s' holds more than its capacity", tier);
        *fill += p->bytes;
    }
    plan->placement[plan->n_contexts] = c;
    return 0;
}

static int take_row(struct live_plan *l, const struct placement *p, struct plan *plan, struct err *err)
{
    if (!p->variants && p->operation == OP_EVICT)
        return 0; /* the context is gone */
    if (!p->variants)
        return err_set(err, ERR_FORMAT, "field 'forms' is missing: make the manifest with evp-plan --online");
    if (take_placement(l, p, plan, err))
        return err->code;
    l->at[l->n++] = (struct live_context){ .id = p->id,
                                           .token_digest = p->token_digest,
                                           .n_tokens = p->n_tokens,
                                           .kv_bytes = p->kv_bytes,
                                           .frequency = p->frequency,
                                           .variants = *p->variants };
    plan->n_contexts++;
    return 0;
}

/* Several threads check the utilities, CHUNK contexts at a time, while one thread adds the ids. */
enum { CHUNK = 4096 };

struct checking {
    struct live_plan *l;
    const struct plan *plan;
    atomic_int bad; // the first context whose utilities are out of range; l->n: none
    atomic_bool nomem;
};

static int check_utilities(const struct checking *k, int number, struct plan_candidates *candidates, struct err *err)
{
    const struct live_plan *l = k->l;
    struct plan_placement at = k->plan->placement[number];

    if (live_check_utilities(l, &l->at[number], candidates, err))
        return err->code;
    if (at.tier != PLAN_RECOMPUTE && !plan_candidate_ok(candidates, &l->problem, at.config, at.tier))
        return err_set(err, ERR_FORMAT, "utility is out of range");
    return 0;
}

static void check_chunk(struct checking *k, int first)
{
    struct plan_candidates candidates;
    struct err err;
    int i = first, end = k->l->n - first < CHUNK ? k->l->n : first + CHUNK;

    if (plan_candidates_init(&candidates, &k->l->problem, &err)) {
        k->nomem = true;
        return;
    }
    while (i < end && !check_utilities(k, i, &candidates, &err))
        i++;
    for (int bad = k->bad; i < end && i < bad && !atomic_compare_exchange_weak(&k->bad, &bad, i);)
        ;
    plan_candidates_release(&candidates);
}

static void add_ids(struct checking *k)
{
    struct live_plan *l = k->l;
    struct err err;

    for (int i = 0; i < l->n && !k->nomem; i++) {
        int *slot = add_id(l, l->at[i].id, &err);
        if (slot)
            *slot = i;
        else
            k->nomem = true;
    }
}

static void check_or_add(void *arg, int i)
{
    if (i == 0)
        add_ids(arg);
    else
        check_chunk(arg, (i - 1) * CHUNK);
}

/* Checks the utilities of the contexts, and adds their ids. */
static int take_contexts(struct live_plan *l, const struct plan *plan, struct err *err)
{
    struct checking k = { .l = l, .plan = plan, .bad = l->n };

    parallel_do(parallel_threads(), 1 + (l->n + CHUNK - 1) / CHUNK, check_or_add, &k);
    if (k.nomem)
        return err_nomem(err);
    if (k.bad == l->n)
        return 0;
    return check_utilities(&k, k.bad, &l->candidates, err) ? err_wrap(err, "context '%.80s'", l->at[k.bad].id) : 0;
}

static int take_rows(struct live_plan *l, struct plan *plan, struct err *err)
{
    enum { SPARE_MIN = 64 }; // new contexts before the arrays must grow
    int n = l->opened.n, cap = n + n / 8 + SPARE_MIN;

    plan->placement = malloc(((size_t)n + 1) * sizeof(*plan->placement));
    if (!plan->placement || ARRAY_GROW(l, cap) || ARRAY_GROW(&l->number, cap) || !map_reserve(&l->ids, cap))
        return err_nomem(err);
    struct err later = { 0 };
    for (int i = 0; i < n && !later.code; i++)
        if (take_row(l, &l->opened.at[i], plan, &later))
            err_wrap(&later, "context '%.80s'", l->opened.at[i].id);
    if (take_contexts(l, plan, err)) /* reports the earliest bad context */
        return err->code;
    *err = later;
    return later.code;
}

/* Gives the planner what the manifest says, where it says. */
static int set_planner(struct live_plan *l, const struct plan *plan, struct err *err)
{
    const struct density_setup setup = live_setup(l);
    struct density_form form[LIVE_VARIANTS];
    int number;

    l->density = density_new(&setup, err);
    if (!l->density)
        return err->code;
    for (int i = 0; i < l->n; i++)
        l->all_uses += l->at[i].frequency;
    l->all_uses = fmin(fmax(l->all_uses, 1), ALL_USES_MAX);
    for (int i = 0; i < l->n; i++) {
        const struct density_context all = live_planned(l, &l->at[i], form);
        if (density_add(l->density, &all, &number, err) || density_put(l->density, number, plan->placement[i], err))
            return err->code;
        if (l->opened.uses)
            uses_put(density_uses(l->density), density_counts(l->density, i), l->at[i].variants.uses);
        else
            set_frequency(l, i, l->at[i].frequency);
    }
    if (l->opened.uses)
        uses_restore(density_uses(l->density), (double)l->opened.uses, l->opened.uses_weight);
    return 0;
}

int live_plan_open(struct live_plan *l, const char *path, struct err *err)
{
    struct plan plan = { 0 };

    *l = (struct live_plan){ .old_number = -1 };
    if (manifest_read(&l->opened, path, err))
        return err->code;
    int code = take_tiers(l, &plan, err);
    if (!code)
        code = take_rows(l, &plan, err);
    if (code)
        err_wrap(err, "'%s'", path);
    if (!code)
        code = set_planner(l, &plan, err) ? err->code : live_uses_init(l, err);
    plan_release(&plan);
    if (code)
        live_plan_close(l);
    return code;
}

void live_plan_close(struct live_plan *l)
{
    density_free(l->density);
    plan_candidates_release(&l->candidates);
    for (int k = 0; k < l->n; k++)
        free(l->at[k].own);
    free(l->old.own);
    free(l->at);
    free(l->number.at);
    map_release(&l->ids);
    manifest_release(&l->opened);
    *l = (struct live_plan){ 0 };
}
