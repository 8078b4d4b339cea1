/* A cache by density against a slow model: every use ends where the formulas of planner/density.h say, with sums over
 * all uses and all contexts; tiers never hold too much; counts, weights and prices are those of their definitions. */
#include "planner/density.h"

#include "base/rng.h"

#include <criterion/criterion.h>

TestSuite(density);

enum { N = 16, FORMS = 4, TIERS = 3, USES = 600 };

/* ---- how often --------------------------------------------------------------- */

/* The same as planner/uses.h, over all uses again. */
struct slow_uses {
    int used[USES], n;
    double weight[USES_SCALES];
};

static double part(const struct slow_uses *s, int context, int j)
{
    double mine = 0, all = 0, scale = 128 * pow(4, j);

    for (int k = 0; k < s->n; k++) {
        double left = exp((k + 1 - s->n) / scale);
        mine += s->used[k] == context ? left : 0;
        all += left;
    }
    return s->weight[j] * mine / (all + 1);
}

static double chance(const struct slow_uses *s, int context)
{
    double sum = 0;

    for (int j = 0; j < USES_SCALES; j++)
        sum += part(s, context, j);
    return sum;
}

static void count(struct slow_uses *s, int context)
{
    double all = chance(s, context), step = fmax(1. / 300, 1. / (100 + s->n)), next[USES_SCALES];

    for (int j = 0; j < USES_SCALES; j++)
        next[j] = all > 0 ? part(s, context, j) / all : s->weight[j];
    for (int j = 0; j < USES_SCALES; j++)
        s->weight[j] += (next[j] - s->weight[j]) * step;
    s->used[s->n++] = context;
}

static void begin(struct slow_uses *s)
{
    s->n = 0;
    for (int j = 0; j < USES_SCALES; j++)
        s->weight[j] = 1. / USES_SCALES;
}

Test(density, chances_of_use_are_those_of_the_definition)
{
    static struct slow_uses slow;
    struct use_counts counts[N] = { 0 }, *c = counts;
    struct rng r = rng_new(1);
    struct uses u;

    uses_begin(&u);
    begin(&slow);
    for (int k = 0; k < USES; k++) {
        int i = (int)rng_below(&r, 1 + rng_below(&r, N));
        uses_count(&u, &c[i]);
        count(&slow, i);
        for (int x = 0; x < N; x++)
            cr_assert_float_eq(uses_chance(&u, &c[x]), chance(&slow, x), 1e-12, "use %d, context %d", k, x);
    }
    uses_forget(&u, &c[0]);
    cr_assert_eq(uses_chance(&u, &c[0]), 0);
}

/* So many uses of the latest ones, evenly, are what counting them one after the other gives. */
Test(density, counts_from_a_frequency)
{
    struct use_counts set = { 0 }, one = { 0 }, other = { 0 };
    double n[USES_SCALES], m[USES_SCALES];
    struct uses u, v;

    uses_begin(&u);
    uses_begin(&v);
    for (int k = 0; k < 4000; k++)
        uses_count(&u, k % 4 == 3 ? &one : &other);
    uses_set(&v, &set, 1000, 4000);
    uses_get(&u, &one, n);
    uses_get(&v, &set, m);
    for (int j = 0; j < USES_SCALES; j++)
        cr_assert_float_eq(m[j], n[j], .02 * n[j], "%d: %g %g", j, m[j], n[j]);
}

/* A day later everything is as it was saved. */
Test(density, restored_counts_go_on)
{
    struct use_counts a = { 0 }, b = { 0 }, again[2] = { { .at = 0 } };
    double n[USES_SCALES];
    struct uses u, v;

    uses_begin(&u);
    uses_begin(&v);
    for (int k = 0; k < 1000; k++)
        uses_count(&u, k % 3 ? &a : &b);
    uses_get(&u, &a, n);
    uses_put(&v, &again[0], n);
    uses_get(&u, &b, n);
    uses_put(&v, &again[1], n);
    uses_restore(&v, u.learned, u.weight);
    for (int k = 0; k < 50; k++) {
        uses_count(&u, &a);
        uses_count(&v, &again[0]);
        cr_assert_float_eq(uses_chance(&u, &b), uses_chance(&v, &again[1]), 1e-12);
        cr_assert_float_eq(u.weight[0], v.weight[0], 1e-12);
    }
}

