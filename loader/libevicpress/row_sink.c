/* row_sink.c - the arithmetic of evp_fetch_rows(). Inner loops run over the columns of a row, so that the compiler
 * vectorises them. */
#include "loader/libevicpress/row_sink.h"

#include "base/half.h"
#include "loader/libevicpress/evicpress.h"

#include <stdbool.h>
#include <string.h>

size_t row_type_bytes(int type)
{
    static const size_t bytes[] = {
        [EVICPRESS_BF16] = 2, [EVICPRESS_F16] = 2, [EVICPRESS_F32] = 4, [EVICPRESS_E4M3] = 1
    };

    return type >= 0 && type < (int)(sizeof(bytes) / sizeof(*bytes)) ? bytes[type] : 0;
}

/* ---- writing ------------------------------------------------------------------- */

static void narrow(void *to, int type, const float *x, int n)
{
    if (type == EVICPRESS_BF16)
        for (int i = 0; i < n; i++)
            ((uint16_t *)to)[i] = bf16_from_f32(x[i]);
    else if (type == EVICPRESS_F16)
        for (int i = 0; i < n; i++)
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

static void put_row(const struct row_sink *sink, int64_t row, const float *x)
{
    size_t size = row_type_bytes(sink->type);
    char *to = sink->to + (size_t)(row * sink->row_stride) * size;
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

void row_sink_bf16(const struct row_sink *sink, int64_t first, int64_t n, const void *x)
{
    size_t columns = (size_t)sink->columns, bytes = columns * sizeof(uint16_t);
    bool copy = sink->type == EVICPRESS_BF16 && sink->column_stride == 1 && !sink->source;
    uint16_t row[ROW_COLUMNS];
    float wide[ROW_COLUMNS];

    for (int64_t i = 0; i < n; i++) {
        const char *at = (const char *)x + (size_t)i * bytes;
        if (copy) {
            memcpy(sink->to + (size_t)((first + i) * sink->row_stride) * sizeof(uint16_t), at, bytes);
            continue;
        }
        memcpy(row, at, bytes);
        for (size_t c = 0; c < columns; c++)
            wide[c] = bf16_to_f32(row[c]);
        put_row(sink, first + i, wide);
    }
}

/* ---- decoding ------------------------------------------------------------------ */

void row_sink_keys(const struct row_sink *sink, const struct row_codes *c, const struct row_span *span)
{
    int K = sink->columns, per_word = 32 / c->bits;
    int64_t words = c->n_rows / per_word, groups = c->n_rows / c->group, group = -1;
    float x[ROW_COLUMNS], scale[ROW_COLUMNS], zero[ROW_COLUMNS];
    uint32_t word[ROW_COLUMNS], mask = (1u << c->bits) - 1;

    for (int64_t row = span->skip; row < span->skip + span->n; row++) {
        if (row / c->group != group) {
            group = row / c->group;
            for (int k = 0; k < K; k++) {
                scale[k] = f16_to_f32(c->scales[k * groups + group]);
                zero[k] = f16_to_f32(c->zeros[k * groups + group]);
            }
        }
        if (row == span->skip || row % per_word == 0)
            for (int k = 0; k < K; k++)
                word[k] = c->codes[k * words + row / per_word];
        int shift = (int)(row % per_word) * c->bits;
        for (int k = 0; k < K; k++)
            x[k] = (float)(int32_t)(word[k] >> shift & mask) * scale[k] + zero[k];
        put_row(sink, span->first + row - span->skip, x);
    }
}

void row_sink_values(const struct row_sink *sink, const struct row_codes *c, const struct row_span *span)
{
    int K = sink->columns, per_word = 32 / c->bits, words = c->group / per_word, groups = K / c->group;
    float x[ROW_COLUMNS];
    uint32_t mask = (1u << c->bits) - 1;

    for (int64_t row = span->skip; row < span->skip + span->n; row++) {
        const uint32_t *word = c->codes + row * (K / per_word);
        for (int g = 0; g < groups; g++) {
            float scale = f16_to_f32(c->scales[row * groups + g]), zero = f16_to_f32(c->zeros[row * groups + g]);
            float *to = x + g * c->group;
            for (int w = 0; w < words; w++, word++)
                for (int i = 0; i < per_word; i++)
                    *to++ = (float)(int32_t)(*word >> i * c->bits & mask) * scale + zero;
        }
        put_row(sink, span->first + row - span->skip, x);
    }
}
