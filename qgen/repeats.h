/* repeats.h - how much of a text occurs in it a second time: for every byte, the length of the longest substring that
 * begins there and also occurs elsewhere, overlapping or not. A longer substring from there occurs once.
 *
 * Time and memory are linear in the text, however often it repeats itself: a suffix array by induced sorting (Nong,
 * Zhang and Chan, "Two Efficient Algorithms for Linear Time Suffix Array Construction", 2011) and the longest common
 * prefixes of its neighbours in the order of the text (Kaerkkaeinen, Manzini and Puglisi, "Permuted
 * Longest-Common-Prefix Array", 2009). About 10 bytes of memory for each byte of text while it works, 2 afterwards.
 */
#ifndef EVP_REPEATS_H
#define EVP_REPEATS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REPEATS_MAX = UINT16_MAX };

struct repeats {
    uint16_t *longest; // [n], bytes; REPEATS_MAX: that many or more. NULL: unknown
};

/* text[n] is NUL, and no byte before it is. ERR_FAIL for 2^31 - 2 bytes or more. */
int repeats_find(struct repeats *r, const char *text, size_t n, struct err *err) MUST_CHECK;
void repeats_release(struct repeats *r);

/* Does text[at .. at + n) occur once? n: less than REPEATS_MAX. */
bool repeats_none(const struct repeats *r, size_t at, size_t n);

#endif
