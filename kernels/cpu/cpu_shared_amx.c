/* cpu_shared_amx.c - attention in bf16 by the tiles of AMX: of rows that share their keys, and of the rows of a text.
 *
 * A tile register has 16 rows of 64 bytes; one product adds to 16 x 16 sums what 32 columns of the left side and 32
 * rows of the right side give, the rows of the right side in pairs. So the left side is keys as they are in memory, and
 * the right side query rows as columns, in words of two neighbours: scores come with a row per key and a column, a
 * lane, per query row. In place of the scores come weights in words of two keys: the right side of the second product,
 * whose left side is values as columns. What is added up is therefore transposed, too, until the end.
 *
 * BLOCK keys at a time, so that scores stay in the first-level cache. A row's largest score so far is what its weights
 * are relative to; when it grows, its sums are multiplied down. By exactly 1 where it does not, and keys that a row
 * does not see weigh 0: a row's bits do not depend on the other rows.
 */
#include "kernels/cpu/cpu_shared.h"

#include <assert.h>
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE    static inline __attribute__((always_inline))
/* gcc does not know that tiles are loaded from memory. */
#define WRITTEN() __asm__ volatile("" ::: "memory")

enum {
    SIDE = 16,         // rows of a tile, and words of its rows
    STEP = 2 * SIDE,   // columns of bf16 that a product takes
    BLOCK = 128,       // keys
    WORDS = BLOCK / 2, // of values as columns
    WIDE = 2 * SIDE,   // lanes of scores and sums: two tiles; the second may be idle
    CACHE_LINE = 64,
};

static void configure(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } all = { .palette = 1,
              .row_bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
              .rows = { SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE } };
    _tile_loadconfig(&all);
}

/* ---- columns instead of rows --------------------------------------------- */

INLINE void transpose(__m512i r[SIDE])
{
    __m512i t[SIDE];

    for (int i = 0; i < SIDE; i += 2) { // words of two rows in turn
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < SIDE; i += 4) // of four rows; a quarter of a register has one column of them
        for (int j = 0; j < 2; j++) {
            r[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + j + 2]);
            r[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + j + 2]);
        }
    for (int i = 0; i < 4; i++) { // of eight
        t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    }
    for (int i = 0; i < 8; i++) {
        r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    }
}

/* s->q_lanes (K / 2, lanes) words = the rows of q as columns, then columns of zeros. */
static void turn_rows(const struct shared_piece *s)
{
    int words = s->K / 2, lanes = shared_lanes(s->n_rows);
    const char *q = s->q;
    size_t row = (size_t)s->K * sizeof(uint16_t);

    for (int lane = 0; lane < lanes; lane += SIDE)
        for (int word = 0; word < words; word += SIDE) {
            __m512i r[SIDE];
            for (int i = 0; i < SIDE; i++)
                r[i] = lane + i < s->n_rows ? _mm512_loadu_si512(q + (size_t)(lane + i) * row + (size_t)word * 4)
                                            : _mm512_setzero_si512();
            transpose(r);
            for (int i = 0; i < SIDE; i++)
                _mm512_storeu_si512(s->q_lanes + (size_t)(word + i) * (size_t)lanes + lane, r[i]);
        }
}

/* s->v_at (K, WORDS) words = n values, a multiple of STEP, as columns of words of two keys. */
static void turn_values(const struct shared_piece *s, const uint16_t *v, int n)
{
    int K = s->K;

    for (int key = 0; key < n; key += STEP)
        for (int column = 0; column < K; column += SIDE) {
            __m512i r[SIDE];
            for (int i = 0; i < SIDE; i++) {
                const uint16_t *at = v + (size_t)(key + 2 * i) * (size_t)K + column;
                __m512i first = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)at));
                __m512i second = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(at + K)));
                r[i] = _mm512_or_si512(first, _mm512_slli_epi32(second, 16));
            }
            transpose(r);
            for (int i = 0; i < SIDE; i++)
                _mm512_storeu_si512(s->v_at + (column + i) * WORDS + key / 2, r[i]);
        }
}

