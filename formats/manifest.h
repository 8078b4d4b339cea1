/* manifest.h - the plan as a file: one placement per context, and what to do to get there from the previous plan.
 *
 * JSON Lines (base/rows.h, kind "manifest"). The header carries model_digest, alpha, tiers, solver, objective,
 * upper_bound, gap, gain_gap, optimal, prices, move_cost, move_price, max_move, previous (SHA-256 of the previous
 * manifest's file, or null), table_digest, and totals: this plan beside what one would do without a planner. For a live
 * plan, rows carry the variants that a context could be stored as too (formats/variants.h), and the header
 * carries min_quality and a list of all configs; that is version 2. formats/manifest.schema.json describes
 * header, rows and end.
 *
 * Rows that are read and rows that are made pass the same checks, so what was written can be read again:
 *
 *     struct manifest m = { .alpha = 1, .solver = "optimal" };
 *     m.tiers = ...;                                        // owned by the manifest from here on, unless m.borrows
 *     for each context:
 *         if (manifest_add(&m, &(struct placement){ .id = id, .tier = 0, ... }, err)) ...
 *     if (manifest_write(&m, NULL, (struct rows_made){ .tool = "evp-plan", ... }, err)) ...
 *     manifest_release(&m);
 */
#ifndef EVP_MANIFEST_H
#define EVP_MANIFEST_H

#include "base/digest.h"
#include "base/err.h"
#include "base/map.h"
#include "base/rows.h"
#include "formats/operation.h"
#include "formats/tiers.h"
#include "formats/variants.h"

#include <stdint.h>

enum { MANIFEST_ID = 1024, MANIFEST_CONFIG = 128, MANIFEST_PAYLOAD = 200 }; // bytes, with the NUL
enum { MANIFEST_TOTALS = 8 };

struct placement {
    const char *id, *token_digest, *config, *payload;         // payload: file name; NULL on recompute
    int tier;                                                 // index into tiers; -1: recompute
    int64_t n_tokens, bytes;                                  // bytes as the table counts them; 0 on recompute
    int64_t kv_bytes;                                         // of the uncompressed cache; 0: not known
    double quality, quality_test, ttft_s, utility, frequency; // quality_test, ttft_s NAN: not known
    enum operation operation;
    const struct variants *variants; // NULL: not carried
    double quality_sd;               // of a quality that is predicted; 0: not in doubt, or not known
    bool unmeasured;                 // no answer of this variant was measured: quality is that of its config
};

/* One line of the comparison: means over accesses. */
struct manifest_total {
    char name[MANIFEST_CONFIG]; // "this plan", "recompute everything", ...
    double utility, ttft_s, quality, quality_test;
};

struct manifest {
    char model_digest[DIGEST_HEX], table_digest[DIGEST_HEX], previous[DIGEST_HEX]; // "" when absent
    char digest[DIGEST_HEX];                                                       // of the file, after manifest_read
    char solver[32];
    double alpha, objective, upper_bound, gap; // upper_bound, gap NAN: the solver gives none
    double slo_ttft_s, slo_weight;             // the TTFT that is promised, and what lateness costs; 0: nothing
    bool optimal;                              // no plan has a higher objective, says the solver
    double gain_gap;        // (upper_bound - objective) / (upper_bound - utility of recomputing all); NAN: not known
    double move_cost;       // utility that the objective loses per byte written since the previous manifest
    double move_price;      // what upper_bound takes off besides, because of the cap max_move
    int64_t max_move;       // bytes; INT64_MAX: no cap
    double expected_loss;   // utility that is lost against knowing every quality, an estimate; 0: not known
    bool predicted;         // the qualities planned with are predictions of the train qualities
    double min_quality;     // of a live plan: the floor for contexts that will come
    double price[TIER_MAX]; // utility per byte on each tier: what upper_bound is proven with
    struct tiers tiers;
    struct manifest_total total[MANIFEST_TOTALS];
    int n_totals;         // may be 0
    char *header;         // its first line, after reading; NULL before
    struct placement *at; // made by manifest_add; numbers may be changed in place, strings belong to the manifest
    int n, cap;
    struct map ids;               // id -> index
    struct map configs;           // every config text once; where rows carry variants, the header lists them
    struct variant_configs list;  // of a header that was read
    struct map payloads;          // every payload name once
    struct manifest_block *block; // memory of digests and variants
    bool online;                  // rows carry variants: version 2
    bool borrows;                 // the tiers are another object's: manifest_release() leaves them
};

