/* host.cu - streams, events, copies and failures of the emulated runtime, and what host code may not do. */
#include "tests/cuda/selftest/selftest.h"

__global__ void add(float *x, float by)
{
    x[threadIdx.x] += by;
}

static float *zeros(int n)
{
    std::vector<float> host((size_t)n);

    return device_array((size_t)n, host.data());
}

/* ---- right --------------------------------------------------------------- */

static void work_waits()
{
    float *x = zeros(32), *pinned;
    cudaStream_t stream;

    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMallocHost(&pinned, 32 * sizeof(float)));
    pinned[5] = 7;
    KERNEL_LAUNCH(add, 1, 32, 0, stream, x, 2.0f);
    CUDA(cudaMemcpyAsync(pinned, x, 32 * sizeof(float), cudaMemcpyDeviceToHost, stream));
    MUST(pinned[5] == 7 && cudaStreamQuery(stream) == cudaErrorNotReady);
    CUDA(cudaStreamSynchronize(stream));
    MUST(pinned[5] == 2 && cudaStreamQuery(stream) == cudaSuccess);
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaFreeHost(pinned));
    CUDA(cudaFree(x));
}

static void pageable_memory_is_read_at_once()
{
    std::vector<float> host(32, 1.0f);
    float *x = zeros(32);

    CUDA(cudaMemcpyAsync(x, host.data(), 32 * sizeof(float), cudaMemcpyHostToDevice));
    host.assign(32, 5.0f);
    for (float y : back(x, 32))
        MUST(y == 1);
}

static void streams_wait_for_events()
{
    float *x = zeros(32);
    cudaStream_t first, second;
    cudaEvent_t done, end;
    float ms = -1;

    CUDA(cudaStreamCreate(&first));
    CUDA(cudaStreamCreate(&second));
    CUDA(cudaEventCreate(&done));
    CUDA(cudaEventCreate(&end));
    KERNEL_LAUNCH(add, 1, 32, 0, first, x, 2.0f);
    CUDA(cudaEventRecord(done, first));
    KERNEL_LAUNCH(add, 1, 32, 0, first, x, 100.0f);
    CUDA(cudaStreamWaitEvent(second, done));
    KERNEL_LAUNCH(add, 1, 32, 0, second, x, 3.0f);
    CUDA(cudaEventRecord(end, second));
    MUST(cudaEventElapsedTime(&ms, done, end) == cudaErrorNotReady);
    CUDA(cudaEventSynchronize(end));
    CUDA(cudaEventElapsedTime(&ms, done, end));
    MUST(ms >= 0);
    float host;
    CUDA(cudaMemcpyAsync(&host, x, sizeof(host), cudaMemcpyDeviceToHost, second));
    MUST(host == 5);
    CUDA(cudaDeviceSynchronize());
    MUST(back(x, 1)[0] == 105);
    CUDA(cudaEventDestroy(done));
    CUDA(cudaEventDestroy(end));
    CUDA(cudaStreamDestroy(first));
    CUDA(cudaStreamDestroy(second));
}

static void rectangles()
{
    char host[24], want[64];
    char *at = device_array<char>(64);

    for (int i = 0; i < 24; i++)
        host[i] = (char)i;
    memset(want, 9, sizeof(want));
    CUDA(cudaMemset(at, 9, 64));
    CUDA(cudaMemcpy2D(at + 3, 16, host, 6, 5, 4, cudaMemcpyHostToDevice));
    CUDA(cudaMemset2DAsync(at + 10, 16, 1, 2, 3));
    for (int row = 0; row < 4; row++) {
        memcpy(want + 16 * row + 3, host + 6 * row, 5);
        if (row < 3)
            memset(want + 16 * row + 10, 1, 2);
    }
    MUST(memcmp(back(at, 64).data(), want, 64) == 0);
}

static void memory_is_counted()
{
    size_t free_bytes, total;
    void *half, *more;

    CUDA(cudaMalloc(&half, 600 << 10));
    CUDA(cudaMemGetInfo(&free_bytes, &total));
    MUST(total == 1 << 20 && free_bytes == 424 << 10);
    MUST(cudaMalloc(&more, (424 << 10) + 1) == cudaErrorMemoryAllocation && !more);
    MUST(cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess);
    CUDA(cudaMalloc(&more, 424 << 10));
    CUDA(cudaFree(half));
    CUDA(cudaMalloc(&half, 600 << 10));
}

