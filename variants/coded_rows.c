/* coded_rows.c - quantisers that work in host memory: the keys, then the values of each layer are read from the device,
 * encoded, decoded, and written back. */
#include "variants/variant_internal.h"

#include "methods/head_work.h"

#include <stdlib.h>

/* The keys or the values of a layer's heads, on the device. */
struct side {
    struct backend *be;
    const struct kv_rows *head; // [G]
    size_t row;                 // numbers of a row
    uint16_t *narrow;           // room for one head on a bf16 backend
};

static void *rows_of(const struct side *s, const struct coded_rows *rows, int g)
{
    return rows->keys ? s->head[g].k : s->head[g].v;
}

static int read_side(const struct side *s, const struct coded_rows *rows, struct err *err)
{
    float *to = rows->x;

    for (int g = 0; g < rows->shape->n_kv_heads; g++) {
        size_t n = (size_t)s->head[g].n * s->row;
        if (read_as_f32(s->be, to, rows_of(s, rows, g), n, err))
            return err->code;
        to += n;
    }
    return 0;
}

static void write_side(const struct side *s, const struct coded_rows *rows)
{
    const float *from = rows->x;

    for (int g = 0; g < rows->shape->n_kv_heads; g++) {
        size_t n = (size_t)s->head[g].n * s->row;
        write_from_f32(s->be, rows_of(s, rows, g), from, n, s->narrow);
        from += n;
    }
}

static int code_side(struct variant *v, const struct side *s, const struct coded_rows *rows, struct err *err)
{
    const struct method_coder *coder = v->config->pack->coder;
    double start = s->be->clock(s->be);

    if (read_side(s, rows, err) || coder->encode(rows, err))
        return err->code;
    double coded = s->be->clock(s->be);
    if (coder->decode(rows, err))
        return err->code;
    write_side(s, rows);
    v->compress_s += coded - start;
    v->decompress_s += s->be->clock(s->be) - coded;
    return 0;
}

static int code_layer(struct variant *v, int layer, struct side *s, struct err *err)
{
    int G = v->shape.n_kv_heads, *n = calloc((size_t)G, sizeof(*n)), code = n && s->narrow ? 0 : err_nomem(err);
    size_t sum = 0;

    s->head = v->rows + (size_t)layer * (size_t)G;
    for (int g = 0; n && g < G; g++)
        sum += (size_t)(n[g] = s->head[g].n);
    float *x = malloc(sum * s->row * sizeof(*x));
    if (!x)
        code = err_nomem(err);
    for (int side = 0; side < 2 && !code; side++) {
        const struct coded_rows rows = { .shape = &v->shape,
                                         .value = v->config->stage[METHOD_QUANTISE].value,
                                         .lengths = { layer, n, 0, v->n_tokens },
                                         .keys = side == 0,
                                         .x = x,
                                         .part = v->parts + layer * v->n_parts + 2 }; // after `k` and `v`
        code = code_side(v, s, &rows, err);
    }
    free(n);
    free(x);
    return code;
}

/* Frees the tensors of a layer that no payload needs. */
static void drop_parts(struct variant *v, int layer)
{
    for (struct packed_part *part = v->parts + layer * v->n_parts, *end = part + v->n_parts; part < end; part++) {
        free(part->at);
        part->at = NULL;
    }
}

int variant_code(struct variant *v, enum variant_detail detail, struct err *err)
{
    struct side s = { .be = v->backend, .row = (size_t)v->shape.head_dim };
    int code = 0;

    s.narrow = malloc((size_t)v->n_tokens * s.row * sizeof(*s.narrow));
    for (int l = 0; l < v->shape.n_layers && !code; l++) {
        code = code_layer(v, l, &s, err);
        if (detail != VARIANT_PAYLOAD)
            drop_parts(v, l);
    }
    free(s.narrow);
    return code;
}
