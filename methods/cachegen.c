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
#include "codes/half.h"
#include "base/parallel.h"
#include "codes/cachegen_codes.h"
#include "methods/registry.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CDF };
enum { STREAMS, SIZES, CDFS, MAXIMA, SIDE_PARTS };

static int check(const double *value, int head_dim, struct err *err)
{
    (void)value;
    return head_dim % 2 ? err_set(err, ERR_USAGE, "the model's head_dim %d is not even", head_dim) : 0;
}

/* ---- what a side has ---------------------------------------------------- */

/* Counts of all heads, or of those before one. */
struct counts {
    int64_t tokens, streams, cdfs;
};

static struct counts count_heads(const struct coded_rows *rows, int n_heads)
{
    enum cachegen_cdf cdf = (enum cachegen_cdf)rows->value[CDF];
    int64_t K = rows->shape->head_dim;
    struct counts c = { 0 };

    for (int g = 0; g < n_heads; g++) {
        c.tokens += rows->lengths.n[g];
        c.streams += K * cachegen_chunks(rows->lengths.n[g]);
        c.cdfs += K * cachegen_cdf_lists(cdf, rows->lengths.n[g]);
    }
    return c;
}

static int longest(const struct coded_rows *rows)
{
    int n = 0;

    for (int g = 0; g < rows->shape->n_kv_heads; g++)
        n = rows->lengths.n[g] > n ? rows->lengths.n[g] : n;
    return n;
}

static int steps_of(const struct coded_rows *rows)
{
    return cachegen_steps(rows->keys ? CACHEGEN_KEYS : CACHEGEN_VALUES, rows->lengths.layer);
}

static int layer_parts(const double *value, const struct kv_shape *shape, const struct layer_lengths *lengths,
                       struct packed_part *part)
{
    static const char *const name[2][SIDE_PARTS] = { { "k_streams", "k_sizes", "k_cdfs", "k_maxima" },
                                                     { "v_streams", "v_sizes", "v_cdfs", "v_maxima" } };

    for (int side = 0; side < 2; side++, part += SIDE_PARTS) {
        const struct coded_rows rows = { .shape = shape, .value = value, .lengths = *lengths, .keys = side == 0 };
        struct counts all = count_heads(&rows, shape->n_kv_heads);
        int64_t most = 2 * shape->head_dim * all.tokens + all.streams; // arithmetic_bound() of each stream
        const struct packed_part is[SIDE_PARTS] = {
            [STREAMS] = { .dtype = DTYPE_U8, .n_dims = 1, .dim = { most }, .at_most = true },
            [SIZES] = { .dtype = DTYPE_I32, .n_dims = 1, .dim = { all.streams / 2 } },
            [CDFS] = { .dtype = DTYPE_I32, .n_dims = 2, .dim = { all.cdfs, steps_of(&rows) } },
            [MAXIMA] = { .dtype = DTYPE_BF16, .n_dims = 1, .dim = { longest(&rows) } },
        };
        for (int i = 0; i < SIDE_PARTS; i++) {
            part[i] = is[i];
            part[i].name = name[side][i];
        }
    }
    return 2 * SIDE_PARTS;
}

/* ---- encoding ----------------------------------------------------------- */

enum { SLOT = 2 * CACHEGEN_CHUNK + 8 }; // room for a stream

/* The work on one side: first chunk by chunk, then channel by channel. */
struct coding {
    const struct coded_rows *rows;
    struct packed_part *part; // [SIDE_PARTS]
    uint8_t *symbol;          // (streams, CACHEGEN_CHUNK)
    uint8_t *slot;            // (streams, SLOT)
    atomic_bool damaged;
};

/* Chunk number i of all heads. */
struct chunk {
    int head, n; // tokens
    int64_t number;
    struct counts before; // its head
};

static struct chunk find_chunk(const struct coded_rows *rows, int i)
{
    struct chunk c = { .number = i };

    while (c.number >= cachegen_chunks(rows->lengths.n[c.head]))
        c.number -= cachegen_chunks(rows->lengths.n[c.head++]);
    c.n = cachegen_chunk_tokens(c.number, rows->lengths.n[c.head]);
    c.before = count_heads(rows, c.head);
    return c;
}

