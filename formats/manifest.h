/* manifest.h - the plan as a file: one placement per context, and what to do to get there from the previous plan.
 *
 * JSON Lines (base/rows.h, kind "manifest"). The header carries model_digest, alpha, tiers, solver, objective,
 * upper_bound, gap, gain_gap, optimal, prices, move_cost, move_price, max_move, previous (SHA-256 of the previous
 * manifest's file, or null), table_digest, and totals, which compare this plan with simple ones. Version 2 is for live
 * plans: rows also carry the variants that a context could be stored as (formats/variants.h), and the header
 * min_quality and a list of all configs. formats/manifest.schema.json describes header, rows and end.
 *
 * Reading and writing make the same checks, so every written manifest can be read:
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
    int64_t kv_bytes;                                         // bytes of the uncompressed cache; 0: not known
    double quality, quality_test, ttft_s, utility, frequency; // quality_test, ttft_s NAN: not known
    enum operation operation;
    const struct variants *variants; // NULL: not carried
    double quality_sd;               // standard deviation of a predicted quality; 0: certain, or not known
    bool unmeasured;                 // no answer of this variant was measured: quality is its config's
};

/* One line of the comparison: means over accesses. */
struct manifest_total {
    char name[MANIFEST_CONFIG]; // "this plan", "recompute everything", ...
    double utility, ttft_s, quality;
    double wait_s;              // of a request for others, INFINITY: the queue grows; not in files
    double quality_error;       // standard error of a predicted quality; NAN: not known
    double quality_test;        // on test questions; NAN unless all compressed contexts have such answers
    double quality_tested;      // the same over those compressed contexts that have; NAN: none
    double quality_test_error;  // of quality_test, or, where it is NAN, of quality_tested; NAN: not known
    int n_compressed, n_tested; // contexts in use that are stored compressed; how many of them have test answers
};

/* Requests at a rate share GPUs and bandwidth (placement/placement_load.c). rate 0: nobody waits. */
struct manifest_load {
    double rate;  // requests per second, of all contexts
    int64_t gpus; // each with the whole model
    /* What a use costs beyond its own time, in seconds: s seconds of a GPU gpu_linear * s + gpu_square * s^2, and each
     * byte read from a tier. */
    double gpu_linear, gpu_square, byte[TIER_MAX];
    double gpu_use, tier_use[TIER_MAX]; // the shares of their time that the plan takes
    double wait_s;                      // mean time that a request waits for others
};

/* What serves a prompt about a context that is not stored: nothing; a stored context that its tokens begin with, as
 * evp_find() does; or also the first chunks of an uncompressed cache, as with evp-load --chunks. */
enum manifest_sharing { SHARING_NONE, SHARING_CONTEXTS, SHARING_CHUNKS };

struct manifest {
    char model_digest[DIGEST_HEX], table_digest[DIGEST_HEX], previous[DIGEST_HEX]; // "" when absent
    char digest[DIGEST_HEX];                                                       // of the file, after manifest_read
    char solver[32];
    double alpha, objective, upper_bound, gap; // upper_bound, gap NAN: the solver gives none of them
    double slo_ttft_s, slo_weight;             // the promised TTFT, and the cost of lateness; 0: nothing is promised
    bool optimal;                              // the solver has proved that no plan has a higher objective
    double gain_gap;          // (upper_bound - objective) / (upper_bound - utility of recomputing all); NAN: not known
    double move_cost;         // utility that the objective loses per byte that the operations write
    double pack_weight;       // utility that it loses per second of packing (placement/placement.h)
    double decode_s_per_byte; // that an answer takes to read the cache once for each of its tokens; 0: uncounted
    double move_price;        // further utility per byte, from the cap max_move: counts in upper_bound only
    int64_t max_move;         // bytes; INT64_MAX: no cap
    bool predicted;           // the plan uses predicted train qualities
    bool scale_same; // a second answer of the uncompressed cache has quality 1 (evp-plan --quality-scale same-meaning)
    /* floors that the plan keeps, of quality - sure_z * quality_sd; 0: none. A live plan has min_quality for new
     * contexts */
    double min_quality, min_quality_worst, min_facts, sure_z;
    enum manifest_sharing sharing; // what serves contexts that are not stored
    bool measured_only;            // the plan uses only variants that answered train questions
    char rules_digest[DIGEST_HEX]; // of formats/rules.h; "": none
    double price[TIER_MAX];        // utility per byte on each tier; they prove upper_bound
    struct manifest_load load;
    int64_t uses;                      // that a live plan has counted; 0: none
    double uses_weight[VARIANTS_USES]; // of its time scales
    struct tiers tiers;
    struct manifest_total total[MANIFEST_TOTALS];
    int n_totals;         // may be 0
    char *header;         // the first line of the file, after reading; NULL before
    struct placement *at; // filled by manifest_add; numbers may be changed in place, strings belong to the manifest
    int n, cap;
    struct map ids;               // id -> index
    struct map configs;           // every config once; the header lists them when rows carry variants
    struct variant_configs list;  // the header's list, after reading
    struct map payloads;          // every payload name once
    struct manifest_block *block; // memory of digests and variants
    bool online;                  // rows carry variants: version 2
    bool borrows;                 // the tiers are another object's: manifest_release() leaves them
};

