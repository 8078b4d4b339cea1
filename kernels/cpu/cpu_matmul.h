/* cpu_matmul.h - matrix products by oneDNN (one primitive per shape, made once and kept) and packed weights. On AMX the
 * products by packed weights in bf16 are our own (cpu_product.h), where the weight's columns are a multiple of
 * PRODUCT_STEP.
 *
 * Making a primitive takes 0.2 ms and 60 to 110 KB, finding it later one hash look-up. A shape for which oneDNN has
 * only its slow reference code is an error: otherwise the program would silently be a hundred times slower.
 *
 * A row of c has the same bits whatever the number of rows. On AVX-512 oneDNN guarantees that for any number of rows in
 * f32, and from a few rows on in bf16; fewer rows are padded. Elsewhere products are made in blocks of a fixed number
 * of rows, the last one padded, each block on one thread. Products by a packed weight are then cut into panels of
 * columns, so that all threads have work.
 *
 * Products by a packed weight run on all threads and must be called outside parallel regions. The others run on the
 * calling thread, inside or outside.
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
    RIGHT_PANEL,      // n columns of a packed weight; only inside cpu_matmul.c
};

/* c (m, n) = or += a (m, k) times the right side; all dense. a and the right side are of type `in`, c of type `out`. */
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

/* The rows of a and c that a product of `rows` rows by an unpacked right side of n columns needs; shape.m must be such
 * a number. With a packed weight any m is valid. */
int matmul_rows(const struct matmul *m, int rows, int n, enum dtype in);

/* thread: the caller's number, 0 .. n_threads - 1. */
int matmul_run(struct matmul *m, const struct matmul_shape *shape, const struct operands *at, int thread,
               struct err *err) MUST_CHECK;

/* Frees the primitives when there are too many for the next op. Call it outside parallel regions only. */
void matmul_trim(struct matmul *m);

/* The most memory that oneDNN takes for products of these shapes and for the kept primitives. */
size_t matmul_scratch(struct matmul *m, const struct matmul_shape *shape, int n_shapes);

/* oneDNN's name for its code that multiplies many rows by a packed weight; NULL: it has no fast code. */
const char *matmul_code(struct matmul *m, int out, int in, enum dtype type);

/* A weight in oneDNN's preferred layout, from n_parts host matrices as in backend.weight_new. */
struct weight *matmul_pack(struct matmul *m, const struct mat *host, int n_parts, enum dtype type, struct err *err);
struct weight_bytes matmul_weight_bytes(struct matmul *m, int out, int in, enum dtype type);
void matmul_weight_free(struct weight *w);

#endif
