/* Any bytes as a folder of quantised weights: config.json up to a NUL, then model.safetensors. Every tensor that a
 * model has is read. */
#include "engine/model/model_internal.h"
#include "kernels/backend.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* What can be read is finite. */
static void read_all(const struct model *m)
{
    for (int role = 0; role < TENSOR_ROLES; role++)
        for (int i = 0; i < model_count(&m->config, (enum tensor_role)role); i++) {
            struct tensor_shape shape = model_shape(&m->config, (enum tensor_role)role);
            size_t size = (size_t)shape.rows * (size_t)shape.cols;
            float *out = malloc(size * sizeof(*out));
            struct err err;
            int code = out ? model_read(m, (enum tensor_role)role, i, out, &err) : ERR_FORMAT;
            if (code ? code != ERR_FORMAT : weight_finite(WEIGHT_F32, out, size) != size)
                abort();
            free(out);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *end = memchr(data, '\0', n);
    struct model *m = calloc(1, sizeof(*m));
    struct err err;

    if (!end) {
        free(m);
        return 0;
    }
    m->path = strdup("folder");
    m->json = json_parse((const char *)data, (size_t)(end - data), &err);
    m->shard = calloc(1, sizeof(*m->shard));
    m->shard_path = calloc(1, sizeof(*m->shard_path));
    m->shard_path[0] = strdup("file");
    m->n_shards = 1;
    m->n_threads = 1;
    if (m->json && hf_config_read(m, &err) == 0 &&
        safetensors_parse(&m->shard[0], end + 1, (size_t)(data + n - end) - 1, &err) == 0 &&
        hf_tensors_add(m, &err) == 0 && model_check(m, &err) == 0)
        read_all(m);
    model_close(m);
    return 0;
}
