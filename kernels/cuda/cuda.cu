/* cuda.cu - the cuda backend: its table of ops, opening the device, failures, the clock and scratch memory.
 *
 * One device, by default the first that CUDA_VISIBLE_DEVICES allows, and one stream. Memory needed for the backend's
 * whole life (the upload ring, the workspace of products) is allocated at open, so that memory() counts it. The first
 * op that takes scratch allocates it, as large as the planned work needs.
 */
#include <cuda_runtime.h>

#include <cuda_primitives.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/cuda_internal.h"
#include "kernels/cuda/cuda_product.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PASS_ROWS = 4096, // products run at full speed, and a decoding step holds some thousand sequences
    OLDEST_SM = 80,   // asynchronous copies and bf16 tensor cores
    NAMES_WHILE = 48, // characters of a kernel's name in a message
    LIST_KINDS = 6,   // of a model's attention: text, own, shared, without and with a window
};

/* A full pass of Llama-3.1-8B fits: 4,096 rows, 32 heads of 128 columns, 8 pieces. */
constexpr size_t STATE_BYTES = 640 << 20;

/* ---- failures ----------------------------------------------------------- */

void cuda_fail(struct cuda *c, int code, const char *fmt, ...)
{
    char text[sizeof(c->failure.msg)];
    va_list list;

    if (cuda_failed(c))
        return;
    va_start(list, fmt);
    vsnprintf(text, sizeof(text), fmt, list);
    va_end(list);
    err_set(&c->failure, code, "%s", text);
}

bool cuda_ok(struct cuda *c, cudaError_t code, const char *what)
{
    if (code == cudaSuccess)
        return true;
    cudaGetLastError(); // clears the runtime's copy, which the next launch would report as its own
    if (code == cudaErrorMemoryAllocation)
        cuda_fail(c, ERR_NOMEM, "the GPU's memory is used up: %s (%s)", what, cudaGetErrorName(code));
    else
        cuda_fail(c, ERR_LOST, "the GPU failed: %s: %s (%s)", what, cudaGetErrorName(code), cudaGetErrorString(code));
    return false;
}

/* Waits for the stream. The op that failed may have been queued long before. */
static void wait(struct cuda *c)
{
    char what[128];
    cudaError_t code = cudaStreamSynchronize(c->stream);

    if (code == cudaSuccess)
        return;
    snprintf(what, sizeof(what), "no later than %.*s", NAMES_WHILE, c->running);
    cuda_ok(c, code, what);
}

static int cuda_sync(struct backend *be, struct err *err)
{
    struct cuda *c = cuda_of(be);

    wait(c);
    int code = c->failure.code;
    if (code != 0)
        *err = c->failure;
    c->failure.code = 0;
    return code;
}

/* ---- launches ----------------------------------------------------------- */

static struct cuda_kernel *kernels; // filled before main() runs

cuda_kernel::cuda_kernel(const void *function_) : function(function_), static_bytes(0), next(kernels)
{
    kernels = this;
}

/* cudaFuncGetAttributes() loads a kernel, which otherwise happens at its first launch. */
static bool load_kernels(struct cuda *c)
{
    for (struct cuda_kernel *kernel = kernels; kernel; kernel = kernel->next) {
        cudaFuncAttributes its;
        if (!cuda_ok(c, cudaFuncGetAttributes(&its, kernel->function), "loading the kernels"))
            return false;
        kernel->static_bytes = its.sharedSizeBytes;
    }
    return true;
}

bool cuda_begin(struct cuda *c, const char *name, const struct cuda_kernel *kernel, dim3 grid, size_t dynamic_bytes)
{
    enum { WITHOUT_ASKING = 48 << 10 };
    size_t shared = kernel->static_bytes + dynamic_bytes;

    if (cuda_failed(c) || grid.x == 0 || grid.y == 0 || grid.z == 0)
        return false;
    c->running = name;
    c->n_launches++;
    c->n_blocks += (uint64_t)grid.x * grid.y * grid.z;
    if (shared > c->shared_max) {
        cuda_fail(c, ERR_DEVICE, "%.*s takes %zu bytes of shared memory, and a block of this GPU has %zu", NAMES_WHILE,
                  name, shared, c->shared_max);
        return false;
    }
    return shared <= WITHOUT_ASKING ||
           cuda_ok(
               c,
               cudaFuncSetAttribute(kernel->function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)dynamic_bytes),
               name);
}

