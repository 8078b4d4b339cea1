/* packed.c - codes to numbers, a tile at a time: codes to bytes, bytes to numbers group by group, then rounding.
 *
 * The tile of a format that packs across rows has the height of a line of the cache, so that every line is read once.
 */
#include "engine/model/packed.h"

#include "codes/half.h"

#include <string.h>

enum { LINE = 64 }; // bytes

static const uint8_t awq_place[8] = { 0, 4, 1, 5, 2, 6, 3, 7 }; // of a row in its word

/* Numbers in another order, not codes. */
static bool is_plain(const struct packed *p)
{
    return p->type == WEIGHT_F32 || p->type == WEIGHT_F16 || p->type == WEIGHT_BF16;
}

int packed_tile_rows(const struct packed *p)
{
    if (is_plain(p))
        return LINE / 4;
    return p->type == WEIGHT_AWQ ? LINE * 2 : p->type == WEIGHT_GPTQ ? LINE / 4 : 1;
}

/* ---- codes to bytes ------------------------------------------------------ */

static uint32_t word_at(const uint8_t *p, int64_t i)
{
    uint32_t u;

    memcpy(&u, p + 4 * i, sizeof(u));
    return u;
}

/* Eight codes of 4 bits, a byte each, the lowest first. */
static inline uint64_t spread(uint64_t x)
{
    x = (x | x << 16) & 0x0000ffff0000ffff;
    x = (x | x << 8) & 0x00ff00ff00ff00ff;
    return (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
}

static void gptq_bytes(const struct packed *p, struct packed_tile t, uint8_t *to)
{
    const int per_word = 32 / p->bits;

    for (int c = 0; c < t.n_cols; c += per_word)
        for (int r = 0; r < t.n_rows; r++) {
            uint32_t word = word_at(p->codes, (t.col + c) / per_word * p->rows + t.row + r);
            uint64_t eight = spread(word);
            memcpy(to + r * t.n_cols + c, p->bits == 4 ? (void *)&eight : &word, (size_t)per_word);
        }
}

/* Byte j of x[i] becomes byte i of x[j]: blocks of 4, of 2, of 1 change places. */
static inline void transpose(uint64_t x[8])
{
    static const uint64_t low[3] = { 0x00000000ffffffff, 0x0000ffff0000ffff, 0x00ff00ff00ff00ff };

    for (int step = 0, size = 4; step < 3; step++, size /= 2)
        for (int i = 0; i < 8; i++)
            if (!(i & size)) {
                uint64_t swapped = (x[i] >> 8 * size ^ x[i + size]) & low[step];
                x[i] ^= swapped << 8 * size;
                x[i + size] ^= swapped;
            }
}

static void awq_bytes(const struct packed *p, struct packed_tile t, uint8_t *to)
{
    for (int c = 0; c < t.n_cols; c += 8)
        for (int r = 0; r < t.n_rows; r += 8) {
            uint64_t x[8]; // a column of 8 rows
            for (int i = 0; i < 8; i++)
                x[i] = spread(word_at(p->codes, ((t.col + c + i) * p->rows + t.row + r) / 8));
            transpose(x);
            for (int i = 0; i < 8; i++)
                memcpy(to + (r + i) * t.n_cols + c, &x[awq_place[i]], sizeof(x[i]));
        }
}

/* Asks for the lines of the next tile of these rows: each lies on a page of its own, which no CPU foresees. */
static void ask_for_next(const struct packed *p, struct packed_tile t)
{
    const int step = p->type == WEIGHT_AWQ ? 1 : 32 / p->bits, shift = p->type == WEIGHT_AWQ ? p->bits : 32;

    for (int64_t c = t.col + t.n_cols; c < p->cols && c < t.col + 2 * t.n_cols; c += step)
        __builtin_prefetch(p->codes + (c / step * p->rows + t.row) * shift / 8);
}

/* The codes of a tile, (t.n_rows, t.n_cols); in the file if they are there as bytes, or in `space`. */
static const uint8_t *tile_bytes(const struct packed *p, struct packed_tile t, uint8_t *space)
{
    const uint8_t *codes = p->codes + (t.row * p->cols + t.col) * p->bits / 8;

    if (packed_tile_rows(p) > 1)
        ask_for_next(p, t);
    if (p->type == WEIGHT_GPTQ)
        gptq_bytes(p, t, space);
    else if (p->type == WEIGHT_AWQ)
        awq_bytes(p, t, space);
    else if (p->bits == 8)
        return codes;
    else
        for (int c = 0; c < t.n_cols; c += 2) {
            space[c] = codes[c / 2] & 15;
            space[c + 1] = codes[c / 2] >> 4;
        }
    return space;
}

/* ---- scales and zeros ---------------------------------------------------- */

/* A power of two, 2^(e - 127), or nan (OCP Microscaling Formats 1.0). */
static float e8m0_to_f32(uint8_t e)
{
    return half_float(e == 255 ? 0x7fc00000 : e == 0 ? 0x00400000 : (uint32_t)e << 23);
}

static float scale_at(const struct packed *p, int64_t row, int64_t group)
{
    const int64_t i = row / p->block_rows * p->scale_row + group * p->scale_group;
    uint16_t half;
    float x;

    switch (p->scale_type) {
    case ST_F32: memcpy(&x, p->scale + 4 * i, sizeof(x)); return x;
    case ST_F16: memcpy(&half, p->scale + 2 * i, sizeof(half)); return f16_to_f32(half);
    case ST_BF16: memcpy(&half, p->scale + 2 * i, sizeof(half)); return bf16_to_f32(half);
    case ST_F8_E4M3: return e4m3_to_f32(p->scale[i]) * p->factor / p->divisor;
    default: return e8m0_to_f32(p->scale[i]);
    }
}

static float zero_at(const struct packed *p, int64_t row, int64_t group)
{
    const int64_t per_word = 32 / p->bits;

    if (!p->zeros)
        return (float)p->zero;
    int64_t i = group * p->rows + row;
    if (p->type == WEIGHT_AWQ)
        i += awq_place[row % 8] - row % 8;
    else if (p->type == WEIGHT_INT)
        i = (row / per_word * p->n_groups + group) * per_word + row % per_word;
    return (float)((p->zeros[i * p->bits / 8] >> i * p->bits % 8 & ((1 << p->bits) - 1)) + p->zero);
}

/* ---- bytes to numbers ---------------------------------------------------- */

/* To the nearest f16, without branches; f16_from_f32() has some. What is not finite in f16 becomes infinite. */
static inline float rounded_f16(float x)
{
    uint32_t u = half_bits(x), magnitude = u & 0x7fffffff;
    uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1)) & ~0x1fffu;
    uint32_t small = half_bits(half_float(magnitude) + 0.5f - 0.5f); // below 2^-14 the last bit is 2^-24

    normal = magnitude < 0x38800000 ? small : normal;
    return half_float((normal >= 0x47800000 ? 0x7f800000 : normal) | (u & 0x80000000));
}

