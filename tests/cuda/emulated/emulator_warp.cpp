/* emulator_warp.cpp - what a warp computes together: shuffles, votes, reductions, ldmatrix, mma; and f16.
 *
 * Not their synchronisation: a combine() here runs once per operation, when all lanes of its mask have come.
 */
#include <cuda_primitives.h>

namespace emu
{

static bool takes_part(const struct warp_words *w, int lane)
{
    return w->mask >> lane & 1;
}

static void nothing(struct warp_words *)
{
}

static void shuffle_words(struct warp_words *w)
{
    for (int l = 0; l < 32; l++)
        if (takes_part(w, l))
            for (int i = 0; i < 2; i++)
                w->out[l][i] = w->in[w->in[l][2] & 31][i];
}

static void to_all(struct warp_words *w, uint32_t word)
{
    for (int l = 0; l < 32; l++)
        if (takes_part(w, l))
            w->out[l][0] = word;
}

static void ballot(struct warp_words *w)
{
    uint32_t lanes = 0;

    for (int l = 0; l < 32; l++)
        if (takes_part(w, l) && w->in[l][0])
            lanes |= 1u << l;
    to_all(w, lanes);
}

static void match(struct warp_words *w)
{
    for (int l = 0; l < 32; l++) {
        uint32_t lanes = 0;
        for (int m = 0; m < 32; m++)
            if (takes_part(w, m) && w->in[m][0] == w->in[l][0])
                lanes |= 1u << m;
        w->out[l][0] = lanes;
    }
}

template <class F> static void reduce(struct warp_words *w, F of_two)
{
    bool first = true;
    uint32_t word = 0;

    for (int l = 0; l < 32; l++) {
        if (!takes_part(w, l))
            continue;
        word = first ? w->in[l][0] : of_two(word, w->in[l][0]);
        first = false;
    }
    to_all(w, word);
}

static void add_all(struct warp_words *w)
{
    reduce(w, [](uint32_t a, uint32_t b) { return a + b; });
}
static void min_all(struct warp_words *w)
{
    reduce(w, [](uint32_t a, uint32_t b) { return a < b ? a : b; });
}
static void max_all(struct warp_words *w)
{
    reduce(w, [](uint32_t a, uint32_t b) { return a > b ? a : b; });
}
static void and_all(struct warp_words *w)
{
    reduce(w, [](uint32_t a, uint32_t b) { return a & b; });
}
static void or_all(struct warp_words *w)
{
    reduce(w, [](uint32_t a, uint32_t b) { return a | b; });
}
static void xor_all(struct warp_words *w)
{
    reduce(w, [](uint32_t a, uint32_t b) { return a ^ b; });
}

/* Number i of two in a word. */
static uint16_t half_of(uint32_t word, int i)
{
    return (uint16_t)(word >> 16 * i);
}

/* Lane 8 m + i brought row i of matrix m. */
static void load_matrices(struct warp_words *w, bool transposed)
{
    for (int l = 0; l < 32; l++)
        for (int m = 0; m < 4; m++) {
            uint16_t numbers[2];
            for (int j = 0; j < 2; j++) {
                int row = transposed ? 2 * (l % 4) + j : l / 4, column = transposed ? l / 4 : 2 * (l % 4) + j;
                numbers[j] = half_of(w->in[8 * m + row][column / 2], column % 2);
            }
            w->out[l][m] = numbers[0] | (uint32_t)numbers[1] << 16;
        }
}
static void ldmatrix(struct warp_words *w)
{
    load_matrices(w, false);
}
static void ldmatrix_transposed(struct warp_words *w)
{
    load_matrices(w, true);
}

static void mma(struct warp_words *w)
{
    float a[16][16], b[16][8], d[16][8];

    for (int l = 0; l < 32; l++) {
        int g = l / 4, t = l % 4;
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 2; j++)
                a[g + 8 * (i & 1)][2 * t + j + 8 * (i >> 1)] = bf16_to_float(half_of(w->in[l][i], j));
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++)
                b[2 * t + j + 8 * i][g] = bf16_to_float(half_of(w->in[l][4 + i], j));
        for (int i = 0; i < 4; i++)
            d[g + 8 * (i >> 1)][2 * t + (i & 1)] = __uint_as_float(w->in[l][6 + i]);
    }
    for (int row = 0; row < 16; row++)
        for (int k = 0; k < 16; k++)
            for (int column = 0; column < 8; column++)
                d[row][column] += a[row][k] * b[k][column];
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++)
            w->out[l][i] = __float_as_uint(d[l / 4 + 8 * (i >> 1)][2 * (l % 4) + (i & 1)]);
}

const struct warp_op op_syncwarp = { "__syncwarp", nothing }, op_shuffle = { "__shfl_sync", shuffle_words },
                     op_shuffle_xor = { "__shfl_xor_sync", shuffle_words },
                     op_shuffle_down = { "__shfl_down_sync", shuffle_words },
                     op_shuffle_up = { "__shfl_up_sync", shuffle_words }, op_ballot = { "a ballot", ballot },
                     op_match = { "__match_any_sync", match }, op_add = { "__reduce_add_sync", add_all },
                     op_min = { "__reduce_min_sync", min_all }, op_max = { "__reduce_max_sync", max_all },
                     op_and = { "__reduce_and_sync", and_all }, op_or = { "__reduce_or_sync", or_all },
                     op_xor = { "__reduce_xor_sync", xor_all }, op_ldmatrix = { "ldmatrix_x4", ldmatrix },
                     op_ldmatrix_transposed = { "ldmatrix_x4 transposed", ldmatrix_transposed },
                     op_mma_bf16 = { "mma_bf16", mma };

/* ---- f16 ----------------------------------------------------------------- */

float f16_to_float(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, exponent = x >> 10 & 31, fraction = x & 1023;

    if (exponent == 31)
        return __uint_as_float(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0)
        return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
    return __uint_as_float(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t float_to_f16(float x)
{
    uint16_t sign = (uint16_t)(__float_as_uint(x) >> 16 & 0x8000);
    float size = fabsf(x);

    if (x != x)
        return 0x7fff;
    if (size >= 65520)
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x1p-14f)
        return (uint16_t)(sign | (unsigned)rintf(size * 0x1p24f));
    uint32_t word = __float_as_uint(size);
    word += 0xfff + (word >> 13 & 1);
    return (uint16_t)(sign | ((word >> 13) - (112 << 10)));
}

} // namespace emu
