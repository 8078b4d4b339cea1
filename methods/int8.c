/* int8 - 8-bit asymmetric quantisation of keys and values, per token: int4.c with 255 in place of 15, and 4 codes in an
 * int32. No row is kept in full.
 *
 * Bytes per layer and kv head, K = head_dim, g = group (64): keys n*(K + 4*K/g), values likewise.
 *
 * Source: LMDeploy's KV cache of 8 bits, which has one scale and zero for each token and head. The default group is 64
 * here, as in int4, so that it divides the usual head_dims; group=128 is the same for a head_dim of 128.
 */
#include "methods/registry.h"

static int parts(const double *value, int head_dim, int n, struct head_part part[HEAD_PART_MAX])
{
    return int_parts(value, head_dim, 8, n, part);
}

static struct quant_item item_of(const struct packed_layer *layer, int g, enum kv_side side)
{
    return int_item(layer, 8, g, side);
}

const struct method method_int8 = {
    .name = "int8",
    .summary = "quantises keys and values per token to 8 bits",
    .source = "per-token 8-bit KV caches, as LMDeploy's",
    .param = { PARAM_INT_GROUP },
    .check = int_check,
    .pack = &(const struct method_pack){ .parts = parts, .item = item_of },
};
