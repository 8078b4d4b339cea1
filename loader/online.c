/* online.c - the contexts of an online plan, and the events that change them. */
#include "loader/online.h"

#include "loader/manifest_part.h"
#include "planner/utility.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GONE_LEAST = 4096, FIRST_ROOM = 64 };

static const double utility_most = 1e200; // sums of as many contexts as there can be stay finite

/* ---- what the planner sees ------------------------------------------------------- */

static double fill_options(const struct online *o, const struct online_context *c, int64_t *bytes, double *out)
{
    const struct tiers *tiers = &o->opened.tiers;
    const struct forms *f = &c->forms;
    double alpha = o->opened.alpha;
    double recompute = utility(alpha, 1, ttft_recompute(f->prefill_s, f->question_s), c->frequency);

    for (int v = 0; v < ONLINE_FORMS; v++) {
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

static double options(const void *arg, int context, int64_t *bytes, double *out)
{
    const struct online *o = arg;

    return fill_options(o, &o->at[context], bytes, out);
}

/* Fills o->options with those of a context, if the planner can count with them. */
static int set_options(struct online *o, const struct online_context *c, struct err *err)
{
    struct plan_options *to = &o->options;
    int n_tiers = o->problem.n_tiers;

    to->recompute = fill_options(o, c, to->bytes, to->utility);
    if (!(fabs(to->recompute) <= utility_most))
        return err_set(err, ERR_FORMAT, "utility is out of range");
    for (int v = 0; v < ONLINE_FORMS; v++)
        for (int t = 0; t < n_tiers && to->bytes[v] >= 0; t++)
            if (fabs(to->utility[v * n_tiers + t]) > utility_most)
                return err_set(err, ERR_FORMAT, "form '%s': utility is out of range", c->forms.at[v].config);
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
static int own(struct online_context *c, struct err *err)
{
    size_t forms = (size_t)c->forms.n * sizeof(struct form), texts = strlen(c->id) + DIGEST_HEX + 1;

    for (int i = 0; i < c->forms.n; i++)
        texts += c->forms.at[i].config ? strlen(c->forms.at[i].config) + 1 : 0;
    c->own = malloc(forms + texts);
    if (!c->own)
        return err_nomem(err);
    struct form *form = c->own;
    char *to = (char *)c->own + forms;
    for (int i = 0; i < c->forms.n; i++) {
        form[i] = c->forms.at[i];
        if (form[i].config)
            form[i].config = put_text(&to, form[i].config);
    }
    c->id = put_text(&to, c->id);
    c->token_digest = put_text(&to, c->token_digest);
    c->forms.at = form;
    return 0;
}

int online_find(const struct online *o, const char *id)
{
    int i = map_find(&o->ids, id, strlen(id));

    return i < 0 ? -1 : o->number[i];
}

/* Ids that are gone are forgotten when they are the most. */
static int forget_gone(struct online *o, struct err *err)
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
static int reserve(struct online *o, struct err *err)
{
    if (o->n == o->room) {
        int room = o->room + o->room / 2 + FIRST_ROOM;
        struct online_context *at = realloc(o->at, (size_t)room * sizeof(*at));
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
static int *name(struct online *o, const char *id, struct err *err)
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

static void begin(struct online *o)
{
    free(o->old.own);
    o->old = (struct online_context){ 0 };
    o->old_number = -1;
}

/* A failure of the planner leaves it unusable. */
static int settle(struct online *o, int code)
{
    o->broken = code != 0;
    return code;
}

static int check(const struct online *o, const struct online_context *c, struct err *err)
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
                           .forms = &c->forms };

    return manifest_check_row(&o->opened, &p, err);
}

int online_add(struct online *o, const struct online_context *c, struct err *err)
{
    struct online_context new = *c;
    int number;

    new.forms.min_quality = o->opened.min_quality;
    begin(o);
    if (check(o, &new, err) || set_options(o, &new, err) || forget_gone(o, err) || reserve(o, err) || own(&new, err))
        return err->code;
    int *named = name(o, new.id, err);
    if (!named || manage_add(o->manage, &o->options, &number, err)) {
        free(new.own);
        return settle(o, err->code);
    }
    *named = number;
    o->at[number] = new;
    o->n += number == o->n;
    return 0;
}

/* Puts forms in an order in which the present one, `now` at place `at`, keeps its number, or none has it. Returns how
 * many places are taken. at -1: there is none. */
static int arrange(struct form *to, const struct form *form, int n_forms, const struct form *now, int at)
{
    int n = 0, last = 0;

    memset(to, 0, ONLINE_FORMS * sizeof(*to));
    for (int i = 0; i < n_forms; i++) {
        bool stays = at >= 0 && strcmp(form[i].config, now->config) == 0;
        n += n == at && !stays;
        int place = stays ? at : n++;
        to[place] = form[i];
        last = place >= last ? place + 1 : last;
    }
    return last;
}

/* A pinned context keeps to its tier, so one of its new forms must fit there beside what there is. */
static int check_pin(const struct online *o, const struct online_context *c, const struct plan_choice *now,
                     struct err *err)
{
    int tier = c->forms.pin ? tiers_find(&o->opened.tiers, c->forms.pin) : -1;

    if (tier < 0)
        return 0;
    const struct online_context *is = &o->at[online_find(o, c->id)];
    int64_t held = now->tier == tier ? is->forms.at[now->config].bytes : 0, room = manage_state(o->manage)->room[tier];
    for (int i = 0; i < c->forms.n; i++)
        if (c->forms.at[i].bytes <= held || c->forms.at[i].bytes - held <= room)
            return 0;
    return err_set(err, ERR_FORMAT, "no form fits tier '%s', which it is pinned to", c->forms.pin);
}

/* What an update makes of a context: `form` NULL leaves the forms, which were checked when they came. */
static int renew(struct online *o, struct online_context *c, const struct form *form, int n_forms, int number,
                 struct err *err)
{
    struct plan_choice choice = manage_choice(o->manage, number);
    int at = choice.tier == PLAN_RECOMPUTE ? -1 : choice.config;
    struct form place[ONLINE_FORMS];
    struct online_context asked = *c;

    asked.forms.at = form;
    asked.forms.n = form ? n_forms : 0;
    if (check(o, &asked, err))
        return err->code;
    if (!form)
        return set_options(o, c, err);
    if (check_pin(o, &asked, &choice, err))
        return err->code;
    c->forms.n = arrange(place, form, n_forms, at < 0 ? NULL : &c->forms.at[at], at);
    c->forms.at = place;
    return set_options(o, c, err) ? err->code : own(c, err);
}

int online_update(struct online *o, int number, double frequency, const struct form *form, int n_forms, struct err *err)
{
    struct online_context new = o->at[number];

    begin(o);
    new.frequency = frequency;
    if (renew(o, &new, form, n_forms, number, err))
        return err->code;
    if (manage_update(o->manage, number, &o->options, err)) {
        if (form)
            free(new.own);
        return settle(o, err->code);
    }
    o->old = o->at[number];
    o->old_number = number;
    if (!form)
        o->old.own = NULL; /* still in use */
    o->at[number] = new;
    return 0;
}

int online_remove(struct online *o, int number, struct err *err)
{
    begin(o);
    if (manage_remove(o->manage, number, err))
        return settle(o, err->code);
    o->old = o->at[number];
    o->old_number = number;
    o->at[number] = (struct online_context){ 0 };
    o->number[map_find(&o->ids, o->old.id, strlen(o->old.id))] = -1;
    o->n_gone++;
    return 0;
}

const struct online_context *online_before(const struct online *o, int number)
{
    return number == o->old_number ? &o->old : &o->at[number];
}

const struct online_context *online_after(const struct online *o, int number)
{
    return o->at[number].id ? &o->at[number] : &o->old;
}

/* ---- opening ------------------------------------------------------------------------- */

/* The manifest's tiers, and prices that the planner can count with. */
static int take_tiers(struct online *o, struct plan *plan, struct err *err)
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
    o->problem = (struct plan_problem){ 0, ONLINE_FORMS, m->tiers.n, o->capacity, options, o };
    return plan_options_init(&o->options, &o->problem, err);
}

/* Where a row is, as a choice among its forms; counted in fill. */
static int take_choice(struct online *o, const struct placement *p, struct plan *plan, struct err *err)
{
    struct plan_choice c = { 0, p->tier };
    const char *pin = p->forms->pin, *tier = c.tier < 0 ? "recompute" : o->opened.tiers.at[c.tier].name;

    if (pin && strcmp(pin, tier) != 0)
        return err_set(err, ERR_FORMAT, "it is on tier '%s', but pinned to '%s'", tier, pin);
    if (c.tier != PLAN_RECOMPUTE) {
        c.config = (int)(forms_find(p->forms, p->config) - p->forms->at);
        if (p->bytes > o->capacity[c.tier] - plan->fill[c.tier])
            return err_set(err, ERR_FORMAT, "tier '%s' holds more than its capacity", tier);
        plan->fill[c.tier] += p->bytes;
    }
    plan->choice[plan->n_contexts] = c;
    return 0;
}

static int take_row(struct online *o, const struct placement *p, struct plan *plan, struct err *err)
{
    if (!p->forms && p->operation == OP_EVICT)
        return 0; /* it is gone */
    if (!p->forms)
        return err_set(err, ERR_FORMAT, "no forms are carried: the manifest was not made by evp-plan --online");
    struct online_context *c = &o->at[o->n];
    *c = (struct online_context){ p->id, p->token_digest, p->n_tokens, p->kv_bytes, p->frequency, *p->forms, NULL };
    if (take_choice(o, p, plan, err) || set_options(o, c, err))
        return err->code;
    const struct plan_choice *choice = &plan->choice[plan->n_contexts];
    if (p->tier >= 0 && !plan_option_ok(&o->options, &o->problem, choice->config, choice->tier))
        return err_set(err, ERR_FORMAT, "utility is out of range");
    int *named = name(o, c->id, err);
    if (!named)
        return err->code;
    *named = o->n++;
    plan->n_contexts++;
    return 0;
}

static int take_rows(struct online *o, struct plan *plan, struct err *err)
{
    o->room = o->number_room = o->opened.n + o->opened.n / 8 + FIRST_ROOM;
    o->at = malloc((size_t)o->room * sizeof(*o->at));
    o->number = malloc((size_t)o->number_room * sizeof(*o->number));
    plan->choice = malloc((size_t)o->room * sizeof(*plan->choice));
    if (!o->at || !o->number || !plan->choice)
        return err_nomem(err);
    for (int i = 0; i < o->opened.n; i++)
        if (take_row(o, &o->opened.at[i], plan, err))
            return err_wrap(err, "context '%.80s'", o->opened.at[i].id);
    return 0;
}

int online_open(struct online *o, const char *path, struct err *err)
{
    struct plan plan = { 0 };

    *o = (struct online){ .old_number = -1 };
    if (manifest_read(&o->opened, path, err))
        return err->code;
    int code = take_tiers(o, &plan, err);
    if (!code)
        code = take_rows(o, &plan, err);
    if (code)
        err_wrap(err, "'%s'", path);
    o->problem.n_contexts = o->n;
    if (!code) {
        o->manage = manage_new(&o->problem, &plan, err);
        code = o->manage ? 0 : err->code;
    }
    plan_release(&plan);
    if (code)
        online_close(o);
    return code;
}

void online_close(struct online *o)
{
    manage_free(o->manage);
    plan_options_release(&o->options);
    for (int k = 0; k < o->n; k++)
        free(o->at[k].own);
    free(o->old.own);
    free(o->at);
    free(o->number);
    map_release(&o->ids);
    manifest_release(&o->opened);
    *o = (struct online){ 0 };
}
