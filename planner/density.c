/* density.c - samples of what each pool holds, sorted by density, and the placement with the greatest gain. */
#include "planner/density.h"

#include "base/array.h"
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 16, TRIES = 150 };

/* A tier with less than this share free is full. What comes in must be worth this many times what leaves. */
static const double full_below = .02, margin = 1.6;

static const struct plan_placement nowhere = { 0, PLAN_RECOMPUTE };

struct item {
    struct density_form *form; // (n_forms) owned; NULL: removed
    double computed_s, question_s, computed_sd_s, question_sd_s;
    int n_forms, whole;
    bool pinned;
    struct plan_placement at;
    int64_t bytes; // there
    int index;     // in its pool's list
    struct use_counts uses;
};

struct sampled {
    double density, loss; // loss: per second
    int64_t bytes;
    int item, form; // form: that goes to the next tier; -1: it is dropped
};

/* Tiers with a common capacity, by the first of them. */
struct pool {
    int64_t free;
    struct {
        int *at;
        int n, cap;
    } items;                       // in it, but for pinned ones
    struct sampled sample[SAMPLE]; // by rising density
    int n_sampled;
    double lowest; // density, if the pool is full
};

struct density {
    struct density_state state;
    struct density_setup setup;
    int next[PLAN_TIERS]; // the first tier of a later pool, or n_tiers
    struct prices prices;
    struct uses uses;
    struct rng rng;
    struct pool *pool; // (T)
    struct {
        struct item *at;
        int n, cap;
    } items;
    struct {
        int *at;
        int n, cap;
    } unused; // numbers of removed contexts
    struct {
        struct density_op *at;
        int n, cap;
    } ops;
    int failed;
};

static struct pool *pool_of(const struct density *d, int tier)
{
    return &d->pool[d->setup.tier[tier].pool];
}

/* ---- values ---------------------------------------------------------------- */

/* Per second. */
static double rate_of(const struct density *d, const struct item *c)
{
    return uses_chance(&d->uses, &c->uses) * d->prices.rate;
}

static bool may(const struct density *d, const struct item *c, int form, int tier)
{
    const struct density_form *f = &c->form[form];

    return f->bytes >= 0 && f->tiers >> tier & 1 && f->bytes <= d->setup.tier[tier].capacity;
}

/* Of a use. */
static double value(const struct density *d, const struct item *c, int form, int tier)
{
    const struct plan_goal *goal = &d->setup.goal;
    const struct density_tier *t = &d->setup.tier[tier];
    const struct density_form *f = &c->form[form];
    double read_s = (double)f->bytes * t->read_s_per_byte, gpu_s = f->decompress_s + c->question_s;
    double read = t->latency_s + read_s * d->prices.read[tier] + prices_gpu(&d->prices, gpu_s);
    double late_s = 0;

    if (goal->slo_weight > 0)
        late_s = lateness(c->computed_s, c->computed_sd_s, goal->slo_ttft_s) -
                 lateness(t->latency_s + read_s + gpu_s,
                          sd_of_sum(t->read_spread * (t->latency_s + read_s), c->question_sd_s), goal->slo_ttft_s);
    return goal->alpha * (f->quality - 1) + prices_gpu(&d->prices, c->computed_s) - read + goal->slo_weight * late_s;
}

/* The time that things stay on a tier: what it takes to write its capacity. */
static double stay_s(const struct density *d, int tier)
{
    const struct prices *p = &d->prices;
    double so_far = fmax(p->timed ? p->last_s - p->first_s : d->uses.age, 1);

    return fmin((double)d->setup.tier[tier].capacity / fmax(p->bytes_per_s[tier], 1), so_far);
}

/* Of writing, per second. */
static double write_cost(const struct density *d, int64_t bytes, int tier)
{
    double each = d->setup.tier[tier].write_s_per_byte * d->prices.write[tier] + d->setup.move_cost;

    return (double)bytes * each / stay_s(d, tier);
}