void cuda_end(struct cuda *c)
{
    cuda_ok(c, cudaGetLastError(), c->running);
}

/* ---- scratch ------------------------------------------------------------ */

void *cuda_scratch(struct cuda *c, size_t bytes)
{
    if (cuda_failed(c))
        return NULL;
    if (bytes > c->scratch_bytes || !c->scratch) {
        size_t want = bytes > c->scratch_planned ? bytes : c->scratch_planned;
        cuda_ok(c, cudaFree(c->scratch), "freeing scratch memory"); // waits for the kernels that use it
        c->scratch = NULL;
        c->scratch_bytes = 0;
        if (!cuda_ok(c, cudaMalloc(&c->scratch, want ? want : CUDA_ALIGN), "allocating scratch memory"))
            return NULL;
        c->scratch_bytes = want;
    }
    return c->scratch;
}

static size_t cuda_scratch_bytes(struct backend *be, const struct work_shape *shape)
{
    static cuda_bytes_fn *const ops[] = { cuda_gemm_bytes, cuda_attend_bytes, cuda_best_bytes,
                                          cuda_moe_bytes,  cuda_scores_bytes, cuda_select_bytes };
    struct cuda *c = cuda_of(be);
    size_t bytes = 0;

    cuda_attend_fits(c, shape->head_dim); // else the next read or sync refuses the work
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
        size_t mine = ops[i](c, shape);
        bytes = mine > bytes ? mine : bytes;
    }
    c->scratch_planned = bytes;
    c->state_planned = cuda_attend_bytes(c, shape);
    c->list_planned = cuda_attend_list_bytes(shape);
    return bytes + LIST_KINDS * c->list_planned;
}

/* ---- the clock ---------------------------------------------------------- */

/* The time between two events is an f32 in milliseconds, exact only for short times: so it adds up times since the last
 * reading. */
static double cuda_clock(struct backend *be)
{
    struct cuda *c = cuda_of(be);
    float ms = 0;

    if (!cuda_ok(c, cudaEventRecord(c->now, c->stream), "reading the clock"))
        return c->clock_s;
    cudaError_t code = cudaEventSynchronize(c->now);
    if (code != cudaSuccess || !cuda_ok(c, cudaEventElapsedTime(&ms, c->last, c->now), "reading the clock")) {
        wait(c); // says what was running
        return c->clock_s;
    }
    cudaEvent_t spare = c->last;
    c->last = c->now;
    c->now = spare;
    c->clock_s += (double)ms * 1e-3;
    return c->clock_s;
}

static bool open_watch(struct cuda *c)
{
    for (int i = 0; i < WATCH_SPANS; i++)
        if (!cuda_ok(c, cudaEventCreate(&c->watch.start[i]), "making an event") ||
            !cuda_ok(c, cudaEventCreate(&c->watch.stop[i]), "making an event"))
            return false;
    return true;
}

static void close_watch(struct cuda_watch *w)
{
    for (int i = 0; i < WATCH_SPANS; i++) {
        if (w->start[i])
            cudaEventDestroy(w->start[i]);
        if (w->stop[i])
            cudaEventDestroy(w->stop[i]);
    }
}

/* Adds the time of the oldest span. */
static void add_span(struct cuda *c)
{
    struct cuda_watch *w = &c->watch;
    const unsigned i = w->first++ % WATCH_SPANS;
    float ms = 0;

    if (cuda_failed(c))
        return;
    if (cudaEventSynchronize(w->stop[i]) != cudaSuccess)
        wait(c); // says what was running
    else if (cuda_ok(c, cudaEventElapsedTime(&ms, w->start[i], w->stop[i]), "reading the stopwatch"))
        w->seconds[w->hand[i]] += (double)ms * 1e-3;
}

