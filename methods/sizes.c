/* sizes.c - the size of a variant before it is made: rows, tensors, bytes, and the device memory for scoring and making
 * it. Tensors are counted in the serving dtype, 2 bytes per number; device memory in the backend's dtype.
 */
#include "methods/variant_internal.h"

#include "kernels/pool.h"
#include "methods/evp_method.h"
#include "methods/registry.h"

#include <string.h>

int config_check(const struct config *config, const struct kv_shape *shape, struct err *err)
{
    for (int i = 0; i < config->n_stages; i++) {
        const struct method *m = config->stage[i].method;
        if (m->check && m->check(config->stage[i].value, shape->head_dim, err))
            return err_wrap(err, "config '%s': %s", config->name, m->name);
    }
    return 0;
}

const struct config_stage *config_stage_of(const struct config *config, enum method_kind kind)
{
    for (int i = 0; i < config->n_stages; i++)
        if (method_kind(config->stage[i].method) == kind)
            return &config->stage[i];
    return NULL;
}

const struct config_stage *config_packer(const struct config *config)
{
    const struct config_stage *last = config->n_stages ? &config->stage[config->n_stages - 1] : NULL;

    return last && last->method->pack ? last : NULL;
}

/* ---- rows --------------------------------------------------------------- */

int keep_of_drop(double drop, int n_tokens)
{
    int n = (int)((double)n_tokens * (1.0 - drop));

    return n > 0 ? n : 1;
}

bool reads_part(const struct config *config)
{
    return config->n_stages == 1 && config->stage[0].method->drop && config->stage[0].method->drop->stored;
}

int config_n_keep(const struct config *config, const struct kv_shape *shape, int n_tokens, int layer)
{
    const struct config_stage *drop = config_stage_of(config, METHOD_DROP);

    if (!drop || reads_part(config))
        return n_tokens;
    if (!config_knows_rows(config)) {
        const struct config_stage *budget = config_stage_of(config, METHOD_BUDGET);
        return budget->method->budget->most(budget->value, drop->value[0], n_tokens); // the first parameter is drop
    }
    if (drop->method->drop->keep)
        return drop->method->drop->keep(drop->value, shape, n_tokens, layer);
    if (drop->method->drop->plugin && drop->method->drop->plugin->keep) {
        int n = drop->method->drop->plugin->keep(drop->value, n_tokens, layer, shape->n_layers);
        return n < 1 ? 1 : n > n_tokens ? n_tokens : n; // compressor_new() refuses other numbers
    }
    return keep_of_drop(drop->value[0], n_tokens);
}

bool config_knows_rows(const struct config *config)
{
    const struct config_stage *budget = config_stage_of(config, METHOD_BUDGET);

    return (!budget || !budget->method->budget->most) && !reads_part(config);
}

struct config_share config_share(const struct config *config, const struct kv_shape *shape, int n_tokens, int layer)
{
    const struct config_stage *drop = config_stage_of(config, METHOD_DROP),
                              *budget = config_stage_of(config, METHOD_BUDGET);

    if (drop && drop->method->drop->share)
        return drop->method->drop->share(drop->value, shape, n_tokens);
    int n = config_n_keep(config, shape, n_tokens, layer);
    bool shares = budget && budget->method->budget->floor;
    return (struct config_share){ .layers = shares ? 1 : 0,
                                  .pairs = (int64_t)shape->n_kv_heads * n,
                                  .floor = shares ? budget->method->budget->floor(budget->value, n) : 0 };
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

double config_keep_frac(const struct config *config, const struct kv_shape *shape, int n_tokens)
{
    return (double)pairs_kept(config, shape, n_tokens) / shape->n_layers / shape->n_kv_heads / n_tokens;
}

bool config_is_ragged(const struct config *config)
{
    const struct config_stage *drop = config_stage_of(config, METHOD_DROP),
                              *budget = config_stage_of(config, METHOD_BUDGET);

    return (drop && (drop->method->drop->share || drop->method->drop->stored)) ||
           (budget && (budget->method->budget->floor || budget->method->budget->most));
}

/* ---- tensors ------------------------------------------------------------ */

int config_least_whole(const struct config *config, int n_keep)
{
    const struct config_stage *packer = config_packer(config);

    return packer && packer->method->pack->whole ? packer->method->pack->whole(packer->value, 0, n_keep) : -1;
}

int parts_of_head(const struct config *config, const struct kv_shape *shape, const struct head_length *length,
                  struct head_part part[HEAD_PART_MAX])
{
    const struct config_stage *packer = config_packer(config);
    int whole = packer && packer->method->pack->whole ? length->whole : 0, n_parts = 2;

