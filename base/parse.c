/* parse.c - strtoll and strtod, restricted to plain numbers; sizes, ranges and shares on top; numbers as text. */
#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool parse_int(const char *s, int64_t *out)
{
    char *end;

    if (!(*s == '-' || (*s >= '0' && *s <= '9')))
        return false;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (end == s || *end || errno)
        return false;
    *out = v;
    return true;
}

bool parse_real(const char *s, double *out)
{
    char *end;

    if (!(*s == '-' || *s == '.' || (*s >= '0' && *s <= '9')) || strpbrk(s, "xXpPnN"))
        return false; /* decimal only: no hexadecimal, no nan, no inf */
    errno = 0;
    double v = strtod(s, &end);
    if (end == s || *end || !isfinite(v))
        return false;
    *out = v;
    return true;
}

bool parse_fraction(const char *s, double *out)
{
    char number[TEXT_SHORT];
    size_t n = strlen(s);

    if (n == 0 || s[n - 1] != '%')
        return parse_real(s, out);
    if (n >= sizeof(number))
        return false;
    memcpy(number, s, n - 1);
    number[n - 1] = '\0';
    if (!parse_real(number, out))
        return false;
    *out /= 100;
    return true;
}

bool parse_count(const char *s, int64_t *out)
{
    char number[TEXT_SHORT];
    size_t n = strlen(s);
    double v, unit = 1;

    if (n > 1 && n < sizeof(number)) {
        unit = s[n - 1] == 'k' || s[n - 1] == 'K' ? 1e3 : s[n - 1] == 'm' || s[n - 1] == 'M' ? 1e6 : 1;
        memcpy(number, s, n - 1);
        number[n - 1] = '\0';
    }
    if (unit == 1)
        return parse_int(s, out);
    if (strpbrk(number, "eE") || !parse_real(number, &v) || fabs(v * unit) > 1e15 || v * unit != floor(v * unit))
        return false;
    *out = (int64_t)(v * unit);
    return true;
}

/* The shift of a unit (10 for K ... 40 for T), 0 for none; *n: the bytes of s without it. */
static int size_unit(const char *s, size_t *n)
{
    static const char units[] = "KMGT";
    size_t end = *n;

    if (end && (s[end - 1] == 'B' || s[end - 1] == 'b'))
        end -= end > 1 && s[end - 2] == 'i' ? 2 : 1;
    const char *unit = end ? strchr(units, toupper((unsigned char)s[end - 1])) : NULL;
    if (!unit)
        return 0; // "512B" is not a size: nobody writes it
    *n = end - 1;
    return 10 * (int)(unit - units + 1);
}

bool parse_size(const char *s, uint64_t *out)
{
    char number[TEXT_SHORT];
    size_t n = strlen(s);
    int64_t whole;
    double v;

    if (n == 0 || n >= sizeof(number) || *s < '0' || *s > '9')
        return false;
    int shift = size_unit(s, &n);
    memcpy(number, s, n);
    number[n] = '\0';
    if (parse_int(number, &whole)) {
        if (whole > (INT64_MAX >> shift))
            return false;
        *out = (uint64_t)whole << shift;
        return true;
    }
    if (!shift || strpbrk(number, "eE") || !parse_real(number, &v) || ldexp(v, shift) > 0x1p62)
        return false;
    *out = (uint64_t)ldexp(v, shift);
    return true;
}

/* The n bytes of s as a number. */
static bool parse_number(const char *s, size_t n, double *out)
{
    char number[TEXT_SHORT];

    if (n == 0 || n >= sizeof(number))
        return false;
    memcpy(number, s, n);
    number[n] = '\0';
    return parse_real(number, out);
}

bool parse_range(const char *s, size_t n, struct range *out)
{
    const char *end = s + n, *dots = memmem(s, n, "..", 2);
    const char *slash = dots ? memchr(dots, '/', (size_t)(end - dots)) : NULL, *stop = slash ? slash : end;
    struct range r;

    if (!dots || !parse_number(s, (size_t)(dots - s), &r.from) ||
        !parse_number(dots + 2, (size_t)(stop - dots - 2), &r.to))
        return false;
    r.step = r.from == floor(r.from) && r.to == floor(r.to) ? 1 : 0.1;
    if (slash && !parse_number(slash + 1, (size_t)(end - slash - 1), &r.step))
        return false;
    *out = r;
    return true;
}

bool range_is_sound(const struct range *r, int max)
{
    return r->step > 0 && r->to >= r->from && (r->to - r->from) / r->step <= max;
}

bool range_number(const struct range *r, int i, double *out)
{
    if (r->from + i * r->step > r->to + 1e-9)
        return false;
    *out = round((r->from + i * r->step) * 1e6) / 1e6;
    return true;
}

