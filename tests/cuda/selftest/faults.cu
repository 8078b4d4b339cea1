/* faults.cu - what is wrong in a kernel is found: each kernel here breaks one rule. */
#include "tests/cuda/selftest/selftest.h"

static float *ones(size_t n)
{
    std::vector<float> x(n, 1.0f);

    return device_array(n, x.data());
}

/* Launches a kernel of one pointer, and waits. */
static void run(void (*kernel)(float *), int threads, size_t shared_bytes = 0)
{
    KERNEL_LAUNCH(kernel, 2, threads, shared_bytes, 0, ones(4096));
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
}

/* ---- barriers ------------------------------------------------------------ */

__global__ void missing_barrier(float *x)
{
    SHARED_ARRAY(float, part, 64);

    part[threadIdx.x] = x[threadIdx.x];
    x[64 + threadIdx.x] = part[63 - threadIdx.x];
}

static void missing_barrier_gives_poison()
{
    float *x = ones(128);

    KERNEL_LAUNCH(missing_barrier, 1, 64, 0, 0, x);
    for (float y : back(x, 128))
        MUST(y == 1);
}

static void missing_barrier_is_a_race()
{
    run(missing_barrier, 64);
}

/* A value is overwritten while others may still read it. */
__global__ void missing_second_barrier(float *x)
{
    SHARED_ARRAY(float, part, 1);

    for (int i = 0; i < 4; i++) {
        if (threadIdx.x == 0)
            part[0] = (float)i;
        __syncthreads();
        x[threadIdx.x * 4 + (unsigned)i] = part[0];
    }
}

static void missing_second_barrier_gives_another_value()
{
    float *x = ones(256);

    KERNEL_LAUNCH(missing_second_barrier, 1, 64, 0, 0, x);
    std::vector<float> host = back(x, 256);
    for (size_t i = 0; i < 256; i++)
        MUST(host[i] == (float)(i % 4));
}

__global__ void some_threads_leave(float *x)
{
    if (threadIdx.x >= 40)
        return;
    __syncthreads();
    x[0] = 0;
}

static void threads_leave_before_a_barrier()
{
    run(some_threads_leave, 64);
}

__global__ void two_barriers(float *x)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    x[0] = 0;
}

static void divergent_barriers()
{
    run(two_barriers, 64);
}

__global__ void barrier_and_shuffle(float *x)
{
    if (threadIdx.x < 16)
        __syncthreads();
    x[0] = __shfl_sync(0xffffffffu, x[0], 0);
    if (threadIdx.x >= 16)
        __syncthreads();
}

static void deadlock()
{
    run(barrier_and_shuffle, 32);
}

/* ---- warp operations ----------------------------------------------------- */

__global__ void half_a_warp(float *x)
{
    if (threadIdx.x < 16)
        x[threadIdx.x] = __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 1);
}

static void shuffle_of_half_a_warp()
{
    run(half_a_warp, 32);
}

__global__ void two_shuffles(float *x)
{
    x[threadIdx.x] =
        threadIdx.x & 1 ? __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 1) : __shfl_sync(0xffffffffu, x[threadIdx.x], 1);
}

static void different_operations()
{
    run(two_shuffles, 32);
}

__global__ void foreign_mask(float *x)
{
    x[threadIdx.x] = __shfl_sync(0xffffu, x[threadIdx.x], 1);
}

static void not_in_the_mask()
{
    run(foreign_mask, 32);
}

__global__ void race_of_a_warp(float *x)
{
    SHARED_ARRAY(float, part, 32);

    part[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x + 32] = part[threadIdx.x ^ 1];
}

static void warp_without_syncwarp()
{
    run(race_of_a_warp, 32);
}

__global__ void crooked_rows(float *x)
{
    SHARED_ARRAY(uint16_t, tile, 32 * 12);
    uint32_t r[4];

    ldmatrix_x4<false>(r, tile + threadIdx.x * 12);
    x[0] = (float)r[0];
}

