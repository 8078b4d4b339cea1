/* kernel_side.h - what CUDA's C++ gives a kernel, on the host: qualifiers, vectors, barriers, warp operations, atomics.
 *
 * Included through cuda_runtime.h alone. Names and rules are CUDA's. Float atomics, warp operations without a mask and
 * cooperative groups are not here, because kernels/cuda/ may not use them: they do not compile.
 */
#ifndef EVP_EMULATED_KERNEL_SIDE_H
#define EVP_EMULATED_KERNEL_SIDE_H

#include "tests/cuda/emulated/emulator.h"

#include <math.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n)    __attribute__((aligned(n)))
#define __launch_bounds__(...)

#define threadIdx (emu::current->index)
#define blockIdx  (emu::block.index)
#define blockDim  (emu::block.size)
#define gridDim   (emu::block.grid)
enum { warpSize = 32 };

/* ---- vectors ------------------------------------------------------------- */

#define EMU_VECTORS(type, of)                                                                                          \
    struct alignas(2 * sizeof(of)) type##2                                                                             \
    {                                                                                                                  \
        of x, y;                                                                                                       \
    };                                                                                                                 \
    struct alignas(4 * sizeof(of) > 16 ? 16 : 4 * sizeof(of)) type##4                                                  \
    {                                                                                                                  \
        of x, y, z, w;                                                                                                 \
    };                                                                                                                 \
    inline type##2 make_##type##2(of x, of y)                                                                          \
    {                                                                                                                  \
        return { x, y };                                                                                               \
    }                                                                                                                  \
    inline type##4 make_##type##4(of x, of y, of z, of w)                                                              \
    {                                                                                                                  \
        return { x, y, z, w };                                                                                         \
    }
EMU_VECTORS(char, signed char)
EMU_VECTORS(uchar, unsigned char)
EMU_VECTORS(short, short)
EMU_VECTORS(ushort, unsigned short)
EMU_VECTORS(int, int)
EMU_VECTORS(uint, unsigned)
EMU_VECTORS(longlong, long long)
EMU_VECTORS(ulonglong, unsigned long long)
EMU_VECTORS(float, float)
EMU_VECTORS(double, double)
struct int3 {
    int x, y, z;
};
struct float3 {
    float x, y, z;
};

/* ---- inside kernels ------------------------------------------------------ */

inline void __syncthreads(EMU_HERE)
{
    emu::barrier(emu::VOTE_NONE, 0, here);
}
inline int __syncthreads_count(int predicate, EMU_HERE)
{
    return emu::barrier(emu::VOTE_COUNT, predicate, here);
}
inline int __syncthreads_or(int predicate, EMU_HERE)
{
    return emu::barrier(emu::VOTE_COUNT, predicate, here) > 0;
}
inline int __syncthreads_and(int predicate, EMU_HERE)
{
    return emu::barrier(emu::VOTE_COUNT, !predicate, here) == 0;
}
inline void __threadfence()
{
}
inline void __threadfence_block()
{
}

namespace emu
{

extern const struct warp_op op_syncwarp, op_shuffle, op_shuffle_xor, op_shuffle_down, op_shuffle_up, op_ballot, op_add,
    op_min, op_max, op_and, op_or, op_xor, op_match;

/* The value of lane `from`, which is one of the mask. */
template <class T> inline T shuffle(const struct warp_op *op, unsigned mask, T value, int from, place here)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle is of 4 or 8 bytes");
    constexpr int n = sizeof(T) / 4;
    uint32_t in[3] = { 0, 0, (uint32_t)from };

    memcpy(in, &value, sizeof(T));
    const uint32_t *out = warp_do(op, mask, in, 3, here);
    if (!(mask >> from & 1))
        die("%s at %s:%d: from lane %d, which is not in the mask %08x", op->what, here.file, here.line, from, mask);
    uint32_t words[n];
    for (int i = 0; i < n; i++)
        words[i] = out[i];
    memcpy(&value, words, sizeof(T));
    return value;
}

inline uint32_t warp_word(const struct warp_op *op, unsigned mask, uint32_t word, place here)
{
    return warp_do(op, mask, &word, 1, here)[0];
}

} // namespace emu

inline void __syncwarp(unsigned mask = 0xffffffffu, EMU_HERE)
{
    emu::warp_do(&emu::op_syncwarp, mask, NULL, 0, here);
}
template <class T> inline T __shfl_sync(unsigned mask, T value, int from, int width = 32, EMU_HERE)
{
    int lane = emu::current->lane;

    return emu::shuffle(&emu::op_shuffle, mask, value, (lane & ~(width - 1)) | (from & (width - 1)), here);
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32, EMU_HERE)
{
    int lane = emu::current->lane, from = lane ^ with;

    return emu::shuffle(&emu::op_shuffle_xor, mask, value, from >= (lane & ~(width - 1)) + width ? lane : from, here);
}
template <class T> inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, EMU_HERE)
{
    int lane = emu::current->lane;

    return emu::shuffle(&emu::op_shuffle_down, mask, value,
                        (lane & (width - 1)) + (int)by < width ? lane + (int)by : lane, here);
}
template <class T> inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, EMU_HERE)
{
    int lane = emu::current->lane;

    return emu::shuffle(&emu::op_shuffle_up, mask, value, (lane & (width - 1)) >= (int)by ? lane - (int)by : lane,
                        here);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, EMU_HERE)
{
    return emu::warp_word(&emu::op_ballot, mask, predicate != 0, here);
}
inline int __any_sync(unsigned mask, int predicate, EMU_HERE)
{
    return emu::warp_word(&emu::op_ballot, mask, predicate != 0, here) != 0;
}
inline int __all_sync(unsigned mask, int predicate, EMU_HERE)
{
    return emu::warp_word(&emu::op_ballot, mask, predicate == 0, here) == 0;
}
inline unsigned __match_any_sync(unsigned mask, unsigned value, EMU_HERE)
{
    return emu::warp_word(&emu::op_match, mask, value, here);
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value, EMU_HERE)
{
    return emu::warp_word(&emu::op_add, mask, value, here);
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value, EMU_HERE)
{
    return emu::warp_word(&emu::op_min, mask, value, here);
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value, EMU_HERE)
{
    return emu::warp_word(&emu::op_max, mask, value, here);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, EMU_HERE)
{
    return emu::warp_word(&emu::op_and, mask, value, here);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, EMU_HERE)
{
    return emu::warp_word(&emu::op_or, mask, value, here);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, EMU_HERE)
{
    return emu::warp_word(&emu::op_xor, mask, value, here);
}

