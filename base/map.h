/* map.h - a set of byte strings, numbered in the order they came: id -> row, dataset -> template.
 *
 * Keys are copied, into large blocks. Lookup is by XXH3 and open addressing; keys come from files of strangers, so each
 * map has a random seed, and nobody can choose keys that collide. Nothing that a caller sees depends on it: keys are in
 * order of arrival. A zeroed struct is an empty map.
 */
#ifndef EVP_MAP_H
#define EVP_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_entry {
    char *key; // NUL-terminated copy, owned by the map
    size_t n;
    uint64_t hash;
};

struct map {
    struct map_entry *at; // in order of arrival
    int n, cap;
    struct map_slot *slot; // (n_slots)
    uint32_t n_slots;
    uint64_t seed;         // from the first key on
    struct map_keys *keys; // the copies
};

enum { MAP_NOMEM = -2, MAP_ABSENT = -1 };

/* The number of a key, or MAP_ABSENT. */
int map_find(const struct map *m, const char *key, size_t n);

/* The number of a key, which is added if it is absent, or MAP_NOMEM. *added says whether it was; added may be NULL. */
int map_add(struct map *m, const char *key, size_t n, bool *added);

/* Makes space for n keys in all, so that adding them moves nothing; false without memory, which leaves the map as it
 * was. Worth it where many will surely come. */
bool map_reserve(struct map *m, int n);

void map_release(struct map *m);

#endif
