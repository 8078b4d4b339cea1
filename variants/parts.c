/* parts.c - the tensors of a variant: their shapes, the memory that packing takes, and packing rows into them. */
#include "variants/variant_internal.h"

#include "kernels/pool.h"
#include "methods/quantiser.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- shapes ------------------------------------------------------------- */

bool part_in_full(const char *name)
{
    return strcmp(name, "k") == 0 || strcmp(name, "v") == 0;
}

size_t head_part_bytes(const struct head_part *part)
{
    return (size_t)(part->rows * part->cols) * dtype_size(part->dtype);
}

int config_least_whole(const struct config *config, int n_keep)
{
    bool whole = config->pack && config->pack->whole;

    return whole ? config->pack->whole(config->stage[config->packer].value, 0, n_keep) : 0;
}

int parts_of_head(const struct config *config, int head_dim, int n, int whole, struct head_part part[HEAD_PART_MAX])
{
    const struct method_pack *pack = config->pack;
    int n_parts = 2;

    part[0] = (struct head_part){ "k", DTYPE_BF16, n, head_dim };
    part[1] = (struct head_part){ "v", DTYPE_BF16, n, head_dim };
    if (pack && pack->coder)
        part[0].rows = part[1].rows = 0; // its parts() have all rows
    else if (pack)
        n_parts = quantiser_parts(&config->stage[config->packer], head_dim, n - whole, part);
    for (int i = 0; i < n_parts && whole; i++)
        if (part_in_full(part[i].name))
            part[i].rows = whole;
    return n_parts;
}

/* A tensor of a ragged layer: the matrices of its heads one after another. */
static struct packed_part ragged_part(const struct head_part *head, int64_t rows, int64_t numbers)
{
    if (part_in_full(head->name))
        return (struct packed_part){ head->name, head->dtype, 2, { rows, head->cols }, NULL, false };
    return (struct packed_part){ head->name, head->dtype, 1, { numbers }, NULL, false };
}

/* The tensors that hold more than one head each. */
static int parts_of_layer(const struct config *config, const struct kv_shape *shape,
                          const struct layer_lengths *lengths, struct packed_part *part)
{
    if (config->pack && config->pack->coder)
        return config->pack->coder->parts(config->stage[config->packer].value, shape, lengths, part);
    if (config->drop && config->drop->stored)
        return config->drop->stored->parts(config->stage[METHOD_DROP].value, shape, lengths, part);
    return 0;
}

int config_parts(const struct config *config, const struct kv_shape *shape, const struct layer_lengths *lengths,
                 struct packed_part part[PART_MAX])
{
    int G = shape->n_kv_heads, n_parts = 0;
    int64_t rows[HEAD_PART_MAX] = { 0 }, numbers[HEAD_PART_MAX] = { 0 };
    struct head_part head[HEAD_PART_MAX];

    for (int g = 0; g < G; g++) {
        n_parts = parts_of_head(config, shape->head_dim, lengths->n[g], lengths->whole, head);
        for (int i = 0; i < n_parts; i++) {
            rows[i] += head[i].rows;
            numbers[i] += head[i].rows * head[i].cols;
        }
    }
    for (int i = 0; i < n_parts; i++) {
        const struct head_part *h = &head[i]; // the last head's; all heads are the same unless the layer is ragged
        part[i] = config->ragged ? ragged_part(h, rows[i], numbers[i])
                                 : (struct packed_part){ h->name, h->dtype, 3, { G, h->rows, h->cols }, NULL, false };
    }
    n_parts += parts_of_layer(config, shape, lengths, part + n_parts);
    if (config->ragged)
        part[n_parts++] = (struct packed_part){ "lengths", DTYPE_I32, 1, { G }, NULL, false };
    return n_parts;
}

struct packing parts_packing(const struct config *config, const struct kv_shape *shape, int64_t pairs)
{
    size_t G = (size_t)shape->n_kv_heads;
    int n = (int)(config->ragged ? pairs : pairs / shape->n_kv_heads);
    struct head_part part[HEAD_PART_MAX], empty[HEAD_PART_MAX];
    struct packing p = { 0 };
    int n_parts = parts_of_head(config, shape->head_dim, n, config_least_whole(config, n), part);

