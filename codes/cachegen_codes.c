/* cachegen_codes.c - CDFs of counts, chunks of streams read back, and whole sides of layers. */
#include "codes/cachegen_codes.h"

#include "base/parallel.h"
#include "codes/half.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { LAST = 65503 }; // what CDFs share out: 2^16 - 33, as in LMCache, whose CDFs have 33 bounds in every layer

bool cachegen_codes_parse(enum cachegen_cdf *cdf, const char *config)
{
    static const char name[] = "cachegen";
    const char *last = strrchr(config, '+'), *at = last ? last + 1 : config; // a quantiser ends a chain

    if (strncmp(at, name, sizeof(name) - 1) != 0)
        return false;
    *cdf = strcmp(at + sizeof(name) - 1, ":cdf=chunk") == 0 ? CACHEGEN_EACH_CHUNK : CACHEGEN_CONTEXT;
    return true;
}

int cachegen_steps(enum cachegen_side side, int64_t layer)
{
    int fine = side == CACHEGEN_KEYS ? 10 : 2; // layers with 32 bins

    return (layer < fine ? 32 : 16) / 2 - 1;
}

/* ---- CDFs --------------------------------------------------------------- */

static void set_ends(struct symbol_cdf *cdf, int steps)
{
    memset(cdf->at, 0xff, sizeof(cdf->at));
    cdf->n_symbols = 2 * steps + 1;
    cdf->at[0] = 0;
    cdf->at[cdf->n_symbols] = (uint16_t)(LAST + cdf->n_symbols);
}

void cachegen_cdf_make(struct symbol_cdf *cdf, const int *count, int steps)
{
    int64_t sum = 0, total = 0;

    set_ends(cdf, steps);
    for (int s = 0; s < cdf->n_symbols; s++)
        total += count[s];
    for (int s = 0; s < cdf->n_symbols; sum += count[s++])
        cdf->at[s] = (uint16_t)(LAST * sum / total + s);
}

void cachegen_cdf_write(uint16_t *stored, const struct symbol_cdf *cdf)
{
    memcpy(stored, cdf->at + 1, (size_t)(cdf->n_symbols - 1) * sizeof(*stored));
}

bool cachegen_cdf_read(struct symbol_cdf *cdf, const uint16_t *stored, int steps)
{
    set_ends(cdf, steps);
    memcpy(cdf->at + 1, stored, (size_t)(cdf->n_symbols - 1) * sizeof(*stored));
    for (int s = 0; s < cdf->n_symbols; s++)
        if (cdf->at[s] >= cdf->at[s + 1])
            return false;
    return true;
}

/* ---- chunks ------------------------------------------------------------- */

uint64_t cachegen_bytes(const void *sizes, int64_t n)
{
    const char *at = sizes;
    uint64_t sum = 0;

    for (uint16_t size; n > 0; n--, at += sizeof(size), sum += size)
        memcpy(&size, at, sizeof(size));
    return sum;
}

int cachegen_decode(uint8_t *symbol, const struct cachegen_chunk *chunk)
{
    const size_t bounds = 2 * (size_t)chunk->steps;
    struct stream rest = chunk->streams;
    struct coded_stream stream[STREAMS_MAX];

    for (int first = 0, n; first < chunk->columns; first += n) {
        for (n = 0; n < STREAMS_MAX && first + n < chunk->columns; n++) {
            size_t size = chunk->sizes[first + n];
            if (size > rest.n ||
                !cachegen_cdf_read(&stream[n].cdf, chunk->cdfs + (size_t)(first + n) * bounds, chunk->steps))
                return -1;
            stream[n].in = (struct stream){ rest.at, size };
            rest = (struct stream){ rest.at + size, rest.n - size };
        }
        if (arithmetic_decode(symbol + first, chunk->n, (size_t)chunk->columns, stream, n))
            return -1;
    }
    return 0;
}

void cachegen_row(float *x, const uint8_t *symbol, int columns, int steps, float max)
{
    for (int c = 0; c < columns; c++)
        x[c] = (float)(symbol[c] - steps) / (float)steps * max;
}

/* ---- a side of a layer: first chunk by chunk, then channel by channel ---- */

enum { SLOT = 2 * CACHEGEN_CHUNK + 8 }; // room for a stream

struct work {
    const struct cachegen_rows *rows;
    const struct cachegen_coded *coded;
    uint8_t *symbol; // (streams, CACHEGEN_CHUNK)
    uint8_t *slot;   // (streams, SLOT)
    atomic_bool damaged;
};

struct cachegen_counts cachegen_count(const struct cachegen_rows *rows, int heads)
{
    int64_t K = rows->columns;
    struct cachegen_counts c = { 0 };

    for (int g = 0; g < heads; g++) {
        c.tokens += rows->n[g];
        c.streams += K * cachegen_chunks(rows->n[g]);
        c.cdfs += K * cachegen_cdf_lists(rows->cdf, rows->n[g]);
    }
    return c;
}

int cachegen_longest(const struct cachegen_rows *rows)
{
    int n = 0;

    for (int g = 0; g < rows->heads; g++)
        n = rows->n[g] > n ? rows->n[g] : n;
    return n;
}

