/* Row loops compiled for AVX-512. */
#define ROWS rows_avx512
#include "kernels/cpu/rows_body.h"
