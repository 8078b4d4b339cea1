/* rng.c - SplitMix64: one addition and two multiplications per number; the constants are the authors'. */
#include "base/rng.h"

#include "base/digest.h"

#include <string.h>

struct rng rng_new(uint64_t seed)
{
    return (struct rng){ .state = seed };
}

struct rng rng_named(uint64_t seed, const char *name)
{
    struct rng r = rng_new(seed);

    return rng_new(rng_next(&r) ^ digest_xxh3(name, strlen(name)));
}

uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    uint64_t reject = -n % n; /* 2^64 mod n: values below it would favour small results */
    uint64_t x;

    do
        x = rng_next(r);
    while (x < reject);
    return x % n;
}

double rng_unit(struct rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}