/* The best form on the next tier, and what it gains there; -1: none gains. */
static int alternative(const struct density *d, const struct item *c, double rate, double *gain)
{
    int next = d->next[c->at.tier], best = -1;

    *gain = 0;
    for (int v = 0; v < c->n_forms && next < d->setup.n_tiers; v++) {
        if ((v != c->at.config && c->at.config != c->whole) || !may(d, c, v, next))
            continue;
        double at_margin = (double)c->form[v].bytes * pool_of(d, next)->lowest;
        double here = rate * value(d, c, v, next) - at_margin - write_cost(d, c->form[v].bytes, next);
        if (here <= *gain)
            continue;
        *gain = here;
        best = v;
    }
    return best;
}

/* ---- samples --------------------------------------------------------------- */

static bool is_full(const struct density *d, int tier)
{
    return (double)pool_of(d, tier)->free < full_below * (double)d->setup.tier[tier].capacity;
}

static int by_density(const void *a, const void *b)
{
    const struct sampled *x = a, *y = b;

    if (x->density != y->density)
        return x->density < y->density ? -1 : 1;
    return x->item - y->item;
}

static void add_sampled(const struct density *d, struct pool *p, int number)
{
    const struct item *c = &d->items.at[number];
    struct sampled *s = &p->sample[p->n_sampled++];
    double rate = rate_of(d, c), gain;

    *s = (struct sampled){ .bytes = c->bytes, .item = number };
    s->form = alternative(d, c, rate, &gain);
    double loss = rate * value(d, c, c->at.config, c->at.tier) - gain;
    s->loss = isnan(loss) ? 0 : loss;
    s->density = s->loss / fmax((double)s->bytes, 1);
}

/* Draws a sample of a pool's items, but for one, and sorts it. */
static void sample(struct density *d, int pool, int but)
{
    struct pool *p = &d->pool[pool];
    int n = p->items.n;

    p->n_sampled = 0;
    for (int k = 0; k < n && p->n_sampled < SAMPLE; k++) {
        int other = k + (n > SAMPLE ? (int)rng_below(&d->rng, (uint64_t)(n - k)) : 0);
        int a = p->items.at[k], b = p->items.at[other];
        p->items.at[k] = b;
        p->items.at[other] = a;
        d->items.at[a].index = other;
        d->items.at[b].index = k;
        if (b != but)
            add_sampled(d, p, b);
    }
    qsort(p->sample, (size_t)p->n_sampled, sizeof(*p->sample), by_density);
    p->lowest = p->n_sampled && is_full(d, pool) ? fmax(p->sample[0].density, 0) : 0;
}

/* The bytes that must become free for so many, which may be below 0; free bytes may be unlimited. */
static int64_t lacking(const struct pool *p, int64_t bytes)
{
    return bytes <= p->free ? 0 : bytes - p->free;
}

/* What the items lose per second that make room for so many bytes. */
static double loss_of(const struct pool *p, int64_t bytes)
{
    double loss = 0;

    for (int k = 0; k < p->n_sampled && bytes > 0; k++) {
        const struct sampled *s = &p->sample[k];
        double part = s->bytes > bytes ? (double)bytes / (double)s->bytes : 1;
        loss += fmax(s->loss, 0) * part;
        bytes -= s->bytes;
    }
    return loss;
}

/* ---- moving ---------------------------------------------------------------- */

static void take_out(struct density *d, struct item *c)
{
    struct pool *p = pool_of(d, c->at.tier);

    if (p->free < INT64_MAX)
        p->free += c->bytes;
    d->state.n_stored--;
    if (!c->pinned) {
        int last = p->items.at[--p->items.n];
        p->items.at[c->index] = last;
        d->items.at[last].index = c->index;
    }
    c->at = nowhere;
    c->bytes = 0;
}

