/* lie.h - a file that says something else than it should. */
#ifndef LIE_H
#define LIE_H

#include "base/file.h"

#include <criterion/criterion.h>
#include <string.h>

/* Writes a good text with the first `from` in it turned into `to`. */
static inline void write_lie(const char *path, const struct buf *good, const char *from, const char *to)
{
    struct buf text = { 0 };
    struct err err;
    const char *at = strstr(good->at, from);

    cr_assert(at, "%s", from);
    buf_add(&text, good->at, (size_t)(at - good->at));
    buf_adds(&text, to);
    buf_adds(&text, at + strlen(from));
    cr_assert_eq(file_write(path, text.at, text.n, &err), 0);
    buf_release(&text);
}

#endif