/* ---- prices ------------------------------------------------------------------- */

/* A job every 0.1 s that takes .05 s: Pollaczek and Khinchine's mean wait is rate * E[S^2] / (2 (1 - busy)). */
Test(density, prices_are_derivatives_of_waits)
{
    struct prices p = { .n_gpus = 1, .n_tiers = 1 };

    prices_begin(&p);
    cr_assert(p.rate == 1 && prices_gpu(&p, 3) == 3 && p.read[0] == 1 && p.write[0] == 0);
    for (int k = 0; k < 5000; k++) {
        p.read_s[0] += .02;
        p.write_s[0] += .01;
        p.written[0] += 1000;
        prices_request(&p, 7 + k * .1, .05);
    }
    cr_assert_float_eq(p.rate, 10, 1e-3);
    double s = .2, waits = 10 * s * s / (2 * .5) + s * 100 * .05 * .05 / (2 * .25);
    cr_assert_float_eq(prices_gpu(&p, s), s + waits, 5e-3 * (s + waits), "%g %g", prices_gpu(&p, s), s + waits);
    cr_assert_float_eq(p.read[0], 1 / .7 + .2 / .49, 1e-2, "%g", p.read[0]);
    cr_assert_float_eq(p.write[0], .2 / .49, 1e-2, "%g", p.write[0]);
    cr_assert_float_eq(p.bytes_per_s[0], 1e4, 1e2);
    for (int k = 0; k < 5000; k++) /* more than there is: the price stays finite */
        prices_request(&p, 0, 1e9);
    cr_assert(isfinite(prices_gpu(&p, 1)) && p.last_s > 500);
}

/* ---- places -------------------------------------------------------------------- */

struct model {
    struct density_setup setup;
    struct density_form form[N][FORMS];
    double prefill_s[N];
    struct plan_placement at[N];
    int64_t free[TIERS];
    struct slow_uses uses;
};

static double value(const struct model *m, int i, int v, int t)
{
    const struct density_form *f = &m->form[i][v];
    const struct density_tier *tier = &m->setup.tier[t];

    return m->setup.goal.alpha * (f->quality - 1) + m->prefill_s[i] - tier->latency_s -
           (double)f->bytes * tier->read_s_per_byte - f->decompress_s;
}

static double write_cost(const struct model *m, int64_t bytes, int t)
{
    return (double)bytes * m->setup.move_cost / fmin((double)m->setup.tier[t].capacity, fmax(m->uses.n, 1));
}

/* What all in a tier lose, sorted by density; but for one. */
struct lost {
    double density, loss;
    int64_t bytes;
};

static int by_density(const void *a, const void *b)
{
    const struct lost *x = a, *y = b;

    return x->density < y->density ? -1 : x->density > y->density;
}

static int list(const struct model *m, int t, int but, double next_lowest, struct lost *out)
{
    int n = 0;

    for (int i = 0; i < N; i++) {
        if (i == but || m->at[i].tier != t)
            continue;
        double rate = chance(&m->uses, i), best = 0;
        for (int v = 0; v < FORMS && t + 1 < m->setup.n_tiers; v++) {
            int64_t bytes = m->form[i][v].bytes;
            if ((v == m->at[i].config || m->at[i].config == 0) && bytes <= m->setup.tier[t + 1].capacity)
                best = fmax(best,
                            rate * value(m, i, v, t + 1) - (double)bytes * next_lowest - write_cost(m, bytes, t + 1));
        }
        struct lost *l = &out[n++];
        l->bytes = m->form[i][m->at[i].config].bytes;
        l->loss = rate * value(m, i, m->at[i].config, t) - best;
        l->density = l->loss / (double)l->bytes;
    }
    qsort(out, (size_t)n, sizeof(*out), by_density);
    return n;
}

static double loss(const struct lost *l, int n, int64_t bytes)
{
    double sum = 0;

    for (int k = 0; k < n && bytes > 0; bytes -= l[k++].bytes)
        sum += fmax(l[k].loss, 0) * fmin(1, (double)bytes / (double)l[k].bytes);
    return sum;
}

