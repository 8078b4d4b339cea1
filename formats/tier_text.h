/* tier_text.h - a tier as one text, for a command line:
 *
 *     name=dram,uri=/dev/shm/evp,capacity=80%
 *     name=far,uri=redis://a,state=/srv/far,read=1G,write=1G,latency=1ms
 *
 *     name=, uri=        required; a uri of redis:// or rediss:// makes it a tier of kind redis, another one of kind file
 *     kind=              gpu, dram, file, redis or lmcache
 *     capacity=          bytes, or a share of what is free, in per cent; without it unlimited
 *     read=, write=      bytes per second
 *     latency=           seconds, or a number with s, ms, us or ns
 *     pool=, state=      as in tiers.json (formats/tiers.h)
 *     configs=           names between slashes
 *
 * Bytes take K, M, G, T (powers of 1024). Blanks around keys and values do not count.
 */
#ifndef EVP_TIER_TEXT_H
#define EVP_TIER_TEXT_H

#include "formats/tiers.h"

struct tier_text {
    struct tier tier;                // capacity INT64_MAX: unlimited, or a share; numbers that are not given: 0
    bool kind, read, write, latency; // given?
    double share;                    // of what is free; 0: the capacity is in bytes, or unlimited
};

/* tiers_release() of the tiers that out->tier is put among frees it, after a failure too. ERR_USAGE: with the key. */
int tier_text_read(struct tier_text *out, const char *text, struct err *err) MUST_CHECK;

#endif
