/* cuda_select.cu - selects the keys to keep, the k largest scores of a row or of all rows of a layer together, and
 * gathers them.
 *
 * A radix search finds the k-th largest score from the top, 11 or 10 bits of its order at a time (kernels/order.h), by
 * counting the scores that share the bits found so far. Then one pass counts the scores above those like it, and one in
 * order of position keeps them and the first of the alike. Counts are integers, so the order in which threads add to
 * them does not matter.
 */
#include "kernels/cuda/cuda_lanes.h"
#include "kernels/order.h"

#include <assert.h>
#include <stdlib.h>

enum {
    SELECT_THREADS = 512,
    SELECT_WARPS = SELECT_THREADS / LANES,
    TILE = SELECT_THREADS * EIGHT, // scores that a block reads at a time
    BIN_BITS = 11,
    BINS = 1 << BIN_BITS,
    BINS_OF_THREAD = BINS / SELECT_THREADS,
};

/* A row of scores. */
struct scores {
    const float *at;
    int n;
    bool aligned;
};

/* The boundary of a selection: all scores above `lowest`, and the first `equals` of the n_equal scores equal to it. */
struct cut {
    uint32_t lowest, equals, n_equal;
};

/* A search for a cut, from the top bits down. The same in all threads of a block. */
struct search {
    uint32_t found, known; // bits of the cut; mask of the known bits
    uint32_t wanted;       // scores still to be kept among those that share the known bits
    int shift;             // of the bits being searched; -1: all are known
};

/* Shared memory of a search. */
struct bins {
    uint32_t count[BINS];
    uint32_t warp[SELECT_WARPS];
    uint32_t digit, above, here; // the bin of the cut; scores in larger bins, and in this one
};

static __device__ __forceinline__ struct search search_of(uint32_t k)
{
    return { 0, 0, k, 32 - BIN_BITS };
}

/* Call before counting scores. Ends with a barrier. */
static __device__ __forceinline__ void clear_bins(struct bins &b)
{
    for (int i = (int)threadIdx.x; i < BINS; i += SELECT_THREADS)
        b.count[i] = 0;
    __syncthreads();
}

/* Counts n equal scores of this order. */
static __device__ __forceinline__ void count(struct bins &b, const struct search &s, uint32_t order, uint32_t n)
{
    if ((order & s.known) == s.found)
        atomicAdd(&b.count[order >> s.shift & (BINS - 1)], n);
}

/* After counting scores: determines the bits at s.shift and moves on to the next. Begins and ends with a barrier.
 * Returns the number of scores in the found bin; after the last bits these are the scores equal to the cut. */
static __device__ __forceinline__ uint32_t settle(struct bins &b, struct search &s)
{
    const int highest = BINS - 1 - (int)threadIdx.x * BINS_OF_THREAD; // this thread's bins, from the top
    uint32_t mine = 0, total;

    __syncthreads();
    for (int i = 0; i < BINS_OF_THREAD; i++)
        mine += b.count[highest - i];
    uint32_t above = threads_before<SELECT_THREADS>(mine, b.warp, &total);
    for (int i = 0; i < BINS_OF_THREAD; i++) {
        const uint32_t here = b.count[highest - i];
        if (above < s.wanted && s.wanted <= above + here) { // true for one bin of one thread
            b.digit = (uint32_t)(highest - i);
            b.above = above;
            b.here = here;
        }
        above += here;
    }
    __syncthreads();
    s.known |= (uint32_t)(BINS - 1) << s.shift;
    s.found |= b.digit << s.shift;
    s.wanted -= b.above;
    s.shift = s.shift >= BIN_BITS ? s.shift - BIN_BITS : s.shift > 0 ? 0 : -1; // the last bits overlap known ones
    return b.here;
}

