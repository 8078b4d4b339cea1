/* cpu_shared_amx.c - attention in bf16 by the tiles of AMX, for rows that share all keys and for causal rows, where
 * each token sees one key more than the token before.
 *
 * A tile register has 16 rows of 64 bytes. One product multiplies 32 columns of the left side by 32 rows of the right
 * side, these in pairs, and adds the result to 16 x 16 sums. For scores the left side is keys as they lie in memory,
 * and the right side query rows as columns, in words of two neighbours. The scores have a row per key and a column
 * (lane) per query row. Weights, in words of two keys, replace the scores: they are the right side of the second
 * product, and values as columns are the left side. So the sums of weighted values are transposed, too, until the end.
 *
 * The loops take BLOCK keys at a time against WIDE lanes, so that everything stays in the first-level cache.
 * (Interleaving vector and tile instructions gains nothing: both need the same ports.)
 *
 * A row's weights are relative to its largest score so far; when that grows, the row's sums are scaled down. Where it
 * does not grow the factor is exactly 1, and keys that a row does not see weigh 0: a row's bits do not depend on the
 * other rows.
 */
#include "kernels/cpu/cpu_shared.h"
#include "kernels/cpu/cpu_tiles.h"

#include <assert.h>
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE    static inline __attribute__((always_inline))
/* gcc does not know that tiles are loaded from memory. */
#define WRITTEN() __asm__ volatile("" ::: "memory")

enum {
    STEP = 2 * SIDE,   // bf16 columns per product
    BLOCK = 64,        // keys
    WORDS = BLOCK / 2, // words per row of transposed values
    WIDE = 2 * SIDE,   // lanes of scores and sums: two tiles; the second may be idle
    CACHE_LINE = 64,
    // relative times: transposing 8 columns of STEP values; one add_products(); 4 keys' weights for a tile of lanes
    TURNING = 1,
    ADDING = 4,
    WEIGHING = 3,
};

/* ---- keys and values ----------------------------------------------------- */

enum side { KEYS, VALUES };

/* s->k_at = the last keys and the last values, each padded with rows of zeros to STEP. */
static void pad_rest(const struct shared_piece *s)
{
    size_t row = (size_t)s->K * sizeof(uint16_t), n = (size_t)(s->n_keys % STEP), first = (size_t)s->n_keys - n;
    const char *from[] = { s->k, s->v };

    for (int side = KEYS; side <= VALUES && n > 0; side++) {
        char *to = (char *)s->k_at + (size_t)(side * STEP) * row;
        memcpy(to, from[side] + first * row, n * row);
        memset(to + n * row, 0, (STEP - n) * row);
    }
}

/* STEP keys or values. */
static inline const uint16_t *step_of(const struct shared_piece *s, enum side side, int first)
{
    const uint16_t *all = side == KEYS ? s->k : s->v, *rest = s->k_at;
    return first + STEP <= s->n_keys ? all + (size_t)first * (size_t)s->K : rest + (int)side * STEP * s->K;
}

/* Prefetches the next keys and values into the second-level cache during the work on the current ones. Memory is as
 * slow as the work, and lines requested in a burst wait for each other and stall the work; so requests are spread
 * evenly over the expected time. */
struct ahead {
    const char *k, *v;
    size_t at, due, end; // bytes: requested; due by now; all
    size_t pace;         // bytes per unit of time
};

/* The expected time for n keys. */
static size_t work_of(const struct shared_piece *s, int n)
{
    int lanes = shared_lanes(s->n_rows), products = (lanes + SIDE) / WIDE * (n / STEP) * (s->K / STEP);
    int work = products * ADDING + lanes / SIDE * (n / 4) * WEIGHING;

    if (s->sum)
        work += products * ADDING + n / STEP * (s->K / 8) * TURNING;
    return (size_t)work;
}

/* The prefetch during keys first .. first + n - 1: the keys behind them in this piece, or the start of the next
 * piece. */
static struct ahead ahead_of(const struct shared_piece *s, int first, int n)
{
    size_t row = (size_t)s->K * sizeof(uint16_t), at = (size_t)(first + n) * row;
    int rest = s->n_keys - first - n, keys = rest > 0 ? rest : s->n_next;
    struct ahead a = { .k = s->next_k, .v = s->next_v, .end = (size_t)(keys < BLOCK ? keys : BLOCK) * row };

    if (rest > 0)
        a.k = (const char *)s->k + at, a.v = (const char *)s->v + at;
    a.pace = a.end / work_of(s, n) + 1;
    return a;
}

