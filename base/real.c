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

/* n digits as %g prints them; the first counts 10^exponent. */
static void put_decimal(char *out, uint64_t digits, int n, int exponent)
{
    char text[DIGITS_MAX];

    for (; digits % 10 == 0; n--)
        digits /= 10;
    if (n == 0) { /* rounded up to the next power of ten */
        n = 1;
        exponent++;
    }
    for (int i = n - 1; i >= 0; i--, digits /= 10)
        text[i] = (char)('0' + digits % 10);
    for (int i = exponent < 0 ? exponent : 0; i < n || i <= exponent; i++) {
        *out++ = i < 0 || i >= n ? '0' : text[i];
        if (i == exponent && i < n - 1)
            *out++ = '.';
    }
    *out = '\0';
}

/* v > 0 within the bounds of `ten`. */
static void put_usual(char *out, double v)
{
    int exponent = 0, e;
    uint64_t m = (uint64_t)ldexp(frexp(v, &e), MANTISSA), digits, power = 1;

    while (v >= ten[exponent + 1])
        exponent++;
    exponent += TEN_MIN;
    int k = DIGITS_MIN - 1 - exponent, n = DIGITS_MIN;
    for (int i = 0; i < k; i++)
        power *= 5;
    while (!round_digits(m, power, MANTISSA - e - k, &digits) && n < DIGITS_MAX) {
        power *= 5;
        n++;
        k++;
    }
    put_decimal(out, digits, n, exponent);
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

const char *text_real(char out[TEXT_SHORT], double v)
{
    double size = fabs(v);

    if (!isfinite(v)) {
        snprintf(out, TEXT_SHORT, "null");
        return out;
    }
    if (size >= ten[0] && size < ten[TENS - 1]) {
        *out = '-';
        put_usual(out + (v < 0), size);
        return out;
    }
    for (int digits = DIGITS_MIN; digits <= DIGITS_MAX; digits++) {
        snprintf(out, TEXT_SHORT, "%.*g", digits, v);
        if (strtod(out, NULL) == v)
            break;
    }
    put_point(out);
    return out;
}
