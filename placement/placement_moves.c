/* placement_moves.c - solves, and keeps a plan within the cap on written bytes (--max-move).
 *
 * The cap is one more price: for a price m per written byte, bound(m) + m * max_move bounds every plan that writes no
 * more. We want the lowest price whose plan is within the cap. First it is searched on a sample of the contexts, with
 * the same share of each tier and of the cap: solving the sample takes little time and predicts the bytes that all
 * contexts write within about a percent. Then two solutions of the whole problem are usually enough.
 */
#include "placement/placement_internal.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 8192, SAMPLE_SHARE = 64, SAMPLE_STEPS = 24, STEPS = 40, STEPS_OF_MANY = 2 };
static const double close_enough = 0.005; // share of the cap that a plan may leave unused
static const double spare = 0.1;          // the same for many contexts, after STEPS_OF_MANY
static const double sample_error = 0.02;  // error of a sample's written bytes; no closer search is useful
static const double surely = 0.05;        // largest difference between a sample and all contexts
static const double tight = 1e-3;         // smallest relative difference between two prices

static double written_by(const struct placement_input *in, const struct plan *plan)
{
    double bytes = 0;

    for (int i = 0; i < plan->n_contexts; i++)
        bytes += (double)placement_written(in, in->row[i], plan->placement[i]);
    return bytes;
}

/* ---- from trial to trial ----------------------------------------------------- */

/* The range of the price so far. */
struct price_range {
    double cap;                // bytes
    double low, written_low;   // highest price known to write more than the cap, and those bytes; low -1: none yet
    double high, written_high; // lowest price known to be within the cap; HUGE_VAL: none yet
    double next;               // the price to try
    double first;              // a price of the right size, to try after 0
    double slope;              // written bytes fall with about this power of the price
    double last, written_last; // the last tried price above 0
    int n;                     // number of tried prices
};

static struct price_range range_of(double cap, double next, double first, double slope)
{
    return (
        struct price_range){ .cap = cap, .low = -1, .high = HUGE_VAL, .next = next, .first = first, .slope = slope };
}

static bool range_is_tight(const struct price_range *r)
{
    bool near = r->low >= 0 && r->high - r->low <= tight * r->high;

    return r->high < HUGE_VAL && (r->high <= 0 || near || r->written_high >= (1 - close_enough) * r->cap);
}

/* The logarithm of the factor by which written bytes must fall. Aims below the cap: the further away, the lower. */
static double fall(const struct price_range *r, double written)
{
    double away = log(fmax(written, 1) / fmax(r->cap, 1));

    return away + close_enough / 2 + 0.3 * fmin(fabs(away), 0.3);
}

/* Extrapolates the next price along the slope from the bytes written at `price`. The smallest step grows, because
 * written bytes may be all or nothing. */
static double beyond(const struct price_range *r, double price, double written)
{
    double min_step = ldexp(0.02, r->n < 9 ? r->n : 9), factor = exp(fall(r, written) / r->slope);

    return price * (written <= r->cap ? fmax(fmin(factor, 1 - min_step), 0.125) : fmin(fmax(factor, 1 + min_step), 8));
}

/* Interpolates the next price between two, linearly in logarithms; every third time takes the middle. */
static double between(const struct price_range *r)
{
    double low = log(fmax(r->written_low, 1)), high = log(fmax(r->written_high, 1)), want = log(fmax(r->cap, 1));
    double at = (low - want + close_enough / 2) / (low - high);

    return r->low * pow(r->high / r->low, r->n % 3 ? fmin(fmax(at, 0.05), 0.95) : 0.5);
}

/* Adds the bytes that a plan at r->next writes, and sets the next price. */
static void range_add(struct price_range *r, double written)
{
    double at = r->next, ratio = r->last > 0 ? log(at / r->last) : 0;

    if (written <= r->cap) {
        r->high = at;
        r->written_high = written;
    } else {
        r->low = at;
        r->written_low = written;
    }
    if (at <= 0) {
        r->next = r->first;
        return;
    }
    if (fabs(ratio) > 0.1)
        r->slope = fmin(fmax(log(fmax(r->written_last, 1) / fmax(written, 1)) / ratio, 0.1), 10);
    r->n++;
    r->last = at;
    r->written_last = written;
    r->next = r->low > 0 && r->high < HUGE_VAL ? between(r) : beyond(r, at, written);
}

