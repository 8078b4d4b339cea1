/* caches.c - what a request costs in a cache of replay/object_cache.h.
 *
 *     caches TRACE [REQUESTS]
 *
 * REQUESTS (10 million) for a million objects of one byte by Zipf's law with exponent 1, in caches of a tenth of them.
 * One line per policy: million requests per second, and misses. Writes the trace in libCacheSim's format oracleGeneral
 * for tests/bench/caches.py, and removes nothing.
 */
#include "base/clock.h"
#include "base/parse.h"
#include "base/rng.h"
#include "replay/object_cache.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS = 1000000, CAPACITY = OBJECTS / 10, RECORD = 24 };

/* By Zipf's law with exponent 1, nearly: the rank's logarithm is uniform. */
static void draw(int32_t *object, int64_t n)
{
    struct rng r = rng_new(1);

    for (int64_t i = 0; i < n; i++)
        object[i] = (int32_t)(exp(rng_unit(&r) * log(OBJECTS + 1.0)) - 1);
}

static int write_trace(const char *path, const int32_t *object, int64_t n)
{
    FILE *f = fopen(path, "we");

    for (int64_t i = 0; f && i < n; i++) {
        char record[RECORD] = { 0 };
        uint64_t id = (uint64_t)object[i];
        uint32_t bytes = 1;
        memcpy(record + 4, &id, sizeof(id));
        memcpy(record + 12, &bytes, sizeof(bytes));
        fwrite(record, 1, sizeof(record), f);
    }
    return f && fclose(f) == 0 ? 0 : -1;
}

static int64_t replay(struct object_cache *c, const int32_t *object, int64_t n, int64_t *next, const int64_t *following)
{
    int64_t misses = 0, freed;

    for (int64_t i = 0; i < n; i++) {
        int32_t o = object[i];
        next[o] = following[i];
        if (object_cache_has(c, o)) {
            object_cache_hit(c, o);
            continue;
        }
        misses++;
        if (c->held == c->capacity)
            object_cache_evict(c, o, 1, &freed);
        object_cache_insert(c, o, 1);
    }
    return misses;
}

int main(int argc, char **argv)
{
    static const char *const policy[] = { "fifo", "lru", "sieve", "s3fifo", "lfu", "gdsf", "belady" };
    int64_t n = 10000000, *bytes = calloc(OBJECTS, sizeof(*bytes)), *next = calloc(OBJECTS, sizeof(*next));
    struct err err;

    if (argc < 2 || (argc > 2 && !parse_int(argv[2], &n)) || n < 1 || n > INT32_MAX)
        return fprintf(stderr, "caches TRACE [REQUESTS]\n"), 2;
    int32_t *object = malloc((size_t)n * sizeof(*object));
    int64_t *following = malloc((size_t)n * sizeof(*following));
    if (!object || !following || !bytes || !next)
        return 1;
    draw(object, n);
    if (write_trace(argv[1], object, n))
        return fprintf(stderr, "cannot write '%s'\n", argv[1]), 1;
    for (int o = 0; o < OBJECTS; o++) {
        bytes[o] = 1;
        next[o] = n;
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        following[i] = next[object[i]];
        next[object[i]] = i;
    }
    for (size_t k = 0; k < sizeof(policy) / sizeof(*policy); k++) {
        struct object_cache c = {
            .kind = object_cache_find(policy[k]), .n = OBJECTS, .bytes = bytes, .capacity = CAPACITY, .next = next
        };
        if (object_cache_open(&c, &err))
            return 1;
        double start = clock_now();
        int64_t misses = replay(&c, object, n, next, following);
        printf("%s %.1f %.4f\n", policy[k], (double)n / (clock_now() - start) / 1e6, (double)misses / (double)n);
        object_cache_close(&c);
    }
    return 0;
}
