/* variant.c - from an uncompressed cache and its scores to a variant: selects and gathers rows, and has them packed.
 *
 * Everything large is on the device, in the pool: after the scores, variant by variant, rows, which stay, and above
 * them the memory for making the variant. Only VARIANT_PAYLOAD copies a payload's data (kept positions, packed tensors)
 * to the host.
 */
#include "variants/variant_internal.h"

#include "kernels/pool.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows -------------------------------------------------------------- */

static size_t n_heads(const struct variant *v)
{
    return (size_t)v->shape.n_layers * (size_t)v->shape.n_kv_heads;
}

/* Divides what some layers keep together among their heads, and reads the lengths to the host. */
static int share_lengths(struct making *m, int layers, const struct joint_keep *keep, struct err *err)
{
    const struct kv_full *full = m->full;
    int group = layers * full->shape.n_kv_heads;

    if ((int64_t)group * full->n_tokens > INT_MAX)
        return err_set(err, ERR_USAGE, "%d heads of %d tokens are more than 2^31 pairs", group, full->n_tokens);
    full->backend->joint_counts(full->backend, m->counts, m->scores->at, (int)n_heads(m->v), full->n_tokens, group,
                                keep);
    return full->backend->read(full->backend, m->lengths, m->counts, m->sizes.counts, err);
}

/* Lets the budget rewrite the scores, layer by layer on the host. Other variants need the scores as they were. */
static int rewrite_scores(struct making *m, struct err *err)
{
    const struct kv_full *full = m->full;
    const struct config *config = m->v->config;
    struct backend *be = full->backend;
    const size_t G = (size_t)full->shape.n_kv_heads, n = G * (size_t)full->n_tokens;
    float *host = malloc(n * sizeof(*host));
    int code = host ? 0 : err_nomem(err);

    for (size_t l = 0; l < (size_t)full->shape.n_layers && !code; l++) {
        const struct layer_scores layer = { .full = full,
                                            .drop = &config->stage[METHOD_DROP],
                                            .layer = (int)l,
                                            .n_keep = m->lengths[l * G],
                                            .score = host,
                                            .length = m->lengths + l * G };
        code = be->read(be, host, m->scores->at + l * n, n * sizeof(*host), err);
        if (!code)
            code = config->budget->rescore(&layer, config->stage[METHOD_BUDGET].value, err);
        if (!code)
            be->write(be, m->rewritten + l * n, host, n * sizeof(*host));
    }
    free(host);
    m->score = m->rewritten;
    return code;
}

/* The rows of all heads: what the config says, or what the scores make of it. */
static int get_lengths(struct making *m, struct err *err)
{
    const struct variant *v = m->v;
    const struct config *config = v->config;
    int L = v->shape.n_layers, G = v->shape.n_kv_heads, layers = 0;
    struct joint_keep *keep = calloc((size_t)L, sizeof(*keep)); // of each group of layers that share

    if (!keep)
        return err_nomem(err);
    for (int l = 0; l < L; l++) {
        struct config_share share = config_share(config, &v->shape, v->n_tokens, l);
        layers = share.layers;
        keep[layers > 1 ? l / layers : l] = (struct joint_keep){ (int)share.pairs, share.floor };
        for (int g = 0; g < G; g++)
            m->lengths[l * G + g] = config->drop && config->drop->stored
                                        ? (int)lround(m->scores->share[l] * v->n_tokens)
                                        : (int)(share.pairs / G);
    }
    int code = layers > 0 ? share_lengths(m, layers, keep, err) : 0;
    free(keep);
    return !code && config->budget && config->budget->rescore ? rewrite_scores(m, err) : code;
}

/* Gives every head its share of the memory for rows: k, then v. */
static void lay_out_rows(struct making *m)
{
    char *at = m->rows;

    for (size_t h = 0; h < n_heads(m->v); h++) {
        size_t matrix = (size_t)m->lengths[h] * m->row;
        m->v->rows[h] = (struct kv_rows){ .k = at, .v = at + matrix, .n = m->lengths[h] };
        at += 2 * matrix;
    }
    assert((size_t)(at - m->rows) <= m->sizes.rows); // less where the number of rows is not known
}

