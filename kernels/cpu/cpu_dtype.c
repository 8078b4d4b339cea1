/* cpu_dtype.c - chooses the backend's dtype and names its kind.
 *
 * Bf16 instructions alone say little: without AMX some processors take twice as long with them as in f32, others half
 * as long. So "fastest" multiplies a typical weight in both. "auto" is f32: the same answers on every processor.
 */
#include "kernels/cpu/cpu.h"

#include "kernels/cpu/cpu_level.h"
#include "kernels/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 512, OUT = 3072, IN = 576 }; // 1.8 GFLOP: some milliseconds
static const double WORTH = 1.1;           // a smaller gain does not justify the lost digits
enum { REPEATS = 5 };                      // the first makes the primitive; the fastest of the others counts

/* A product in one dtype. Operands are zeros: their values do not matter. */
struct trial {
    enum dtype dtype;
    struct weight *w;
    void *memory; // x (ROWS, IN), then out (ROWS, OUT)
    double gflops;
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int trial_open(struct trial *t, struct cpu *c, enum dtype dtype, struct err *err)
{
    float *rows = calloc((size_t)OUT * IN, sizeof(*rows));
    const struct mat host = { rows, DTYPE_F32, OUT, IN, IN };

    *t = (struct trial){ .dtype = dtype, .memory = host_alloc((size_t)ROWS * (IN + OUT) * sizeof(float)) };
    if (t->memory)
        memset(t->memory, 0, (size_t)ROWS * (IN + OUT) * sizeof(float));
    if (rows && t->memory)
        t->w = matmul_pack(c->matmul, &host, 1, dtype, err);
    else
        err_nomem(err);
    free(rows);
    return t->w ? 0 : err->code;
}

static void trial_close(struct trial *t)
{
    matmul_weight_free(t->w);
    free(t->memory);
}

static void trial_run(struct trial *t, struct cpu *c)
{
    const struct mat x = { t->memory, t->dtype, ROWS, IN, IN };
    const struct mat out = { (float *)t->memory + (size_t)ROWS * IN, DTYPE_F32, ROWS, OUT, OUT };
    double start = seconds();

    c->base.dtype = t->dtype;
    cpu_gemm(&c->base, out, x, t->w, NULL, GEMM_SET);
    double gflops = 2e-9 * ROWS * OUT * IN / (seconds() - start);
    t->gflops = gflops > t->gflops ? gflops : t->gflops;
}

/* The trials alternate, so other load on the machine slows both. */
static int choose_faster(struct cpu *c, struct err *err)
{
    struct trial f32 = { 0 }, bf16 = { 0 };
    int code = trial_open(&f32, c, DTYPE_F32, err);
    if (!code)
        code = trial_open(&bf16, c, DTYPE_BF16, err);
    for (int i = 0; i < REPEATS && !code; i++) {
        trial_run(&f32, c);
        trial_run(&bf16, c);
    }
    if (!code)
        code = c->base.sync(&c->base, err);
    bool wins = bf16.gflops > WORTH * f32.gflops;
    c->base.dtype = wins ? DTYPE_BF16 : DTYPE_F32;
    snprintf(c->note, sizeof(c->note), "%s: a product runs at %.0f GFLOP/s in bf16, %.0f in f32", wins ? "bf16" : "f32",
             bf16.gflops, f32.gflops);
    c->base.note = c->note;
    trial_close(&f32);
    trial_close(&bf16);
    return code;
}

static const char *kind_of(const struct cpu *c)
{
#if defined(__x86_64__)
    const char *code = matmul_code(c->matmul, OUT, IN, c->base.dtype);
    if (code && strstr(code, "amx"))
        return "cpu-amx";
    if (code && strstr(code, "avx512"))
        return "cpu-avx512";
    return cpu_level() >= CPU_AVX2 ? "cpu-avx2" : "cpu";
#else
    (void)c;
    return "cpu";
#endif
}

int cpu_choose(struct cpu *c, const char *dtype, struct err *err)
{
    bool is_fastest = dtype && strcmp(dtype, "fastest") == 0, is_bf16 = dtype && strcmp(dtype, "bf16") == 0;
    bool can_bf16 = matmul_code(c->matmul, OUT, IN, DTYPE_BF16);
    int code = 0;

    if (is_bf16 && !can_bf16)
        return err_set(err, ERR_DEVICE, "this processor or oneDNN has no fast bf16 products; use --dtype f32");
    c->base.dtype = is_bf16 ? DTYPE_BF16 : DTYPE_F32;
    if (is_fastest && can_bf16)
        code = choose_faster(c, err);
    else if (is_fastest)
        c->base.note = "f32: no fast products in bf16 here";
    c->base.kind = kind_of(c);
    return code;
}
