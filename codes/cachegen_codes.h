/* cachegen_codes.h - how cachegen stores keys or values: symbols of 256 tokens of a channel as one stream of the
 * arithmetic coder. methods/cachegen.c has the source and the whole layout. Nothing here trusts what it reads. */
#ifndef EVP_CACHEGEN_CODES_H
#define EVP_CACHEGEN_CODES_H

#include "base/err.h"
#include "codes/arithmetic.h"

#include <stdbool.h>
#include <stdint.h>

enum { CACHEGEN_CHUNK = 256 }; // tokens of a stream, as in LMCache

enum cachegen_cdf { CACHEGEN_CONTEXT, CACHEGEN_EACH_CHUNK }; // what has a CDF for each channel
enum cachegen_side { CACHEGEN_KEYS, CACHEGEN_VALUES };

/* What the CDFs of a config belong to, as payloads name it; false: it has no cachegen. */
bool cachegen_codes_parse(enum cachegen_cdf *cdf, const char *config);

/* M: a layer's symbols are 0 to 2M, for -1 to 1 times the largest number of a token. */
int cachegen_steps(enum cachegen_side side, int64_t layer);

/* Of n tokens of a head: chunks, and lists of CDFs. Streams and CDFs are chunk after chunk, each channel after
 * channel. */
static inline int64_t cachegen_chunks(int64_t n)
{
    return (n + CACHEGEN_CHUNK - 1) / CACHEGEN_CHUNK;
}

static inline int64_t cachegen_cdf_lists(enum cachegen_cdf cdf, int64_t n)
{
    return cdf == CACHEGEN_EACH_CHUNK ? cachegen_chunks(n) : n > 0;
}

static inline int cachegen_chunk_tokens(int64_t chunk, int64_t n)
{
    return (int)(n - chunk * CACHEGEN_CHUNK < CACHEGEN_CHUNK ? n - chunk * CACHEGEN_CHUNK : CACHEGEN_CHUNK);
}

/* The CDF of symbols 0 to 2M that occur count[s] times, and how it is stored: its bounds 1 to 2M. Bounds 0 and 2M + 1
 * are always the same. cachegen_cdf_read: false: the bounds do not ascend. */
void cachegen_cdf_make(struct symbol_cdf *cdf, const int *count, int steps);
void cachegen_cdf_write(uint16_t *stored, const struct symbol_cdf *cdf);
bool cachegen_cdf_read(struct symbol_cdf *cdf, const uint16_t *stored, int steps);

/* A chunk of one head as it is stored. */
struct cachegen_chunk {
    int n, columns, steps;
    const uint16_t *cdfs, *sizes; // (columns, 2M) bounds; (columns) bytes of each stream
    struct stream streams;        // one after another
};

/* The bytes of n streams together. sizes: (n) uint16_t, at any address. */
uint64_t cachegen_bytes(const void *sizes, int64_t n);

/* symbol: (n, columns). -1: the chunk is damaged. */
int cachegen_decode(uint8_t *symbol, const struct cachegen_chunk *chunk);

/* A token's numbers: (symbol - M) / M * max, in f32. */
void cachegen_row(float *x, const uint8_t *symbol, int columns, int steps, float max);

/* ---- a side of a layer ---- */

struct cachegen_rows {
    float *x;     // the rows of each head: (n[0], columns), (n[1], columns) ...
    const int *n; // (heads) tokens
    int heads, columns, steps;
    enum cachegen_cdf cdf;
    int threads; // that share the work
};

/* What the heads before number `heads` have together; the most tokens of a head. */
struct cachegen_counts {
    int64_t tokens, streams, cdfs;
};
struct cachegen_counts cachegen_count(const struct cachegen_rows *rows, int heads);
int cachegen_longest(const struct cachegen_rows *rows);

/* The caller's arrays. */
struct cachegen_coded {
    uint8_t *streams;                // (bytes)
    uint16_t *sizes, *cdfs, *maxima; // (streams) bytes of each; (cdfs, 2M); (the longest head's tokens) bf16
    uint64_t bytes;
};

/* Codes all rows. Sets to->streams, which the caller frees, and to->bytes. */
int cachegen_encode(const struct cachegen_rows *rows, struct cachegen_coded *to, struct err *err) MUST_CHECK;

/* Replaces all rows by what the codes say. ERR_FORMAT: a stream is damaged. */
int cachegen_decode_side(const struct cachegen_rows *rows, const struct cachegen_coded *from,
                         struct err *err) MUST_CHECK;

#endif
