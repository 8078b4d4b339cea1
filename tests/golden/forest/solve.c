/* solve.c - plans forests that are given as text on standard input (forests.py). One line of output for each: utility
 * and bound.
 *
 * A forest is numbers between blanks: nodes, configs, tiers, 1 if chunks serve, the capacity of each tier (-1:
 * unlimited); then for each node its parent (-1: none), 1 if it is a context, its uses, what chunks gain on each tier
 * (nan: nothing) and, of a context, the utility of recomputing, the bytes of each config, and the utility and then the
 * gain of nodes below of each config on each tier.
 */
#include "planner/forest.h"

#include <stdio.h>
#include <stdlib.h>

struct text_forest {
    struct plan_problem problem;
    struct forest f;
    int64_t capacity[PLAN_TIERS];
    double *bytes, *recompute, *utility, *gain; // by context
};

static double candidates(const void *arg, int context, int64_t *bytes, double *utility)
{
    const struct text_forest *t = arg;
    int v = t->problem.n_configs, cells = v * t->problem.n_tiers;

    for (int k = 0; k < v; k++)
        bytes[k] = (int64_t)t->bytes[context * v + k];
    for (int k = 0; k < cells; k++)
        utility[k] = t->utility[context * cells + k];
    return t->recompute[context];
}

static double gain(const void *arg, int node, struct plan_placement at)
{
    const struct text_forest *t = arg;
    int context = t->f.context[node];

    return t->gain[context * t->problem.n_configs * t->problem.n_tiers + plan_cell(&t->problem, at.config, at.tier)];
}

static void read_numbers(double *to, int n)
{
    for (int k = 0; k < n; k++)
        if (scanf("%lf", &to[k]) != 1) {
            fprintf(stderr, "solve: a number is missing\n");
            exit(3);
        }
}

static int read_count(int most)
{
    double v;

    read_numbers(&v, 1);
    if (v >= -1 && v <= most)
        return (int)v;
    fprintf(stderr, "solve: a number is out of range\n");
    exit(3);
}

static void *array(int n, size_t size)
{
    void *at = calloc((size_t)n + 1, size);

    if (!at)
        exit(1);
    return at;
}

static void read_forest(struct text_forest *t, int n)
{
    int v = t->problem.n_configs = read_count(100), d = t->problem.n_tiers = read_count(PLAN_TIERS), cells = v * d;
    bool chunks = read_count(1) > 0;

    for (int k = 0; k < d; k++) {
        double capacity;
        read_numbers(&capacity, 1);
        t->capacity[k] = capacity < 0 ? INT64_MAX : (int64_t)capacity;
    }
    t->f = (struct forest){ d, n, array(n, 4), array(n, 4), array(n, 4), array(n, 8), array(n * d, 8), gain, t };
    t->bytes = array(n * v, 8);
    t->recompute = array(n, 8);
    t->utility = array(n * cells, 8);
    t->gain = array(n * cells, 8);
    for (int i = 0; i < n; i++) {
        t->f.parent[i] = read_count(i - 1);
        bool is_context = read_count(1) > 0;
        read_numbers(&t->f.frequency[i], 1);
        read_numbers(t->f.part + i * d, d);
        int c = t->f.context[i] = is_context ? t->problem.n_contexts++ : FOREST_NONE;
        if (!is_context)
            continue;
        read_numbers(&t->recompute[c], 1);
        read_numbers(t->bytes + c * v, v);
        read_numbers(t->utility + c * cells, cells);
        read_numbers(t->gain + c * cells, cells);
    }
    for (int i = n - 1; i >= 0; i--) {
        int *above = t->f.parent[i] < 0 ? NULL : &t->f.end[t->f.parent[i]];
        t->f.end[i] = t->f.end[i] > i ? t->f.end[i] : i + 1;
        if (above && *above < t->f.end[i])
            *above = t->f.end[i];
    }
    if (!chunks) {
        free(t->f.part);
        t->f.part = NULL;
    }
    t->problem.capacity = t->capacity;
    t->problem.candidates = candidates;
    t->problem.arg = t;
}

int main(void)
{
    double n;

    while (scanf("%lf", &n) == 1) {
        struct text_forest t = { .problem = { 0 } };
        struct plan plan;
        struct err err;
        read_forest(&t, n >= 1 && n <= 1000 ? (int)n : 1);
        if (forest_solve(&plan, &t.problem, &t.f, &(struct plan_effort){ 0 }, &err)) {
            fprintf(stderr, "solve: %s\n", err.msg);
            return 1;
        }
        printf("%.17g %.17g\n", plan.objective, plan.upper_bound);
        plan_release(&plan);
        free(t.f.parent);
        free(t.f.end);
        free(t.f.context);
        free(t.f.frequency);
        free(t.f.part);
        free(t.bytes);
        free(t.recompute);
        free(t.utility);
        free(t.gain);
    }
    return 0;
}
