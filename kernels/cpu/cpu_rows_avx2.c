/* cpu_rows_avx2.c - row loops compiled for AVX2 with fused multiply-add. */
#define ROWS rows_avx2
#include "kernels/cpu/cpu_rows_internal.h"