static void put_in(struct density *d, int number, struct plan_placement at)
{
    struct item *c = &d->items.at[number];
    struct pool *p = pool_of(d, at.tier);

    if (p->free < INT64_MAX)
        p->free -= c->form[at.config].bytes;
    d->state.n_stored++;
    c->at = at;
    c->bytes = c->form[at.config].bytes;
    c->index = p->items.n;
    if (!c->pinned)
        d->failed |= ARRAY_PUSH(&p->items, number);
}

static void move(struct density *d, int number, struct plan_placement to)
{
    struct item *c = &d->items.at[number];
    const int64_t bytes = to.tier == PLAN_RECOMPUTE ? 0 : c->form[to.config].bytes;
    const struct density_op op = { number, c->at, to, c->bytes, bytes };

    if (c->at.tier != PLAN_RECOMPUTE)
        take_out(d, c);
    if (to.tier != PLAN_RECOMPUTE) {
        const struct density_tier *t = &d->setup.tier[to.tier];
        put_in(d, number, to);
        d->prices.write_s[to.tier] += (double)op.to_bytes * t->write_s_per_byte;
        d->prices.written[to.tier] += (double)op.to_bytes;
    }
    d->failed |= ARRAY_PUSH(&d->ops, op);
}

/* The bytes that a context needs in a pool besides those it has there. */
static int64_t needed(const struct density *d, const struct item *c, struct plan_placement to)
{
    bool beside = c->at.tier != PLAN_RECOMPUTE && pool_of(d, c->at.tier) == pool_of(d, to.tier);

    return c->form[to.config].bytes - (beside ? c->bytes : 0);
}

static void make_room(struct density *d, int tier, int64_t bytes, int but);

/* An item makes room: it goes to the next tier if it gains more there than it displaces, or is dropped. */
static void displace(struct density *d, const struct sampled *s, int but)
{
    const struct item *c = &d->items.at[s->item];
    int next = d->next[c->at.tier];
    const struct plan_placement to = { s->form, next };

    if (s->form >= 0) {
        int64_t bytes = c->form[s->form].bytes;
        sample(d, d->setup.tier[next].pool, but);
        double gain = rate_of(d, c) * value(d, c, s->form, next) - write_cost(d, bytes, next);
        bool gains = gain > loss_of(pool_of(d, next), lacking(pool_of(d, next), bytes));
        if (gains)
            make_room(d, next, bytes, but);
        if (gains && pool_of(d, next)->free >= bytes) {
            move(d, s->item, to);
            return;
        }
    }
    move(d, s->item, nowhere);
}

/* Frees bytes in the pool of a tier, as far as there are items to displace. */
static void make_room(struct density *d, int tier, int64_t bytes, int but)
{
    struct pool *p = pool_of(d, tier);

    for (int k = 0, tries = 0; p->free < bytes && tries < TRIES; k++) {
        if (k == p->n_sampled) {
            sample(d, d->setup.tier[tier].pool, but);
            tries += p->n_sampled ? 1 : TRIES;
            k = -1;
            continue;
        }
        const struct sampled s = p->sample[k];
        displace(d, &s, but);
    }
}

static bool stays(const struct item *c, struct plan_placement to)
{
    return to.tier == c->at.tier &&
           (to.tier == PLAN_RECOMPUTE || (to.config == c->at.config && c->form[to.config].bytes == c->bytes));
}

/* What a placement gains per second; 0 or less: nothing. */
static double gain_of(const struct density *d, const struct item *c, struct plan_placement to, double rate)
{
    const struct pool *p = pool_of(d, to.tier);
    double worth = rate * value(d, c, to.config, to.tier);

    if (stays(c, to))
        return worth - (is_full(d, to.tier) ? loss_of(p, c->form[to.config].bytes) : 0);
    return worth - write_cost(d, c->form[to.config].bytes, to.tier) - margin * loss_of(p, lacking(p, needed(d, c, to)));
}

