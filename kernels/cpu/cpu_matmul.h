/* cpu_matmul.h - matrix products by oneDNN, one primitive per shape, made once and kept; and packed weights. By those
 * and on AMX the products are our own (cpu_product.h), where the weight's columns are a multiple of its step.
 *
 * Making a primitive takes 0.2 ms and 60 to 110 KB, finding it later a hash look-up. A shape for which oneDNN has only
 * its slow reference code is refused: otherwise the program would silently be a hundred times slower.
 *
 * Rows do not know each other: a row of c has the same bits however many rows come with it. oneDNN keeps that on
 * AVX-512 for all numbers of rows in f32, and in bf16 from a few rows on: fewer are padded. Elsewhere products
 * are made in blocks of one number of rows, the last of them padded, and each block on one thread; by a packed weight
 * in panels of columns, so that all threads have work.
 *
 * Products by a packed weight run on all threads and are called from outside parallel regions; the others run on the
 * calling thread, from inside or outside.
 */
#ifndef EVP_CPU_MATMUL_H
#define EVP_CPU_MATMUL_H

#include "base/err.h"
#include "kernels/backend.h"

#include <stdbool.h>

struct matmul; // oneDNN's engine and the primitives made so far

enum matmul_right {
    RIGHT_PACKED,     // a struct weight
    RIGHT_ROWS,       // (k, n)
    RIGHT_TRANSPOSED, // (n, k): c = a b^T
    RIGHT_PANEL,      // n columns of a packed weight, inside cpu_matmul.c alone
};

/* c (m, n) = or += a (m, k) times the right side. All are dense. a and the right side are of type `in`, c of `out`. */
struct matmul_shape {
    int m, n, k;
    enum dtype in, out;
    enum matmul_right right;
    enum gemm_into into;
    bool bias;
    int whole; // RIGHT_PANEL: columns of the weight and of c; otherwise 0
};

struct operands {
    void *c;
    const void *a, *right; // right: NULL for RIGHT_PACKED
    const struct weight *weight;
    const float *bias; // (n), or NULL as the shape says
};

struct matmul *matmul_open(int n_threads, struct err *err);
void matmul_close(struct matmul *m);

/* The rows of a and c that a product of `rows` rows by something not packed, of n columns, needs; shape.m is such a
 * number. By a packed weight m is any number. */
int matmul_rows(const struct matmul *m, int rows, int n, enum dtype in);

/* thread: 0 .. n_threads - 1, the caller's own number. */
int matmul_run(struct matmul *m, const struct matmul_shape *shape, const struct operands *at, int thread,
               struct err *err) MUST_CHECK;

/* Forgets the primitives when there are too many for the next op. Only from outside parallel regions. */
void matmul_trim(struct matmul *m);

/* The most memory that oneDNN takes for products of these shapes and for the primitives kept. */
size_t matmul_scratch(struct matmul *m, const struct matmul_shape *shape, int n_shapes);

/* oneDNN's name of the code that multiplies many rows by a packed weight; NULL: it has none that is fast. */
const char *matmul_code(struct matmul *m, int out, int in, enum dtype type);

/* A weight in oneDNN's preferred layout, from n_parts host matrices as backend.weight_new says. */
struct weight *matmul_pack(struct matmul *m, const struct mat *host, int n_parts, enum dtype type, struct err *err);
struct weight_bytes matmul_weight_bytes(struct matmul *m, int out, int in, enum dtype type);
void matmul_weight_free(struct weight *w);

#endif
