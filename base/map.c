/* map.c - two tables: an array of the keys in order of arrival, and hash slots, at most half of them in use. A slot has
 * a key's number and half of its hash, so that probing skips other keys without touching their distant memory. The
 * bytes of the keys are in blocks that double in size, so keys never move.
 */
#include "base/map.h"

#include "base/array.h"
#include "base/digest.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { KEYS_MIN = 256, KEYS_MAX = 1 << 20, SLOTS_MIN = 32 };

struct map_slot {
    uint32_t high;  // half of the hash
    int32_t number; // index into at, or MAP_ABSENT
};

struct map_keys {
    struct map_keys *older;
    size_t n, cap;
    char at[];
};

/* A copy of a key that lives as long as the map; NULL without memory. */
static char *keep_key(struct map *m, const char *key, size_t n)
{
    struct map_keys *k = m->keys;

    if (!k || k->cap - k->n <= n) {
        size_t cap = !k ? KEYS_MIN : k->cap < KEYS_MAX ? 2 * k->cap : KEYS_MAX;
        cap = cap <= n ? n + 1 : cap;
        k = malloc(sizeof(*k) + cap);
        if (!k)
            return NULL;
        *k = (struct map_keys){ .older = m->keys, .cap = cap };
        m->keys = k;
    }
    char *copy = k->at + k->n;
    memcpy(copy, key, n);
    copy[n] = '\0';
    k->n += n + 1;
    return copy;
}

/* The slot of a key, or the free slot for it. n_slots > n always, so the search ends. */
static uint32_t find_slot(const struct map *m, const char *key, size_t n, uint64_t hash)
{
    uint32_t mask = m->n_slots - 1, at = (uint32_t)hash & mask;

    for (; m->slot[at].number >= 0; at = (at + 1) & mask) {
        if (m->slot[at].high != hash >> 32)
            continue;
        const struct map_entry *e = &m->at[m->slot[at].number];
        if (e->hash == hash && e->n == n && memcmp(e->key, key, n) == 0)
            break;
    }
    return at;
}

static void take_slot(const struct map *m, int number)
{
    uint32_t mask = m->n_slots - 1, at = (uint32_t)m->at[number].hash & mask;

    while (m->slot[at].number >= 0)
        at = (at + 1) & mask;
    m->slot[at] = (struct map_slot){ (uint32_t)(m->at[number].hash >> 32), number };
}

int map_find(const struct map *m, const char *key, size_t n)
{
    if (m->n == 0)
        return MAP_ABSENT;
    return m->slot[find_slot(m, key, n, digest_xxh3_seeded(key, n, m->seed))].number;
}

bool map_reserve(struct map *m, int n)
{
    uint64_t n_slots = m->n_slots ? m->n_slots : SLOTS_MIN;

    if (ARRAY_GROW(m, (size_t)n))
        return false;
    while (n_slots < (uint64_t)n * 2)
        n_slots *= 2;
    if (n_slots == m->n_slots)
        return true;
    struct map_slot *slot = n_slots <= UINT32_MAX ? malloc(n_slots * sizeof(*slot)) : NULL;
    if (!slot)
        return false;
    memset(slot, 0xff, n_slots * sizeof(*slot)); /* MAP_ABSENT everywhere */
    free(m->slot);
    m->slot = slot;
    m->n_slots = (uint32_t)n_slots;
    for (int i = 0; i < m->n; i++)
        take_slot(m, i);
    return true;
}

/* Never 0. Without random bytes, the map's address is better than nothing. */
static uint64_t new_seed(const struct map *m)
{
    uint64_t seed;

    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
        seed = (uint64_t)(uintptr_t)m;
    return seed | 1;
}

int map_add(struct map *m, const char *key, size_t n, bool *added)
{
    if (!m->seed)
        m->seed = new_seed(m);
    uint64_t hash = digest_xxh3_seeded(key, n, m->seed);
    int found = m->n == 0 ? MAP_ABSENT : m->slot[find_slot(m, key, n, hash)].number;

    if (added)
        *added = found == MAP_ABSENT;
    if (found != MAP_ABSENT)
        return found;
    if (m->n == INT_MAX || !map_reserve(m, m->n + 1))
        return MAP_NOMEM;
    char *copy = keep_key(m, key, n);
    if (!copy)
        return MAP_NOMEM;
    m->at[m->n] = (struct map_entry){ copy, n, hash };
    take_slot(m, m->n);
    return m->n++;
}

void map_release(struct map *m)
{
    for (struct map_keys *k = m->keys, *older; k; k = older) {
        older = k->older;
        free(k);
    }
    free(m->at);
    free(m->slot);
    *m = (struct map){ 0 };
}
