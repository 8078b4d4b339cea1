/* pack_placed.h - the payloads that tiers already hold, so that evp-pack need not make them again. */
#ifndef EVP_PACK_PLACED_H
#define EVP_PACK_PLACED_H

#include "base/err.h"
#include "base/map.h"
#include "formats/tiers.h"

#include <stdbool.h>

struct placed {
    struct map payloads;
    struct tiers tiers;
    bool away[TIER_MAX]; // tiers that cannot be read now
    int n_away;
};

/* Reads which payloads of a namespace are in the tiers of tiers.json and exist with their sizes; evp-load checks the
 * bytes before it uses them. Locks and changes nothing. Skips tiers of other kinds than folders and servers. Reports a
 * tier that cannot be read and goes on. placed_release() frees; zeroed is fine. */
int placed_read(struct placed *placed, const char *tiers_path, const char *name_space, struct err *err) MUST_CHECK;
void placed_release(struct placed *placed);

/* Do tiers hold the context with this digest under this config? */
bool placed_has(const struct placed *placed, const char *token_digest, const char *config);

/* Is this a tier that cannot be read now? */
bool placed_is_away(const struct placed *placed, const struct tier *tier);

#endif