/* A number or a range of n bytes: the count of numbers, or -1. */
static int list_item(const char *s, size_t n, double *at, int max)
{
    struct range range;
    int k = 0;

    if (!parse_range(s, n, &range))
        return max > 0 && parse_number(s, n, at) ? 1 : -1;
    if (!range_is_sound(&range, max))
        return -1;
    while (k < max && range_number(&range, k, &at[k]))
        k++;
    return range_number(&range, k, &(double){ 0 }) ? -1 : k;
}

int parse_list(const char *s, double *at, int max)
{
    for (int n = 0;;) {
        s += strspn(s, " ");
        size_t length = strcspn(s, ","), end = length;
        while (end && s[end - 1] == ' ')
            end--;
        int more = list_item(s, end, at + n, max - n);
        if (more < 0)
            return -1;
        n += more;
        if (!s[length])
            return n;
        s += length + 1;
    }
}

bool parse_seconds(const char *s, double *out)
{
    static const struct {
        const char *unit;
        double times, per; // exact, as their quotient is not
    } units[] = { { "ms", 1, 1e3 }, { "us", 1, 1e6 }, { "ns", 1, 1e9 },  { "s", 1, 1 },
                  { "min", 60, 1 }, { "h", 3600, 1 }, { "d", 86400, 1 }, { "", 1, 1 } };
    size_t n = strlen(s);

    for (size_t k = 0; k < sizeof(units) / sizeof(*units); k++) {
        size_t length = strlen(units[k].unit);
        if (n < length || strcmp(s + n - length, units[k].unit) != 0)
            continue;
        if (!parse_number(s, n - length, out))
            return false;
        *out = *out * units[k].times / units[k].per;
        return true;
    }
    return false;
}

bool parse_time(const char *s, double unit, double *out)
{
    double v;

    if (parse_real(s, out))
        return true;
    if (!parse_seconds(s, &v))
        return false;
    *out = v / unit;
    return true;
}

bool parse_shard(const char *s, struct shard *out)
{
    char first[TEXT_SHORT];
    const char *slash = strchr(s, '/');
    size_t n = slash ? (size_t)(slash - s) : sizeof(first);
    struct shard shard;

    if (n >= sizeof(first))
        return false;
    memcpy(first, s, n);
    first[n] = '\0';
    if (!parse_int(first, &shard.i) || !parse_int(slash + 1, &shard.n) || shard.i < 1 || shard.i > shard.n)
        return false;
    *out = shard;
    return true;
}

bool shard_has(struct shard shard, int64_t row)
{
    return row % shard.n == shard.i - 1;
}

const char *text_bytes(char out[TEXT_SHORT], double bytes)
{
    static const char *const unit[] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
    int u = -1;

    if (isnan(bytes)) {
        snprintf(out, TEXT_SHORT, "-");
        return out;
    }
    if (bytes < 1024) {
        snprintf(out, TEXT_SHORT, "%.0f B", bytes);
        return out;
    }
    for (; bytes >= 1024 && u < 4; u++)
        bytes /= 1024;
    snprintf(out, TEXT_SHORT, "%.*f %s", bytes < 100 ? 1 : 0, bytes, unit[u]);
    return out;
}

const char *text_seconds(char out[TEXT_SHORT], double s)
{
    if (isnan(s))
        snprintf(out, TEXT_SHORT, "-");
    else if (s < 1e-3)
        snprintf(out, TEXT_SHORT, "%.0f us", s * 1e6);
    else if (s < 1)
        snprintf(out, TEXT_SHORT, "%.*f ms", s < 0.1 ? 1 : 0, s * 1e3);
    else if (s < 60)
        snprintf(out, TEXT_SHORT, "%.1f s", s);
    else if (s < 3600)
        snprintf(out, TEXT_SHORT, "%d min %02d s", (int)s / 60, (int)s % 60);
    else if (s < 1e9)
        snprintf(out, TEXT_SHORT, "%d h %02d min", (int)(s / 3600), (int)(s / 60) % 60);
    else
        snprintf(out, TEXT_SHORT, "%.3g h", s / 3600);
    return out;
}

/* printf() uses the decimal point of the host process's locale, which may have several bytes. */
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
    enum { DIGITS_MIN = 15, DIGITS_MAX = 17 };

    if (!isfinite(v)) {
        snprintf(out, TEXT_SHORT, "null");
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

bool text_among(const char *words, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = strstr(words, word); n > 0 && at; at = strstr(at + n, word))
        if (at > words && at[-1] == ' ' && at[n] == ' ')
            return true;
    return false;
}
