/* aim.c - first one context: its values at the prices, the best of them, the pairs with it. Then all contexts at one
 * tau, on all threads, with costs summed in order. Then the tau that spends the budget. */
#include "planner/aim.h"

#include "base/array.h"
#include "base/parallel.h"
#include "planner/evpi.h"
#include "planner/normal.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 60, SHARE = 64 }; /* SHARE: contexts that a thread takes at once */
enum { LOSS_CONTEXTS = 20000 };      // at most about this many for the expected loss: of more, every second, third, ...
static const double close_enough = 1e-6; // relative difference of two taus
static const double full_enough = 0.98;  // share of the budget; fill_list() spends the rest

/* ---- one context ----------------------------------------------------------- */

/* A config that could be asked. */
struct rival {
    double value, mean, variance; // reduced value; predicted quality and its variance
    double within;                // variance between questions
    int left;                     // questions not asked yet
    bool allowed;                 // by the floor, as predicted
    uint16_t config;
};

/* A thread's workspace. */
struct aim_work {
    struct plan_candidates candidates;
    struct rival *rival; // (V)
    int n;
    uint16_t *chosen, *best;     // (V) configs of the request being tried; of the best one
    struct evpi_candidate *evpi; // (V)
    struct aim_context of;
    double known;          // the best certain value
    int best_rival, right; // index of the best, -1: `known`; most questions left
};

static int work_init(struct aim_work *w, const struct aim_problem *p, struct err *err)
{
    size_t v = (size_t)p->plan->n_configs + 1;

    *w = (struct aim_work){ .rival = calloc(v, sizeof(*w->rival)),
                            .chosen = calloc(v, sizeof(*w->chosen)),
                            .best = calloc(v, sizeof(*w->best)),
                            .evpi = calloc(v, sizeof(*w->evpi)) };
    if (!w->rival || !w->chosen || !w->best || !w->evpi)
        return err_nomem(err);
    return plan_candidates_init(&w->candidates, p->plan, err);
}

static void work_release(struct aim_work *w)
{
    plan_candidates_release(&w->candidates);
    free(w->rival);
    free(w->chosen);
    free(w->best);
    free(w->evpi);
}

/* The highest reduced value of a config on any tier; -HUGE_VAL: no tier can hold it. */
static double value_of(const struct aim_problem *p, const struct plan_candidates *all, int config)
{
    double best = -HUGE_VAL;

    for (int t = 0; t < p->plan->n_tiers; t++)
        if (plan_candidate_ok(all, p->plan, config, t)) {
            double price = p->plan->capacity[t] == INT64_MAX ? 0 : p->price[t] * (double)all->bytes[config];
            best = fmax(best, all->utility[plan_cell(p->plan, config, t)] - price);
        }
    return best;
}

static bool is_allowed(const struct aim_problem *p, const struct aim_work *w, double mean, double sd)
{
    return w->of.floor <= 0 || mean - p->sure_z * sd >= w->of.floor;
}

static void add_rival(const struct aim_problem *p, struct aim_work *w, int config, double value)
{
    size_t cell = w->of.first + (size_t)config;
    int asked = !p->asked || p->asked[cell] < 0 ? 0 : p->asked[cell];
    double sd = (double)p->sd[cell];

    struct rival *r = &w->rival[w->n++];
    *r = (struct rival){ .value = value,
                         .mean = p->quality[cell],
                         .variance = sd * sd,
                         .within = p->belief ? p->belief->within[config] : 0,
                         .left = asked < w->of.n_questions ? w->of.n_questions - asked : 0,
                         .config = (uint16_t)config };
    r->allowed = is_allowed(p, w, r->mean, sd);
    w->right = r->left > w->right ? r->left : w->right;
}

/* Reads a context: the certain value, the rivals, the best of them. */
static void look(const struct aim_problem *p, struct aim_work *w, int context)
{
    plan_candidates_get(&w->candidates, p->plan, context);
    w->of = p->context(p->arg, context);
    w->known = fmax(w->candidates.recompute, value_of(p, &w->candidates, 0));
    w->n = w->right = 0;
    for (int v = 1; v < p->plan->n_configs; v++) {
        double value = value_of(p, &w->candidates, v);
        if (value > -HUGE_VAL && !isnan(p->quality[w->of.first + (size_t)v]))
            add_rival(p, w, v, value);
    }
    w->best_rival = -1;
    double best = w->known;
    for (int i = 0; i < w->n; i++)
        if (w->rival[i].allowed && w->rival[i].value > best) {
            best = w->rival[i].value;
            w->best_rival = i;
        }
}