/* The cut of the k largest of a row; 0 < k <= n. */
static __device__ __forceinline__ struct cut cut_row(struct bins &b, const struct scores &row, uint32_t k)
{
    struct search s = search_of(k);
    uint32_t n_equal = 0;
    float x[EIGHT];

    while (s.shift >= 0) {
        clear_bins(b);
        for (int i = (int)threadIdx.x * EIGHT; i < row.n; i += TILE) {
            load_some(x, row.at + i, row.n - i, row.aligned);
            for (int j = 0; j < EIGHT; j++)
                if (i + j < row.n)
                    count(b, s, order_of(x[j]), 1);
        }
        n_equal = settle(b, s);
    }
    return { s.found, s.wanted, n_equal };
}

/* ---- the k largest of each row ------------------------------------------- */

struct row_keep {
    size_t start; // of its positions
    int k;
};

/* How many scores of a row are above `order`. Has a barrier. */
static __device__ __forceinline__ uint32_t count_above(const struct scores &row, uint32_t order, uint32_t *warp)
{
    uint32_t mine = 0, total;
    float x[EIGHT];

    for (int i = (int)threadIdx.x * EIGHT; i < row.n; i += TILE) {
        load_some(x, row.at + i, row.n - i, row.aligned);
        for (int j = 0; j < EIGHT; j++)
            mine += i + j < row.n && order_of(x[j]) > order;
    }
    threads_before<SELECT_THREADS>(mine, warp, &total);
    return total;
}

/* One block per row of n. */
/* registers <= 48 */
__global__ void __launch_bounds__(SELECT_THREADS)
    top_k_of_row(int32_t *kept, const float *score, int n, const struct row_keep *rows, bool aligned)
{
    SHARED_ARRAY(struct bins, b, 1);
    SHARED_ARRAY(uint32_t, warp, 2 * SELECT_WARPS); // one half is read while the other is written
    const struct scores row = { score + blockIdx.x * (size_t)n, n, aligned };
    const int k = rows[blockIdx.x].k;
    uint32_t above = 0, equal = 0, both; // before this thread's scores
    float x[EIGHT];

    if (k == 0)
        return;
    kept += rows[blockIdx.x].start;
    const struct cut cut = cut_row(b[0], row, (uint32_t)k);
    const uint32_t highest = min(cut.lowest, 0xffffffffu - SCORE_ALIKE) + SCORE_ALIKE; // of those alike
    const uint32_t lowest = max(cut.lowest, (uint32_t)SCORE_ALIKE) - SCORE_ALIKE;
    const uint32_t n_alike = (uint32_t)k - count_above(row, highest, warp + SELECT_WARPS); // of them to be kept
    for (int tile = 0; tile * TILE < n; tile++) {
        const int i = tile * TILE + (int)threadIdx.x * EIGHT;
        uint32_t mine = 0; // lower half: scores above those alike; upper half: scores alike
        load_some(x, row.at + i, n - i, aligned);
        for (int j = 0; j < EIGHT; j++) {
            const uint32_t order = order_of(x[j]);
            if (i + j < n)
                mine += order > highest ? 1 : order >= lowest ? 1 << 16 : 0;
        }
        const uint32_t before = threads_before<SELECT_THREADS>(mine, warp + tile % 2 * SELECT_WARPS, &both);
        uint32_t a = above + (before & 0xffff), e = equal + (before >> 16);
        for (int j = 0; j < EIGHT; j++) {
            const uint32_t order = order_of(x[j]), first = min(e, n_alike);
            if (i + j >= n || order < lowest)
                continue;
            if (order > highest || e < n_alike)
                kept[a + first] = i + j;
            a += order > highest;
            e += order <= highest;
        }
        above += both & 0xffff;
        equal += both >> 16;
    }
}

void cuda_top_k(struct backend *be, int32_t *kept, const float *score, int n_heads, int n, const int *k)
{
    struct cuda *c = cuda_of(be);
    struct row_keep *rows = static_cast<struct row_keep *>(calloc((size_t)n_heads + 1, sizeof(*rows)));
    size_t start = 0;

    if (!rows) {
        cuda_fail(c, ERR_NOMEM, "out of memory");
        return;
    }
    for (int h = 0; h < n_heads; h++) {
        rows[h] = { start, k[h] };
        start += (size_t)k[h];
    }
    const struct row_keep *on_device = cuda_upload_list(c, rows, n_heads);
    free(rows);
    if (on_device)
        LAUNCH(c, top_k_of_row, dim3((unsigned)n_heads), SELECT_THREADS, 0, kept, score, n, on_device,
               is_aligned(score, (size_t)n * sizeof(float)));
}