/* Adds a row; its strings are copied. ERR_FORMAT names the field of an invalid row: a repeated id or payload name, a
 * size below 0, a payload on recompute, no payload on a tier, a payload that is not a plain file name, ... */
int manifest_add(struct manifest *m, const struct placement *p, struct err *err) MUST_CHECK;

/* The placement of a context, or NULL. */
const struct placement *manifest_find(const struct manifest *m, const char *id);

/* A context as rows and live plans describe it, without its placement. */
struct manifest_context {
    const char *id, *token_digest;
    int64_t n_tokens, kv_bytes;
    double frequency;
    const struct variants *variants; // NULL: not carried
};

/* The checks of manifest_add() that need one row alone: of its context, and of all its fields against the tiers of *m.
 * ERR_FORMAT names the field. */
int manifest_check_context(const struct manifest_context *c, const struct tiers *tiers, struct err *err) MUST_CHECK;
int manifest_check_row(const struct manifest *m, const struct placement *p, struct err *err) MUST_CHECK;

/* ---- from one manifest to the next ---- */

/* A row as operation_between() compares it; tiers: the manifest's; p NULL: the manifest lacks the context. Model and
 * size are not compared: a chain of manifests is about one model, and the config determines the size. */
struct cached manifest_cached(const struct tiers *tiers, const struct placement *p);

/* A manifest's rows are sorted by id. Sets order[0..n) to the numbers of the n ids in that order. */
int manifest_order(int *order, const char *const *id, int n, struct err *err) MUST_CHECK;

/* Evictions follow the sorted rows: contexts that `before` stores and the map `now` lacks. Returns the first such row
 * at or after *i and sets *i to its index; NULL at the end. */
const struct placement *manifest_gone(const struct manifest *before, const struct map *now, int *i);

/* The row that evicts the context of `before`, a row of the previous manifest; strings are borrowed from it. */
struct placement manifest_eviction(const struct placement *before);

/* ---- files ---- */

/* path NULL or "-": standard input. Checks everything, including the end line; messages name file and line. On failure
 * nothing is left to release. A config may be any text: methods and parameters are not checked. */
int manifest_read(struct manifest *m, const char *path, struct err *err) MUST_CHECK;

/* The same from memory; the digest is not set. */
int manifest_read_bytes(struct manifest *m, const struct rows_bytes *bytes, struct err *err) MUST_CHECK;

/* The header alone; the rows are not read. */
int manifest_read_header(struct manifest *m, const char *path, struct err *err) MUST_CHECK;

/* made.kind and made.more are set here. path NULL or "-": standard output. */
int manifest_write(const struct manifest *m, const char *path, struct rows_made made, struct err *err) MUST_CHECK;
void manifest_release(struct manifest *m); // zeroed is fine

/* Lists a config in the header. Call it before manifest_create() for every config of the rows' variants. */
int manifest_list_config(struct manifest *m, const char *config, struct err *err) MUST_CHECK;

/* Writes a manifest row by row, so that the rows of a plan need not be in memory. manifest_put() checks a row and names
 * its payload if it has none. The caller ensures that no two rows have the same id. */
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

/* Is a name 1 to MANIFEST_PAYLOAD - 1 letters, digits, - _ and ., not beginning with a dot? Those of
 * manifest_payload_name() are. */
bool manifest_payload_safe(const char *name);

/* Could manifest_payload_name() have made it? It is safe and ends with '-', 16 digits of base 16 and ".safetensors". */
bool manifest_payload_made(const char *name);

#endif
