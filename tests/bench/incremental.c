/* incremental.c - what an event costs in a live plan.
 *
 *     incremental N SEED [EVENTS]
 *
 * `real` instance: N contexts are planned, then EVENTS (by default 1000) contexts come, then as many go, come, or are
 * used more or less, one third each.
 *
 * One line per phase: microseconds per event, operations and bytes, and the certificate's gap afterwards beside
 * the distance from the bound that solving again gives.
 */
#include "base/clock.h"
#include "base/rng.h"
#include "planner/incremental.h"
#include "tests/bench/events.h"
#include "tests/bench/instance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench {
    struct instance in;
    struct plan_problem problem; // of the contexts that are there at first
    struct plan_candidates o;
    struct incremental *m;
    double *seconds; // (n_events)
    int n_events;
    double ops, bytes;
};

static void report(struct bench *b, const char *name, double fresh)
{
    const struct incremental_state *s = incremental_state(b->m);
    int n = b->n_events;
    struct events took = events_sum_up(b->seconds, n);

    printf("%-8s n=%-8d mean %.2f us  p50 %.2f  p99 %.2f  max %.1f  ops %.2f  GiB %.2f  gap %.2e", name, s->n_contexts,
           took.mean, took.p50, took.p99, took.max, b->ops / n, b->bytes / n / 0x1p30,
           (s->upper_bound - s->objective) / fabs(s->upper_bound));
    if (!isnan(fresh))
        printf("  below a fresh bound by %.2e", (fresh - s->objective) / fabs(fresh));
    printf("\n");
    b->ops = b->bytes = 0;
}

static int count(struct bench *b, int k, double start, struct err *err)
{
    const struct incremental_state *s = incremental_state(b->m);

    b->seconds[k] = clock_now() - start;
    for (int t = 0; t < INSTANCE_TIERS; t++)
        if (s->free[t] < 0)
            return err_set(err, ERR_FAIL, "event %d: tier %d holds too much", k, t);
    b->ops += s->n_ops;
    for (int i = 0; i < s->n_ops; i++)
        b->bytes += (double)s->op[i].to_bytes;
    return 0;
}

static int arrivals(struct bench *b, struct err *err)
{
    int context;

    for (int k = 0; k < b->n_events; k++) {
        plan_candidates_get(&b->o, &b->problem, b->problem.n_contexts + k);
        double start = clock_now();
        if (incremental_add(b->m, &b->o, &context, err) || count(b, k, start, err))
            return err->code;
    }
    return 0;
}

static int churn(struct bench *b, struct err *err)
{
    struct rng r = rng_new(3);
    int n = b->problem.n_contexts, gone = 0;

    for (int k = 0; k < b->n_events; k++) {
        int context = k % 3 == 1 ? gone : (int)rng_below(&r, (uint64_t)n), code;
        plan_candidates_get(&b->o, &b->problem, (int)rng_below(&r, (uint64_t)n));
        double start = clock_now();
        if (k % 3 == 0)
            code = incremental_remove(b->m, gone = context, err);
        else if (k % 3 == 1)
            code = incremental_add(b->m, &b->o, &context, err);
        else
            code = incremental_update(b->m, context, &b->o, err);
        if (code || count(b, k, start, err))
            return err->code;
    }
    return 0;
}

static int run(struct bench *b, int n, uint64_t seed, struct err *err)
{
    struct plan plan;

    if (instance_make(&b->in, INSTANCE_REAL, n + b->n_events, seed, err))
        return err->code;
    b->problem = instance_problem(&b->in);
    b->problem.n_contexts = n;
    b->seconds = calloc((size_t)b->n_events, sizeof(*b->seconds));
    if (!b->seconds || plan_candidates_init(&b->o, &b->problem, err) ||
        plan_solve(&plan, &b->problem, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, err))
        return err_nomem(err);
    double start = clock_now();
    b->m = incremental_new(&b->problem, &plan, 0, err);
    if (!b->m)
        return err->code;
    printf("taken over in %.2f s, gap %.2e (plan %.2e)\n", clock_now() - start,
           (incremental_state(b->m)->upper_bound - incremental_state(b->m)->objective) /
               incremental_state(b->m)->upper_bound,
           plan_gap(&plan));
    plan_release(&plan);
    if (arrivals(b, err))
        return err->code;
    b->problem.n_contexts = n + b->n_events;
    if (plan_solve(&plan, &b->problem, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, err))
        return err->code;
    b->problem.n_contexts = n;
    report(b, "arrivals", plan.upper_bound);
    plan_release(&plan);
    if (churn(b, err))
        return err->code;
    report(b, "churn", (double)NAN);
    return 0;
}

int main(int argc, char **argv)
{
    struct bench b = { .n_events = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 1000 };
    struct err err;

    if (argc < 3 || b.n_events < 1) {
        fprintf(stderr, "usage: incremental N SEED [EVENTS]\n");
        return 2;
    }
    int code = run(&b, (int)strtol(argv[1], NULL, 10), strtoull(argv[2], NULL, 10), &err);
    if (code)
        fprintf(stderr, "incremental: %s\n", err.msg);
    incremental_free(b.m);
    plan_candidates_release(&b.o);
    free(b.seconds);
    instance_release(&b.in);
    return code ? err_exit_status(code) : 0;
}
