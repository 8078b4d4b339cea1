/* cpu_shared.c - attention to shared keys, compiled for any processor; and the choice among all versions. */
#define SHARED shared_portable
#include "kernels/cpu/cpu_shared_internal.h"

shared_fn *shared_best(enum dtype dtype, bool amx)
{
#if defined(__x86_64__)
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    if (dtype == DTYPE_BF16 && amx)
        return shared_amx;
    if (dtype == DTYPE_BF16)
        return avx512 && __builtin_cpu_supports("avx512bf16") ? shared_avx512bf16 : NULL;
    if (avx512)
        return shared_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return shared_avx2;
#endif
    (void)amx;
    return dtype == DTYPE_F32 ? shared_portable : NULL;
}