/* Prefetches for the next `time` units. */
INLINE void fetch(struct ahead *a, int time)
{
    a->due += (size_t)time * a->pace;
    for (; a->at < a->due && a->at < a->end; a->at += CACHE_LINE) {
        _mm_prefetch(a->k + a->at, _MM_HINT_T1);
        _mm_prefetch(a->v + a->at, _MM_HINT_T1);
    }
}

/* ---- columns instead of rows --------------------------------------------- */

INLINE void transpose(__m512i r[SIDE])
{
    __m512i t[SIDE];

    for (int i = 0; i < SIDE; i += 2) { // interleaves the words of two rows
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < SIDE; i += 4) // of four rows; a quarter of a register holds one column of them
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

/* 8 columns of 32 rows, `row` bytes apart, as 8 rows of 32. */
INLINE void transpose_eight(__m512i to[8], const char *from, size_t row)
{
    __m512i t[8], u[8];

    for (int i = 0; i < 8; i++) { // a register holds rows i, i + 8, i + 16 and i + 24, a quarter each
        const char *at = from + (size_t)i * row;
        t[i] = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)at));
        t[i] = _mm512_mask_broadcast_i32x4(t[i], 0x00f0, _mm_loadu_si128((const __m128i *)(at + 8 * row)));
        t[i] = _mm512_mask_broadcast_i32x4(t[i], 0x0f00, _mm_loadu_si128((const __m128i *)(at + 16 * row)));
        t[i] = _mm512_mask_broadcast_i32x4(t[i], 0xf000, _mm_loadu_si128((const __m128i *)(at + 24 * row)));
    }
    for (int i = 0; i < 8; i += 2) {
        u[i] = _mm512_unpacklo_epi16(t[i], t[i + 1]);
        u[i + 1] = _mm512_unpackhi_epi16(t[i], t[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            t[i + 2 * j] = _mm512_unpacklo_epi32(u[i + j], u[i + j + 2]);
            t[i + 2 * j + 1] = _mm512_unpackhi_epi32(u[i + j], u[i + j + 2]);
        }
    for (int i = 0; i < 4; i++) {
        to[2 * i] = _mm512_unpacklo_epi64(t[i], t[i + 4]);
        to[2 * i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 4]);
    }
}

/* s->v_at (K, WORDS) = n values (a multiple of STEP), transposed, in words of two keys. */
static void turn_values(const struct shared_piece *s, int first, int n, struct ahead *ahead)
{
    for (int key = 0; key < n; key += STEP) {
        const uint16_t *v = step_of(s, VALUES, first + key);
        for (int column = 0; column < s->K; column += 8) {
            __m512i r[8];
            fetch(ahead, TURNING);
            transpose_eight(r, (const char *)(v + column), (size_t)s->K * sizeof(*v));
            for (int i = 0; i < 8; i++)
                _mm512_storeu_si512(s->v_at + (column + i) * WORDS + key / 2, r[i]);
        }
    }
}

/* ---- products ------------------------------------------------------------ */

enum { PITCH = WIDE * sizeof(float) }; // bytes from one row of scores, sums and weights to the next

/* Sums += STEP columns of the left side times STEP rows of the right side, in pairs. The sums are tiles 0 and 2, and 1
 * and 3 for the second tile of lanes. The left side's second SIDE rows are at `below`. Pitches are in bytes. */
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
INLINE void score_step(float *score, const uint16_t *k, const float *q, int K, int lanes, bool two, struct ahead *ahead)
{
    int k_pitch = K * (int)sizeof(*k), q_pitch = lanes * (int)sizeof(*q);

    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int column = 0; column < K; column += STEP, q += SIDE * lanes) {
        fetch(ahead, ADDING);
        add_products(k + column, k + SIDE * K + column, k_pitch, q, q_pitch, two);
    }
    store_sums(score, two);
}

/* sum (STEP, WIDE) += v (STEP columns, n keys) times weights p (n, WIDE), in words of two keys. */
INLINE void value_step(float *sum, const float *v, const float *p, int n, bool two, struct ahead *ahead)
{
    enum { V_PITCH = WORDS * sizeof(float) };

    _tile_loadd(0, sum, PITCH);
    _tile_loadd(2, sum + SIDE * WIDE, PITCH);
    if (two) {
        _tile_loadd(1, sum + SIDE, PITCH);
        _tile_loadd(3, sum + SIDE * WIDE + SIDE, PITCH);
    }
    for (int key = 0; key < n; key += STEP, v += SIDE, p += SIDE * WIDE) {
        fetch(ahead, ADDING);
        add_products(v, v + SIDE * WORDS, V_PITCH, p, PITCH, two);
    }
    store_sums(sum, two);
}

/* ---- weights ------------------------------------------------------------- */

