/* variant.c - from a full cache and its scores to a variant: select, gather, quantise.
 *
 * Everything large is on the device, in the pool: after the scores, variant by variant, rows, which stay, and above
 * them the memory for making the variant. Only VARIANT_PAYLOAD copies a payload's data (kept positions, packed tensors)
 * to the host.
 */
#include "methods/variant_internal.h"

#include "kernels/pool.h"
#include "methods/head_work.h"
#include "methods/method_plugin.h"
#include "methods/registry.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int variant_whole(const struct variant *v, int layer)
{
    return v->whole ? v->whole[layer] : 0;
}

/* ---- rows -------------------------------------------------------------- */

/* A variant while it is made. */
struct making {
    const struct kv_full *full;
    struct variant *v;
    enum variant_detail detail;
    struct variant_sizes sizes;
    const struct scores *scores; // NULL: nothing is dropped
    const float *score;          // (L * G, T): those, or what the budget made of them
    const struct scores *merged; // scores of the merging method, or NULL
    int32_t *lengths;            // [L * G]: rows of each head
    char *rows;                  // of all heads, on the device
};

static struct layer_lengths layer_of(const struct making *m, int layer)
{
    const int *n = m->lengths + (size_t)layer * (size_t)m->v->shape.n_kv_heads;

    return (struct layer_lengths){ layer, n, variant_whole(m->v, layer), m->v->n_tokens };
}

static size_t n_heads(const struct variant *v)
{
    return (size_t)v->shape.n_layers * (size_t)v->shape.n_kv_heads;
}

/* Divides what some layers keep together among their heads, and reads the lengths to the host. */
static int share_lengths(struct making *m, int layers, struct err *err)
{
    const struct kv_full *full = m->full;
    int L = full->shape.n_layers, group = layers * full->shape.n_kv_heads;
    int32_t *count = pool_take(full->pool, m->sizes.counts, err); // (L * G)

    if (!count)
        return err->code;
    if ((int64_t)group * full->n_tokens > INT_MAX)
        return err_set(err, ERR_USAGE, "%d heads of %d tokens are more than 2^31 pairs", group, full->n_tokens);
    struct joint_keep *keep = calloc((size_t)(L / layers), sizeof(*keep));
    if (!keep)
        return err_nomem(err);
    for (int l = 0; l < L; l += layers) {
        struct config_share share = config_share(m->v->config, &full->shape, full->n_tokens, l);
        keep[l / layers] = (struct joint_keep){ (int)share.pairs, share.floor };
    }
    full->backend->joint_counts(full->backend, count, m->scores->at, L * full->shape.n_kv_heads, full->n_tokens, group,
                                keep);
    free(keep);
    return full->backend->read(full->backend, m->lengths, count, m->sizes.counts, err);
}

/* Lets the budget rewrite the scores, layer by layer on the host. Other variants need the scores as they were. */
static int rewrite_scores(struct making *m, const struct config_stage *budget, struct err *err)
{
    const struct kv_full *full = m->full;
    struct backend *be = full->backend;
    const size_t G = (size_t)full->shape.n_kv_heads, n = G * (size_t)full->n_tokens;
    float *out = pool_take(full->pool, m->sizes.scores, err), *host = out ? malloc(n * sizeof(*host)) : NULL;
    int code = host ? 0 : out ? err_nomem(err) : err->code;

    for (size_t l = 0; l < (size_t)full->shape.n_layers && !code; l++) {
        const struct layer_scores layer = { .full = full,
                                            .drop = config_stage_of(m->v->config, METHOD_DROP),
                                            .layer = (int)l,
                                            .n_keep = m->lengths[l * G],
                                            .score = host,
                                            .length = m->lengths + l * G };
        code = be->read(be, host, m->scores->at + l * n, n * sizeof(*host), err);
        if (!code)
            code = budget->method->budget->rescore(&layer, budget->value, err);
        if (!code)
            be->write(be, out + l * n, host, n * sizeof(*host));
    }
    free(host);
    m->score = out;
    return code;
}

static int get_lengths(struct making *m, struct err *err)
{
    const struct variant *v = m->v;
    size_t G = (size_t)v->shape.n_kv_heads;
    const struct config_stage *budget = config_stage_of(v->config, METHOD_BUDGET);
    int layers = config_share(v->config, &v->shape, v->n_tokens, 0).layers;

    if (layers > 0)
        return share_lengths(m, layers, err);
    for (size_t h = 0; h < n_heads(v); h++)
        m->lengths[h] = reads_part(v->config) ? (int)lround(m->scores->share[h / G] * v->n_tokens)
                                              : config_n_keep(v->config, &v->shape, v->n_tokens, (int)(h / G));
    return budget ? rewrite_scores(m, budget, err) : 0;
}

