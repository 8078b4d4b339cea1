/* cpu_level.h - the instructions that the backend uses: those of this processor, or fewer.
 *
 * EVP_CPU=avx2|avx512|avx512bf16|amx names the most, for our own loops and for oneDNN: so one machine computes as an
 * older one would, to reproduce its numbers or to test for it.
 */
#ifndef EVP_CPU_LEVEL_H
#define EVP_CPU_LEVEL_H

#include "base/err.h"

enum cpu_level { CPU_PORTABLE, CPU_AVX2, CPU_AVX512, CPU_AVX512BF16, CPU_AMX };

/* ERR_USAGE: EVP_CPU is none of these names. Limits oneDNN, so it comes before any other call of it. */
int cpu_level_limit(struct err *err) MUST_CHECK;

enum cpu_level cpu_level(void);

#endif
