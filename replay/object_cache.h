/* object_cache.h - a cache of whole objects under an eviction policy of the textbooks.
 *
 *     struct object_cache c = { .kind = object_cache_find("s3fifo"), .n = n, .bytes = bytes, .capacity = capacity };
 *     object_cache_open(&c, &err);
 *     if (object_cache_has(&c, object))
 *         object_cache_hit(&c, object);
 *     else if (bytes[object] <= c.capacity) {
 *         while (c.held + bytes[object] > c.capacity)
 *             object_cache_evict(&c, object, c.held + bytes[object] - c.capacity, &freed); // tells who leaves for it
 *         object_cache_insert(&c, object, bytes[object]);
 *     }
 *
 * With `unit`, objects are rows of units, of which the last ones leave first. Ties go to the older, so results are the
 * same everywhere.
 *
 *   fifo      the oldest leaves
 *   lru       the one that was used longest ago
 *   sieve     Y. Zhang et al., SIEVE is simpler than LRU, NSDI 2024
 *   s3fifo    J. Yang et al., FIFO queues are all you need, SOSP 2023: a tenth is the small queue; two uses there lead
 *             to the main one; the names of nine tenths of the capacity are remembered
 *   arc       N. Megiddo, D. Modha, ARC: a self-tuning, low overhead replacement cache, FAST 2003; it learns from
 *             bytes
 *   slru      R. Karedla et al., Caching strategies to improve disk system performance, Computer 1994: who is used
 *             again is in four fifths of the capacity, from which the rest goes back to the others
 *   lfu       the one with the fewest uses since it came; of several the one used longest ago
 *   gdsf      L. Cherkasova, HP Labs 1998: the smallest clock + uses / bytes
 *   priority  the one with the lowest `priority`; of several the one used longest ago
 *   belady    the one whose next use is farthest (L. Belady 1966); needs `next`
 */
#ifndef EVP_OBJECT_CACHE_H
#define EVP_OBJECT_CACHE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct object_cache;

struct object_cache_kind {
    const char *name;
    int (*open)(struct object_cache *c, struct err *err);
    void (*hit)(struct object_cache *c, int32_t object);
    void (*insert)(struct object_cache *c, int32_t object);
    int32_t (*choose)(struct object_cache *c, int32_t coming); // the object to evict next
    void (*evict)(struct object_cache *c, int32_t object);     // takes it out of its queues; NULL: as `remove`
    void (*remove)(struct object_cache *c, int32_t object);
    bool renews;  // a second hit at the same time changes nothing but the order of those hit
    bool looks;   // knows the future: inserts before evicting: the new object may be the victim
    bool forward; // of objects that come together, the first is inserted first
};

/* Of an object: its neighbours in a queue, or its place in a heap. */
struct object_cache_link {
    int32_t before, after;
};

struct object_cache_queue {
    int32_t first, last; // newest, oldest; -1: none
    int64_t bytes;
};

struct object_cache {
    const struct object_cache_kind *kind;
    int n;
    const int64_t *bytes; // (n) borrowed
    int64_t capacity, held;
    int64_t unit;           // of bytes that leave together; 0: whole objects
    int64_t *part;          // (n) bytes that are held
    const int64_t *next;    // (n) borrowed: when each is used next, kept up to date by the caller; belady
    const double *priority; // (n) borrowed
    /* of the policies */
    struct object_cache_link *link;     // (n)
    struct object_cache_queue queue[4]; // 0: of the others; small, main and remembered of s3fifo, arc, slru
    uint8_t *mark;                      // (n) sieve: used; s3fifo, arc, slru: the queue
    int32_t *uses;                      // (n)
    int32_t hand;                       // sieve
    struct object_cache_rank {
        double key;
        int64_t turn;
        int32_t object;
    } * heap; // (n) the one to leave first
    int32_t n_heap;
    int64_t turns;
    double clock;   // gdsf: the key of who left last
    int32_t known;  // s3fifo, arc: who is coming, and was remembered; -1: nobody
    bool from_main; // arc: it was used more than once
    double target;  // arc: bytes for those used once
};

/* NULL: no such policy. */
const struct object_cache_kind *object_cache_find(const char *name);

/* The caller has set kind, n, bytes, capacity, unit and next; bytes are at least 1. */
int object_cache_open(struct object_cache *c, struct err *err) MUST_CHECK;
void object_cache_close(struct object_cache *c); // zeroed is fine

static inline bool object_cache_has(const struct object_cache *c, int32_t object)
{
    return c->part[object] > 0;
}

void object_cache_hit(struct object_cache *c, int32_t object);    // it must be held
void object_cache_remove(struct object_cache *c, int32_t object); // it must be held: taken out by the caller

/* Its first bytes, a multiple of the unit or all, come in; it must not be held. */
void object_cache_insert(struct object_cache *c, int32_t object, int64_t bytes);

/* Something must be held. Returns who leaves, as a whole or, with a unit, with no more bytes at its end than are
 * needed; *freed: how many. */
int32_t object_cache_evict(struct object_cache *c, int32_t coming, int64_t needed, int64_t *freed);

#endif
