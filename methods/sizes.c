/* sizes.c - what a config makes of a cache, known before anything is computed: rows, tensors, bytes. Bytes are those of
 * the serving dtype, which has 2 per number.
 */
#include "methods/method.h"

#include <string.h>

int config_check(const struct config *config, const struct kv_shape *shape, struct err *err)
{
    for (int i = 0; i < config->n_stages; i++) {
        const struct config_stage *s = &config->stage[i];
        if (s->method->check && s->method->check(s->value, shape->head_dim, err))
            return err_wrap(err, "config '%s'", config->name);
    }
    return 0;
}

void configs_need(const struct config *configs, int n, unsigned *needs, int *window)
{
    *needs = NEED_NOTHING;
    *window = 0;
    for (int i = 0; i < n; i++) {
        for (int s = 0; s < configs[i].n_stages; s++) {
            const struct config_stage *stage = &configs[i].stage[s];
            int w = stage->method->window ? stage->method->window(stage->value) : 0;
            *needs |= stage->method->needs;
            *window = w > *window ? w : *window;
        }
    }
}

int config_n_keep(const struct config *config, int n_tokens)
{
    if (config->n_stages == 0 || config->stage[0].method->kind != METHOD_DROP)
        return n_tokens;
    int n = (int)((double)n_tokens * (1.0 - config->stage[0].value[0])); // the first parameter is drop
    return n > 0 ? n : 1;
}

int config_parts(const struct config *config, const struct kv_shape *shape, int n_tokens,
                 struct packed_part part[PART_MAX])
{
    const struct config_stage *last = config->n_stages ? &config->stage[config->n_stages - 1] : NULL;
    int n = config_n_keep(config, n_tokens);

    if (last && last->method->kind == METHOD_QUANTISE)
        return last->method->parts(last->value, shape, n, part);
    part[0] = (struct packed_part){ "k", DTYPE_BF16, { shape->n_kv_heads, n, shape->head_dim }, NULL };
    part[1] = (struct packed_part){ "v", DTYPE_BF16, { shape->n_kv_heads, n, shape->head_dim }, NULL };
    return 2;
}

size_t packed_part_bytes(const struct packed_part *part)
{
    return (size_t)(part->dim[0] * part->dim[1] * part->dim[2]) * dtype_size(part->dtype);
}

int64_t config_bytes(const struct config *config, const struct kv_shape *shape, int n_tokens)
{
    struct packed_part part[PART_MAX];
    int n = config_parts(config, shape, n_tokens, part);
    int64_t layer = 0;

    for (int i = 0; i < n; i++)
        layer += (int64_t)packed_part_bytes(&part[i]);
    return layer * shape->n_layers;
}

int64_t kv_bytes(const struct kv_shape *shape, int n_tokens)
{
    return (int64_t)2 * shape->n_layers * shape->n_kv_heads * n_tokens * shape->head_dim *
           (int64_t)dtype_size(DTYPE_BF16);
}
