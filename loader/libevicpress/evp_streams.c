/* evp_streams.c - the chunks of a head that have the rows asked for: read, and decoded on several threads. */
#include "loader/libevicpress/evp_streams.h"

#include "base/parallel.h"
#include "loader/libevicpress/evicpress.h"

#include <stdatomic.h>
#include <stdio.h>

/* The chunks [first, end) of a head, as they are stored. */
struct chunks {
    const struct coded_head *head;
    const struct row_span *rows;
    int64_t first, end, n; // chunks; tokens of the head
    int64_t first_stream;  // number of their first stream in the layer
    int steps;
    struct buf streams, cdfs, maxima;
    struct buf symbols; // (tokens of the chunks, columns)
    atomic_bool damaged;
};

static const struct st_tensor *find_part(const struct coded_head *h, const char *what)
{
    char name[64];

    snprintf(name, sizeof(name), "layers.%lld.%c_%s", (long long)h->layer, h->side == EVICPRESS_KEYS ? 'k' : 'v', what);
    return safetensors_find(&payload_of(h->p)->st, name);
}

static int wrong_part(const struct coded_head *h, const char *what, struct err *err)
{
    return err_set(err, ERR_FORMAT, "the %s of the %s of layer %lld are damaged", what,
                   h->side == EVICPRESS_KEYS ? "keys" : "values", (long long)h->layer);
}

/* A tensor, and the bytes of it to read. */
struct part {
    const char *what;
    enum st_type type;
    uint64_t bytes; // that the tensor must have
    struct bytes_range range;
};

static int read_part(const struct coded_head *h, const struct part *part, struct buf *to, struct err *err)
{
    const struct st_tensor *t = find_part(h, part->what);

    if (!t || t->type != part->type || t->bytes != part->bytes)
        return wrong_part(h, part->what, err);
    if (!buf_reserve(to, (size_t)part->range.n + 1))
        return err_nomem(err);
    to->n = (size_t)part->range.n;
    return payload_read(h->p, &(struct extent){ t, part->range, h->verify }, to->at, err);
}

/* Streams or CDFs of heads before number `end`. */
static int64_t count_before(const struct coded_head *h, int64_t end, bool cdfs)
{
    int64_t sum = 0;

    for (int64_t g = 0; g < end; g++)
        sum += cdfs ? cachegen_cdf_lists(h->cdf, h->n[g]) : cachegen_chunks(h->n[g]);
    return sum * h->columns;
}

static int read_sizes(const struct chunks *c, struct err *err)
{
    const struct coded_head *h = c->head;
    uint64_t bytes = (uint64_t)count_before(h, h->heads, false) * sizeof(uint16_t);

    return h->sizes->n ? 0 : read_part(h, &(struct part){ "sizes", ST_I32, bytes, { 0, bytes } }, h->sizes, err);
}

static int read_cdfs(struct chunks *c, struct err *err)
{
    const struct coded_head *h = c->head;
    bool each = h->cdf == CACHEGEN_EACH_CHUNK;
    uint64_t cdf = 2 * (uint64_t)c->steps * sizeof(uint16_t), K = (uint64_t)h->columns;
    uint64_t before = (uint64_t)count_before(h, h->head, true) + (each ? (uint64_t)c->first * K : 0);
    uint64_t n = each ? (uint64_t)(c->end - c->first) * K : K, all = (uint64_t)count_before(h, h->heads, true);

    return read_part(h, &(struct part){ "cdfs", ST_I32, all * cdf, { before * cdf, n * cdf } }, &c->cdfs, err);
}

static int read_maxima(struct chunks *c, struct err *err)
{
    const struct coded_head *h = c->head;
    int64_t first = c->first * CACHEGEN_CHUNK, end = c->rows->skip + c->rows->n;
    int32_t longest = 0;

    for (int64_t g = 0; g < h->heads; g++)
        longest = h->n[g] > longest ? h->n[g] : longest;
    return read_part(
        h,
        &(struct part){
            "maxima", ST_BF16, 2 * (uint64_t)longest, { 2 * (uint64_t)first, 2 * (uint64_t)(end - first) } },
        &c->maxima, err);
}