static void misaligned_ldmatrix()
{
    run(crooked_rows, 32);
}

__global__ void rows_of_device_memory(float *x)
{
    uint32_t r[4];

    ldmatrix_x4<false>(r, x + threadIdx.x * 4);
    x[0] = (float)r[0];
}

static void ldmatrix_outside_shared()
{
    run(rows_of_device_memory, 32);
}

/* ---- asynchronous copies ------------------------------------------------- */

template <int left> __global__ void copy_and_read(float *x)
{
    SHARED_ARRAY(float, tile, 128);

    copy_async_16(tile + 4 * threadIdx.x, x + 4 * threadIdx.x);
    copy_async_commit();
    copy_async_wait<left>();
    __syncthreads();
    x[128 + threadIdx.x] = tile[127 - threadIdx.x];
    copy_async_wait<0>();
}

static void missing_wait()
{
    float *x = ones(256);

    KERNEL_LAUNCH(copy_and_read<1>, 1, 32, 0, 0, x);
    for (float y : back(x, 256))
        MUST(y == 1);
}

__global__ void never_waits(float *x)
{
    SHARED_ARRAY(float, tile, 128);

    copy_async_16(tile + 4 * threadIdx.x, x + 4 * threadIdx.x);
    copy_async_commit();
}

static void copy_never_waited_for()
{
    run(never_waits, 32);
}

__global__ void never_commits(float *x)
{
    SHARED_ARRAY(float, tile, 128);

    copy_async_16(tile + 4 * threadIdx.x, x + 4 * threadIdx.x);
    copy_async_wait<0>();
}

static void copy_never_committed()
{
    run(never_commits, 32);
}

__global__ void crooked_copy(float *x)
{
    SHARED_ARRAY(float, tile, 132);

    copy_async_16(tile + 4 * threadIdx.x, x + 1 + 4 * threadIdx.x);
    copy_async_commit();
    copy_async_wait<0>();
}

static void misaligned_copy()
{
    run(crooked_copy, 32);
}

/* Copies over a tile that others read: seen when copies happen at once. */
__global__ void overwrites_tile(float *x)
{
    SHARED_ARRAY(float, tile, 128);
    float sum = 0;

    for (int i = 0; i < 2; i++) {
        copy_async_16(tile + 4 * threadIdx.x, x + 128 * i + 4 * threadIdx.x);
        copy_async_commit();
        copy_async_wait<0>();
        __syncthreads();
        sum = sum * 2 + tile[127 - threadIdx.x];
    }
    x[256 + threadIdx.x] = sum;
}

static void copy_over_what_is_read()
{
    std::vector<float> x(384, 1.0f);

    for (size_t i = 128; i < 256; i++)
        x[i] = 5;
    float *at = device_array(384, x.data());
    KERNEL_LAUNCH(overwrites_tile, 1, 32, 0, 0, at);
    std::vector<float> host = back(at, 384);
    for (size_t i = 256; i < 288; i++)
        MUST(host[i] == 7);
}

/* ---- memory -------------------------------------------------------------- */

__global__ void beyond_shared(float *x)
{
    SHARED_ARRAY(float, first, 32);
    SHARED_ARRAY(float, second, 32);
    float *at = first;

    second[threadIdx.x] = 0;
    at[threadIdx.x + 1] = x[0]; // one too many
}

static void write_after_a_shared_array()
{
    run(beyond_shared, 32);
}

__global__ void beyond_dynamic(float *x)
{
    SHARED_DYNAMIC(float, tile);

    tile[threadIdx.x] = x[0];
}

static void write_after_dynamic_shared_memory()
{
    run(beyond_dynamic, 64, 63 * sizeof(float));
}

__global__ void keeps_shared(float *x)
{
    SHARED_ARRAY(float, tile, 64);

    if (blockIdx.x == 0)
        tile[threadIdx.x] = 3;
    else
        x[threadIdx.x] = tile[threadIdx.x];
}

