/* kivi_codes.h - how a payload holds keys and values in groups with a scale and a zero: under kivi, int4 and int8. It
 * says which tokens of a head are quantised; methods/kivi.c and methods/int4.c have the sources and the layouts. */
#ifndef EVP_KIVI_CODES_H
#define EVP_KIVI_CODES_H

#include <stdbool.h>
#include <stdint.h>

struct kivi_codes {
    int bits, group, residual; // residual 0: all tokens are quantised
    bool keys_by_token;        // not by channel
};

/* The parameters in a config, as payloads name it; false: it has none of these methods. Absent ones have their
 * defaults. */
bool kivi_codes_parse(struct kivi_codes *kivi, const char *config);

/* Of a head's n tokens the first ones are codes: the keys of the whole groups of `residual` tokens, the values of all
 * but the last `residual`. */
static inline int64_t kivi_keys(int residual, int64_t n)
{
    return residual ? n - n % residual : n;
}

static inline int64_t kivi_values(int residual, int64_t n)
{
    return n > residual ? n - residual : 0;
}

#endif
