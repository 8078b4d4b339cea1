/* cuda_primitives.h - the primitives that kernels use beyond CUDA's own C++: shared arrays, launches, 16-bit floats,
 * tensor cores, asynchronous copies.
 *
 * This is the version for nvcc, and the only file with inline PTX. tests/cuda/emulated/cuda_primitives.h is the version
 * for g++ and gives every name here the same meaning on the host. A .cu file includes <cuda_primitives.h> and never
 * asks which version it got. A name added here must be added there, with a self-test in tests/cuda/selftest.cu.
 *
 * Needs sm_80 or later. bf16 and f16 numbers are uint16_t.
 */
#ifndef EVP_CUDA_PRIMITIVES_H
#define EVP_CUDA_PRIMITIVES_H

#include <cuda_runtime.h>
#include <stdint.h>

/* Declares `type name[n]` in the block's shared memory, 16-byte aligned, contents undefined; at most 48 KiB of such
 * arrays in a kernel. For use inside a __global__ or __device__ function. */
#define SHARED_ARRAY(type, name, n) __shared__ __align__(16) type name[n]

/* Declares `type *name`: the shared memory that the launch asks for, 16-byte aligned. More than 48 KiB need
 * cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) first. */
#define SHARED_DYNAMIC(type, name)                                                                                     \
    extern __shared__ __align__(16) unsigned char shared_dynamic_bytes[];                                              \
    type *name = reinterpret_cast<type *>(shared_dynamic_bytes)

/* Queues a kernel; a template goes in parentheses: KERNEL_LAUNCH((sum<64, true>), grid, block, bytes, stream, ...).
 * cudaGetLastError() says whether it was accepted. */
#define KERNEL_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                  \
    kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)

/* ---- 16-bit floats, rounded to nearest even ------------------------------ */

__device__ __forceinline__ float bf16_to_float(uint16_t x)
{
    return __uint_as_float((uint32_t)x << 16);
}

/* Two bf16 in a word, `low` in its lower half. */
__device__ __forceinline__ uint32_t pack_bf16(float low, float high)
{
    uint32_t word;

    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

__device__ __forceinline__ uint16_t float_to_bf16(float x)
{
    return (uint16_t)pack_bf16(x, 0.0f);
}

__device__ __forceinline__ float f16_to_float(uint16_t x)
{
    float value;

    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x));
    return value;
}

/* Infinite beyond the range of f16. */
__device__ __forceinline__ uint16_t float_to_f16(float x)
{
    uint16_t value;

    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(value) : "f"(x));
    return value;
}

/* 2^x to about 2 units in the last place; 0 for -INFINITY. */
__device__ __forceinline__ float exp2_fast(float x)
{
    float value;

    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
    return value;
}

/* ---- tensor cores; every lane of the warp takes part --------------------- */

__device__ __forceinline__ uint32_t shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

/* d (16, 8) f32 += a (16, 16) b (16, 8), both bf16. With g = lane / 4 and t = lane % 4:
 *     a[0] row g, columns 2t and 2t + 1; a[1] row g + 8; a[2], a[3] the same rows, columns + 8
 *     b[0] column g, rows 2t and 2t + 1; b[1] rows + 8
 *     d[0], d[1] row g, columns 2t and 2t + 1; d[2], d[3] row g + 8 */
__device__ __forceinline__ void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Loads four 8 x 8 matrices of 16-bit numbers from shared memory. Lane i gives the address of row i % 8 of matrix i /
 * 8, 16 bytes, 16-byte aligned. r[m] is row lane / 4, columns 2 (lane % 4) and + 1, of matrix m; transposed: of its
 * transpose. */
template <bool transposed> __device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void *row)
{
    if (transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(shared_address(row))
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(shared_address(row))
                     : "memory");
}

/* ---- asynchronous copies from device to shared memory -------------------- */

/* Copies 16 bytes; both addresses are 16-byte aligned. The thread that started a copy sees it after copy_async_wait(),
 * the others after a barrier behind that. */
__device__ __forceinline__ void copy_async_16(void *dst, const void *src)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(shared_address(dst)), "l"(src) : "memory");
}

/* The same; writes 16 zero bytes unless valid. src must be an address of device memory even then. */
__device__ __forceinline__ void copy_async_16(void *dst, const void *src, bool valid)
{
    int bytes = valid ? 16 : 0;

    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(shared_address(dst)), "l"(src), "r"(bytes)
                 : "memory");
}

/* Ends a group of copies: all copies of this thread since the last call, possibly none. */
__device__ __forceinline__ void copy_async_commit()
{
    asm volatile("cp.async.commit_group;" : : : "memory");
}

/* Waits for all but the last n groups of this thread. */
template <int n> __device__ __forceinline__ void copy_async_wait()
{
    asm volatile("cp.async.wait_group %0;" : : "n"(n) : "memory");
}

#endif