    part[0] = (struct head_part){ "k", DTYPE_BF16, length->n, shape->head_dim };
    part[1] = (struct head_part){ "v", DTYPE_BF16, length->n, shape->head_dim };
    if (packer && packer->method->pack->coder)
        part[0].rows = part[1].rows = 0; // layer_parts() has all rows
    else if (packer)
        n_parts = quantiser_parts(packer, shape->head_dim, length->n - whole, part);
    for (int i = 0; i < n_parts && whole; i++)
        if (part_in_full(part[i].name))
            part[i].rows = whole;
    return n_parts;
}

bool part_in_full(const char *name)
{
    return strcmp(name, "k") == 0 || strcmp(name, "v") == 0;
}

/* A tensor of a ragged layer: the matrices of its heads one after another. */
static struct packed_part ragged_part(const struct head_part *head, int64_t rows, int64_t numbers)
{
    if (part_in_full(head->name))
        return (struct packed_part){ head->name, head->dtype, 2, { rows, head->cols }, NULL, false };
    return (struct packed_part){ head->name, head->dtype, 1, { numbers }, NULL, false };
}

/* The tensors of a layer whose head g has n[g * step] tokens. */
static int parts_of_layer(const struct config *config, const struct kv_shape *shape,
                          const struct layer_lengths *lengths, int step, struct packed_part part[PART_MAX])
{
    int G = shape->n_kv_heads, n_parts = 0;
    int64_t rows[HEAD_PART_MAX] = { 0 }, numbers[HEAD_PART_MAX] = { 0 };
    struct head_part head[HEAD_PART_MAX];
    const struct config_stage *packer = config_packer(config);
    bool ragged = config_is_ragged(config);

    for (int g = 0; g < G; g++) {
        const struct head_length length = { lengths->layer, lengths->n[g * step], lengths->whole };
        n_parts = parts_of_head(config, shape, &length, head);
        for (int i = 0; i < n_parts; i++) {
            rows[i] += head[i].rows;
            numbers[i] += head[i].rows * head[i].cols;
        }
    }
    for (int i = 0; i < n_parts; i++) {
        const struct head_part *h = &head[i]; // the last head's; all heads are the same unless the layer is ragged
        part[i] = ragged ? ragged_part(h, rows[i], numbers[i])
                         : (struct packed_part){ h->name, h->dtype, 3, { G, h->rows, h->cols }, NULL, false };
    }
    if (packer && packer->method->pack->coder)
        n_parts += packer->method->pack->coder->parts(packer->value, shape, lengths, part + n_parts);
    if (reads_part(config))
        n_parts += config->stage[0].method->drop->stored->parts(config->stage[0].value, shape, lengths, part + n_parts);
    if (ragged)
        part[n_parts++] = (struct packed_part){ "lengths", DTYPE_I32, 1, { G }, NULL, false };
    return n_parts;
}

int config_parts(const struct config *config, const struct kv_shape *shape, const struct layer_lengths *lengths,
                 struct packed_part part[PART_MAX])
{
    return parts_of_layer(config, shape, lengths, 1, part);
}

size_t packed_part_bytes(const struct packed_part *part)
{
    size_t n = dtype_size(part->dtype);

    for (int i = 0; i < part->n_dims; i++)
        n *= (size_t)part->dim[i];
    return n;
}

int64_t config_bytes_known(const struct config *config, const struct kv_shape *shape, int n_tokens)
{
    int64_t bytes = 0;
    struct packed_part part[PART_MAX];
    const struct config_stage *packer = config_packer(config);

    if (!config_knows_rows(config) ||
        (packer && (config_is_ragged(config) || packer->method->pack->coder || packer->method->pack->whole)))
        return -1; // the scores decide; or a head's packed share depends on its length, its numbers, or the attention
    if (config_is_ragged(config))
        return pairs_kept(config, shape, n_tokens) * kv_bytes(&(struct kv_shape){ 1, 1, 1, shape->head_dim, 0 }, 1) +
               (int64_t)shape->n_layers * shape->n_kv_heads * (int64_t)sizeof(int32_t);
    for (int l = 0; l < shape->n_layers; l++) {
        int n_keep = config_n_keep(config, shape, n_tokens, l);
        int n = parts_of_layer(config, shape, &(struct layer_lengths){ l, &n_keep, 0, n_tokens }, 0, part);
        for (int i = 0; i < n; i++)
            bytes += (int64_t)packed_part_bytes(&part[i]);
    }
    return bytes;
}

int64_t kv_bytes(const struct kv_shape *shape, int n_tokens)
{
    return (int64_t)2 * shape->n_layers * shape->n_kv_heads * n_tokens * shape->head_dim *
           (int64_t)dtype_size(DTYPE_BF16);
}

/* ---- lists of configs, memory ------------------------------------------- */

void configs_need(const struct config *const *configs, int n, unsigned *needs, int *window)
{
    *needs = NEED_NOTHING;
    *window = 0;
    for (int i = 0; i < n; i++) {
        for (int s = 0; s < configs[i]->n_stages; s++) {
            const struct config_stage *stage = &configs[i]->stage[s];
            int w = stage->method->window ? stage->method->window(stage->value) : 0;
            w = stage->method->drop && stage->method->drop->plugin ? stage->method->drop->plugin->window : w;
            *needs |= stage->method->needs;
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

bool same_scores(const struct config_stage *a, const struct config_stage *b)
{
    const struct method_scores *x = scores_of(a->method), *y = scores_of(b->method);

    if (x->all != y->all || x->head != y->head || x->shares != y->shares ||
        (!x->all && !x->head && !x->shares && a->method != b->method))
        return false;
    bool by_drop = x->by_drop && x->by_drop(a->value);
    for (int i = 0; i < CONFIG_PARAMS && a->method->param[i].name && b->method->param[i].name; i++)
        if ((!a->method->param[i].budget || by_drop) && a->value[i] != b->value[i])
            return false;
    return true;
}

const enum method_kind scored_kind[SCORED_KINDS] = { METHOD_DROP, METHOD_MERGE };

const struct method_scores *scores_of(const struct method *m)
{
    return m->drop ? &m->drop->scores : &m->merge->scores;
}

bool has_scores(const struct method *m)
{
    return m->drop || (m->merge && m->merge->scores.all);
}

const struct config_stage *new_scores(const struct config *const *configs, int i, enum method_kind kind)
{
    const struct config_stage *mine = config_stage_of(configs[i], kind);

    if (mine && !has_scores(mine->method))
        return NULL;
    for (int j = 0; j < i && mine; j++) {
        const struct config_stage *other = config_stage_of(configs[j], kind);
        if (other && same_scores(mine, other))
            return NULL;
    }
    return mine;
}

struct memory_need configs_score_bytes(const struct config *const *configs, int n, const struct kv_shape *shape,
                                       int n_tokens)
{
    struct memory_need need = { 0 };
    unsigned needs;
    int window;

    configs_need(configs, n, &needs, &window);
    window = window < n_tokens ? window : n_tokens;
    for (int i = 0; i < n * SCORED_KINDS; i++) {
        const struct config_stage *stage = new_scores(configs, i / SCORED_KINDS, scored_kind[i % SCORED_KINDS]);
        if (!stage)
            continue;
        const struct method_scores *scores = scores_of(stage->method);
        size_t making = scores->bytes ? scores->bytes(stage->value, shape, n_tokens, window) : 0;
        need.kept += score_bytes(shape, n_tokens);
        need.making = making > need.making ? making : need.making;
    }
    return need;
}

size_t score_bytes(const struct kv_shape *shape, int n_tokens)
{
    return pool_size((size_t)shape->n_layers * (size_t)shape->n_kv_heads * (size_t)n_tokens * sizeof(float));
}

static size_t matrix_bytes(const struct head_part *part)
{
    return (size_t)(part->rows * part->cols) * dtype_size(part->dtype);
}

struct packing config_packing(const struct config *config, const struct kv_shape *shape, int layer, int64_t pairs)
{
    int G = shape->n_kv_heads;
    bool ragged = config_is_ragged(config);
    struct head_part part[HEAD_PART_MAX], empty[HEAD_PART_MAX];
    struct packing p = { 0 };

    if (!config_packer(config))
        return p;
    int n = (int)(ragged ? pairs : pairs / G);
    const struct head_length length = { layer, n, config_least_whole(config, n) };
    p.n_parts = parts_of_head(config, shape, &length, part);
    parts_of_head(config, shape, &(struct head_length){ layer, 0, 0 }, empty);
    for (int i = 0; i < p.n_parts; i++) {
        if (part_in_full(part[i].name))
            continue;
        size_t bytes = matrix_bytes(&part[i]);
        p.bytes[i] = pool_size(ragged ? bytes + (size_t)(G - 1) * matrix_bytes(&empty[i]) : (size_t)G * bytes);
        p.total += p.bytes[i];
    }
    return p;
}

/* The packed layers. Where layers share pairs, no division of them takes more than if one layer had all, apart from the
 * rounding of each tensor. */
static size_t packed_bytes(const struct config *config, const struct kv_shape *shape, int n_tokens)
{
    size_t bytes = 0, most = 0;

    for (int l = 0; l < shape->n_layers; l++) {
        struct config_share share = config_share(config, shape, n_tokens, l);
        struct packing p = config_packing(config, shape, l, share.pairs);
        most = p.total > most ? p.total : most;
        bytes +=
            share.layers > 1 ? config_packing(config, shape, l, 0).total + (size_t)p.n_parts * pool_size(1) : p.total;
    }
    return config_share(config, shape, n_tokens, 0).layers > 1 ? bytes + most : bytes;
}

struct variant_sizes config_sizes(const struct config *config, const struct kv_shape *shape, int n_tokens)
{
    size_t G = (size_t)shape->n_kv_heads, row = (size_t)shape->head_dim * dtype_size(shape->dtype),
           pairs = (size_t)pairs_kept(config, shape, n_tokens);
    const struct config_stage *budget = config_stage_of(config, METHOD_BUDGET);
    struct variant_sizes s = { .packed = packed_bytes(config, shape, n_tokens) };

    if (config->n_stages > 0)
        s.rows = 2 * pairs * row;
    if (config_stage_of(config, METHOD_DROP))
        s.kept = pairs * sizeof(int32_t);
    if (config_share(config, shape, n_tokens, 0).layers > 0)
        s.counts = (size_t)shape->n_layers * G * sizeof(int32_t);
    if (budget && budget->method->budget->rescore)
        s.scores = score_bytes(shape, n_tokens);
    return s;
}

struct memory_need config_variant_bytes(const struct config *config, const struct kv_shape *shape, int n_tokens)
{
    struct variant_sizes s = config_sizes(config, shape, n_tokens);
    size_t selecting = pool_size(s.kept) + pool_size(s.counts) + s.scores;

    return (struct memory_need){ pool_size(s.rows), selecting > s.packed ? selecting : s.packed };
}
