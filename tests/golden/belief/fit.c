/* fit.c - what planner/belief.c makes of numbers from standard input: contexts and configs; then mean,
 * deviation and number of each cell. Prints mean, between and within of each config, then quality and sd of each cell.
 */
#include "planner/belief.h"

#include <stdio.h>
#include <stdlib.h>

static int fit(int n_contexts, int n_configs)
{
    size_t n = (size_t)n_contexts * (size_t)n_configs;
    double *mean = calloc(n, sizeof(*mean)), *std = calloc(n, sizeof(*std));
    int32_t *count = calloc(n, sizeof(*count));
    struct belief b = { 0 };
    struct err err;
    int code = 1;

    for (size_t i = 0; i < n; i++)
        if (scanf("%lf %lf %d", &mean[i], &std[i], &count[i]) != 3)
            goto out;
    if (belief_fit(&b, &(struct belief_cells){ n_contexts, n_configs, mean, std, count }, &err))
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
    free(mean);
    free(std);
    free(count);
    return code;
}

int main(void)
{
    int n_contexts, n_configs;

    if (scanf("%d %d", &n_contexts, &n_configs) != 2 || n_contexts < 1 || n_configs < 1)
        return 1;
    return fit(n_contexts, n_configs);
}
