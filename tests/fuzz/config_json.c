/* Any bytes as the config.json of a model's folder: what it says is refused, or possible. */
#include "engine/model/model_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct model *m = calloc(1, sizeof(*m));
    struct err err = { 0 };

    m->path = strdup("folder");
    m->json = json_parse((const char *)data, n, &err);
    if (m->json && hf_config_read(m, &err) == 0 && model_check(m, &err) == 0)
        abort(); // there are no tensors
    if (err.code != ERR_FORMAT)
        abort();
    model_close(m);
    return 0;
}
