/* cuda_rows.cu - ops that go row by row: embedding, rmsnorm, rotary embedding with the KV write, the gate; and copies
 * of rows.
 *
 * Every kernel is bound by memory: it reads its input once and writes its output once, 16 bytes per thread where
 * addresses allow it. A row's bits depend only on the row.
 */
#include "kernels/cuda/cuda_lanes.h"

enum { ROW_THREADS = 256 };

/* ---- embed --------------------------------------------------------------- */

/* One block per row of out. */
/* registers <= 32 */
template <typename T>
__global__ void __launch_bounds__(ROW_THREADS)
    embed_row(const struct mat out, const struct mat table, const int32_t *ids, bool aligned)
{
    const T *from = row_of<T>(table, (size_t)ids[blockIdx.x]);
    float *to = row_of<float>(out, blockIdx.x), x[EIGHT];

    for (int i = (int)threadIdx.x * EIGHT; i < out.cols; i += ROW_THREADS * EIGHT) {
        load_some(x, from + i, out.cols - i, aligned);
        store_some(to + i, x, out.cols - i, aligned);
    }
}

void cuda_embed(struct backend *be, struct mat out, struct mat table, const int32_t *ids)
{
    struct cuda *c = cuda_of(be);
    const bool aligned = is_aligned(out) && is_aligned(table);
    const dim3 grid((unsigned)out.rows);

    if (table.type == DTYPE_F32)
        LAUNCH(c, (embed_row<float>), grid, ROW_THREADS, 0, out, table, ids, aligned);
    else if (table.type == DTYPE_BF16)
        LAUNCH(c, (embed_row<uint16_t>), grid, ROW_THREADS, 0, out, table, ids, aligned);
    else
        LAUNCH(c, (embed_row<struct f16>), grid, ROW_THREADS, 0, out, table, ids, aligned);
}

/* ---- rmsnorm ------------------------------------------------------------- */

/* One block per row; it reads the row twice, the second time from the first-level cache. */
/* registers <= 32 */
template <typename T, bool ADD>
__global__ void __launch_bounds__(ROW_THREADS)
    rmsnorm_row(const struct mat out, const struct mat x, const float *w, float eps, bool aligned)
{
    SHARED_ARRAY(float, part, ROW_THREADS / LANES);
    const float *from = row_of<float>(x, blockIdx.x);
    T *to = row_of<T>(out, blockIdx.x);
    const int first = (int)threadIdx.x * EIGHT, step = ROW_THREADS * EIGHT;
    float v[EIGHT], weight[EIGHT], squares = 0;

    for (int i = first; i < x.cols; i += step) {
        load_some(v, from + i, x.cols - i, aligned);
        for (int j = 0; j < EIGHT; j++)
            squares += v[j] * v[j];
    }
    squares = block_sum<ROW_THREADS>(squares, part);
    const float scale = 1 / sqrtf(squares / (float)x.cols + eps);
    for (int i = first; i < x.cols; i += step) {
        load_some(v, from + i, x.cols - i, aligned);
        load_some(weight, w + i, x.cols - i, aligned);
        for (int j = 0; j < EIGHT; j++)
            v[j] = v[j] * scale * weight[j];
        if constexpr (ADD) {
            load_some(weight, to + i, x.cols - i, aligned);
            for (int j = 0; j < EIGHT; j++)
                v[j] += weight[j];
        }
        store_some(to + i, v, x.cols - i, aligned);
    }
}

void cuda_rmsnorm(struct backend *be, struct mat out, struct mat x, const float *w, float eps, enum gemm_into into)
{
    struct cuda *c = cuda_of(be);
    const bool aligned = is_aligned(out) && is_aligned(x) && is_aligned(w, 0);
    const dim3 grid((unsigned)x.rows);

    if (into == GEMM_ADD)
        LAUNCH(c, (rmsnorm_row<float, true>), grid, ROW_THREADS, 0, out, x, w, eps, aligned);
    else if (out.type == DTYPE_F32)
        LAUNCH(c, (rmsnorm_row<float, false>), grid, ROW_THREADS, 0, out, x, w, eps, aligned);
    else
        LAUNCH(c, (rmsnorm_row<uint16_t, false>), grid, ROW_THREADS, 0, out, x, w, eps, aligned);
}

/* ---- rope and the KV write ----------------------------------------------- */