static void shared_memory_of_another_block()
{
    float *x = ones(64);

    KERNEL_LAUNCH(keeps_shared, 4, 64, 0, 0, x);
    for (float y : back(x, 64))
        MUST(y == 3 || y == 1);
}

template <int n> __global__ void much_shared(float *x)
{
    SHARED_ARRAY(char, tile, n);

    if (threadIdx.x > 0)
        return;
    tile[n - 1] = 0;
    x[blockIdx.x] = tile[n - 1];
}

static void too_much_static_shared_memory()
{
    run(much_shared<(48 << 10) + 1>, 32);
}

static void all_static_shared_memory()
{
    run(much_shared<48 << 10>, 32);
}

__global__ void write_at(float *x, long i)
{
    x[i] = 1;
}

static void write_after_an_allocation()
{
    KERNEL_LAUNCH(write_at, 1, 32, 0, 0, ones(100), 100);
    CUDA(cudaDeviceSynchronize());
}

static void write_before_an_allocation()
{
    KERNEL_LAUNCH(write_at, 1, 32, 0, 0, ones(100), -1);
    CUDA(cudaDeviceSynchronize());
}

static void write_far_away()
{
    KERNEL_LAUNCH(write_at, 1, 32, 0, 0, ones(100), 1100); // in the closed page behind it
    CUDA(cudaDeviceSynchronize());
}

static void write_to_freed_memory()
{
    float *x = ones(100);

    CUDA(cudaFree(x));
    KERNEL_LAUNCH(write_at, 1, 32, 0, 0, x, 0);
    CUDA(cudaDeviceSynchronize());
}

__global__ void add_one(float *x)
{
    x[threadIdx.x] += 1;
}

static void memory_is_poison_at_first()
{
    float *x = device_array<float>(32);

    KERNEL_LAUNCH(add_one, 1, 32, 0, 0, x);
    for (float y : back(x, 32))
        MUST(y == 1);
}

__global__ void crooked_vector(float *x)
{
    float4 v = *(const float4 *)(x + 1 + 4 * threadIdx.x);

    x[threadIdx.x] = v.x + v.y + v.z + v.w;
}

static void misaligned_vector()
{
    run(crooked_vector, 32);
}

__global__ void index_of_a_register(float *x)
{
    float part[4] = { 1, 2, 3, 4 };

    for (int i = 0; i < (int)x[threadIdx.x] * 5; i++)
        x[threadIdx.x] += part[i];
}

static void index_beyond_an_array()
{
    run(index_of_a_register, 32);
}

/* ---- blocks -------------------------------------------------------------- */

__global__ void blocks_share(float *x)
{
    x[threadIdx.x] = (float)blockIdx.x;
}

static void race_of_blocks()
{
    run(blocks_share, 32);
}

__global__ void blocks_in_order(float *x)
{
    x[threadIdx.x] = x[threadIdx.x] * 2 + (float)blockIdx.x;
}

static void blocks_depend_on_their_order()
{
    float *x = ones(32);

    KERNEL_LAUNCH(blocks_in_order, 3, 32, 0, 0, x);
    for (float y : back(x, 32))
        MUST(y == 12);
}

/* Two values, of the first and last block: no two that run one after the other. */
__global__ void distant_blocks(float *x)
{
    if (threadIdx.x == 0 && (blockIdx.x == 0 || blockIdx.x == 6))
        x[0] = (float)blockIdx.x;
}

static void race_of_distant_blocks()
{
    KERNEL_LAUNCH(distant_blocks, 7, 32, 0, 0, ones(1));
    CUDA(cudaDeviceSynchronize());
}

__global__ void sum_of(float *to, const float *from)
{
    to[threadIdx.x] = from[threadIdx.x];
}

static void kernel_reads_host_memory()
{
    std::vector<float> host(32, 1.0f);

    KERNEL_LAUNCH(sum_of, 1, 32, 0, 0, ones(32), host.data());
    CUDA(cudaDeviceSynchronize());
}

