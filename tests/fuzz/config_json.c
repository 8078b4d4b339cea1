/* Any bytes as the config.json of a model's folder: what it says is refused, or possible; so is its shape. */
#include "engine/model/model_internal.h"
#include "engine/model/shape.h"

#include <math.h>
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
    struct shape s;
    if (m->json && shape_read(m, &s, &err) == 0) {
        double bytes = shape_bytes(&s, 131072);
        if (!isfinite(bytes) || bytes < 0 || !isfinite(s.weights_bytes) || s.n_layers < 1 || !(s.kv_bits >= 2))
            abort();
    } else if (err.code != ERR_FORMAT)
        abort();
    model_close(m);
    return 0;
}
