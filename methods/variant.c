/* variant.c - from a full cache to its variants: score once, then select, gather, quantise.
 *
 * Everything large stays on the device. What a payload needs (kept positions, packed parts) is copied to the host only
 * with VARIANT_PAYLOAD.
 */
#include "methods/method.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

/* ---- scores ------------------------------------------------------------ */

/* The scores of one dropping method with its parameters, all layers. */
struct scores {
    struct scores *next;
    struct config_stage stage; // scores do not depend on its drop
    float *at;                 // (L * G, T), on the device
    double seconds;            // taken to compute the scores
};

struct compressor {
    const struct kv_full *full;
    struct scores *scores;
};

struct compressor *compressor_new(const struct kv_full *full, struct err *err)
{
    struct compressor *c = calloc(1, sizeof(*c));

    if (!c) {
        err_nomem(err);
        return NULL;
    }
    c->full = full;
    return c;
}

void compressor_free(struct compressor *c)
{
    if (!c)
        return;
    for (struct scores *s = c->scores, *next; s; s = next) {
        next = s->next;
        c->full->backend->free(c->full->backend, s->at);
        free(s);
    }
    free(c);
}

static bool same_scores(const struct config_stage *a, const struct config_stage *b)
{
    if (a->method != b->method)
        return false;
    for (int i = 1; i < CONFIG_PARAMS && a->method->param[i].name; i++)
        if (a->value[i] != b->value[i])
            return false;
    return true;
}

static int compute_scores(struct scores *s, const struct kv_full *full, struct err *err)
{
    struct backend *be = full->backend;
    size_t n = (size_t)full->shape.n_layers * (size_t)full->shape.n_kv_heads * (size_t)full->n_tokens;
    double start = clock_now();

    s->at = be->alloc(be, n * sizeof(float), err);
    if (!s->at)
        return err->code;
    if (s->stage.method->score(full, s->stage.value, s->at, err))
        return err_wrap(err, "%s", s->stage.method->name);
    s->seconds = clock_now() - start;
    return 0;
}

static const struct scores *get_scores(struct compressor *c, const struct config_stage *stage, struct err *err)
{
    for (const struct scores *s = c->scores; s; s = s->next)
        if (same_scores(&s->stage, stage))
            return s;
    struct scores *s = calloc(1, sizeof(*s));
    if (!s) {
        err_nomem(err);
        return NULL;
    }
    s->stage = *stage;
    if (compute_scores(s, c->full, err)) {
        c->full->backend->free(c->full->backend, s->at);
        free(s);
        return NULL;
    }
    s->next = c->scores;
    c->scores = s;
    return s;
}

/* ---- rows -------------------------------------------------------------- */

/* Allocates n rows of every head, in one arena: per head k, then v. */
static int alloc_rows(struct variant *v, int n, struct err *err)
{
    size_t heads = (size_t)v->shape.n_layers * (size_t)v->shape.n_kv_heads;
    size_t matrix = (size_t)n * (size_t)v->shape.head_dim * dtype_size(v->shape.dtype);

    v->arena = v->backend->alloc(v->backend, 2 * heads * matrix, err);
    if (!v->arena)
        return err->code;
    for (size_t h = 0; h < heads; h++)
        v->rows[h] = (struct kv_rows){
            .k = (char *)v->arena + 2 * h * matrix,
            .v = (char *)v->arena + (2 * h + 1) * matrix,
            .n = n,
        };
    return 0;
}

static void copy_rows(struct variant *v, const struct kv_full *full)
{
    size_t heads = (size_t)v->shape.n_layers * (size_t)v->shape.n_kv_heads;
    size_t matrix = (size_t)full->n_tokens * (size_t)v->shape.head_dim * dtype_size(v->shape.dtype);

    for (size_t h = 0; h < heads; h++) {
        v->backend->copy(v->backend, v->rows[h].k, full->rows[h].k, matrix);
        v->backend->copy(v->backend, v->rows[h].v, full->rows[h].v, matrix);
    }
}

/* Selects rows by score and gathers them; for a payload the kept positions are copied to the host. */
static int gather_rows(struct variant *v, const struct kv_full *full, const float *scores, enum variant_detail detail,
                       struct err *err)
{
    struct backend *be = v->backend;
    int G = v->shape.n_kv_heads, K = v->shape.head_dim, n = v->rows[0].n;
    int n_heads = v->shape.n_layers * G;
    size_t bytes = (size_t)n_heads * (size_t)n * sizeof(int32_t);
    int32_t *kept = be->alloc(be, bytes, err); // (L * G, n)

    if (!kept)
        return err->code;
    be->top_k(be, kept, scores, n_heads, full->n_tokens, n);
    be->gather(be, v->rows, full->rows, kept, n_heads, K);
    if (detail == VARIANT_PAYLOAD && n < full->n_tokens) {
        v->kept = malloc(bytes);
        if (v->kept)
            be->read(be, v->kept, kept, bytes);
    }
    int code = be->sync(be, err);
    if (!code && detail == VARIANT_PAYLOAD && n < full->n_tokens && !v->kept)
        code = err_nomem(err);
    be->free(be, kept);
    return code;
}

/* ---- quantising -------------------------------------------------------- */

static bool in_full(const struct packed_part *part)
{
    return strcmp(part->name, "k") == 0 || strcmp(part->name, "v") == 0;
}

