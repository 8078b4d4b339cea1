/* cpu_rows.c - row loops, compiled for any processor; and the choice among all versions. */
#define ROWS rows_portable
#include "kernels/cpu/cpu_rows_internal.h"

#include "kernels/cpu/cpu_level.h"

const struct row_ops *rows_best(void)
{
#if defined(__x86_64__)
    if (cpu_level() >= CPU_AVX512)
        return &rows_avx512;
    if (cpu_level() >= CPU_AVX2)
        return &rows_avx2;
#endif
    return &rows_portable;
}
