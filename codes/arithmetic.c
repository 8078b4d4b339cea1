/* arithmetic.c - the coder's two directions. Both shift out all bits of a step at once. */
#include "codes/arithmetic.h"

#include <string.h>

static const uint32_t top = 0x80000000;

/* Halves of the interval that a step may drop: bits that low and high share; then bits that low has and high lacks. */
static int shared_bits(uint32_t low, uint32_t high)
{
    return __builtin_clz(low ^ high); // low < high: no symbol has a share of 0
}

static int opposed_bits(uint32_t low, uint32_t high)
{
    return __builtin_clz(~((low & ~high) << 1));
}

static uint32_t ones(int n)
{
    return (1u << n) - 1;
}

/* ---- writing ------------------------------------------------------------ */

struct bits_out {
    uint8_t *to;
    uint64_t bits; // the lowest n are not yet in `to`
    int n;         // below 8 between calls
};

static void put(struct bits_out *out, uint32_t bits, int n)
{
    out->bits = out->bits << n | bits;
    for (out->n += n; out->n >= 8; *out->to++ = (uint8_t)(out->bits >> out->n))
        out->n -= 8;
}

/* Puts a bit, and its opposite `pending` times. */
static void put_pending(struct bits_out *out, uint32_t bit, int pending)
{
    put(out, bit, 1);
    for (; pending > 0; pending -= 16) {
        int n = pending < 16 ? pending : 16;
        put(out, bit ? 0 : ones(n), n);
    }
}

size_t arithmetic_encode(uint8_t *to, const uint8_t *symbol, int n, const struct symbol_cdf *cdf)
{
    struct bits_out out = { .to = to };
    uint32_t low = 0, high = UINT32_MAX;
    int pending = 0;

    for (int i = 0; i < n; i++) {
        uint64_t span = (uint64_t)high - low + 1;
        const uint16_t *share = cdf->at + symbol[i];
        high = low + (uint32_t)(span * share[1] >> 16) - 1;
        low += (uint32_t)(span * share[0] >> 16);
        int k = shared_bits(low, high);
        if (k) {
            put_pending(&out, low >> 31, pending);
            put(&out, (uint32_t)((uint64_t)low >> (32 - k)) & ones(k - 1), k - 1);
            low <<= k;
            high = high << k | ones(k);
        }
        int m = opposed_bits(low, high);
        pending = m + (k ? 0 : pending);
        low = low << m & ~top;
        high = high << m | top | ones(m);
    }
    put_pending(&out, low >= 1u << 30, pending + 1);
    put(&out, 0, (8 - out.n) % 8);
    return (size_t)(out.to - to);
}

/* ---- reading ------------------------------------------------------------ */

struct decoder {
    struct stream rest;
    uint64_t bits; // read from it; the lowest n come next
    int n;
    uint32_t low, high, value; // low <= value <= high
    uint64_t shifts;
};

/* The next n <= 32 bits; zeros after the end. */
static uint32_t take(struct decoder *d, int n)
{
    if (d->n < n) {
        uint8_t four[4] = { 0 };
        size_t more = d->rest.n < 4 ? d->rest.n : 4;
        memcpy(four, d->rest.at, more);
        d->rest = (struct stream){ d->rest.at + more, d->rest.n - more };
        d->bits = d->bits << 32 | (uint32_t)four[0] << 24 | (uint32_t)four[1] << 16 | (uint32_t)four[2] << 8 | four[3];
        d->n += 32;
    }
    d->n -= n;
    return (uint32_t)(d->bits >> d->n & ((UINT64_C(1) << n) - 1));
}

/* How many bounds are at most `count`, less one; without branches, as symbols are hard to predict. */
static int symbol_of(const struct symbol_cdf *cdf, uint16_t count)
{
    typedef uint16_t eight __attribute__((vector_size(16)));
    eight at[CDF_BOUNDS / 8], below = { 0 };
    uint16_t sum = 0;

    memcpy(at, cdf->at, sizeof(at));
    for (int i = 0; i < CDF_BOUNDS / 8; i++)
        below -= (eight)(at[i] <= count); // each true is -1
    for (int i = 0; i < 8; i++)
        sum = (uint16_t)(sum + below[i]);
    return sum - 1;
}

/* The next symbol; n_symbols or more: there is none. */
static int next_symbol(struct decoder *d, const struct symbol_cdf *cdf)
{
    uint64_t span = (uint64_t)d->high - d->low + 1;
    int s = symbol_of(cdf, (uint16_t)(((((uint64_t)(d->value - d->low) + 1) << 16) - 1) / span));

    if (s >= cdf->n_symbols)
        return s;
    uint32_t high = d->low + (uint32_t)(span * cdf->at[s + 1] >> 16) - 1;
    uint32_t low = d->low + (uint32_t)(span * cdf->at[s] >> 16);
    int k = shared_bits(low, high);
    low = (uint32_t)((uint64_t)low << k);
    high = (uint32_t)((uint64_t)high << k) | ones(k);
    int m = opposed_bits(low, high);
    uint64_t value = (uint64_t)d->value << (k + m) | take(d, k + m); // at most 18 bits: a share is at least 2^-16
    d->value = ((uint32_t)(value >> m) & top) | ((uint32_t)value & ~top);
    d->low = low << m & ~top;
    d->high = high << m | top | ones(m);
    d->shifts += (uint64_t)(k + m);
    return s;
}

int arithmetic_decode(uint8_t *symbol, int n, size_t stride, const struct coded_stream *stream, int n_streams)
{
    struct decoder decoder[STREAMS_MAX];

    for (int j = 0; j < n_streams; j++) {
        decoder[j] = (struct decoder){ .rest = stream[j].in, .high = UINT32_MAX };
        decoder[j].value = take(&decoder[j], 32);
    }
    for (int i = 0; i < n; i++, symbol += stride)
        for (int j = 0; j < n_streams; j++) {
            int s = next_symbol(&decoder[j], &stream[j].cdf);
            if (s >= stream[j].cdf.n_symbols)
                return -1;
            symbol[j] = (uint8_t)s;
        }
    for (int j = 0; j < n_streams; j++) // the encoder writes each bit shifted out, and two at the end
        if ((decoder[j].shifts + 2 + 7) / 8 != stream[j].in.n)
            return -1;
    return 0;
}
