/* cachegen - few levels for each number, then an arithmetic coder, in host memory.
 *
 * Keys and values of a layer apart, with K = head_dim; a channel is one of the G * K columns of all heads:
 *     M = 15 for the keys of layers 0 to 9 and the values of layers 0 and 1, else 7 (32 or 16 bins in LMCache)
 *     max[t] = the largest magnitude of token t in all channels, in bf16
 *     symbol = round_half_even(x * (M / max[t]) + M), 0 to 2M, in f32; M where M / max[t] is not finite
 *     x becomes (symbol - M) / M * max[t]
 * Row i of each head is token i: of a chain the kept rows as if they were consecutive; where heads differ in length, a
 * token's maximum is that of the heads that have so many rows.
 *
 * Streams: the symbols of one channel and up to 256 consecutive tokens (codes/arithmetic.h), with a CDF of the channel,
 * made of how often each symbol occurs in these tokens (cdf=chunk) or in all (cdf=context):
 *     bound[s] = floor(65503 * (share of symbols below s)) + s
 * Tensors, after `k_` or `v_`, head after head, in each chunk after chunk of 256 tokens, in each channel after channel:
 *     streams  U8 [bytes]       sizes  the bytes of each stream, 16 bits      maxima  BF16 [tokens of the longest head]
 *     cdfs     I32 [CDFs, M]    bounds 1 to 2M, 16 bits; the others are always the same
 * 16-bit numbers lie in int32 by two, the first in the lower half, so K must be even.
 *
 * Source: Liu et al., "CacheGen: KV Cache Compression and Streaming for Fast Large Language Model Serving" (SIGCOMM
 * 2024), as shipped in LMCache (cachegen_encoder.py, cal_cdf.cu, ac_enc.cu), which has neither the paper's differences
 * between tokens nor its levels of quality. Differences: symbols in f32, where LMCache computes in the cache's dtype;
 * of its 33 bounds in 16 bits those that never change are not stored; sizes take 16 bits, not 32. The streams of
 * cdf=chunk are LMCache's. For contexts of thousands of tokens one CDF takes less: 0.172 of the cache of 2,044 tokens
 * of SmolLM2-135M, with CDFs for each chunk 0.225 (tests/golden/cachegen/oracle). So cdf=context is the default.
 */
#include "base/parallel.h"
#include "codes/cachegen_codes.h"
#include "methods/registry.h"

#include <stdlib.h>

enum { CDF };
enum { STREAMS, SIZES, CDFS, MAXIMA, SIDE_PARTS };

static int check(const double *value, int head_dim, struct err *err)
{
    (void)value;
    return head_dim % 2 ? err_set(err, ERR_USAGE, "the model's head_dim %d is not even", head_dim) : 0;
}

/* ---- a side ------------------------------------------------------------- */

static struct cachegen_rows side_of(const struct coded_rows *rows)
{
    enum cachegen_side side = rows->keys ? CACHEGEN_KEYS : CACHEGEN_VALUES;

    return (struct cachegen_rows){ .x = rows->x,
                                   .n = rows->lengths.n,
                                   .heads = rows->shape->n_kv_heads,
                                   .columns = rows->shape->head_dim,
                                   .steps = cachegen_steps(side, rows->lengths.layer),
                                   .cdf = (enum cachegen_cdf)rows->value[CDF],
                                   .threads = parallel_cores() };
}

static int layer_parts(const double *value, const struct kv_shape *shape, const struct layer_lengths *lengths,
                       struct packed_part *part)
{
    static const char *const name[2][SIDE_PARTS] = { { "k_streams", "k_sizes", "k_cdfs", "k_maxima" },
                                                     { "v_streams", "v_sizes", "v_cdfs", "v_maxima" } };

    for (int side = 0; side < 2; side++, part += SIDE_PARTS) {
        const struct coded_rows coded = { .shape = shape, .value = value, .lengths = *lengths, .keys = side == 0 };
        const struct cachegen_rows rows = side_of(&coded);
        struct cachegen_counts all = cachegen_count(&rows, rows.heads);
        int64_t most = 2 * shape->head_dim * all.tokens + all.streams; // arithmetic_bound() of each stream
        const struct packed_part is[SIDE_PARTS] = {
            [STREAMS] = { .dtype = DTYPE_U8, .n_dims = 1, .dim = { most }, .at_most = true },
            [SIZES] = { .dtype = DTYPE_I32, .n_dims = 1, .dim = { all.streams / 2 } },
            [CDFS] = { .dtype = DTYPE_I32, .n_dims = 2, .dim = { all.cdfs, rows.steps } },
            [MAXIMA] = { .dtype = DTYPE_BF16, .n_dims = 1, .dim = { cachegen_longest(&rows) } },
        };
        for (int i = 0; i < SIDE_PARTS; i++) {
            part[i] = is[i];
            part[i].name = name[side][i];
        }
    }
    return 2 * SIDE_PARTS;
}

static struct packed_part *side_parts(const struct coded_rows *rows)
{
    return rows->part + (rows->keys ? 0 : SIDE_PARTS);
}

static struct cachegen_coded coded_of(const struct packed_part *part)
{
    return (struct cachegen_coded){ part[STREAMS].at, part[SIZES].at, part[CDFS].at, part[MAXIMA].at,
                                    (uint64_t)part[STREAMS].dim[0] };
}

static int encode(const struct coded_rows *rows, struct err *err)
{
    const struct cachegen_rows side = side_of(rows);
    struct packed_part *part = side_parts(rows);

    for (int i = SIZES; i <= MAXIMA; i++) {
        part[i].at = calloc(packed_part_bytes(&part[i]) + 1, 1);
        if (!part[i].at)
            return err_nomem(err);
    }
    struct cachegen_coded coded = coded_of(part);
    if (cachegen_encode(&side, &coded, err))
        return err->code;
    part[STREAMS].at = coded.streams;
    part[STREAMS].dim[0] = (int64_t)coded.bytes;
    return 0;
}

static int decode(const struct coded_rows *rows, struct err *err)
{
    const struct cachegen_rows side = side_of(rows);
    const struct cachegen_coded coded = coded_of(side_parts(rows));

    return cachegen_decode_side(&side, &coded, err)
               ? err_wrap(err, "%s of layer %d", rows->keys ? "keys" : "values", rows->lengths.layer)
               : 0;
}

/* The streams take the bytes that their sizes add up to. */
static bool check_part(const struct packed_part *part, int i)
{
    return cachegen_bytes(part[i + SIZES].at, 2 * part[i + SIZES].dim[0]) == (uint64_t)part[i].dim[0];
}

static const char *const cdf_words[] = { "context", "chunk", NULL };

static const struct method_coder coder = {
    .parts = layer_parts, .encode = encode, .decode = decode, .check_part = check_part
};

const struct method method_cachegen = {
    .name = "cachegen",
    .summary = "quantises to few levels, then codes them by their frequency",
    .source = "Liu et al. 2024 (arXiv 2310.07240), github.com/LMCache/LMCache",
    .param = { { .name = "cdf",
                 .max = 1,
                 .otherwise = CACHEGEN_CONTEXT,
                 .words = cdf_words,
                 .help = "tokens whose symbols are counted together: of the context or of a chunk of 256" } },
    .check = check,
    .pack = &(const struct method_pack){ .coder = &coder },
};
