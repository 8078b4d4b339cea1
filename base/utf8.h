/* utf8.h - UTF-8 read strictly (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF). */
#ifndef EVP_UTF8_H
#define EVP_UTF8_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the character at s, of n > 0 bytes; returns its length, or 0 if it is malformed or cut. */
int utf8_decode(const char *s, size_t n, uint32_t *point);

/* Writes one character (a valid code point); returns its length, 1 to 4. No NUL is added. */
int utf8_encode(uint32_t point, char out[4]);

bool utf8_valid(const char *s, size_t n);
size_t utf8_count(const char *s, size_t n); /* characters; a malformed byte counts as one */

/* Does a character have Unicode's property White_Space? */
bool utf8_is_space(uint32_t point);

/* Adds s with every malformed byte sequence replaced by U+FFFD (one per maximal prefix, as in the Unicode standard and
 * Python's errors="replace"). */
void utf8_clean(struct buf *out, const char *s, size_t n);

/* The order that UTF-16's byte order mark at the beginning of n bytes tells. */
enum utf16_order { UTF16_NONE, UTF16_LITTLE, UTF16_BIG };
enum utf16_order utf16_order(const char *s, size_t n);

/* Adds UTF-16 as UTF-8, without byte order marks; a surrogate that is alone becomes U+FFFD. Returns how many bytes were
 * taken: up to three at the end may need the next ones. */
size_t utf16_decode(struct buf *out, const char *s, size_t n, enum utf16_order order);

/* Makes a text harmless to a terminal: a '?' for each byte of a control character (C0 but for tab and line feed, DEL,
 * C1) and of a character that changes the direction of writing. */
void utf8_defuse(char *text);

/* Checks the text of a field: not empty, shorter than `size` bytes, without control characters. ERR_FORMAT names the
 * field. */
int field_check_text(const char *field, const char *s, size_t size, struct err *err) MUST_CHECK;

/* The same for a text from a caller, not from JSON: it must also be UTF-8. */
int field_check_utf8(const char *field, const char *s, size_t size, struct err *err) MUST_CHECK;

#endif