const struct test fault_tests[] = {
    { "missing barrier gives poison", missing_barrier_gives_poison, NOT_TSAN("wrong: y == 1"), NULL },
    { "missing barrier is a race", missing_barrier_is_a_race, RACE, NULL },
    { "missing second barrier", missing_second_barrier_gives_another_value, NOT_TSAN("wrong: host[i]"), NULL },
    { "missing second barrier is a race", missing_second_barrier_gives_another_value, RACE, NULL },
    { "threads leave before a barrier", threads_leave_before_a_barrier, "have left the kernel", NULL },
    { "divergent barriers", divergent_barriers, "divergent barriers: this thread is at tests/cuda/selftest/faults.cu",
      NULL },
    { "deadlock", deadlock, "deadlock: no thread can go on", NULL },
    { "shuffle of half a warp", shuffle_of_half_a_warp, "__shfl_xor_sync at tests/cuda/selftest/faults.cu", NULL },
    { "different operations", different_operations, "lanes of a warp are in different operations", NULL },
    { "not in the mask", not_in_the_mask, "this lane is not in its own mask", NULL },
    { "warp without syncwarp", warp_without_syncwarp, RACE, NULL },
    { "misaligned ldmatrix", misaligned_ldmatrix, "a row that is not 16-byte aligned", NULL },
    { "ldmatrix outside shared memory", ldmatrix_outside_shared, "a row outside shared memory", NULL },
    { "missing wait", missing_wait, NOT_TSAN("wrong: y == 1"), NULL },
    { "missing wait is a race", missing_wait, RACE, NULL },
    { "copy never waited for", copy_never_waited_for, "was never waited for", NULL },
    { "copy never committed", copy_never_committed, "was never committed", NULL },
    { "misaligned copy", misaligned_copy, "an address that is not 16-byte aligned", NULL },
    { "copy over what is read", copy_over_what_is_read, NOT_TSAN("wrong: host[i] == 7"), NULL },
    { "copy over what is read is a race", copy_over_what_is_read, RACE, NULL },
    { "write after a shared array", write_after_a_shared_array, NOT_TSAN("shared array"), NULL },
    { "write after dynamic shared memory", write_after_dynamic_shared_memory, NOT_TSAN("shared array"), NULL },
    { "shared memory of another block", shared_memory_of_another_block, NOT_TSAN("wrong: y == 3"), NULL },
    { "shared memory of another block is a race", shared_memory_of_another_block, RACE, NULL },
    { "too much static shared memory", too_much_static_shared_memory, "bytes of static shared memory, more than 49152",
      NULL },
    { "all static shared memory", all_static_shared_memory, NULL, NULL },
    { "write after an allocation", write_after_an_allocation, NOT_TSAN("an allocation of 400 bytes"), NULL },
    { "write before an allocation", write_before_an_allocation, NOT_TSAN("an allocation of 400 bytes"), NULL },
    { "write far away", write_far_away, NOT_TSAN("touched memory at"), NULL },
    { "write to freed memory", write_to_freed_memory, NOT_TSAN("which is not device memory"), NULL },
    { "memory is poison at first", memory_is_poison_at_first, "wrong: y == 1", NULL },
    { "misaligned vector", misaligned_vector, NOT_TSAN("misaligned address"), NULL },
    { "index beyond an array", index_beyond_an_array, NOT_TSAN("index 4 out of bounds"), NULL },
    { "race of blocks", race_of_blocks, RACE, NULL },
    { "race of distant blocks", race_of_distant_blocks, FOREIGN("race: a write after a write in device memory"), NULL },
    { "kernel reads host memory", kernel_reads_host_memory, FOREIGN("neither device memory nor its own"), NULL },
    { "blocks depend on their order", blocks_depend_on_their_order, NOT_TSAN("wrong: y == 12"), NULL },
    { "blocks that depend on their order are a race", blocks_depend_on_their_order, RACE, NULL },
    { NULL, NULL, NULL, NULL },
};