static void cuda_watch_start(struct backend *be)
{
    struct cuda *c = cuda_of(be);

    if (c->watch.end - c->watch.first == WATCH_SPANS)
        add_span(c);
    cuda_ok(c, cudaEventRecord(c->watch.start[c->watch.end % WATCH_SPANS], c->stream), "starting the stopwatch");
}

static void cuda_watch_stop(struct backend *be, int hand)
{
    struct cuda *c = cuda_of(be);
    const unsigned i = c->watch.end++ % WATCH_SPANS;

    c->watch.hand[i] = hand;
    cuda_ok(c, cudaEventRecord(c->watch.stop[i], c->stream), "stopping the stopwatch");
}

static double cuda_watched(struct backend *be, int hand)
{
    struct cuda_watch *w = &cuda_of(be)->watch;

    while (w->first != w->end)
        add_span(cuda_of(be));
    const double seconds = w->seconds[hand];
    w->seconds[hand] = 0;
    return seconds;
}

static struct device_memory cuda_memory(struct backend *be)
{
    struct device_memory m = { 0, 0 };

    cuda_ok(cuda_of(be), cudaMemGetInfo(&m.free, &m.total), "asking for free memory");
    return m;
}

/* ---- opening and closing ------------------------------------------------ */

static void cuda_close(struct backend *be)
{
    struct cuda *c = cuda_of(be);

    if (c->stream)
        cudaStreamSynchronize(c->stream);
    cuda_products_close(c);
    cuda_ring_close(c);
    cuda_attend_lists_close(c);
    cudaFree(c->scratch);
    close_watch(&c->watch);
    if (c->now)
        cudaEventDestroy(c->now);
    if (c->last)
        cudaEventDestroy(c->last);
    if (c->stream)
        cudaStreamDestroy(c->stream);
    free(c);
}

static void fill_ops(struct backend *be)
{
    be->alloc = cuda_alloc;
    be->free = cuda_free;
    be->write = cuda_write;
    be->read = cuda_read;
    be->copy = cuda_copy;
    be->repeat = cuda_repeat;
    be->sync = cuda_sync;
    be->clock = cuda_clock;
    be->watch_start = cuda_watch_start;
    be->watch_stop = cuda_watch_stop;
    be->watched = cuda_watched;
    be->memory = cuda_memory;
    be->scratch = cuda_scratch_bytes;
    be->weight_new = cuda_weight_new;
    be->weight_free = cuda_weight_free;
    be->weight_bytes = cuda_weight_bytes;
    be->gemm = cuda_gemm;
    be->attend = cuda_attend;
    be->embed = cuda_embed;
    be->rmsnorm = cuda_rmsnorm;
    be->rope = cuda_rope;
    be->gate_mul = cuda_gate_mul;
    be->moe = cuda_moe;
    be->best = cuda_best;
    be->draw = cuda_draw;
    be->copy_slots = cuda_copy_slots;
    be->key_norms = cuda_key_norms;
    be->key_cosines = cuda_key_cosines;
    be->column_stats = cuda_column_stats;
    be->moments = cuda_moments;
    be->key_forms = cuda_key_forms;
    be->abs_sums = cuda_abs_sums;
    be->avg_pool = cuda_avg_pool;
    be->scale_columns = cuda_scale_columns;
    be->mean_heads = cuda_mean_heads;
    be->joint_counts = cuda_joint_counts;
    be->top_k = cuda_top_k;
    be->gather = cuda_gather;
    be->quantise = cuda_quantise;
    be->dequantise = cuda_dequantise;
    be->layernorm = cuda_layernorm;
    be->gelu = cuda_gelu;
    be->close = cuda_close;
}

static void version_text(char text[16], int version)
{
    snprintf(text, 16, "%d.%d", version / 1000, version % 1000 / 10);
}

