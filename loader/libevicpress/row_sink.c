/* row_sink.c - the arithmetic of evp_fetch_rows(). Inner loops run over the columns of a row, so that the compiler
 * vectorises them. */
#include "loader/libevicpress/row_sink.h"

#include "codes/half.h"
#include "codes/cachegen_codes.h"
#include "loader/libevicpress/evicpress.h"

#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

size_t row_type_bytes(int type)
{
    static const size_t bytes[] = {
        [EVICPRESS_BF16] = 2, [EVICPRESS_F16] = 2, [EVICPRESS_F32] = 4, [EVICPRESS_E4M3] = 1
    };

    return type >= 0 && type < (int)(sizeof(bytes) / sizeof(*bytes)) ? bytes[type] : 0;
}

/* gcc also makes a version for AVX2, which the dynamic loader chooses. Sanitizers' own calls come before it does. */
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif
#define INLINE static inline __attribute__((always_inline)) // into every version of a caller

/* ---- writing ------------------------------------------------------------------- */

/* Eight numbers at a time, where the processor converts them itself; returns how many are done. It keeps a nan's
 * payload, f16_from_f32() does not. */
#if defined(__x86_64__)
__attribute__((target("avx2,f16c"))) static int narrow_by_f16c(uint16_t *to, const float *x, int n)
{
    const __m128i nan = _mm_set1_epi16(0x7e00), sign = _mm_set1_epi16(-0x8000), inf = _mm_set1_epi16(0x7c00);
    int i = 0;

    for (; i + 8 <= n; i += 8) {
        __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
        __m128i is_nan = _mm_cmpgt_epi16(_mm_andnot_si128(sign, h), inf);
        h = _mm_blendv_epi8(h, _mm_or_si128(_mm_and_si128(h, sign), nan), is_nan);
        _mm_storeu_si128((__m128i *)(to + i), h);
    }
    return i;
}

static int narrow_f16_fast(uint16_t *to, const float *x, int n)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") ? narrow_by_f16c(to, x, n) : 0;
}
#else
static int narrow_f16_fast(uint16_t *to, const float *x, int n)
{
    return (void)to, (void)x, (void)n, 0;
}
#endif

/* bf16_from_f32() of all numbers; a row without nan needs no condition for each. */
INLINE void narrow_bf16(uint16_t *to, const float *x, int n)
{
    uint32_t largest = 0;

    for (int i = 0; i < n; i++) {
        uint32_t u = half_bits(x[i]), magnitude = u & 0x7fffffff;
        largest = magnitude > largest ? magnitude : largest;
        to[i] = (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
    for (int i = 0; i < n && largest > 0x7f800000; i++)
        to[i] = bf16_from_f32(x[i]);
}

INLINE void narrow(void *to, int type, const float *x, int n)
{
    if (type == EVICPRESS_BF16)
        narrow_bf16(to, x, n);
    else if (type == EVICPRESS_F16)
        for (int i = narrow_f16_fast(to, x, n); i < n; i++)
            ((uint16_t *)to)[i] = f16_from_f32(x[i]);
    else if (type == EVICPRESS_F32)
        memcpy(to, x, (size_t)n * sizeof(*x));
    else
        for (int i = 0; i < n; i++)
            ((uint8_t *)to)[i] = e4m3_from_f32(x[i]);
}

/* Writes numbers of the sink's type `stride` numbers apart. */
static void scatter(char *to, int64_t stride, const char *x, size_t size, int n)
{
    for (int i = 0; i < n; i++)
        memcpy(to + (size_t)i * (size_t)stride * size, x + (size_t)i * size, size);
}

/* A row's place in the buffer. What comes two rows later is fetched into the cache: rows of a head may be pages apart,
 * where the processor does not foresee it, and a store waits for the memory that it is to change. */
INLINE char *place_row(const struct row_sink *sink, int64_t row, size_t size)
{
    size_t stride = (size_t)sink->row_stride * size, bytes = (size_t)sink->columns * size;
    char *to = sink->to + (size_t)row * stride;

    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const void *)((uintptr_t)to + 2 * stride + i), 1);
    return to;
}

INLINE void put_row(const struct row_sink *sink, int64_t row, const float *x)
{
    size_t size = row_type_bytes(sink->type);
    char *to = place_row(sink, row, size);
    float turned[ROW_COLUMNS], narrowed[ROW_COLUMNS];

    if (sink->source) {
        for (int i = 0; i < sink->columns; i++)
            turned[i] = x[sink->source[i]];
        x = turned;
    }
    narrow(sink->column_stride == 1 ? (void *)to : narrowed, sink->type, x, sink->columns);
    if (sink->column_stride != 1)
        scatter(to, sink->column_stride, (const char *)narrowed, size, sink->columns);
}

WIDE void row_sink_bf16(const struct row_sink *sink, int64_t first, int64_t n, const void *x)
{
    size_t columns = (size_t)sink->columns, bytes = columns * sizeof(uint16_t);
    bool copy = sink->type == EVICPRESS_BF16 && sink->column_stride == 1 && !sink->source;
    uint16_t row[ROW_COLUMNS];
    float wide[ROW_COLUMNS];

    for (int64_t i = 0; i < n; i++) {
        const char *at = (const char *)x + (size_t)i * bytes;
        if (copy) {
            memcpy(place_row(sink, first + i, sizeof(uint16_t)), at, bytes);
            continue;
        }
        memcpy(row, at, bytes);
        for (size_t c = 0; c < columns; c++)
            wide[c] = bf16_to_f32(row[c]);
        put_row(sink, first + i, wide);
    }
}

