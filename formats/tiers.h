/* tiers.h - tiers.json: the storage tiers of a serving system, ordered fast to slow.
 *
 *     {"evp":"tiers","version":1,"tiers":[{"name":"dram","kind":"dram","uri":"/dev/shm/evp","capacity_bytes":209715200,
 *       "read_bytes_per_s":8e9,"write_bytes_per_s":4e9,"latency_s":2e-5}, ...]}
 *
 * capacity_bytes null: unlimited. A tier of kind dram or file is a folder, and its uri the path; on a network file
 * system it has a "state" too, a folder on a local disk, as a tier of kind redis has that evp-load serves. Where
 * several namespaces share a folder, capacity_bytes is what this one may take and "total_bytes" what all may take
 * together. Capacities are compared with a variant's bytes as the table counts them. Tiers with the same "pool" share
 * one capacity, which each of them gives. "configs" lists what a tier may hold; without it, everything.
 *
 * "parallel" says how fast so many reads at once are, all of them together, and "parallel_reads" with how many of them
 * times are counted: 1 when absent. "read_spread" is the standard deviation of the time that a read takes by its mean.
 */
#ifndef EVP_TIERS_H
#define EVP_TIERS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

enum tier_kind { TIER_GPU, TIER_DRAM, TIER_FILE, TIER_REDIS, TIER_LMCACHE, TIER_KINDS };
enum { TIER_NAME = 32, TIER_MAX = 64, TIER_CONFIGS = 64, TIER_LOADS = 16, TIER_READS_MAX = 4096 };

/* What was measured with so many reads at once. */
struct tier_load {
    int reads;          // 1 to TIER_READS_MAX
    double bytes_per_s; // of all of them together
    double spread;      // standard deviation of the time of one by its mean; 0: not known
};

struct tier {
    char name[TIER_NAME]; // letters, digits, - and _; never "recompute"
    enum tier_kind kind;
    char *uri;        // a path, or redis[s]://HOST[:PORT][/DATABASE]
    int64_t capacity; // bytes; INT64_MAX: unlimited
    double read_bytes_per_s, write_bytes_per_s, latency_s;
    double device_bytes_per_s; // from the host's memory on to the GPU; 0: unknown, taken as no limit
    char *state;               // the folder of the state; NULL: of a folder that folder itself, else none
    int64_t total;             // bytes that all namespaces of a folder may take together; 0: `capacity`
    char pool[TIER_NAME];      // the tiers of this name share `capacity`; "": it is the tier's own
    char **config;          // (n_configs) configs, or how they begin: before a ':' or '+', so snapkv is all of snapkv
    int n_configs;          // 0: the tier may hold every config
    double read_spread;     // of one read alone, as in struct tier_load
    struct tier_load *load; // (n_loads) with two reads at once and more, rising; what one alone reads is above
    int n_loads;
    int parallel_reads;                   // at once, with which times are counted; 0: 1. Set by tier_set_reads()
    double part_bytes_per_s, part_spread; // what each of them has then; 0: as one alone. From the above
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
void tiers_pools(const struct tiers *t, int *first); // (n) of each tier the first tier of its pool, itself without one
void tiers_release(struct tiers *t);                 // zeroed is fine

/* ---- one tier ---- */

/* Is the tier a folder? */
static inline bool tier_is_folder(const struct tier *t)
{
    return t->kind == TIER_DRAM || t->kind == TIER_FILE;
}

/* Is it a medium elsewhere that evp-load serves, by a folder for its `state`? */
static inline bool tier_is_remote(const struct tier *t)
{
    return t->kind == TIER_REDIS;
}

/* The folder of a tier's index and lock, on this machine: a folder's own, another one's `state`; NULL: it has none, and
 * is served by nothing of ours. */
static inline const char *tier_folder(const struct tier *t)
{
    return tier_is_folder(t) ? t->uri : t->state;
}

/* May the tier hold variants of a config? */
bool tier_allows(const struct tier *t, const char *config);

/* The same place under whatever name: kind and uri are equal. */
bool tier_same_place(const struct tier *a, const struct tier *b);

/* Seconds to read so many bytes. Pieces go on to the GPU while the next ones are read, so the slower of both ways
 * counts. With t->parallel_reads above 1, each of so many reads has its part of what they reach together, on both ways.
 */
static inline double tier_read_s(const struct tier *t, int64_t bytes)
{
    double device = t->device_bytes_per_s, rate = t->read_bytes_per_s;

    if (t->part_bytes_per_s > 0)
        return t->latency_s + (double)bytes / t->part_bytes_per_s;
    return t->latency_s + (double)bytes / (device > 0 && device < rate ? device : rate);
}

/* The standard deviation of a read of so many seconds; 0: not known. */
static inline double tier_read_sd_s(const struct tier *t, double read_s)
{
    return read_s * (t->part_bytes_per_s > 0 ? t->part_spread : t->read_spread);
}

/* ---- making a tier; ERR_FORMAT with the sentence ---- */

const char *tier_kind_name(enum tier_kind kind);
bool tier_kind_find(const char *name, enum tier_kind *kind); // false: no such kind
enum tier_kind tier_kind_of(const char *uri);                // by how a uri begins; TIER_FILE: as no other
int tier_set_name(struct tier *t, const char *name, struct err *err) MUST_CHECK;
int tier_set_pool(struct tier *t, const char *pool, struct err *err) MUST_CHECK;
int tier_add_config(struct tier *t, const char *config, struct err *err) MUST_CHECK; // another one that it may hold
int tier_set_uri(struct tier *t, const char *uri, struct err *err) MUST_CHECK;       // a copy that fits t->kind
int tier_set_state(struct tier *t, const char *path, struct err *err) MUST_CHECK;    // a copy
int tier_check(const struct tier *t, struct err *err) MUST_CHECK;                    // the numbers

int tier_add_load(struct tier *t, const struct tier_load *load, struct err *err) MUST_CHECK; // by rising `reads`

/* Counts times with so many reads at once from now on, 1 to TIER_READS_MAX: together they reach what was measured with
 * as many, in proportion between two measurements, and beyond the last one no more; without any, what one alone does.
 */
void tier_set_reads(struct tier *t, int reads);

/* Have the tiers of each pool one capacity? ERR_FORMAT names two that differ. */
int tiers_check_pools(const struct tiers *t, struct err *err) MUST_CHECK;

#endif
