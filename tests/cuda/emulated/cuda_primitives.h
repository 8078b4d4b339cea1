/* cuda_primitives.h - the twin of kernels/cuda/cuda_primitives.h for g++, which documents every name here.
 *
 * Test only. Rules that a device keeps silently are checked here: alignment, that an address is in shared memory, that
 * a copy is waited for.
 */
#ifndef EVP_EMULATED_CUDA_PRIMITIVES_H
#define EVP_EMULATED_CUDA_PRIMITIVES_H

#include "tests/cuda/emulated/cuda.h"

#include <cuda_runtime.h>
#include <stdint.h>

#define SHARED_ARRAY(type, name, n)                                                                                    \
    static char name##_is_shared;                                                                                      \
    type(&name)[n] = *static_cast<type(*)[n]>(emu::shared_memory(&name##_is_shared, sizeof(type[n])))

#define SHARED_DYNAMIC(type, name) type *name = static_cast<type *>(emu::shared_memory(NULL, 0))

#define KERNEL_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                  \
    emu::launch(#kernel, kernel, grid, block, shared_bytes, stream, ##__VA_ARGS__)

inline float bf16_to_float(uint16_t x)
{
    return __uint_as_float((uint32_t)x << 16);
}

inline uint16_t float_to_bf16(float x)
{
    uint32_t word = __float_as_uint(x);

    return x != x ? 0x7fff : (uint16_t)((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

inline uint32_t pack_bf16(float low, float high)
{
    return float_to_bf16(low) | (uint32_t)float_to_bf16(high) << 16;
}

namespace emu
{
float f16_to_float(uint16_t x);
uint16_t float_to_f16(float x);
extern const struct warp_op op_mma_bf16, op_ldmatrix, op_ldmatrix_transposed;
} // namespace emu

inline float f16_to_float(uint16_t x)
{
    return emu::f16_to_float(x);
}

inline uint16_t float_to_f16(float x)
{
    return emu::float_to_f16(x);
}

/* The device's is less exact, and takes numbers below the smallest normal one for 0. */
inline float exp2_fast(float x)
{
    return exp2f(x);
}

inline void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], EMU_HERE)
{
    uint32_t in[10] = { a[0], a[1], a[2], a[3], b[0], b[1] };

    for (int i = 0; i < 4; i++)
        in[6 + i] = __float_as_uint(d[i]);
    const uint32_t *out = emu::warp_do(&emu::op_mma_bf16, 0xffffffffu, in, 10, here);
    for (int i = 0; i < 4; i++)
        d[i] = __uint_as_float(out[i]);
}

template <bool transposed> inline void ldmatrix_x4(uint32_t (&r)[4], const void *row, EMU_HERE)
{
    uint32_t words[4];

    emu::check_matrix_row(row, here);
    memcpy(words, row, 16);
    const uint32_t *out =
        emu::warp_do(transposed ? &emu::op_ldmatrix_transposed : &emu::op_ldmatrix, 0xffffffffu, words, 4, here);
    for (int i = 0; i < 4; i++)
        r[i] = out[i];
}

inline void copy_async_16(void *dst, const void *src, EMU_HERE)
{
    emu::async_copy(dst, src, true, here);
}

inline void copy_async_16(void *dst, const void *src, bool valid, EMU_HERE)
{
    emu::async_copy(dst, src, valid, here);
}

inline void copy_async_commit()
{
    emu::async_commit();
}

template <int n> inline void copy_async_wait()
{
    emu::async_wait(n);
}

/* A device takes any address. */
inline void prefetch_l2(const void *at, EMU_HERE)
{
    if (!emu::on_device(at, 1))
        emu::die("prefetch_l2 at %s:%d: not an address of device memory", here.file, here.line);
}

inline size_t shared_address(const void *at)
{
    return (size_t)(static_cast<const char *>(at) - emu::shared_begin());
}

inline void phase_init(uint64_t *at, int n, EMU_HERE)
{
    emu::phase_init(at, n, here);
}

inline void phase_arrive(uint64_t *at, EMU_HERE)
{
    emu::phase_arrive(at, here);
}

inline void phase_arrive_bytes(uint64_t *at, int bytes, EMU_HERE)
{
    emu::phase_arrive_bytes(at, bytes, here);
}

inline void phase_wait(uint64_t *at, unsigned parity, EMU_HERE)
{
    emu::phase_wait(at, parity, here);
}

template <int n> inline void registers_give(EMU_HERE)
{
    static_assert(n % 8 == 0 && n >= 24 && n <= 256, "a number of registers");
    emu::set_registers(n, false, here);
}

template <int n> inline void registers_take(EMU_HERE)
{
    static_assert(n % 8 == 0 && n >= 24 && n <= 256, "a number of registers");
    emu::set_registers(n, true, here);
}

inline void shared_fence_async()
{
    emu::fence_async();
}

inline void shared_clear_16(void *at, EMU_HERE)
{
    emu::clear_unit(at, here);
}

inline void copy_box(void *to, const CUtensorMap *map, int column, int row, uint64_t *full, EMU_HERE)
{
    emu::copy_box(to, map, column, row, full, here);
}

inline uint64_t wgmma_tile(const void *at, int panel_bytes = 0, EMU_HERE)
{
    return emu::product_tile(at, panel_bytes, here);
}

/* The place is that of the function that is called here: a default argument cannot follow a pack. */
template <class... T> inline void wgmma_fence(T &...x)
{
    (emu::product_fence(&x, sizeof(x)), ...);
    emu::products_fence(emu::place::here());
}

inline void wgmma_commit(EMU_HERE)
{
    emu::product_commit(here);
}

template <int n, class... T> inline void wgmma_wait(T &...x)
{
    (emu::product_named(&x, sizeof(x)), ...);
    emu::product_wait(n, emu::place::here());
}

inline void computed_here(float)
{
}

template <bool add> inline void wgmma_rows(float (&d)[16][4], uint64_t a, uint64_t b, EMU_HERE)
{
    emu::product_start({ 128, add, a, b, NULL, d[0] }, here);
}

inline void wgmma_columns(float (&d)[16][4], const uint32_t (&a)[4], uint64_t b, EMU_HERE)
{
    emu::product_start({ 128, true, 0, b, a, d[0] }, here);
}

inline void wgmma_columns(float (&d)[8][4], const uint32_t (&a)[4], uint64_t b, EMU_HERE)
{
    emu::product_start({ 64, true, 0, b, a, d[0] }, here);
}

#endif
