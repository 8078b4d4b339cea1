/* aim.c - how long a list of evp-aim takes, and how much memory: aim N, contexts of tests/bench/instance.h (60 configs,
 * 4 tiers); a third of them was visited; 24 train questions each. Prints the seconds of the plan, of the expected loss
 * and of a list of 4 % of the cost, and the bytes per cell besides the instance's own. */
#include "base/clock.h"
#include "planner/aim.h"
#include "tests/bench/instance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { QUESTIONS = 24, ANSWER = 50, TOKENS = 4000 };

struct bench {
    struct instance in;
    double *quality; // (n, 60)
    float *sd;
    int32_t *asked;
    double *mean, *between, *within; // (60)
};

static struct aim_context context_of(const void *arg, int context)
{
    const struct bench *b = arg;

    return (struct aim_context){ .first = (size_t)context * INSTANCE_CONFIGS,
                                 .scale = (double)b->in.frequency[context],
                                 .visit = TOKENS,
                                 .answer = ANSWER,
                                 .n_questions = QUESTIONS };
}

static int make(struct bench *b, int n, struct err *err)
{
    size_t cells = (size_t)n * INSTANCE_CONFIGS;

    if (instance_make(&b->in, INSTANCE_REAL, n, 1, err))
        return err->code;
    b->quality = calloc(cells, sizeof(double));
    b->sd = calloc(cells, sizeof(float));
    b->asked = calloc(cells, sizeof(int32_t));
    b->mean = calloc(INSTANCE_CONFIGS, sizeof(double));
    b->between = calloc(INSTANCE_CONFIGS, sizeof(double));
    b->within = calloc(INSTANCE_CONFIGS, sizeof(double));
    if (!b->quality || !b->sd || !b->asked || !b->mean || !b->between || !b->within)
        return err_nomem(err);
    for (int v = 0; v < INSTANCE_CONFIGS; v++) {
        b->between[v] = 0.0058;
        b->within[v] = 0.073;
    }
    for (size_t i = 0; i < cells; i++) {
        b->quality[i] = (double)b->in.quality[i];
        b->asked[i] = i / INSTANCE_CONFIGS % 3 == 0 ? 8 : 0;
        b->sd[i] = b->asked[i] ? 0.059F : 0.076F;
    }
    return 0;
}

static void release(struct bench *b)
{
    instance_release(&b->in);
    free(b->quality);
    free(b->sd);
    free(b->asked);
    free(b->mean);
    free(b->between);
    free(b->within);
}

static int run(struct bench *b, int n, struct err *err)
{
    struct plan_problem problem;
    struct plan plan;
    struct aim_list list;
    double loss, start = clock_now();

    if (make(b, n, err))
        return err->code;
    problem = instance_problem(&b->in);
    double made = clock_now();
    if (plan_solve(&plan, &problem, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, err))
        return err->code;
    double solved = clock_now();
    struct belief belief = { INSTANCE_CONFIGS, b->mean, b->between, b->within, NULL };
    struct aim_problem aim = { .plan = &problem,
                               .price = plan.price,
                               .belief = &belief,
                               .quality = b->quality,
                               .sd = b->sd,
                               .asked = b->asked,
                               .context = context_of,
                               .arg = b };
    double full = (double)n * (TOKENS + (double)QUESTIONS * INSTANCE_CONFIGS * ANSWER);
    int code = aim_expected_loss(&aim, &loss, err);
    double lost = clock_now();
    if (!code)
        code = aim_list_make(&list, &aim, &(struct aim_budget){ 0.04 * full, 1e-3 * plan.objective / full }, err);
    if (!code)
        printf(
            "aim %d contexts: made in %.2f s, plan %.2f s, expected loss %.2f s, list %.2f s (%d contexts, %.2f %% of "
            "the cost), %zu bytes per cell\n",
            n, made - start, solved - made, lost - solved, clock_now() - lost, list.n, 100 * list.cost / full,
            sizeof(*b->quality) + sizeof(*b->sd) + sizeof(*b->asked));
    if (!code)
        aim_list_release(&list);
    plan_release(&plan);
    return code;
}

int main(int argc, char **argv)
{
    struct bench b = { 0 };
    struct err err;
    int code = run(&b, argc > 1 ? (int)strtol(argv[1], NULL, 10) : 100000, &err);

    if (code)
        fprintf(stderr, "aim: %s\n", err.msg);
    release(&b);
    return code ? 1 : 0;
}
