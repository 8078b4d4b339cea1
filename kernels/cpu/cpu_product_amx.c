/* cpu_product_amx.c - products by packed weights, 32 x 32 numbers of c at a time.
 *
 * A tile register has 16 rows of 64 bytes. One product multiplies 32 columns of the left side by 32 rows of the right
 * side, these in pairs, and adds the result to 16 x 16 sums. Two tiles of rows by two of columns are four products, for
 * which four tiles are loaded: the most that the caches deliver in that time.
 *
 * A panel of the weight is 32 columns and all of k: its tiles lie in the order of their use. All rows are multiplied by
 * a panel while it is in the caches. Meanwhile the next panel is prefetched into the second level, some lines with
 * every four products. So weights are read once from memory, each panel by one thread, as fast as memory or the
 * products allow. The sums of a block are written during the next block, two rows at a time: c is in no near cache, and
 * 32 lines at once would wait for each other.
 *
 * a stays in the second-level cache. Where it would not fit, k is cut into sections that are added to c one after the
 * other, at positions that depend only on k; or, since bf16 cannot be added to, the rows are cut into sections, each of
 * which reads the weight again.
 */
#include "kernels/cpu/cpu_product.h"
#include "kernels/cpu/cpu_tiles.h"

#include <immintrin.h>
#include <omp.h>
#include <stddef.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    TILE = SIDE * 2 * SIDE,                       // numbers of a tile of the weight
    STEP_BYTES = PRODUCT_STEP * PRODUCT_COLS * 2, // of a panel, per PRODUCT_STEP
    CACHE_LINE = 64,
    PITCH = PRODUCT_COLS * sizeof(float), // bytes from one row of sums to the next
    A_BYTES = 3 << 19,                    // a's share of the second-level cache
    K_PART = 1536,                        // columns of a section of k: 512 rows of them take A_BYTES
    WRITE_ROWS = 2,                       // per step
};

/* A section of a product: some rows and columns of a times all columns of c. */
struct part {
    const struct product *p;
    int row, row_end; // of a and c
    int from, end;    // of k
    enum gemm_into into;
    const float *bias; // or NULL
};

/* Rows of sums not yet written to c. */
struct sums {
    const float *at;
    char *c;
    int rows;
    __m512 bias[2];
    __mmask16 mask[2];
};

/* ---- sums to c ----------------------------------------------------------- */

INLINE void write_rows(const struct part *t, struct sums *s, int n)
{
    enum dtype out = t->p->out;
    size_t pitch = (size_t)t->p->n * dtype_size(out);

    for (int i = 0; i < n && s->rows > 0; i++, s->rows--, s->at += PRODUCT_COLS, s->c += pitch) {
        __m512 low = _mm512_add_ps(_mm512_load_ps(s->at), s->bias[0]);
        __m512 high = _mm512_add_ps(_mm512_load_ps(s->at + SIDE), s->bias[1]);
        if (out == DTYPE_BF16) {
            _mm512_mask_storeu_epi16(s->c, _mm512_kunpackw(s->mask[1], s->mask[0]),
                                     (__m512i)_mm512_cvtne2ps_pbh(high, low));
            continue;
        }
        if (t->into == GEMM_ADD) {
            low = _mm512_add_ps(low, _mm512_maskz_loadu_ps(s->mask[0], s->c));
            high = _mm512_add_ps(high, _mm512_maskz_loadu_ps(s->mask[1], s->c + CACHE_LINE));
        }
        _mm512_mask_storeu_ps(s->c, s->mask[0], low);
        _mm512_mask_storeu_ps(s->c + CACHE_LINE, s->mask[1], high);
    }
}

/* The sums of a block, for writing to c. Its first `known` rows are written already; the next row is row `row` of c. */
static struct sums sums_of(const struct part *t, const float *at, int panel, int row, int known)
{
    const struct product *p = t->p;
    int col = panel * PRODUCT_COLS;
    struct sums s = { .at = at + known * PRODUCT_COLS, .rows = PRODUCT_ROWS - known };

    s.rows = p->m - row < s.rows ? p->m - row : s.rows;
    s.c = (char *)p->c + ((size_t)row * (size_t)p->n + (size_t)col) * dtype_size(p->out);
    for (int i = 0; i < 2; i++, col += SIDE) {
        int n = p->n - col < SIDE ? p->n - col : SIDE;
        s.mask[i] = (__mmask16)((1u << (n > 0 ? n : 0)) - 1);
        s.bias[i] = t->bias ? _mm512_maskz_loadu_ps(s.mask[i], t->bias + col) : _mm512_setzero_ps();
    }
    return s;
}

/* ---- a block ------------------------------------------------------------- */

/* sum (PRODUCT_ROWS, PRODUCT_COLS) = rows of a times a panel. Meanwhile writes the sums of the block before, and
 * prefetches `lines` lines from *next on with each step. */