/* Device memory for the packed parts of one layer: one block, each part 64-byte aligned in it. */
static void *alloc_parts(struct backend *be, struct packed_part *part, int n, struct err *err)
{
    enum { ALIGN = 64 };
    size_t total = 0, offset[PART_MAX];

    for (int i = 0; i < n; i++) {
        offset[i] = total;
        if (!in_full(&part[i]))
            total += (packed_part_bytes(&part[i]) + ALIGN - 1) / ALIGN * ALIGN;
    }
    char *block = be->alloc(be, total, err);
    for (int i = 0; block && i < n; i++)
        part[i].at = in_full(&part[i]) ? NULL : block + offset[i];
    return block;
}

/* Copies the packed parts of a layer to the host. */
static int keep_parts(struct variant *v, int layer, const struct packed_part *part, struct err *err)
{
    for (int i = 0; i < v->n_parts; i++) {
        struct packed_part *to = &v->parts[layer * v->n_parts + i];
        size_t bytes = packed_part_bytes(&part[i]);
        *to = part[i];
        if (!part[i].at)
            continue;
        to->at = malloc(bytes ? bytes : 1);
        if (!to->at)
            return err_nomem(err);
        v->backend->read(v->backend, to->at, part[i].at, bytes);
    }
    return 0;
}

/* Packs and unpacks layer after layer in one block of memory, and times both. */
static int quantise_rows(struct variant *v, const struct config_stage *stage, struct packed_part *part, struct err *err)
{
    struct backend *be = v->backend;
    const struct method *m = stage->method;
    void *block = alloc_parts(be, part, v->n_parts, err);
    int code = block ? 0 : err->code;

    for (int l = 0; l < v->shape.n_layers && !code; l++) {
        const struct packed_layer layer = { v->rows + (size_t)l * (size_t)v->shape.n_kv_heads, &v->shape, stage->value,
                                            part };
        double start = clock_now();
        m->quantise(be, &layer);
        code = be->sync(be, err);
        double packed = clock_now();
        m->dequantise(be, &layer);
        if (!code)
            code = be->sync(be, err);
        v->compress_s += packed - start;
        v->decompress_s += clock_now() - packed;
        if (!code && v->parts)
            code = keep_parts(v, l, part, err);
    }
    be->free(be, block);
    return code;
}

/* ---- variants ---------------------------------------------------------- */

static int fill_rows(struct compressor *c, struct variant *v, enum variant_detail detail, struct err *err)
{
    const struct config_stage *first = &v->config->stage[0];
    const struct scores *scores = NULL;
    double start, scoring = 0;

    if (first->method->kind == METHOD_DROP) {
        scores = get_scores(c, first, err);
        if (!scores)
            return err->code;
        scoring = scores->seconds;
    }
    start = clock_now();
    if (alloc_rows(v, config_n_keep(v->config, v->n_tokens), err))
        return err->code;
    if (scores && gather_rows(v, c->full, scores->at, detail, err))
        return err->code;
    if (scores)
        v->compress_s = scoring + clock_now() - start;
    else
        copy_rows(v, c->full); // a serving cache packs from its own rows, so copying is not timed
    return v->backend->sync(v->backend, err);
}

static int make_variant(struct compressor *c, struct variant *v, enum variant_detail detail, struct err *err)
{
    const struct config *config = v->config;
    size_t heads = (size_t)v->shape.n_layers * (size_t)v->shape.n_kv_heads;
    struct packed_part part[PART_MAX];

    v->rows = calloc(heads, sizeof(*v->rows));
    if (!v->rows)
        return err_nomem(err);
    v->n_parts = config_parts(config, &v->shape, v->n_tokens, part);
    if (detail == VARIANT_PAYLOAD) {
        v->parts = calloc((size_t)(v->shape.n_layers * v->n_parts), sizeof(*v->parts));
        for (int i = 0; v->parts && i < v->shape.n_layers * v->n_parts; i++)
            v->parts[i] = part[i % v->n_parts];
        if (!v->parts)
            return err_nomem(err);
    }
    if (config->n_stages == 0) {
        memcpy(v->rows, c->full->rows, heads * sizeof(*v->rows));
        return 0;
    }
    if (fill_rows(c, v, detail, err))
        return err->code;
    const struct config_stage *last = &config->stage[config->n_stages - 1];
    return last->method->kind == METHOD_QUANTISE ? quantise_rows(v, last, part, err) : 0;
}

int compressor_variant(struct compressor *c, const struct config *config, enum variant_detail detail,
                       struct variant *out, struct err *err)
{
    const struct kv_full *full = c->full;

    *out = (struct variant){
        .config = config,
        .shape = full->shape,
        .n_tokens = full->n_tokens,
        .bytes = config_bytes(config, &full->shape, full->n_tokens),
        .keep_frac = (double)config_n_keep(config, full->n_tokens) / full->n_tokens,
        .backend = full->backend,
    };
    out->size_frac = (double)out->bytes / (double)kv_bytes(&full->shape, full->n_tokens);
    if (config_check(config, &full->shape, err))
        return err->code;
    if (make_variant(c, out, detail, err)) {
        variant_release(out);
        return err->code;
    }
    return 0;
}

void variant_release(struct variant *v)
{
    for (int i = 0; v->parts && i < v->shape.n_layers * v->n_parts; i++)
        free(v->parts[i].at);
    free(v->parts);
    free(v->kept);
    free(v->rows);
    if (v->arena)
        v->backend->free(v->backend, v->arena);
    *v = (struct variant){ 0 };
}
