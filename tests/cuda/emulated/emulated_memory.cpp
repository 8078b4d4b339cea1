/* emulated_memory.cpp - memory of the emulated device, pinned memory, copies, and what is said of a fault.
 *
 * An allocation has mappings of its own: it ends as near to a closed page as 64-byte alignment allows, what is before
 * and after it in its pages is a guard that is looked at after all that runs, and it is poison at first. The address
 * sanitizer knows the guards too.
 */
#include "tests/cuda/emulated/emulated_runtime.h"

#include <map>
#include <memory>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#ifdef EMU_ASAN
extern "C" void __asan_poison_memory_region(void const volatile *, size_t);
extern "C" void __asan_unpoison_memory_region(void const volatile *, size_t);
#endif

namespace emu
{

enum { PAGE = 4096, ALIGNMENT = 64, POISON = 0xff, GUARD = 0xe7 };

struct allocation {
    char *map; // with a closed page at both ends
    size_t map_bytes;
    char *at;
    size_t bytes;
};
typedef std::map<const char *, allocation> allocations; // by the end of `bytes`

static allocations device, pinned;
static std::map<const char *, size_t> registered;
static size_t device_used;
static bool is_open;

static const struct allocation *find(const allocations *of, const void *at)
{
    const char *p = static_cast<const char *>(at);
    auto found = of->upper_bound(p);

    return found != of->end() && p >= found->second.at ? &found->second : NULL;
}

static bool holds(const struct allocation *a, const void *at, size_t bytes)
{
    return a && static_cast<const char *>(at) + bytes <= a->at + a->bytes;
}

bool on_device(const void *at, size_t bytes)
{
    return holds(find(&device, at), at, bytes);
}

static bool is_pinned(const void *at)
{
    const char *p = static_cast<const char *>(at);

    if (find(&pinned, at))
        return true;
    for (const auto &r : registered)
        if (p >= r.first && p < r.first + r.second)
            return true;
    return false;
}

static void set_guards(const struct allocation *a, bool closed)
{
#ifdef EMU_ASAN
    char *end = a->map + a->map_bytes - PAGE;
    if (closed) {
        __asan_poison_memory_region(a->map + PAGE, (size_t)(a->at - a->map - PAGE));
        __asan_poison_memory_region(a->at + a->bytes, (size_t)(end - a->at) - a->bytes);
    } else {
        __asan_unpoison_memory_region(a->map + PAGE, a->map_bytes - 2 * PAGE);
    }
#else
    (void)a;
    (void)closed;
#endif
}

/* Pages of poison cost no memory until they are written: they are those of one file. */
static bool map_poison(char *at, size_t bytes)
{
    enum { FILE_BYTES = 4 << 20 };
    static int file = -1;

    if (file < 0) {
        std::vector<char> poison(FILE_BYTES, (char)POISON);
        file = memfd_create("poison", MFD_CLOEXEC);
        if (file < 0 || write(file, poison.data(), FILE_BYTES) != FILE_BYTES)
            die("no memory for poison");
    }
    for (size_t done = 0; done < bytes; done += FILE_BYTES) {
        size_t n = bytes - done < FILE_BYTES ? bytes - done : (size_t)FILE_BYTES;
        if (mmap(at + done, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED)
            return false;
    }
    return true;
}

static bool allocate(allocations *to, size_t bytes, struct allocation *a)
{
    size_t used = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, pages = (used + PAGE - 1) / PAGE * PAGE;
    void *map = mmap(NULL, pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED)
        return false;
    *a = { static_cast<char *>(map), pages + 2 * PAGE, static_cast<char *>(map) + PAGE + (pages - used), bytes };
    if (!map_poison(a->map + PAGE, pages))
        return false;
    memset(a->map + PAGE, GUARD, pages - used);
    memset(a->at + bytes, GUARD, used - bytes);
    set_guards(a, true);
    (*to)[a->at + bytes] = *a;
    return true;
}

__attribute__((no_sanitize("address"))) static void check_guards(const struct allocation *a, const char *name)
{
    const char *end = a->map + a->map_bytes - PAGE;

    for (const char *p = a->at - 1; p >= a->map + PAGE && p >= a->at - ALIGNMENT; p--)
        if ((unsigned char)*p != GUARD)
            die("%s wrote %zd bytes before an allocation of %zu bytes", name, a->at - p, a->bytes);
    for (const char *p = a->at + a->bytes; p < end; p++)
        if ((unsigned char)*p != GUARD)
            die("%s wrote at byte %zd of an allocation of %zu bytes", name, p - a->at, a->bytes);
}

static void protect_all(int protection)
{
    for (const auto &d : device)
        mprotect(d.second.map + PAGE, d.second.map_bytes - 2 * PAGE, protection);
}

void open_memory()
{
    if (!is_open)
        protect_all(PROT_READ | PROT_WRITE);
    is_open = true;
}

void check_memory(const char *name)
{
    for (const auto &d : device)
        check_guards(&d.second, name);
}

void close_memory()
{
    if (is_open)
        protect_all(PROT_NONE);
    is_open = false;
}

/* ---- faults -------------------------------------------------------------- */

static struct sigaction before[2]; // of SIGSEGV, SIGBUS

static void say_where(const char *p)
{
    for (const auto &d : device)
        if (p >= d.second.map && p < d.second.map + d.second.map_bytes) {
            fprintf(stderr, "at byte %zd of an allocation of %zu bytes of device memory", p - d.second.at,
                    d.second.bytes);
            return;
        }
    fprintf(stderr, "at %p, which is not device memory", static_cast<const void *>(p));
}

static void on_fault(int signal, siginfo_t *info, void *)
{
    char where[200];

    describe_thread(where, sizeof(where));
    fprintf(stderr, "cuda emulator: %s touched memory ", where[0] ? where : "the host");
    say_where(static_cast<const char *>(info->si_addr));
    fputc('\n', stderr);
    fflush(stderr);
    sigaction(signal, &before[signal == SIGBUS], NULL); // the access is made again
}

void watch_faults()
{
    enum { BYTES = 64 << 10 };
    static char stack_bytes[BYTES];
    stack_t stack = {};
    struct sigaction action = {};

    stack.ss_sp = stack_bytes;
    stack.ss_size = BYTES;
    sigaltstack(&stack, NULL);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before[0]);
    sigaction(SIGBUS, &action, &before[1]);
}

} // namespace emu

