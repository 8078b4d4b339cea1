/* pack_placed.h - the payloads that tiers already hold, so that evp-pack need not make them again. */
#ifndef EVP_PACK_PLACED_H
#define EVP_PACK_PLACED_H

#include "base/err.h"
#include "base/map.h"

#include <stdbool.h>

/* Adds the payloads of a namespace in the folders of tiers.json, also those kept for a rollback, if their files exist
 * with their sizes; evp-load checks the bytes before it uses them. Locks and changes nothing. Skips tiers of other
 * kinds. */
int placed_read(struct map *placed, const char *tiers_path, const char *name_space, struct err *err) MUST_CHECK;

/* Do tiers hold the context with this digest under this config? */
bool placed_has(const struct map *placed, const char *token_digest, const char *config);

#endif
