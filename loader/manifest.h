/* manifest.h - the plan as a file: one placement per context, and what to do to get there from the previous plan.
 *
 * JSON Lines (base/rows.h, kind "manifest"). The header carries model_digest, alpha, tiers, solver, objective,
 * upper_bound, gap, previous (SHA-256 of the previous manifest's file, or null), table_digest.
 * loader/manifest.schema.json describes header, rows and end.
 */
#ifndef EVP_MANIFEST_H
#define EVP_MANIFEST_H

#include "base/err.h"
#include "base/map.h"
#include "base/rows.h"
#include "loader/tiers.h"

#include <stdint.h>

enum operation { OP_NONE, OP_INSERT, OP_KEEP, OP_RECOMPRESS, OP_MOVE, OP_EVICT };
const char *operation_name(enum operation op);

struct placement {
    char *id, *token_digest, *config, *payload; // payload: file name; NULL on recompute
    int tier;                                   // index into tiers; -1: recompute
    int64_t n_tokens, bytes;
    double quality, quality_test, ttft_s, utility, frequency; // quality_test NAN: no test questions
    enum operation operation;
};

struct manifest {
    char model_digest[65], table_digest[65], previous[65]; // "" when absent
    char digest[65];                                       // of the file itself, after manifest_read
    char solver[32];
    double alpha, objective, upper_bound, gap;
    struct tiers tiers;
    struct placement *at;
    int n;
    struct map ids; // id -> index
};

/* Everything checked: unique ids, known tiers, configs as text (the loader knows no methods), sizes, end line. */
int manifest_read(struct manifest *m, const char *path, struct err *err) MUST_CHECK;

/* made->kind is set here; made->more/arg are used for the header's members. path NULL or "-": standard output. */
int manifest_write(const struct manifest *m, const char *path, struct rows_made made, struct err *err) MUST_CHECK;
void manifest_release(struct manifest *m);

/* What takes a context from `before` (NULL: it was not there) to `after`. OP_MOVE: same config, other tier;
 * OP_RECOMPRESS: other config or other tokens; OP_EVICT: it was stored, now recompute. */
enum operation manifest_operation(const struct placement *before, const struct tiers *tiers_before,
                                  const struct placement *after, const struct tiers *tiers_after);

/* The payload file's name for a context under a config: unique, safe as a file name, the same every time. Allocated. */
char *manifest_payload_name(const char *id, const char *token_digest, const char *config);

#endif
