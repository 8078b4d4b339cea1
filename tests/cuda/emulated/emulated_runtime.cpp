/* emulated_runtime.cpp - the CUDA runtime on the host: errors, the device, streams, events, launches.
 *
 * A stream is a queue of work. Nothing runs when it is queued: it runs when the host waits for the stream, for an event
 * after it or for the device, or frees device memory. Memory and copies are in emulated_memory.cpp.
 *
 * EMU_DEVICES says how many devices there are; a process uses one, that of its last cudaSetDevice(). EMU_SM and
 * EMU_MEMORY are lists with a number for each; the last one is that of all further devices. EMU_FAIL_ON is the device
 * that EMU_FAIL is about; without it, it is every one.
 */
#include "tests/cuda/emulated/cuda.h"
#include "tests/cuda/emulated/emulated_runtime.h"

#include <deque>
#include <map>
#include <set>
#include <stdio.h>
#include <time.h>
#include <vector>

/* One thing that a stream does: `event` alone is recorded, or waited for when it is another stream's. */
struct work {
    const char *name;
    std::function<void()> run;
    const char *fails_as; // "launch", "copy" or NULL: what EMU_FAIL calls it
    cudaEvent_t record, wait;
    emu::host_range uses;
};

struct CUstream_st {
    std::deque<work> queue;
    unsigned flags;
};

struct CUevent_st {
    CUstream_st *stream; // that will record it, or did; NULL: not recorded
    bool done;
    double at; // seconds
};