    parts_of_head(config, shape->head_dim, 0, 0, empty);
    for (int i = 0; i < n_parts; i++) {
        size_t bytes = head_part_bytes(&part[i]), none = head_part_bytes(&empty[i]);
        p.rest += pool_size(1);
        if (part_in_full(part[i].name))
            continue;
        p.all += pool_size(config->ragged ? bytes + (G - 1) * none : G * bytes);
        p.rest += pool_size(G * none);
    }
    return p;
}

/* ---- packing ------------------------------------------------------------ */

int variant_whole(const struct variant *v, int layer)
{
    return v->whole && layer < v->shape.n_layers ? v->whole[layer] : 0;
}

static struct layer_lengths layer_of(const struct making *m, int layer)
{
    const int *n = m->lengths + (size_t)layer * (size_t)m->v->shape.n_kv_heads;

    return (struct layer_lengths){ layer, n, variant_whole(m->v, layer), m->v->n_tokens };
}

/* Lays out every head's matrices in the block of a layer; returns its bytes. The heads of a tensor are next to each
 * other. */
static size_t lay_out_parts(const struct making *m, int layer, char *block, void **at)
{
    const struct variant *v = m->v;
    const struct packed_part *tensor = v->parts + layer * v->n_parts;
    size_t G = (size_t)v->shape.n_kv_heads, used = 0;
    struct head_part part[HEAD_PART_MAX];
    char *next[HEAD_PART_MAX] = { NULL };

    for (size_t g = 0; g < G; g++) {
        int n = m->lengths[(size_t)layer * G + g];
        int n_parts = parts_of_head(v->config, v->shape.head_dim, n, variant_whole(v, layer), part);
        for (int i = 0; i < n_parts; i++) {
            if (part_in_full(part[i].name))
                continue;
            if (g == 0) {
                next[i] = block + used;
                used += pool_size(packed_part_bytes(&tensor[i]));
            }
            at[g * HEAD_PART_MAX + (size_t)i] = next[i];
            next[i] += head_part_bytes(&part[i]);
        }
    }
    return used;
}

/* What a quantiser packs into. */
struct packed {
    float *constants;
    void **at;
};

/* Calls the backend's quantise or dequantise for all layers; returns the seconds that it takes. */
static double each_layer(const struct variant *v, const struct packed *p, quantise_op *op)
{
    size_t G = (size_t)v->shape.n_kv_heads;
    double start = v->backend->clock(v->backend);

    for (size_t l = 0; l < (size_t)v->shape.n_layers; l++)
        quantise_heads(v->backend,
                       &(struct packed_layer){ .rows = v->rows + l * G,
                                               .shape = &v->shape,
                                               .stage = &v->config->stage[v->config->packer],
                                               .constants = p->constants,
                                               .whole = variant_whole(v, (int)l),
                                               .at = p->at + l * G * HEAD_PART_MAX },
                       op);
    return v->backend->clock(v->backend) - start;
}

/* Copies the packed tensors to the host. */
static int keep_parts(struct variant *v, void *const *at, struct err *err)
{
    size_t G = (size_t)v->shape.n_kv_heads;

    for (int i = 0; i < v->shape.n_layers * v->n_parts; i++) {
        struct packed_part *part = &v->parts[i];
        size_t bytes = packed_part_bytes(part), first = (size_t)(i / v->n_parts) * G * HEAD_PART_MAX;
        if (part_in_full(part->name) || part->at)
            continue;
        part->at = malloc(bytes ? bytes : 1);
        if (!part->at)
            return err_nomem(err);
        if (v->backend->read(v->backend, part->at, at[first + (size_t)(i % v->n_parts)], bytes, err))
            return err->code;
    }
    return 0;
}

