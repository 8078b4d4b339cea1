/* placement.h - what the loader may trust in a row of a manifest that was read. */
#ifndef EVP_FUZZ_PLACEMENT_H
#define EVP_FUZZ_PLACEMENT_H

#include "formats/manifest.h"

#include <stdlib.h>
#include <string.h>

static inline void expect_placement(const struct manifest *m, const struct placement *p)
{
    bool stored = p->tier >= 0;

    if (p->tier >= m->tiers.n || p->bytes < 0 || strlen(p->token_digest) != 64 || stored != (p->payload != NULL) ||
        (stored && !manifest_payload_safe(p->payload)))
        abort();
    for (int k = 0; p->variants && k < p->variants->n; k++)
        if (p->variants->at[k].bytes < 0 || !(p->variants->at[k].quality >= 0 && p->variants->at[k].quality <= 1))
            abort();
    if (stored && p->variants && !variants_find(p->variants, p->config))
        abort();
    free(manifest_payload_name(p->id, p->token_digest, p->config));
}

#endif