/* Gives every head its share of the memory for rows: k, then v. */
static void lay_out_rows(struct making *m)
{
    size_t row = (size_t)m->v->shape.head_dim * dtype_size(m->v->shape.dtype);
    char *at = m->rows;

    for (size_t h = 0; h < n_heads(m->v); h++) {
        size_t matrix = (size_t)m->lengths[h] * row;
        m->v->rows[h] = (struct kv_rows){ .k = at, .v = at + matrix, .n = m->lengths[h] };
        at += 2 * matrix;
    }
    assert((size_t)(at - m->rows) <= m->sizes.rows); // less where the number of rows is not known
}

/* Of the positions of all heads; less than sizes.kept where the number of rows is not known. */
static size_t kept_bytes(const struct making *m)
{
    size_t n = 0;

    for (size_t h = 0; h < n_heads(m->v); h++)
        n += (size_t)m->lengths[h];
    return n * sizeof(int32_t);
}

/* Copies the kept positions to the host, unless all are kept. */
static int keep_positions(struct making *m, const int32_t *kept, struct err *err)
{
    struct variant *v = m->v;
    struct backend *be = v->backend;
    size_t bytes = kept_bytes(m);

    if (m->detail != VARIANT_PAYLOAD || bytes == n_heads(v) * (size_t)v->n_tokens * sizeof(*kept))
        return 0;
    v->kept = malloc(bytes);
    return v->kept ? be->read(be, v->kept, kept, bytes, err) : err_nomem(err);
}

/* Notes how many rows of each layer stay whole. */
static int count_whole(struct making *m, const struct config_stage *packer, struct err *err)
{
    struct variant *v = m->v;
    double n = 0, whole = 0;

    v->whole = calloc((size_t)v->shape.n_layers, sizeof(*v->whole));
    if (!v->whole)
        return err_nomem(err);
    for (int l = 0; l < v->shape.n_layers; l++) {
        int n_keep = config_n_keep(v->config, &v->shape, v->n_tokens, l);
        v->whole[l] = packer->method->pack->whole(packer->value, m->scores->share[l], n_keep);
        whole += v->whole[l];
        n += n_keep;
    }
    v->packed_frac = 1 - whole / n;
    return 0;
}

/* Puts those positions of a head first that are not among the `whole` best. All ascend; so do both parts then. */
static void put_last(int32_t *kept, int n, const int32_t *best, int whole)
{
    int first = 0, taken = 0;

    for (int i = 0; i < n; i++)
        if (taken < whole && kept[i] == best[taken])
            taken++;
        else
            kept[first++] = kept[i];
    memcpy(kept + first, best, (size_t)whole * sizeof(*kept));
}

/* Selects the rows of a method with `whole`: those to be packed come first. */
static int select_whole(struct making *m, const struct config_stage *packer, int32_t *kept, struct err *err)
{
    struct backend *be = m->full->backend;
    size_t n = n_heads(m->v), G = (size_t)m->v->shape.n_kv_heads;
    int32_t *best = malloc(m->sizes.kept), *all = malloc(m->sizes.kept), *length = malloc(n * sizeof(*length));
    int code = best && all && length ? count_whole(m, packer, err) : err_nomem(err);

    for (size_t h = 0; h < n && !code; h++)
        length[h] = m->v->whole[h / G];
    if (!code) {
        be->top_k(be, kept, m->scores->at, (int)n, m->full->n_tokens, length);
        code = be->read(be, best, kept, m->sizes.kept, err);
    }
    if (!code) {
        be->top_k(be, kept, m->scores->at, (int)n, m->full->n_tokens, m->lengths);
        code = be->read(be, all, kept, m->sizes.kept, err);
    }
    const int32_t *best_of = best;
    int32_t *all_of = all;
    for (size_t h = 0; h < n && !code; best_of += length[h], all_of += m->lengths[h++])
        put_last(all_of, m->lengths[h], best_of, length[h]);
    if (!code)
        be->write(be, kept, all, m->sizes.kept);
    free(best);
    free(all);
    free(length);
    return code;
}

/* Lets what is dropped change the values that are kept. */
static int merge_dropped(struct making *m, const int32_t *kept, struct err *err)
{
    const struct config_stage *stage = config_stage_of(m->v->config, METHOD_MERGE);

    if (!stage)
        return 0;
    const struct merge_job job = { stage, m->merged ? m->merged->at : NULL, m->v->rows, kept, kept_bytes(m) };
    return merge_rows(m->full, &job, err) ? err_wrap(err, "%s", stage->method->name) : 0;
}

