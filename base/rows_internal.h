/* rows_internal.h - what the two ways of reading a stream share: line by line (rows.c), and by several threads
 * (rows_parallel.c). */
#ifndef EVP_ROWS_INTERNAL_H
#define EVP_ROWS_INTERNAL_H

#include "base/rows.h"

enum { ROWS_LINE_MAX = 256 << 20 }; // bytes: a context of 50 million tokens; a longer line is refused

/* A line, with its line end or without, as JSON: 1 and *value (the caller frees it), 0 when it is blank, or an error
 * that does not name the line yet. */
int rows_line(const char *line, size_t n, struct json **value, struct err *err) MUST_CHECK;

/* Is the row the end line? */
bool rows_is_end(const struct json *row);

/* Notes the end line, which says that there are so many rows. */
int rows_note_end(struct rows_in *in, int64_t rows, struct err *err) MUST_CHECK;

/* What is wrong with a line after the end line that is no blank one; names the line. Frees the row. */
int rows_after_end(const struct rows_in *in, struct json *row, struct err *err) MUST_CHECK;

/* What is wrong with a stream that ends here; 0 when nothing is. */
int rows_check_ended(const struct rows_in *in, struct err *err) MUST_CHECK;

#endif
