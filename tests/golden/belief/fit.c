/* fit.c - what planner/belief.c makes of numbers from standard input: contexts, configs and whether there is a prior;
 * then mean, deviation and number of each cell; then mean, between and within of each config by the prior. Prints mean,
 * between and within of each config, then quality and sd of each cell. */
#include "planner/belief.h"

#include <stdio.h>
#include <stdlib.h>

/* False: the numbers end too early. */
static bool read_prior(struct belief *prior, int n_configs)
{
    size_t n = (size_t)n_configs;

    *prior = (struct belief){ n_configs, calloc(n, sizeof(double)), calloc(n, sizeof(double)),
                              calloc(n, sizeof(double)), NULL };
    for (int v = 0; v < n_configs; v++)
        if (scanf("%lf %lf %lf", &prior->mean[v], &prior->between[v], &prior->within[v]) != 3)
            return false;
    return true;
}

static int fit(int n_contexts, int n_configs, int with_prior)
{
    size_t n = (size_t)n_contexts * (size_t)n_configs;
    double *mean = calloc(n, sizeof(*mean)), *std = calloc(n, sizeof(*std));
    int32_t *count = calloc(n, sizeof(*count));
    struct belief b = { 0 }, prior = { 0 };
    struct err err;
    int code = 1;

    for (size_t i = 0; i < n; i++)
        if (scanf("%lf %lf %d", &mean[i], &std[i], &count[i]) != 3)
            goto out;
    if (with_prior && !read_prior(&prior, n_configs))
        goto out;
    if (belief_fit(&b, &(struct belief_cells){ n_contexts, n_configs, mean, std, count, with_prior ? &prior : NULL },
                   &err))
        goto out;
    for (int v = 0; v < n_configs; v++)
        printf("%.17g %.17g %.17g\n", b.mean[v], b.between[v], b.within[v]);
    for (size_t i = 0; i < n; i++) {
        struct believed is = belief_of(&b, (int)(i % (size_t)n_configs), mean[i], count[i]);
        printf("%.17g %.17g\n", is.quality, is.sd);
    }
    code = 0;
out:
    belief_release(&b);
    belief_release(&prior);
    free(mean);
    free(std);
    free(count);
    return code;
}

int main(void)
{
    int n_contexts, n_configs, prior;

    if (scanf("%d %d %d", &n_contexts, &n_configs, &prior) != 3 || n_contexts < 1 || n_configs < 1)
        return 1;
    return fit(n_contexts, n_configs, prior);
}
