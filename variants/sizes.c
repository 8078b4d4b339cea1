/* sizes.c - the size of a variant before it is made: rows, bytes, and the device memory for making it. Tensors are
 * counted in the serving dtype, 2 bytes per number; device memory in the backend's dtype.
 */
#include "variants/variant_internal.h"

#include "kernels/pool.h"
#include "methods/evp_method.h"
#include "methods/registry.h"

int config_check(const struct config *config, const struct kv_shape *shape, struct err *err)
{
    for (int kind = 0; kind < METHOD_KINDS; kind++) {
        const struct method *m = config->stage[kind].method;
        if (m && m->check && m->check(config->stage[kind].value, shape->head_dim, err))
            return err_wrap(err, "config '%s': %s", config->name, m->name);
    }
    return 0;
}

/* ---- rows --------------------------------------------------------------- */

int config_n_keep(const struct config *config, const struct kv_shape *shape, int n_tokens, int layer)
{
    const struct method_drop *drop = config->drop;
    const double *value = config->stage[METHOD_DROP].value; // the first is drop

    if (!drop || drop->stored)
        return n_tokens;
    if (!config->knows_rows)
        return config->budget->most(config->stage[METHOD_BUDGET].value, value[0], n_tokens);
    if (drop->keep)
        return drop->keep(value, shape, n_tokens, layer);
    if (drop->scores.plugin && drop->scores.plugin->keep) {
        int n = drop->scores.plugin->keep(value, n_tokens, layer, shape->n_layers);
        return n < 1 ? 1 : n > n_tokens ? n_tokens : n; // compressor_new() refuses other numbers
    }
    return keep_of_drop(value[0], n_tokens);
}

struct config_share config_share(const struct config *config, const struct kv_shape *shape, int n_tokens, int layer)
{
    if (config->drop && config->drop->share)
        return config->drop->share(config->stage[METHOD_DROP].value, shape, n_tokens);
    int n = config_n_keep(config, shape, n_tokens, layer);
    bool shares = config->budget && config->budget->floor;
    return (struct config_share){ .layers = shares ? 1 : 0,
                                  .pairs = (int64_t)shape->n_kv_heads * n,
                                  .floor = shares ? config->budget->floor(config->stage[METHOD_BUDGET].value, n) : 0 };
}

/* The pairs that all layers keep. */
static int64_t pairs_kept(const struct config *config, const struct kv_shape *shape, int n_tokens)
{
    int64_t pairs = 0;

    for (int l = 0; l < shape->n_layers;) {
        struct config_share share = config_share(config, shape, n_tokens, l);
        pairs += share.pairs;
        l += share.layers ? share.layers : 1;
    }
    return pairs;
}

int64_t kv_window_pairs(const struct kv_shape *shape, int n_tokens)
{
    return (int64_t)shape->n_windowed * shape->n_kv_heads * kv_layer_tokens(shape, shape->n_layers, n_tokens);
}

int64_t kv_pairs(const struct kv_shape *shape, int n_tokens)
{
    return (int64_t)shape->n_layers * shape->n_kv_heads * n_tokens + kv_window_pairs(shape, n_tokens);
}

double config_keep_frac(const struct config *config, const struct kv_shape *shape, int n_tokens)
{
    int64_t kept = pairs_kept(config, shape, n_tokens) + kv_window_pairs(shape, n_tokens);

    return (double)kept / (double)kv_pairs(shape, n_tokens);
}

/* ---- bytes -------------------------------------------------------------- */

int64_t config_bytes_known(const struct config *config, const struct kv_shape *shape, int n_tokens)
{
    int64_t bytes = kv_window_pairs(shape, n_tokens) * kv_pair_bytes(shape);
    struct head_part part[HEAD_PART_MAX];

    if (!config->knows_rows || (config->pack && (config->ragged || config->pack->coder || config->pack->whole)))
        return -1; // the scores decide; or a head's packed share depends on its length, its numbers, or the attention
    if (config->ragged)
        return bytes + pairs_kept(config, shape, n_tokens) * kv_pair_bytes(shape) +
               (int64_t)shape->n_layers * shape->n_kv_heads * (int64_t)sizeof(int32_t);
    for (int l = 0; l < shape->n_layers; l++) {
        int n_keep = config_n_keep(config, shape, n_tokens, l);
        int n = parts_of_head(config, shape->head_dim, n_keep, 0, part);
        for (int i = 0; i < n; i++)
            bytes += shape->n_kv_heads * (int64_t)head_part_bytes(&part[i]);
    }
    return bytes;
}

