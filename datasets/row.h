/* row.h - one row of a .jsonl file as a context.
 *
 * Rows with a field `text` are contexts as evp-import writes them (formats/context.h). Rows with a field `context` are
 * LongBench's:
 *
 *     {"input": question, "context": document, "answers": [...], "dataset": name, "_id": id, ...}
 *
 * Without `dataset` the file's name is used, without `_id` the line's number. Other fields are ignored.
 */
#ifndef EVP_ROW_H
#define EVP_ROW_H

#include "formats/context.h"

#include <stdint.h>

struct row_origin {
    const char *stem; // name of the file without folder and extension
    int64_t line;
};

/* The caller releases *c; it is zeroed after a failure. ERR_FORMAT: the row cannot be used. */
int row_context(struct context *c, const struct json *row, const struct row_origin *origin, struct err *err) MUST_CHECK;

#endif