/* Packs all layers, then unpacks all layers, and times both. */
static int quantise_rows(struct making *m, struct err *err)
{
    struct variant *v = m->v;
    const struct method_pack *pack = v->config->pack;
    size_t heads = (size_t)v->shape.n_layers * (size_t)v->shape.n_kv_heads;
    char *block = m->packed;
    struct packed p = { .at = calloc(heads * HEAD_PART_MAX, sizeof(*p.at)) };

    if (pack->constants)
        p.constants = pack->constants(v->config->stage[v->config->packer].value, v->shape.head_dim);
    int code = !p.at || (pack->constants && !p.constants) ? err_nomem(err) : 0;
    for (int l = 0; !code && l < v->shape.n_layers; l++)
        block += lay_out_parts(m, l, block, p.at + l * v->shape.n_kv_heads * HEAD_PART_MAX);
    assert((size_t)(block - m->packed) <= m->sizes.packed);
    if (!code) {
        v->compress_s += each_layer(v, &p, v->backend->quantise);
        v->decompress_s = each_layer(v, &p, v->backend->dequantise);
        code = m->detail == VARIANT_PAYLOAD ? keep_parts(v, p.at, err) : 0;
    }
    free(p.constants);
    free(p.at);
    return code;
}

/* Fills v->parts: the tensors of all layers, with the lengths of ragged heads. */
static int list_parts(struct making *m, struct err *err)
{
    struct variant *v = m->v;

    v->parts = calloc((size_t)v->shape.n_layers * PART_MAX, sizeof(*v->parts));
    if (!v->parts)
        return err_nomem(err);
    for (int l = 0; l < v->shape.n_layers; l++) {
        const struct layer_lengths lengths = layer_of(m, l);
        v->n_parts = config_parts(v->config, &v->shape, &lengths, v->parts + l * v->n_parts);
        struct packed_part *part = v->parts + l * v->n_parts, *last = part + v->n_parts - 1;
        if (m->detail != VARIANT_PAYLOAD || !v->config->ragged)
            continue;
        last->at = malloc(packed_part_bytes(last));
        if (!last->at)
            return err_nomem(err);
        memcpy(last->at, lengths.n, packed_part_bytes(last));
    }
    return 0;
}

/* The tensors of what is kept and not read, in host memory. */
static int store_unread(struct making *m, struct err *err)
{
    struct variant *v = m->v;
    size_t G = (size_t)v->shape.n_kv_heads, row = (size_t)v->n_tokens * sizeof(float);
    const int32_t *kept = v->kept;
    float *score = malloc(row);
    int code = score ? 0 : err_nomem(err);

    for (int l = 0; l < v->shape.n_layers && !code; l++) {
        struct packed_part *part = v->parts + l * v->n_parts;
        const struct stored_layer layer = { m->full, l, m->lengths[(size_t)l * G], kept, score, part + 2 };
        for (int i = 2; i < v->n_parts && !code; i++) { // after `k` and `v`
            part[i].at = part[i].at ? part[i].at : malloc(packed_part_bytes(&part[i]) + 1);
            code = part[i].at ? 0 : err_nomem(err);
        }
        if (!code)
            code = v->backend->read(v->backend, score, m->score + (size_t)l * G * (size_t)v->n_tokens, row, err);
        if (!code)
            code = v->config->drop->stored->store(&layer, v->config->stage[METHOD_DROP].value, err);
        if (kept)
            kept += G * (size_t)layer.n;
    }
    free(score);
    return code;
}

/* Adds up the bytes. */
static void count_bytes(struct making *m)
{
    struct variant *v = m->v;
    const struct method_stored *stored = v->config->drop ? v->config->drop->stored : NULL;

    for (int i = 0; i < v->shape.n_layers * v->n_parts; i++)
        v->bytes += (int64_t)packed_part_bytes(&v->parts[i]);
    v->bytes_read = v->bytes;
    for (int l = 0; l < v->shape.n_layers && stored; l++) {
        const struct layer_lengths lengths = layer_of(m, l);
        v->bytes_read -= stored->unread(v->config->stage[METHOD_DROP].value, &v->shape, &lengths);
    }
}

int variant_parts(struct making *m, struct err *err)
{
    const struct config *config = m->v->config;
    bool stores = m->detail == VARIANT_PAYLOAD && config->drop && config->drop->stored;
    int code = list_parts(m, err);

    if (!code && config->pack)
        code = config->pack->coder ? variant_code(m->v, m->detail, err) : quantise_rows(m, err);
    if (!code && stores)
        code = store_unread(m, err);
    if (!code)
        count_bytes(m);
    return code;
}
