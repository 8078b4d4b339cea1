/* rng.h - pseudo-random numbers that are the same on every machine.
 *
 * SplitMix64 (Steele, Lea, Flood 2014). Not for secrets.
 */
#ifndef EVP_RNG_H
#define EVP_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

struct rng rng_new(uint64_t seed);

/* An independent stream of the same seed, named by a text: draws elsewhere do not change it. */
struct rng rng_named(uint64_t seed, const char *name);

uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); /* uniform in [0, n), n > 0 */
double rng_unit(struct rng *r);                /* uniform in [0, 1) */

#endif
