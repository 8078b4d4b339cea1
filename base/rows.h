/* rows.h - JSON Lines streams between tools: a header with their lineage, rows, and an end line that proves them
 * complete.
 *
 *     {"evp":"contexts","version":1,"tool":"evp-import","args":["--limit","4","data.zip"],"from":[...]}
 *     {"id":...}                                  one object per row
 *     {"end":true,"rows":N}
 *
 * A stream with a header but without an end line was cut: rows_next() fails with ERR_FORMAT after the last whole row
 * and gives the number of rows. A plain .jsonl without a header is accepted. Messages name file and line.
 */
#ifndef EVP_ROWS_H
#define EVP_ROWS_H

#include "base/buf.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/file.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { ROWS_VERSION = 1, ROWS_MANIFEST_VERSION = 2 }; // manifests of version 1 are also read and written

/* ---- reading ---- */

struct rows_in {
    char *path; // for messages; "standard input"
    FILE *f;
    char *line; // the last line read
    size_t cap;
    int64_t n_line, n_rows;
    int version;         // of the header
    struct json *header; // NULL: none
    struct json *first;  // without a header: the first row, for the first rows_next()
    bool ended;
    struct digest *digest; // borrowed; gets every byte read
};

/* path NULL or "-": standard input. `kind`: the required "evp" of the header. */
int rows_open(struct rows_in *in, const char *path, const char *kind, struct err *err) MUST_CHECK;

/* The same; adds every byte to `digest`, which covers the whole file once rows_next() has returned 0. */
int rows_open_hashed(struct rows_in *in, const char *path, const char *kind, struct digest *digest,
                     struct err *err) MUST_CHECK;

/* The same for a stream in memory, such as a file of an archive. The bytes are borrowed until rows_close(). */
struct rows_bytes {
    const char *label; // for messages, as `path` above
    const char *at;
    size_t n;
};
int rows_open_bytes(struct rows_in *in, const struct rows_bytes *bytes, const char *kind, struct err *err) MUST_CHECK;

/* 1 and *row (the caller frees it with json_free), 0 at the end, or an error. A malformed line ends the stream. */
int rows_next(struct rows_in *in, struct json **row, struct err *err) MUST_CHECK;

/* Calls each(arg, row) for every remaining row; wraps its errors with file and line. */
typedef int rows_visit(void *arg, const struct json *row, struct err *err);
int rows_rest(struct rows_in *in, rows_visit *each, void *arg, struct err *err) MUST_CHECK;

/* The same for the whole of a stream. */
int rows_each(const char *path, const char *kind, rows_visit *each, void *arg, struct err *err) MUST_CHECK;

void rows_close(struct rows_in *in); // zeroed is fine

/* ---- writing ---- */

struct rows_out {
    struct file_out file; // unused when writing to standard output
    FILE *f;
    int64_t n_rows;
    struct buf line; // the last line that rows_begin() or rows_create() made
};

/* The lineage of the rows, for the header; a table stores the same in its attribute `lineage`. A run's inputs go back
 * to earlier runs of the same tools (tonight's table to last night's), but no further: below an input, `from` leaves
 * out the tools between it and the file. Else every night would at least double a lineage. */
struct rows_made {
    const char *kind; // "contexts"
    int version;      // 0: ROWS_VERSION
    const char *tool; // "evp-import"
    char **args;      // argv + 1
    int n_args;
    const char *inputs;             // JSON: digests of the inputs by name; NULL: the member is left out
    const struct json *const *from; // headers of the inputs; NULL entries are left out
    int n_from;
    void (*more)(const void *arg, struct json_out *w); // further members of the header; may be NULL
    const void *arg;
};

/* Adds the members "tool", "args", "inputs" and "from" to an open object. */
void rows_made_to_json(const struct rows_made *made, struct json_out *w);
void rows_made_to_text(const struct rows_made *made, struct buf *out); // an object with these members: a lineage

/* path NULL or "-": standard output. A file appears under its name at rows_finish(). */
int rows_create(struct rows_out *out, const char *path, const struct rows_made *made, struct err *err) MUST_CHECK;

/* Starts a row: clears out->line and returns a writer that has opened the object. rows_put() closes and writes it. */
struct json_out rows_begin(struct rows_out *out);
int rows_put(struct rows_out *out, struct json_out *w, struct err *err) MUST_CHECK;

int rows_finish(struct rows_out *out, struct err *err) MUST_CHECK; // writes the end line; releases *out
void rows_abort(struct rows_out *out);                             // leaves no file; zeroed is fine

#endif
