/* cpu_rows.c - row loops, compiled for any processor; and the choice among all versions. */
#define ROWS rows_portable
#include "kernels/cpu/cpu_rows_internal.h"

const struct row_ops *rows_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return &rows_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &rows_avx2;
#endif
    return &rows_portable;
}
