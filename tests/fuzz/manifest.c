/* manifest.c - any bytes as a manifest: refused with a sentence, or every placement is one that the loader may trust.
 */
#include "tests/fuzz/placement.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct rows_bytes bytes = { "input", (const char *)data, n };
    struct manifest m;
    struct err err;

    if (manifest_read_bytes(&m, &bytes, &err))
        return 0;
    for (int i = 0; i < m.n; i++) {
        if (manifest_find(&m, m.at[i].id) != &m.at[i])
            abort();
        expect_placement(&m, &m.at[i]);
    }
    manifest_release(&m);
    return 0;
}
