/* subproblem.c - evaluates L; cutting planes; reduced-cost fixing. */
#include "planner/subproblem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CALL_OPTIONS = 64 }; // fixed cost of an evaluation, in options

static const double good_enough = 0.1; // share of (bound - target) that need not be closed
static const double smoothing = 0.3;   // weight of the best prices so far in a query; the rest is the master's minimum
static const double min_weight = 1e-9;

int subproblem_init(struct subproblem *s, int n_contexts, int n_options)
{
    size_t n = (size_t)n_contexts;

    *s = (struct subproblem){ .context = calloc(n + 1, sizeof(*s->context)),
                              .first = calloc(n + 2, sizeof(*s->first)),
                              .option = calloc((size_t)n_options + 1, sizeof(*s->option)),
                              .decided = calloc(n + 1, sizeof(*s->decided)) };
    return s->context && s->first && s->option && s->decided ? 0 : -1;
}

void subproblem_copy(struct subproblem *to, const struct subproblem *from, int n_contexts)
{
    memcpy(to->context, from->context, (size_t)from->n * sizeof(*to->context));
    memcpy(to->first, from->first, ((size_t)from->n + 1) * sizeof(*to->first));
    memcpy(to->option, from->option, (size_t)from->first[from->n] * sizeof(*to->option));
    memcpy(to->decided, from->decided, (size_t)n_contexts * sizeof(*to->decided));
    memcpy(to->left, from->left, sizeof(to->left));
    to->n = from->n;
    to->n_knapsacks = from->n_knapsacks;
    to->utility = from->utility;
}

void subproblem_release(struct subproblem *s)
{
    free(s->context);
    free(s->first);
    free(s->option);
    free(s->decided);
    *s = (struct subproblem){ 0 };
}

int bound_init(struct bound *b, int n_contexts)
{
    size_t n = (size_t)n_contexts + 1;

    b->n_cuts = 0;
    b->choices = malloc(SUBPROBLEM_CUTS * n * sizeof(*b->choices));
    for (size_t k = 0; b->choices && k < SUBPROBLEM_CUTS; k++)
        b->cut[k].choice = b->choices + k * n;
    return b->choices ? 0 : -1;
}

void bound_release(struct bound *b)
{
    free(b->choices);
    b->choices = NULL;
}

/* ---- one evaluation ---------------------------------------------------------- */

/* A context's best option on its side. price_after_none begins with 0, the price of options without a knapsack. */
static int best_option(const struct subproblem *s, int i, const struct subproblem_side *side,
                       const double *price_after_none, double *value)
{
    double max = -HUGE_VAL;
    int best = -1;

    for (int k = s->first[i]; k < s->first[i + 1]; k++) {
        const struct option *o = &s->option[k];
        double v = o->utility - price_after_none[o->knapsack + 1] * o->bytes;
        if (i == side->context && !side_has(side, o))
            continue;
        best = v > max ? k : best;
        max = v > max ? v : max;
    }
    *value = max;
    return best;
}

double subproblem_evaluate(const struct subproblem *s, const struct subproblem_side *side, struct cut *cut,
                           struct search_state *state)
{
    double price[PLAN_TIERS + 1] = { 0 }, demand[PLAN_TIERS + 1] = { 0 };
    double value = s->utility, utility = s->utility, min_free = 0;

    memcpy(price + 1, cut->price, (size_t)s->n_knapsacks * sizeof(*price));
    for (int i = 0; i < s->n; i++) {
        double own;
        int k = best_option(s, i, side, price, &own);
        const struct option *o = &s->option[k];
        value += own;
        utility += o->utility;
        demand[o->knapsack + 1] += o->bytes;
        cut->choice[i] = k;
    }
    for (int d = 0; d < s->n_knapsacks; d++) {
        cut->free[d] = s->left[d] - demand[d + 1];
        min_free = fmin(min_free, cut->free[d]);
        value += cut->price[d] * s->left[d];
    }
    cut->utility = utility;
    state->options -= s->first[s->n] + CALL_OPTIONS;
    if (min_free >= 0 && utility > state->target)
        state->found(state->arg, s, cut);
    return value;
}

/* ---- the bound ----------------------------------------------------------------- */

static void keep_best(struct bound *b, const struct cut *cut, double value)
{
    if (value >= b->value)
        return;
    b->value = value;
    memcpy(b->price, cut->price, sizeof(b->price));
}