/* ---- atomics of integers, without order ---------------------------------- */

namespace emu
{
template <class T> struct same {
    typedef T type;
};
template <class T> using same_t = typename same<T>::type;

template <class T> constexpr bool is_atomic = false;
template <> constexpr bool is_atomic<int> = true;
template <> constexpr bool is_atomic<unsigned> = true;
template <> constexpr bool is_atomic<unsigned long long> = true;

template <class T, class F> inline T atomic(T *at, F change)
{
    static_assert(is_atomic<T>, "atomics are of int, unsigned and unsigned long long");
    T old = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(at, &old, change(old), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return old;
}
} // namespace emu

template <class T> inline T atomicAdd(T *at, emu::same_t<T> value)
{
    return emu::atomic(at, [=](T old) { return old + value; });
}
template <class T> inline T atomicSub(T *at, emu::same_t<T> value)
{
    return emu::atomic(at, [=](T old) { return old - value; });
}
template <class T> inline T atomicMin(T *at, emu::same_t<T> value)
{
    return emu::atomic(at, [=](T old) { return old < value ? old : value; });
}
template <class T> inline T atomicMax(T *at, emu::same_t<T> value)
{
    return emu::atomic(at, [=](T old) { return old > value ? old : value; });
}
template <class T> inline T atomicOr(T *at, emu::same_t<T> value)
{
    return emu::atomic(at, [=](T old) { return old | value; });
}
template <class T> inline T atomicAnd(T *at, emu::same_t<T> value)
{
    return emu::atomic(at, [=](T old) { return old & value; });
}
template <class T> inline T atomicExch(T *at, emu::same_t<T> value)
{
    return emu::atomic(at, [=](T) { return value; });
}
template <class T> inline T atomicCAS(T *at, emu::same_t<T> compare, emu::same_t<T> value)
{
    return emu::atomic(at, [=](T old) { return old == compare ? value : old; });
}

/* ---- arithmetic ---------------------------------------------------------- */

template <class To, class From> inline To emu_bits(From x)
{
    static_assert(sizeof(To) == sizeof(From), "the same number of bytes");
    To y;

    memcpy(&y, &x, sizeof(y));
    return y;
}
inline unsigned __float_as_uint(float x)
{
    return emu_bits<unsigned>(x);
}
inline int __float_as_int(float x)
{
    return emu_bits<int>(x);
}
inline float __uint_as_float(unsigned x)
{
    return emu_bits<float>(x);
}
inline float __int_as_float(int x)
{
    return emu_bits<float>(x);
}
inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
inline unsigned __brev(unsigned x)
{
    unsigned y = 0;

    for (int i = 0; i < 32; i++)
        y |= (x >> i & 1) << (31 - i);
    return y;
}
inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}
inline float __expf(float x)
{
    return expf(x);
}
inline float __logf(float x)
{
    return logf(x);
}
inline float __log2f(float x)
{
    return log2f(x);
}
inline float __fdividef(float a, float b)
{
    return a / b;
}
inline float __frcp_rn(float x)
{
    return 1.0f / x;
}
inline float __fsqrt_rn(float x)
{
    return sqrtf(x);
}
inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}
inline double rsqrt(double x)
{
    return 1.0 / sqrt(x);
}
/* Operations that a compiler may not contract into others. */
inline __attribute__((noinline)) float __fmul_rn(float a, float b)
{
    return a * b;
}
inline __attribute__((noinline)) float __fadd_rn(float a, float b)
{
    return a + b;
}
inline __attribute__((noinline)) float __fsub_rn(float a, float b)
{
    return a - b;
}
inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
inline int __float2int_rn(float x)
{
    return x >= 2147483648.0f ? 2147483647 : x < -2147483648.0f ? -2147483647 - 1 : x == x ? (int)rintf(x) : 0;
}
template <class T> inline T __ldg(const T *at)
{
    return *at;
}
template <class T> inline T __ldcs(const T *at)
{
    return *at;
}
template <class T> inline void __stcs(T *at, T value)
{
    *at = value;
}
template <class A, class B> inline auto min(A a, B b)
{
    return b < a ? b : a;
}
template <class A, class B> inline auto max(A a, B b)
{
    return a < b ? b : a;
}

#endif
