/* quant_rotation.h - rotations of QUANT_LLOYD (codes/quant_row.h) for any number of columns: matrices of a Gaussian's
 * QR decomposition, the same on every machine. */
#ifndef EVP_QUANT_ROTATION_H
#define EVP_QUANT_ROTATION_H

#include "codes/quant_row.h"

/* The matrices of q's row, for q->rotation; free() them. For n columns: sqrt(n) Q transposed, then sqrt(n) Q, (n, n)
 * each; first those of the columns that are no outliers, then those of the outliers. NULL: out of memory. */
float *quant_rotation_new(const struct quant_row *q);

#endif
