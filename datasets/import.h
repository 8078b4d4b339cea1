/* import.h - documents from anywhere, as one list of contexts.
 *
 * Takes archives (archive.h), .jsonl files (row.h; also streams of contexts that evp-import wrote), .json files with a
 * list of rows, .csv files (csv.h), and texts: one file, one context, named by the file without its .txt or .md. For
 * any other name the contents decide: an archive, rows if the first character is '{' or if it is a JSON list of
 * objects, otherwise text. Parquet is refused. Folders are walked in sorted order, without hidden files and symbolic
 * links.
 *
 * Everything is read before anything is written, because rows with the same text become one context with all their
 * questions, wherever they are. Of two such rows the first gives id, dataset and ask.
 *
 * A row that cannot be used is reported and counted, and the import continues. A defect that makes its whole file
 * doubtful fails the import: a refused or damaged archive, a line that is not JSON, a stream of contexts without its
 * end.
 */
#ifndef EVP_IMPORT_H
#define EVP_IMPORT_H

#include "base/map.h"
#include "formats/context.h"

#include <stddef.h>
#include <stdint.h>

enum import_note { IMPORT_WARNING, IMPORT_ROW_LEFT_OUT };

struct import {
    /* set by the caller */
    struct map wanted;  // names of datasets; empty: all
    const char *output; // will be replaced, so no imported folder may hold it; NULL: none
    void (*note)(void *arg, enum import_note what, const char *sentence);
    void *arg;

    /* results */
    struct contexts contexts; // in the order of the input; its header is not used
    struct map datasets;      // the name of every dataset in the input, wanted or not
    struct {
        struct json **at;
        int n, cap;
    } headers;          // of the streams of contexts in the input, for lineage
    int64_t n_left_out; // rows
    struct map unread;  // names of fields of rows that hold texts and are not read, at most ROW_UNREAD_MAX
    struct map texts;   // SHA-256 of the text -> index in contexts
};

/* Imports a file, a folder, or standard input ("-"). */
int import_path(struct import *im, const char *path, struct err *err) MUST_CHECK;

/* A file in memory that is not an archive. */
struct import_file {
    const char *label; // for messages
    const char *name;  // its ending gives the kind, the rest names its rows
    const char *bytes; // ends in a NUL that n does not count
    size_t n;
};
int import_bytes(struct import *im, const struct import_file *file, struct err *err) MUST_CHECK;

void import_release(struct import *im);

#endif
