/* cuda_quantise.cu - quantising and its inverse, with exactly the bits of the contract's formulas.
 *
 * QUANT_MINMAX: a thread quantises one group, or dequantises one word of codes, eight numbers at a time. Where lines
 * are columns, the lanes of a warp take neighbouring columns, so their reads are contiguous. Where lines are rows, they
 * take neighbouring groups or words, 16 bytes at a time.
 *
 * The other formats: a warp moves rows between device and shared memory, and each of its threads packs or unpacks one
 * of them there, as codes/quant_row.h says.
 */
#include "kernels/cuda/cuda_lanes.h"

enum {
    QUANT_THREADS = 256,
    QUANT_WARPS = QUANT_THREADS / LANES, // groups or words of a column that a block takes
    WORD_BITS = 32,
    ITEMS = 16384, // of one launch
};
static_assert((int)QUANT_WARPS == (int)QUANT_PARTS, "a warp for each part of a head's rows");

/* A quant_item in terms of its lines. */
struct lines {
    int n, n_groups, words, per_word; // lines; groups of each; words of a group; codes of a word
    size_t along, across;             // from number to number of a line, and from line to line
    bool aligned;                     // where lines are rows: all groups are aligned for 16-byte accesses
};

template <typename T> static __device__ __forceinline__ struct lines lines_of(const struct quant_item &q)
{
    const bool columns = q.lines == QUANT_COLUMNS;
    const size_t cols = (size_t)q.cols;

    return { columns ? q.cols : q.rows,
             (columns ? q.rows : q.cols) / q.group,
             q.group * q.bits / WORD_BITS,
             WORD_BITS / q.bits,
             columns ? cols : 1,
             columns ? 1 : cols,
             ((size_t)q.x | cols * sizeof(T) | (size_t)q.group * sizeof(T)) % 16 == 0 };
}

/* This thread's line, and which of the line's `parts` groups or words; false: none. */
static __device__ __forceinline__ bool my_part(const struct quant_item &q, int n_lines, int parts, int *line, int *part)
{
    if (n_lines == 0 || parts == 0)
        return false;
    if (q.lines == QUANT_ROWS) {
        const size_t at = (size_t)blockIdx.x * QUANT_THREADS + threadIdx.x;
        *line = (int)(at / (unsigned)parts);
        *part = (int)(at % (unsigned)parts);
    } else {
        const unsigned blocks = ((unsigned)n_lines + LANES - 1) / LANES; // side by side
        *line = (int)(blockIdx.x % blocks * LANES + threadIdx.x % LANES);
        *part = (int)(blockIdx.x / blocks * QUANT_WARPS + threadIdx.x / LANES);
    }
    return *line < n_lines && *part < parts;
}

/* The number of blocks that my_part() needs. */
static unsigned blocks_of(const struct quant_item &q, size_t parts)
{
    if (q.lines == QUANT_ROWS)
        return cuda_pieces((size_t)q.rows * parts, QUANT_THREADS);
    return cuda_pieces((size_t)q.cols, LANES) * cuda_pieces(parts, QUANT_WARPS);
}

/* The first eight of `left` numbers of a line. */
template <typename T>
static __device__ __forceinline__ void read_some(float (&x)[EIGHT], const T *at, const struct lines &l, int left)
{
    if (l.along == 1) {
        load_some(x, at, left, l.aligned);
        return;
    }
    for (int j = 0; j < EIGHT; j++)
        x[j] = j < left ? load_as_float(at + (size_t)j * l.along) : 0;
}

template <typename T>
static __device__ __forceinline__ void write_some(T *at, const float (&x)[EIGHT], const struct lines &l, int left)
{
    if (l.along == 1) {
        store_some(at, x, left, l.aligned);
        return;
    }
    for (int j = 0; j < EIGHT; j++)
        if (j < left)
            store_float(at + (size_t)j * l.along, x[j]);
}

/* The nearest f16 that is finite. */
static __device__ __forceinline__ uint16_t finite_f16(float x)
{
    const uint16_t h = float_to_f16(x);

    return (h & 0x7fff) == 0x7c00 ? (uint16_t)(h - 1) : h;
}

