/* order.h - maps floats to unsigned numbers in the same order: every set of scores has one ranking, nan included. */
#ifndef EVP_ORDER_H
#define EVP_ORDER_H

#include <stdint.h>
#include <string.h>

/* Larger for a larger float. -0 and 0 are equal; nan is beyond the infinity of its sign. */
static inline uint32_t score_order(float x)
{
    uint32_t u;

    x += 0.0f; // -0 becomes 0
    memcpy(&u, &x, sizeof(u));
    return u & 0x80000000 ? ~u : u | 0x80000000;
}

#endif
