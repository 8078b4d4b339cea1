/* gemm_rate.h - the rate that a machine's own matrix products reach: what the engine's speed is a share of. */
#ifndef EVP_GEMM_RATE_H
#define EVP_GEMM_RATE_H

#include "kernels/backend.h"

/* Operations per second of products of 512 rows by a (out, in) weight, in the backend's dtype: the best of some tenths
 * of a second. 0 without memory. */
double gemm_rate(struct backend *be, int out, int in);

#endif