/* ---- on a sample ------------------------------------------------------------- */

/* A sample of the contexts. */
struct sample {
    struct placement_input in; // borrows everything except row
    enum plan_solver solver;
    int *row;
    double share; // of all contexts
    double price; // the highest price of a tier in the last plan
};

static int sample_init(struct sample *s, const struct placement_plan *p, struct err *err)
{
    const struct placement_input *in = p->in;
    int all = in->table.n_contexts, max = all / SAMPLE_SHARE > SAMPLE ? all / SAMPLE_SHARE : SAMPLE;
    int n = all < max ? all : max;

    *s = (struct sample){ .in = *in,
                          .solver = p->solver,
                          .row = calloc((size_t)n + 1, sizeof(*s->row)),
                          .share = all ? (double)n / all : 1 };
    if (!s->row)
        return err_nomem(err);
    for (int i = 0; i < n; i++) /* evenly over the sorted ids */
        s->row[i] = in->row[(int64_t)i * all / n];
    s->in.row = s->row;
    s->in.table.n_contexts = n;
    for (int t = 0; t < in->tiers.n; t++)
        if (in->capacity[t] < INT64_MAX)
            s->in.capacity[t] = (int64_t)(s->share * (double)in->capacity[t]);
    return 0;
}

/* Solves the sample roughly. *written: estimate for all contexts. */
static int sample_solve(struct sample *s, double price, double *written, struct err *err)
{
    struct plan_effort effort = { .rough = true };
    struct plan plan;

    s->in.move_price = price;
    struct plan_problem problem = placement_problem(&s->in);
    if (plan_solve(&plan, &problem, s->solver, &effort, err))
        return err->code;
    *written = written_by(&s->in, &plan) / s->share;
    s->price = 0;
    for (int t = 0; t < s->in.tiers.n; t++)
        s->price = fmax(s->price, plan.price[t]);
    plan_release(&plan);
    return 0;
}

/* Is the sample's range narrow enough? */
static bool is_near(const struct price_range *r)
{
    bool close = r->last > 0 && fabs(r->written_last - r->cap) <= sample_error * r->cap;

    bool narrow = r->low >= 0 && r->high < HUGE_VAL && r->high - r->low <= sample_error / 2 * r->high;

    return close || narrow || r->high <= 0;
}

/* Sets *r, the first range for all contexts, from the sample. */
static int sample_search(struct sample *s, struct price_range *r, double cap, struct err *err)
{
    double written, free_of_price;

    if (sample_solve(s, 0, &free_of_price, err))
        return err->code;
    struct price_range own = range_of(cap, 0, s->price > 0 ? s->price / 8 : 1e-12, 1);
    range_add(&own, free_of_price);
    for (int k = 0; k < SAMPLE_STEPS && !is_near(&own); k++) {
        if (sample_solve(s, own.next, &written, err))
            return err->code;
        range_add(&own, written);
    }
    double price = own.next > 0 ? own.next : own.first;
    bool whole = s->share >= 1, slack = whole || free_of_price <= (1 + surely) * cap;
    *r = range_of(cap, slack ? 0 : price, price, own.slope);
    return 0;
}

static int first_range(struct price_range *r, const struct placement_plan *p, double cap, struct err *err)
{
    struct sample s;
    int code = sample_init(&s, p, err);

    if (!code)
        code = sample_search(&s, r, cap, err);
    free(s.row);
    return code;
}

/* ---- all contexts -------------------------------------------------------------- */

/* For many contexts the second plan is usually close enough to the cap; a third is not worth its time. */
static bool is_done(const struct price_range *r, int n_contexts)
{
    bool many = n_contexts > SAMPLE && r->n >= STEPS_OF_MANY;

    return range_is_tight(r) || (many && r->high < HUGE_VAL && r->written_high >= (1 - spare) * r->cap) ||
           (many && r->high < HUGE_VAL && r->n > STEPS_OF_MANY);
}

/* Finds a low price whose plan is within the cap. The plan's bound is for the original problem with the cap. */
static int solve_within(struct placement_plan *p, struct placement_input *in, const struct plan_effort *effort,
                        struct err *err)
{
    struct plan best = { 0 };
    struct price_range r;