/* Selects rows by score and gathers them. */
static int select_rows(struct making *m, struct err *err)
{
    const struct kv_full *full = m->full;
    struct backend *be = full->backend;
    double start = be->clock(be);

    if (get_lengths(m, err))
        return err->code;
    lay_out_rows(m);
    int32_t *kept = pool_take(full->pool, m->sizes.kept, err);
    if (!kept)
        return err->code;
    const struct config_stage *packer = config_packer(m->v->config);
    if (!packer || !packer->method->pack->whole)
        be->top_k(be, kept, m->score, (int)n_heads(m->v), full->n_tokens, m->lengths);
    else if (select_whole(m, packer, kept, err))
        return err->code;
    be->gather(be, m->v->rows, full->rows, kept, (int)n_heads(m->v), full->shape.head_dim);
    if (merge_dropped(m, kept, err))
        return err->code;
    const struct config_stage *budget = config_stage_of(m->v->config, METHOD_BUDGET);
    m->v->compress_s = m->scores->seconds + (m->merged ? m->merged->seconds : 0) + be->clock(be) - start;
    if (budget)
        m->v->compress_s += need_seconds(full, budget->method->needs);
    return keep_positions(m, kept, err);
}

/* Copies all rows. A serving cache packs from its own rows, so this copy is not timed. */
static int copy_rows(struct making *m, struct err *err)
{
    const struct kv_full *full = m->full;
    struct backend *be = full->backend;
    size_t row = (size_t)full->shape.head_dim * dtype_size(full->shape.dtype);

    if (get_lengths(m, err))
        return err->code;
    lay_out_rows(m);
    for (size_t h = 0; h < n_heads(m->v); h++) {
        const struct kv_rows *to = &m->v->rows[h];
        be->copy(be, to->k, full->rows[h].k, (size_t)to->n * row);
        be->copy(be, to->v, full->rows[h].v, (size_t)to->n * row);
    }
    return 0;
}

/* ---- quantising -------------------------------------------------------- */

/* Lays out every head's matrices in the block of a layer; returns its bytes. The heads of a tensor are next to each
 * other. */
static size_t lay_out_parts(const struct making *m, int layer, char *block, void **at)
{
    const struct variant *v = m->v;
    size_t G = (size_t)v->shape.n_kv_heads, next[HEAD_PART_MAX] = { 0 };
    struct head_part part[HEAD_PART_MAX];
    int64_t pairs = 0;

    for (size_t g = 0; g < G; g++)
        pairs += m->lengths[(size_t)layer * G + g];
    struct packing map = config_packing(v->config, &v->shape, layer, pairs);

    for (int i = 1; i < map.n_parts; i++)
        next[i] = next[i - 1] + map.bytes[i - 1];
    for (size_t g = 0; g < G; g++) {
        const struct head_length length = { layer, v->rows[(size_t)layer * G + g].n, variant_whole(v, layer) };
        parts_of_head(v->config, &v->shape, &length, part);
        for (int i = 0; i < map.n_parts; i++) {
            at[g * HEAD_PART_MAX + (size_t)i] = block + next[i];
            if (!part_in_full(part[i].name))
                next[i] += (size_t)(part[i].rows * part[i].cols) * dtype_size(part[i].dtype);
        }
    }
    return map.total;
}

/* Packed layers, and what their quantiser needs. */
struct packed {
    const struct config_stage *stage;
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
                                               .stage = p->stage,
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
static int quantise_rows(struct making *m, const struct config_stage *stage, struct err *err)
{
    struct variant *v = m->v;
    size_t G = (size_t)v->shape.n_kv_heads;
    char *first = pool_take(m->full->pool, m->sizes.packed, err), *block = first;
    struct packed p = { stage, NULL, block ? calloc(n_heads(v) * HEAD_PART_MAX, sizeof(*p.at)) : NULL };

    if (!block)
        return err->code;
    if (stage->method->pack->constants)
        p.constants = stage->method->pack->constants(stage->value, v->shape.head_dim);
    int code = !p.at || (stage->method->pack->constants && !p.constants) ? err_nomem(err) : 0;
    for (int l = 0; !code && l < v->shape.n_layers; l++)
        block += lay_out_parts(m, l, block, p.at + (size_t)l * G * HEAD_PART_MAX);
    assert(code || (size_t)(block - first) <= m->sizes.packed);
    if (!code) {
        v->compress_s += each_layer(v, &p, v->backend->quantise);
        v->decompress_s = each_layer(v, &p, v->backend->dequantise);
        code = m->detail == VARIANT_PAYLOAD ? keep_parts(v, p.at, err) : 0;
    }
    free(p.constants);
    free(p.at);
    return code;
}

/* ---- variants ---------------------------------------------------------- */

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
        if (m->detail != VARIANT_PAYLOAD || !config_is_ragged(v->config))
            continue;
        last->at = malloc(packed_part_bytes(last));
        if (!last->at)
            return err_nomem(err);
        memcpy(last->at, lengths.n, packed_part_bytes(last));
    }
    return 0;
}

