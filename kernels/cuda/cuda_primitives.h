/* cuda_primitives.h - the primitives that kernels use beyond CUDA's own C++: shared arrays, launches, 16-bit floats,
 * tensor cores, asynchronous copies, barriers of phases, copies of boxes, products of warpgroups.
 *
 * This is the version for nvcc, and the only file with inline PTX. tests/cuda/emulated/cuda_primitives.h is the version
 * for g++ and gives every name here the same meaning on the host. A .cu file includes <cuda_primitives.h> and never
 * asks which version it got. A name added here must be added there, with a self-test in tests/cuda/selftest/.
 *
 * Needs sm_80 or later, where not said otherwise. bf16 and f16 numbers are uint16_t.
 */
#ifndef EVP_CUDA_PRIMITIVES_H
#define EVP_CUDA_PRIMITIVES_H

#include <cuda_runtime.h>
#include_next <cuda.h> // the toolkit's, not the one beside this file
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

/* Asks for the 128 bytes of device memory around an address, which will be read. */
__device__ __forceinline__ void prefetch_l2(const void *at)
{
    asm volatile("prefetch.global.L2 [%0];" : : "l"(at));
}

/* ---- compute capability 9.0 alone: elsewhere a kernel that comes here ends with an error ---- */

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HOPPER_ASM(...) asm volatile(__VA_ARGS__)
#else
#define HOPPER_ASM(...) __trap()
#endif

/* Barriers at which some threads arrive and others wait (mbarrier): a uint64_t of shared memory. n arrivals end a
 * phase; phases have the parities 0, 1, 0, ... One thread begins it, and the others see that after a barrier of the
 * block. (fence.mbarrier_init is for other blocks of a cluster.) */
__device__ __forceinline__ void phase_init(uint64_t *at, int n)
{
    HOPPER_ASM("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(shared_address(at)), "r"(n) : "memory");
}

/* One arrival. What this thread did before it is seen by those that wait for the phase. */
__device__ __forceinline__ void phase_arrive(uint64_t *at)
{
    HOPPER_ASM("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(shared_address(at)) : "memory");
}

/* One arrival; the phase does not end before copy_box() has brought that many bytes to it. */
__device__ __forceinline__ void phase_arrive_bytes(uint64_t *at, int bytes)
{
    HOPPER_ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :
               : "r"(shared_address(at)), "r"(bytes)
               : "memory");
}

/* Waits until the last phase of that parity is over. Before the first phase that is so for parity 1. */
__device__ __forceinline__ void phase_wait(uint64_t *at, unsigned parity)
{
    uint32_t over = 1;

    do
        HOPPER_ASM("{\n.reg .pred p;\n"
                   "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                   "selp.u32 %0, 1, 0, p;\n}"
                   : "=r"(over)
                   : "r"(shared_address(at)), "r"(parity)
                   : "memory");
    while (!over);
}

/* Registers of each thread from here on: a multiple of 8, 24 to 256. All warps of four that begin at a multiple of
 * four, a warpgroup, do the same. What one warpgroup takes, another must have given. */
template <int n> __device__ __forceinline__ void registers_give()
{
    static_assert(n % 8 == 0 && n >= 24 && n <= 256, "a number of registers");
    HOPPER_ASM("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(n));
}

template <int n> __device__ __forceinline__ void registers_take()
{
    static_assert(n % 8 == 0 && n >= 24 && n <= 256, "a number of registers");
    HOPPER_ASM("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(n));
}

/* What this thread wrote to shared memory, copies that it waited for and beginnings of phases included, is seen by
 * products of warpgroups and copies of boxes that begin later: after a barrier or an arrival behind this. They take
 * another way to shared memory than other instructions. */
__device__ __forceinline__ void shared_fence_async()
{
    HOPPER_ASM("fence.proxy.async.shared::cta;" : : : "memory");
}

/* Writes 16 zero bytes to shared memory, 16-byte aligned. */
__device__ __forceinline__ void shared_clear_16(void *at)
{
    *(uint4 *)at = make_uint4(0, 0, 0, 0);
}

/* Starts copying a box of a tensor map of two dimensions (cuTensorMapEncodeTiled) to shared memory, from that column
 * and row on: the tensor memory accelerator does it, for one thread. What lies outside the map's tensor becomes 0, and
 * counts among the bytes. Those that wait for the phase of `full` see the box. `to` is 128-byte aligned, with a
 * 128-byte swizzle as for wgmma_tile(). The map is a __grid_constant__ of the kernel. */
__device__ __forceinline__ void copy_box(void *to, const CUtensorMap *map, int column, int row, uint64_t *full)
{
    HOPPER_ASM("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%2, %3}], [%4];"
               :
               : "r"(shared_address(to)), "l"(map), "r"(column), "r"(row), "r"(shared_address(full))
               : "memory");
}

/* A tile of bf16 in shared memory for wgmma, in panels of 64 columns: rows of 128 bytes, and of each row the 16-byte
 * units in another order: unit u of row r is at u ^ r % 8 (128-byte swizzle). A panel begins at a multiple of 1,024
 * bytes. `at` is its first row, or 32 bytes further for 16 columns further, or 1,024 bytes further for 8 rows further.
 * panel_bytes: from one panel to the next, where a product takes columns of more than one. These are the PTX ISA's
 * descriptors: start address, leading and stride byte offset, each by 16, and the layout. */
__device__ __forceinline__ uint64_t wgmma_tile(const void *at, int panel_bytes = 0)
{
    constexpr uint64_t ROWS_8 = 1024 / 16, SWIZZLE_128 = 1;

    return (shared_address(at) & 0x3ffff) / 16 | (uint64_t)(panel_bytes / 16) << 16 | ROWS_8 << 32 | SWIZZLE_128 << 62;
}

/* Keeps the compiler from moving reads and writes of registers across this. */
template <int N> __device__ __forceinline__ void registers_stay(float (&x)[N][4])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(x[i][0]), "+f"(x[i][1]), "+f"(x[i][2]), "+f"(x[i][3]) : : "memory");
}