/* ---- the worth of a request -------------------------------------------------- */

double aim_pair_gradient(double st, double behind)
{
    if (!(st > 0))
        return 0;
    double g = behind / st;
    return g < -9 ? 0 : st * (0.39894228040143267794 * exp(-g * g / 2) + g * normal_cdf(g));
}

/* For a rival below the floor: P(the answers lift it above) * `ahead`, its lead in value. */
static double floor_gradient(const struct aim_problem *p, const struct aim_work *w, const struct rival *r, int n,
                             double ahead)
{
    double left = r->variance * (r->within / n) / (r->variance + r->within / n); // variance after the answers
    double moves = sqrt(r->variance - left);

    if (ahead <= 0 || !(moves > 0))
        return 0;
    return normal_cdf((r->mean - p->sure_z * sqrt(left) - w->of.floor) / moves) * ahead;
}

static int more_of(const struct rival *r, int n)
{
    return n < r->left ? n : r->left;
}

/* Is a pair's gradient surely not above `need`? phi(g) + g Phi(g) <= phi(g) / (1 + g^2) for g <= 0, by Mills' ratio. */
static bool is_hopeless(double st, double behind, double need)
{
    double g = behind / st;

    return 0.3989422804014328 * st <= need || 0.3989422804014328 * st * exp(-g * g / 2) <= need * (1 + g * g);
}

/* A rival and the best of all (NULL: the certain value). A worth of at most `need` counts as 0. */
struct pair {
    const struct rival *r, *best;
    double need;
};

/* The worth of asking n more questions over a pair; 0 unless above `need`. */
static double gradient(const struct aim_problem *p, const struct aim_work *w, const struct pair *pair, int n)
{
    const struct rival *r = pair->r, *best = pair->best;
    double ahead = r->value - (best ? best->value : w->known), more = more_of(r, n);
    double s2 = r->variance, o2 = more > 0 ? r->within / more : 0;

    if (!(more > 0))
        return 0;
    if (!r->allowed)
        return floor_gradient(p, w, r, (int)more, ahead);
    if (best && more_of(best, n) > 0) {
        s2 += best->variance;
        o2 += best->within / more_of(best, n);
    }
    double st = s2 > 0 ? w->of.scale * s2 / sqrt(s2 + o2) : 0;
    return st > 0 && !is_hopeless(st, -fabs(ahead), pair->need) ? aim_pair_gradient(st, -fabs(ahead)) : 0;
}

struct worth {
    double net, gross, cost;
    int n_configs;
};

/* The best request with n more questions; w->chosen gets its configs. */
static struct worth try_request(const struct aim_problem *p, struct aim_work *w, int n, double tau)
{
    const struct rival *best = w->best_rival < 0 ? NULL : &w->rival[w->best_rival];
    struct worth is = { .cost = w->of.visit + n * w->of.answer };

    for (int i = 0; i < w->n; i++) {
        if (i == w->best_rival)
            continue;
        double cost = w->of.answer * more_of(&w->rival[i], n);
        double kg = gradient(p, w, &(struct pair){ &w->rival[i], best, tau * cost }, n);
        if (kg <= tau * cost)
            continue;
        w->chosen[is.n_configs++] = w->rival[i].config;
        is.gross += kg;
        is.cost += cost;
    }
    if (best && more_of(best, n) > 0) {
        double cost = w->of.answer * more_of(best, n), kg = gradient(p, w, &(struct pair){ best, NULL, 0 }, n);
        if (is.n_configs > 0 || kg > tau * cost) {
            w->chosen[is.n_configs++] = best->config;
            is.gross += kg;
            is.cost += cost;
        }
    }
    is.net = is.gross - tau * is.cost;
    return is;
}

/* The best request of all; n 0: none is worth its cost. w->best gets its configs. */
static struct aim_request best_request(const struct aim_problem *p, struct aim_work *w, int context, double tau)
{
    struct aim_request r = { .context = context };
    double net = 0;