/* ---- the rows of a layer together ---------------------------------------- */

/* The scores of a row that its floor does not take: those below `lowest` and `surplus` ones equal to it; without a
 * floor all. */
struct rest {
    uint32_t lowest, surplus;
    uint32_t above, equal; // how many of them are above the joint cut of all rows, and equal to it
};

static __device__ __forceinline__ bool is_left(const struct rest &rest, const struct joint_keep &keep, uint32_t order)
{
    return keep.floor == 0 || order < rest.lowest;
}

/* Counts the rest of a row for the search. */
static __device__ __forceinline__ void count_rest(struct bins &b, const struct search &s, const struct scores &row,
                                                  const struct rest &rest, const struct joint_keep &keep)
{
    float x[EIGHT];

    for (int i = (int)threadIdx.x * EIGHT; i < row.n; i += TILE) {
        load_some(x, row.at + i, row.n - i, row.aligned);
        for (int j = 0; j < EIGHT; j++)
            if (i + j < row.n && is_left(rest, keep, order_of(x[j])))
                count(b, s, order_of(x[j]), 1);
    }
    if (threadIdx.x == 0 && rest.surplus > 0)
        count(b, s, rest.lowest, rest.surplus);
}

/* Counts the scores in the rest of a row that are above the order `cut`, and equal to it. */
static __device__ __forceinline__ void count_kept(struct rest &rest, const struct scores &row,
                                                  const struct joint_keep &keep, uint32_t cut)
{
    uint32_t above = 0, equal = 0;
    float x[EIGHT];

    for (int i = (int)threadIdx.x * EIGHT; i < row.n; i += TILE) {
        load_some(x, row.at + i, row.n - i, row.aligned);
        for (int j = 0; j < EIGHT; j++) {
            const uint32_t order = order_of(x[j]);
            if (i + j < row.n && is_left(rest, keep, order)) {
                above += order > cut;
                equal += order == cut;
            }
        }
    }
    if (threadIdx.x == 0) {
        above += rest.lowest > cut ? rest.surplus : 0;
        equal += rest.lowest == cut ? rest.surplus : 0;
    }
    atomicAdd(&rest.above, above);
    atomicAdd(&rest.equal, equal);
}

/* One block for each `group` rows of n; keeps: of every block. */
/* registers <= 40 */
__global__ void __launch_bounds__(SELECT_THREADS) count_jointly(int32_t *n_kept, const float *score, int n, int group,
                                                                const struct joint_keep *keeps, bool aligned)
{
    SHARED_ARRAY(struct bins, b, 1);
    SHARED_DYNAMIC(struct rest, rest); // (group)
    const struct joint_keep keep = keeps[blockIdx.x];
    const int tid = (int)threadIdx.x;
    struct search s = search_of((uint32_t)(keep.n_keep - keep.floor * group));

    n_kept += blockIdx.x * (unsigned)group;
    score += blockIdx.x * (size_t)group * (size_t)n;
    for (int h = 0; h < group; h++) {
        const struct scores row = { score + (size_t)h * (size_t)n, n, aligned };
        struct cut cut = {};
        if (keep.floor > 0)
            cut = cut_row(b[0], row, (uint32_t)keep.floor);
        if (tid == 0)
            rest[h] = { cut.lowest, cut.n_equal - cut.equals, 0, 0 };
    }
    while (s.wanted > 0 && s.shift >= 0) {
        clear_bins(b[0]);
        for (int h = 0; h < group; h++)
            count_rest(b[0], s, { score + (size_t)h * (size_t)n, n, aligned }, rest[h], keep);
        settle(b[0], s);
    }
    for (int h = 0; s.wanted > 0 && h < group; h++)
        count_kept(rest[h], { score + (size_t)h * (size_t)n, n, aligned }, keep, s.found);
    __syncthreads();
    if (tid > 0)
        return;
    for (int h = 0; h < group; h++) { // equal scores: lower rows first
        const uint32_t equals = min(rest[h].equal, s.wanted);
        n_kept[h] = keep.floor + (int)(rest[h].above + equals);
        s.wanted -= equals;
    }
}

