/* cuda_lanes.h - helpers for kernels that go over rows: move eight numbers at a time between memory and registers, and
 * sum over the threads of a block in one fixed order.
 *
 * Numbers are float, bf16 (uint16_t) or f16 (struct f16) in memory and float in registers. Eight of them take one or
 * two 16-byte accesses where the row is aligned; the host checks that once per op with is_aligned(). Otherwise, and at
 * the end of a row, they are read and written one by one.
 */
#ifndef EVP_CUDA_LANES_H
#define EVP_CUDA_LANES_H

#include "kernels/cuda/cuda_internal.h"

#include <math.h>

enum {
    LANES = 32, // threads of a warp
    EIGHT = 8,  // numbers that a thread takes at a time
};
constexpr unsigned ALL_LANES = 0xffffffffu;

struct f16 {
    uint16_t bits;
};

/* ---- on the host --------------------------------------------------------- */

/* Are all rows, from `at` on and `pitch_bytes` apart, aligned for 16-byte accesses? NULL is aligned. */
static inline bool is_aligned(const void *at, size_t pitch_bytes)
{
    return ((uintptr_t)at | pitch_bytes) % 16 == 0;
}

static inline bool is_aligned(struct mat m)
{
    return is_aligned(m.at, (size_t)m.pitch * dtype_size(m.type));
}

/* ---- one number ---------------------------------------------------------- */

__device__ __forceinline__ float load_as_float(const float *at)
{
    return *at;
}

__device__ __forceinline__ float load_as_float(const uint16_t *at)
{
    return bf16_to_float(*at);
}

__device__ __forceinline__ float load_as_float(const struct f16 *at)
{
    return f16_to_float(at->bits);
}

__device__ __forceinline__ void store_float(float *at, float x)
{
    *at = x;
}

__device__ __forceinline__ void store_float(uint16_t *at, float x)
{
    *at = float_to_bf16(x);
}

/* The value of x after storing it as a T. */
template <typename T> __device__ __forceinline__ float rounded_to(float x);

template <> __device__ __forceinline__ float rounded_to<float>(float x)
{
    return x;
}

template <> __device__ __forceinline__ float rounded_to<uint16_t>(float x)
{
    return bf16_to_float(float_to_bf16(x));
}

/* ---- eight numbers ------------------------------------------------------- */

__device__ __forceinline__ void load_eight(float (&x)[EIGHT], const float *at)
{
    const float4 a = *reinterpret_cast<const float4 *>(at), b = *reinterpret_cast<const float4 *>(at + 4);

    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
    x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}

__device__ __forceinline__ void load_eight(float (&x)[EIGHT], const uint16_t *at)
{
    const uint4 v = *reinterpret_cast<const uint4 *>(at);
    const uint32_t word[4] = { v.x, v.y, v.z, v.w };

    for (int i = 0; i < 4; i++) {
        x[2 * i] = bf16_to_float((uint16_t)(word[i] & 0xffff));
        x[2 * i + 1] = bf16_to_float((uint16_t)(word[i] >> 16));
    }
}

__device__ __forceinline__ void load_eight(float (&x)[EIGHT], const struct f16 *at)
{
    const uint4 v = *reinterpret_cast<const uint4 *>(at);
    const uint32_t word[4] = { v.x, v.y, v.z, v.w };

    for (int i = 0; i < 4; i++) {
        x[2 * i] = f16_to_float((uint16_t)(word[i] & 0xffff));
        x[2 * i + 1] = f16_to_float((uint16_t)(word[i] >> 16));
    }
}

__device__ __forceinline__ void store_eight(float *at, const float (&x)[EIGHT])
{
    *reinterpret_cast<float4 *>(at) = make_float4(x[0], x[1], x[2], x[3]);
    *reinterpret_cast<float4 *>(at + 4) = make_float4(x[4], x[5], x[6], x[7]);
}

__device__ __forceinline__ void store_eight(uint16_t *at, const float (&x)[EIGHT])
{
    *reinterpret_cast<uint4 *>(at) =
        make_uint4(pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]), pack_bf16(x[4], x[5]), pack_bf16(x[6], x[7]));
}

/* The first eight of `left` numbers; 0 for missing ones. */
template <typename T> __device__ __forceinline__ void load_some(float (&x)[EIGHT], const T *at, int left, bool aligned)
{
    if (aligned && left >= EIGHT) {
        load_eight(x, at);
        return;
    }
    for (int i = 0; i < EIGHT; i++)
        x[i] = i < left ? load_as_float(at + i) : 0;
}

template <typename T> __device__ __forceinline__ void store_some(T *at, const float (&x)[EIGHT], int left, bool aligned)
{
    if (aligned && left >= EIGHT) {
        store_eight(at, x);
        return;
    }
    for (int i = 0; i < EIGHT; i++)
        if (i < left)
            store_float(at + i, x[i]);
}

/* Row i of a matrix. */
template <typename T> __device__ __forceinline__ T *row_of(const struct mat &m, size_t i)
{
    return static_cast<T *>(m.at) + i * (size_t)m.pitch;
}

/* Larger for a larger float: score_order() of kernels/order.h. */
__device__ __forceinline__ uint32_t order_of(float x)
{
    const uint32_t u = __float_as_uint(x + 0.0f); // -0 becomes 0

    return u & 0x80000000 ? ~u : u | 0x80000000;
}

/* ---- over threads -------------------------------------------------------- */

/* The sum over this thread's group of `lanes` neighbouring lanes; `lanes` is a power of two. */
__device__ __forceinline__ float lanes_sum(float x, int lanes)
{
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, distance);
    return x;
}

/* The sum over the block's THREADS threads, for every thread. part: shared memory (THREADS / LANES), read until the
 * next barrier. One barrier. */
template <int THREADS> __device__ __forceinline__ float block_sum(float x, float *part)
{
    const int tid = (int)threadIdx.x;

    x = lanes_sum(x, LANES);
    if (tid % LANES == 0)
        part[tid / LANES] = x;
    __syncthreads();
    x = 0;
    for (int i = 0; i < THREADS / LANES; i++)
        x += part[i];
    return x;
}

/* The sum over the block's threads before this one; *total: over all threads. warp: like block_sum()'s part. One
 * barrier. */
template <int THREADS> __device__ __forceinline__ uint32_t threads_before(uint32_t x, uint32_t *warp, uint32_t *total)
{
    const int lane = (int)threadIdx.x % LANES, mine = (int)threadIdx.x / LANES;
    uint32_t up_to = x;

    for (int distance = 1; distance < LANES; distance *= 2) {
        const uint32_t lower = __shfl_up_sync(ALL_LANES, up_to, (unsigned)distance);
        up_to += lane >= distance ? lower : 0;
    }
    if (lane == LANES - 1)
        warp[mine] = up_to;
    __syncthreads();
    uint32_t before = up_to - x, all = 0;
    for (int w = 0; w < THREADS / LANES; w++) {
        before += w < mine ? warp[w] : 0;
        all += warp[w];
    }
    *total = all;
    return before;
}

#endif
