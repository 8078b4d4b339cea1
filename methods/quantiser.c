/* quantiser.c - what quantisers share: heads on their way to the backend, and the matrices of row formats. */
#include "methods/quantiser.h"

size_t packed_part_bytes(const struct packed_part *part)
{
    size_t n = dtype_size(part->dtype);

    for (int i = 0; i < part->n_dims; i++)
        n *= (size_t)part->dim[i];
    return n;
}

static int add_part(struct head_part *part, const struct row_tensor *t, enum kv_side side, int rows)
{
    static const enum dtype dtype[] = { [ST_F32] = DTYPE_F32, [ST_F16] = DTYPE_F16, [ST_U8] = DTYPE_U8 };

    if (t->columns == 0)
        return 0;
    *part = (struct head_part){ t->name[side], dtype[t->type], rows, t->columns };
    return 1;
}

static int side_parts(const struct quant_row *row, enum kv_side side, int n, struct head_part *part)
{
    const struct row_format f = row_format_of(row);
    int i = 0;

    part[i++] = (struct head_part){ side == KEYS ? "k" : "v", DTYPE_BF16, 0, row->columns };
    i += add_part(&part[i], &f.codes, side, n);
    i += add_part(&part[i], &f.scales, side, n);
    i += add_part(&part[i], &f.head, side, 1);
    return i;
}

static int row_parts(const struct quant_pair *pair, int n, struct head_part part[HEAD_PART_MAX])
{
    int keys = side_parts(&pair->side[KEYS], KEYS, n, part);

    return keys + side_parts(&pair->side[VALUES], VALUES, n, part + keys);
}

int quantiser_parts(const struct config_stage *stage, int head_dim, int n, struct head_part part[HEAD_PART_MAX])
{
    if (!stage->method->pack->rows)
        return stage->method->pack->parts(stage->value, head_dim, n, part);
    const struct quant_pair pair = stage->method->pack->rows(stage->value, head_dim);
    return row_parts(&pair, n, part);
}

static struct quant_item row_item(const struct packed_layer *layer, int g, enum kv_side side)
{
    const struct quant_pair pair = layer->stage->method->pack->rows(layer->stage->value, layer->shape->head_dim);
    struct head_part part[HEAD_PART_MAX];
    int keys = side_parts(&pair.side[KEYS], KEYS, 0, part);
    void *const *at = layer->at + g * HEAD_PART_MAX + 1 + (side == VALUES ? keys : 0); // codes, scales, head
    const struct kv_rows *rows = &layer->rows[g];
    struct quant_row row = pair.side[side];
    const struct quant_bytes bytes = quant_row_bytes(&row);

    row.rotation = pair.rotated && row.format == QUANT_LLOYD ? layer->constants : NULL;
    return (struct quant_item){
        .rows = rows->n - layer->whole,
        .cols = row.columns,
        .x = side == VALUES ? rows->v : rows->k,
        .row = row,
        .at = { .codes = at[0],
                .scales = bytes.scales ? at[1] : NULL,
                .head = bytes.head ? at[1 + (bytes.scales > 0)] : NULL },
    };
}

void quantise_heads(struct backend *be, const struct packed_layer *layer, quantise_op *op)
{
    enum { TOGETHER = 64 };
    const struct method_pack *pack = layer->stage->method->pack;
    struct quant_item some[TOGETHER];
    int n = 0, n_items = 2 * layer->shape->n_kv_heads;

    for (int i = 0; i < n_items; i++) {
        some[n++] = (pack->rows ? row_item : pack->item)(layer, i / 2, i % 2 ? VALUES : KEYS);
        if (n == TOGETHER || i + 1 == n_items) {
            op(be, some, n);
            n = 0;
        }
    }
}
