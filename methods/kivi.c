/* kivi - 2- or 4-bit asymmetric quantisation: keys per channel, values per token; the most recent tokens stay full.
 *
 * Of n tokens of a head, with b = bits, g = group (32), R = residual (32; a multiple of g):
 *     K: the first n - n mod R tokens, in groups of g consecutive tokens of one channel
 *     V: the first n - R tokens (none when n <= R), in groups of g consecutive channels of one token
 *     zero = min, scale = (max - zero) / (2^b - 1), both stored in f16; code = round_half_even((x - zero) / scale)
 *     x becomes code * scale + zero; where all numbers of a group are equal the code is 0
 * Keys carry their rotary embedding. An int32 packs 32/b codes, the first in the lowest bits. Keys are transposed
 * (channels, tokens), values are not, as KIVI's attention kernels read them. After a dropping method the kept tokens
 * are quantised as if they were consecutive.
 *
 * Bytes per layer and kv head, K = head_dim: keys Tq*K*b/8 + Tq/g*K*4 + (n-Tq)*2K, values likewise.
 *
 * Source: Liu et al., "KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache" (ICML 2024) and its code
 * (models/llama_kivi.py, quant/new_pack.py), as used for prefill.
 */
#include "codes/kivi_codes.h"
#include "methods/registry.h"

enum { BITS, GROUP, RESIDUAL };
enum { K_ROWS, K_CODES, K_SCALES, K_ZEROS, V_ROWS, V_CODES, V_SCALES, V_ZEROS, N_PARTS };
_Static_assert((int)N_PARTS <= (int)HEAD_PART_MAX, "all parts fit");

static int check(const double *value, int head_dim, struct err *err)
{
    int group = (int)value[GROUP], residual = (int)value[RESIDUAL];

    if (residual % group)
        return err_set(err, ERR_USAGE, "residual=%d is not a multiple of group=%d", residual, group);
    if (head_dim % group)
        return err_set(err, ERR_USAGE, "the model's head_dim %d is not a multiple of group=%d", head_dim, group);
    return 0;
}

static int64_t key_tokens(const double *value, int n)
{
    return kivi_keys((int)value[RESIDUAL], n);
}

static int64_t value_tokens(const double *value, int n)
{
    return kivi_values((int)value[RESIDUAL], n);
}

static int parts(const double *value, int head_dim, int n, struct head_part part[HEAD_PART_MAX])
{
    int64_t K = head_dim, g = (int)value[GROUP], word = 32 / (int)value[BITS];
    int64_t k = key_tokens(value, n), v = value_tokens(value, n);

    part[K_ROWS] = (struct head_part){ "k", DTYPE_BF16, n - k, K };
    part[K_CODES] = (struct head_part){ "k_codes", DTYPE_I32, K, k / word };
    part[K_SCALES] = (struct head_part){ "k_scales", DTYPE_F16, K, k / g };
    part[K_ZEROS] = (struct head_part){ "k_zeros", DTYPE_F16, K, k / g };
    part[V_ROWS] = (struct head_part){ "v", DTYPE_BF16, n - v, K };
    part[V_CODES] = (struct head_part){ "v_codes", DTYPE_I32, v, K / word };
    part[V_SCALES] = (struct head_part){ "v_scales", DTYPE_F16, v, K / g };
    part[V_ZEROS] = (struct head_part){ "v_zeros", DTYPE_F16, v, K / g };
    return N_PARTS;
}

/* The keys or the values of head g of a layer. */
static struct quant_item item_of(const struct packed_layer *layer, int g, enum kv_side side)
{
    void *const *at = layer->at + g * HEAD_PART_MAX + (side == VALUES ? V_CODES : K_CODES);
    const struct kv_rows *rows = &layer->rows[g];

    return (struct quant_item){
        .lines = side == VALUES ? QUANT_ROWS : QUANT_COLUMNS,
        .rows = (int)(side == VALUES ? value_tokens(layer->stage->value, rows->n)
                                     : key_tokens(layer->stage->value, rows->n)),
        .cols = layer->shape->head_dim,
        .bits = (int)layer->stage->value[BITS],
        .group = (int)layer->stage->value[GROUP],
        .x = side == VALUES ? rows->v : rows->k,
        .codes = at[0],
        .scales = at[1],
        .zeros = at[2],
    };
}

static const double bits_allowed[] = { 2, 4, (double)NAN };
static const double groups_allowed[] = { 32, 64, 128, (double)NAN };

const struct method method_kivi = {
    .name = "kivi",
    .summary = "quantises keys per channel, values per token",
    .source = "Liu et al. 2024 (arXiv 2402.02750), github.com/jy-yuan/KIVI",
    .param = { { .name = "bits",
                 .min = 2,
                 .max = 4,
                 .otherwise = (double)NAN,
                 .only = bits_allowed,
                 .help = "bits per number" },
               { .name = "group",
                 .min = 32,
                 .max = 128,
                 .otherwise = 32,
                 .only = groups_allowed,
                 .help = "numbers that share a scale" },
               { .name = "residual",
                 .min = 32,
                 .max = 4096,
                 .otherwise = 32,
                 .whole = true,
                 .help = "recent tokens kept in full" } },
    .check = check,
    .pack = &(const struct method_pack){ .parts = parts, .item = item_of },
};