void cuda_joint_counts(struct backend *be, int32_t *count, const float *score, int n_heads, int n, int group,
                       const struct joint_keep *keep)
{
    struct cuda *c = cuda_of(be);
    const struct joint_keep *on_device = cuda_upload_list(c, keep, n_heads / group);

    if (on_device)
        LAUNCH(c, count_jointly, dim3((unsigned)(n_heads / group)), SELECT_THREADS,
               (size_t)group * sizeof(struct rest), count, score, n, group, on_device,
               is_aligned(score, (size_t)n * sizeof(float)));
}

/* ---- keeping ------------------------------------------------------------- */

enum { GATHER_THREADS = 256, ROWS_OF_BLOCK = 64 };

struct head_move {
    const void *k, *v;
    void *to_k, *to_v;
    size_t start; // of its positions
    int n;
};

/* Rows of head blockIdx.y, n_units of U each; n_units neighbouring threads take a row. */
/* registers <= 40 */
template <typename U>
__global__ void __launch_bounds__(GATHER_THREADS)
    gather_rows(const struct head_move *heads, const int32_t *kept, int n_units)
{
    const struct head_move head = heads[blockIdx.y];
    const int across = min(n_units, (int)GATHER_THREADS), step = GATHER_THREADS / across;
    const int first = (int)blockIdx.x * ROWS_OF_BLOCK, end = min(first + ROWS_OF_BLOCK, head.n);
    const int mine = (int)threadIdx.x / across;
    const U *k = static_cast<const U *>(head.k), *v = static_cast<const U *>(head.v);
    U *to_k = static_cast<U *>(head.to_k), *to_v = static_cast<U *>(head.to_v);

    if (mine >= step)
        return;
    for (int i = first + mine; i < end; i += step) {
        const size_t from = (size_t)kept[head.start + (size_t)i] * (size_t)n_units, to = (size_t)i * (size_t)n_units;
        for (size_t u = threadIdx.x % (unsigned)across; u < (size_t)n_units; u += (size_t)across) {
            to_k[to + u] = k[from + u];
            to_v[to + u] = v[from + u];
        }
    }
}

void cuda_gather(struct backend *be, const struct kv_rows *dst, const struct kv_rows *src, const int32_t *kept,
                 int n_heads, int head_dim)
{
    struct cuda *c = cuda_of(be);
    const size_t row = (size_t)head_dim * dtype_size(be->dtype);
    struct head_move *list = static_cast<struct head_move *>(calloc((size_t)n_heads + 1, sizeof(*list)));
    size_t start = 0;
    int longest = 0;
    bool aligned = true;

    if (!list) {
        cuda_fail(c, ERR_NOMEM, "out of memory");
        return;
    }
    for (int h = 0; h < n_heads; h++) {
        list[h] = { src[h].k, src[h].v, dst[h].k, dst[h].v, start, dst[h].n };
        start += (size_t)dst[h].n;
        longest = max(longest, dst[h].n);
        aligned = aligned && is_aligned(src[h].k, row) && is_aligned(src[h].v, row) && is_aligned(dst[h].k, row) &&
                  is_aligned(dst[h].v, row);
    }
    const struct head_move *heads = cuda_upload_list(c, list, n_heads);
    const dim3 grid(cuda_pieces((size_t)longest, ROWS_OF_BLOCK), (unsigned)n_heads);
    free(list);
    if (!heads)
        return;
    if (aligned)
        LAUNCH(c, (gather_rows<uint4>), grid, GATHER_THREADS, 0, heads, kept, (int)(row / sizeof(uint4)));
    else
        LAUNCH(c, (gather_rows<uint16_t>), grid, GATHER_THREADS, 0, heads, kept, (int)(row / sizeof(uint16_t)));
}

size_t cuda_select_bytes(const struct cuda *c, const struct work_shape *shape)
{
    (void)c;
    (void)shape;
    return 0;
}
