/* sample.h - a token drawn by its probability, softmax(logits / temperature), from a number that the caller drew.
 *
 * Inverts the distribution function over the ids in ascending order: logits that differ by rounding give the same
 * token, except for numbers within that rounding of a boundary. Computed on the host, the same way for every backend.
 */
#ifndef EVP_SAMPLE_H
#define EVP_SAMPLE_H

#include <stdint.h>

/* The token that `unit`, in [0, 1), selects from n logits, which are overwritten; temperature is above 0. -1: a logit
 * is not finite. */
int32_t sample_token(float *logit, int n, double temperature, double unit);

#endif
