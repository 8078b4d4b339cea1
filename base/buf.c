/* buf.c - all bytes are added through buf_reserve(), which alone allocates and fails. */
#include "base/buf.h"

#include "base/array.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *buf_reserve(struct buf *b, size_t more)
{
    if (b->failed || more >= SIZE_MAX / 2 - b->n || ARRAY_GROW(b, b->n + more + 1)) {
        b->failed = true;
        return NULL;
    }
    return b->at + b->n;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
    char *to = buf_reserve(b, n);

    if (!to)
        return;
    if (n)
        memcpy(to, bytes, n);
    b->n += n;
    b->at[b->n] = '\0';
}

void buf_adds(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_addc(struct buf *b, char c)
{
    char *to = buf_reserve(b, 1);

    if (!to)
        return;
    to[0] = c;
    to[1] = '\0';
    b->n++;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int need = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (need < 0) {
        b->failed = true;
        return;
    }
    char *to = buf_reserve(b, (size_t)need);
    if (!to)
        return;
    va_start(ap, fmt);
    vsnprintf(to, (size_t)need + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)need;
}

void buf_add_word(struct buf *b, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+@%";

    if (*word && strspn(word, plain) == strlen(word)) {
        buf_adds(b, word);
        return;
    }
    buf_addc(b, '\'');
    for (; *word; word++)
        if (*word == '\'')
            buf_adds(b, "'\\''");
        else
            buf_addc(b, *word);
    buf_addc(b, '\'');
}

const char *buf_str(const struct buf *b)
{
    return b->n ? b->at : "";
}

bool buf_failed(const struct buf *b)
{
    return b->failed;
}

void buf_clear(struct buf *b)
{
    b->n = 0;
    if (b->at)
        b->at[0] = '\0';
}

void buf_release(struct buf *b)
{
    free(b->at);
    *b = (struct buf){ 0 };
}

char *buf_take(struct buf *b)
{
    char *at = buf_reserve(b, 0);

    if (!at) {
        buf_release(b);
        return NULL;
    }
    at = b->at;
    at[b->n] = '\0';
    *b = (struct buf){ 0 };
    return at;
}
