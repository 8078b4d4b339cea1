/* plan.c - how fast and how well the planner plans: one line per run.
 *
 *     plan KIND N SEED [SOLVER [WORK]]      KIND: real unc weak strong nodes; SOLVER: optimal evicpress adaptcache
 *     plan KIND N SEED dump                  the instance's candidates as text, for other solvers
 */
#include "base/clock.h"
#include "planner/plan.h"
#include "planner/spread.h"
#include "tests/bench/instance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static int pick(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* First line: contexts, tiers, capacities (-1: unlimited). Then a line per candidate: context tier bytes utility; tier
 * -1 is recomputing. */
static int dump(const struct plan_problem *p, struct err *err)
{
    struct plan_candidates o;

    if (plan_candidates_init(&o, p, err))
        return err->code;
    printf("%d %d", p->n_contexts, p->n_tiers);
    for (int t = 0; t < p->n_tiers; t++)
        printf(" %lld", p->capacity[t] == INT64_MAX ? -1LL : (long long)p->capacity[t]);
    printf("\n");
    for (int i = 0; i < p->n_contexts; i++) {
        plan_candidates_get(&o, p, i);
        printf("%d -1 0 %.17g\n", i, o.recompute);
        for (int v = 0; v < p->n_configs; v++)
            for (int t = 0; t < p->n_tiers; t++)
                printf("%d %d %lld %.17g\n", i, t, (long long)o.bytes[v], o.utility[v * p->n_tiers + t]);
    }
    plan_candidates_release(&o);
    return 0;
}

static int run(int argc, char **argv, struct err *err)
{
    static const char *const kinds[] = { "real", "unc", "weak", "strong", "nodes" };
    static const char *const solvers[] = { "evicpress", "adaptcache", "optimal" };
    int kind = pick(kinds, 5, argv[1]), solver = argc > 4 ? pick(solvers, 3, argv[4]) : PLAN_OPTIMAL;
    struct plan_effort effort = { .work = argc > 5 ? strtoll(argv[5], NULL, 10) : 0 };
    struct instance in;
    struct plan plan;
    struct rusage usage;

    if (kind < 0 ||
        instance_make(&in, (enum instance_kind)kind, (int)strtol(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), err))
        return kind < 0 ? err_set(err, ERR_USAGE, "no kind '%s'", argv[1]) : err->code;
    struct plan_problem problem = instance_problem(&in);
    if (solver < 0) {
        int code = dump(&problem, err);
        instance_release(&in);
        return code;
    }
    struct instance by_kind = instance_kinds(&in);
    struct plan_problem of_kinds = instance_problem(&by_kind);
    bool spread = in.kind == INSTANCE_NODES && in.n >= SPREAD_MIN;
    double start = clock_now();
    if (plan_solve(&plan, spread ? &of_kinds : &problem, (enum plan_solver)solver, &effort, err) ||
        (spread && plan_spread(&plan, &(struct spread){ &problem, &of_kinds, in.kind_of, NULL }, err)))
        return err->code;
    double seconds = clock_now() - start, free_total = 0;
    struct plan_candidates o;
    if (plan_candidates_init(&o, &problem, err))
        return err->code;
    for (int i = 0; i < problem.n_contexts; i++) {
        plan_candidates_get(&o, &problem, i);
        free_total += o.recompute;
    }
    plan_candidates_release(&o);
    getrusage(RUSAGE_SELF, &usage);
    printf("%-6s n=%-8d %-10s %8.3f s  utility %.9g  bound %.9g  gap %.2e  gain-gap %.2e  RSS %.0f MB\n", argv[1], in.n,
           solvers[solver], seconds, plan.objective, plan.upper_bound, plan_gap(&plan),
           (plan.upper_bound - plan.objective) / (plan.upper_bound - free_total), (double)usage.ru_maxrss / 1024);
    plan_release(&plan);
    instance_release(&in);
    return 0;
}

int main(int argc, char **argv)
{
    struct err err;

    if (argc < 4) {
        fprintf(stderr, "usage: plan KIND N SEED [SOLVER [WORK] | dump]\n");
        return 2;
    }
    if (run(argc, argv, &err)) {
        fprintf(stderr, "plan: %s\n", err.msg);
        return err_exit_status(err.code);
    }
    return 0;
}
