/* cpu_product.h - rows of bf16 times a packed weight, on the tiles of AMX.
 *
 * Answers are decoded by some hundred rows at a time, and each of the model's weights comes from memory for them: what
 * counts is that the next numbers are on their way while these are multiplied. By 30 layers of 576 columns, one after
 * the other, on two Sapphire Rapids cores: 128 rows at 1,900 GFLOP/s and 512 at 2,700, where oneDNN 2.6 has 1,200 and
 * 2,000.
 *
 * Every number of c is added up in one order, whatever other rows there are.
 */
#ifndef EVP_CPU_PRODUCT_H
#define EVP_CPU_PRODUCT_H

#include "kernels/backend.h"

enum {
    PRODUCT_ROWS = 32, // fewer are multiplied as so many
    PRODUCT_COLS = 32, // of a panel: columns of c whose weights lie together
    PRODUCT_STEP = 32, // k is a multiple of it
};

/* c (m, n) = or += a (m, k) times w, in f32 or, where it is not added to, bf16. */
struct product {
    void *c;
    const void *a; // at least PRODUCT_ROWS rows can be read
    const void *w;
    const float *bias; // (n), or NULL
    int m, n, k;
    enum dtype out;
    enum gemm_into into;
};

/* Needs AMX for bf16, and that this process may use it. */
void product_amx(const struct product *p, int n_threads);

/* Bytes of w. */
size_t product_weight_bytes(int n, int k);

/* Puts row `row` of the weight, its k numbers in bf16, in its place; rows beyond n, to a multiple of PRODUCT_COLS, are
 * zeros. */
void product_pack_row(void *w, int row, const uint16_t *numbers, int k);

#endif