namespace emu
{

static struct {
    bool known;
    int n_devices, device; // device: in use
    bool runs;
    const char *fail;
    long fails_on; // -1: all devices
} settings;
static std::map<std::string, int> done_so_far; // for EMU_FAIL
static std::map<std::string, unsigned long> counts;
static cudaError_t last_error, broken;
static CUstream_st default_stream;
static std::set<CUstream_st *> streams = { &default_stream };
static std::set<CUevent_st *> events;
static std::map<const void *, int> dynamic_max; // of kernels that asked for more than 48 KiB
static std::set<const void *> loaded;           // kernels

/* The number of a device in a list, or the last one. */
static long setting(const char *name, int device, long otherwise)
{
    const char *text = getenv(name);

    if (!text)
        return otherwise;
    for (const char *at = text;; at++) {
        char *end;
        long value = strtol(at, &end, 10);
        if (end == at || (*end && *end != ',') || value < 0) {
            fprintf(stderr, "cuda emulator: %s is a number or a list, not '%s'\n", name, text);
            exit(2);
        }
        if (!*end || device-- == 0)
            return value;
        at = end;
    }
}

static void write_counts()
{
    FILE *f = fopen(getenv("EMU_COUNTS"), "a");

    if (!f)
        return;
    for (const auto &c : counts)
        fprintf(f, "%s %lu\n", c.first.c_str(), c.second);
    fclose(f);
}

static void read_settings()
{
    const char *devices = getenv("EMU_DEVICES");

    if (settings.known)
        return;
    settings.known = true;
    settings.n_devices = devices && !strcmp(devices, "driver") ? -1 : (int)setting("EMU_DEVICES", 0, 1);
    settings.fails_on = setting("EMU_FAIL_ON", 0, -1);
    settings.runs = setting("EMU_RUN", 0, 1) != 0;
    settings.fail = getenv("EMU_FAIL");
    if (getenv("EMU_COUNTS"))
        atexit(write_counts);
    watch_faults();
}

size_t device_memory()
{
    read_settings();
    return (size_t)setting("EMU_MEMORY", settings.device, 1L << 30);
}

int device_sm()
{
    read_settings();
    return (int)setting("EMU_SM", settings.device, 90);
}

void count(const char *what, unsigned long n)
{
    counts[what] += n;
}

/* ---- errors -------------------------------------------------------------- */

cudaError_t remember(cudaError_t code)
{
    if (code != cudaSuccess)
        last_error = code;
    return code;
}

/* Those after which a process can use the device no more. */
static bool breaks(cudaError_t code)
{
    return code == cudaErrorECCUncorrectable || code == cudaErrorIllegalAddress || code == cudaErrorLaunchTimeout ||
           code == cudaErrorMisalignedAddress || code == cudaErrorLaunchFailure || code == cudaErrorUnknown;
}

cudaError_t injected(const char *what)
{
    int n = ++done_so_far[what];
    bool fails = settings.fails_on < 0 || settings.fails_on == settings.device;
    cudaError_t code = cudaSuccess;

    for (const char *at = fails ? settings.fail : NULL; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : "") {
        char name[16];
        int when, as;
        if (sscanf(at, "%15[a-z]:%d:%d", name, &when, &as) == 3 && !strcmp(name, what) && when == n)
            code = (cudaError_t)as;
    }
    if (breaks(code))
        broken = code;
    return code;
}

cudaError_t usable()
{
    read_settings();
    if (settings.n_devices < 0)
        return cudaErrorInsufficientDriver;
    if (settings.n_devices == 0)
        return cudaErrorNoDevice;
    return broken;
}

/* ---- queues -------------------------------------------------------------- */

static CUstream_st *stream_of(cudaStream_t stream)
{
    return stream ? stream : &default_stream;
}

static double now()
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_one(CUstream_st *stream);

static void run_until(CUevent_st *event)
{
    while (!broken && !event->done && event->stream && !event->stream->queue.empty())
        run_one(event->stream);
}

/* The same for the host, which may not touch the device's memory afterwards. */
static void wait_for(CUevent_st *event)
{
    run_until(event);
    close_memory();
}

static void run_one(CUstream_st *stream)
{
    struct work work = std::move(stream->queue.front());

    stream->queue.pop_front();
    if (work.wait)
        run_until(work.wait);
    if (broken)
        return;
    if (work.record) {
        work.record->done = true;
        work.record->at = now();
    }
    if (!work.run)
        return;
    cudaError_t code = work.fails_as ? injected(work.fails_as) : cudaSuccess;
    if (code != cudaSuccess) {
        last_error = code;
        return;
    }
    open_memory();
    work.run();
    check_memory(work.name);
}

static cudaError_t run_all(CUstream_st *stream)
{
    cudaError_t before = last_error;

    last_error = cudaSuccess;
    while (!broken && !stream->queue.empty())
        run_one(stream);
    close_memory();
    if (broken)
        stream->queue.clear();
    cudaError_t code = broken ? broken : last_error;
    if (last_error == cudaSuccess)
        last_error = before;
    return remember(code);
}

cudaError_t run_everything()
{
    cudaError_t code = cudaSuccess;

    for (CUstream_st *s : streams) {
        cudaError_t one = run_all(s);
        code = code ? code : one;
    }
    return code;
}

void queue_copy(const char *name, std::function<void()> run, struct host_range uses, cudaStream_t stream)
{
    stream_of(stream)->queue.push_back({ name, run, "copy", NULL, NULL, uses });
}

void queue_work(const char *name, std::function<void()> run, cudaStream_t stream)
{
    counts[name]++;
    stream_of(stream)->queue.push_back({ name, run, "launch", NULL, NULL, {} });
}

const char *queued_use(struct host_range r)
{
    if (broken) // what is queued never runs
        return NULL;
    for (const CUstream_st *s : streams)
        for (const struct work &w : s->queue)
            if (w.uses.at && w.uses.at < r.at + r.bytes && r.at < w.uses.at + w.uses.bytes)
                return w.name;
    return NULL;
}

cudaError_t run_stream(cudaStream_t stream)
{
    return run_all(stream_of(stream));
}

/* ---- launches ------------------------------------------------------------ */

static cudaError_t check_launch(const void *kernel, const struct kernel_launch *l)
{
    size_t threads = (size_t)l->block.x * l->block.y * l->block.z;
    auto max = dynamic_max.find(kernel);

    if (l->grid.x == 0 || l->grid.y == 0 || l->grid.z == 0 || l->grid.x > 0x7fffffff || l->grid.y > 65535 ||
        l->grid.z > 65535)
        return cudaErrorInvalidConfiguration;
    if (threads == 0 || threads > MAX_THREADS || l->block.z > 64)
        return cudaErrorInvalidConfiguration;
    if (l->shared_bytes > (size_t)(max == dynamic_max.end() ? 48 << 10 : max->second))
        return cudaErrorInvalidValue;
    return cudaSuccess;
}

void queue_launch(const void *kernel, struct kernel_launch launch, cudaStream_t stream)
{
    cudaError_t code = usable();

    if (code == cudaSuccess)
        code = check_launch(kernel, &launch);
    if (code != cudaSuccess) {
        remember(code);
        return;
    }
    counts[launch.name]++;
    counts["launches"]++;
    counts["blocks"] += (unsigned long)launch.grid.x * launch.grid.y * launch.grid.z;
    if (!loaded.count(kernel))
        counts["loaded by a launch"]++;
    if (settings.runs)
        stream_of(stream)->queue.push_back({ launch.name, [=] { run_kernel(&launch); }, "launch", NULL, NULL, {} });
}

} // namespace emu

