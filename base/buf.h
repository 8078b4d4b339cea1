/* buf.h - bytes that grow.
 *
 * A zeroed struct is an empty buffer. After a failed allocation later calls do nothing, so one buf_failed() at the end
 * is enough. A NUL always follows the bytes; `n` does not count it.
 *
 *     struct buf b = { 0 };
 *     buf_printf(&b, "%s has %d rows", name, n);
 *     if (buf_failed(&b)) ...
 *     buf_release(&b);
 */
#ifndef EVP_BUF_H
#define EVP_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *at; // NULL until the first byte; otherwise NUL-terminated
    size_t n, cap;
    bool failed;
};

/* Makes space for `more` bytes after the end; returns their address, or NULL. */
char *buf_reserve(struct buf *b, size_t more);

void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_adds(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Adds a word as a shell reads it: in quotes where it would be split or expanded, or is empty. */
void buf_add_word(struct buf *b, const char *word);

/* The text, "" if empty. Borrowed until the next call. */
const char *buf_str(const struct buf *b);

bool buf_failed(const struct buf *b);
void buf_clear(struct buf *b); /* n = 0, memory kept */
void buf_release(struct buf *b);

/* Hands the bytes to the caller, who frees them; NULL if the buffer failed. An empty buffer gives "". */
char *buf_take(struct buf *b);

#endif