/* The sizes say where the chunks' streams begin. */
static int read_streams(struct chunks *c, struct err *err)
{
    const struct coded_head *h = c->head;
    const char *sizes = h->sizes->at, *mine = sizes + c->first_stream * 2;
    int64_t n = (c->end - c->first) * h->columns;
    uint64_t all = cachegen_bytes(sizes, (int64_t)h->sizes->n / 2), before = cachegen_bytes(sizes, c->first_stream);

    return read_part(h, &(struct part){ "streams", ST_U8, all, { before, cachegen_bytes(mine, n) } }, &c->streams, err);
}

/* Decodes a chunk and writes those of its rows that are asked for. */
static void decode_chunk(void *arg, int i)
{
    struct chunks *c = arg;
    const struct coded_head *h = c->head;
    int64_t K = h->columns, from = (c->first + i) * CACHEGEN_CHUNK, row = c->rows->skip, end = row + c->rows->n;
    const uint16_t *sizes = (const uint16_t *)(const void *)h->sizes->at + c->first_stream;
    const uint16_t *cdfs = (const void *)c->cdfs.at, *maxima = (const void *)c->maxima.at;
    uint64_t at = cachegen_bytes(sizes, i * K);
    uint8_t *symbol = (uint8_t *)c->symbols.at + i * CACHEGEN_CHUNK * K;
    const struct cachegen_chunk chunk = {
        .n = cachegen_chunk_tokens(c->first + i, c->n),
        .columns = (int)K,
        .steps = c->steps,
        .cdfs = cdfs + (h->cdf == CACHEGEN_EACH_CHUNK ? i * K * 2 * c->steps : 0),
        .sizes = sizes + i * K,
        .streams = { (const uint8_t *)c->streams.at + at, c->streams.n - at },
    };

    if (cachegen_decode(symbol, &chunk)) {
        c->damaged = true;
        return;
    }
    row = row > from ? row : from;
    end = end < from + chunk.n ? end : from + chunk.n;
    const struct row_symbols symbols = { symbol, maxima + i * CACHEGEN_CHUNK, c->steps };
    row_sink_symbols(h->sink, &symbols,
                     &(struct row_span){ row - from, end - row, c->rows->first + row - c->rows->skip });
}

static int read_and_decode(struct chunks *c, struct err *err)
{
    const struct coded_head *h = c->head;
    int64_t n = c->end - c->first;

    if (read_sizes(c, err) || read_cdfs(c, err) || read_maxima(c, err) || read_streams(c, err))
        return err->code;
    if (!buf_reserve(&c->symbols, (size_t)(n * CACHEGEN_CHUNK * h->columns)))
        return err_nomem(err);
    parallel_do(parallel_threads(), (int)n, decode_chunk, c);
    return c->damaged ? wrong_part(h, "streams", err) : 0;
}

int streams_read(const struct coded_head *h, const struct row_span *rows, struct err *err)
{
    enum cachegen_side side = h->side == EVICPRESS_KEYS ? CACHEGEN_KEYS : CACHEGEN_VALUES;
    struct chunks c = { .head = h,
                        .rows = rows,
                        .first = rows->skip / CACHEGEN_CHUNK,
                        .end = cachegen_chunks(rows->skip + rows->n),
                        .n = h->n[h->head],
                        .steps = cachegen_steps(side, h->place) };

    c.first_stream = count_before(h, h->head, false) + c.first * h->columns;
    int code = read_and_decode(&c, err);
    buf_release(&c.streams);
    buf_release(&c.cdfs);
    buf_release(&c.maxima);
    buf_release(&c.symbols);
    return code;
}
