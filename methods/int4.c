/* int4 - 4-bit asymmetric quantisation of keys and values, per token.
 *
 * In groups of g (64) consecutive channels of one token of a head:
 *     zero = min, scale = (max - zero) / 15, both stored in f16; code = round_half_even((x - zero) / scale)
 *     x becomes code * scale + zero; where all numbers of a group are equal the code is 0
 * Keys carry their rotary embedding. An int32 packs 8 codes, the first in the lowest bits. No row is kept in full.
 *
 * Bytes per layer and kv head, K = head_dim: keys n*(K/2 + 4*K/g), values likewise.
 *
 * Source: there is no one definition. The formula is that of Hugging Face's quantised cache with quanto (4 bits, groups
 * of 64, per token), which also keeps recent tokens in full, and of the 4-bit cache in KVzip's code, with groups of 128
 * and f16 scales and zeros.
 */
#include "methods/registry.h"

const double int_groups[] = { 16, 32, 64, 128, (double)NAN };

int int_check(const double *value, int head_dim, struct err *err)
{
    int group = (int)value[INT_GROUP];

    if (head_dim % group)
        return err_set(err, ERR_USAGE, "the model's head_dim %d is not a multiple of group=%d", head_dim, group);
    return 0;
}

int int_parts(const double *value, int head_dim, int bits, int n, struct head_part part[HEAD_PART_MAX])
{
    static const char *const name[2][4] = { { "k", "k_codes", "k_scales", "k_zeros" },
                                            { "v", "v_codes", "v_scales", "v_zeros" } };
    int g = (int)value[INT_GROUP], i = 0;

    for (enum kv_side side = KEYS; side <= VALUES; side++) {
        part[i++] = (struct head_part){ name[side][0], DTYPE_BF16, 0, head_dim };
        part[i++] = (struct head_part){ name[side][1], DTYPE_I32, n, head_dim * bits / 32 };
        part[i++] = (struct head_part){ name[side][2], DTYPE_F16, n, head_dim / g };
        part[i++] = (struct head_part){ name[side][3], DTYPE_F16, n, head_dim / g };
    }
    return i;
}

struct quant_item int_item(const struct packed_layer *layer, int bits, int g, enum kv_side side)
{
    void *const *at = layer->at + g * HEAD_PART_MAX + (side == VALUES ? 5 : 1); // codes, scales, zeros
    const struct kv_rows *rows = &layer->rows[g];

    return (struct quant_item){
        .lines = QUANT_ROWS,
        .rows = rows->n,
        .cols = layer->shape->head_dim,
        .bits = bits,
        .group = (int)layer->stage->value[INT_GROUP],
        .x = side == VALUES ? rows->v : rows->k,
        .codes = at[0],
        .scales = at[1],
        .zeros = at[2],
    };
}

static int parts(const double *value, int head_dim, int n, struct head_part part[HEAD_PART_MAX])
{
    return int_parts(value, head_dim, 4, n, part);
}

static struct quant_item item_of(const struct packed_layer *layer, int g, enum kv_side side)
{
    return int_item(layer, 4, g, side);
}

const struct method method_int4 = {
    .name = "int4",
    .summary = "quantises keys and values per token to 4 bits",
    .source = "4-bit KV caches of Hugging Face's quanto and of KVzip's code",
    .param = { PARAM_INT_GROUP },
    .check = int_check,
    .pack = &(const struct method_pack){ .parts = parts, .item = item_of },
};
