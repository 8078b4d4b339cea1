/* text_real(): the shortest decimal that reads back as the same double.
 *
 * A manifest of a million rows has five million of them; printf and strtod would take longer than planning does. So
 * numbers of the usual sizes are printed with integers: for v = m * 2^e, v * 10^k = m * 5^k * 2^(e + k), which fits 128
 * bits exactly. The others go through printf; both give the same text (tests/unit/base.c).
 */
#include "base/parse.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MIN = 15, DIGITS_MAX = 17, MANTISSA = 53, TENS = 19, TEN_MIN = -4 };

/* In these bounds the powers of 5 below fit 64 bits, and %g would print no exponent. */
static const double ten[TENS] = { 1e-4, 1e-3, 1e-2, 1e-1, 1e0,  1e1,  1e2,  1e3,  1e4, 1e5,
                                  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14 };

static const uint64_t five[] = {
    1u,          5u,           25u,           125u,          625u,           3125u,           15625u,
    78125u,      390625u,      1953125u,      9765625u,      48828125u,      244140625u,      1220703125u,
    6103515625u, 30517578125u, 152587890625u, 762939453125u, 3814697265625u, 19073486328125u, 95367431640625u,
};

/* m * 5^k * 2^-shift rounded to an integer, to even in the middle; false when that, taken as a decimal, does not read
 * back as the same double. power: 5^k. */
static bool round_digits(uint64_t m, uint64_t power, int shift, uint64_t *digits)
{
    __extension__ const unsigned __int128 exact = __extension__(unsigned __int128) m * power;
    __extension__ const unsigned __int128 one = __extension__(unsigned __int128) 1 << shift, rest = exact & (one - 1);
    uint64_t low = (uint64_t)(exact >> shift);
    bool up = rest > one / 2 || (rest == one / 2 && low & 1);

    /* The next double is `power` away, half of that below a power of two; a number in the middle reads as the even m.
     */
    *digits = low + up;
    if (up)
        return 2 * (one - rest) < power || (2 * (one - rest) == power && m % 2 == 0);
    if (m == 1ull << (MANTISSA - 1))
        return 4 * rest <= power;
    return 2 * rest < power || (2 * rest == power && m % 2 == 0);
}

/* Ends a number of n digits before its last zeros; there are 15 at most. Divisors that the compiler knows become
 * products. */
static uint64_t cut_zeros(uint64_t digits, int *n)
{
    if (digits % 100000000 == 0) {
        digits /= 100000000;
        *n -= 8;
    }
    if (digits % 10000 == 0) {
        digits /= 10000;
        *n -= 4;
    }
    if (digits % 100 == 0) {
        digits /= 100;
        *n -= 2;
    }
    if (digits % 10 == 0) {
        digits /= 10;
        --*n;
    }
    return digits;
}

/* n digits, two at a time. */
static void put_digits(char *out, uint64_t digits, int n)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";

    for (; n > 1; n -= 2, digits /= 100)
        memcpy(out + n - 2, pairs + 2 * (digits % 100), 2);
    if (n)
        *out = (char)('0' + digits);
}

/* n digits as %g prints them; the first counts 10^exponent. Returns the end. */
static char *put_decimal(char *out, uint64_t digits, int n, int exponent)
{
    digits = cut_zeros(digits, &n);
    if (n == 0) { /* rounded up to the next power of ten */
        n = 1;
        exponent++;
    }
    if (exponent < 0) {
        memcpy(out, "0.000", 5);
        put_digits(out + 1 - exponent, digits, n);
        return out + 1 - exponent + n;
    }
    bool whole = n <= exponent + 1;
    put_digits(out + !whole, digits, n);
    for (int i = whole ? n : exponent + 1; i <= exponent; i++)
        out[i] = '0';
    if (whole)
        return out + exponent + 1;
    for (int i = 0; i <= exponent; i++)
        out[i] = out[i + 1];
    out[exponent + 1] = '.';
    return out + n + 1;
}

/* v > 0 within the bounds of `ten`. Returns the end. */
static char *put_usual(char *out, double v)
{
    int exponent = 0, n = DIGITS_MIN;
    uint64_t bits, digits;

    memcpy(&bits, &v, sizeof(bits));
    uint64_t m = (bits & ((1ull << (MANTISSA - 1)) - 1)) | 1ull << (MANTISSA - 1);
    int e = (int)(bits >> (MANTISSA - 1)) - 1022; /* v is m * 2^(e - MANTISSA) */
    while (v >= ten[exponent + 1])
        exponent++;
    exponent += TEN_MIN;
    int k = DIGITS_MIN - 1 - exponent;
    while (!round_digits(m, five[k], MANTISSA - e - k, &digits) && n < DIGITS_MAX) {
        n++;
        k++;
    }
    return put_decimal(out, digits, n, exponent);
}

/* printf takes the decimal point from the locale that a host of the library has set, and it may have several bytes. */
static void put_point(char *text)
{
    static const char others[] = "-+e0123456789";
    char *point = text + strspn(text, others), *rest = point + strcspn(point, others);

    if (*point) {
        *point = '.';
        memmove(point + 1, rest, strlen(rest) + 1);
    }
}

char *text_real_end(char out[TEXT_SHORT], double v)
{
    double size = fabs(v);

    if (size >= ten[0] && size < ten[TENS - 1]) {
        *out = '-';
        return put_usual(out + (v < 0), size);
    }
    if (!isfinite(v))
        return out + snprintf(out, TEXT_SHORT, "null");
    for (int digits = DIGITS_MIN; digits <= DIGITS_MAX; digits++) {
        snprintf(out, TEXT_SHORT, "%.*g", digits, v);
        if (strtod(out, NULL) == v)
            break;
    }
    put_point(out);
    return out + strlen(out);
}

const char *text_real(char out[TEXT_SHORT], double v)
{
    *text_real_end(out, v) = '\0';
    return out;
}
