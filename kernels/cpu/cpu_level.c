/* cpu_level.c - what the processor has, and what EVP_CPU leaves of it. */
#include "kernels/cpu/cpu_level.h"

#include <dnnl.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    dnnl_cpu_isa_t isa;
} levels[] = {
    [CPU_AVX2] = { "avx2", dnnl_cpu_isa_avx2 },
    [CPU_AVX512] = { "avx512", dnnl_cpu_isa_avx512_core },
    [CPU_AVX512BF16] = { "avx512bf16", dnnl_cpu_isa_avx512_core_bf16 },
    [CPU_AMX] = { "amx", dnnl_cpu_isa_avx512_core_amx },
};

/* CPU_AMX without EVP_CPU, CPU_PORTABLE if it is none of the names. */
static enum cpu_level limit(void)
{
    const char *name = getenv("EVP_CPU");
    enum cpu_level l = CPU_AMX;

    while (name && *name && l > CPU_PORTABLE && strcmp(name, levels[l].name) != 0)
        l--;
    return l;
}

int cpu_level_limit(struct err *err)
{
    const enum cpu_level most = limit();

    if (most == CPU_PORTABLE)
        return err_set(err, ERR_USAGE, "EVP_CPU is avx2, avx512, avx512bf16 or amx, not '%s'", getenv("EVP_CPU"));
    /* oneDNN takes a limit once, so a process's second backend finds it set. */
    if (most < CPU_AMX && dnnl_set_max_cpu_isa(levels[most].isa) != dnnl_success &&
        dnnl_get_effective_cpu_isa() & ~levels[most].isa)
        return err_set(err, ERR_FAIL, "oneDNN already uses more than EVP_CPU=%s", levels[most].name);
    return 0;
}

static enum cpu_level of_machine(void)
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return CPU_PORTABLE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
        return CPU_AVX2;
    return __builtin_cpu_supports("avx512bf16") ? CPU_AMX : CPU_AVX512; // whether there is AMX, oneDNN tells
#else
    return CPU_PORTABLE;
#endif
}

enum cpu_level cpu_level(void)
{
    enum cpu_level has = of_machine(), most = limit();

    return has < most ? has : most;
}
