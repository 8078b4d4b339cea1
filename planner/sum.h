/* sum.h - a sum of twice a double's precision, for millions of terms of either sign (Knuth 1969, Dekker 1971): a term
 * that is taken out again leaves the sum of the others, in any order. */
#ifndef EVP_SUM_H
#define EVP_SUM_H

struct sum {
    double value, lost; // value - lost is the sum
};

static inline void sum_add(struct sum *s, double term)
{
    double sum = s->value + term, added = sum - s->value;
    double rest = (s->value - (sum - added)) + (term - added) - s->lost;

    s->value = sum + rest;
    s->lost = (s->value - sum) - rest;
}

#endif