/* ---- products ------------------------------------------------------------ */

enum { PITCH = WIDE * sizeof(float) }; // bytes from one row of scores, sums and weights to the next

/* The sums, tiles 0 and 2 and of the second tile of lanes 1 and 3, += STEP columns of the left side, whose second SIDE
 * rows are at `below`, times STEP rows of the right side in pairs. Pitches are in bytes. */
INLINE void add_products(const void *left, const void *below, int left_pitch, const float *right, int right_pitch,
                         bool two)
{
    _tile_loadd(4, left, left_pitch);
    _tile_loadd(5, below, left_pitch);
    _tile_loadd(6, right, right_pitch);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    if (two) {
        _tile_loadd(7, right + SIDE, right_pitch);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
    }
}

/* to (STEP, WIDE) = the sums */
INLINE void store_sums(float *to, bool two)
{
    _tile_stored(0, to, PITCH);
    _tile_stored(2, to + SIDE * WIDE, PITCH);
    if (two) {
        _tile_stored(1, to + SIDE, PITCH);
        _tile_stored(3, to + SIDE * WIDE + SIDE, PITCH);
    }
}

/* score (STEP, WIDE) = k (STEP, K) times q, whose rows are `lanes` words apart; one tile of lanes or two. */
INLINE void score_step(float *score, const uint16_t *k, const float *q, int K, int lanes, bool two)
{
    int k_pitch = K * (int)sizeof(*k), q_pitch = lanes * (int)sizeof(*q);

    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int column = 0; column < K; column += STEP, q += SIDE * lanes)
        add_products(k + column, k + SIDE * K + column, k_pitch, q, q_pitch, two);
    store_sums(score, two);
}

/* sum (STEP, WIDE) += v (STEP columns, n keys) times weights p (n, WIDE), in words of two keys. */
INLINE void value_step(float *sum, const float *v, const float *p, int n, bool two)
{
    enum { V_PITCH = WORDS * sizeof(float) };

    _tile_loadd(0, sum, PITCH);
    _tile_loadd(2, sum + SIDE * WIDE, PITCH);
    if (two) {
        _tile_loadd(1, sum + SIDE, PITCH);
        _tile_loadd(3, sum + SIDE * WIDE + SIDE, PITCH);
    }
    for (int key = 0; key < n; key += STEP, v += SIDE, p += SIDE * WIDE)
        add_products(v, v + SIDE * WORDS, V_PITCH, p, PITCH, two);
    store_sums(sum, two);
}

/* ---- weights ------------------------------------------------------------- */

/* 2^x, 1e-7 off, exactly 1 for 0, and 0 for -inf. The polynomial is 2^f on [0, 1) (minimax with p(0) = 1). */
INLINE __m512 exp2_lanes(__m512 x)
{
    enum { TO_WHOLE_BELOW = 1 };
    __m512 f = _mm512_reduce_ps(x, TO_WHOLE_BELOW), p = _mm512_set1_ps(1.86713052e-3f);

    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(9.01702978e-3f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.57999127e-2f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(2.40164444e-1f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.93151295e-1f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1));
    return _mm512_scalef_ps(p, x);
}

/* A tile of lanes. */
struct lanes {
    float *score;                // (BLOCK, WIDE)
    float *sum;                  // (K, WIDE); NULL: not wanted
    float *max, *weight;         // (SIDE): so far
    int first, seen[SIDE], K, n; // key of the block; keys that each row sees; columns; keys of the block
    float scale;
    const char *next_k, *next_v; // keys and values to be fetched meanwhile; NULL: none
};

