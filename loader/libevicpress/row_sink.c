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

enum { F32_INF = 0x7f800000 };

/* Eight numbers at a time, where the processor converts them itself. Returns how many are done: none of a row with a
 * nan, whose payload it would keep. */
#if defined(__x86_64__)
__attribute__((target("avx2,f16c"))) static int narrow_by_f16c(uint16_t *to, const float *x, int n)
{
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff), inf = _mm256_set1_epi32(F32_INF);
    __m256i largest = inf;
    int i = 0;

    for (; i + 8 <= n; i += 8) {
        __m256 u = _mm256_loadu_ps(x + i);
        largest = _mm256_max_epi32(largest, _mm256_and_si256(_mm256_castps_si256(u), magnitude));
        _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(u, _MM_FROUND_TO_NEAREST_INT));
    }
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(largest, inf)) ? 0 : i;
}

static int narrow_f16_fast(uint16_t *to, const float *x, int n)
{
    return __builtin_cpu_supports("avx2") ? narrow_by_f16c(to, x, n) : 0; // every processor with AVX2 has F16C
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
    for (int i = 0; i < n && largest > F32_INF; i++)
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

/* Whole cache lines, past the cache. Returns false if they are not. */
INLINE bool write_past(char *to, const char *x, size_t bytes)
{
#if defined(__x86_64__)
    bool lines = ((uintptr_t)to | bytes) % 64 == 0;

    for (size_t i = 0; i < bytes && lines; i += 64)
        for (size_t part = i; part < i + 64; part += 16)
            _mm_stream_si128((__m128i *)(to + part), _mm_loadu_si128((const __m128i *)(x + part)));
    return lines;
#else
    return (void)to, (void)x, (void)bytes, false;
#endif
}

/* Writes a row of the sink's type. Rows of a head may be pages apart, where the processor does not foresee the next
 * one, and a store waits for the memory that it is to change. So they go past the cache, or what comes two rows later
 * is fetched into it. */
INLINE void write_row(const struct row_sink *sink, int64_t row, const char *x)
{
    size_t size = row_type_bytes(sink->type), stride = (size_t)sink->row_stride * size;
    size_t bytes = (size_t)sink->columns * size, step = (size_t)sink->column_stride * size;
    char *to = sink->to + (size_t)row * stride;

    if (sink->column_stride != 1) {
        for (int i = 0; i < sink->columns; i++, to += step, x += size)
            memcpy(to, x, size);
    } else if (!write_past(to, x, bytes)) {
        for (size_t i = 0; i < bytes; i += 64)
            __builtin_prefetch((const void *)((uintptr_t)to + 2 * stride + i), 1);
        memcpy(to, x, bytes);
    }
}

INLINE void put_row(const struct row_sink *sink, int64_t row, const float *x)
{
    float turned[ROW_COLUMNS], narrowed[ROW_COLUMNS];

    if (sink->source) {
        for (int i = 0; i < sink->columns; i++)
            turned[i] = x[sink->source[i]];
        x = turned;
    }
    narrow(narrowed, sink->type, x, sink->columns);
    write_row(sink, row, (const char *)narrowed);
}

/* bf16 as f16: exact, a shift, if all are normal numbers in f16. Returns false if they are not. */
INLINE bool shift_to_f16(uint16_t *to, const uint16_t *x, int n)
{
    const uint16_t least = 0x3880, end = 0x4780; // 2^-14, 2^16
    uint16_t largest = 0;

    for (int i = 0; i < n; i++) {
        uint16_t magnitude = x[i] & 0x7fff, above = (uint16_t)(magnitude - least);
        largest = above > largest ? above : largest;
        to[i] = (uint16_t)((x[i] & 0x8000) | ((above << 3) + 0x400));
    }
    return largest < end - least;
}

void row_sink_end(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

WIDE void row_sink_bf16(const struct row_sink *sink, int64_t first, int64_t n, const uint16_t *x)
{
    int same = sink->source ? EVICPRESS_F32 : sink->type; // as which rows need no f32 between
    uint16_t half[ROW_COLUMNS];
    float wide[ROW_COLUMNS];

    for (int64_t row = first; row < first + n; row++, x += sink->columns) {
        if (same == EVICPRESS_BF16)
            write_row(sink, row, (const char *)x);
        else if (same == EVICPRESS_F16 && shift_to_f16(half, x, sink->columns))
            write_row(sink, row, (const char *)half);
        else {
            for (int k = 0; k < sink->columns; k++)
                wide[k] = bf16_to_f32(x[k]);
            put_row(sink, row, wide);
        }
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

/* n numbers of a tensor in f16, `stride` apart. */
INLINE void read_halves(float *x, const uint16_t *from, int64_t stride, int n)
{
    uint16_t half[ROW_COLUMNS];

    for (int i = 0; i < n; i++)
        half[i] = from[i * stride];
    for (int i = 0; i < n; i++)
        x[i] = f16_to_f32(half[i]);
}

typedef uint32_t lanes __attribute__((vector_size(32))); // eight numbers; in halves without AVX2
typedef int32_t signed_lanes __attribute__((vector_size(32)));
typedef float floats __attribute__((vector_size(32)));

/* The rows (32 / bits, K) of one word of each column. by: scales and zeros (K). */
INLINE void decode_columns(float *x, const uint32_t *word, int K, int bits, const float *const by[2])
{
    for (int k = 0; k < K; k += 8) {
        lanes code;
        floats scale, zero;
        memcpy(&code, word + k, sizeof(code));
        memcpy(&scale, by[0] + k, sizeof(scale));
        memcpy(&zero, by[1] + k, sizeof(zero));
        for (int row = 0; row < 32 / bits; row++, code >>= bits) {
            const lanes one = code & ((1u << bits) - 1);
            const floats eight = __builtin_convertvector((signed_lanes)one, floats) * scale + zero;
            memcpy(x + row * K + k, &eight, sizeof(eight));
        }
    }
}

WIDE void row_sink_keys(const struct row_sink *sink, const struct row_codes *c, const struct row_span *span)
{
    int K = sink->columns, per_word = 32 / c->bits;
    int64_t words = c->n_rows / per_word, groups = c->n_rows / c->group;
    float x[16 * ROW_COLUMNS], scale[ROW_COLUMNS], zero[ROW_COLUMNS]; // of 2 bits a word has 16 codes
    uint32_t word[BLOCK * ROW_COLUMNS];

    for (int64_t w = 0; w < words; w++) {
        const int64_t row = w * per_word - span->skip, left = words - w;
        if (w % BLOCK == 0)
            turn_words(word, c, w, left < BLOCK ? (int)left : BLOCK, K);
        if (w * per_word % c->group == 0) {
            read_halves(scale, c->scales + w * per_word / c->group, groups, K);
            read_halves(zero, c->zeros + w * per_word / c->group, groups, K);
        }
        decode_columns(x, word + w % BLOCK * K, K, c->bits, (const float *[]){ scale, zero });
        for (int i = 0; i < per_word; i++)
            if (row + i >= 0 && row + i < span->n)
                put_row(sink, span->first + row + i, x + i * K);
    }
}

/* n words of one group. `bits` is a constant where this is called: 2 or 4. by: scale and zero. */
INLINE void decode_words(float *x, const uint32_t *word, int n, int bits, const float by[2])
{
    const lanes shift = { 0, 1, 2, 3, 4, 5, 6, 7 };

    for (int w = 0; w < n; w++)
        for (int first = 0; first < 32; first += 8 * bits, x += 8) {
            const lanes all = (word[w] >> first) - (lanes){ 0 };
            const lanes code = all >> (shift * (uint32_t)bits) & ((1u << bits) - 1);
            const floats eight = __builtin_convertvector((signed_lanes)code, floats) * by[0] + by[1];
            memcpy(x, &eight, sizeof(eight));
        }
}

INLINE void decode_bytes(float *x, const uint8_t *code, int n, const float by[2])
{
    for (int i = 0; i < n; i++)
        x[i] = (float)code[i] * by[0] + by[1];
}

WIDE void row_sink_values(const struct row_sink *sink, const struct row_codes *c, const struct row_span *span)
{
    int K = sink->columns, words = c->group * c->bits / 32, groups = K / c->group, at_once = ROW_COLUMNS / groups;
    float x[ROW_COLUMNS], scale[ROW_COLUMNS], zero[ROW_COLUMNS];

    for (int64_t i = 0; i < span->n; i++) {
        const uint32_t *word = c->codes + (span->skip + i) * groups * words;
        const int64_t left = span->n - i, first = i % at_once * groups;
        if (first == 0) {
            const int n = (int)(left < at_once ? left : at_once) * groups;
            read_halves(scale, c->scales + (span->skip + i) * groups, 1, n);
            read_halves(zero, c->zeros + (span->skip + i) * groups, 1, n);
        }
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
