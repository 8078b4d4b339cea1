/* strtoll and strtod, with what they accept beyond a plain number refused; sizes and shares on top of them. */
#include "base/parse.h"

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

bool parse_size(const char *s, uint64_t *out)
{
    static const char units[] = "KMGT";
    char number[TEXT_SHORT];
    size_t n = strlen(s);
    int64_t whole;
    double v;

    if (n == 0 || n >= sizeof(number) || *s < '0' || *s > '9')
        return false;
    const char *unit = strchr(units, s[n - 1]);
    memcpy(number, s, n + 1);
    if (unit)
        number[n - 1] = '\0';
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (parse_int(number, &whole)) {
        if (whole > (INT64_MAX >> shift))
            return false;
        *out = (uint64_t)whole << shift;
        return true;
    }
    if (!unit || strpbrk(number, "eE") || !parse_real(number, &v) || ldexp(v, shift) > 0x1p62)
        return false;
    *out = (uint64_t)ldexp(v, shift);
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
    if (s < 1e-3)
        snprintf(out, TEXT_SHORT, "%.0f us", s * 1e6);
    else if (s < 1)
        snprintf(out, TEXT_SHORT, "%.*f ms", s < 0.1 ? 1 : 0, s * 1e3);
    else if (s < 60)
        snprintf(out, TEXT_SHORT, "%.1f s", s);
    else if (s < 3600)
        snprintf(out, TEXT_SHORT, "%d min %02d s", (int)s / 60, (int)s % 60);
    else
        snprintf(out, TEXT_SHORT, "%d h %02d min", (int)(s / 3600), (int)(s / 60) % 60);
    return out;
}