    if (first_range(&r, p, (double)in->max_move, err))
        return err->code;
    for (int k = 0; k < STEPS && !is_done(&r, in->table.n_contexts); k++) {
        struct plan trial;
        in->move_price = r.next;
        if (placement_solve_problem(&trial, in, p->solver, effort, err)) {
            plan_release(&best);
            return err->code;
        }
        double written = written_by(in, &trial);
        struct plan *drop = written <= r.cap ? &best : &trial;
        plan_release(drop);
        if (drop == &best)
            best = trial;
        range_add(&r, written);
    }
    if (!best.placement)
        return err_set(err, ERR_FAIL, "every plan writes more than --max-move allows");
    in->move_price = r.high;
    best.optimal = best.optimal && r.high <= 0; /* a price proves nothing about the problem with a cap */
    best.upper_bound += r.high * r.cap;
    best.objective += r.high * written_by(in, &best);
    p->plan = best;
    return 0;
}

int placement_solve_once(struct placement_plan *p, struct placement_input *in, enum plan_solver solver,
                         const struct plan_effort *effort, struct err *err)
{
    *p = (struct placement_plan){ .in = in, .solver = solver };
    in->move_price = 0;
    if (in->max_move < INT64_MAX  ? solve_within(p, in, effort, err)
        : placement_has_kinds(in) ? placement_solve_kinds(p, effort, err)
                                  : placement_solve_problem(&p->plan, in, solver, effort, err))
        return err->code;
    if (!placement_check_pins(p, err))
        return 0;
    plan_release(&p->plan);
    return err->code;
}

int placement_solve(struct placement_plan *p, struct placement_input *in, enum plan_solver solver,
                    const struct plan_effort *effort, struct err *err)
{
    return in->load.rate > 0 ? placement_solve_load(p, in, solver, effort, err)
                             : placement_solve_once(p, in, solver, effort, err);
}

int placement_raw(const struct placement_plan *p, const struct plan_effort *effort, struct placement_raw *raw,
                  struct err *err)
{
    const struct placement_input *in = p->in;
    struct placement_input measured = *in;
    measured.quality = in->table.quality_train;
    measured.sd = NULL;
    struct placement_use *use;
    struct plan plan;

    if (placement_solve_problem(&plan, &measured, p->solver, effort, err))
        return err->code;
    if (placement_uses(&use, in, plan.placement, err)) {
        plan_release(&plan);
        return err->code;
    }
    *raw = (struct placement_raw){ .promised = plan.objective + in->move_price * written_by(in, &plan) };
    for (int i = 0; i < plan.n_contexts; i++)
        raw->brought += placement_utility(in, in->row[i], plan.placement[i]) -
                        placement_write_cost(in, in->row[i], plan.placement[i]) +
                        in->frequency[in->row[i]] * use_gain(use, i);
    free(use);
    plan_release(&plan);
    return 0;
}

void placement_moves(const struct placement_plan *p, struct placement_moves *moves)
{
    const struct placement_input *in = p->in;

    *moves = (struct placement_moves){ 0 };
    for (int i = 0; i < p->plan.n_contexts; i++) {
        int row = in->row[i], to = p->plan.placement[i].tier;
        int from = in->before[row].config < 0 ? -1 : in->before[row].tier;
        int64_t bytes = placement_written(in, row, p->plan.placement[i]);
        if (bytes == 0)
            continue;
        moves->at[from + 1][to].n++;
        moves->at[from + 1][to].bytes += (double)bytes;
    }
}

int placement_bill(const struct placement_plan *p, struct placement_bill *bill, struct err *err)
{
    const struct placement_input *in = p->in;
    struct placement_use *use;

    *bill = (struct placement_bill){ 0 };
    if (placement_uses(&use, in, p->plan.placement, err))
        return err->code;
    for (int i = 0; i < p->plan.n_contexts; i++) {
        int row = in->row[i];
        struct plan_placement at = p->plan.placement[i], none = { 0, PLAN_RECOMPUTE };
        struct placement_packing s = placement_packing(in, row, at);
        bill->n_packed += s.gpu_s > 0;
        bill->takes.gpu_s += s.gpu_s;
        bill->takes.tier_s += s.tier_s;
        bill->saves_s +=
            in->frequency[row] * (placement_ttft(in, row, none) - placement_ttft(in, row, at) + use_saved_s(use, i));
        bill->n_served += use_saved_s(use, i) > 0;
        bill->uses_served += use_saved_s(use, i) > 0 ? in->frequency[row] : 0;
    }
    free(use);
    return 0;
}
