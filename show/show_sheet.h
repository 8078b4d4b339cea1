/* show_sheet.h - a summary, filled once and rendered twice: as aligned text and as a JSON object.
 *
 *     sheet_begin(s, "tiers.json", "tiers");
 *     sheet_int(s, "n_tiers", 2);
 *     sheet_table(s, "tiers", (const char *const[]){ "name", "capacity_bytes" }, 2);
 *     for each tier:
 *         sheet_text(s, NULL, name);       // in a table the columns name the cells, in order
 *         sheet_bytes(s, NULL, capacity);
 *     sheet_table_end(s);
 *     sheet_end(s, &err);
 *
 * Keys are for programs and carry the unit: "read_bytes_per_s". In the text the value has the unit and the key is
 * "read".
 */
#ifndef EVP_SHOW_SHEET_H
#define EVP_SHOW_SHEET_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

enum { SHEET_COLUMNS = 72 }; // the frontier of 64 tiers has 72

struct sheet {
    struct buf text, json; // rendered so far
    int max_rows;          // of a table, in the text; 0: all; set by the caller
    /* private */
    struct json_out out;
    struct buf cell; // texts of the open table or fields, each with its NUL
    const char *const *column;
    int n_columns, at, n_rows;  // at: the next cell
    bool number[SHEET_COLUMNS]; // this column is aligned to the right
};

void sheet_begin(struct sheet *s, const char *file, const char *kind);
int sheet_end(struct sheet *s, struct err *err) MUST_CHECK; // ERR_NOMEM: the sheet is incomplete
void sheet_release(struct sheet *s);

/* Fields, and cells of a table (key NULL). An unknown value (NULL, below 0, NAN) is "-" in the text and null in JSON.
 */
void sheet_text(struct sheet *s, const char *key, const char *v);
void sheet_bool(struct sheet *s, const char *key, bool v); // yes, no
void sheet_int(struct sheet *s, const char *key, int64_t v);
void sheet_part(struct sheet *s, const char *key, int64_t v, int64_t of);  // 5 of 14; JSON has key and key_of
void sheet_bytes(struct sheet *s, const char *key, int64_t v);             // 94 MiB
void sheet_rate(struct sheet *s, const char *key, double v);               // 1.3 GiB/s
void sheet_seconds(struct sheet *s, const char *key, double v);            // 1.3 s
void sheet_real(struct sheet *s, const char *key, double v, int decimals); // 0.912
void sheet_times(struct sheet *s, const char *key, double v);              // 4.00x

/* `column`: n names, at most SHEET_COLUMNS, borrowed until sheet_table_end(). */
void sheet_table(struct sheet *s, const char *key, const char *const *column, int n);
void sheet_table_end(struct sheet *s);

#endif