INLINE void block(const struct part *t, float *sum, const uint16_t *a, const uint16_t *w, struct sums *before,
                  const char **next, int lines)
{
    size_t pitch = (size_t)t->p->k * sizeof(*a);
    const char *fetch = *next;

    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int k = t->from; k < t->end; k += PRODUCT_STEP, a += PRODUCT_STEP, w += 2 * TILE) {
        _tile_loadd(6, w, CACHE_LINE);
        _tile_loadd(7, w + TILE, CACHE_LINE);
        _tile_loadd(4, a, pitch);
        _tile_loadd(5, a + SIDE * t->p->k, pitch);
        for (int i = 0; i < lines; i++, fetch += CACHE_LINE)
            _mm_prefetch(fetch, _MM_HINT_T1);
        write_rows(t, before, WRITE_ROWS);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    *next = fetch;
    write_rows(t, before, PRODUCT_ROWS);
    _tile_stored(0, sum, PITCH);
    _tile_stored(1, sum + SIDE, PITCH);
    _tile_stored(2, sum + SIDE * PRODUCT_COLS, PITCH);
    _tile_stored(3, sum + SIDE * PRODUCT_COLS + SIDE, PITCH);
}

/* ---- panels -------------------------------------------------------------- */

/* Panels first .. end - 1. The last block of rows begins early enough to be full. */
static void panels(const struct part *t, int first, int end)
{
    const struct product *p = t->p;
    const uint16_t *a = p->a;
    int blocks = (t->row_end - t->row + PRODUCT_ROWS - 1) / PRODUCT_ROWS, turn = 0;
    int lines = (STEP_BYTES / CACHE_LINE + blocks - 1) / blocks;
    float sum[2][PRODUCT_ROWS * PRODUCT_COLS] __attribute__((aligned(CACHE_LINE)));
    struct sums before = { .rows = 0 };

    for (int panel = first; panel < end; panel++) {
        const uint16_t *w = (const uint16_t *)p->w + (size_t)panel * PRODUCT_COLS * (size_t)p->k;
        const char *next = (const char *)(w + (size_t)PRODUCT_COLS * (size_t)(p->k + t->from));
        w += (size_t)PRODUCT_COLS * (size_t)t->from;
        for (int row = t->row; row < t->row_end; row += PRODUCT_ROWS, turn ^= 1) {
            int last = p->m > PRODUCT_ROWS ? p->m - PRODUCT_ROWS : 0, begin = row < last ? row : last;
            block(t, sum[turn], a + (size_t)begin * (size_t)p->k + t->from, w, &before, &next,
                  panel + 1 < end ? lines : 0);
            before = sums_of(t, sum[turn], panel, row, row - begin);
        }
    }
    write_rows(t, &before, PRODUCT_ROWS);
}

/* All sections of a product, for the panels of one thread. */
static void product_part(const struct product *p, int first, int end)
{
    int k_parts = p->out == DTYPE_F32 ? (p->k + K_PART - 1) / K_PART : 1;
    int columns = (p->k / PRODUCT_STEP + k_parts - 1) / k_parts * PRODUCT_STEP;
    int rows = A_BYTES / 2 / columns / PRODUCT_ROWS * PRODUCT_ROWS;

    rows = rows > PRODUCT_ROWS ? rows : PRODUCT_ROWS;
    tiles_configure();
    for (int from = 0; from < p->k; from += columns)
        for (int row = 0; row < p->m; row += rows) {
            struct part t = { .p = p, .row = row, .from = from, .into = from ? GEMM_ADD : p->into };
            t.row_end = p->m - row < rows ? p->m : row + rows;
            t.end = p->k - from < columns ? p->k : from + columns;
            t.bias = from ? NULL : p->bias;
            panels(&t, first, end);
        }
    _tile_release();
}

void product_amx(const struct product *p, int n_threads)
{
    int n = (p->n + PRODUCT_COLS - 1) / PRODUCT_COLS;

#pragma omp parallel num_threads(n < n_threads ? n : n_threads)
    {
        int threads = omp_get_num_threads(), thread = omp_get_thread_num();
        product_part(p, n * thread / threads, n * (thread + 1) / threads);
    }
}

/* ---- the weight ---------------------------------------------------------- */

size_t product_weight_bytes(int n, int k)
{
    return (size_t)((n + PRODUCT_COLS - 1) / PRODUCT_COLS * PRODUCT_COLS) * (size_t)k * sizeof(uint16_t);
}

void product_pack_row(void *w, int row, const uint16_t *numbers, int k)
{
    uint16_t *to = (uint16_t *)w + (size_t)(row / PRODUCT_COLS * PRODUCT_COLS) * (size_t)k;

    to += row % PRODUCT_COLS / SIDE * TILE + row % SIDE * 2;
    for (int i = 0; i < k; i += PRODUCT_STEP, to += 2 * TILE)
        for (int j = 0; j < SIDE; j++) {
            to[j * 2 * SIDE] = numbers[i + 2 * j];
            to[j * 2 * SIDE + 1] = numbers[i + 2 * j + 1];
        }
}
