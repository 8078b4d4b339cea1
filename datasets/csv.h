/* csv.h - comma-separated values (RFC 4180) as rows: the first line names the columns, each further row becomes a JSON
 * object with a text for every field that is not empty.
 *
 *     id,context,input,answers
 *     a1,"Two lines
 *     of text","Who said ""no""?","[""Ada"",""Grace""]"
 *
 * The columns `answers` and `inputs` may hold JSON lists and `n_tokens` a whole number, as rows have them. Rows end
 * with a line feed or with carriage return and line feed; empty lines are skipped. A defect that leaves it open where
 * fields end fails the whole file; a row with the wrong number of fields fails alone.
 */
#ifndef EVP_CSV_H
#define EVP_CSV_H

#include "base/err.h"
#include "base/json.h"
#include "base/rows.h"

#include <stdint.h>

struct csv {
    const char *label;    // for messages; borrowed, like the bytes
    const char *at, *end; // unread
    int64_t line;         // where the last row began
    int64_t next_line;
    struct {
        char **at;
        int n, cap;
    } names; // of the columns
};

/* Reads the first line. ERR_FORMAT: the file is empty, or a name is empty or occurs twice. Call csv_close() after a
 * failure too. */
int csv_open(struct csv *in, const struct rows_bytes *bytes, struct err *err) MUST_CHECK;

/* 1 and *row (the caller frees it), 0 at the end, or an error. CSV_ROW_WRONG: the row has more or fewer fields than the
 * first line, described in *err; the next call continues after it. Other errors end the file. */
enum { CSV_ROW_WRONG = 2 };
int csv_next(struct csv *in, struct json **row, struct err *err) MUST_CHECK;
void csv_close(struct csv *in); // zeroed is fine

#endif