int64_t kv_bytes(const struct kv_shape *shape, int n_tokens)
{
    return kv_pairs(shape, n_tokens) * kv_pair_bytes(shape);
}

int64_t kv_pair_bytes(const struct kv_shape *shape)
{
    return (int64_t)2 * shape->head_dim * (int64_t)dtype_size(DTYPE_BF16);
}

/* ---- lists of configs, memory ------------------------------------------- */

/* The last tokens whose queries a stage needs. */
static int stage_window(const struct config_stage *stage)
{
    int window = stage->method ? stage->method->window : 0;

    for (int i = 0; stage->method && i < CONFIG_PARAMS; i++)
        if (stage->method->param[i].window)
            window = (int)stage->value[i];
    return window;
}

void configs_need(const struct config *const *configs, int n, unsigned *needs, int *window)
{
    *needs = NEED_NOTHING;
    *window = 0;
    for (int i = 0; i < n; i++) {
        for (int kind = 0; kind < METHOD_KINDS; kind++) {
            int w = stage_window(&configs[i]->stage[kind]);
            *needs |= configs[i]->stage[kind].method ? configs[i]->stage[kind].method->needs : 0;
            *window = w > *window ? w : *window;
        }
    }
}

size_t configs_side_bytes(const struct config *const *configs, int n, const struct kv_shape *shape, int n_tokens)
{
    size_t L = (size_t)shape->n_layers, T = (size_t)n_tokens, K = (size_t)shape->head_dim, bytes = 0;
    unsigned needs;
    int window;

    configs_need(configs, n, &needs, &window);
    size_t W = (size_t)(window < n_tokens ? window : n_tokens);
    if (needs & NEED_WINDOW_Q)
        bytes += pool_size(L * W * (size_t)(shape->n_heads * shape->head_dim) * dtype_size(shape->dtype));
    if (needs & NEED_COLUMN_SUMS)
        bytes += pool_size(L * (size_t)shape->n_kv_heads * T * sizeof(float));
    if (needs & NEED_REPEAT)
        bytes += pool_size(L * (size_t)shape->n_kv_heads * T * sizeof(float));
    if (needs & NEED_MOMENTS)
        bytes += pool_size(L * (size_t)shape->n_heads * (K + 1) * K * sizeof(float));
    return bytes;
}

size_t score_bytes(const struct kv_shape *shape, int n_tokens)
{
    return pool_size((size_t)shape->n_layers * (size_t)shape->n_kv_heads * (size_t)n_tokens * sizeof(float));
}

/* The packed layers. Where layers share pairs, no division of them takes more than if one layer had all, apart from the
 * rounding of each tensor. */
static size_t packed_bytes(const struct config *config, const struct kv_shape *shape, int n_tokens)
{
    size_t bytes = 0, most = 0;

    for (int l = 0; config->pack && l < shape->n_layers; l++) {
        struct config_share share = config_share(config, shape, n_tokens, l);
        struct packing p = parts_packing(config, shape, share.pairs);
        most = share.layers > 1 && p.all > most ? p.all : most;
        bytes += share.layers > 1 ? p.rest : p.all;
    }
    return bytes + most;
}

struct variant_sizes config_sizes(const struct config *config, const struct kv_shape *shape, int n_tokens)
{
    size_t heads = (size_t)shape->n_layers * (size_t)shape->n_kv_heads,
           pairs = (size_t)pairs_kept(config, shape, n_tokens),
           row = (size_t)shape->head_dim * dtype_size(shape->dtype);

    return (struct variant_sizes){
        .rows = config->drop || config->pack ? 2 * pairs * row : 0,
        .kept = config->drop ? pairs * sizeof(int32_t) : 0,
        .counts = config_share(config, shape, n_tokens, 0).layers > 0 ? heads * sizeof(int32_t) : 0,
        .scores = config->budget && config->budget->rescore ? score_bytes(shape, n_tokens) : 0,
        .packed = packed_bytes(config, shape, n_tokens),
    };
}

struct memory_need config_variant_bytes(const struct config *config, const struct kv_shape *shape, int n_tokens)
{
    struct variant_sizes s = config_sizes(config, shape, n_tokens);
    size_t selecting = pool_size(s.kept) + pool_size(s.counts) + s.scores;

    return (struct memory_need){ pool_size(s.rows), selecting > s.packed ? selecting : s.packed };
}
