/* cpu_rows_avx512.c - row loops compiled for AVX-512. */
#define ROWS rows_avx512
#include "kernels/cpu/cpu_rows_internal.h"
