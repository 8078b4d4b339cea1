/* gemm_rate.c - one product, again and again. */
#include "tests/bench/gemm_rate.h"

#include <stdlib.h>

enum { ROWS = 512 };

/* Seconds of one product, the best of many. */
static double best_of(struct backend *be, const struct weight *w, struct mat x, struct mat out)
{
    double best = 1e9, begin = be->clock(be);

    while (be->clock(be) - begin < 0.6) {
        double start = be->clock(be);
        be->gemm(be, out, x, w, NULL, GEMM_SET);
        double taken = be->clock(be) - start;
        best = taken < best ? taken : best;
    }
    return best;
}

double gemm_rate(struct backend *be, int out, int in)
{
    size_t number = dtype_size(be->dtype), n = (size_t)out * (size_t)in;
    float *host = malloc(n * sizeof(*host)), *rows = malloc((size_t)ROWS * (size_t)in * sizeof(*rows));
    struct err err;
    double rate = 0;

    if (!host || !rows)
        return 0;
    for (size_t i = 0; i < n; i++)
        host[i] = (float)(i % 97) * 0.01f - 0.4f;
    for (size_t i = 0; i < (size_t)ROWS * (size_t)in; i++)
        rows[i] = (float)(i % 89) * 0.01f - 0.4f;
    struct mat weights = { host, DTYPE_F32, out, in, in }, table = { rows, DTYPE_F32, ROWS, in, in };
    struct weight *w = be->weight_new(be, &weights, 1, &err);
    char *space = be->alloc(be, (size_t)ROWS * (size_t)(in + out) * number + (size_t)ROWS * (size_t)in * 4, &err);
    if (w && space) {
        float *ones = (float *)(void *)(space + (size_t)ROWS * (size_t)(in + out) * number);
        be->write(be, ones, rows, (size_t)ROWS * (size_t)in * sizeof(float));
        table.at = ones;
        struct mat x = { space, be->dtype, ROWS, in, in };
        struct mat y = { space + (size_t)ROWS * (size_t)in * number, be->dtype, ROWS, out, out };
        be->rmsnorm(be, x, table, ones, 1e-5f); // numbers of the backend's dtype
        rate = 2.0 * ROWS * out * in / best_of(be, w, x, y);
    }
    be->free(be, space);
    be->weight_free(be, w);
    free(host);
    free(rows);
    return rate;
}
