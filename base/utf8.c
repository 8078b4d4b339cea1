/* utf8.c - all functions use one table of well-formed sequences; ASCII is skipped eight bytes at a time. */
#include "base/utf8.h"

#include <string.h>

/* Length and lowest second byte range by first byte, from the table of well-formed sequences (Unicode 15, 3-7). */
static int sequence(unsigned char first, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return 2;
    if (first >= 0xe0 && first <= 0xef) {
        *low = first == 0xe0 ? 0xa0 : 0x80;
        *high = first == 0xed ? 0x9f : 0xbf;
        return 3;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        *low = first == 0xf0 ? 0x90 : 0x80;
        *high = first == 0xf4 ? 0x8f : 0xbf;
        return 4;
    }
    return 0;
}

/* The number of bytes at s that belong together; *whole: they are a complete character. */
static int span(const char *s, size_t n, bool *whole)
{
    unsigned char low, high;
    int need = sequence((unsigned char)s[0], &low, &high), got = 1;

    *whole = false;
    if (need == 0)
        return 1;
    for (; got < need && (size_t)got < n; got++) {
        unsigned char c = (unsigned char)s[got];
        if (c < low || c > high)
            return got;
        low = 0x80;
        high = 0xbf;
    }
    *whole = got == need;
    return got;
}

int utf8_decode(const char *s, size_t n, uint32_t *point)
{
    static const unsigned char mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    bool whole;
    int len = span(s, n, &whole);

    if (!whole)
        return 0;
    uint32_t p = (unsigned char)s[0] & mask[len];
    for (int i = 1; i < len; i++)
        p = p << 6 | ((unsigned char)s[i] & 0x3f);
    *point = p;
    return len;
}

int utf8_encode(uint32_t p, char out[4])
{
    if (p < 0x80) {
        out[0] = (char)p;
        return 1;
    }
    int len = p < 0x800 ? 2 : p < 0x10000 ? 3 : 4;
    for (int i = len - 1; i > 0; i--, p >>= 6)
        out[i] = (char)(0x80 | (p & 0x3f));
    out[0] = (char)((0xf00 >> len & 0xf0) | p);
    return len;
}

/* The length of the ASCII at the beginning, found eight characters at a time: most text is ASCII. */
static size_t ascii(const char *s, size_t n)
{
    size_t i = 0;
    uint64_t eight;

    for (; i + sizeof(eight) <= n; i += sizeof(eight)) {
        memcpy(&eight, s + i, sizeof(eight));
        if (eight & 0x8080808080808080u)
            break;
    }
    while (i < n && (unsigned char)s[i] < 0x80)
        i++;
    return i;
}

bool utf8_valid(const char *s, size_t n)
{
    uint32_t p;

    for (size_t i = ascii(s, n); i < n; i += ascii(s + i, n - i)) {
        int len = utf8_decode(s + i, n - i, &p);
        if (len == 0)
            return false;
        i += (size_t)len;
    }
    return true;
}

size_t utf8_count(const char *s, size_t n)
{
    size_t count = 0;
    uint32_t p;

    for (size_t i = 0;;) {
        size_t plain = ascii(s + i, n - i);
        i += plain;
        count += plain;
        if (i == n)
            return count;
        int len = utf8_decode(s + i, n - i, &p);
        i += len ? (size_t)len : 1;
        count++;
    }
}

bool utf8_is_space(uint32_t p)
{
    return (p >= 0x09 && p <= 0x0d) || p == ' ' || p == 0x85 || p == 0xa0 || p == 0x1680 ||
           (p >= 0x2000 && p <= 0x200a) || p == 0x2028 || p == 0x2029 || p == 0x202f || p == 0x205f || p == 0x3000;
}

void utf8_clean(struct buf *out, const char *s, size_t n)
{
    size_t start = 0;

    for (size_t i = 0; i < n;) {
        bool whole;
        int len = span(s + i, n - i, &whole);
        if (!whole) {
            buf_add(out, s + start, i - start);
            buf_adds(out, "\xef\xbf\xbd");
            start = i + (size_t)len;
        }
        i += (size_t)len;
    }
    buf_add(out, s + start, n - start);
}

/* The bytes of a character at p that a terminal obeys; 0: it shows it. */
static size_t obeyed(const unsigned char *p)
{
    if ((p[0] < 0x20 && p[0] != '\n' && p[0] != '\t') || p[0] == 0x7f)
        return 1;
    if ((p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f) || (p[0] == 0xd8 && p[1] == 0x9c)) // C1; U+061C
        return 2;
    if (p[0] != 0xe2 || (p[1] != 0x80 && p[1] != 0x81))
        return 0;
    bool turns = p[1] == 0x80 ? p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae) // U+200E, U+202A
                              : p[2] >= 0xa6 && p[2] <= 0xa9;                                  // U+2066
    return turns ? 3 : 0;
}

enum utf16_order utf16_order(const char *s, size_t n)
{
    return n < 2                           ? UTF16_NONE
           : memcmp(s, "\xff\xfe", 2) == 0 ? UTF16_LITTLE
           : memcmp(s, "\xfe\xff", 2) == 0 ? UTF16_BIG
                                           : UTF16_NONE;
}

static uint32_t unit_at(const char *s, enum utf16_order order)
{
    unsigned a = (unsigned char)s[0], b = (unsigned char)s[1];

    return order == UTF16_LITTLE ? b << 8 | a : a << 8 | b;
}

size_t utf16_decode(struct buf *out, const char *s, size_t n, enum utf16_order order)
{
    size_t i = 0;
    char bytes[4];

    while (n - i >= 2) {
        uint32_t point = unit_at(s + i, order);
        bool first = point >= 0xd800 && point < 0xdc00, alone = point >= 0xdc00 && point < 0xe000;
        if (first && n - i < 4)
            break;
        uint32_t second = first ? unit_at(s + i + 2, order) : 0;
        bool pair = second >= 0xdc00 && second < 0xe000;
        i += pair ? 4 : 2;
        point = pair ? 0x10000 + ((point - 0xd800) << 10) + (second - 0xdc00) : first || alone ? 0xfffd : point;
        if (point != 0xfeff)
            buf_add(out, bytes, (size_t)utf8_encode(point, bytes));
    }
    return i;
}

void utf8_defuse(char *text)
{
    for (char *p = text; *p;) {
        size_t n = obeyed((const unsigned char *)p);
        memset(p, '?', n);
        p += n ? n : 1;
    }
}

int field_check_text(const char *field, const char *s, size_t size, struct err *err)
{
    if (!s || !*s)
        return err_set(err, ERR_FORMAT, "field '%s' is empty", field);
    if (strlen(s) >= size)
        return err_set(err, ERR_FORMAT, "field '%s' is longer than %zu bytes", field, size - 1);
    for (const char *c = s; *c; c++)
        if ((unsigned char)*c < 0x20)
            return err_set(err, ERR_FORMAT, "field '%s' has a control character", field);
    return 0;
}

int field_check_utf8(const char *field, const char *s, size_t size, struct err *err)
{
    if (field_check_text(field, s, size, err))
        return err->code;
    return utf8_valid(s, strlen(s)) ? 0 : err_set(err, ERR_FORMAT, "field '%s' is not UTF-8", field);
}
