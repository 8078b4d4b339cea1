/* tier_text.h - a tier as text, for a command line:
 *
 *     name=dram,uri=/dev/shm/evp,capacity=80%
 *     name=far,uri=redis://a,state=/srv/far,read=1G,write=1G,latency=1ms
 *
 *     name=, uri=        required; redis:// and rediss:// make a tier of kind redis, other uris one of kind file
 *     kind=              gpu, dram, file, redis or lmcache
 *     capacity=          bytes, or a percentage of the free space; default: unlimited
 *     read=, write=      bytes per second
 *     latency=           seconds, or a number with s, ms, us or ns
 *     pool=, state=, access=    as in tiers.json (formats/tiers.h)
 *     configs=           names separated by slashes
 *
 * Bytes take K, M, G, T (powers of 1024). Blanks around keys and values are ignored.
 */
#ifndef EVP_TIER_TEXT_H
#define EVP_TIER_TEXT_H

#include "formats/tiers.h"

struct tier_text {
    struct tier tier;                // numbers not given are 0; capacity INT64_MAX: unlimited, or a share
    bool kind, read, write, latency; // given?
    double share;                    // of the free space; 0: the capacity is in bytes, or unlimited
};

/* out->tier must be put into a struct tiers, whose tiers_release() frees it, also after a failure. ERR_USAGE names the
 * key. */
int tier_text_read(struct tier_text *out, const char *text, struct err *err) MUST_CHECK;

#endif
