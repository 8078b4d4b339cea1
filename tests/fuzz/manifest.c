/* manifest.c - any bytes as a manifest: refused with a sentence, or every placement is one that the loader may trust.
 */
#include "loader/formats/manifest.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct rows_bytes bytes = { "input", (const char *)data, n };
    struct manifest m;
    struct err err;

    if (manifest_read_bytes(&m, &bytes, &err))
        return 0;
    for (int i = 0; i < m.n; i++) {
        const struct placement *p = &m.at[i];
        bool stored = p->tier >= 0;
        if (manifest_find(&m, p->id) != p || p->tier >= m.tiers.n || p->bytes < 0 || strlen(p->token_digest) != 64 ||
            stored != (p->payload != NULL) || (stored && !manifest_payload_safe(p->payload)))
            abort();
        for (int k = 0; p->variants && k < p->variants->n; k++)
            if (p->variants->at[k].bytes < 0 || !(p->variants->at[k].quality >= 0 && p->variants->at[k].quality <= 1))
                abort();
        if (stored && p->variants && !variants_find(p->variants, p->config))
            abort();
        free(manifest_payload_name(p->id, p->token_digest, p->config));
    }
    manifest_release(&m);
    return 0;
}
