/* import_internal.h - between the three files of an import: import.c finds files, import_bytes.c makes contexts of
 * their contents, import_contexts.c keeps the contexts.
 */
#ifndef EVP_IMPORT_INTERNAL_H
#define EVP_IMPORT_INTERNAL_H

#include "datasets/import.h"

#include <stdbool.h>

/* ---- import_bytes.c ---- */

enum import_kind { IMPORT_UNKNOWN, IMPORT_ROWS, IMPORT_JSON, IMPORT_CSV, IMPORT_TEXT };
enum import_kind import_kind_of(const char *name); // by its ending
bool import_has_rows(const char *name);            // by its ending

/* The name of a file without folder and known ending ("Apache-2.0" keeps its dot); of rows in a file `test` or
 * `validation` its folder's name. The caller frees it. */
char *import_stem(const char *path);

/* Is the file binary, or a document of a known kind that is not read here (PDF, Word, Parquet, a picture)? Then *err
 * says so, and how to convert it. */
enum import_binary { IMPORT_BINARY, IMPORT_DOCUMENT };
bool import_is_binary(const struct import_file *file, enum import_binary which, struct err *err);

/* ---- import_contexts.c ---- */

/* Moves a context into the import, or drops it if its dataset is not wanted. label: for messages. */
int import_add(struct import *im, struct context *c, const char *label, struct err *err) MUST_CHECK;

/* Reports and counts a row that cannot be used; returns 0, since the import continues. */
int import_leave_out(struct import *im, const struct err *why);

#endif
