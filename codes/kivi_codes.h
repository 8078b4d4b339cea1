/* kivi_codes.h - how a payload holds keys and values in groups with a scale and a zero: under kivi, int4 and int8. It
 * says which tokens of a head are quantised; methods/kivi.c and methods/int4.c have the sources and the layouts. */
#ifndef EVP_KIVI_CODES_H
#define EVP_KIVI_CODES_H

#include "codes/half.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

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

/* Where the codes of some consecutive numbers go: 32 / bits codes a word, the first in the lowest bits. */
struct kivi_group {
    int n, bits;
    int32_t *codes;         // (n * bits / 32)
    uint16_t *scale, *zero; // f16
};

static inline void kivi_pack(const float *x, const struct kivi_group *to)
{
    const float round = 12582912.0f, top = (float)((1 << to->bits) - 1); // adding 1.5 * 2^23 rounds to a whole number
    float low = x[0], high = x[0];
    int per_word = 32 / to->bits;

    for (int i = 1; i < to->n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *to->zero = f16_from_f32_finite(low);
    float zero = f16_to_f32(*to->zero);
    *to->scale = f16_from_f32_finite((high - zero) / top);
    float scale = f16_to_f32(*to->scale);
    for (int w = 0; w < to->n / per_word; w++, x += per_word) {
        uint32_t word = 0;
        for (int i = 0; i < per_word && scale > 0; i++) {
            float code = (x[i] - zero) / scale;
            code = code > 0 ? code : 0;
            code = (code < top ? code : top) + round - round;
            word |= (uint32_t)code << i * to->bits;
        }
        memcpy(&to->codes[w], &word, sizeof(word));
    }
}

#endif
