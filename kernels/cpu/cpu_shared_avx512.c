/* cpu_shared_avx512.c - attention to shared keys compiled for AVX-512. */
#define SHARED shared_avx512
#include "kernels/cpu/cpu_shared_internal.h"
