/* fields.h - checks of single fields, shared by all formats. Each returns 0, or ERR_FORMAT; the message names the
 * field. */
#ifndef EVP_FIELDS_H
#define EVP_FIELDS_H

#include "base/err.h"
#include "base/utf8.h" // field_check_text

#include <stddef.h>
#include <stdint.h>

/* A finite number, at least `min`, which is 0 or -HUGE_VAL. */
int field_check_real(const char *field, double v, double min, struct err *err) MUST_CHECK;

/* A size: 0 to 2^53, the integers that JSON numbers hold exactly. */
int field_check_bytes(const char *field, int64_t v, struct err *err) MUST_CHECK;

/* 64 lower-case hex digits. */
int field_check_digest(const char *field, const char *hex, struct err *err) MUST_CHECK;

/* A number of tokens: 1 to INT32_MAX. */
int field_check_tokens(const char *field, int64_t n, struct err *err) MUST_CHECK;

#endif