    look(p, w, context);
    for (int n = 2; w->right > 0; n *= 2) {
        int level = n < w->right ? n : w->right;
        struct worth is = try_request(p, w, level, tau);
        if (is.n_configs > 0 && is.net > net) {
            net = is.net;
            r.n = level;
            r.n_configs = is.n_configs;
            r.cost = is.cost;
            r.worth = is.gross;
            memcpy(w->best, w->chosen, (size_t)is.n_configs * sizeof(*w->best));
        }
        if (level == w->right)
            break;
    }
    return r;
}

/* ---- all contexts -------------------------------------------------------------- */

/* The search for tau. cost (C): of each open context's request at the last tau. */
struct search {
    const struct aim_problem *p;
    double *cost;
    int *open, n_open; // contexts that can have a request at the next taus
};

struct evaluation {
    struct search *s;
    double tau;
    atomic_int failed;
};

static void set_costs(void *arg, int share)
{
    struct evaluation *e = arg;
    struct search *s = e->s;
    struct aim_work w;
    struct err err;
    int failed = work_init(&w, s->p, &err);

    for (int k = share * SHARE; k < (share + 1) * SHARE && k < s->n_open && !failed; k++)
        s->cost[k] = best_request(s->p, &w, s->open[k], e->tau).cost;
    if (failed)
        e->failed = 1;
    work_release(&w);
}

/* Sets the costs of the open contexts; *total: their sum. */
static int evaluate(struct search *s, double tau, double *total, struct err *err)
{
    struct evaluation e = { s, tau, 0 };

    parallel_do(parallel_threads(), (s->n_open + SHARE - 1) / SHARE, set_costs, &e);
    *total = 0;
    for (int k = 0; k < s->n_open; k++)
        *total += s->cost[k];
    return e.failed ? err_nomem(err) : 0;
}

/* Keeps the contexts that have a request: only they can have one at higher taus. */
static void keep_open(struct search *s)
{
    int n = 0;

    for (int k = 0; k < s->n_open; k++)
        if (s->cost[k] > 0)
            s->open[n++] = s->open[k];
    s->n_open = n;
}

/* Finds a tau *low whose list is too expensive, whose contexts stay open, and a tau *high whose list is within the
 * budget. Starts in the middle of the usual range, because high taus are evaluated fast. *low = *high when even the
 * list at min_tau is within the budget. */
static int bracket(struct search *s, const struct aim_budget *budget, double *low, double *high, struct err *err)
{
    const double step = 16, min = fmax(budget->min_tau, 1e-15);
    double tau = min * step * step * step, cost;

    *low = *high = 0;
    while (*low <= 0 || *high <= 0) {
        if (evaluate(s, tau, &cost, err))
            return err->code;
        if (cost > budget->cost) {
            keep_open(s);
            *low = tau;
            tau *= step;
        } else {
            *high = tau;
            if (tau <= min)
                break;
            tau = *low > 0 ? tau : fmax(tau / step, min);
        }
    }
    if (*low <= 0) {
        keep_open(s);
        *low = *high;
    }
    return 0;
}

/* Narrows the range around the tau that spends the budget. *high: its list is within the budget. *low: the highest tau
 * whose list is too expensive, with s->open the contexts of that list; or min_tau, if its list is within the budget. */
static int find_tau(struct search *s, const struct aim_budget *budget, double *low, double *high, struct err *err)
{
    double cost = 0, at;

    if (bracket(s, budget, low, high, err))
        return err->code;
    for (int i = 0; i < STEPS_MAX && cost < full_enough * budget->cost; i++) {
        double middle = sqrt(*low) * sqrt(*high);
        if (*high / *low <= 1 + close_enough)
            break;
        if (evaluate(s, middle, &at, err))
            return err->code;
        if (at > budget->cost) {
            keep_open(s);
            *low = middle;
        } else {
            *high = middle;
            cost = at;
        }
    }
    return 0;
}

/* ---- the list --------------------------------------------------------------------- */

static int add_request(struct aim_list *list, struct aim_request r, const uint16_t *config, struct err *err)
{
    r.first = list->configs.n;
    if (ARRAY_GROW(&list->configs, list->configs.n + (size_t)r.n_configs) || ARRAY_PUSH(list, r))
        return err_nomem(err);
    memcpy(list->configs.at + r.first, config, (size_t)r.n_configs * sizeof(*config));
    list->configs.n += (size_t)r.n_configs;
    list->cost += r.cost;
    return 0;
}

