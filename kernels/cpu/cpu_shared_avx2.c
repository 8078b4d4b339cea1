/* cpu_shared_avx2.c - attention to shared keys compiled for AVX2 with fused multiply-add. */
#define SHARED shared_avx2
#include "kernels/cpu/cpu_shared_internal.h"
