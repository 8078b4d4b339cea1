/* text_view.h - borrowed bytes, with no NUL at their end. */
#ifndef EVP_TEXT_VIEW_H
#define EVP_TEXT_VIEW_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct text_view {
    const char *at;
    size_t n;
};

static inline struct text_view text_view_of(const char *text)
{
    return (struct text_view){ text, strlen(text) };
}

static inline bool text_view_is(struct text_view v, const char *text)
{
    return v.n == strlen(text) && memcmp(v.at, text, v.n) == 0;
}

/* The precision of "%.*s" that prints a view, or its first `max` bytes. */
static inline int text_view_width(struct text_view v, int max)
{
    return v.n < (size_t)max ? (int)v.n : max;
}

/* What SentencePiece writes for a blank: U+2581. */
#define TEXT_BLANK "\xe2\x96\x81"

/* Adds the text with every U+2581 replaced by a blank. */
static inline void text_view_blanks(struct buf *out, struct text_view v)
{
    static const char mark[] = TEXT_BLANK;
    const char *at = v.at, *end = v.at + v.n, *next;

    for (; (next = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1)); at = next + sizeof(mark) - 1) {
        buf_add(out, at, (size_t)(next - at));
        buf_addc(out, ' ');
    }
    buf_add(out, at, (size_t)(end - at));
}

#endif
