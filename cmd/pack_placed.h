/* pack_placed.h - the payloads that tiers hold already, so that evp-pack need not make them again. */
#ifndef EVP_PACK_PLACED_H
#define EVP_PACK_PLACED_H

#include "base/err.h"
#include "base/map.h"

#include <stdbool.h>

/* Adds the payloads of a namespace in the folders of tiers.json, those kept for a rollback included, as far as their
 * files are there with their sizes: evp-load reads them before it uses them. Nothing is locked or changed. Tiers of
 * other kinds are passed over. */
int placed_read(struct map *placed, const char *tiers_path, const char *name_space, struct err *err) MUST_CHECK;

/* Is the context of this digest there in this config? */
bool placed_has(const struct map *placed, const char *token_digest, const char *config);

#endif