/* The score of a key, -inf for those who do not see it. */
INLINE __m512 score_of(const struct lanes *l, int key, __m512i seen, bool all)
{
    __m512 x = _mm512_loadu_ps(l->score + key * WIDE);
    if (all)
        return x;
    __mmask16 sees = _mm512_cmpgt_epi32_mask(seen, _mm512_set1_epi32(l->first + key));
    return _mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY), sees, x);
}

/* Weights in place of scores, in words of two keys. */
INLINE void weigh(const struct lanes *l, bool all)
{
    const __m512 scale = _mm512_set1_ps(l->scale), old = _mm512_loadu_ps(l->max);
    const __m512i seen = _mm512_loadu_si512(l->seen);
    __m512 max[4] = { old, old, old, old }, sum[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() };
    uint16_t turn[2 * SIDE]; // two registers of bf16 word by word
    for (int i = 0; i < SIDE; i++)
        turn[2 * i] = (uint16_t)i, turn[2 * i + 1] = (uint16_t)(i + SIDE);
    const __m512i pairs = _mm512_loadu_si512(turn);
    const int row = l->K * (int)sizeof(uint16_t);

    for (int key = 0; key < l->n; key += 4)
        for (int i = 0; i < 4; i++)
            max[i] = _mm512_max_ps(max[i], score_of(l, key + i, seen, all));
    __m512 top = _mm512_max_ps(_mm512_max_ps(max[0], max[1]), _mm512_max_ps(max[2], max[3]));
    _mm512_storeu_ps(l->max, top);
    top = _mm512_mask_mov_ps(top, _mm512_cmp_ps_mask(top, _mm512_set1_ps(-INFINITY), _CMP_EQ_OQ), _mm512_setzero_ps());
    for (int key = 0; key < l->n; key += 2) {
        for (int at = key * row; at < (key + 2) * row && l->next_k; at += CACHE_LINE) {
            _mm_prefetch(l->next_k + at, _MM_HINT_T1);
            _mm_prefetch(l->next_v + at, _MM_HINT_T1);
        }
        __m512 e[2];
        for (int i = 0; i < 2; i++) {
            e[i] = exp2_lanes(_mm512_fmsub_ps(score_of(l, key + i, seen, all), scale, _mm512_mul_ps(top, scale)));
            sum[i] = _mm512_add_ps(sum[i], e[i]);
        }
        __m512i both = (__m512i)_mm512_cvtne2ps_pbh(e[1], e[0]);
        _mm512_storeu_si512(l->score + key / 2 * WIDE, _mm512_permutexvar_epi16(pairs, both));
    }
    __m512 down = exp2_lanes(_mm512_mul_ps(_mm512_sub_ps(old, top), scale)); // 0 for the first keys that a row sees
    __m512 weight = _mm512_mul_ps(_mm512_loadu_ps(l->weight), down);
    _mm512_storeu_ps(l->weight, _mm512_add_ps(weight, _mm512_add_ps(sum[0], sum[1])));
    if (l->sum && _mm512_cmp_ps_mask(down, _mm512_set1_ps(1), _CMP_NEQ_UQ))
        for (int column = 0; column < l->K; column++) {
            float *at = l->sum + column * WIDE;
            _mm512_storeu_ps(at, _mm512_mul_ps(_mm512_loadu_ps(at), down));
        }
}

/* ---- a piece ------------------------------------------------------------- */

/* Rows of some keys or values, followed by rows of zeros up to a multiple of STEP. */
static const uint16_t *whole_steps(const struct shared_piece *s, const void *all, int first, int n)
{
    const uint16_t *rows = (const uint16_t *)all + (size_t)first * (size_t)s->K;
    size_t row = (size_t)s->K * sizeof(*rows), rest = (size_t)(STEP - n % STEP);

    if (n % STEP == 0)
        return rows;
    memcpy(s->k_at, rows, (size_t)n * row);
    memset((char *)s->k_at + (size_t)n * row, 0, rest * row);
    return s->k_at;
}

