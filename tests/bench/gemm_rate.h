/* gemm_rate.h - the rate that oneDNN's matrix products reach on this machine: what the engine's speed is a share of. */
#ifndef EVP_GEMM_RATE_H
#define EVP_GEMM_RATE_H

#include "kernels/kv.h"

/* Operations per second of products of 512 rows by a (out, in) weight on all cores: the best of some tenths of a
 * second. 0 where oneDNN fails. */
double gemm_rate(enum dtype dtype, int out, int in);

#endif
