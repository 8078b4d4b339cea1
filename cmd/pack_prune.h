/* pack_prune.h - removes payloads that the manifest does not name. */
#ifndef EVP_PACK_PRUNE_H
#define EVP_PACK_PRUNE_H

#include "base/err.h"
#include "formats/manifest.h"

#include <stdint.h>

enum prune { PRUNE_COUNT, PRUNE_LIST, PRUNE_REMOVE };

struct pruned {
    int n;
    int64_t bytes;
};

/* Counts, prints or removes the files of a folder that have a name as manifest_payload_name() makes them, and that no
 * row of the manifest has. Leaves folders, links and all other files alone. A missing folder has none. */
int prune_payloads(const char *dir, const struct manifest *m, enum prune how, struct pruned *pruned,
                   struct err *err) MUST_CHECK;

#endif
