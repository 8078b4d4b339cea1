/* step.c - what is believed of the answers so far, and the plan from it, as numbers on standard input and output. For
 * sampled.py, which says what the answers are.
 *
 * In, for each plan: C V T alpha; per tier capacity, seconds per byte; per context frequency, prefill_s; per cell
 * bytes, mean, std, n. Out: config and tier of each context, a line each.
 */
#include "planner/belief.h"
#include "planner/plan.h"
#include "planner/utility.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct step {
    int n_contexts, n_configs, n_tiers;
    double alpha, per_byte[PLAN_TIERS];
    int64_t capacity[PLAN_TIERS], *bytes;
    double *frequency, *prefill_s, *mean, *std, *quality;
    int32_t *n;
};

static double candidates(const void *arg, int context, int64_t *bytes, double *out)
{
    const struct step *s = arg;
    const struct plan_goal goal = { .alpha = s->alpha };
    size_t first = (size_t)context * (size_t)s->n_configs;

    for (int v = 0; v < s->n_configs; v++) {
        bytes[v] = s->bytes[first + (size_t)v];
        for (int t = 0; t < s->n_tiers; t++)
            out[v * s->n_tiers + t] = utility(&goal, s->quality[first + (size_t)v], s->per_byte[t] * (double)bytes[v],
                                              0, s->frequency[context]);
    }
    return utility_recomputed(&goal, s->prefill_s[context], 0, s->frequency[context]);
}

static void *array(size_t n, size_t size)
{
    void *at = calloc(n + 1, size);

    if (!at)
        exit(1);
    return at;
}

static int read_step(struct step *s)
{
    *s = (struct step){ 0 };
    if (scanf("%d %d %d %lf", &s->n_contexts, &s->n_configs, &s->n_tiers, &s->alpha) != 4)
        return 1;
    size_t c = (size_t)s->n_contexts, cells = c * (size_t)s->n_configs;
    s->frequency = array(c, sizeof(double));
    s->prefill_s = array(c, sizeof(double));
    s->bytes = array(cells, sizeof(int64_t));
    s->mean = array(cells, sizeof(double));
    s->std = array(cells, sizeof(double));
    s->quality = array(cells, sizeof(double));
    s->n = array(cells, sizeof(int32_t));
    for (int t = 0; t < s->n_tiers; t++) {
        double capacity;
        if (scanf("%lf %lf", &capacity, &s->per_byte[t]) != 2)
            return 1;
        s->capacity[t] = isinf(capacity) ? INT64_MAX : (int64_t)capacity;
    }
    for (size_t i = 0; i < c; i++)
        if (scanf("%lf %lf", &s->frequency[i], &s->prefill_s[i]) != 2)
            return 1;
    for (size_t i = 0; i < cells; i++) {
        double bytes;
        if (scanf("%lf %lf %lf %d", &bytes, &s->mean[i], &s->std[i], &s->n[i]) != 4)
            return 1;
        s->bytes[i] = (int64_t)bytes;
    }
    return 0;
}

static void release(struct step *s)
{
    void *at[] = { s->frequency, s->prefill_s, s->bytes, s->mean, s->std, s->n, s->quality };

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
        free(at[i]);
}

static int run(struct step *s)
{
    struct belief_cells cells = { s->n_contexts, s->n_configs, s->mean, s->std, s->n };
    struct plan_problem problem = { .n_contexts = s->n_contexts,
                                    .n_configs = s->n_configs,
                                    .n_tiers = s->n_tiers,
                                    .capacity = s->capacity,
                                    .candidates = candidates,
                                    .arg = s };
    struct belief belief;
    struct plan plan;
    struct err err;

    if (belief_fit(&belief, &cells, &err))
        return 1;
    for (size_t i = 0; i < (size_t)s->n_contexts * (size_t)s->n_configs; i++)
        s->quality[i] = belief_of(&belief, (int)(i % (size_t)s->n_configs), s->mean[i], s->n[i]).quality;
    belief_release(&belief);
    if (plan_solve(&plan, &problem, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err))
        return 1;
    for (int c = 0; c < s->n_contexts; c++)
        printf("%d %d\n", plan.placement[c].config, plan.placement[c].tier);
    plan_release(&plan);
    return fflush(stdout);
}

int main(void)
{
    struct step s;
    int code = 0;

    while (!code && !read_step(&s)) {
        code = run(&s);
        release(&s);
    }
    return code;
}
