/* step.c - one step of aimed profiling after another, as numbers on standard input and output: what is believed, the
 * plan, what to ask next. For check.py and replay.py, which say what the answers are.
 *
 * In, for each step: C V T alpha budget min_tau answer; per tier capacity, seconds per byte, latency; per context
 * frequency, prefill_s, visit, questions, floor; per cell bytes, mean, std, n.
 * Out, one number or row a line: mean, between, within of each config; objective, upper bound, expected loss without
 * the gap, the list's cost and tau; the prices; config and tier of each context; requests: how many, then of each
 * context, n, worth, cost, how many configs, and these.
 */
#include "planner/aim.h"
#include "planner/utility.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct step {
    int n_contexts, n_configs, n_tiers;
    double alpha, answer, per_byte[PLAN_TIERS], latency[PLAN_TIERS];
    int64_t capacity[PLAN_TIERS], *bytes;
    double *frequency, *prefill_s, *visit, *floor, *mean, *std, *quality;
    float *sd;
    int *n_questions;
    int32_t *n;
    struct aim_budget budget;
    struct belief belief;
};

static double candidates(const void *arg, int context, int64_t *bytes, double *out)
{
    const struct step *s = arg;
    const struct plan_goal goal = { .alpha = s->alpha };
    size_t first = (size_t)context * (size_t)s->n_configs;

    for (int v = 0; v < s->n_configs; v++) {
        bytes[v] = s->bytes[first + (size_t)v];
        for (int t = 0; t < s->n_tiers; t++)
            out[v * s->n_tiers + t] =
                utility(&goal, s->quality[first + (size_t)v], s->latency[t] + s->per_byte[t] * (double)bytes[v], 0,
                        s->frequency[context]);
    }
    return utility_recomputed(&goal, s->prefill_s[context], 0, s->frequency[context]);
}

static struct aim_context context_of(const void *arg, int context)
{
    const struct step *s = arg;

    return (struct aim_context){ (size_t)context * (size_t)s->n_configs,
                                 s->alpha * s->frequency[context],
                                 s->floor[context],
                                 s->visit[context],
                                 s->answer,
                                 s->n_questions[context] };
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
    if (scanf("%d %d %d %lf %lf %lf %lf", &s->n_contexts, &s->n_configs, &s->n_tiers, &s->alpha, &s->budget.cost,
              &s->budget.min_tau, &s->answer) != 7)
        return 1;
    size_t c = (size_t)s->n_contexts, cells = c * (size_t)s->n_configs;
    s->frequency = array(c, sizeof(double));
    s->prefill_s = array(c, sizeof(double));
    s->visit = array(c, sizeof(double));
    s->floor = array(c, sizeof(double));
    s->n_questions = array(c, sizeof(int));
    s->bytes = array(cells, sizeof(int64_t));
    s->mean = array(cells, sizeof(double));
    s->std = array(cells, sizeof(double));
    s->quality = array(cells, sizeof(double));
    s->sd = array(cells, sizeof(float));
    s->n = array(cells, sizeof(int32_t));
    for (int t = 0; t < s->n_tiers; t++) {
        double capacity;
        if (scanf("%lf %lf %lf", &capacity, &s->per_byte[t], &s->latency[t]) != 3)
            return 1;
        s->capacity[t] = isinf(capacity) ? INT64_MAX : (int64_t)capacity;
    }
    for (size_t i = 0; i < c; i++)
        if (scanf("%lf %lf %lf %d %lf", &s->frequency[i], &s->prefill_s[i], &s->visit[i], &s->n_questions[i],
                  &s->floor[i]) != 5)
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
    void *at[] = { s->frequency, s->prefill_s, s->visit, s->floor,   s->n_questions, s->bytes,
                   s->mean,      s->std,       s->n,     s->quality, s->sd };

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
        free(at[i]);
    belief_release(&s->belief);
}

static void print_list(const struct aim_list *list)
{
    printf("%d\n", list->n);
    for (int i = 0; i < list->n; i++) {
        const struct aim_request *r = &list->at[i];
        printf("%d %d %.17g %.17g %d", r->context, r->n, r->worth, r->cost, r->n_configs);
        for (int k = 0; k < r->n_configs; k++)
            printf(" %d", list->configs.at[r->first + (size_t)k]);
        printf("\n");
    }
}

static int print_step(const struct step *s, const struct plan *plan, const struct aim_list *list, double loss)
{
    for (int v = 0; v < s->n_configs; v++)
        printf("%.17g %.17g %.17g\n", s->belief.mean[v], s->belief.between[v], s->belief.within[v]);
    printf("%.17g %.17g %.17g %.17g %.17g\n", plan->objective, plan->upper_bound, loss, list->cost, list->tau);
    for (int t = 0; t < s->n_tiers; t++)
        printf("%.17g\n", plan->price[t]);
    for (int c = 0; c < s->n_contexts; c++)
        printf("%d %d\n", plan->placement[c].config, plan->placement[c].tier);
    print_list(list);
    return fflush(stdout);
}

static int run(struct step *s)
{
    struct belief_cells cells = { s->n_contexts, s->n_configs, s->mean, s->std, s->n, NULL };
    struct plan_problem problem = { .n_contexts = s->n_contexts,
                                    .n_configs = s->n_configs,
                                    .n_tiers = s->n_tiers,
                                    .capacity = s->capacity,
                                    .candidates = candidates,
                                    .arg = s };
    struct plan plan;
    struct aim_list list;
    struct err err;
    double loss;

    if (belief_fit(&s->belief, &cells, &err))
        return 1;
    for (size_t i = 0; i < (size_t)s->n_contexts * (size_t)s->n_configs; i++) {
        struct believed is = belief_of(&s->belief, (int)(i % (size_t)s->n_configs), s->mean[i], s->n[i]);
        s->quality[i] = is.quality;
        s->sd[i] = (float)is.sd;
    }
    if (plan_solve(&plan, &problem, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err))
        return 1;
    struct aim_problem aim = { .plan = &problem,
                               .price = plan.price,
                               .belief = &s->belief,
                               .quality = s->quality,
                               .sd = s->sd,
                               .asked = s->n,
                               .sure_z = 0.6744897501960817,
                               .context = context_of,
                               .arg = s };
    if (aim_expected_loss(&aim, &loss, &err) || aim_list_make(&list, &aim, &s->budget, &err))
        return 1;
    print_step(s, &plan, &list, loss);
    aim_list_release(&list);
    plan_release(&plan);
    return 0;
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
