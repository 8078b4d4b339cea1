/* fp8 - keys and values as numbers of 8 bits, e4m3.
 *
 *     scale = largest |x| / 448; code = e4m3(x / scale), to nearest even; x becomes code * scale
 *     scale=head: one scale for the keys, and one for the values, of a layer's kv head, in f32
 *     scale=token: one for each row, in f16
 *     scale=one: no scales, scale is 1; numbers beyond 448 become 448
 * e4m3 is OCP's FP8 with 4 bits of exponent and 3 of fraction, largest number 448. Keys carry their rotary embedding.
 * No row is kept in full.
 *
 * Bytes per layer and kv head, K = head_dim: keys n*K + 4, n*(K+2) or n*K; values likewise.
 *
 * Source: Micikevicius et al., "FP8 Formats for Deep Learning" (2022), and the FP8 KV caches of vLLM: a scale of 1 by
 * default, scales for each head as llm-compressor writes them. vLLM takes calibrated scales; these are those of the
 * context itself.
 */
#include "methods/registry.h"

enum { SCALE };

static struct quant_pair rows_of(const double *value, int head_dim)
{
    const struct quant_row row = { .format = QUANT_E4M3, .columns = head_dim, .scale = (enum quant_scale)value[SCALE] };

    return (struct quant_pair){ .side = { row, row } };
}

static const char *const scales[] = {
    [QUANT_SCALE_HEAD] = "head", [QUANT_SCALE_TOKEN] = "token", [QUANT_SCALE_ONE] = "one", NULL
};

const struct method method_fp8 = {
    .name = "fp8",
    .summary = "quantises to e4m3",
    .source = "Micikevicius et al. 2022 (arXiv 2209.05433), vLLM's FP8 KV cache",
    .param = { { .name = "scale",
                 .otherwise = QUANT_SCALE_HEAD,
                 .words = scales,
                 .help = "numbers that share a scale: a head's, or a token's of it, or one scale of 1" } },
    .pack = &(const struct method_pack){ .rows = rows_of },
};