static int n_chunks(const struct coded_rows *rows)
{
    return (int)(count_heads(rows, rows->shape->n_kv_heads).streams / rows->shape->head_dim);
}

static void find_maxima(const struct coded_rows *rows, uint16_t *max)
{
    const float *x = rows->x;
    int n = longest(rows), K = rows->shape->head_dim;

    memset(max, 0, (size_t)n * sizeof(*max));
    for (int g = 0; g < rows->shape->n_kv_heads; g++)
        for (int t = 0; t < rows->lengths.n[g]; t++, x += K) {
            float most = bf16_to_f32(max[t]);
            for (int c = 0; c < K; c++)
                most = fabsf(x[c]) > most ? fabsf(x[c]) : most;
            max[t] = bf16_from_f32(most);
        }
}

static uint8_t symbol_of(float x, float scale, int steps)
{
    float s = isfinite(scale) ? x * scale : 0;

    s = rintf(s + (float)steps);
    return (uint8_t)(s > 0 ? s < (float)(2 * steps) ? s : (float)(2 * steps) : 0); // nan becomes 0
}

/* The symbols of a chunk, channel by channel. */
static void find_symbols(void *arg, int i)
{
    struct coding *w = arg;
    struct chunk chunk = find_chunk(w->rows, i);
    const uint16_t *max = (const uint16_t *)w->part[MAXIMA].at + chunk.number * CACHEGEN_CHUNK;
    int K = w->rows->shape->head_dim, steps = steps_of(w->rows);
    const float *x = w->rows->x + (chunk.before.tokens + chunk.number * CACHEGEN_CHUNK) * K;
    uint8_t *symbol = w->symbol + (chunk.before.streams + chunk.number * K) * CACHEGEN_CHUNK;

    for (int t = 0; t < chunk.n; t++, x += K) {
        float scale = (float)steps / bf16_to_f32(max[t]);
        for (int c = 0; c < K; c++)
            symbol[c * CACHEGEN_CHUNK + t] = symbol_of(x[c], scale, steps);
    }
}

/* Codes the streams of one channel. */
static void encode_channel(void *arg, int i)
{
    struct coding *w = arg;
    int K = w->rows->shape->head_dim, g = i / K, n = w->rows->lengths.n[g], steps = steps_of(w->rows);
    struct counts before = count_heads(w->rows, g);
    bool by_chunk = (enum cachegen_cdf)w->rows->value[CDF] == CACHEGEN_EACH_CHUNK;
    uint16_t *sizes = (uint16_t *)w->part[SIZES].at + before.streams + i % K;
    uint16_t *cdfs = (uint16_t *)w->part[CDFS].at + (before.cdfs + i % K) * 2 * steps;
    int count[SYMBOLS_MAX] = { 0 };
    struct symbol_cdf cdf;

    for (int64_t made = 0, chunk = 0; chunk < cachegen_chunks(n); chunk++) {
        int64_t stream = before.streams + chunk * K + i % K;
        for (; made < cachegen_chunks(n) && (!by_chunk || made <= chunk); made++) {
            const uint8_t *symbol = w->symbol + (before.streams + made * K + i % K) * CACHEGEN_CHUNK;
            for (int t = 0; t < cachegen_chunk_tokens(made, n); t++)
                count[symbol[t]]++;
        }
        if (by_chunk || chunk == 0) {
            cachegen_cdf_make(&cdf, count, steps);
            cachegen_cdf_write(cdfs + chunk * K * 2 * steps, &cdf);
            memset(count, 0, sizeof(count));
        }
        sizes[chunk * K] = (uint16_t)arithmetic_encode(w->slot + stream * SLOT, w->symbol + stream * CACHEGEN_CHUNK,
                                                       cachegen_chunk_tokens(chunk, n), &cdf);
    }
}