/* Adds a row; its strings are copied. ERR_FORMAT with a sentence that names the field when the row says something that
 * a manifest cannot say: an id or a payload name that came before, a size below 0, a payload on recompute, no payload
 * on a tier, a payload that is not a plain file name, ... */
int manifest_add(struct manifest *m, const struct placement *p, struct err *err) MUST_CHECK;

/* The placement of a context, or NULL. */
const struct placement *manifest_find(const struct manifest *m, const char *id);

/* What rows and live plans say of a context itself, wherever it is placed. */
struct manifest_context {
    const char *id, *token_digest;
    int64_t n_tokens, kv_bytes;
    double frequency;
    const struct variants *variants; // NULL: not carried
};

/* The checks of manifest_add() that need nothing but the row: of the context alone, and of the whole row, which may be
 * on the tiers of *m. ERR_FORMAT names the field. */
int manifest_check_context(const struct manifest_context *c, const struct tiers *tiers, struct err *err) MUST_CHECK;
int manifest_check_row(const struct manifest *m, const struct placement *p, struct err *err) MUST_CHECK;

/* ---- from one manifest to the next ---- */

/* A row as operation_between() compares it, and the tiers that its manifest has; p NULL: the manifest has no such
 * context. Manifests of one chain are of one model, and a config tells the size. */
struct cached manifest_cached(const struct tiers *tiers, const struct placement *p);

/* A manifest's rows are in the order of their ids. Sets order[0..n) to the numbers of the n ids in that order. */
int manifest_order(int *order, const char *const *id, int n, struct err *err) MUST_CHECK;

/* After them come the evictions: contexts that `before` stores and whose ids the map `now` lacks. Returns the first
 * such row at or after *i and sets *i to its index; NULL when there is none. */
const struct placement *manifest_gone(const struct manifest *before, const struct map *now, int *i);

/* The row that evicts the context of a row of the manifest before; strings are borrowed from it. */
struct placement manifest_eviction(const struct placement *before);

/* ---- files ---- */

/* path NULL or "-": standard input. Everything is checked, the end line too; sentences name file and line. On failure
 * nothing is left to release. A config is any text here: whether a method of that name exists is not asked. */
int manifest_read(struct manifest *m, const char *path, struct err *err) MUST_CHECK;

/* The same from memory; the digest is not set. */
int manifest_read_bytes(struct manifest *m, const struct rows_bytes *bytes, struct err *err) MUST_CHECK;

/* The header alone; the rows are not read. */
int manifest_read_header(struct manifest *m, const char *path, struct err *err) MUST_CHECK;

/* made.kind and made.more are set here. path NULL or "-": standard output. */
int manifest_write(const struct manifest *m, const char *path, struct rows_made made, struct err *err) MUST_CHECK;
void manifest_release(struct manifest *m); // zeroed is fine

/* Lists a config in the header: before manifest_create(), each that the rows' variants have. */
int manifest_list_config(struct manifest *m, const char *config, struct err *err) MUST_CHECK;

/* Rows that are made while they are written, so that a plan is in memory once, as a plan. manifest_put() checks a row
 * and names its payload when it has none. No two rows may have the same id. */
struct manifest_out {
    const struct manifest *m; // borrowed; its rows are not written
    struct rows_out rows;
    struct buf name; // of a payload
};
int manifest_create(struct manifest_out *out, const struct manifest *m, const char *path, struct rows_made made,
                    struct err *err) MUST_CHECK;
int manifest_put(struct manifest_out *out, const struct placement *row, struct err *err) MUST_CHECK;
int manifest_finish(struct manifest_out *out, struct err *err) MUST_CHECK; // releases *out
void manifest_abort(struct manifest_out *out);                             // leaves no file

/* The payload file's name for a context under a config: unique, safe as a file name, the same every time. Allocated;
 * the caller frees it. NULL without memory. */
char *manifest_payload_name(const char *id, const char *token_digest, const char *config);

/* The same into *name, whose text it replaces. */
void manifest_put_payload_name(struct buf *name, const char *id, const char *token_digest, const char *config);

/* Is this a name that manifest_payload_name() could return: 1 to MANIFEST_PAYLOAD - 1 letters, digits, - _ and ., not
 * beginning with a dot? */
bool manifest_payload_safe(const char *name);

#endif
