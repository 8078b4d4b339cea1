/* cpu_shared_avx512bf16.c - attention to shared keys in bf16, compiled for AVX-512 with bf16 dot products. */
#define SHARED shared_avx512bf16
#define SHARED_PAIRS
#include "kernels/cpu/cpu_shared_internal.h"