/* Where the used context gains most. */
static struct plan_placement best_place(const struct model *m, int c, bool computed, double *most)
{
    struct plan_placement best = { 0, PLAN_RECOMPUTE };
    double lowest = 0, rate = chance(&m->uses, c);
    struct lost lost[N];

    *most = 0;
    for (int t = m->setup.n_tiers - 1; t >= 0; t--) {
        int64_t capacity = m->setup.tier[t].capacity;
        bool full = (double)m->free[t] < .02 * (double)capacity;
        int n = list(m, t, c, lowest, lost);
        lowest = n && full ? fmax(lost[0].density, 0) : 0;
        for (int v = 0; v < FORMS; v++) {
            bool same = m->at[c].tier >= 0 && m->at[c].config == v;
            int64_t bytes = m->form[c][v].bytes;
            if (bytes > capacity || !(computed || same || (m->at[c].tier >= 0 && m->at[c].config == 0)))
                continue;
            int64_t here = m->at[c].tier == t ? m->form[c][m->at[c].config].bytes : 0;
            double gain = rate * value(m, c, v, t);
            gain -= same && here ? (full ? loss(lost, n, bytes) : 0)
                                 : write_cost(m, bytes, t) + 1.6 * loss(lost, n, bytes - here - m->free[t]);
            if (gain > *most) {
                *most = gain;
                best = (struct plan_placement){ v, t };
            }
        }
    }
    return best;
}

/* Where the used context goes: what was read is given up if its next use is worth computing it for a better place. */
static struct plan_placement place(const struct model *m, int c, bool computed)
{
    double here, better;
    struct plan_placement to = best_place(m, c, computed, &here), best = best_place(m, c, true, &better);

    if (computed || to.tier < 0)
        return to;
    double lasts = fmin(fmin((double)m->setup.tier[best.tier].capacity, m->uses.n), 500);
    if ((better - here) * lasts > value(m, c, m->at[c].config, m->at[c].tier))
        to = (struct plan_placement){ 0, PLAN_RECOMPUTE };
    return to;
}

static void draw(struct model *m, struct rng *r)
{
    *m = (struct model){ .setup = { .n_tiers = 1 + (int)rng_below(r, TIERS),
                                    .n_gpus = 1,
                                    .goal = { .alpha = 3 * rng_unit(r) },
                                    .move_cost = rng_below(r, 2) ? 1e-3 * rng_unit(r) : 0 } };
    for (int t = 0; t < m->setup.n_tiers; t++) {
        m->free[t] = 50 + (int64_t)rng_below(r, 400);
        m->setup.tier[t] = (struct density_tier){
            .capacity = m->free[t], .pool = t, .latency_s = .1 * t, .read_s_per_byte = .002 * (t + 1) * rng_unit(r)
        };
    }
    for (int i = 0; i < N; i++) {
        m->at[i].tier = PLAN_RECOMPUTE;
        m->prefill_s[i] = 3 * rng_unit(r);
        for (int v = 0; v < FORMS; v++)
            m->form[i][v] = (struct density_form){ 10 + (int64_t)rng_below(r, 90), v ? rng_unit(r) : 1,
                                                   v ? .1 * rng_unit(r) : 0, 7 };
    }
    begin(&m->uses);
}

/* Carries out what the plan says: no operation may leave a tier too full. */
static void follow(struct model *m, const struct density_state *state)
{
    for (int k = 0; k < state->n_ops; k++) {
        const struct density_op *op = &state->op[k];
        struct plan_placement *at = &m->at[op->context];
        cr_assert(at->tier == op->from.tier && (at->tier < 0 || at->config == op->from.config));
        if (at->tier >= 0)
            m->free[at->tier] += m->form[op->context][at->config].bytes;
        *at = op->to;
        if (at->tier >= 0)
            m->free[at->tier] -= m->form[op->context][at->config].bytes;
        for (int t = 0; t < m->setup.n_tiers; t++)
            cr_assert_geq(m->free[t], 0);
    }
    for (int t = 0; t < m->setup.n_tiers; t++)
        cr_assert_eq(m->free[t], state->free[t]);
}