template <int N> __device__ __forceinline__ void registers_stay(uint32_t (&x)[N][4])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+r"(x[i][0]), "+r"(x[i][1]), "+r"(x[i][2]), "+r"(x[i][3]) : : "memory");
}

/* Products are asynchronous. Before those that use registers x..., as a result or an operand, comes this, after the
 * last other write to them; they must not be touched until wgmma_wait(). */
template <class... T> __device__ __forceinline__ void wgmma_fence(T &...x)
{
    (registers_stay(x), ...);
    HOPPER_ASM("wgmma.fence.sync.aligned;" : : : "memory");
}

/* Ends a group of products: all since the last call. */
__device__ __forceinline__ void wgmma_commit()
{
    HOPPER_ASM("wgmma.commit_group.sync.aligned;" : : : "memory");
}

/* Waits for all but the last n groups: of them x... are results, or operands that may be written again. */
template <int n, class... T> __device__ __forceinline__ void wgmma_wait(T &...x)
{
    HOPPER_ASM("wgmma.wait_group.sync.aligned %0;" : : "n"(n) : "memory");
    (registers_stay(x), ...);
}

/* What x comes from is computed before what stands behind this. x is never negative. ptxas moves a wait for products up
 * over arithmetic that does not need them, which would then not run beside them: a store that depends on x, and never
 * happens, stays where it is. */
__device__ __forceinline__ void computed_here(float x)
{
    HOPPER_ASM("{\n.reg .pred p;\nsetp.lt.f32 p, %0, 0f00000000;\n@p st.volatile.shared.f32 [%1], %0;\n}"
               :
               : "f"(x), "r"(0)
               : "memory");
}

#define WGMMA_ROW(d, i) "+f"((d)[i][0]), "+f"((d)[i][1]), "+f"((d)[i][2]), "+f"((d)[i][3])
#define WGMMA_32(d, i)                                                                                                 \
    WGMMA_ROW(d, i), WGMMA_ROW(d, i + 1), WGMMA_ROW(d, i + 2), WGMMA_ROW(d, i + 3), WGMMA_ROW(d, i + 4),               \
        WGMMA_ROW(d, i + 5), WGMMA_ROW(d, i + 6), WGMMA_ROW(d, i + 7)
#define WGMMA_FIRST_32                                                                                                 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                           \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_LAST_32                                                                                                  \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                 \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

/* d (64, 128) = a (64, 16) b (128, 16)^T, or with `add` d += that: by a warpgroup, d in f32. d[j][2h] and [2h + 1] of
 * lane l of warp w are columns 8j + 2 (l % 4) and + 1 of row 16 (w % 4) + 8h + l / 4. a, b: wgmma_tile(). */
template <bool add> __device__ __forceinline__ void wgmma_rows(float (&d)[16][4], uint64_t a, uint64_t b)
{
    HOPPER_ASM("{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
               "{" WGMMA_FIRST_32 ", " WGMMA_LAST_32 "}, %64, %65, add, 1, 1, 0, 0;\n}"
               : WGMMA_32(d, 0), WGMMA_32(d, 8)
               : "l"(a), "l"(b), "n"(add));
}

/* d (64, 128) += a (64, 16) b (16, 128), a in registers: of each warp 16 rows, as in mma_bf16(). */
__device__ __forceinline__ void wgmma_columns(float (&d)[16][4], const uint32_t (&a)[4], uint64_t b)
{
    HOPPER_ASM("{\n.reg .pred add;\nsetp.eq.b32 add, 0, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
               "{" WGMMA_FIRST_32 ", " WGMMA_LAST_32 "}, {%64, %65, %66, %67}, %68, add, 1, 1, 1;\n}"
               : WGMMA_32(d, 0), WGMMA_32(d, 8)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/* The same of 64 columns. */
__device__ __forceinline__ void wgmma_columns(float (&d)[8][4], const uint32_t (&a)[4], uint64_t b)
{
    HOPPER_ASM("{\n.reg .pred add;\nsetp.eq.b32 add, 0, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
               "{" WGMMA_FIRST_32 "}, {%32, %33, %34, %35}, %36, add, 1, 1, 1;\n}"
               : WGMMA_32(d, 0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#endif
