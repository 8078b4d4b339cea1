/* cuda_memory.cu - the device's memory, and the ring of pinned memory through which all uploads and reads go.
 *
 * A write or an upload has read the host's memory when it returns, and no copy waits for the stream: bytes go to a
 * pinned part of the ring first, and from there to the device in the stream's order. A part is filled again when the
 * copies from it are done. A read goes the other way, in parts, and waits.
 */
#include <cuda_runtime.h>

#include <cuda_primitives.h>

#include "kernels/cuda/cuda_internal.h"

#include <string.h>

enum { RING_ALIGN = 16 };

/* ---- the ring ----------------------------------------------------------- */

bool cuda_ring_open(struct cuda *c)
{
    struct cuda_ring *r = &c->ring;
    size_t bytes = (size_t)CUDA_RING_PARTS * CUDA_PART_BYTES;

    for (int i = 0; i < CUDA_RING_PARTS; i++)
        if (!cuda_ok(c, cudaEventCreateWithFlags(&r->done[i], cudaEventDisableTiming), "making an event"))
            return false;
    return cuda_ok(c, cudaMallocHost((void **)&r->host, bytes), "allocating pinned memory") &&
           cuda_ok(c, cudaMalloc((void **)&r->device, bytes), "allocating memory for uploads");
}

void cuda_ring_close(struct cuda *c)
{
    struct cuda_ring *r = &c->ring;

    for (int i = 0; i < CUDA_RING_PARTS; i++)
        if (r->done[i])
            cudaEventDestroy(r->done[i]);
    cudaFreeHost(r->host);
    cudaFree(r->device);
}

/* Moves on to the next part after the copies from it are done. */
static bool next_part(struct cuda *c)
{
    struct cuda_ring *r = &c->ring;

    if (!cuda_ok(c, cudaEventRecord(r->done[r->part], c->stream), "marking an upload"))
        return false;
    r->part = (r->part + 1) % CUDA_RING_PARTS;
    r->used = 0;
    return cuda_ok(c, cudaEventSynchronize(r->done[r->part]), "waiting for an upload"); // never recorded: done
}

/* Takes the next `bytes` of the ring, at most a part; *offset: in both memories. */
static bool ring_take(struct cuda *c, size_t bytes, size_t *offset)
{
    struct cuda_ring *r = &c->ring;

    if (cuda_failed(c) || (r->used + bytes > CUDA_PART_BYTES && !next_part(c)))
        return false;
    *offset = (size_t)r->part * CUDA_PART_BYTES + r->used;
    r->used += (bytes + RING_ALIGN - 1) / RING_ALIGN * RING_ALIGN;
    return true;
}

static bool to_device(struct cuda *c, void *dst, const void *pinned, size_t bytes)
{
    c->running = "an upload";
    return bytes == 0 || cuda_ok(c, cudaMemcpyAsync(dst, pinned, bytes, cudaMemcpyHostToDevice, c->stream), c->running);
}

const void *cuda_upload(struct cuda *c, const void *host, size_t bytes)
{
    size_t at;

    if (bytes > CUDA_PART_BYTES) {
        cuda_fail(c, ERR_FAIL, "a list of %zu bytes is too long to be uploaded: %zu is the maximum", bytes,
                  CUDA_PART_BYTES);
        return NULL;
    }
    if (!ring_take(c, bytes, &at))
        return NULL;
    if (bytes)
        memcpy(c->ring.host + at, host, bytes);
    return to_device(c, c->ring.device + at, c->ring.host + at, bytes) ? c->ring.device + at : NULL;
}

/* Is a number's exponent that of infinity or nan? */
static bool any_not_finite(const char *at, enum dtype type, size_t bytes)
{
    bool any = false;

    if (type == DTYPE_F32) {
        for (size_t i = 0; i < bytes; i += sizeof(uint32_t))
            any |= (*(const uint32_t *)(at + i) & 0x7f800000) == 0x7f800000;
    } else {
        const uint16_t exponent = type == DTYPE_F16 ? 0x7c00 : 0x7f80;
        for (size_t i = 0; i < bytes; i += sizeof(uint16_t))
            any |= (*(const uint16_t *)(at + i) & exponent) == exponent;
    }
    return any;
}

const void *cuda_upload_numbers(struct cuda *c, void *dst, const void *host, enum dtype type, size_t n)
{
    constexpr size_t SOME = 64 << 10; // bytes that a thread copies and then checks in its cache
    const size_t bytes = n * dtype_size(type);
    bool bad = false;
    size_t at;

    if (!ring_take(c, bytes, &at))
        return NULL;
    char *pinned = c->ring.host + at;
#pragma omp parallel for reduction(|| : bad)
    for (size_t i = 0; i < bytes; i += SOME) {
        const size_t some = bytes - i < SOME ? bytes - i : SOME;
        memcpy(pinned + i, (const char *)host + i, some);
        bad = any_not_finite(pinned + i, type, some) || bad;
    }
    if (bad) {
        cuda_fail(c, ERR_FORMAT, "a weight is not finite");
        return NULL;
    }
    if (!dst)
        dst = c->ring.device + at;
    return to_device(c, dst, pinned, bytes) ? dst : NULL;
}

