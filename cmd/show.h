/* show.h - what evp-show says of a file, said once and rendered twice: as aligned text and as a JSON object.
 *
 *     sheet_begin(s, "tiers.json", "tiers");
 *     sheet_int(s, "variant", 1);
 *     sheet_table(s, "tiers", (const char *const[]){ "name", "capacity_bytes" }, 2);
 *     for each tier:
 *         sheet_text(s, NULL, name);       // in a table the columns name the cells, in order
 *         sheet_bytes(s, NULL, capacity);
 *     sheet_table_end(s);
 *     sheet_end(s);
 *
 * To add a format: (1) its name in enum show_kind and show_find() (2) a show_*() here (3) its row in evp-show.c's table
 */
#ifndef EVP_SHOW_H
#define EVP_SHOW_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- the sheet ---- */

enum { SHEET_COLUMNS = 12 };

struct sheet {
    struct buf text, json; // what was rendered so far
    int rows_most;         // rows a table prints as text, 0: all; set by the caller
    /* private */
    struct json_out out;
    struct buf cell; // texts of the running table or of the fields so far, each with its NUL
    const char *const *column;
    int n_columns, at, n_rows;  // at: the next cell's column
    bool number[SHEET_COLUMNS]; // this column is aligned to the right
};

void sheet_begin(struct sheet *s, const char *file, const char *kind);
int sheet_end(struct sheet *s, struct err *err) MUST_CHECK; // ERR_NOMEM when something was lost on the way
void sheet_release(struct sheet *s);

/* Fields, and cells of a table (key NULL). Unknown values, NULL, below 0 or NAN as it fits, are "-" and null. */
void sheet_text(struct sheet *s, const char *key, const char *v);
void sheet_int(struct sheet *s, const char *key, int64_t v);
void sheet_bytes(struct sheet *s, const char *key, int64_t v);             // 94 MiB
void sheet_rate(struct sheet *s, const char *key, double v);               // 1.3 GiB/s
void sheet_seconds(struct sheet *s, const char *key, double v);            // 1.3 s
void sheet_real(struct sheet *s, const char *key, double v, int decimals); // 0.912
void sheet_times(struct sheet *s, const char *key, double v);              // 4.00x

/* `column`: n names, borrowed to the end of the table. */
void sheet_table(struct sheet *s, const char *key, const char *const *column, int n);
void sheet_table_end(struct sheet *s);

/* ---- the formats ---- */

enum show_kind {
    SHOW_CONTEXTS,
    SHOW_QUESTIONS,
    SHOW_TIERS,
    SHOW_TABLE,
    SHOW_MANIFEST,
    SHOW_RECEIPT,
    SHOW_PAYLOAD,
    SHOW_SAFETENSORS,
    SHOW_MODEL,
    SHOW_EMBEDDER,
};

/* What a file is, by what is in it, not by its name. ERR_FORMAT when it is nothing of ours. */
int show_find(const char *path, enum show_kind *kind, struct err *err) MUST_CHECK;

/* Reads all of the file with every check its reader makes, and says what is in it. With SHOW_CHECK what costs extra
 * time is verified too: checksums, the tokenizer of a model. */
enum show_depth { SHOW_SUMMARY, SHOW_CHECK };

int show_contexts(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_questions(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_tiers(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_table(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_manifest(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_receipt(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_payload(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_safetensors(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_model(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;
int show_embedder(struct sheet *s, const char *path, enum show_depth depth, struct err *err) MUST_CHECK;

/* Adds the chain of tools that made a file to *out, the last one first, what it read indented below it. */
int show_lineage(struct buf *out, const char *path, enum show_kind kind, struct err *err) MUST_CHECK;

/* Prints the ids of each text of the file, a line each; texts end at `separator`. model NULL: the default one. */
int show_tokens(const char *model, const char *path, char separator, struct err *err) MUST_CHECK;

#endif