/* Chunk number i of all heads. */
struct chunk {
    int head, n; // tokens
    int64_t number;
    struct cachegen_counts before; // its head
};

static struct chunk find_chunk(const struct cachegen_rows *rows, int i)
{
    struct chunk c = { .number = i };

    while (c.number >= cachegen_chunks(rows->n[c.head]))
        c.number -= cachegen_chunks(rows->n[c.head++]);
    c.n = cachegen_chunk_tokens(c.number, rows->n[c.head]);
    c.before = cachegen_count(rows, c.head);
    return c;
}

static int n_chunks(const struct cachegen_rows *rows)
{
    return (int)(cachegen_count(rows, rows->heads).streams / rows->columns);
}

static void find_maxima(const struct cachegen_rows *rows, uint16_t *max)
{
    const float *x = rows->x;
    int n = cachegen_longest(rows), K = rows->columns;

    memset(max, 0, (size_t)n * sizeof(*max));
    for (int g = 0; g < rows->heads; g++)
        for (int t = 0; t < rows->n[g]; t++, x += K) {
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
    struct work *w = arg;
    struct chunk chunk = find_chunk(w->rows, i);
    const uint16_t *max = w->coded->maxima + chunk.number * CACHEGEN_CHUNK;
    int K = w->rows->columns, steps = w->rows->steps;
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
    struct work *w = arg;
    int K = w->rows->columns, g = i / K, n = w->rows->n[g], steps = w->rows->steps;
    struct cachegen_counts before = cachegen_count(w->rows, g);
    bool by_chunk = w->rows->cdf == CACHEGEN_EACH_CHUNK;
    uint16_t *sizes = w->coded->sizes + before.streams + i % K;
    uint16_t *cdfs = w->coded->cdfs + (before.cdfs + i % K) * 2 * steps;
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
static int join_streams(const struct work *w, struct cachegen_coded *coded, int64_t streams, struct err *err)
{
    coded->bytes = cachegen_bytes(coded->sizes, streams);
    coded->streams = malloc(coded->bytes ? coded->bytes : 1);
    uint8_t *to = coded->streams;
    if (!to)
        return err_nomem(err);
    for (int64_t i = 0; i < streams; to += coded->sizes[i++])
        memcpy(to, w->slot + i * SLOT, coded->sizes[i]);
    return 0;
}

int cachegen_encode(const struct cachegen_rows *rows, struct cachegen_coded *to, struct err *err)
{
    struct work w = { .rows = rows, .coded = to };
    size_t streams = (size_t)cachegen_count(rows, rows->heads).streams;

    w.symbol = malloc(streams * CACHEGEN_CHUNK + 1);
    w.slot = malloc(streams * SLOT + 1);
    int code = w.symbol && w.slot ? 0 : err_nomem(err);
    if (!code) {
        find_maxima(rows, to->maxima);
        parallel_do(rows->threads, n_chunks(rows), find_symbols, &w);
        parallel_do(rows->threads, rows->heads * rows->columns, encode_channel, &w);
        code = join_streams(&w, to, (int64_t)streams, err);
    }
    free(w.symbol);
    free(w.slot);
    return code;
}

/* Decodes a chunk into the first bytes of its rows' symbols, then into its rows. */
static void decode_chunk(void *arg, int i)
{
    struct work *w = arg;
    struct chunk at = find_chunk(w->rows, i);
    bool by_chunk = w->rows->cdf == CACHEGEN_EACH_CHUNK;
    int K = w->rows->columns, steps = w->rows->steps;
    const struct cachegen_coded *from = w->coded;
    int64_t stream = at.before.streams + at.number * K, cdf = at.before.cdfs + (by_chunk ? at.number * K : 0);
    float *x = w->rows->x + (at.before.tokens + at.number * CACHEGEN_CHUNK) * K;
    uint8_t *symbol = w->symbol + (at.before.tokens + at.number * CACHEGEN_CHUNK) * K;
    uint64_t first = cachegen_bytes(from->sizes, stream);
    const struct cachegen_chunk chunk = { .n = at.n,
                                          .columns = K,
                                          .steps = steps,
                                          .cdfs = from->cdfs + cdf * 2 * steps,
                                          .sizes = from->sizes + stream,
                                          .streams = { from->streams + first, from->bytes - first } };

    if (cachegen_decode(symbol, &chunk)) {
        w->damaged = true;
        return;
    }
    for (int t = 0; t < at.n; t++)
        cachegen_row(x + (size_t)t * (size_t)K, symbol + (size_t)t * (size_t)K, K, steps,
                     bf16_to_f32(from->maxima[at.number * CACHEGEN_CHUNK + t]));
}

int cachegen_decode_side(const struct cachegen_rows *rows, const struct cachegen_coded *from, struct err *err)
{
    struct work w = { .rows = rows, .coded = from };

    w.symbol = malloc((size_t)(cachegen_count(rows, rows->heads).tokens * rows->columns) + 1);
    if (!w.symbol)
        return err_nomem(err);
    parallel_do(rows->threads, n_chunks(rows), decode_chunk, &w);
    free(w.symbol);
    return w.damaged ? err_set(err, ERR_FORMAT, "streams are damaged") : 0;
}