/* ---- refused ------------------------------------------------------------- */

__global__ void dynamic(float *x)
{
    SHARED_DYNAMIC(float, tile);

    tile[threadIdx.x] = 1;
    x[threadIdx.x] = tile[threadIdx.x];
}

static cudaError_t launched(dim3 grid, dim3 block, size_t shared_bytes)
{
    KERNEL_LAUNCH(dynamic, grid, block, shared_bytes, 0, zeros(1024));
    return cudaGetLastError();
}

static void shapes_of_launches()
{
    MUST(launched(1, 32, 48 << 10) == cudaSuccess);
    MUST(launched(1, 32, (48 << 10) + 1) == cudaErrorInvalidValue);
    MUST(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, (227 << 10) + 1) ==
         cudaErrorInvalidValue);
    CUDA(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10));
    cudaGetLastError();
    MUST(launched(1, 32, 227 << 10) == cudaSuccess);
    MUST(launched(0, 32, 128) == cudaErrorInvalidConfiguration);
    MUST(launched(dim3(1, 0), 32, 128) == cudaErrorInvalidConfiguration);
    MUST(launched(dim3(1, 65536), 32, 128) == cudaErrorInvalidConfiguration);
    MUST(launched(1, 1025, 128) == cudaErrorInvalidConfiguration);
    MUST(launched(1, dim3(4, 2, 65), 128) == cudaErrorInvalidConfiguration);
    CUDA(cudaDeviceSynchronize());
}

