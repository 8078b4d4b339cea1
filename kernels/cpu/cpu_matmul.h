/* cpu_matmul.h - f32 matrix products by oneDNN, one primitive per shape, made once and kept.
 *
 * Making a primitive takes 0.2 ms, finding it later a hash look-up, so shapes are used exactly as they come. A shape
 * for which oneDNN has only its slow reference code is refused: otherwise the program would silently be a hundred times
 * slower.
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
    RIGHT_ROWS,       // (k, n), rows ldb apart
    RIGHT_TRANSPOSED, // (n, k), rows ldb apart: c = a b^T
};

/* c (m, n) = or += a (m, k) times the right side; lda, ldc: elements from row to row. */
struct matmul_shape {
    int m, n, k, lda, ldb, ldc;
    enum matmul_right right;
    enum gemm_into into;
    bool bias;
};

struct matmul *matmul_open(int n_threads, struct err *err);
void matmul_close(struct matmul *m);

/* c and a dense enough for the shape; bias (n) or NULL as the shape says; thread: 0 .. n_threads - 1, the caller's own
 * number. right: a const float * or, for RIGHT_PACKED, NULL with `weight` given. */
int matmul_run(struct matmul *m, const struct matmul_shape *shape, float *c, const float *a, const float *right,
               const struct weight *weight, const float *bias, int thread, struct err *err) MUST_CHECK;

/* Forgets the primitives when there are too many. Only from outside parallel regions. */
void matmul_trim(struct matmul *m);

/* A weight in oneDNN's preferred layout, from n_parts host matrices as backend.weight_new says. */
struct weight *matmul_pack(struct matmul *m, const struct mat *host, int n_parts, struct err *err);
void matmul_weight_free(struct weight *w);

#endif