/* L of a cut's plan at the cut's prices. */
static double value_of(const struct cut *cut, int n_knapsacks)
{
    double value = cut->utility;

    for (int d = 0; d < n_knapsacks; d++)
        value += cut->price[d] * cut->free[d];
    return value;
}

/* Appends a cut to the master, which measures prices in units of max_price. */
static int append_cut(struct search_state *state, const struct cut *cut, int n_knapsacks)
{
    double slope[PLAN_TIERS];

    for (int d = 0; d < n_knapsacks; d++)
        slope[d] = cut->free[d] * state->max_price[d];
    return master_lp_append(&state->master, cut->utility, slope);
}

/* Keeps the cuts with weight. */
static void keep_mix(struct bound *b, const struct master_lp *m)
{
    int n = 0;

    for (int k = 0; k < m->n_cuts && n <= m->n_dims; k++) {
        if (m->weight[k] <= min_weight)
            continue;
        struct cut cut = b->cut[k];
        cut.weight = m->weight[k];
        b->cut[k] = b->cut[n];
        b->cut[n++] = cut;
    }
    b->n_cuts = n;
}

void subproblem_bound(const struct subproblem *s, const struct subproblem_side *side, struct bound *b,
                      struct search_state *state)
{
    double unit[PLAN_TIERS];
    struct master_lp *m = &state->master;

    for (int d = 0; d < s->n_knapsacks; d++)
        unit[d] = 1;
    master_lp_init(m, s->n_knapsacks, unit);
    b->value = HUGE_VAL;
    for (int k = 0; k < b->n_cuts; k++) {
        keep_best(b, &b->cut[k], value_of(&b->cut[k], s->n_knapsacks));
        if (b->value <= state->target || append_cut(state, &b->cut[k], s->n_knapsacks))
            return;
    }
    if (b->n_cuts)
        master_lp_solve(m);
    for (int k = b->n_cuts; k < SUBPROBLEM_CUTS; k++) {
        struct cut *cut = &b->cut[k];
        for (int d = 0; d < s->n_knapsacks; d++)
            cut->price[d] =
                m->n_cuts ? (1 - smoothing) * m->at[d] * state->max_price[d] + smoothing * b->price[d] : b->price[d];
        keep_best(b, cut, subproblem_evaluate(s, side, cut, state));
        if (b->value <= state->target || append_cut(state, cut, s->n_knapsacks))
            break;
        master_lp_solve(m);
        if (b->value - m->theta <= good_enough * (b->value - state->target))
            break;
    }
    keep_mix(b, m);
}

/* ---- reduced-cost fixing ------------------------------------------------------------ */

/* The rule by which options are kept. */
struct fixing {
    const struct subproblem_side *side;
    double price_after_none[PLAN_TIERS + 1], max_loss;
};

/* Moves the kept options of context i to number `to` and up. Returns their number. */
static int keep_options(struct subproblem *s, int i, const struct fixing *f, int to)
{
    double best;
    int n = 0;

    best_option(s, i, f->side, f->price_after_none, &best);
    for (int k = s->first[i]; k < s->first[i + 1]; k++) {
        const struct option o = s->option[k];
        double value = o.utility - f->price_after_none[o.knapsack + 1] * o.bytes;
        bool fits = o.knapsack < 0 || o.bytes <= s->left[o.knapsack];
        if (fits && best - value <= f->max_loss && (i != f->side->context || side_has(f->side, &o)))
            s->option[to + n++] = o;
    }
    return n;
}

static void decide(struct subproblem *s, int context, const struct option *o)
{
    s->decided[context] = o->candidate;
    s->utility += o->utility;
    if (o->knapsack >= 0)
        s->left[o->knapsack] -= o->bytes;
}

bool subproblem_tighten(struct subproblem *s, const struct subproblem_side *side, const struct bound *b, double target)
{
    struct fixing fixing = { .side = side, .max_loss = b->value - target };
    int n = 0, to = 0;

    memcpy(fixing.price_after_none + 1, b->price, (size_t)s->n_knapsacks * sizeof(*b->price));
    for (int i = 0; i < s->n; i++) {
        int kept = keep_options(s, i, &fixing, to);
        if (kept == 0)
            return false;
        if (kept == 1) {
            decide(s, s->context[i], &s->option[to]);
            continue;
        }
        s->context[n] = s->context[i];
        s->first[n++] = to;
        to += kept;
    }
    s->n = n;
    s->first[n] = to;
    for (int d = 0; d < s->n_knapsacks; d++)
        if (s->left[d] < 0)
            return false;
    return true;
}