/* The destination of head j of token t: queries first, then keys, then values. */
template <typename T> __device__ __forceinline__ T *head_place(const struct rope_job &job, int t, int j)
{
    const int H = job.n_heads, G = job.n_kv_heads, group = H / G;
    size_t row;

    if (j < H) {
        row = ((size_t)(j / group) * (size_t)job.qkv.rows + (size_t)t) * (size_t)group + (size_t)(j % group);
        return static_cast<T *>(job.q) + row * (size_t)job.head_dim;
    }
    row = (size_t)(job.layer * G + (j - H) % G) * job.store.head_rows + (size_t)job.slot[t];
    return static_cast<T *>(j < H + G ? job.store.k : job.store.v) + row * (size_t)job.head_dim;
}

/* One lane's share of a section of a head: columns i and i + half of the section, eight pairs at a time. */
struct head_part {
    int half, first, step;
    bool aligned;
};

/* The sum of the squares of a lane's share. */
template <typename T> __device__ __forceinline__ float part_squares(const T *from, const struct head_part p)
{
    float low[EIGHT], high[EIGHT], squares = 0;

    for (int i = p.first; i < p.half; i += p.step) {
        load_some(low, from + i, p.half - i, p.aligned);
        load_some(high, from + p.half + i, p.half - i, p.aligned);
        for (int e = 0; e < EIGHT; e++)
            squares += low[e] * low[e] + high[e] * high[e];
    }
    return squares;
}

/* Writes a lane's share: times scale and norm unless norm is NULL, rotated by the angles unless they are NULL. */
template <typename T>
__device__ __forceinline__ void place_part(T *to, const T *from, const struct head_part p, const float *norm,
                                           float scale, const float *cos, const float *sin)
{
    const int half = p.half;
    float low[EIGHT], high[EIGHT], a[EIGHT], b[EIGHT];

    for (int i = p.first; i < half; i += p.step) {
        load_some(low, from + i, half - i, p.aligned);
        load_some(high, from + half + i, half - i, p.aligned);
        if (norm) {
            load_some(a, norm + i, half - i, p.aligned);
            load_some(b, norm + half + i, half - i, p.aligned);
            for (int e = 0; e < EIGHT; e++) {
                low[e] = low[e] * scale * a[e];
                high[e] = high[e] * scale * b[e];
            }
        }
        if (cos) {
            load_some(a, cos + i, half - i, p.aligned);
            load_some(b, sin + i, half - i, p.aligned);
            for (int e = 0; e < EIGHT; e++) {
                const float x = low[e], y = high[e];
                low[e] = x * a[e] - y * b[e];
                high[e] = y * a[e] + x * b[e];
            }
        }
        store_some(to + i, low, half - i, p.aligned);
        store_some(to + half + i, high, half - i, p.aligned);
    }
}

/* A head has two sections: the first `rotary` columns are rotated, the others, if any, are not. `lanes` neighbouring
 * lanes take one head of one token. */
/* registers <= 80 */
template <typename T>
__global__ void __launch_bounds__(ROW_THREADS, 3) rope_heads(const struct rope_job job, int lanes, bool aligned)
{
    const int H = job.n_heads, G = job.n_kv_heads, K = job.head_dim, turned = job.cos ? job.rotary : K;
    const size_t item = ((size_t)blockIdx.x * ROW_THREADS + threadIdx.x) / (unsigned)lanes;
    const int t = (int)(item / (unsigned)(H + 2 * G)), j = (int)(item % (unsigned)(H + 2 * G));
    const bool present = t < job.qkv.rows;
    const struct head_part part = { turned / 2, (int)threadIdx.x % lanes * EIGHT, lanes * EIGHT, aligned };
    const struct head_part rest = { (K - turned) / 2, part.first, part.step, aligned };
    const float *norm = j < H ? job.q_norm : j < H + G ? job.k_norm : NULL;
    const T *from = row_of<T>(job.qkv, (size_t)t) + (size_t)j * (size_t)K;
    float scale = 1;

    if (job.q_norm || job.k_norm) { // every lane takes part in the sum
        const float squares = present ? part_squares(from, part) + part_squares(from + turned, rest) : 0;
        scale = 1 / sqrtf(lanes_sum(squares, lanes) / (float)K + job.norm_eps);
    }
    if (!present)
        return;
    T *to = head_place<T>(job, t, j);
    const size_t angle = job.cos && j < H + G ? (size_t)job.position[t] * (size_t)part.half : 0;
    const float *cos = job.cos && j < H + G ? job.cos + angle : NULL;
    place_part(to, from, part, norm, scale, cos, cos ? job.sin + angle : NULL);
    place_part(to + turned, from + turned, rest, norm ? norm + turned : NULL, scale, NULL, NULL);
}

