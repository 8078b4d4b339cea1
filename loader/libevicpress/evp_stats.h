/* evp_stats.h - what a store has counted. Open payloads share it, because they may outlive their store.
 *
 * A lock of its own protects the records; it is held for some nanoseconds. So the numbers of one call are counted
 * together. Without memory for a new record a count is lost: counting never fails.
 */
#ifndef EVP_EVP_STATS_H
#define EVP_EVP_STATS_H

#include "loader/libevicpress/evicpress.h"

#include <stddef.h>

struct stats;

struct stats *stats_new(void); // NULL without memory
struct stats *stats_share(struct stats *s);
void stats_drop(struct stats *s); // NULL is fine

/* Counts a call of evp_find() with n tokens, by its result. Returns the result. */
int stats_find(struct stats *s, size_t n, const struct evp_prefix *prefix, int code);

/* Counts a read of a tier. */
void stats_read(struct stats *s, const char *tier, uint64_t bytes, double seconds);

/* Counts a call by its result: a success in the member at this offset of a tier's record ("": of all tiers; offset 0:
 * nowhere), a failure as an error. Returns the result. */
int stats_count(struct stats *s, const char *tier, size_t member, int code);

#endif
