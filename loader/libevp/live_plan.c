/* live_plan.c - the contexts of an online plan, and the events that change them. */
#include "loader/libevp/live_plan.h"

#include "loader/formats/manifest_internal.h"
#include "planner/utility.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GONE_LEAST = 4096, FIRST_ROOM = 64 };

static const double utility_most = 1e200; // sums of as many contexts as there can be stay finite

/* ---- what the planner sees ------------------------------------------------------- */

static double fill_candidates(const struct live_plan *o, const struct live_context *c, int64_t *bytes, double *out)
{
    const struct tiers *tiers = &o->opened.tiers;
    const struct variants *f = &c->variants;
    double alpha = o->opened.alpha;
    double recompute = utility(alpha, 1, ttft_recompute(f->prefill_s, f->question_s), c->frequency);

    for (int v = 0; v < LIVE_VARIANTS; v++) {
        bytes[v] = v < f->n && f->at[v].config ? f->at[v].bytes : -1;
        for (int t = 0; t < tiers->n && bytes[v] >= 0; t++) {
            struct tier_speed speed = { tiers->at[t].latency_s, tiers->at[t].read_bytes_per_s };
            double ttft = ttft_stored(speed, bytes[v], f->at[v].decompress_s, f->question_s);
            out[v * tiers->n + t] = f->pin && strcmp(f->pin, tiers->at[t].name) != 0
                                        ? (double)NAN
                                        : utility(alpha, f->at[v].quality, ttft, c->frequency);
        }
    }
    return f->pin && strcmp(f->pin, "recompute") != 0 ? utility_unpinned(recompute) : recompute;
}

static double candidates(const void *arg, int context, int64_t *bytes, double *out)
{
    const struct live_plan *o = arg;

    return fill_candidates(o, &o->at[context], bytes, out);
}