Test(density, a_use_ends_where_the_formulas_say)
{
    static struct model m;
    struct rng r = rng_new(3);
    int stored = 0, moved = 0;
    struct err err;

    for (int world = 0; world < 12; world++) {
        draw(&m, &r);
        struct density *d = density_new(&m.setup, &err);
        for (int i = 0; i < N; i++) {
            const struct density_context c = { m.prefill_s[i], 0, 0, 0, m.form[i], FORMS, 0, false };
            int number;
            cr_assert(!density_add(d, &c, &number, &err) && number == i);
        }
        for (int k = 0; k < 200; k++) {
            int i = (int)rng_below(&r, 1 + rng_below(&r, N));
            bool computed = m.at[i].tier < 0 || rng_below(&r, 4) == 0;
            count(&m.uses, i);
            struct plan_placement want = place(&m, i, computed), was = m.at[i];
            cr_assert_eq(density_used(d, i, &(struct density_use){ (double)NAN, computed }, &err), 0);
            follow(&m, density_state(d));
            cr_assert(m.at[i].tier == want.tier && (want.tier < 0 || m.at[i].config == want.config),
                      "world %d, use %d: %d on %d, not %d on %d", world, k, m.at[i].config, m.at[i].tier, want.config,
                      want.tier);
            stored += was.tier < 0 && want.tier >= 0;
            moved += was.tier >= 0 && (was.tier != want.tier || was.config != want.config);
        }
        density_free(d);
    }
    cr_assert(stored > 150 && moved > 100, "%d stored, %d moved", stored, moved);
}

/* Many contexts, pools, pins, changes, losses and removals: what is told is what is there. */
Test(density, accounts_hold_whatever_happens)
{
    enum { MANY = 600 };
    static struct plan_placement at[MANY];
    static int64_t bytes[MANY];
    struct rng r = rng_new(4);
    struct density_setup setup = { .n_tiers = 3, .n_gpus = 2, .goal = { 1, .5, 2 }, .move_cost = 1e-6 };
    struct err err;

    for (int t = 0; t < 3; t++)
        setup.tier[t] = (struct density_tier){ 4000 + 4000 * (t == 2), t == 1 ? 0 : t, .01, 1e-4, 1e-4, .1 };
    struct density *d = density_new(&setup, &err);
    for (int k = 0; k < 20000; k++) {
        int i = (int)rng_below(&r, MANY), number, what = (int)rng_below(&r, 20);
        struct density_form form[2] = { { 20 + (int64_t)rng_below(&r, 80), 1, 0, 7 },
                                        { 10, rng_unit(&r), .01, rng_below(&r, 8) } };
        const struct density_context c = { 1 + rng_unit(&r), .01, .1, .01, form, 2, 0, false };
        int64_t held[2] = { 0 };
        if (k < MANY)
            cr_assert(!density_add(d, &c, &number, &err) && number == k);
        else if (what == 0)
            cr_assert(!density_change(d, i, &c, &err) && !density_settle(d, i, &err));
        else if (what == 1) {
            density_lose(d, i);
            at[i].tier = PLAN_RECOMPUTE;
        } else
            cr_assert(!density_used(d, i, &(struct density_use){ k * .01, what < 10 }, &err));
        at[k < MANY ? k : i] = k < MANY ? (struct plan_placement){ 0, PLAN_RECOMPUTE } : at[i];
        const struct density_state *s = density_state(d);
        for (int o = 0; o < (what == 1 ? 0 : s->n_ops); o++) {
            cr_assert(at[s->op[o].context].tier == s->op[o].from.tier);
            at[s->op[o].context] = s->op[o].to;
            bytes[s->op[o].context] = s->op[o].to_bytes;
        }
        for (int x = 0; x < MANY; x++)
            if (k >= MANY && at[x].tier >= 0)
                held[at[x].tier == 2] += bytes[x];
        cr_assert(s->free[0] == 4000 - held[0] && s->free[1] == s->free[0] && s->free[2] == 8000 - held[1] &&
                      s->free[0] >= 0 && s->free[2] >= 0,
                  "event %d", k);
    }
    density_free(d);
}
