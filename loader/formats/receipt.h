/* receipt.h - what evp-load wrote where.
 *
 * JSON Lines, kind "receipt". The header carries manifest_digest (null: a state that no manifest is known for) and the
 * tiers; there is a row per context of the manifest: `tier`, `operation`, and for a placed one its entry
 * (loader/formats/stored.h); a recomputed one has tier "recompute" and nothing else but its id.
 *
 * Three files make a load repeatable and undoable, R being the receipt's path:
 *
 *     R           the last load that was completed
 *     R.pending   while a load is at work: the state before it, in the variant of a receipt (R itself, to the byte,
 * where R told that state). Left behind only by a load that was killed; the next run goes on from there. R.before the
 * same after the load: what --rollback leads back to, and what R will be then
 */
#ifndef EVP_RECEIPT_H
#define EVP_RECEIPT_H

#include "base/err.h"
#include "base/rows.h"
#include "loader/formats/stored.h"
#include "loader/formats/manifest.h"
#include "loader/formats/tiers.h"

struct receipt {
    char manifest_digest[DIGEST_HEX]; // "": none
    struct tiers tiers;
    struct entries in; // of placed contexts; entry.tier is the index into tiers
    struct map ids;    // of all contexts
};

int receipt_read(struct receipt *r, const char *path, struct err *err) MUST_CHECK;
int receipt_parse(struct receipt *r, struct rows_in *in, struct err *err) MUST_CHECK; // of an opened stream
void receipt_release(struct receipt *r);                                              // zeroed is fine

/* One row. `entry` NULL: recomputed. */
struct receipt_row {
    const char *id;
    const struct entry *entry; // entry->tier: index into tiers
    enum operation operation;
};

struct receipt_made {
    const char *manifest_digest; // "": none
    const struct tiers *tiers;
    const struct receipt_row *row;
    int n;
    char **args; // of the tool
    int n_args;
};

int receipt_write(const char *path, const struct receipt_made *made, struct err *err) MUST_CHECK;

#endif
