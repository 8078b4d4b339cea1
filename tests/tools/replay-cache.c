/* replay-cache POLICY CAPACITY <TRACE - the share of misses of a cache (replay/object_cache.h) on a trace in
 * libCacheSim's format oracleGeneral: records of 24 bytes, of which only the object's id counts. All objects have one
 * byte. */
#include "base/map.h"
#include "base/parse.h"
#include "replay/object_cache.h"

#include <stdio.h>
#include <stdlib.h>

enum { RECORD = 24, ID_AT = 4, ID_BYTES = 8 };

int main(int argc, char **argv)
{
    const struct object_cache_kind *kind = argc == 3 ? object_cache_find(argv[1]) : NULL;
    struct map ids = { 0 };
    char record[RECORD];
    int32_t *object = NULL;
    int n = 0, cap = 0, misses = 0;
    int64_t capacity = 0, freed;
    struct err err;

    if (!kind || !parse_int(argv[2], &capacity)) {
        fprintf(stderr, "replay-cache POLICY CAPACITY <TRACE\n");
        return 2;
    }
    while (fread(record, RECORD, 1, stdin) == 1) {
        if (n == cap && !(object = realloc(object, (size_t)(cap = 2 * cap + 1024) * sizeof(*object))))
            return 1;
        object[n++] = map_add(&ids, record + ID_AT, ID_BYTES, NULL);
    }
    int64_t *bytes = malloc((size_t)ids.n * sizeof(*bytes)), *next = malloc((size_t)ids.n * sizeof(*next));
    int64_t *following = malloc((size_t)n * sizeof(*following));
    for (int i = 0; i < ids.n; i++) {
        bytes[i] = 1;
        next[i] = n;
    }
    for (int i = n - 1; i >= 0; i--) {
        following[i] = next[object[i]];
        next[object[i]] = i;
    }
    struct object_cache c = { .kind = kind, .n = ids.n, .bytes = bytes, .capacity = capacity, .next = next };
    if (object_cache_open(&c, &err))
        return 1;
    for (int i = 0; i < n; i++) {
        next[object[i]] = following[i];
        if (object_cache_has(&c, object[i])) {
            object_cache_hit(&c, object[i]);
            continue;
        }
        misses++;
        while (c.held + 1 > c.capacity)
            object_cache_evict(&c, object[i], c.held + 1 - c.capacity, &freed);
        object_cache_insert(&c, object[i], 1);
    }
    printf("%.4f\n", (double)misses / n);
    object_cache_close(&c);
    map_release(&ids);
    free(object);
    free(bytes);
    free(next);
    free(following);
    return 0;
}
