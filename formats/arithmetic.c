/* arithmetic.c - the coder's two directions. Both shift out all bits of a step at once. */
#include "formats/arithmetic.h"

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

struct bits_in {
    struct stream rest;
    uint64_t bits; // the lowest n come next
    int n;
};

/* The next n <= 32 bits; zeros after the end. */
static uint32_t take(struct bits_in *in, int n)
{
    for (; in->n < n; in->n += 8) {
        in->bits = in->bits << 8 | (in->rest.n ? *in->rest.at : 0);
        in->rest.at += in->rest.n > 0;
        in->rest.n -= in->rest.n > 0;
    }
    in->n -= n;
    return (uint32_t)(in->bits >> in->n & ((UINT64_C(1) << n) - 1));
}

static int symbol_of(const struct symbol_cdf *cdf, uint16_t count)
{
    int s = 0;

    for (int step = CDF_BOUNDS / 2; step; step /= 2)
        s += cdf->at[s + step] <= count ? step : 0;
    return s;
}

int arithmetic_decode(uint8_t *symbol, int n, size_t stride, const struct stream *in, const struct symbol_cdf *cdf)
{
    struct bits_in bits = { .rest = *in };
    uint32_t low = 0, high = UINT32_MAX, value = take(&bits, 32); // low <= value <= high
    uint64_t shifts = 0;

    for (int i = 0; i < n; i++) {
        uint64_t span = (uint64_t)high - low + 1;
        int s = symbol_of(cdf, (uint16_t)(((((uint64_t)(value - low) + 1) << 16) - 1) / span));
        if (s >= cdf->n_symbols)
            return -1;
        symbol[(size_t)i * stride] = (uint8_t)s;
        high = low + (uint32_t)(span * cdf->at[s + 1] >> 16) - 1;
        low += (uint32_t)(span * cdf->at[s] >> 16);
        int k = shared_bits(low, high);
        low = (uint32_t)((uint64_t)low << k);
        high = (uint32_t)((uint64_t)high << k) | ones(k);
        int m = opposed_bits(low, high);
        value = (uint32_t)((uint64_t)value << k | take(&bits, k));
        value = (value & top) | (value << m & ~top) | take(&bits, m);
        low = low << m & ~top;
        high = high << m | top | ones(m);
        shifts += (uint64_t)(k + m);
    }
    return (shifts + 2 + 7) / 8 == in->n ? 0 : -1; // the encoder writes each bit shifted out, and two at the end
}
