/* arithmetic.h - an arithmetic coder of small symbols, whose streams are those of torchac and LMCache bit by bit.
 *
 *     low = 0, high = 2^32 - 1; for each symbol s, with span = high - low + 1:
 *         high = low + (span * cdf[s + 1] >> 16) - 1, low = low + (span * cdf[s] >> 16)
 *         the leading bits that low and high share are written, and leave both
 *         while low begins with 01 and high with 10, both lose their second bit; the next bit written is followed by
 *         its opposite, once for each
 *     at the end 01 or 10 is written, whatever lies between low and high, and zeros to the end of a byte
 *
 * Source: Witten, Neal, Cleary, "Arithmetic coding for data compression" (CACM 1987), as in github.com/fab-jul/torchac.
 */
#ifndef EVP_ARITHMETIC_H
#define EVP_ARITHMETIC_H

#include <stddef.h>
#include <stdint.h>

/* Symbol s has the share (at[s + 1] - at[s]) / 2^16: 0 = at[0] < at[1] < ... < at[n_symbols]; the rest is 65535. */
enum { CDF_BOUNDS = 32, SYMBOLS_MAX = CDF_BOUNDS - 1 };
struct symbol_cdf {
    uint16_t at[CDF_BOUNDS];
    int n_symbols;
};

/* The most bytes of a stream of n symbols: none takes more than 16 bits. */
static inline size_t arithmetic_bound(size_t n)
{
    return 2 * n + 1;
}

/* Writes a stream of n symbols; returns its bytes. `to` has room for arithmetic_bound(n). */
size_t arithmetic_encode(uint8_t *to, const uint8_t *symbol, int n, const struct symbol_cdf *cdf);

/* Reads up to STREAMS_MAX streams of n symbols each from any bytes, step by step together: a symbol of one does not
 * wait for the one before it of another. Symbol i of stream j goes to symbol[i * stride + j]. -1: a stream is not one
 * of n symbols under its CDF. */
struct stream {
    const uint8_t *at;
    size_t n;
};
struct coded_stream {
    struct stream in;
    struct symbol_cdf cdf;
};
enum { STREAMS_MAX = 16 };
int arithmetic_decode(uint8_t *symbol, int n, size_t stride, const struct coded_stream *stream, int n_streams);

#endif