/* Are both halves of a section of `columns` aligned, in heads and in angles? */
static bool is_part_aligned(const struct rope_job *job, int columns)
{
    const size_t half = (size_t)columns / 2, bytes = half * dtype_size(job->qkv.type);

    return is_aligned(job->q, bytes) && is_aligned(job->store.k, bytes) && is_aligned(job->store.v, bytes) &&
           is_aligned(job->cos, half * sizeof(float)) && is_aligned(job->sin, 0) &&
           is_aligned(job->q_norm, half * sizeof(float)) && is_aligned(job->k_norm, half * sizeof(float));
}

void cuda_rope(struct backend *be, const struct rope_job *job)
{
    struct cuda *c = cuda_of(be);
    const int K = job->head_dim, turned = job->cos ? job->rotary : K, heads = job->n_heads + 2 * job->n_kv_heads;
    const bool aligned = is_aligned(job->qkv) && is_part_aligned(job, turned) && is_part_aligned(job, K - turned);
    int lanes = 1;

    while (lanes < LANES && lanes * EIGHT < K / 2)
        lanes *= 2;
    const dim3 grid(cuda_pieces((size_t)job->qkv.rows * (size_t)(heads * lanes), ROW_THREADS));
    if (job->qkv.type == DTYPE_F32)
        LAUNCH(c, (rope_heads<float>), grid, ROW_THREADS, 0, *job, lanes, aligned);
    else
        LAUNCH(c, (rope_heads<uint16_t>), grid, ROW_THREADS, 0, *job, lanes, aligned);
}

/* ---- the MLP's gate -------------------------------------------------------- */

/* Row blockIdx.x, eight columns per thread. */
/* registers <= 32 */
template <typename T, enum gate GATE>
__global__ void __launch_bounds__(ROW_THREADS)
    gate_mul_row(const struct mat out, const struct mat gate_up, bool aligned)
{
    const int i = ((int)blockIdx.y * ROW_THREADS + (int)threadIdx.x) * EIGHT, left = out.cols - i;
    const T *gate = row_of<T>(gate_up, blockIdx.x) + i;
    float x[EIGHT], up[EIGHT];

    if (left <= 0)
        return;
    load_some(x, gate, left, aligned);
    load_some(up, gate + out.cols, left, aligned);
    for (int j = 0; j < EIGHT; j++) {
        if (GATE == GATE_CLAMPED) {
            x[j] = fminf(x[j], CLAMPED_AT);
            up[j] = fminf(fmaxf(up[j], -CLAMPED_AT), CLAMPED_AT) + 1;
        }
        const float cube = (float)GELU_CUBE * x[j] * x[j] * x[j];
        const float y = GATE == GATE_GELU      ? (float)GELU_STEEP * (x[j] + cube)
                        : GATE == GATE_CLAMPED ? (float)CLAMPED_STEEP * x[j]
                                               : x[j];
        x[j] = x[j] / (1 + expf(-y)) * up[j];
    }
    store_some(row_of<T>(out, blockIdx.x) + i, x, left, aligned);
}

void cuda_gate_mul(struct backend *be, struct mat out, struct mat gate_up, enum gate gate)
{
    struct cuda *c = cuda_of(be);
    const bool aligned =
        is_aligned(out) && is_aligned(gate_up) && is_aligned(NULL, (size_t)out.cols * dtype_size(out.type));
    const dim3 grid((unsigned)out.rows, cuda_pieces((size_t)out.cols, ROW_THREADS * EIGHT));

    const bool f32 = out.type == DTYPE_F32;
    if (gate == GATE_GELU && f32)
        LAUNCH(c, (gate_mul_row<float, GATE_GELU>), grid, ROW_THREADS, 0, out, gate_up, aligned);
    else if (gate == GATE_GELU)
        LAUNCH(c, (gate_mul_row<uint16_t, GATE_GELU>), grid, ROW_THREADS, 0, out, gate_up, aligned);
    else if (gate == GATE_CLAMPED && f32)
        LAUNCH(c, (gate_mul_row<float, GATE_CLAMPED>), grid, ROW_THREADS, 0, out, gate_up, aligned);
    else if (gate == GATE_CLAMPED)
        LAUNCH(c, (gate_mul_row<uint16_t, GATE_CLAMPED>), grid, ROW_THREADS, 0, out, gate_up, aligned);
    else if (f32)
        LAUNCH(c, (gate_mul_row<float, GATE_SILU>), grid, ROW_THREADS, 0, out, gate_up, aligned);
    else
        LAUNCH(c, (gate_mul_row<uint16_t, GATE_SILU>), grid, ROW_THREADS, 0, out, gate_up, aligned);
}