/* ---- decoding ------------------------------------------------------------------ */

enum { BLOCK = 16 }; // words of a column to read at a time: a cache line

/* Words [first, first + n) of all columns, word by word. */
static void turn_words(uint32_t *word, const struct row_codes *c, int64_t first, int n, int columns)
{
    int64_t words = c->n_rows * c->bits / 32;

    for (int k = 0; k < columns; k++)
        for (int w = 0; w < n; w++)
            word[w * columns + k] = c->codes[k * words + first + w];
}

static void read_scales(float *scale, float *zero, const struct row_codes *c, int64_t group, int columns)
{
    int64_t groups = c->n_rows / c->group;

    for (int k = 0; k < columns; k++) {
        scale[k] = f16_to_f32(c->scales[k * groups + group]);
        zero[k] = f16_to_f32(c->zeros[k * groups + group]);
    }
}

WIDE void row_sink_keys(const struct row_sink *sink, const struct row_codes *c, const struct row_span *span)
{
    int K = sink->columns, per_word = 32 / c->bits;
    int64_t words = c->n_rows / per_word;
    float x[ROW_COLUMNS], scale[ROW_COLUMNS], zero[ROW_COLUMNS];
    uint32_t word[BLOCK * ROW_COLUMNS], mask = (1u << c->bits) - 1;

    for (int64_t first = 0; first < words; first += BLOCK) {
        int n = words - first < BLOCK ? (int)(words - first) : BLOCK;
        turn_words(word, c, first, n, K);
        for (int64_t row = first * per_word; row < (first + n) * per_word; row++) {
            const uint32_t *from = word + (row / per_word - first) * K;
            int shift = (int)(row % per_word) * c->bits;
            if (row % c->group == 0)
                read_scales(scale, zero, c, row / c->group, K);
            if (row < span->skip || row >= span->skip + span->n)
                continue;
            for (int k = 0; k < K; k++)
                x[k] = (float)(int32_t)(from[k] >> shift & mask) * scale[k] + zero[k];
            put_row(sink, span->first + row - span->skip, x);
        }
    }
}

typedef uint32_t lanes __attribute__((vector_size(32))); // eight numbers; in halves without AVX2

/* n words of one group. `bits` is a constant where this is called: 2 or 4. by: scale and zero. */
INLINE void decode_words(float *x, const uint32_t *word, int n, int bits, const float by[2])
{
    const lanes shift = { 0, 1, 2, 3, 4, 5, 6, 7 };

    for (int w = 0; w < n; w++)
        for (int first = 0; first < 32; first += 8 * bits, x += 8) {
            const lanes all = (word[w] >> first) - (lanes){ 0 },
                        codes = all >> (shift * (uint32_t)bits) & ((1u << bits) - 1);
            for (int i = 0; i < 8; i++)
                x[i] = (float)(int32_t)codes[i] * by[0] + by[1];
        }
}

INLINE void decode_bytes(float *x, const uint8_t *code, int n, const float by[2])
{
    for (int i = 0; i < n; i++)
        x[i] = (float)code[i] * by[0] + by[1];
}

/* Scales and zeros of the rows from `row` on. */
INLINE void read_row_scales(float *scale, float *zero, const struct row_codes *c, int64_t row, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        scale[i] = f16_to_f32(c->scales[row + i]);
        zero[i] = f16_to_f32(c->zeros[row + i]);
    }
}

WIDE void row_sink_values(const struct row_sink *sink, const struct row_codes *c, const struct row_span *span)
{
    int K = sink->columns, words = c->group * c->bits / 32, groups = K / c->group, at_once = ROW_COLUMNS / groups;
    float x[ROW_COLUMNS], scale[ROW_COLUMNS], zero[ROW_COLUMNS];

    for (int64_t i = 0; i < span->n; i++) {
        const uint32_t *word = c->codes + (span->skip + i) * groups * words;
        const int64_t left = span->n - i, first = i % at_once * groups;
        if (first == 0)
            read_row_scales(scale, zero, c, (span->skip + i) * groups, (left < at_once ? left : at_once) * groups);
        for (int g = 0; g < groups; g++, word += words) {
            const float by[] = { scale[first + g], zero[first + g] };
            if (c->bits == 8)
                decode_bytes(x + g * c->group, (const uint8_t *)word, c->group, by);
            else if (c->bits == 4)
                decode_words(x + g * c->group, word, words, 4, by);
            else
                decode_words(x + g * c->group, word, words, 2, by);
        }
        put_row(sink, span->first + i, x);
    }
}

void row_sink_symbols(const struct row_sink *sink, const struct row_symbols *s, const struct row_span *span)
{
    float x[ROW_COLUMNS];

    for (int64_t row = span->skip; row < span->skip + span->n; row++) {
        cachegen_row(x, s->symbol + row * sink->columns, sink->columns, s->steps, bf16_to_f32(s->max[row]));
        put_row(sink, span->first + row - span->skip, x);
    }
}

WIDE void row_sink_rows(const struct row_sink *sink, const struct quant_row *q, const struct quant_at *at,
                        const struct row_span *span)
{
    float x[2 * ROW_COLUMNS];

    for (int64_t i = 0; i < span->n; i++) {
        const struct quant_at row = quant_row_at(q, at, (size_t)(span->skip + i));
        quant_row_unpack(q, &row, x);
        put_row(sink, span->first + i, x);
    }
}