/* registers <= 64 */
template <typename T> __global__ void __launch_bounds__(QUANT_THREADS) quantise_groups(const struct quant_item *items)
{
    const struct quant_item q = items[blockIdx.y];
    if (q.row.format != QUANT_MINMAX)
        return;
    const struct lines l = lines_of<T>(q);
    const float top = (float)((1 << q.bits) - 1);
    int line, part;
    float x[EIGHT];

    if (!my_part(q, l.n, l.n_groups, &line, &part))
        return;
    const T *from = static_cast<const T *>(q.x) + (size_t)line * l.across + (size_t)part * (size_t)q.group * l.along;
    const size_t group = (size_t)line * (size_t)l.n_groups + (size_t)part;
    float low = load_as_float(from), high = low;
    for (int i = 0; i < q.group; i += EIGHT) {
        read_some(x, from + (size_t)i * l.along, l, q.group - i);
        for (int j = 0; j < EIGHT && i + j < q.group; j++) {
            low = fminf(low, x[j]);
            high = fmaxf(high, x[j]);
        }
    }
    const uint16_t zero16 = finite_f16(low);
    const float zero = f16_to_float(zero16);
    const uint16_t scale16 = finite_f16((high - zero) / top);
    const float scale = f16_to_float(scale16);
    q.zeros[group] = zero16;
    q.scales[group] = scale16;
    int32_t *codes = q.codes + group * (size_t)l.words;
    uint32_t word = 0;
    for (int i = 0; i < q.group; i += EIGHT) {
        read_some(x, from + (size_t)i * l.along, l, q.group - i);
        for (int j = 0; j < EIGHT && i + j < q.group; j++) {
            const int place = (i + j) % l.per_word;
            if (scale > 0)
                word |= (uint32_t)rintf(fminf(fmaxf((x[j] - zero) / scale, 0), top)) << place * q.bits;
            if (place == l.per_word - 1) {
                codes[(i + j) / l.per_word] = (int32_t)word;
                word = 0;
            }
        }
    }
}

/* registers <= 40 */
template <typename T> __global__ void __launch_bounds__(QUANT_THREADS) dequantise_words(const struct quant_item *items)
{
    const struct quant_item q = items[blockIdx.y];
    if (q.row.format != QUANT_MINMAX)
        return;
    const struct lines l = lines_of<T>(q);
    const int words = l.n_groups * l.words; // of a line
    const uint32_t mask = (1u << q.bits) - 1;
    int line, part;
    float x[EIGHT];

    if (!my_part(q, l.n, words, &line, &part))
        return;
    const size_t at = (size_t)line * (size_t)words + (size_t)part, group = at / (unsigned)l.words;
    const float scale = f16_to_float(q.scales[group]), zero = f16_to_float(q.zeros[group]);
    const uint32_t word = (uint32_t)q.codes[at];
    T *to = static_cast<T *>(q.x) + (size_t)line * l.across + (size_t)part * (size_t)l.per_word * l.along;
    for (int i = 0; i < l.per_word; i += EIGHT) {
        for (int j = 0; j < EIGHT; j++) {
            const float code = i + j < l.per_word ? (float)(word >> (i + j) * q.bits & mask) : 0;
            x[j] = __fadd_rn(__fmul_rn(code, scale), zero); // two roundings, not one
        }
        write_some(to + (size_t)i * l.along, x, l, l.per_word - i);
    }
}

/* ---- rows one by one ----------------------------------------------------- */