/* 2^x, at most 1e-7 off; exactly 1 for x = 0, and 0 for -inf. The polynomial is 2^f on [0, 1) (minimax, p(0) = 1). */
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

/* The bits of 2^x, at most 1e-5 off, for t = (127 + x) * 2^23: t as an integer has the bits of 2^whole * (1 + f), and
 * 2^f is a polynomial of 1 + f (minimax). 0 for t < 0; the sign bit is set where t is not finite. The factor TOO_HIGH
 * offsets the mean loss of truncating to bf16 instead of rounding. */
#define TOO_HIGH 1.0027f
INLINE __m512i weight_bits(__m512 t)
{
    enum { A_AND_B_OR_C = 0xea };
    const __m512i fraction = _mm512_set1_epi32(0x7fffff), one = _mm512_set1_epi32(0x3f800000);
    __m512i bits = _mm512_cvttps_epi32(_mm512_max_ps(_mm512_setzero_ps(), t));
    __m512 m = _mm512_castsi512_ps(_mm512_ternarylogic_epi32(bits, fraction, one, A_AND_B_OR_C)); // 1 + f
    __m512 power = _mm512_castsi512_ps(_mm512_andnot_si512(fraction, bits)),
           p = _mm512_set1_ps(TOO_HIGH * 0.013534168f);

    p = _mm512_fmadd_ps(p, m, _mm512_set1_ps(TOO_HIGH * -0.00212521091f));
    p = _mm512_fmadd_ps(p, m, _mm512_set1_ps(TOO_HIGH * 0.166613381f));
    p = _mm512_fmadd_ps(p, m, _mm512_set1_ps(TOO_HIGH * 0.312016034f));
    p = _mm512_fmadd_ps(p, m, _mm512_set1_ps(TOO_HIGH * 0.509964222f));
    return _mm512_castps_si512(_mm512_mul_ps(power, p));
}

/* A tile of lanes. */
struct lanes {
    float *score;          // (BLOCK, WIDE)
    float *sum;            // (K, WIDE); NULL: not wanted
    float *max, *weight;   // (SIDE): so far
    int first, seen[SIDE]; // key of the block; keys that each row sees
    int K, n;              // columns; keys of the block, a multiple of STEP
    float scale;
};

/* The scores of a key; -inf in the lanes of rows that do not see it. */
INLINE __m512 score_of(const struct lanes *l, int key, __m512i seen, bool all)
{
    __m512 x = _mm512_loadu_ps(l->score + key * WIDE);
    if (all)
        return x;
    __mmask16 sees = _mm512_cmpgt_epi32_mask(seen, _mm512_set1_epi32(l->first + key));
    return _mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY), sees, x);
}

/* Each lane's largest score so far, this block included. */
INLINE __m512 top_of(const struct lanes *l, __m512i seen, bool all)
{
    __m512 max[8];

    for (int i = 0; i < 8; i++)
        max[i] = _mm512_loadu_ps(l->max);
    for (int key = 0; key < l->n; key += 8)
        for (int i = 0; i < 8; i++)
            max[i] = _mm512_max_ps(max[i], score_of(l, key + i, seen, all));
    for (int i = 4; i > 0; i /= 2)
        for (int j = 0; j < i; j++)
            max[j] = _mm512_max_ps(max[j], max[j + i]);
    return max[0];
}

