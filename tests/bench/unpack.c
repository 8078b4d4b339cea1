/* unpack [TIMES] - reads a matrix of 1 GiB of f32 numbers from each layout of codes with scales, as the engine does,
 * with all threads, and prints the bytes written per second beside those of memcpy() on as many threads; the fastest of
 * TIMES (3). */
#include "base/clock.h"
#include "base/parallel.h"
#include "engine/model/model_internal.h"
#include "kernels/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 32768, COLS = 8192, GROUP = 128 };
static const size_t BYTES = (size_t)ROWS * COLS * sizeof(float);
static const size_t PIECE = 1 << 20;

struct job {
    float *to, *from;
    struct model *model;
};

static void copy_piece(void *arg, int i)
{
    struct job *j = arg;

    memcpy((char *)j->to + (size_t)i * PIECE, (char *)j->from + (size_t)i * PIECE, PIECE);
}

static void copy(struct job *j)
{
    parallel_do(parallel_threads(), (int)(BYTES / PIECE), copy_piece, j);
}

static void unpack(struct job *j)
{
    const struct mat out = { j->to, DTYPE_F32, ROWS, COLS, COLS };
    struct err err;

    if (model_read_mat(j->model, TENSOR_HEAD, 0, &out, &err)) {
        fprintf(stderr, "unpack: %s\n", err.msg);
        exit(1);
    }
}

static double best_rate(void (*work)(struct job *), struct job *j, int times)
{
    double best = 0;

    for (int i = 0; i < times; i++) {
        double start = clock_now();
        work(j);
        double rate = (double)BYTES / (clock_now() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        enum weight_type type;
        int bits, block_rows, block_cols;
        enum st_type scale;
        bool zeros, shuffled;
    } layouts[] = {
        { "FP8, blocks", WEIGHT_FP8, 8, 128, 128, ST_F32, false, false },
        { "FP8, rows in bf16", WEIGHT_FP8, 8, 1, COLS, ST_BF16, false, false },
        { "INT, 4 bits", WEIGHT_INT, 4, 1, GROUP, ST_BF16, false, false },
        { "AWQ", WEIGHT_AWQ, 4, 1, GROUP, ST_F16, true, false },
        { "GPTQ", WEIGHT_GPTQ, 4, 1, GROUP, ST_F16, true, false },
        { "GPTQ, act order", WEIGHT_GPTQ, 4, 1, GROUP, ST_F16, true, true },
        { "NVFP4", WEIGHT_NVFP4, 4, 1, 16, ST_F8_E4M3, false, false },
        { "MXFP4", WEIGHT_MXFP4_ROWS, 4, 1, 32, ST_U8, false, false },
    };
    const int times = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 3;
    struct job j = { malloc(BYTES), malloc(BYTES), calloc(1, sizeof(*j.model)) };
    uint8_t *codes = (uint8_t *)j.from, *scale = malloc(BYTES / 16), *zeros = malloc(BYTES / 16);
    int32_t *group = malloc(COLS * sizeof(*group));

    if (!j.to || !j.from || !j.model || !scale || !zeros || !group)
        return 1;
    memset(codes, 0x35, BYTES);
    memset(scale, 0x30, BYTES / 16);
    memset(zeros, 0x77, BYTES / 16);
    for (int c = 0; c < COLS; c++)
        group[c] = c * 31 % (COLS / GROUP);
    double plain = best_rate(copy, &j, times);
    printf("memcpy\t%.2f GB/s\n", plain / 1e9);
    map_add(&j.model->names, "lm_head.weight", strlen("lm_head.weight"), NULL);
    j.model->config = (struct model_config){ .n_vocab = ROWS, .d_model = COLS };
    for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
        int64_t groups = COLS / layouts[i].block_cols;
        bool across = layouts[i].type == WEIGHT_AWQ || layouts[i].type == WEIGHT_GPTQ;
        struct packed p = { .type = layouts[i].type,
                            .bits = layouts[i].bits,
                            .rows = ROWS,
                            .cols = COLS,
                            .block_rows = layouts[i].block_rows,
                            .block_cols = layouts[i].block_cols,
                            .n_groups = groups,
                            .codes = codes,
                            .scale = scale,
                            .scale_type = layouts[i].scale,
                            .group = layouts[i].shuffled ? (uint8_t *)group : NULL,
                            .scale_row = across ? 1 : groups,
                            .scale_group = across ? ROWS : 1,
                            .factor = 1,
                            .divisor = 1,
                            .zeros = layouts[i].zeros ? zeros : NULL,
                            .zero = 1 };
        struct tensor t = {
            .name = layouts[i].name, .type = p.type, .n_dims = 2, .dim = { ROWS, COLS }, .at = codes, .packed = &p
        };
        j.model->tensor = &t;
        double rate = best_rate(unpack, &j, times);
        printf("%s\t%.2f GB/s\t%.2f of memcpy\n", layouts[i].name, rate / 1e9, rate / plain);
        fflush(stdout);
    }
    return 0;
}