/* Fills o->candidates with those of a context, if the planner can count with them. */
static int set_candidates(struct live_plan *o, const struct live_context *c, struct err *err)
{
    struct plan_candidates *to = &o->candidates;
    int n_tiers = o->problem.n_tiers;

    to->recompute = fill_candidates(o, c, to->bytes, to->utility);
    if (!(fabs(to->recompute) <= utility_most))
        return err_set(err, ERR_FORMAT, "utility is out of range");
    for (int v = 0; v < LIVE_VARIANTS; v++)
        for (int t = 0; t < n_tiers && to->bytes[v] >= 0; t++)
            if (fabs(to->utility[v * n_tiers + t]) > utility_most)
                return err_set(err, ERR_FORMAT, "form '%s': utility is out of range", c->variants.at[v].config);
    return 0;
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

/* Copies what a context points to into one allocation of its own. */
static int own(struct live_context *c, struct err *err)
{
    size_t variants = (size_t)c->variants.n * sizeof(struct variant_info), texts = strlen(c->id) + DIGEST_HEX + 1;

    for (int i = 0; i < c->variants.n; i++)
        texts += c->variants.at[i].config ? strlen(c->variants.at[i].config) + 1 : 0;
    c->own = malloc(variants + texts);
    if (!c->own)
        return err_nomem(err);
    struct variant_info *variant = c->own;
    char *to = (char *)c->own + variants;
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

int live_plan_find(const struct live_plan *o, const char *id)
{
    int i = map_find(&o->ids, id, strlen(id));

    return i < 0 ? -1 : o->number[i];
}

/* Ids that are gone are forgotten when they are the most. */
static int forget_gone(struct live_plan *o, struct err *err)
{
    struct map ids = { 0 };

    if (o->n_gone < GONE_LEAST || o->n_gone < o->ids.n / 2)
        return 0;
    for (int k = 0; k < o->n; k++)
        if (o->at[k].id && map_add(&ids, o->at[k].id, strlen(o->at[k].id), NULL) == MAP_NOMEM) {
            map_release(&ids);
            return err_nomem(err);
        }
    for (int k = 0, i = 0; k < o->n; k++)
        if (o->at[k].id)
            o->number[i++] = k;
    map_release(&o->ids);
    o->ids = ids;
    o->n_gone = 0;
    return 0;
}

/* Room for one more context, and for one more id. */
static int reserve(struct live_plan *o, struct err *err)
{
    if (o->n == o->room) {
        int room = o->room + o->room / 2 + FIRST_ROOM;
        struct live_context *at = realloc(o->at, (size_t)room * sizeof(*at));
        if (!at)
            return err_nomem(err);
        o->at = at;
        o->room = room;
    }
    if (o->ids.n < o->number_room)
        return 0;
    int room = o->number_room + o->number_room / 2 + FIRST_ROOM;
    int *number = realloc(o->number, (size_t)room * sizeof(*number));
    if (!number)
        return err_nomem(err);
    o->number = number;
    o->number_room = room;
    return 0;
}

/* An id that has none gets a number, to be set by the caller. */
static int *name(struct live_plan *o, const char *id, struct err *err)
{
    bool added;
    int i = map_add(&o->ids, id, strlen(id), &added);

    if (i < 0) {
        err_nomem(err);
        return NULL;
    }
    o->n_gone -= !added;
    o->number[i] = -1;
    return &o->number[i];
}

/* ---- events ------------------------------------------------------------------------- */

static void begin(struct live_plan *o)
{
    free(o->old.own);
    o->old = (struct live_context){ 0 };
    o->old_number = -1;
}

/* A failure of the planner leaves it unusable. */
static int settle(struct live_plan *o, int code)
{
    o->broken = code != 0;
    return code;
}

static int check(const struct live_plan *o, const struct live_context *c, struct err *err)
{
    struct placement p = { .id = c->id,
                           .token_digest = c->token_digest,
                           .config = "none",
                           .tier = -1,
                           .n_tokens = c->n_tokens,
                           .kv_bytes = c->kv_bytes,
                           .quality = 1,
                           .ttft_s = (double)NAN,
                           .frequency = c->frequency,
                           .operation = OP_NONE,
                           .variants = &c->variants };

    return manifest_check_row(&o->opened, &p, err);
}

int live_plan_add(struct live_plan *o, const struct live_context *c, struct err *err)
{
    struct live_context new = *c;
    int number;

    new.variants.min_quality = o->opened.min_quality;
    begin(o);
    if (check(o, &new, err) || set_candidates(o, &new, err) || forget_gone(o, err) || reserve(o, err) || own(&new, err))
        return err->code;
    int *named = name(o, new.id, err);
    if (!named || incremental_add(o->incremental, &o->candidates, &number, err)) {
        free(new.own);
        return settle(o, err->code);
    }
    *named = number;
    o->at[number] = new;
    o->n += number == o->n;
    return 0;
}

/* Puts variants in an order in which the present one, `now` at place `at`, keeps its number, or none has it. Returns
 * how many places are taken. at -1: there is none. */
static int arrange(struct variant_info *to, const struct variant_info *variant, int n_variants,
                   const struct variant_info *now, int at)
{
    int n = 0, last = 0;

    memset(to, 0, LIVE_VARIANTS * sizeof(*to));
    for (int i = 0; i < n_variants; i++) {
        bool stays = at >= 0 && strcmp(variant[i].config, now->config) == 0;
        n += n == at && !stays;
        int place = stays ? at : n++;
        to[place] = variant[i];
        last = place >= last ? place + 1 : last;
    }
    return last;
}

/* A pinned context keeps to its tier, so one of its new variants must fit there beside what there is. */
static int check_pin(const struct live_plan *o, const struct live_context *c, const struct plan_placement *now,
                     struct err *err)
{
    int tier = c->variants.pin ? tiers_find(&o->opened.tiers, c->variants.pin) : -1;

    if (tier < 0)
        return 0;
    const struct live_context *is = &o->at[live_plan_find(o, c->id)];
    int64_t held = now->tier == tier ? is->variants.at[now->config].bytes : 0,
            room = incremental_state(o->incremental)->room[tier];
    for (int i = 0; i < c->variants.n; i++)
        if (c->variants.at[i].bytes <= held || c->variants.at[i].bytes - held <= room)
            return 0;
    return err_set(err, ERR_FORMAT, "no form fits tier '%s', which it is pinned to", c->variants.pin);
}

/* What an update makes of a context: `variant` NULL leaves the variants, which were checked when they came. */
static int renew(struct live_plan *o, struct live_context *c, const struct variant_info *variant, int n_variants,
                 int number, struct err *err)
{
    struct plan_placement placement = incremental_placement(o->incremental, number);
    int at = placement.tier == PLAN_RECOMPUTE ? -1 : placement.config;
    struct variant_info place[LIVE_VARIANTS];
    struct live_context asked = *c;

    asked.variants.at = variant;
    asked.variants.n = variant ? n_variants : 0;
    if (check(o, &asked, err))
        return err->code;
    if (!variant)
        return set_candidates(o, c, err);
    if (check_pin(o, &asked, &placement, err))
        return err->code;
    c->variants.n = arrange(place, variant, n_variants, at < 0 ? NULL : &c->variants.at[at], at);
    c->variants.at = place;
    return set_candidates(o, c, err) ? err->code : own(c, err);
}

int live_plan_update(struct live_plan *o, int number, double frequency, const struct variant_info *variant,
                     int n_variants, struct err *err)
{
    struct live_context new = o->at[number];

    begin(o);
    new.frequency = frequency;
    if (renew(o, &new, variant, n_variants, number, err))
        return err->code;
    if (incremental_update(o->incremental, number, &o->candidates, err)) {
        if (variant)
            free(new.own);
        return settle(o, err->code);
    }
    o->old = o->at[number];
    o->old_number = number;
    if (!variant)
        o->old.own = NULL; /* still in use */
    o->at[number] = new;
    return 0;
}

int live_plan_remove(struct live_plan *o, int number, struct err *err)
{
    begin(o);
    if (incremental_remove(o->incremental, number, err))
        return settle(o, err->code);
    o->old = o->at[number];
    o->old_number = number;
    o->at[number] = (struct live_context){ 0 };
    o->number[map_find(&o->ids, o->old.id, strlen(o->old.id))] = -1;
    o->n_gone++;
    return 0;
}

const struct live_context *live_before(const struct live_plan *o, int number)
{
    return number == o->old_number ? &o->old : &o->at[number];
}

const struct live_context *live_after(const struct live_plan *o, int number)
{
    return o->at[number].id ? &o->at[number] : &o->old;
}

/* ---- opening ------------------------------------------------------------------------- */

/* The manifest's tiers, and prices that the planner can count with. */
static int take_tiers(struct live_plan *o, struct plan *plan, struct err *err)
{
    const struct manifest *m = &o->opened;

    if (!isfinite(m->alpha))
        return err_set(err, ERR_FORMAT, "field 'alpha' is not a number");
    for (int t = 0; t < m->tiers.n; t++) {
        o->capacity[t] = m->tiers.at[t].capacity;
        plan->price[t] = m->price[t];
        if (o->capacity[t] < INT64_MAX && m->price[t] * (double)o->capacity[t] > utility_most)
            return err_set(err, ERR_FORMAT, "field 'prices': that of tier '%s' is out of range", m->tiers.at[t].name);
    }
    o->problem = (struct plan_problem){ 0, LIVE_VARIANTS, m->tiers.n, o->capacity, candidates, o };
    return plan_candidates_init(&o->candidates, &o->problem, err);
}

/* Where a row is, as a placement among its variants; counted in fill. */
static int take_placement(struct live_plan *o, const struct placement *p, struct plan *plan, struct err *err)
{
    struct plan_placement c = { 0, p->tier };
    const char *pin = p->variants->pin, *tier = c.tier < 0 ? "recompute" : o->opened.tiers.at[c.tier].name;

    if (pin && strcmp(pin, tier) != 0)
        return err_set(err, ERR_FORMAT, "it is on tier '%s', but pinned to '%s'", tier, pin);
    if (c.tier != PLAN_RECOMPUTE) {
        c.config = (int)(variants_find(p->variants, p->config) - p->variants->at);
        if (p->bytes > o->capacity[c.tier] - plan->fill[c.tier])
            return err_set(err, ERR_FORMAT, "tier '%s' holds more than its capacity", tier);
        plan->fill[c.tier] += p->bytes;
    }
    plan->placement[plan->n_contexts] = c;
    return 0;
}

static int take_row(struct live_plan *o, const struct placement *p, struct plan *plan, struct err *err)
{
    if (!p->variants && p->operation == OP_EVICT)
        return 0; /* it is gone */
    if (!p->variants)
        return err_set(err, ERR_FORMAT, "no forms are carried: the manifest was not made by evp-plan --online");
    struct live_context *c = &o->at[o->n];
    *c = (struct live_context){ p->id, p->token_digest, p->n_tokens, p->kv_bytes, p->frequency, *p->variants, NULL };
    if (take_placement(o, p, plan, err) || set_candidates(o, c, err))
        return err->code;
    const struct plan_placement *placement = &plan->placement[plan->n_contexts];
    if (p->tier >= 0 && !plan_candidate_ok(&o->candidates, &o->problem, placement->config, placement->tier))
        return err_set(err, ERR_FORMAT, "utility is out of range");
    int *named = name(o, c->id, err);
    if (!named)
        return err->code;
    *named = o->n++;
    plan->n_contexts++;
    return 0;
}

static int take_rows(struct live_plan *o, struct plan *plan, struct err *err)
{
    o->room = o->number_room = o->opened.n + o->opened.n / 8 + FIRST_ROOM;
    o->at = malloc((size_t)o->room * sizeof(*o->at));
    o->number = malloc((size_t)o->number_room * sizeof(*o->number));
    plan->placement = malloc((size_t)o->room * sizeof(*plan->placement));
    if (!o->at || !o->number || !plan->placement)
        return err_nomem(err);
    for (int i = 0; i < o->opened.n; i++)
        if (take_row(o, &o->opened.at[i], plan, err))
            return err_wrap(err, "context '%.80s'", o->opened.at[i].id);
    return 0;
}

int live_plan_open(struct live_plan *o, const char *path, struct err *err)
{
    struct plan plan = { 0 };

    *o = (struct live_plan){ .old_number = -1 };
    if (manifest_read(&o->opened, path, err))
        return err->code;
    int code = take_tiers(o, &plan, err);
    if (!code)
        code = take_rows(o, &plan, err);
    if (code)
        err_wrap(err, "'%s'", path);
    o->problem.n_contexts = o->n;
    if (!code) {
        o->incremental = incremental_new(&o->problem, &plan, err);
        code = o->incremental ? 0 : err->code;
    }
    plan_release(&plan);
    if (code)
        live_plan_close(o);
    return code;
}

void live_plan_close(struct live_plan *o)
{
    incremental_free(o->incremental);
    plan_candidates_release(&o->candidates);
    for (int k = 0; k < o->n; k++)
        free(o->at[k].own);
    free(o->old.own);
    free(o->at);
    free(o->number);
    map_release(&o->ids);
    manifest_release(&o->opened);
    *o = (struct live_plan){ 0 };
}