static int by_context(const void *a, const void *b)
{
    return ((const struct aim_request *)a)->context - ((const struct aim_request *)b)->context;
}

/* Adds the requests at tau[0] (high), then for contexts without one the requests at tau[1] (low) that the budget
 * allows. */
static int fill_list(struct aim_list *list, struct search *s, const double tau[2], double budget, struct err *err)
{
    struct aim_work w;
    int code = work_init(&w, s->p, err);

    for (int pass = 0; pass < 2 && !code; pass++)
        for (int k = 0; k < s->n_open && !code; k++) {
            if (pass == 1 && s->cost[k] > 0)
                continue;
            struct aim_request r = best_request(s->p, &w, s->open[k], tau[pass]);
            if (pass == 0)
                s->cost[k] = r.cost;
            if (r.n > 0 && list->cost + r.cost <= budget)
                code = add_request(list, r, w.best, err);
        }
    work_release(&w);
    if (!code && list->n > 0)
        qsort(list->at, (size_t)list->n, sizeof(*list->at), by_context);
    return code;
}

int aim_list_make(struct aim_list *list, const struct aim_problem *problem, const struct aim_budget *budget,
                  struct err *err)
{
    size_t n = (size_t)problem->plan->n_contexts + 1;
    struct search s = { .p = problem,
                        .cost = calloc(n, sizeof(*s.cost)),
                        .open = calloc(n, sizeof(*s.open)),
                        .n_open = problem->plan->n_contexts };
    double low, high;

    *list = (struct aim_list){ 0 };
    int code = s.cost && s.open ? 0 : err_nomem(err);
    for (int c = 0; c < s.n_open && !code; c++)
        s.open[c] = c;
    if (!code)
        code = find_tau(&s, budget, &low, &high, err);
    if (!code)
        code = fill_list(list, &s, (const double[]){ high, low }, budget->cost, err);
    list->tau = code ? 0 : high;
    list->too_dear = !code && list->n == 0 && s.n_open > 0;
    free(s.cost);
    free(s.open);
    if (code)
        aim_list_release(list);
    return code;
}

void aim_list_release(struct aim_list *list)
{
    free(list->at);
    free(list->configs.at);
    *list = (struct aim_list){ 0 };
}

/* ---- the expected loss ------------------------------------------------------------- */

static double context_loss(const struct aim_problem *p, struct aim_work *w, int context)
{
    double best;
    int n = 0;

    look(p, w, context);
    best = w->best_rival < 0 ? w->known : w->rival[w->best_rival].value;
    for (int i = 0; i < w->n; i++) {
        const struct rival *r = &w->rival[i];
        double lowest = w->of.floor > 0 ? r->value + w->of.scale * (w->of.floor - r->mean) : -HUGE_VAL;
        double highest = r->value + w->of.scale * fmax(0, 1 - r->mean);
        w->evpi[n++] = (struct evpi_candidate){ r->value, w->of.scale * sqrt(r->variance), lowest, highest };
    }
    return fmax(0, expected_best(w->known, w->evpi, n) - best);
}

struct losses {
    const struct aim_problem *p;
    int n, step;  // contexts 0, step, 2 * step, ...
    double *each; // (n)
    atomic_int failed;
};

static void set_losses(void *arg, int share)
{
    struct losses *l = arg;
    struct aim_work w;
    struct err err;
    int failed = work_init(&w, l->p, &err);

    for (int c = share * SHARE; c < (share + 1) * SHARE && c < l->n && !failed; c++)
        l->each[c] = context_loss(l->p, &w, c * l->step);
    if (failed)
        l->failed = 1;
    work_release(&w);
}

int aim_expected_loss(const struct aim_problem *problem, double *loss, struct err *err)
{
    int all = problem->plan->n_contexts, step = (all + LOSS_CONTEXTS - 1) / LOSS_CONTEXTS;
    int n = step > 0 ? (all + step - 1) / step : 0;
    struct losses l = { problem, n, step, calloc((size_t)n + 1, sizeof(*l.each)), 0 };

    *loss = 0;
    if (!l.each)
        return err_nomem(err);
    parallel_do(parallel_threads(), (n + SHARE - 1) / SHARE, set_losses, &l);
    for (int c = 0; c < n; c++)
        *loss += l.each[c];
    *loss *= n > 0 ? (double)all / n : 0;
    free(l.each);
    return l.failed ? err_nomem(err) : 0;
}
