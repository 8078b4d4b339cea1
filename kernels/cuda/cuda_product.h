/* cuda_product.h - products by the weights of one shape: how they are computed, and how that is chosen.
 *
 * Column-major, as in cublas: w (in, out) transposed, x (in, rows), result (out, rows).
 */
#ifndef EVP_CUDA_PRODUCT_H
#define EVP_CUDA_PRODUCT_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/cuda_internal.h"

enum { CUDA_WORKSPACE_BYTES = 32 << 20 }; // of c->workspace; cublasLt recommends this for sm_90

enum cuda_way { WAY_OPEN, WAY_CUBLASLT, WAY_OURS }; // OPEN: not chosen, no product with this type of result so far

/* The products with results of one type. */
struct cuda_result {
    enum dtype type;
    enum cuda_way way;
    cublasLtMatrixLayout_t layout;
    cublasLtMatmulAlgo_t algo; // WAY_CUBLASLT
    int n_differed;            // candidates whose rows had other bits alone than among others
};

struct cuda_product {
    int out, in;
    cublasLtMatrixLayout_t w, x;
    struct cuda_result result[2]; // of the backend's dtype; of f32 unless that is the dtype
    struct cuda_product *next;
};

struct cuda_weight {
    struct weight base;
    struct cuda_product *product;
};

static inline struct cuda_result *cuda_result_of(const struct cuda_weight *w, enum dtype type)
{
    return &w->product->result[w->product->result[0].type == type ? 0 : 1];
}

bool cuda_lt_ok(struct cuda *c, cublasStatus_t status, const char *what);

/* Sets the number of rows of x or of a result. False: failed and recorded. */
bool cuda_set_rows(struct cuda *c, cublasLtMatrixLayout_t layout, int rows);

/* Chooses how `result` is computed and sets result->way; w is any weight of the shape. Takes memory temporarily and
 * waits for the device. False: failed and recorded. */
bool cuda_choose(struct cuda *c, const struct cuda_weight *w, struct cuda_result *result);

/* The choice, for cuda.h; "open" before the first product. */
void cuda_choice_of(struct backend *be, const struct weight *w, enum dtype type, struct cuda_choice *choice);

#endif
