/* digest_avx2.h - XXH3 with the instructions of AVX2, behind a check at run time. */
#ifndef EVP_DIGEST_AVX2_H
#define EVP_DIGEST_AVX2_H

#include <stddef.h>
#include <stdint.h>

uint64_t xxh3_avx2(const void *bytes, size_t n);
void xxh3_add_avx2(void *state, const void *bytes, size_t n); // state: an XXH3_state_t

#endif
