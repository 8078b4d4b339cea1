/* nvfp4 - keys and values as numbers of 4 bits, e2m1, with a scale for each 16 of them.
 *
 *     global scale = largest |x| of a layer's keys, or values, in a kv head / 448, in f32
 *     of 16 consecutive channels of a token: scale = e4m3(largest |x| / 6 / global scale)
 *     code = e2m1(x / (scale * global scale)), to nearest even; x becomes code * (scale * global scale)
 * e2m1 is 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign. Keys carry their rotary embedding. No row is kept in full.
 *
 * Bytes per layer and kv head, K = head_dim, a multiple of 16: keys n*(K/2 + K/16) + 4, values likewise.
 *
 * Source: NVIDIA's NVFP4 and its KV caches in TensorRT-LLM and FlashInfer (nvfp4_quantize_paged_kv_cache). They have
 * one global scale for all heads of a tensor, here each head has one: heads are packed and read independently. Theirs
 * (448 / largest) is the inverse of this one; their kernels divide approximately.
 */
#include "methods/registry.h"

static int check(const double *value, int head_dim, struct err *err)
{
    (void)value;
    if (head_dim % QUANT_BLOCK)
        return err_set(err, ERR_USAGE, "the model's head_dim %d is not a multiple of %d", head_dim, QUANT_BLOCK);
    return 0;
}

static struct quant_pair rows_of(const double *value, int head_dim)
{
    const struct quant_row row = { .format = QUANT_NVFP4, .columns = head_dim };

    (void)value;
    return (struct quant_pair){ .side = { row, row } };
}

const struct method method_nvfp4 = {
    .name = "nvfp4",
    .summary = "quantises to e2m1 with a scale for each 16 numbers",
    .source = "NVIDIA's NVFP4, FlashInfer's nvfp4_quantize_paged_kv_cache",
    .check = check,
    .pack = &(const struct method_pack){ .rows = rows_of },
};