static void copies_outside_memory()
{
    float *x = zeros(32), host[33] = { 0 };

    MUST(cudaMemcpy(x, host, 33 * sizeof(float), cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    MUST(cudaMemcpy(host, x + 1, 32 * sizeof(float), cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    MUST(cudaMemcpy(host, host, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    MUST(cudaMemcpy(x, x, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    MUST(cudaMemsetAsync(x, 0, 129) == cudaErrorInvalidValue);
    MUST(cudaFree(x + 1) == cudaErrorInvalidValue);
    CUDA(cudaFree(x));
    MUST(cudaFree(x) == cudaErrorInvalidValue);
    CUDA(cudaFree(NULL));
}

/* ---- failures that are asked for ----------------------------------------- */

static void the_second_allocation_fails()
{
    void *at;

    CUDA(cudaMalloc(&at, 100));
    MUST(cudaMalloc(&at, 100) == cudaErrorMemoryAllocation);
    CUDA(cudaMalloc(&at, 100));
}

static void the_second_kernel_breaks_the_device()
{
    float *x = zeros(32);

    KERNEL_LAUNCH(add, 1, 32, 0, 0, x, 2.0f);
    CUDA(cudaDeviceSynchronize());
    KERNEL_LAUNCH(add, 1, 32, 0, 0, x, 2.0f);
    CUDA(cudaGetLastError());
    MUST(cudaDeviceSynchronize() == cudaErrorECCUncorrectable);
    MUST(cudaGetLastError() == cudaErrorECCUncorrectable && cudaGetLastError() == cudaErrorECCUncorrectable);
    MUST(cudaFree(x) == cudaErrorECCUncorrectable);
    KERNEL_LAUNCH(add, 1, 32, 0, 0, x, 2.0f);
    MUST(cudaPeekAtLastError() == cudaErrorECCUncorrectable);
}

static void no_device()
{
    int n = 5;
    void *at;

    MUST(cudaGetDeviceCount(&n) == cudaErrorNoDevice && n == 0);
    MUST(cudaMalloc(&at, 1) == cudaErrorNoDevice && cudaSetDevice(0) == cudaErrorNoDevice);
}

static void three_devices()
{
    int n, device;
    cudaDeviceProp prop;
    size_t free_bytes, total;
    void *at;

    setenv("EMU_SM", "80,90", 1);
    setenv("EMU_MEMORY", "1000,2000", 1);
    setenv("EMU_FAIL", "alloc:2:2,alloc:3:2", 1);
    setenv("EMU_FAIL_ON", "0", 1);
    CUDA(cudaGetDeviceCount(&n));
    CUDA(cudaSetDevice(1));
    CUDA(cudaGetDevice(&device));
    CUDA(cudaGetDeviceProperties(&prop, 0));
    MUST(n == 3 && device == 1 && prop.major == 8 && prop.totalGlobalMem == 1000);
    CUDA(cudaGetDeviceProperties(&prop, 2));
    CUDA(cudaMemGetInfo(&free_bytes, &total));
    MUST(prop.major == 9 && prop.totalGlobalMem == 2000 && total == 2000);
    MUST(cudaSetDevice(3) == cudaErrorInvalidDevice && cudaGetLastError() == cudaErrorInvalidDevice);
    CUDA(cudaMalloc(&at, 1));
    CUDA(cudaMalloc(&at, 1));
    CUDA(cudaSetDevice(0));
    MUST(cudaMalloc(&at, 1) == cudaErrorMemoryAllocation);
}

static void old_driver()
{
    int n, driver, runtime;

    MUST(cudaGetDeviceCount(&n) == cudaErrorInsufficientDriver);
    CUDA(cudaDriverGetVersion(&driver));
    CUDA(cudaRuntimeGetVersion(&runtime));
    MUST(driver < runtime);
}

/* ---- what the host may not do -------------------------------------------- */

static void host_reads_device_memory()
{
    float *x = zeros(32);

    MUST(x[3] == 0);
}

static void host_reads_after_a_kernel()
{
    float *x = zeros(32);

    KERNEL_LAUNCH(add, 1, 32, 0, 0, x, 2.0f);
    CUDA(cudaDeviceSynchronize());
    MUST(x[31] == 2);
}

static void pinned_memory_freed_too_early()
{
    float *pinned, *x = zeros(32);

    CUDA(cudaMallocHost(&pinned, 128));
    CUDA(cudaMemcpyAsync(x, pinned, 128, cudaMemcpyHostToDevice));
    CUDA(cudaFreeHost(pinned));
}

static void pinned_memory_overwritten_too_early()
{
    float *pinned, *x = zeros(32);

    CUDA(cudaMallocHost(&pinned, 128));
    for (int i = 0; i < 32; i++)
        pinned[i] = 1;
    CUDA(cudaMemcpyAsync(x, pinned, 128, cudaMemcpyHostToDevice));
    pinned[3] = 2;
    for (float y : back(x, 32))
        MUST(y == 1);
}

static void read_before_it_is_done()
{
    float *pinned, *x = zeros(32);

    CUDA(cudaMallocHost(&pinned, 128));
    CUDA(cudaMemcpyAsync(pinned, x, 128, cudaMemcpyDeviceToHost));
    MUST(pinned[0] == 0);
}

const struct test host_tests[] = {
    { "work waits", work_waits, NULL, NULL },
    { "pageable memory is read at once", pageable_memory_is_read_at_once, NULL, NULL },
    { "streams wait for events", streams_wait_for_events, NULL, NULL },
    { "rectangles", rectangles, NULL, NULL },
    { "memory is counted", memory_is_counted, NULL, "EMU_MEMORY=1048576" },
    { "shapes of launches", shapes_of_launches, NULL, NULL },
    { "copies outside memory", copies_outside_memory, NULL, NULL },
    { "the second allocation fails", the_second_allocation_fails, NULL, "EMU_FAIL=alloc:2:2,alloc:9:2" },
    { "the second kernel breaks the device", the_second_kernel_breaks_the_device, NULL, "EMU_FAIL=launch:2:214" },
    { "no device", no_device, NULL, "EMU_DEVICES=0" },
    { "three devices", three_devices, NULL, "EMU_DEVICES=3" },
    { "old driver", old_driver, NULL, "EMU_DEVICES=driver" },
    { "host reads device memory", host_reads_device_memory,
      NOT_TSAN("the host touched memory at byte 12 of an allocation of 128 bytes of device memory"), NULL },
    { "host reads after a kernel", host_reads_after_a_kernel, NOT_TSAN("the host touched memory at byte 124"), NULL },
    { "pinned memory freed too early", pinned_memory_freed_too_early, "pinned memory is freed while a queued copy",
      NULL },
    { "pinned memory overwritten too early", pinned_memory_overwritten_too_early, "wrong: y == 1", NULL },
    { "read before it is done", read_before_it_is_done, "wrong: pinned[0] == 0", NULL },
    { NULL, NULL, NULL, NULL },
};
