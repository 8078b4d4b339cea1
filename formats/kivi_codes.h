/* kivi_codes.h - how a payload holds keys and values under kivi: which tokens of a head are quantised. methods/kivi.c
 * has the source and the whole layout. */
#ifndef EVP_KIVI_CODES_H
#define EVP_KIVI_CODES_H

#include <stdbool.h>
#include <stdint.h>

struct kivi_codes {
    int bits, group, residual;
};

/* The parameters in a config, as payloads name it; false: it has no kivi. Absent ones have their defaults. */
bool kivi_codes_parse(struct kivi_codes *kivi, const char *config);

/* Of a head's n tokens the first ones are codes: the keys of the whole groups of `residual` tokens, the values of all
 * but the last `residual`. */
static inline int64_t kivi_keys(int residual, int64_t n)
{
    return n - n % residual;
}

static inline int64_t kivi_values(int residual, int64_t n)
{
    return n > residual ? n - residual : 0;
}

#endif