/* How many keys the row of a lane sees. */
static inline int keys_seen(const struct shared_piece *s, int lane)
{
    int seen = s->group ? s->seen + lane / s->group : s->n_keys;
    return seen < s->n_keys ? seen : s->n_keys;
}

/* n keys against the lanes from `lane` on, as many as there are up to WIDE. */
static void block_of_lanes(const struct shared_piece *s, const uint16_t *k, int first, int n, int lane, float *sum)
{
    int lanes = shared_lanes(s->n_rows);
    bool two = lanes - lane > SIDE;
    float *score = s->score;

    for (int key = 0; key < n; key += STEP)
        score_step(score + key * WIDE, k + (size_t)key * (size_t)s->K, s->q_lanes + lane, s->K, lanes, two);
    for (int tile = 0; tile <= two; tile++) {
        int at = lane + tile * SIDE;
        struct lanes l = { score + tile * SIDE,
                           s->sum ? sum + tile * SIDE : NULL,
                           s->max + at,
                           s->weight + at,
                           first,
                           { 0 },
                           s->K,
                           n,
                           s->scale,
                           NULL,
                           NULL };
        if (at == 0 && first + 2 * BLOCK <= s->n_keys) {
            size_t row = (size_t)s->K * sizeof(uint16_t), next = (size_t)(first + BLOCK) * row;
            l.next_k = (const char *)s->k + next, l.next_v = (const char *)s->v + next;
        }
        for (int i = 0; i < SIDE; i++)
            l.seen[i] = keys_seen(s, at + i);
        if (l.seen[0] >= first + n)
            weigh(&l, true);
        else
            weigh(&l, false);
    }
    WRITTEN();
    for (int column = 0; column < s->K && s->sum; column += STEP)
        value_step(sum + column * WIDE, s->v_at + column * WORDS, score, n, two);
}

/* Rows instead of columns. */
static void finish(const struct shared_piece *s, const float *sums)
{
    int n = s->n_rows, K = s->K;

    for (int lane = 0; lane < n; lane += SIDE)
        for (int column = 0; column < K; column += SIDE) {
            const float *sum = sums + (size_t)(lane / WIDE * WIDE) * (size_t)K + column * WIDE + lane % WIDE;
            __m512i r[SIDE];
            for (int i = 0; i < SIDE; i++)
                r[i] = _mm512_loadu_si512(sum + i * WIDE);
            transpose(r);
            for (int i = 0; i < SIDE && lane + i < n; i++)
                _mm512_storeu_si512(s->sum + (size_t)(lane + i) * (size_t)K + column, r[i]);
        }
}

void shared_amx(const struct shared_piece *s)
{
    int lanes = shared_lanes(s->n_rows), wide = (lanes + WIDE - 1) / WIDE * WIDE;
    float *sums = s->score + BLOCK * WIDE; // for each WIDE lanes (K, WIDE)

    assert(s->K % STEP == 0 && s->K <= SHARED_AMX_COLUMNS);
    for (int i = 0; i < lanes; i++)
        s->max[i] = -INFINITY, s->weight[i] = 0;
    if (s->sum)
        memset(sums, 0, (size_t)wide * (size_t)s->K * sizeof(*sums));
    turn_rows(s);
    configure();
    for (int key = 0; key < s->n_keys; key += BLOCK) {
        int n = s->n_keys - key < BLOCK ? s->n_keys - key : BLOCK, padded = (n + STEP - 1) / STEP * STEP;
        if (s->sum)
            turn_values(s, whole_steps(s, s->v, key, n), padded);
        const uint16_t *k = whole_steps(s, s->k, key, n);
        WRITTEN();
        for (int lane = 0; lane < lanes; lane += WIDE)
            if (keys_seen(s, (lane + WIDE < s->n_rows ? lane + WIDE : s->n_rows) - 1) > key)
                block_of_lanes(s, k, key, padded, lane, sums + (size_t)lane * (size_t)s->K);
    }
    _tile_release();
    if (s->sum)
        finish(s, sums);
}
