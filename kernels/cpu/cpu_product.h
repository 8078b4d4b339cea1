/* cpu_product.h - rows of bf16 times a packed weight, on the tiles of AMX.
 *
 * Decoding multiplies some hundred rows at a time by weights that all come from memory, so the next numbers are
 * prefetched during the product. Measured with 30 layers of 576 columns, one after the other, on two Sapphire Rapids
 * cores: 128 rows at 1,900 GFLOP/s and 512 at 2,700; oneDNN 2.6: 1,200 and 2,000.
 *
 * Every number of c is summed in one order, whatever the other rows are.
 */
#ifndef EVP_CPU_PRODUCT_H
#define EVP_CPU_PRODUCT_H

#include "kernels/backend.h"

enum {
    PRODUCT_ROWS = 32, // fewer rows cost the same
    PRODUCT_COLS = 32, // columns of a panel: their weights are contiguous
    PRODUCT_STEP = 32, // k is a multiple of it
};

/* c (m, n) = or += a (m, k) times w. c is f32, or bf16 with GEMM_SET. */
struct product {
    void *c;
    const void *a; // at least PRODUCT_ROWS rows can be read
    const void *w;
    const float *bias; // (n), or NULL
    int m, n, k;
    enum dtype out;
    enum gemm_into into;
};

/* The processor must have AMX for bf16, and the process must be allowed to use it. */
void product_amx(const struct product *p, int n_threads);

/* Bytes of w. */
size_t product_weight_bytes(int n, int k);

/* Stores row `row` of the weight, k numbers in bf16. The caller adds rows of zeros beyond n, up to a multiple of
 * PRODUCT_COLS. */
void product_pack_row(void *w, int row, const uint16_t *numbers, int k);

#endif