/* Copies the kept positions to the host, unless all are kept. */
static int keep_positions(struct making *m, struct err *err)
{
    struct variant *v = m->v;
    size_t bytes = m->pairs * sizeof(*v->kept);

    if (m->detail != VARIANT_PAYLOAD || m->pairs == n_heads(v) * (size_t)v->n_tokens)
        return 0;
    v->kept = malloc(bytes);
    return v->kept ? v->backend->read(v->backend, v->kept, m->kept, bytes, err) : err_nomem(err);
}

/* Notes how many rows of each layer stay whole. */
static int count_whole(struct making *m, struct err *err)
{
    struct variant *v = m->v;
    const double *value = v->config->stage[v->config->packer].value;
    double n = 0, whole = 0;

    v->whole = calloc((size_t)v->shape.n_layers, sizeof(*v->whole));
    if (!v->whole)
        return err_nomem(err);
    for (int l = 0; l < v->shape.n_layers; l++) {
        int n_keep = m->lengths[l * v->shape.n_kv_heads];
        v->whole[l] = v->config->pack->whole(value, m->scores->share[l], n_keep);
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
static int select_whole(struct making *m, struct err *err)
{
    struct backend *be = m->full->backend;
    size_t n = n_heads(m->v), G = (size_t)m->v->shape.n_kv_heads;
    int32_t *best = malloc(m->sizes.kept), *all = malloc(m->sizes.kept), *length = malloc(n * sizeof(*length));
    int code = best && all && length ? count_whole(m, err) : err_nomem(err);

    for (size_t h = 0; h < n && !code; h++)
        length[h] = m->v->whole[h / G];
    if (!code) {
        be->top_k(be, m->kept, m->scores->at, (int)n, m->full->n_tokens, length);
        code = be->read(be, best, m->kept, m->sizes.kept, err);
    }
    if (!code) {
        be->top_k(be, m->kept, m->scores->at, (int)n, m->full->n_tokens, m->lengths);
        code = be->read(be, all, m->kept, m->sizes.kept, err);
    }
    const int32_t *best_of = best;
    int32_t *all_of = all;
    for (size_t h = 0; h < n && !code; best_of += length[h], all_of += m->lengths[h++])
        put_last(all_of, m->lengths[h], best_of, length[h]);
    if (!code)
        be->write(be, m->kept, all, m->sizes.kept);
    free(best);
    free(all);
    free(length);
    return code;
}

/* Selects rows by score, gathers them, and lets what is dropped change the values that are kept. */
static int select_rows(struct making *m, struct err *err)
{
    const struct kv_full *full = m->full;
    const struct config *config = m->v->config;
    struct backend *be = full->backend;
    int n = (int)n_heads(m->v);

    if (!config->pack || !config->pack->whole)
        be->top_k(be, m->kept, m->score, n, full->n_tokens, m->lengths);
    else if (select_whole(m, err))
        return err->code;
    be->gather(be, m->v->rows, full->rows, m->kept, n, full->shape.head_dim);
    bool failed = config->merge && merge_rows(m, err);
    return failed ? err_wrap(err, "%s", config->stage[METHOD_MERGE].method->name) : 0;
}

/* Copies all rows. A serving cache packs from its own rows, so this copy is not timed. */
static void copy_rows(struct making *m)
{
    const struct kv_full *full = m->full;
    struct backend *be = full->backend;

    for (size_t h = 0; h < n_heads(m->v); h++) {
        const struct kv_rows *to = &m->v->rows[h];
        be->copy(be, to->k, full->rows[h].k, (size_t)to->n * m->row);
        be->copy(be, to->v, full->rows[h].v, (size_t)to->n * m->row);
    }
}

static int fill_rows(struct making *m, struct err *err)
{
    struct variant *v = m->v;
    double start = m->scores ? v->backend->clock(v->backend) : 0; // only what selects is timed, as clocks wait

    if (get_lengths(m, err))
        return err->code;
    for (size_t h = 0; h < n_heads(v); h++)
        m->pairs += (size_t)m->lengths[h];
    if (!m->rows) {
        memcpy(v->rows, m->full->rows, n_heads(v) * sizeof(*v->rows));
        return 0;
    }
    lay_out_rows(m);
    if (!m->scores) {
        copy_rows(m);
        return 0;
    }
    if (select_rows(m, err))
        return err->code;
    v->compress_s = m->score_s + v->backend->clock(v->backend) - start;
    return keep_positions(m, err);
}

/* ---- variants ---------------------------------------------------------- */

/* Takes rows, which stay, and above them what is taken only until the variant is made: all of it is free again here,
 * but nobody else takes from the pool before. */
static int take_memory(struct making *m, struct err *err)
{
    struct pool *pool = m->full->pool;

    if (m->sizes.rows == 0) // none
        return 0;
    m->rows = pool_take(pool, m->sizes.rows, err);
    size_t mark = pool_mark(pool);
    m->kept = m->rows ? pool_take(pool, m->sizes.kept, err) : NULL;
    m->counts = m->kept ? pool_take(pool, m->sizes.counts, err) : NULL;
    m->rewritten = m->counts ? pool_take(pool, m->sizes.scores, err) : NULL;
    pool_reset(pool, mark);
    m->packed = m->rewritten ? pool_take(pool, m->sizes.packed, err) : NULL;
    pool_reset(pool, mark);
    return m->packed ? 0 : err->code;
}

/* Layers with a window keep the last rows of the uncompressed cache. */
static void add_windows(struct making *m)
{
    struct variant *v = m->v;
    const struct kv_shape *s = &v->shape;
    int64_t pairs = kv_window_pairs(s, v->n_tokens), bytes = pairs * kv_pair_bytes(s);

    for (int h = s->n_layers * s->n_kv_heads; h < kv_all_layers(s) * s->n_kv_heads; h++) {
        int n = kv_layer_tokens(s, s->n_layers, v->n_tokens);
        size_t skip = (size_t)(v->n_tokens - n) * m->row;
        v->rows[h] = (struct kv_rows){ (char *)m->full->rows[h].k + skip, (char *)m->full->rows[h].v + skip, n };
    }
    v->bytes += bytes;
    v->bytes_read += bytes;
    v->keep_frac = (double)((int64_t)m->pairs + pairs) / (double)kv_pairs(s, v->n_tokens);
    v->size_frac = (double)v->bytes / (double)kv_bytes(s, v->n_tokens);
}

static int make_variant(struct making *m, struct err *err)
{
    struct variant *v = m->v;

    v->rows = calloc((size_t)(kv_all_layers(&v->shape) * v->shape.n_kv_heads), sizeof(*v->rows));
    m->lengths = calloc(n_heads(v), sizeof(*m->lengths));
    if (!v->rows || !m->lengths)
        return err_nomem(err);
    if (take_memory(m, err) || fill_rows(m, err) || variant_parts(m, err))
        return err->code;
    add_windows(m);
    return v->backend->sync(v->backend, err);
}

int compressor_variant(struct compressor *c, const struct config *config, enum variant_detail detail,
                       struct variant *out, struct err *err)
{
    const struct kv_full *full = c->full;
    size_t mark = pool_mark(full->pool);

    *out = (struct variant){
        .config = config, .shape = full->shape, .n_tokens = full->n_tokens, .backend = full->backend
    };
    if (config_check(config, &full->shape, err))
        return err->code;
    struct making m = { .full = full,
                        .v = out,
                        .detail = detail,
                        .row = (size_t)full->shape.head_dim * dtype_size(full->shape.dtype),
                        .sizes = config_sizes(config, &full->shape, full->n_tokens),
                        .scores = compressor_scores(c, &config->stage[METHOD_DROP]),
                        .merged = compressor_scores(c, &config->stage[METHOD_MERGE]),
                        .score_s = compressor_seconds(c, config) };
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
