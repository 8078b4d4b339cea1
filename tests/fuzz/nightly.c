/* nightly.c - any bytes as the configuration of a night: refused with a sentence, or read within its bounds. */
#include "nightly/nightly.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct nightly night;
    struct err err;

    if (nightly_parse(&night, (const char *)data, n, &err))
        return 0;
    if (!(night.budget_s >= 0) || !json_count(night.logs) || night.keep < 0)
        abort();
    nightly_release(&night);
    return 0;
}