void cuda_write(struct backend *be, void *dst, const void *host, size_t bytes)
{
    struct cuda *c = cuda_of(be);
    const char *from = (const char *)host;
    char *to = (char *)dst;
    size_t at;

    while (bytes > 0) {
        size_t n = bytes < CUDA_PART_BYTES ? bytes : CUDA_PART_BYTES;
        if (!ring_take(c, n, &at))
            return;
        memcpy(c->ring.host + at, from, n);
        if (!to_device(c, to, c->ring.host + at, n))
            return;
        from += n;
        to += n;
        bytes -= n;
    }
}

/* ---- the device's memory ------------------------------------------------ */

void *cuda_alloc(struct backend *be, size_t bytes, struct err *err)
{
    void *at = NULL;
    cudaError_t code = cudaMalloc(&at, bytes ? bytes : CUDA_ALIGN);

    (void)be;
    if (code == cudaSuccess)
        return at;
    cudaGetLastError(); // the failure is reported here, not by the next launch
    size_t free_bytes = 0, total = 0;
    if (code == cudaErrorMemoryAllocation && cudaMemGetInfo(&free_bytes, &total) == cudaSuccess)
        err_set(err, ERR_NOMEM, "the GPU's memory is used up: %zu bytes are needed, and %zu of its %zu are free", bytes,
                free_bytes, total);
    else
        err_set(err, ERR_LOST, "the GPU failed: allocating %zu bytes: %s (%s)", bytes, cudaGetErrorName(code),
                cudaGetErrorString(code));
    return NULL;
}

void cuda_free(struct backend *be, void *at)
{
    cuda_ok(cuda_of(be), cudaFree(at), "freeing memory");
}

void cuda_copy(struct backend *be, void *dst, const void *src, size_t bytes)
{
    struct cuda *c = cuda_of(be);

    if (bytes == 0 || cuda_failed(c))
        return;
    c->running = "a copy";
    cuda_ok(c, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, c->stream), c->running);
}

/* Reads `bytes` through the ring, except that the last part is still on its way to offset *last of it. While one part
 * goes from the ring to the host's memory, the next is on its way to the ring. */
static void read_parts(struct cuda *c, char *to, const char *from, size_t bytes, size_t *last)
{
    for (size_t at = 0, offset; at < bytes; at += CUDA_PART_BYTES) {
        const size_t n = bytes - at < CUDA_PART_BYTES ? bytes - at : CUDA_PART_BYTES;
        if (!ring_take(c, n, &offset)) // another part of the ring than the one before, which is full
            return;
        c->running = "reading a result";
        if (!cuda_ok(c, cudaMemcpyAsync(c->ring.host + offset, from + at, n, cudaMemcpyDeviceToHost, c->stream),
                     c->running))
            return;
        if (at > 0) {
            if (!cuda_ok(c, cudaEventSynchronize(c->ring.done[*last / CUDA_PART_BYTES]), c->running))
                return;
            memcpy(to + at - CUDA_PART_BYTES, c->ring.host + *last, CUDA_PART_BYTES);
        }
        *last = offset;
    }
}

int cuda_read(struct backend *be, void *host, const void *src, size_t bytes, struct err *err)
{
    const size_t begin = bytes > 0 ? (bytes - 1) / CUDA_PART_BYTES * CUDA_PART_BYTES : 0; // of the last part
    struct cuda *c = cuda_of(be);
    size_t last = 0;

    read_parts(c, (char *)host, (const char *)src, bytes, &last);
    int code = be->sync(be, err);
    if (code == 0 && bytes > 0)
        memcpy((char *)host + begin, c->ring.host + last, bytes - begin);
    return code;
}

/* ---- the upload rate ---------------------------------------------------- */

/* The rate of the fastest of some copies; the first is not counted. */
static void time_copies(struct cuda *c, void *to, const void *from, size_t bytes, double *bytes_per_s)
{
    enum { COPIES = 6 };
    double last = c->base.clock(&c->base);

    *bytes_per_s = 0;
    for (int i = 0; i < COPIES; i++) {
        if (!to_device(c, to, from, bytes))
            return;
        double now = c->base.clock(&c->base), rate = (double)bytes / (now - last);
        if (i > 0 && now > last && rate > *bytes_per_s)
            *bytes_per_s = rate;
        last = now;
    }
}

int cuda_upload_rate_of(struct backend *be, double *bytes_per_s, struct err *err)
{
    const size_t bytes = 64 << 20; // takes a millisecond and more, far longer than starting a copy
    struct cuda *c = cuda_of(be);
    void *from = NULL, *to = NULL;

    if (cuda_ok(c, cudaMallocHost(&from, bytes), "allocating pinned memory") &&
        cuda_ok(c, cudaMalloc(&to, bytes), "allocating memory for uploads")) {
        memset(from, 1, bytes);
        time_copies(c, to, from, bytes, bytes_per_s);
    }
    int code = be->sync(be, err);
    cudaFreeHost(from);
    cudaFree(to);
    return code;
}
