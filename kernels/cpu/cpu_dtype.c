/* cpu_dtype.c - which dtype the backend computes in, and what its kind is called.
 *
 * That a processor has bf16 instructions says little: without AMX some take twice as long with them as in f32, others
 * half as long. So auto multiplies a typical weight in both and takes the faster.
 */
#include "kernels/cpu/cpu.h"

#include "kernels/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 512, OUT = 3072, IN = 576, REPEATS = 4 }; // 1.8 GFLOP: some milliseconds

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int run_once(struct cpu *c, enum dtype dtype, const struct weight *w, void *x, float *out, double *took)
{
    double start = seconds();
    struct err failure;
    c->base.dtype = dtype;
    cpu_gemm(&c->base, (struct mat){ out, DTYPE_F32, ROWS, OUT, OUT }, (struct mat){ x, dtype, ROWS, IN, IN }, w, NULL,
             GEMM_SET);
    *took = seconds() - start;
    failure = c->failure;
    c->failure.code = 0;
    return failure.code;
}

/* *gflops = the speed of a product of ROWS rows; the best of a few. Operands are zeros: their values do not matter. */
static int measure(struct cpu *c, enum dtype dtype, double *gflops, struct err *err)
{
    size_t x_bytes = (size_t)ROWS * IN * sizeof(float), out_bytes = (size_t)ROWS * OUT * sizeof(float);
    size_t w_bytes = (size_t)OUT * IN * sizeof(float);
    char *memory = calloc(1, x_bytes + out_bytes + w_bytes + 64);
    double best = 0;

    if (!memory)
        return err_nomem(err);
    char *at = memory;
    void *x = cpu_take(&at, x_bytes), *out = cpu_take(&at, out_bytes);
    const struct mat rows = { memory + x_bytes + out_bytes, DTYPE_F32, OUT, IN, IN };
    struct weight *w = matmul_pack(c->matmul, &rows, 1, dtype, err);
    int code = w ? 0 : err->code;
    for (int i = 0; i < REPEATS && !code; i++) { // the first makes the primitive
        double took;
        code = run_once(c, dtype, w, x, out, &took);
        if (code)
            err_set(err, code, "a trial product failed");
        else if (i > 0 && (best == 0 || took < best))
            best = took;
    }
    if (!code)
        *gflops = 2e-9 * ROWS * OUT * IN / best;
    matmul_weight_free(w);
    free(memory);
    return code;
}

static int choose_faster(struct cpu *c, struct err *err)
{
    double f32 = 0, bf16 = 0;
    int code = measure(c, DTYPE_F32, &f32, err);
    if (!code)
        code = measure(c, DTYPE_BF16, &bf16, err);
    if (code)
        return code;
    c->base.dtype = bf16 > f32 ? DTYPE_BF16 : DTYPE_F32;
    snprintf(c->note, sizeof(c->note), "%s: a product runs at %.0f GFLOP/s in bf16, %.0f in f32",
             bf16 > f32 ? "bf16" : "f32", bf16, f32);
    c->base.note = c->note;
    return 0;
}

static const char *kind_of(const struct cpu *c)
{
#if defined(__x86_64__)
    const char *code = matmul_code(c->matmul, OUT, IN, c->base.dtype);
    if (code && strstr(code, "amx"))
        return "cpu-amx";
    if (code && strstr(code, "avx512"))
        return "cpu-avx512";
    return __builtin_cpu_supports("avx2") ? "cpu-avx2" : "cpu";
#else
    (void)c;
    return "cpu";
#endif
}

int cpu_choose(struct cpu *c, const char *dtype, struct err *err)
{
    bool is_auto = dtype && strcmp(dtype, "auto") == 0, is_bf16 = dtype && strcmp(dtype, "bf16") == 0;
    bool can_bf16 = matmul_code(c->matmul, OUT, IN, DTYPE_BF16);
    int code = 0;

    if (is_bf16 && !can_bf16)
        return err_set(err, ERR_DEVICE, "this processor or oneDNN has no fast products in bf16; --dtype f32 or auto");
    c->base.dtype = is_bf16 ? DTYPE_BF16 : DTYPE_F32;
    if (is_auto && can_bf16)
        code = choose_faster(c, err);
    else if (is_auto)
        c->base.note = "f32: no fast products in bf16 here";
    c->base.kind = kind_of(c);
    return code;
}
