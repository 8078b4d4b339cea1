/* map.h - a set of byte strings, numbered in order of arrival: id -> row, dataset -> template.
 *
 * Keys are copied into large blocks. Lookup is by XXH3 and open addressing. Keys may come from hostile files, so each
 * map has a random seed, and nobody can choose keys that collide; the seed changes nothing that callers see. A zeroed
 * struct is an empty map.
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
    uint64_t seed;         // set with the first key
    struct map_keys *keys; // the copies
};

enum { MAP_NOMEM = -2, MAP_ABSENT = -1 };

/* The number of a key, or MAP_ABSENT. */
int map_find(const struct map *m, const char *key, size_t n);

/* The number of a key, which is added if absent; or MAP_NOMEM. *added: the key is new; added may be NULL. */
int map_add(struct map *m, const char *key, size_t n, bool *added);

/* Makes space for n keys in all, to avoid moves when many are added; false without memory, with the map unchanged. */
bool map_reserve(struct map *m, int n);

void map_release(struct map *m);

#endif
