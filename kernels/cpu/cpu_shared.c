/* cpu_shared.c - attention to shared keys, compiled for any processor; and the choice among all versions. */
#define SHARED shared_portable
#include "kernels/cpu/cpu_shared_internal.h"

#include "kernels/cpu/cpu_level.h"

shared_fn *shared_best(enum dtype dtype, bool amx)
{
#if defined(__x86_64__)
    if (dtype == DTYPE_BF16 && amx)
        return shared_amx;
    if (dtype == DTYPE_BF16)
        return cpu_level() >= CPU_AVX512BF16 ? shared_avx512bf16 : NULL;
    if (cpu_level() >= CPU_AVX512)
        return shared_avx512;
    if (cpu_level() >= CPU_AVX2)
        return shared_avx2;
#endif
    (void)amx;
    return dtype == DTYPE_F32 ? shared_portable : NULL;
}
