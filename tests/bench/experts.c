/* experts.c - a mixture of experts beside a dense product: operations that the rows use, per second.
 *
 *     experts [DTYPE [ROWS]]      f32, 512 rows; the layer is that of Qwen3-30B-A3B: 128 experts, 8 for each row
 *
 * Prints both rates and their ratio. One thread and its own seconds of processor, so other work on the machine counts
 * little; the two are measured in turn and the best of each counts.
 */
#include "base/parse.h"
#include "kernels/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { EXPERTS = 128, USED = 8, WIDTH = 2048, INNER = 768, TURNS = 8, PRODUCTS = 6 };

struct bench {
    struct backend *be;
    struct weight *router;
    const struct weight *gate_up[EXPERTS], *down[EXPERTS];
    struct mat x, normed;
    void *out; // of a dense product
    int rows;
};

static struct weight *random_weight(struct backend *be, int out, int in, unsigned seed)
{
    size_t n = (size_t)out * (size_t)in;
    float *host = malloc(n * sizeof(*host));
    struct mat part = { host, DTYPE_F32, out, in, in };
    struct err err = { 0 };

    for (size_t i = 0; host && i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        host[i] = (float)(seed >> 16) * 0x1p-16f - 0.5f;
    }
    struct weight *w = host ? be->weight_new(be, &part, 1, &err) : NULL;
    free(host);
    return w;
}

/* Rows of the backend's dtype, and a residual. */
static int make_rows(struct bench *b)
{
    struct backend *be = b->be;
    size_t n = (size_t)b->rows * WIDTH;
    float *host = malloc(n * sizeof(*host));
    struct err err;
    char *at = be->alloc(be, n * (2 * sizeof(float) + dtype_size(be->dtype)), &err);
    unsigned seed = 7;

    b->out = be->alloc(be, (size_t)b->rows * 2 * INNER * sizeof(float), &err);
    if (!host || !at || !b->out)
        return 1;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        host[i] = (float)(seed >> 16) * 0x1p-15f - 1;
    }
    b->x = (struct mat){ at, DTYPE_F32, b->rows, WIDTH, WIDTH };
    b->normed = (struct mat){ at + n * 2 * sizeof(float), be->dtype, b->rows, WIDTH, WIDTH };
    float *ones = (float *)(void *)(at + n * sizeof(float));
    for (size_t i = 0; i < WIDTH; i++)
        host[i] = 1;
    be->write(be, ones, host, WIDTH * sizeof(float));
    be->write(be, at, host, n * sizeof(float));
    be->rmsnorm(be, b->normed, b->x, ones, 1e-5f, GEMM_SET);
    free(host);
    return 0;
}

/* Seconds of processor of this process, after what was queued. */
static double seconds(struct backend *be)
{
    be->clock(be);
    return (double)clock() / CLOCKS_PER_SEC;
}

static double moe_rate(struct bench *b)
{
    const struct experts experts = { .router = b->router,
                                     .gate_up = b->gate_up,
                                     .down = b->down,
                                     .n = EXPERTS,
                                     .n_used = USED,
                                     .width = INNER,
                                     .renormalise = true };
    double flop = 2.0 * b->rows * WIDTH * (EXPERTS + 3.0 * USED * INNER), start = seconds(b->be);

    b->be->moe(b->be, b->x, b->normed, &experts);
    return flop / (seconds(b->be) - start);
}

/* 512 rows by the two matrices of one expert: as much as fits a dense layer of its width. */
static double dense_rate(struct bench *b)
{
    struct mat out = { b->out, b->be->dtype, b->rows, 2 * INNER, 2 * INNER };
    double start = seconds(b->be);

    for (int i = 0; i < PRODUCTS; i++)
        b->be->gemm(b->be, out, b->normed, b->gate_up[i], NULL, GEMM_SET);
    return 2.0 * PRODUCTS * b->rows * WIDTH * 2 * INNER / (seconds(b->be) - start);
}

static int make(struct bench *b)
{
    b->router = random_weight(b->be, EXPERTS, WIDTH, 1);
    for (unsigned e = 0; e < EXPERTS; e++) {
        b->gate_up[e] = random_weight(b->be, 2 * INNER, WIDTH, 2 * e + 2);
        b->down[e] = random_weight(b->be, WIDTH, INNER, 2 * e + 3);
        if (!b->gate_up[e] || !b->down[e])
            return 1;
    }
    return !b->router || make_rows(b);
}

int main(int argc, char **argv)
{
    const struct backend_options options = { .name = "cpu", .dtype = argc > 1 ? argv[1] : "f32", .n_threads = 1 };
    struct err err;
    struct bench b = { .be = backend_open(&options, &err) };
    double dense = 0, moe = 0;
    int64_t rows = 512;

    if (argc > 2 && !parse_int(argv[2], &rows))
        return 1;
    b.rows = (int)rows;
    if (!b.be || make(&b)) {
        fprintf(stderr, "experts: %s\n", b.be ? "out of memory" : err.msg);
        return 1;
    }
    for (int i = 0; i < TURNS; i++) {
        double rate = dense_rate(&b);
        dense = rate > dense ? rate : dense;
        rate = moe_rate(&b);
        moe = rate > moe ? rate : moe;
    }
    printf("%s, %d rows: experts %.0f GFLOP/s, dense product %.0f GFLOP/s: %.2f\n", b.be->kind, b.rows, moe * 1e-9,
           dense * 1e-9, moe / dense);
    return 0;
}