/* Replaces the scores by weights, in words of two keys, and rescales the sums so far to the new maxima. */
INLINE void weigh(const struct lanes *l, bool all, struct ahead *ahead)
{
    enum { A_AND_B_OR_C = 0xea, ANY = 0xfe };
    const __m512i seen = _mm512_loadu_si512(l->seen), high = _mm512_set1_epi32((int)0xffff0000);
    const __m512 scale = _mm512_set1_ps(l->scale), unit = _mm512_set1_ps(0x1p23f), steep = _mm512_mul_ps(scale, unit);
    __m512 old = _mm512_loadu_ps(l->max), top = top_of(l, seen, all);
    __m512 sum[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() };
    __m512i any = _mm512_setzero_si512();

    _mm512_storeu_ps(l->max, top);
    top = _mm512_mask_mov_ps(top, _mm512_cmp_ps_mask(top, _mm512_set1_ps(-INFINITY), _CMP_EQ_OQ), _mm512_setzero_ps());
    __m512 base = _mm512_fnmadd_ps(top, steep, _mm512_mul_ps(_mm512_set1_ps(127), unit));
    for (int key = 0; key < l->n; key += 4) {
        __m512i word[2];
        fetch(ahead, WEIGHING);
        for (int i = 0; i < 2; i++) {
            __m512i a = weight_bits(_mm512_fmadd_ps(score_of(l, key + 2 * i, seen, all), steep, base));
            __m512i b = weight_bits(_mm512_fmadd_ps(score_of(l, key + 2 * i + 1, seen, all), steep, base));
            sum[i] = _mm512_add_ps(sum[i], _mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)));
            word[i] = _mm512_ternarylogic_epi32(b, high, _mm512_srli_epi32(a, 16), A_AND_B_OR_C);
            _mm512_storeu_si512(l->score + (key / 2 + i) * WIDE, word[i]);
        }
        any = _mm512_ternarylogic_epi32(any, word[0], word[1], ANY);
    }
    __m512 down = exp2_lanes(_mm512_mul_ps(_mm512_sub_ps(old, top), scale)); // 0 for the first keys that a row sees
    __m512 added = _mm512_mul_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_set1_ps(1 / TOO_HIGH));
    __m512 weight = _mm512_fmadd_ps(_mm512_loadu_ps(l->weight), down, added);
    __mmask16 wrong = _mm512_test_epi32_mask(any, _mm512_set1_epi32((int)0x80008000)); // a score is not finite
    _mm512_storeu_ps(l->weight, _mm512_mask_mov_ps(weight, wrong, _mm512_set1_ps(NAN)));
    if (l->sum && _mm512_cmp_ps_mask(down, _mm512_set1_ps(1), _CMP_NEQ_UQ))
        for (int column = 0; column < l->K; column++) {
            float *at = l->sum + column * WIDE;
            _mm512_storeu_ps(at, _mm512_mul_ps(_mm512_loadu_ps(at), down));
        }
}

/* ---- a piece ------------------------------------------------------------- */

/* The number of keys that a lane's row sees. */
static inline int keys_seen(const struct shared_piece *s, int lane)
{
    int seen = s->group ? s->seen + lane / s->group : s->n_keys;
    return seen < s->n_keys ? seen : s->n_keys;
}

/* n keys (a multiple of STEP) against the lanes from `lane` on, at most WIDE of them. */
static void block_of_lanes(const struct shared_piece *s, int first, int n, int lane, float *sum, struct ahead *ahead)
{
    int lanes = shared_lanes(s->n_rows);
    bool two = lanes - lane > SIDE;
    float *score = s->score;

    for (int key = 0; key < n; key += STEP)
        score_step(score + key * WIDE, step_of(s, KEYS, first + key), s->q_lanes + lane, s->K, lanes, two, ahead);
    WRITTEN();
    for (int tile = 0; tile <= two; tile++) {
        int at = lane + tile * SIDE;
        struct lanes l = { .score = score + tile * SIDE,
                           .sum = s->sum ? sum + tile * SIDE : NULL,
                           .max = s->max + at,
                           .weight = s->weight + at,
                           .first = first,
                           .K = s->K,
                           .n = n,
                           .scale = s->scale };
        for (int i = 0; i < SIDE; i++)
            l.seen[i] = keys_seen(s, at + i);
        if (l.seen[0] >= first + n)
            weigh(&l, true, ahead);
        else
            weigh(&l, false, ahead);
    }
    WRITTEN();
    for (int column = 0; column < s->K && s->sum; column += STEP)
        value_step(sum + column * WIDE, s->v_at + column * WORDS, score, n, two, ahead);
}

/* Transposes the sums into s->sum. */
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
    float *sums = s->score + BLOCK * WIDE; // (K, WIDE) for each group of WIDE lanes

    assert(s->K % STEP == 0 && s->K <= SHARED_AMX_COLUMNS);
    for (int i = 0; i < lanes; i++)
        s->max[i] = -INFINITY, s->weight[i] = 0;
    if (s->sum)
        memset(sums, 0, (size_t)wide * (size_t)s->K * sizeof(*sums));
    turn_rows(s);
    pad_rest(s);
    tiles_configure();
    for (int key = 0; key < s->n_keys; key += BLOCK) {
        int n = s->n_keys - key < BLOCK ? s->n_keys - key : BLOCK;
        n = (n + STEP - 1) / STEP * STEP;
        struct ahead ahead = ahead_of(s, key, n);
        if (s->sum)
            turn_values(s, key, n, &ahead);
        for (int lane = 0; lane < lanes; lane += WIDE)
            if (keys_seen(s, (lane + WIDE < s->n_rows ? lane + WIDE : s->n_rows) - 1) > key)
                block_of_lanes(s, key, n, lane, sums + (size_t)lane * (size_t)s->K, &ahead);
    }
    _tile_release();
    if (s->sum)
        finish(s, sums);
}