/* Counts the devices. ERR_DEVICE unless there is one and a driver that is new enough. */
static int find_devices(int *n, struct err *err)
{
    int driver = 0, runtime = 0;
    char has[16], needs[16];
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    version_text(has, driver);
    version_text(needs, runtime);
    cudaError_t code = cudaGetDeviceCount(n);
    if (driver == 0)
        return err_set(
            err, ERR_DEVICE,
            "there is no NVIDIA driver (libcuda.so.1): install one for CUDA %s or later; a container needs it "
            "from its host (--gpus all)",
            needs);
    if (code == cudaErrorInsufficientDriver)
        return err_set(
            err, ERR_DEVICE,
            "the NVIDIA driver is too old: it is for CUDA %s, and this build needs %s; update the driver, or "
            "build with an older CUDA",
            has, needs);
    if (code == cudaErrorNoDevice || (code == cudaSuccess && *n == 0))
        return err_set(err, ERR_DEVICE, "there is no NVIDIA GPU: %s%s%s",
                       visible ? "none is visible with CUDA_VISIBLE_DEVICES='"
                               : "`nvidia-smi -L` lists what the driver sees",
                       visible ? visible : "", visible ? "'" : "");
    if (code != cudaSuccess)
        return err_set(err, ERR_DEVICE, "cannot look for NVIDIA GPUs: %s (%s)", cudaGetErrorName(code),
                       cudaGetErrorString(code));
    return 0;
}

/* wgmma where the device has it, unless EVP_CUDA_ATTENTION says otherwise. ERR_USAGE: `auto` does not go on without. */
static int choose_attention(struct cuda *c, const struct cudaDeviceProp *prop, struct err *err)
{
    const char *name = getenv("EVP_CUDA_ATTENTION");
    bool has = prop->major == 9 && prop->minor == 0, mma = name && strcmp(name, "mma") == 0;

    if (name && !mma && strcmp(name, "wgmma") != 0)
        return err_set(err, ERR_USAGE, "EVP_CUDA_ATTENTION is mma or wgmma, not '%s'", name);
    if (name && !mma && !has)
        return err_set(err, ERR_USAGE, "EVP_CUDA_ATTENTION=wgmma needs compute capability 9.0, and '%s' has %d.%d",
                       prop->name, prop->major, prop->minor);
    c->wgmma = has && !mma;
    return 0;
}

/* A number from 1 to `most` of the environment; 0: not given. False: something else. */
static bool given_number(const char *name, long most, long *n)
{
    const char *text = getenv(name);
    char *end = NULL;

    *n = text ? strtol(text, &end, 10) : 0;
    return !text || (end != text && !*end && *n >= 1 && *n <= most);
}

/* Of a device's memory a 64th, or STATE_BYTES; or EVP_CUDA_STATES, in MiB, to measure what they bring. Likewise
 * EVP_CUDA_PIECES for MAX_PIECES: with fewer pieces there is less to merge, and less to do at a time; other bits. */
static int choose_states(struct cuda *c, const struct cudaDeviceProp *prop, struct err *err)
{
    long mib, pieces;

    if (!given_number("EVP_CUDA_STATES", 1 << 20, &mib))
        return err_set(err, ERR_USAGE, "EVP_CUDA_STATES is a number of MiB, not '%s'", getenv("EVP_CUDA_STATES"));
    if (!given_number("EVP_CUDA_PIECES", MAX_PIECES, &pieces))
        return err_set(err, ERR_USAGE, "EVP_CUDA_PIECES is a number from 1 to %d, not '%s'", MAX_PIECES,
                       getenv("EVP_CUDA_PIECES"));
    c->state_bytes = prop->totalGlobalMem / 64 < STATE_BYTES ? prop->totalGlobalMem / 64 : STATE_BYTES;
    if (mib > 0)
        c->state_bytes = (size_t)mib << 20;
    c->most_pieces = pieces > 0 ? (int)pieces : MAX_PIECES;
    return 0;
}