/* *most: what that gains per second. */
static struct plan_placement best_place(const struct density *d, const struct item *c, bool computed, double *most)
{
    struct plan_placement best = nowhere;
    double rate = rate_of(d, c);
    bool any = computed || (c->at.tier != PLAN_RECOMPUTE && c->at.config == c->whole);

    *most = c->pinned ? -HUGE_VAL : 0;
    for (int t = 0; t < d->setup.n_tiers; t++)
        for (int v = 0; v < c->n_forms; v++) {
            bool same = c->at.tier != PLAN_RECOMPUTE && c->at.config == v;
            if (!(any || same) || !may(d, c, v, t))
                continue;
            const struct plan_placement to = { v, t };
            double gain = gain_of(d, c, to, rate);
            if (!(gain > *most) || (c->pinned && needed(d, c, to) > pool_of(d, t)->free))
                continue;
            *most = gain;
            best = to;
        }
    return best;
}

static void tell_free(struct density *d)
{
    for (int t = 0; t < d->setup.n_tiers; t++)
        d->state.free[t] = pool_of(d, t)->free;
}

static int end_event(struct density *d, struct err *err)
{
    tell_free(d);
    d->state.op = d->ops.at;
    d->state.n_ops = d->ops.n;
    return d->failed ? err_nomem(err) : 0;
}

/* Where a context should go that was read: where it may go as it is, or nowhere, if what its next use then costs more,
 * because it is computed, is less than what a better place gains for as long as things stay. */
static struct plan_placement place_of_read(const struct density *d, const struct item *c)
{
    double as_it_is, computed;
    struct plan_placement to = best_place(d, c, false, &as_it_is), better = best_place(d, c, true, &computed);

    if (to.tier == PLAN_RECOMPUTE || c->pinned)
        return to;
    double lasts_s = fmin(stay_s(d, better.tier), PRICES_REQUESTS / d->prices.rate);
    return (computed - as_it_is) * lasts_s > value(d, c, c->at.config, c->at.tier) ? nowhere : to;
}

/* Finds a context its place. */
static int settle(struct density *d, int number, bool computed, struct err *err)
{
    const struct item *c = &d->items.at[number];

    for (int t = d->setup.n_tiers - 1; t >= 0; t--)
        if (d->setup.tier[t].pool == t)
            sample(d, t, number);
    double gain;
    struct plan_placement to = computed ? best_place(d, c, true, &gain) : place_of_read(d, c);
    if (to.tier != PLAN_RECOMPUTE && !stays(c, to)) {
        make_room(d, to.tier, needed(d, c, to), number);
        to = needed(d, c, to) <= pool_of(d, to.tier)->free ? to : nowhere;
    }
    if (!stays(c, to))
        move(d, number, to);
    return end_event(d, err);
}

/* ---- events ---------------------------------------------------------------- */

int density_used(struct density *d, int context, const struct density_use *use, struct err *err)
{
    struct item *c = &d->items.at[context];
    bool read = !use->computed && c->at.tier != PLAN_RECOMPUTE;
    double gpu_s = read ? c->form[c->at.config].decompress_s + c->question_s : c->computed_s;

    d->ops.n = 0;
    if (!isnan(use->at_s))
        prices_request(&d->prices, use->at_s, gpu_s);
    if (read)
        d->prices.read_s[c->at.tier] += (double)c->bytes * d->setup.tier[c->at.tier].read_s_per_byte;
    uses_count(&d->uses, &c->uses);
    return settle(d, context, !read, err);
}

int density_settle(struct density *d, int context, struct err *err)
{
    d->ops.n = 0;
    return settle(d, context, true, err);
}