/* What the rows of an item share: warp w looks at rows w, w + QUANT_PARTS, ... */
/* registers <= 40 */
template <typename T> __global__ void __launch_bounds__(QUANT_THREADS) pack_head(const struct quant_item *items)
{
    SHARED_DYNAMIC(float, column); // (QUANT_PARTS, cols)
    const struct quant_item q = items[blockIdx.x];
    const T *x = static_cast<const T *>(q.x);
    const int part = (int)threadIdx.x / LANES;

    if (q.row.format == QUANT_MINMAX || quant_row_bytes(&q.row).head == 0)
        return;
    for (int j = (int)threadIdx.x % LANES; j < q.cols; j += LANES) {
        float so_far = 0;
        for (int i = part; i < q.rows; i += QUANT_PARTS)
            so_far = quant_column(&q.row, so_far, load_as_float(x + (size_t)i * (size_t)q.cols + j));
        column[part * q.cols + j] = so_far;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        quant_head_pack(&q.row, q.at.head, column);
}

/* Numbers from one row in shared memory to the next: odd, so that threads at the same column use different banks. */
static __host__ __device__ __forceinline__ size_t row_pitch(const struct quant_item &q)
{
    return quant_row_work(&q.row) | 1;
}

/* registers <= 72 */
template <typename T>
__global__ void __launch_bounds__(LANES) pack_rows(const struct quant_item *items, const float *rotation)
{
    SHARED_DYNAMIC(float, x);
    struct quant_item q = items[blockIdx.y];
    const int first = (int)blockIdx.x * LANES, mine = (int)threadIdx.x, n = min(q.rows - first, (int)LANES);
    const size_t pitch = row_pitch(q);

    if (q.row.format == QUANT_MINMAX || n <= 0)
        return;
    q.row.rotation = q.row.rotation ? rotation : NULL;
    const T *from = static_cast<const T *>(q.x) + (size_t)first * (size_t)q.cols;
    for (int i = 0; i < n; i++)
        for (int j = mine; j < q.cols; j += LANES)
            x[(size_t)i * pitch + (size_t)j] = load_as_float(from + (size_t)i * (size_t)q.cols + j);
    __syncthreads();
    if (mine >= n)
        return;
    const struct quant_at at = quant_row_at(&q.row, &q.at, (size_t)(first + mine));
    quant_row_pack(&q.row, &at, x + (size_t)mine * pitch);
}

/* registers <= 72 */
template <typename T>
__global__ void __launch_bounds__(LANES) unpack_rows(const struct quant_item *items, const float *rotation)
{
    SHARED_DYNAMIC(float, x);
    struct quant_item q = items[blockIdx.y];
    const int first = (int)blockIdx.x * LANES, mine = (int)threadIdx.x, n = min(q.rows - first, (int)LANES);
    const size_t pitch = row_pitch(q);

    if (q.row.format == QUANT_MINMAX || n <= 0)
        return;
    q.row.rotation = q.row.rotation ? rotation : NULL;
    if (mine < n) {
        const struct quant_at at = quant_row_at(&q.row, &q.at, (size_t)(first + mine));
        quant_row_unpack(&q.row, &at, x + (size_t)mine * pitch);
    }
    __syncthreads();
    T *to = static_cast<T *>(q.x) + (size_t)first * (size_t)q.cols;
    for (int i = 0; i < n; i++)
        for (int j = mine; j < q.cols; j += LANES)
            store_float(to + (size_t)i * (size_t)q.cols + j, x[(size_t)i * pitch + (size_t)j]);
}

/* ---- on the host --------------------------------------------------------- */

enum way { PACK, UNPACK };

/* What one launch takes: blocks, shared memory, and the rotation of those items that have one. */
struct grids {
    unsigned groups, rows, heads;
    size_t shared, head_shared;
    const float *rotation; // on the device
};

static struct grids grids_of(struct cuda *c, const struct quant_item *item, int n, enum way way)
{
    struct grids g = {};

    for (int i = 0; i < n; i++) {
        if (item[i].row.format == QUANT_MINMAX) {
            const int numbers = item[i].lines == QUANT_COLUMNS ? item[i].rows : item[i].cols;
            const int each = way == PACK ? item[i].group : WORD_BITS / item[i].bits;
            g.groups = max(g.groups, blocks_of(item[i], (size_t)(numbers / each)));
        } else {
            g.rows = max(g.rows, cuda_pieces((size_t)item[i].rows, LANES));
            g.shared = max(g.shared, LANES * row_pitch(item[i]) * sizeof(float));
            if (quant_row_bytes(&item[i].row).head) {
                g.heads = (unsigned)n;
                g.head_shared = max(g.head_shared, QUANT_PARTS * (size_t)item[i].cols * sizeof(float));
            }
            if (item[i].row.rotation && !g.rotation)
                g.rotation = cuda_upload_list(c, item[i].row.rotation, (int)quant_rotation_size(&item[i].row));
        }
    }
    return g;
}

template <typename T>
static void launch(struct cuda *c, const struct quant_item *items, int n, const struct grids &g, enum way way)
{
    const dim3 groups(g.groups, (unsigned)n), rows(g.rows, (unsigned)n);

    if (way == PACK) {
        LAUNCH(c, (quantise_groups<T>), groups, QUANT_THREADS, 0, items);
        LAUNCH(c, (pack_head<T>), g.heads, QUANT_THREADS, g.head_shared, items);
        LAUNCH(c, (pack_rows<T>), rows, LANES, g.shared, items, g.rotation);
    } else {
        LAUNCH(c, (dequantise_words<T>), groups, QUANT_THREADS, 0, items);
        LAUNCH(c, (unpack_rows<T>), rows, LANES, g.shared, items, g.rotation);
    }
}

/* At most ITEMS items. */
static void run_items(struct cuda *c, const struct quant_item *item, int n, enum way way)
{
    const struct quant_item *items = cuda_upload_list(c, item, n);
    const struct grids g = grids_of(c, item, n, way);

    if (items && c->base.dtype == DTYPE_F32)
        launch<float>(c, items, n, g, way);
    else if (items)
        launch<uint16_t>(c, items, n, g, way);
}

static void run_all(struct backend *be, const struct quant_item *item, int n_items, enum way way)
{
    for (int first = 0; first < n_items; first += ITEMS)
        run_items(cuda_of(be), item + first, min(n_items - first, (int)ITEMS), way);
}

void cuda_quantise(struct backend *be, const struct quant_item *item, int n_items)
{
    run_all(be, item, n_items, PACK);
}

void cuda_dequantise(struct backend *be, const struct quant_item *item, int n_items)
{
    run_all(be, item, n_items, UNPACK);
}
