/* variant_error.c - compares rows head by head in host memory. */
#include "variants/variant_error.h"

#include "methods/head_work.h"

#include <math.h>
#include <stdlib.h>

/* Sums of squares: of the differences, and of the numbers. */
struct sums {
    double off, all;
};

/* kept: the positions of the rows among all; NULL: all are kept. */
static void add_rows(struct sums *s, int K, int n, const int32_t *kept, float *const *rows)
{
    for (int i = 0; i < n; i++) {
        const float *was = rows[0] + (size_t)(kept ? kept[i] : i) * (size_t)K, *is = rows[1] + (size_t)i * (size_t)K;
        for (int j = 0; j < K; j++) {
            double off = (double)is[j] - (double)was[j];
            s->off += off * off;
            s->all += (double)was[j] * (double)was[j];
        }
    }
}

/* A head before and after, and memory for its rows. */
struct head {
    const struct kv_rows *was, *is;
    const int32_t *kept;
    float *const *rows; // [2]
};

static int add_head(struct sums s[2], const struct variant *v, const struct head *h, struct err *err)
{
    struct backend *be = v->backend;
    size_t K = (size_t)v->shape.head_dim, n_was = (size_t)h->was->n * K, n_is = (size_t)h->is->n * K;

    for (int side = 0; side < 2; side++) {
        if (read_as_f32(be, h->rows[0], side ? h->was->v : h->was->k, n_was, err) ||
            read_as_f32(be, h->rows[1], side ? h->is->v : h->is->k, n_is, err))
            return err->code;
        add_rows(&s[side], v->shape.head_dim, h->is->n, h->kept, h->rows);
    }
    return 0;
}

int variant_errors(const struct kv_full *full, const struct variant *v, double *error, struct err *err)
{
    size_t numbers = (size_t)full->n_tokens * (size_t)v->shape.head_dim;
    float *const rows[] = { malloc(numbers * sizeof(float)), malloc(numbers * sizeof(float)) };
    int code = rows[0] && rows[1] ? 0 : err_nomem(err), G = v->shape.n_kv_heads;
    const int32_t *kept = v->kept;

    for (int l = 0; l < v->shape.n_layers && !code; l++) {
        struct sums s[2] = { { 0 } };
        for (int g = 0; g < G && !code; g++) {
            int h = l * G + g;
            code = add_head(s, v, &(struct head){ &full->rows[h], &v->rows[h], kept, rows }, err);
            kept += kept ? v->rows[h].n : 0;
        }
        for (int side = 0; side < 2; side++)
            error[2 * l + side] = s[side].all > 0 ? sqrt(s[side].off / s[side].all) : 0;
    }
    free(rows[0]);
    free(rows[1]);
    return code;
}