/* Puts all streams one after another. */
static int join_streams(struct coding *w, int64_t streams, struct err *err)
{
    const uint16_t *size = w->part[SIZES].at;
    uint64_t bytes = cachegen_bytes(size, streams);
    uint8_t *to = malloc(bytes ? bytes : 1);

    if (!to)
        return err_nomem(err);
    w->part[STREAMS].at = to;
    w->part[STREAMS].dim[0] = (int64_t)bytes;
    for (int64_t i = 0; i < streams; to += size[i++])
        memcpy(to, w->slot + i * SLOT, size[i]);
    return 0;
}

static struct packed_part *side_parts(const struct coded_rows *rows)
{
    return rows->part + (rows->keys ? 0 : SIDE_PARTS);
}

static int encode(const struct coded_rows *rows, struct err *err)
{
    struct coding w = { .rows = rows, .part = side_parts(rows) };
    struct counts all = count_heads(rows, rows->shape->n_kv_heads);
    bool room = true;

    for (int i = SIZES; i <= MAXIMA; i++) {
        w.part[i].at = calloc(packed_part_bytes(&w.part[i]) + 1, 1);
        room = room && w.part[i].at;
    }
    w.symbol = malloc((size_t)all.streams * CACHEGEN_CHUNK + 1);
    w.slot = malloc((size_t)all.streams * SLOT + 1);
    int code = room && w.symbol && w.slot ? 0 : err_nomem(err);
    if (!code) {
        find_maxima(rows, w.part[MAXIMA].at);
        parallel_do(parallel_cores(), n_chunks(rows), find_symbols, &w);
        parallel_do(parallel_cores(), rows->shape->n_kv_heads * rows->shape->head_dim, encode_channel, &w);
        code = join_streams(&w, all.streams, err);
    }
    free(w.symbol);
    free(w.slot);
    return code;
}

/* ---- decoding ----------------------------------------------------------- */

/* Decodes a chunk into the first bytes of its rows' symbols, then into its rows. */
static void decode_chunk(void *arg, int i)
{
    struct coding *w = arg;
    struct chunk at = find_chunk(w->rows, i);
    bool by_chunk = (enum cachegen_cdf)w->rows->value[CDF] == CACHEGEN_EACH_CHUNK;
    int K = w->rows->shape->head_dim, steps = steps_of(w->rows);
    const uint16_t *sizes = w->part[SIZES].at, *cdfs = w->part[CDFS].at, *max = w->part[MAXIMA].at;
    int64_t stream = at.before.streams + at.number * K, cdf = at.before.cdfs + (by_chunk ? at.number * K : 0);
    float *x = w->rows->x + (at.before.tokens + at.number * CACHEGEN_CHUNK) * K;
    uint8_t *symbol = w->symbol + (at.before.tokens + at.number * CACHEGEN_CHUNK) * K;
    uint64_t first = cachegen_bytes(sizes, stream), bytes = (uint64_t)w->part[STREAMS].dim[0];
    const struct cachegen_chunk chunk = { .n = at.n,
                                          .columns = K,
                                          .steps = steps,
                                          .cdfs = cdfs + cdf * 2 * steps,
                                          .sizes = sizes + stream,
                                          .streams = { (uint8_t *)w->part[STREAMS].at + first, bytes - first } };

    if (cachegen_decode(symbol, &chunk)) {
        w->damaged = true;
        return;
    }
    for (int t = 0; t < at.n; t++)
        cachegen_row(x + (size_t)t * (size_t)K, symbol + (size_t)t * (size_t)K, K, steps,
                     bf16_to_f32(max[at.number * CACHEGEN_CHUNK + t]));
}

static int decode(const struct coded_rows *rows, struct err *err)
{
    struct coding w = { .rows = rows, .part = side_parts(rows) };
    struct counts all = count_heads(rows, rows->shape->n_kv_heads);

    w.symbol = malloc((size_t)(all.tokens * rows->shape->head_dim) + 1);
    if (!w.symbol)
        return err_nomem(err);
    parallel_do(parallel_cores(), n_chunks(rows), decode_chunk, &w);
    free(w.symbol);
    return w.damaged ? err_set(err, ERR_FORMAT, "the streams of %s of layer %d are damaged",
                               rows->keys ? "keys" : "values", rows->lengths.layer)
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