/* Takes over what is known of a context. */
static int take_over(struct item *c, const struct density_context *all, struct err *err)
{
    size_t bytes = (size_t)all->n_forms * sizeof(*c->form);
    struct density_form *own = realloc(c->form, bytes + 1);

    if (!own)
        return err_nomem(err);
    if (bytes)
        memcpy(own, all->form, bytes);
    for (int v = 0; v < all->n_forms; v++)
        own[v].decompress_s = isnan(own[v].decompress_s) ? 0 : own[v].decompress_s;
    c->form = own;
    c->n_forms = all->n_forms;
    c->whole = all->whole;
    c->pinned = all->pinned;
    c->computed_s = ttft_recomputed(all->prefill_s, all->question_s);
    c->computed_sd_s = sd_of_sum(all->prefill_sd_s, all->question_sd_s);
    c->question_s = all->question_s;
    c->question_sd_s = all->question_sd_s;
    return 0;
}

int density_add(struct density *d, const struct density_context *all, int *context, struct err *err)
{
    const struct item new = { .at = nowhere, .uses = { .at = d->uses.age } };

    d->ops.n = 0;
    if (d->unused.n > 0)
        *context = d->unused.at[--d->unused.n];
    else if (ARRAY_PUSH(&d->items, new))
        return err_nomem(err);
    else
        *context = d->items.n - 1;
    d->items.at[*context] = new;
    d->state.n_contexts++;
    return take_over(&d->items.at[*context], all, err) ? err->code : end_event(d, err);
}

int density_put(struct density *d, int context, struct plan_placement at, struct err *err)
{
    d->ops.n = 0;
    if (at.tier != PLAN_RECOMPUTE)
        put_in(d, context, at);
    return end_event(d, err);
}

int density_change(struct density *d, int context, const struct density_context *all, struct err *err)
{
    return take_over(&d->items.at[context], all, err);
}

int density_remove(struct density *d, int context, struct err *err)
{
    struct item *c = &d->items.at[context];

    d->ops.n = 0;
    if (c->at.tier != PLAN_RECOMPUTE)
        move(d, context, nowhere);
    uses_forget(&d->uses, &c->uses);
    free(c->form);
    c->form = NULL;
    d->state.n_contexts--;
    d->failed |= ARRAY_PUSH(&d->unused, context);
    return end_event(d, err);
}

void density_lose(struct density *d, int context)
{
    if (d->items.at[context].at.tier != PLAN_RECOMPUTE)
        take_out(d, &d->items.at[context]);
    tell_free(d);
}

/* ---- life ------------------------------------------------------------------ */

static void set_up(struct density *d)
{
    int n = d->setup.n_tiers;

    for (int t = 0; t < n; t++) {
        const struct density_tier *tier = &d->setup.tier[t];
        d->state.free[t] = d->pool[t].free = tier->capacity;
        for (d->next[t] = t + 1; d->next[t] < n && d->setup.tier[d->next[t]].pool <= tier->pool; d->next[t]++)
            ;
    }
    uses_begin(&d->uses);
    d->prices = (struct prices){ .n_gpus = d->setup.n_gpus, .n_tiers = n };
    prices_begin(&d->prices);
    d->rng = rng_new(1);
}

struct density *density_new(const struct density_setup *setup, struct err *err)
{
    struct density *d = calloc(1, sizeof(*d));

    if (d)
        d->pool = calloc((size_t)setup->n_tiers + 1, sizeof(*d->pool));
    if (!d || !d->pool) {
        err_nomem(err);
        density_free(d);
        return NULL;
    }
    d->setup = *setup;
    set_up(d);
    return d;
}

void density_free(struct density *d)
{
    if (!d)
        return;
    for (int i = 0; i < d->items.n; i++)
        free(d->items.at[i].form);
    for (int t = 0; t < d->setup.n_tiers; t++)
        free(d->pool[t].items.at);
    free(d->pool);
    free(d->items.at);
    free(d->unused.at);
    free(d->ops.at);
    free(d);
}

struct plan_placement density_placement(const struct density *d, int context)
{
    return d->items.at[context].at;
}

struct uses *density_uses(struct density *d)
{
    return &d->uses;
}

struct use_counts *density_counts(struct density *d, int context)
{
    return &d->items.at[context].uses;
}

const struct density_state *density_state(const struct density *d)
{
    return &d->state;
}
