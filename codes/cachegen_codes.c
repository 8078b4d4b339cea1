/* cachegen_codes.c - CDFs of counts, and chunks of streams read back. */
#include "codes/cachegen_codes.h"

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
