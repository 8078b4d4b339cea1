/* row.h - one row of a .jsonl file as a context.
 *
 * Rows with a field `text` are contexts as evp-import writes them (formats/context.h). Rows with a field `context` are
 * LongBench's:
 *
 *     {"input": question, "context": document, "answers": [...], "dataset": name, "_id": id, ...}
 *
 * Without `dataset` the file's name is used, without `_id` the line's number. `question` or `query` stand for an absent
 * `input`, `answer` for `answers`; `choice_A` to `choice_D` and `options` are appended to the question. A row with
 * `choice_A` and `difficulty` is of LongBench v2. Other fields are not read; those with texts are named.
 *
 * Other suites:
 *
 *     kvpress'  {"context", "question", "answer_prefix", "answer", "task", ...}: the whole prompt in three pieces, the
 *               last of which begins the reply; `task` is the dataset
 *     RULER's   {"input", "outputs", "answer_prefix", ...}: the question begins in `input` where kvpress cuts it
 *     SCBench's {"context", "multi_turns": [{"input", "answer", "options"}, ...]}: a context with many questions. A
 *               list of numbers as context follows the first question, as SCBench prints it
 */
#ifndef EVP_ROW_H
#define EVP_ROW_H

#include "base/map.h"
#include "formats/context.h"

#include <stdint.h>

enum { ROW_UNREAD_MAX = 8 };

struct row_origin {
    const char *stem; // name of the file without folder and extension
    int64_t line;
    struct map *unread; // gets the names of texts that are not read, at most ROW_UNREAD_MAX; NULL: does not
};

/* The caller releases *c; it is zeroed after a failure. ERR_FORMAT: the row cannot be used. */
int row_context(struct context *c, const struct json *row, const struct row_origin *origin, struct err *err) MUST_CHECK;

#endif