using namespace emu;

/* ---- allocation ---------------------------------------------------------- */

cudaError_t cudaMalloc(void **at, size_t bytes)
{
    struct allocation a;

    MUST_BE_USABLE();
    *at = NULL;
    cudaError_t code = injected("alloc");
    if (code != cudaSuccess)
        return remember(code);
    if (bytes == 0)
        return cudaSuccess;
    if (bytes > device_memory() - device_used || !allocate(&device, bytes, &a))
        return remember(cudaErrorMemoryAllocation);
    mprotect(a.map + PAGE, a.map_bytes - 2 * PAGE, PROT_NONE);
    device_used += bytes;
    count("device allocations", 1);
    *at = a.at;
    return cudaSuccess;
}

cudaError_t cudaFree(void *at)
{
    MUST_BE_USABLE();
    if (!at)
        return cudaSuccess;
    cudaError_t code = run_everything(); // as a device does
    const struct allocation *found = find(&device, at);
    if (!found || found->at != at)
        return remember(cudaErrorInvalidValue);
    struct allocation a = *found;
    device.erase(a.at + a.bytes);
    device_used -= a.bytes;
    set_guards(&a, false);
    munmap(a.map, a.map_bytes);
    return remember(code);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    MUST_BE_USABLE();
    *total = device_memory();
    *free_bytes = *total - device_used;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned)
{
    struct allocation a;

    MUST_BE_USABLE();
    *at = NULL;
    cudaError_t code = injected("alloc");
    if (code != cudaSuccess)
        return remember(code);
    if (!allocate(&pinned, bytes, &a))
        return remember(cudaErrorMemoryAllocation);
    *at = a.at;
    return cudaSuccess;
}

static void must_be_unused(const void *at, size_t bytes)
{
    const char *name = queued_use({ static_cast<const char *>(at), bytes });

    if (name)
        die("pinned memory is freed while a queued %s uses it", name);
}

cudaError_t cudaFreeHost(void *at)
{
    const struct allocation *found = at ? find(&pinned, at) : NULL;

    if (!at)
        return cudaSuccess;
    if (!found || found->at != at)
        return remember(cudaErrorInvalidValue);
    struct allocation a = *found;
    must_be_unused(a.at, a.bytes);
    check_guards(&a, "the host");
    pinned.erase(a.at + a.bytes);
    set_guards(&a, false);
    munmap(a.map, a.map_bytes);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *at, size_t bytes, unsigned)
{
    MUST_BE_USABLE();
    registered[static_cast<char *>(at)] = bytes;
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *at)
{
    auto found = registered.find(static_cast<char *>(at));

    if (found == registered.end())
        return remember(cudaErrorInvalidValue);
    must_be_unused(at, found->second);
    registered.erase(found);
    return cudaSuccess;
}