/* Selects or copies rows; temporary pool memory is given back. */
static int fill_rows(struct making *m, struct err *err)
{
    struct variant *v = m->v;

    if (v->config->n_stages == 0) {
        memcpy(v->rows, m->full->rows, n_heads(v) * sizeof(*v->rows));
        return get_lengths(m, err);
    }
    m->rows = pool_take(m->full->pool, m->sizes.rows, err);
    if (!m->rows)
        return err->code;
    size_t mark = pool_mark(m->full->pool);
    int code = m->scores ? select_rows(m, err) : copy_rows(m, err);
    pool_reset(m->full->pool, mark);
    return code;
}

static int quantise_all(struct making *m, const struct config_stage *stage, struct err *err)
{
    size_t mark = pool_mark(m->full->pool);
    int code = stage->method->pack->coder ? variant_code(m->v, m->detail, err) : quantise_rows(m, stage, err);

    pool_reset(m->full->pool, mark);
    return code;
}

/* The tensors of what is kept and not read, in host memory. */
static int store_unread(struct making *m, struct err *err)
{
    struct variant *v = m->v;
    const struct config_stage *stage = &v->config->stage[0];
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
            code = stage->method->drop->stored->store(&layer, stage->value, err);
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

    for (int i = 0; i < v->shape.n_layers * v->n_parts; i++)
        v->bytes += (int64_t)packed_part_bytes(&v->parts[i]);
    v->bytes_read = v->bytes;
    for (int l = 0; l < v->shape.n_layers && reads_part(v->config); l++) {
        const struct layer_lengths lengths = layer_of(m, l);
        v->bytes_read -=
            v->config->stage[0].method->drop->stored->unread(v->config->stage[0].value, &v->shape, &lengths);
    }
}

static int make_variant(struct making *m, struct err *err)
{
    struct variant *v = m->v;
    const struct config_stage *packer = config_packer(v->config);

    v->rows = calloc(n_heads(v), sizeof(*v->rows));
    m->lengths = calloc(n_heads(v), sizeof(*m->lengths));
    if (!v->rows || !m->lengths)
        return err_nomem(err);
    if (fill_rows(m, err) || list_parts(m, err) || (packer && quantise_all(m, packer, err)))
        return err->code;
    if (m->detail == VARIANT_PAYLOAD && reads_part(v->config) && store_unread(m, err))
        return err->code;
    count_bytes(m);
    for (size_t h = 0; h < n_heads(v); h++)
        v->keep_frac += m->lengths[h];
    v->keep_frac /= (double)n_heads(v) * v->n_tokens;
    v->size_frac = (double)v->bytes / (double)kv_bytes(&v->shape, v->n_tokens);
    return v->backend->sync(v->backend, err);
}

int compressor_variant(struct compressor *c, const struct config *config, enum variant_detail detail,
                       struct variant *out, struct err *err)
{
    const struct kv_full *full = compressor_full(c);
    size_t mark = pool_mark(full->pool);

    *out = (struct variant){
        .config = config, .shape = full->shape, .n_tokens = full->n_tokens, .backend = full->backend
    };
    if (config_check(config, &full->shape, err))
        return err->code;
    struct making m = { .full = full,
                        .v = out,
                        .detail = detail,
                        .sizes = config_sizes(config, &full->shape, full->n_tokens),
                        .scores = compressor_scores(c, config_stage_of(config, METHOD_DROP)),
                        .merged = compressor_scores(c, config_stage_of(config, METHOD_MERGE)) };
    m.score = m.scores ? m.scores->at : NULL;
    int code = make_variant(&m, err);
    free(m.lengths);
    if (code) {
        pool_reset(full->pool, mark);
        variant_release(out);
    }
    return code;
}

void variant_release(struct variant *v)
{
    for (int i = 0; v->parts && i < v->shape.n_layers * v->n_parts; i++)
        free(v->parts[i].at);
    free(v->parts);
    free(v->kept);
    free(v->whole);
    free(v->rows);
    *v = (struct variant){ 0 };
}