static int check_device(struct cuda *c, int device, struct err *err)
{
    struct cudaDeviceProp prop;
    cudaError_t code = cudaSetDevice(device);

    if (code == cudaSuccess)
        code = cudaGetDeviceProperties(&prop, device);
    if (code != cudaSuccess)
        return err_set(err, ERR_DEVICE, "cannot open the GPU: %s (%s)", cudaGetErrorName(code),
                       cudaGetErrorString(code));
    if (10 * prop.major + prop.minor < OLDEST_SM)
        return err_set(err, ERR_DEVICE, "the GPU is too old: '%s' has compute capability %d.%d, and %d.%d is needed",
                       prop.name, prop.major, prop.minor, OLDEST_SM / 10, OLDEST_SM % 10);
    c->shared_max = prop.sharedMemPerBlockOptin;
    c->n_multiprocessors = prop.multiProcessorCount;
    snprintf(c->kind, sizeof(c->kind), "cuda-sm%d%d", prop.major, prop.minor);
    return choose_attention(c, &prop, err) ? err->code : choose_states(c, &prop, err);
}

/* Every device from OLDEST_SM on multiplies bf16 many times as fast as f32. */
static void choose_dtype(struct cuda *c, const struct backend_options *options)
{
    const char *dtype = options->dtype ? options->dtype : "f32";
    bool is_auto = strcmp(dtype, "auto") == 0, is_fastest = strcmp(dtype, "fastest") == 0;

    c->base.dtype = is_fastest || strcmp(dtype, "bf16") == 0 ? DTYPE_BF16 : DTYPE_F32;
    if (is_auto && !options->is_f32) {
        c->base.dtype = DTYPE_BF16;
        c->base.note =
            "computing in bf16: the model's weights are not in f32, and the GPU's tensor cores multiply bf16";
    } else if (is_auto) {
        c->base.note = "computing in f32, as the model's weights are; --dtype bf16 is many times as fast on a GPU";
    } else if (is_fastest) {
        c->base.note = "computing in bf16: the GPU's tensor cores multiply it";
    }
}

static int open_all(struct cuda *c, const struct backend_options *options, struct err *err)
{
    int n = 0;

    if (find_devices(&n, err))
        return err->code;
    if (options->device < 0 || options->device >= n)
        return err_set(err, ERR_DEVICE, "there is no device %d: CUDA has %d here, counted from 0", options->device, n);
    if (check_device(c, options->device, err))
        return err->code;
    choose_dtype(c, options);
    if (cuda_ok(c, cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking), "making a stream") &&
        cuda_ok(c, cudaEventCreate(&c->last), "making an event") &&
        cuda_ok(c, cudaEventCreate(&c->now), "making an event") && open_watch(c) && load_kernels(c) &&
        cuda_ring_open(c) && cuda_products_open(c))
        cuda_ok(c, cudaEventRecord(c->last, c->stream), "starting the clock");
    int code = cuda_sync(&c->base, err);
    if (code == ERR_LOST)
        code = err->code = ERR_DEVICE; // nothing was computed yet that could be lost
    return code;
}

static struct backend *cuda_open(const struct backend_options *options, struct err *err)
{
    struct cuda *c = (struct cuda *)calloc(1, sizeof(*c));

    if (!c) {
        err_nomem(err);
        return NULL;
    }
    c->base.name = "cuda";
    c->base.kind = c->kind;
    c->base.pass_rows = PASS_ROWS;
    c->base.plain_weights = true;
    c->base.checks_weights = true;
    c->running = "opening the GPU";
    fill_ops(&c->base);
    if (open_all(c, options, err)) {
        cuda_close(&c->base);
        return NULL;
    }
    return &c->base;
}

extern "C" {
extern __attribute__((visibility("default"))) const struct cuda_plugin CUDA_PLUGIN_SYMBOL;
const struct cuda_plugin CUDA_PLUGIN_SYMBOL = { CUDA_PLUGIN_ABI, CUDA_PLUGIN_LAYOUT,  cuda_open,
                                                find_devices,    cuda_upload_rate_of, cuda_choice_of };
}