using namespace emu;

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute which, int value)
{
    MUST_BE_USABLE();
    if (which == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || value > 227 << 10)
            return remember(cudaErrorInvalidValue);
        dynamic_max[kernel] = value < 48 << 10 ? 48 << 10 : value;
    }
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel)
{
    MUST_BE_USABLE();
    loaded.insert(kernel);
    attributes->sharedSizeBytes = 256;
    return cudaSuccess;
}

/* ---- errors -------------------------------------------------------------- */

cudaError_t cudaGetLastError()
{
    cudaError_t code = broken ? broken : last_error;

    last_error = cudaSuccess;
    return code;
}

cudaError_t cudaPeekAtLastError()
{
    return broken ? broken : last_error;
}

static const struct {
    cudaError_t code;
    const char *name, *text;
} error_texts[] = {
    { cudaSuccess, "cudaSuccess", "no error" },
    { cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument" },
    { cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory" },
    { cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error" },
    { cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument" },
    { cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy" },
    { cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
      "CUDA driver version is insufficient for CUDA runtime version" },
    { cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected" },
    { cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal" },
    { cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered" },
    { cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle" },
    { cudaErrorNotReady, "cudaErrorNotReady", "device not ready" },
    { cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered" },
    { cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources", "too many resources requested for launch" },
    { cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated" },
    { cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address" },
    { cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure" },
    { cudaErrorSystemDriverMismatch, "cudaErrorSystemDriverMismatch",
      "system has unsupported display driver / cuda driver combination" },
};

const char *cudaGetErrorName(cudaError_t code)
{
    for (const auto &e : error_texts)
        if (e.code == code)
            return e.name;
    return "cudaErrorUnknown";
}

const char *cudaGetErrorString(cudaError_t code)
{
    for (const auto &e : error_texts)
        if (e.code == code)
            return e.text;
    return "unknown error";
}

/* ---- the device ---------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *n)
{
    read_settings();
    *n = settings.n_devices > 0 ? settings.n_devices : 0;
    if (settings.n_devices < 0)
        return remember(cudaErrorInsufficientDriver);
    return settings.n_devices ? cudaSuccess : remember(cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device)
{
    MUST_BE_USABLE();
    if (device < 0 || device >= settings.n_devices)
        return remember(cudaErrorInvalidDevice);
    settings.device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    MUST_BE_USABLE();
    *device = settings.device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device)
{
    MUST_BE_USABLE();
    const int sm = (int)setting("EMU_SM", device, 90);
    memset(prop, 0, sizeof(*prop));
    snprintf(prop->name, sizeof(prop->name), "emulated device");
    prop->totalGlobalMem = (size_t)setting("EMU_MEMORY", device, 1L << 30);
    prop->sharedMemPerBlock = 48 << 10;
    const int shared = sm == 80 ? 163 : sm == 89 ? 99 : 227;
    prop->sharedMemPerBlockOptin = (size_t)setting("EMU_SHARED", device, shared << 10);
    prop->major = sm / 10;
    prop->minor = sm % 10;
    prop->multiProcessorCount = 3;
    prop->l2CacheSize = 50 << 20;
    prop->memoryBusWidth = 5120;
    prop->ECCEnabled = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device)
{
    cudaDeviceProp p;
    cudaError_t code = cudaGetDeviceProperties(&p, device);

    if (code != cudaSuccess)
        return code;
    switch (which) {
    case cudaDevAttrMaxThreadsPerBlock: *value = MAX_THREADS; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrMemoryClockRate: *value = 2619000; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = p.memoryBusWidth; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)p.sharedMemPerBlockOptin; break;
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int cap, int)
{
    MUST_BE_USABLE();
    snprintf(text, (size_t)cap, "0000:00:00.0");
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    read_settings();
    *version = settings.n_devices < 0 ? 11000 : CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, unsigned long long,
                                             cudaDriverEntryPointQueryResult *found)
{
    MUST_BE_USABLE();
    const bool has = strcmp(name, "cuTensorMapEncodeTiled") == 0 && version >= 12000;
    *function = has ? reinterpret_cast<void *>(cuTensorMapEncodeTiled) : NULL;
    *found = has ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
    MUST_BE_USABLE();
    cudaError_t code = injected("wait");
    return remember(code ? code : run_everything());
}

cudaError_t cudaDeviceReset()
{
    return cudaDeviceSynchronize();
}

/* ---- streams and events -------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    MUST_BE_USABLE();
    *stream = new CUstream_st{ {}, flags };
    streams.insert(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaError_t code = usable();

    if (!streams.count(stream))
        return remember(cudaErrorInvalidResourceHandle);
    if (code == cudaSuccess)
        code = run_all(stream);
    streams.erase(stream);
    delete stream;
    return remember(code);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    MUST_BE_USABLE();
    cudaError_t code = injected("wait");
    count("waits", 1);
    return remember(code ? code : run_all(stream_of(stream)));
}

/* Asked again and again it comes to an end, as on a device. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    MUST_BE_USABLE();
    if (stream_of(stream)->queue.empty())
        return cudaSuccess;
    run_one(stream_of(stream));
    close_memory();
    return cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    MUST_BE_USABLE();
    if (event->stream && !event->done)
        stream_of(stream)->queue.push_back({ "cudaStreamWaitEvent", nullptr, NULL, NULL, event, {} });
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    MUST_BE_USABLE();
    *event = new CUevent_st{ NULL, false, 0 };
    events.insert(*event);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (!events.count(event))
        return remember(cudaErrorInvalidResourceHandle);
    wait_for(event);
    events.erase(event);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    MUST_BE_USABLE();
    event->stream = stream_of(stream);
    event->done = false;
    event->stream->queue.push_back({ "cudaEventRecord", nullptr, NULL, event, NULL, {} });
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    MUST_BE_USABLE();
    cudaError_t code = injected("wait");
    count("waits", 1);
    if (code == cudaSuccess)
        wait_for(event);
    return remember(code ? code : broken);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    MUST_BE_USABLE();
    if (!event->stream || event->done)
        return cudaSuccess;
    run_one(event->stream);
    close_memory();
    return cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    MUST_BE_USABLE();
    if (!begin->stream || !end->stream)
        return remember(cudaErrorInvalidResourceHandle);
    if (!begin->done || !end->done)
        return remember(cudaErrorNotReady);
    *ms = (float)((end->at - begin->at) * 1e3);
    return cudaSuccess;
}
