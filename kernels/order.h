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

/* Floats so few steps apart may be the same number but for rounding: the norms of a repeated token's keys, each rotated
 * by its own position, are up to 4 apart. Which of them is larger depends on the processor, so top_k ignores it. */
enum { SCORE_ALIKE = 4 };

/* The highest and the lowest order of scores like one. */
static inline uint32_t score_order_above(uint32_t order)
{
    return order < UINT32_MAX - SCORE_ALIKE ? order + SCORE_ALIKE : UINT32_MAX;
}

static inline uint32_t score_order_below(uint32_t order)
{
    return order > SCORE_ALIKE ? order - SCORE_ALIKE : 0;
}

#endif
