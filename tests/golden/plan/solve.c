/* solve.c - solves placement problems that are given as text on standard input, for tests that compare with other
 * solvers. One line of output for each: utility, bound, optimal or not, seconds of processor time.
 *
 * A problem is numbers between blanks: contexts, configs, tiers, the capacity of each tier (-1: unlimited), the
 * first tier of each tier's pool; then for
 * each context the utility of recomputing, the bytes of each config (-1: not available), and the utility of each config
 * on each tier (nan: not available). The only argument is work more than usual.
 */
#include "planner/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct text_problem {
    int n, n_configs, n_tiers;
    int64_t capacity[PLAN_TIERS], *bytes;
    int pool[PLAN_TIERS];
    double *recompute, *utility;
};

static double candidates(const void *arg, int context, int64_t *bytes, double *utility)
{
    const struct text_problem *p = arg;
    int v = p->n_configs, cells = v * p->n_tiers;

    for (int k = 0; k < v; k++)
        bytes[k] = p->bytes[context * v + k];
    for (int k = 0; k < cells; k++)
        utility[k] = p->utility[context * cells + k];
    return p->recompute[context];
}

static int64_t read_bytes(void)
{
    double v;

    if (scanf("%lf", &v) != 1) {
        fprintf(stderr, "solve: a number is missing\n");
        exit(3);
    }
    return v < 0 ? -1 : (int64_t)v;
}

static void read_utilities(double *to, int n)
{
    for (int k = 0; k < n; k++)
        if (scanf("%lf", &to[k]) != 1) {
            fprintf(stderr, "solve: a utility is missing\n");
            exit(3);
        }
}

static void read_problem(struct text_problem *p)
{
    if (scanf("%d %d", &p->n_configs, &p->n_tiers) != 2 || p->n < 1 || p->n > 1000 || p->n_configs < 1 ||
        p->n_configs > 1000 || p->n_tiers < 1 || p->n_tiers > PLAN_TIERS) {
        fprintf(stderr, "solve: a size is out of range\n");
        exit(3);
    }
    for (int t = 0; t < p->n_tiers; t++) {
        int64_t capacity = read_bytes();
        p->capacity[t] = capacity < 0 ? INT64_MAX : capacity;
    }
    for (int t = 0; t < p->n_tiers; t++)
        p->pool[t] = (int)read_bytes();
    size_t n = (size_t)p->n, cells = (size_t)(p->n_configs * p->n_tiers);
    p->bytes = calloc(n * (size_t)p->n_configs, sizeof(*p->bytes));
    p->recompute = calloc(n, sizeof(*p->recompute));
    p->utility = calloc(n * cells, sizeof(*p->utility));
    if (!p->bytes || !p->recompute || !p->utility)
        exit(1);
    for (int i = 0; i < p->n; i++) {
        read_utilities(&p->recompute[i], 1);
        for (int v = 0; v < p->n_configs; v++)
            p->bytes[i * p->n_configs + v] = read_bytes();
        read_utilities(&p->utility[(size_t)i * cells], (int)cells);
    }
}

int main(int argc, char **argv)
{
    struct plan_effort effort = { .work = argc > 1 ? strtoll(argv[1], NULL, 10) : 0 };
    struct text_problem p;

    while (scanf("%d", &p.n) == 1) {
        struct plan plan;
        struct err err;
        read_problem(&p);
        struct plan_problem problem = { p.n, p.n_configs, p.n_tiers, p.capacity, candidates, &p, p.pool };
        clock_t start = clock();
        if (plan_solve(&plan, &problem, PLAN_OPTIMAL, &effort, &err)) {
            fprintf(stderr, "solve: %s\n", err.msg);
            return 1;
        }
        printf("%.17g %.17g %s %.3f\n", plan.objective, plan.upper_bound, plan.optimal ? "optimal" : "open",
               (double)(clock() - start) / CLOCKS_PER_SEC);
        fflush(stdout);
        plan_release(&plan);
        free(p.bytes);
        free(p.recompute);
        free(p.utility);
    }
    return 0;
}
