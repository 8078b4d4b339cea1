/* Any bytes as a safetensors file; what is accepted must lie inside. */
#include "base/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct safetensors st;
    struct err err;

    if (safetensors_parse(&st, data, n, &err))
        return 0;
    for (int i = 0; i < st.n; i++) {
        const struct st_tensor *t = &st.tensor[i];
        const uint8_t *at = t->at;
        if (at < data || t->bytes > (uint64_t)(data + n - at) || safetensors_find(&st, t->name) != t)
            abort();
    }
    safetensors_meta(&st, "evp");
    safetensors_close(&st);
    return 0;
}
