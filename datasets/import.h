/* import.h - documents from anywhere, as one list of contexts.
 *
 * Takes archives (archive.h), .jsonl files (row.h; also our own streams of contexts), and texts: one file, one context,
 * named by the file without its .txt or .md. Files with other names are looked at: an archive, rows if the first
 * character is '{', otherwise text. Folders are walked in sorted order; what is hidden in them and symbolic links are
 * passed over.
 *
 * Everything is read before anything is given out, because rows with the same text become one context with all their
 * questions, wherever they stand. Of two such rows the first gives id, dataset and ask.
 *
 * A row that cannot be used is reported and counted, the rest goes on. What makes its whole file doubtful fails the
 * import: a refused or damaged archive, a line that is no JSON, a stream of ours without its end.
 */
#ifndef EVP_IMPORT_H
#define EVP_IMPORT_H

#include "base/context.h"
#include "base/map.h"

#include <stddef.h>
#include <stdint.h>

/* 10 million tokens; and a row of it, escaped, is still a line that rows.h reads. */
enum { IMPORT_TEXT_LIMIT = 32 << 20 };

enum import_note { IMPORT_WARNING, IMPORT_ROW_LEFT_OUT };

struct import {
    /* set by the caller */
    struct map wanted; // names of datasets; empty: all
    void (*note)(void *arg, enum import_note what, const char *sentence);
    void *arg;

    /* results */
    struct contexts contexts; // in the order of the input; its header is not used
    struct map datasets;      // every name met, also unwanted ones
    struct json **header;     // of the streams of ours among the inputs; for lineage
    int n_headers;
    int64_t n_left_out; // rows
    struct map texts;   // SHA-256 of the text -> index
};

/* A file, a folder, or "-": standard input. */
int import_path(struct import *im, const char *path, struct err *err) MUST_CHECK;

/* A file that is in memory; `name` tells what it is and names its rows, `label` stands in messages. */
struct import_file {
    const char *label, *name;
    const char *bytes; // ends in a NUL that n does not count
    size_t n;
};
int import_bytes(struct import *im, const struct import_file *file, struct err *err) MUST_CHECK;

/* Adds a context, which now belongs to the import; one of an unwanted dataset is dropped. `label` as above. */
int import_add(struct import *im, struct context *c, const char *label, struct err *err) MUST_CHECK;

/* Reports and counts a row that cannot be used; returns 0, since the others go on. */
int import_leave_out(struct import *im, const struct err *why);

void import_release(struct import *im);

#endif