static void round_to(enum st_type type, float *x, int n)
{
    if (type == ST_F16)
        for (int i = 0; i < n; i++)
            x[i] = rounded_f16(x[i]);
    else if (type == ST_BF16)
        for (int i = 0; i < n; i++)
            x[i] = bf16_to_f32(bf16_from_f32(x[i]));
}

/* What codes of a group have in common. */
struct line {
    float zero, scale;
};

static struct line line_at(const struct packed *p, int64_t row, int64_t group)
{
    return (struct line){ zero_at(p, row, group), scale_at(p, row, group) };
}

/* n numbers of one group. */
static void values(const struct packed *p, struct line x, const uint8_t *codes, int n, float *to)
{
    static const float e2m1[16] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6 };

    if (p->type == WEIGHT_FP8)
        for (int i = 0; i < n; i++)
            to[i] = e4m3_to_f32(codes[i]) * x.scale;
    else if (p->type == WEIGHT_MXFP4_ROWS || p->type == WEIGHT_NVFP4)
        for (int i = 0; i < n; i++)
            to[i] = e2m1[codes[i]] * x.scale;
    else if (p->type == WEIGHT_INT8)
        for (int i = 0; i < n; i++)
            to[i] = (float)(int8_t)codes[i] * x.scale;
    else
        for (int i = 0; i < n; i++)
            to[i] = ((float)codes[i] - x.zero) * x.scale;
    round_to(p->scale_type, to, n);
}

/* The same; of many codes of 4 bits by a table of the 16 numbers. */
static void group_values(const struct packed *p, struct line x, const uint8_t *codes, int n, float *to)
{
    static const uint8_t all[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    float number[16];

    if (p->bits == 8 || n <= 16) {
        values(p, x, codes, n, to);
        return;
    }
    values(p, x, all, 16, number);
    for (int i = 0; i < n; i++)
        to[i] = number[codes[i]];
}

/* A row of integers whose columns are of any group. */
static void shuffled_row(const struct packed *p, struct packed_tile t, const uint8_t *codes, float *to)
{
    struct line line[PACKED_GROUPS];

    for (int g = 0; g < p->n_groups; g++)
        line[g] = line_at(p, t.row, g);
    for (int c = 0; c < t.n_cols; c++) {
        struct line x = line[word_at(p->group, t.col + c)];
        to[c] = ((float)codes[c] - x.zero) * x.scale;
    }
    round_to(p->scale_type, to, t.n_cols);
}

static void plain_row(const struct packed *p, struct packed_tile t, const uint8_t *codes, float *to)
{
    for (int c = 0, n; c < t.n_cols; c += n) {
        int64_t group = (t.col + c) / p->block_cols, left = (group + 1) * p->block_cols - t.col - c;
        n = left < t.n_cols - c ? (int)left : t.n_cols - c;
        group_values(p, line_at(p, t.row, group), codes + c, n, to + c);
    }
}

static void plain_tile(const struct packed *p, struct packed_tile t, float *to)
{
    for (int r = 0; r < t.n_rows; r++) {
        const int64_t row = t.row + r, at = p->first + row / p->rows * p->matrix + row % p->rows * p->row;
        for (int c = 0; c < t.n_cols; c++)
            dequant(p->type, p->codes + (at + (t.col + c) * p->col) * (int64_t)weight_block_bytes(p->type), 1, to++);
    }
}

void packed_read(const struct packed *p, struct packed_tile t, float *to)
{
    if (is_plain(p)) {
        plain_tile(p, t, to);
        return;
    }
    if (p->every)
        t.row = p->first + p->every * t.row;
    uint8_t space[PACKED_TILE];
    const uint8_t *codes = tile_bytes(p, t, space);

    for (int r = 0; r < t.n_rows; r++, t.row++, codes += t.n_cols, to += t.n_cols)
        (p->group ? shuffled_row : plain_row)(p, t, codes, to);
}
