/* receipt.h - what evp-load placed where.
 *
 * JSON Lines, kind "receipt". The header carries manifest_digest (null: the manifest of this state is not known) and
 * the tiers. Every context of the manifest has a row with `id`, `tier` and `operation`; the row of a placed context
 * also has its entry (formats/stored.h). A recomputed context has tier "recompute".
 */
#ifndef EVP_RECEIPT_H
#define EVP_RECEIPT_H

#include "base/err.h"
#include "base/rows.h"
#include "formats/manifest.h"
#include "formats/stored.h"
#include "formats/tiers.h"

struct receipt {
    char manifest_digest[DIGEST_HEX]; // "": none
    struct tiers tiers;
    struct entries in; // placed contexts; entry.tier is the index into tiers
    struct map ids;    // all contexts
};

int receipt_read(struct receipt *r, const char *path, struct err *err) MUST_CHECK;
int receipt_parse(struct receipt *r, struct rows_in *in, struct err *err) MUST_CHECK; // from an open stream
void receipt_release(struct receipt *r);                                              // zeroed is fine

/* One row. `entry` NULL: recomputed. */
struct receipt_row {
    const char *id;
    const struct entry *entry; // entry->tier: index into tiers
    enum operation operation;
    bool left_out; // the load could not place it
};

struct receipt_made {
    const char *manifest_digest; // "": none
    const struct tiers *tiers;
    char **args; // of the tool
    int n_args;
};

/* Writes the header, then rows; rows_finish() completes the file, rows_abort() discards it. */
int receipt_create(struct rows_out *out, const char *path, const struct receipt_made *made, struct err *err) MUST_CHECK;
int receipt_put(struct rows_out *out, const struct tiers *tiers, const struct receipt_row *row,
                struct err *err) MUST_CHECK;

#endif
