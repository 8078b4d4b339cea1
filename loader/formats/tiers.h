/* tiers.h - tiers.json: the storage tiers of a serving system, ordered fast to slow.
 *
 *     {"evp":"tiers","version":1,"tiers":[{"name":"dram","kind":"dram","uri":"/dev/shm/evp","capacity_bytes":209715200,
 *       "read_bytes_per_s":8e9,"write_bytes_per_s":4e9,"latency_s":2e-5}, ...]}
 *
 * capacity_bytes null: unlimited. A tier of kind dram or file is a folder, and its uri the path. Capacities are
 * compared with a variant's bytes as the table counts them.
 */
#ifndef EVP_TIERS_H
#define EVP_TIERS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

enum tier_kind { TIER_GPU, TIER_DRAM, TIER_FILE, TIER_REDIS, TIER_LMCACHE };
enum { TIER_NAME = 32, TIER_MAX = 16 };

struct tier {
    char name[TIER_NAME]; // letters, digits, - and _; never "recompute"
    enum tier_kind kind;
    char *uri;        // a path, or redis://...
    int64_t capacity; // bytes; INT64_MAX: unlimited
    double read_bytes_per_s, write_bytes_per_s, latency_s;
};

struct tiers {
    struct tier *at;
    int n;
};

/* ---- the file ---- */

/* Checks everything: names unique, numbers finite and not negative, bandwidths above 0, kinds known, 1 to TIER_MAX
 * tiers. ERR_FORMAT names the file, the tier and the field; *t is empty then. tiers_release() frees. */
int tiers_read(struct tiers *t, const char *path, struct err *err) MUST_CHECK;
int tiers_from_json(struct tiers *t, const struct json *array, struct err *err) MUST_CHECK; // the array "tiers"

void tiers_to_json(const struct tiers *t, struct json_out *w, const char *name); // an array member
void tiers_write(const struct tiers *t, struct buf *out);                        // the whole of tiers.json
int tiers_find(const struct tiers *t, const char *name);                         // index, or -1
void tiers_release(struct tiers *t);                                             // zeroed is fine

/* ---- one tier ---- */

/* Is the tier a folder, one that evp-load fills and libevp reads? */
static inline bool tier_is_folder(const struct tier *t)
{
    return t->kind == TIER_DRAM || t->kind == TIER_FILE;
}

/* The same place under whatever name: kind and uri are equal. */
bool tier_same_place(const struct tier *a, const struct tier *b);

/* Seconds to read so many bytes. */
static inline double tier_read_s(const struct tier *t, int64_t bytes)
{
    return t->latency_s + (double)bytes / t->read_bytes_per_s;
}

/* ---- making a tier; ERR_FORMAT with the sentence ---- */

const char *tier_kind_name(enum tier_kind kind);
bool tier_kind_find(const char *name, enum tier_kind *kind); // false: no such kind
int tier_set_name(struct tier *t, const char *name, struct err *err) MUST_CHECK;
int tier_set_uri(struct tier *t, const char *uri, struct err *err) MUST_CHECK; // a copy that fits t->kind
int tier_check(const struct tier *t, struct err *err) MUST_CHECK;              // the numbers

#endif
