/* sum.h - a compensated sum, for millions of terms of either sign (Kahan 1965). */
#ifndef EVP_SUM_H
#define EVP_SUM_H

struct sum {
    double value, lost;
};

static inline void sum_add(struct sum *s, double term)
{
    double t = term - s->lost, next = s->value + t;

    s->lost = (next - s->value) - t;
    s->value = next;
}

#endif
