/* Any bytes as the coefficients of kvzap: what is accepted has a number for each key, value and constant. */
#include "methods/kvzap.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct kvzap z;
    struct err err;

    if (kvzap_parse(&z, data, n, &err))
        return 0;
    size_t numbers = (size_t)(z.n_layers * z.n_kv_heads) * (size_t)(2 * z.n_kv_heads * z.head_dim + 1);
    if (numbers * sizeof(float) > n)
        abort();
    for (size_t i = 0; i < numbers; i++)
        if (!isfinite(z.weight[i]))
            abort();
    kvzap_release(&z);
    return 0;
}