/* ---- copies -------------------------------------------------------------- */

struct rectangle {
    char *dst;
    const char *src;
    size_t dst_pitch, src_pitch, width, height;
};

static void copy_rows(const struct rectangle *r)
{
    for (size_t y = 0; y < r->height; y++)
        memmove(r->dst + y * r->dst_pitch, r->src + y * r->src_pitch, r->width);
}

/* Bytes from the first to the last of a side. */
static size_t extent(size_t pitch, const struct rectangle *r)
{
    return (r->height - 1) * pitch + r->width;
}

static cudaError_t check_side(const void *at, size_t bytes, bool must_be_device)
{
    bool is_device = find(&device, at) != NULL;

    return is_device != must_be_device || (is_device && !on_device(at, bytes)) ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t queue_rows(struct rectangle r, cudaMemcpyKind kind, cudaStream_t stream)
{
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    static const char *const names[] = { "copy host to host", "copy host to device", "copy device to host",
                                         "copy device to device" };

    MUST_BE_USABLE();
    if (r.width == 0 || r.height == 0)
        return cudaSuccess;
    if (kind == cudaMemcpyDefault) {
        from_device = find(&device, r.src);
        to_device = find(&device, r.dst);
        kind = from_device ? to_device ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost
               : to_device ? cudaMemcpyHostToDevice
                           : cudaMemcpyHostToHost;
    }
    if (r.height > 1 && (r.width > r.dst_pitch || r.width > r.src_pitch))
        return remember(cudaErrorInvalidValue);
    if (check_side(r.src, extent(r.src_pitch, &r), from_device) ||
        check_side(r.dst, extent(r.dst_pitch, &r), to_device))
        return remember(cudaErrorInvalidValue);
    const char *name = names[kind];
    count(name, 1);
    count((std::string(name) + ", bytes").c_str(), r.width * r.height);
    if (!from_device && !is_pinned(r.src)) { // read now
        auto bytes = std::make_shared<std::vector<char>>(r.width * r.height);
        struct rectangle in = r, out = r;
        in.dst = bytes->data();
        out.src = bytes->data();
        in.dst_pitch = out.src_pitch = r.width;
        copy_rows(&in);
        queue_copy(
            name, [=] { (void)bytes, copy_rows(&out); }, {}, stream);
    } else {
        struct host_range uses = {};
        if (!from_device)
            uses = { r.src, extent(r.src_pitch, &r) };
        else if (!to_device)
            uses = { r.dst, extent(r.dst_pitch, &r) };
        queue_copy(
            name, [=] { copy_rows(&r); }, uses, stream);
    }
    if (!to_device && !is_pinned(r.dst)) // written before the call returns
        return run_stream(stream);
    return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    return queue_rows({ static_cast<char *>(dst), static_cast<const char *>(src), dst_pitch, src_pitch, width, height },
                      kind, stream);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    return cudaMemcpy2DAsync(dst, bytes, src, bytes, bytes, 1, kind, stream);
}

cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind)
{
    cudaError_t code = cudaMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width, height, kind, 0);

    return code ? code : run_stream(0);
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind)
{
    return cudaMemcpy2D(dst, bytes, src, bytes, bytes, 1, kind);
}

cudaError_t cudaMemset2DAsync(void *at, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
    char *p = static_cast<char *>(at);

    MUST_BE_USABLE();
    if (width == 0 || height == 0)
        return cudaSuccess;
    if (!on_device(at, (height - 1) * pitch + width) || (height > 1 && pitch < width))
        return remember(cudaErrorInvalidValue);
    count("memset", 1);
    queue_copy(
        "memset",
        [=] {
            for (size_t y = 0; y < height; y++)
                memset(p + y * pitch, value, width);
        },
        {}, stream);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
    return cudaMemset2DAsync(at, bytes, value, bytes, 1, stream);
}

cudaError_t cudaMemset(void *at, int value, size_t bytes)
{
    return cudaMemsetAsync(at, value, bytes, 0);
}
