/* bert_chars.c - binary search in sorted ranges, after a shortcut for ASCII. */
#include "embed/bert_chars.h"

#include "embed/bert_ranges.h"

#include <stddef.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static bool is_in(const struct bert_range *range, size_t n, uint32_t c)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (c > range[mid].last)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && c >= range[low].first;
}

bool bert_is_dropped(uint32_t c)
{
    return !(c >= 0x20 && c < 0x7f) && is_in(bert_dropped, COUNT(bert_dropped), c);
}

bool bert_is_space(uint32_t c)
{
    return c == '\t' || c == '\n' || c == '\r' || c == ' ' || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* 0x2b920 as in Hugging Face's code; BERT's has 0x2b820. */
bool bert_is_ideograph(uint32_t c)
{
    static const struct bert_range range[] = { { 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },   { 0xf900, 0xfaff },
                                               { 0x20000, 0x2a6df }, { 0x2a700, 0x2b73f }, { 0x2b740, 0x2b81f },
                                               { 0x2b920, 0x2ceaf }, { 0x2f800, 0x2fa1f } };

    return c >= 0x3400 && is_in(range, COUNT(range), c);
}

bool bert_is_mark(uint32_t c)
{
    return c >= 0x300 && is_in(bert_marks, COUNT(bert_marks), c);
}

bool bert_is_punctuation(uint32_t c)
{
    if (c < 128)
        return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
    return is_in(bert_punctuation, COUNT(bert_punctuation), c);
}
