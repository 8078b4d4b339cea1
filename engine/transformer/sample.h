/* sample.h - a token drawn by its probability, softmax(logits / temperature), from a number that the caller drew.
 *
 * By the inverse of the distribution function over the ids in their order: logits that differ by roundings give the
 * same token but for numbers within these roundings of a boundary. Arithmetic on the host, the same for every backend.
 */
#ifndef EVP_SAMPLE_H
#define EVP_SAMPLE_H

#include <stdint.h>

/* The token of `unit`, in [0, 1), of n logits, which are overwritten; temperature is above 0. -1: one of them is not
 * finite. */
int32_t sample_token(float *logit, int n, double temperature, double unit);

#endif
