/* cuda_runtime.h - the part of CUDA's runtime that kernels/cuda/ uses, on the host; what kernels use is in
 * kernel_side.h.
 *
 * Names, values and rules are CUDA's; emulator.h says how kernels run. A stream is a queue: what is queued runs when
 * something waits for it, so host memory that is freed or overwritten too early shows. A copy reads or writes pinned
 * memory when it runs; pageable memory is read at the call, and written before the call returns. Memory of the device
 * is closed to the host by mprotect except while a kernel or a copy runs, is poison at first, and ends at a closed
 * page.
 *
 * Environment, read at first use:
 *   EMU_DEVICES   how many devices there are (1); driver: a driver too old for the runtime
 *   EMU_MEMORY    bytes of device memory (1 GiB), all free at first
 *   EMU_SM        compute capability as 80 or 90 (90)
 *   EMU_SHARED    bytes of shared memory that a block can have (as EMU_SM has)
 *   EMU_RUN       0: launches are counted, and no kernel runs
 *   EMU_FAIL      WHAT:N:CODE[,...]: the N-th alloc, copy, launch or wait (from 1) gives that cudaError_t. A launch and
 *                 a copy fail when they run; the errors that break a context stay for all later calls
 */
#ifndef EVP_EMULATED_CUDA_RUNTIME_H
#define EVP_EMULATED_CUDA_RUNTIME_H

#include "tests/cuda/emulated/kernel_side.h"

#include <stdlib.h>
#include <tuple>

#define CUDART_VERSION 13000

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorECCUncorrectable = 214,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchOutOfResources = 701,
    cudaErrorLaunchTimeout = 702,
    cudaErrorMisalignedAddress = 716,
    cudaErrorLaunchFailure = 719,
    cudaErrorSystemDriverMismatch = 803,
    cudaErrorUnknown = 999,
};
const char *cudaGetErrorName(cudaError_t code);
const char *cudaGetErrorString(cudaError_t code);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

/* ---- the device ---------------------------------------------------------- */

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin;
    int major, minor, multiProcessorCount, l2CacheSize, memoryBusWidth, ECCEnabled;
};
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device);
cudaError_t cudaDeviceGetPCIBusId(char *text, int cap, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();

enum { cudaEnableDefault = 0 };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0, cudaDriverEntryPointSymbolNotFound = 1 };
/* The driver's functions of tests/cuda/emulated/cuda.h. */
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult *found);

/* ---- streams and events -------------------------------------------------- */

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = 0);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end);

/* ---- memory -------------------------------------------------------------- */

enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault,
};
enum { cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4 };
enum { cudaHostRegisterDefault = 0, cudaHostRegisterReadOnly = 8 };
cudaError_t cudaMalloc(void **at, size_t bytes);
template <class T> inline cudaError_t cudaMalloc(T **at, size_t bytes)
{
    return cudaMalloc(reinterpret_cast<void **>(at), bytes);
}
cudaError_t cudaFree(void *at);
cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags);
template <class T> inline cudaError_t cudaHostAlloc(T **at, size_t bytes, unsigned flags)
{
    return cudaHostAlloc(reinterpret_cast<void **>(at), bytes, flags);
}
template <class T> inline cudaError_t cudaMallocHost(T **at, size_t bytes, unsigned flags = cudaHostAllocDefault)
{
    return cudaHostAlloc(reinterpret_cast<void **>(at), bytes, flags);
}
cudaError_t cudaFreeHost(void *at);
cudaError_t cudaHostRegister(void *at, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *at);
cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream = 0);
cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream = 0);
cudaError_t cudaMemset(void *at, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream = 0);
cudaError_t cudaMemset2DAsync(void *at, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream = 0);

/* ---- kernels ------------------------------------------------------------- */

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9,
};
cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute which, int value);
template <class... P> inline cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute which, int value)
{
    return cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), which, value);
}
struct cudaFuncAttributes {
    size_t sharedSizeBytes;
};
/* Loads the kernel. Its static shared memory is not known before it runs: each is said to have 256 bytes of it. */
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel);

namespace emu
{

/* Queues a launch after checking its shape; what is wrong comes out of cudaGetLastError(). */
void queue_launch(const void *kernel, struct kernel_launch launch, cudaStream_t stream);

/* Queues anything else that runs on the device, cublasLt's products for one. */
void queue_work(const char *name, std::function<void()> work, cudaStream_t stream);

/* Is [at, at + bytes) in one allocation of device memory? */
bool on_device(const void *at, size_t bytes);

template <class... P> struct call_of : kernel_call {
    void (*kernel)(P...);
    std::tuple<std::decay_t<P>...> args;

    template <class... A> call_of(void (*kernel_)(P...), A &&...args_) : kernel(kernel_), args(static_cast<P>(args_)...)
    {
        bytes = sizeof(*this);
    }
    void run() override
    {
        std::apply(kernel, args);
    }
};

template <class... P, class... A>
inline void launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 size, size_t shared_bytes,
                   cudaStream_t stream, A &&...args)
{
    static_assert(sizeof...(P) == sizeof...(A), "a kernel needs all its arguments");
    static_assert((sizeof(P) + ... + 0) <= 4096, "a kernel takes 4 KiB of arguments");

    queue_launch(reinterpret_cast<const void *>(kernel),
                 { name, grid, size, shared_bytes, std::make_shared<call_of<P...>>(kernel, std::forward<A>(args)...) },
                 stream);
}

} // namespace emu

#endif
