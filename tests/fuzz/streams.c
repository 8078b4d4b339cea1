/* streams.c - any bytes as a chunk of cachegen's streams: refused, or symbols of the CDFs that are coded into streams
 * of the same sizes again, which give the same symbols. The first bytes say how many tokens and channels there are.
 */
#include "codes/cachegen_codes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { COLUMNS = 16 };

/* Codes the symbols of a channel, (n, columns), anew. */
static void expect_same(const struct cachegen_chunk *chunk, const uint8_t *symbol, int c)
{
    uint8_t mine[CACHEGEN_CHUNK], again[CACHEGEN_CHUNK], stream[2 * CACHEGEN_CHUNK + 1];
    struct coded_stream coded;

    if (!cachegen_cdf_read(&coded.cdf, chunk->cdfs + c * 2 * chunk->steps, chunk->steps))
        abort();
    for (int t = 0; t < chunk->n; t++) {
        mine[t] = symbol[t * chunk->columns + c];
        if (mine[t] >= coded.cdf.n_symbols)
            abort();
    }
    size_t n = arithmetic_encode(stream, mine, chunk->n, &coded.cdf);
    coded.in = (struct stream){ stream, n };
    if (n != chunk->sizes[c] || n > arithmetic_bound((size_t)chunk->n) ||
        arithmetic_decode(again, chunk->n, 1, &coded, 1) || memcmp(again, mine, (size_t)chunk->n) != 0)
        abort();
}

/* bytes: tokens - 1, channels - 1, and whether there are 16 bins; then as a payload: sizes, CDFs, streams. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint16_t sizes[COLUMNS] = { 0 }, cdfs[COLUMNS * 30] = { 0 };

    if (n < 3)
        return 0;
    struct cachegen_chunk chunk = { .n = data[0] + 1, .columns = data[1] % COLUMNS + 1, .steps = data[2] & 1 ? 7 : 15 };
    size_t columns = (size_t)chunk.columns, n_sizes = 2 * columns, n_cdfs = 4 * columns * (size_t)chunk.steps;
    uint8_t *symbol = malloc((size_t)chunk.n * columns);
    if (n >= 3 + n_sizes + n_cdfs) {
        memcpy(sizes, data + 3, n_sizes);
        memcpy(cdfs, data + 3 + n_sizes, n_cdfs);
        chunk.sizes = sizes;
        chunk.cdfs = cdfs;
        chunk.streams = (struct stream){ data + 3 + n_sizes + n_cdfs, n - 3 - n_sizes - n_cdfs };
        if (!cachegen_decode(symbol, &chunk))
            for (int c = 0; c < chunk.columns; c++)
                expect_same(&chunk, symbol, c);
    }
    free(symbol);
    return 0;
}