/* ---- moves --------------------------------------------------------------- */

enum { COPIES_OF_THREAD = 4 }; // moves in flight

/* Copies this block's share of n units; the blocks along y share the copy. */
template <typename U> __device__ __forceinline__ void move_share(U *to, const U *from, size_t n)
{
    for (size_t i = (size_t)blockIdx.y * ROW_THREADS + threadIdx.x; i < n; i += (size_t)gridDim.y * ROW_THREADS)
        to[i] = from[i];
}

/* The number of blocks that share a copy of n units. */
static unsigned shares(size_t n)
{
    return min(cuda_pieces(n, (size_t)ROW_THREADS * COPIES_OF_THREAD), 65535u); // the maximum of gridDim.y
}

/* Row blockIdx.x + 1 = row 0. pitch and n are in units. */
/* registers <= 32 */
template <typename U> __global__ void __launch_bounds__(ROW_THREADS) repeat_row(U *row, size_t pitch, size_t n)
{
    move_share(row + (blockIdx.x + 1) * pitch, row, n);
}

template <typename U> static void repeat_units(struct cuda *c, void *dst, size_t pitch, int n, size_t bytes)
{
    const dim3 grid((unsigned)(n - 1), shares(bytes / sizeof(U)));

    LAUNCH(c, (repeat_row<U>), grid, ROW_THREADS, 0, static_cast<U *>(dst), pitch / sizeof(U), bytes / sizeof(U));
}

void cuda_repeat(struct backend *be, void *dst, size_t pitch, int n, const void *host, size_t bytes)
{
    struct cuda *c = cuda_of(be);
    const size_t all = (uintptr_t)dst | pitch | bytes;

    if (n <= 0 || bytes == 0)
        return;
    be->write(be, dst, host, bytes); // row 0
    if (all % sizeof(uint4) == 0)
        repeat_units<uint4>(c, dst, pitch, n, bytes);
    else if (all % sizeof(uint32_t) == 0)
        repeat_units<uint32_t>(c, dst, pitch, n, bytes);
    else
        repeat_units<unsigned char>(c, dst, pitch, n, bytes);
}

/* Copy blockIdx.x of head blockIdx.z, keys and values. head_units: from head to head; row_units: of a slot. */
/* registers <= 32 */
template <typename U>
__global__ void __launch_bounds__(ROW_THREADS)
    copy_slot_range(const struct kv_store store, const struct slot_copy copy, size_t head_units, size_t row_units)
{
    const size_t head = blockIdx.z * head_units, from = head + (size_t)copy.from * row_units,
                 to = head + (size_t)copy.to[blockIdx.x] * row_units, n = (size_t)copy.n * row_units;
    U *k = static_cast<U *>(store.k), *v = static_cast<U *>(store.v);

    move_share(k + to, k + from, n);
    move_share(v + to, v + from, n);
}

template <typename U>
static void copy_units(struct cuda *c, const struct kv_store *store, struct slot_copy copy, int heads, size_t row)
{
    const size_t units = row / sizeof(U);
    const dim3 grid((unsigned)copy.n_to, shares((size_t)copy.n * units), (unsigned)heads);

    LAUNCH(c, (copy_slot_range<U>), grid, ROW_THREADS, 0, *store, copy, store->head_rows * units, units);
}

void cuda_copy_slots(struct backend *be, const struct kv_store *store, const struct kv_shape *shape,
                     const struct slot_copy *copy)
{
    struct cuda *c = cuda_of(be);
    const size_t row = (size_t)shape->head_dim * dtype_size(be->dtype);
    const int heads = kv_all_layers(shape) * shape->n_kv_heads;
    struct slot_copy on_device = *copy;

    if (copy->n_to == 0)
        return;
    on_device.to = cuda_upload_list(c, copy->to, copy->n_to);
    if (!on_device.to)
        return;
    if (is_aligned(store->k, row) && is_aligned(store->v, row))
        copy_units<uint4>(c, store, on_device, heads, row);
    else
        copy_units<uint16_t>(c, store, on_device, heads, row);
}
