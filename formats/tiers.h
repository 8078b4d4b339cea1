/* tiers.h - tiers.json: the storage tiers of a serving system, ordered fast to slow.
 *
 *     {"evp":"tiers","version":1,"tiers":[{"name":"dram","kind":"dram","uri":"/dev/shm/evp","capacity_bytes":209715200,
 *       "read_bytes_per_s":8e9,"write_bytes_per_s":4e9,"latency_s":2e-5}, ...]}
 *
 * capacity_bytes null: unlimited. A tier of kind dram or file is a folder; its uri is the path. "state" is a folder on
 * a local disk: for folders on a network file system, and for a tier of kind redis that evp-load fills. If several
 * namespaces share a folder, capacity_bytes limits this one and "total_bytes" all of them together. Capacities are
 * compared with a variant's bytes as the table counts them. Tiers with the same "pool" share one capacity, and each
 * gives it. "configs" lists the configs that a tier may hold; without it, all.
 *
 * "access":"read" is a folder that another host fills: this host finds and reads what is there, and never writes to it.
 *
 * "parallel" gives the total bandwidth of several simultaneous reads; "parallel_reads" is the number of simultaneous
 * reads that times assume, 1 when absent. "read_spread" is the standard deviation of a read's time, divided by the
 * mean.
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

/* A measurement with several simultaneous reads. */
struct tier_load {
    int reads;          // 1 to TIER_READS_MAX
    double bytes_per_s; // of all reads together
    double spread;      // standard deviation / mean of a read's time; 0: not known
};

struct tier {
    char name[TIER_NAME]; // letters, digits, - and _; never "recompute"
    enum tier_kind kind;
    bool read_only;   // another host fills the folder; write_bytes_per_s may be 0: not known
    char *uri;        // a path, or redis[s]://HOST[:PORT][/DATABASE]
    int64_t capacity; // bytes; INT64_MAX: unlimited
    double read_bytes_per_s, write_bytes_per_s, latency_s;
    double device_bytes_per_s; // from host memory to the GPU; 0: not known, no limit
    char *state;               // the folder of the state; NULL: a folder tier's own folder, else none
    int64_t total;             // bytes, for all namespaces of a folder together; 0: `capacity`
    char pool[TIER_NAME];      // tiers of the same pool share `capacity`; "": no pool
    char **config;          // (n_configs) configs or their beginnings, up to a ':' or '+': snapkv is every snapkv:...
    int n_configs;          // 0: the tier may hold every config
    double read_spread;     // of a single read, as in struct tier_load
    struct tier_load *load; // (n_loads) by rising reads, from 2; a single read's bandwidth is read_bytes_per_s
    int n_loads;
    int parallel_reads;                   // simultaneous reads that times assume; 0: 1. Set by tier_set_reads()
    double part_bytes_per_s, part_spread; // derived: each read's share; 0: as a single read
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
void tiers_pools(const struct tiers *t, int *first); // (n) for each tier: the first tier of its pool, or itself
void tiers_release(struct tiers *t);                 // zeroed is fine

/* ---- one tier ---- */

/* Is the tier a folder? */
static inline bool tier_is_folder(const struct tier *t)
{
    return t->kind == TIER_DRAM || t->kind == TIER_FILE;
}

/* Is the tier on a server, with a local folder for its `state`? */
static inline bool tier_is_remote(const struct tier *t)
{
    return t->kind == TIER_REDIS;
}

/* The folder of a tier's index and lock on this machine: the uri of a folder, otherwise `state`. NULL: none, so
 * evp-load and libevicpress cannot use the tier. */
static inline const char *tier_folder(const struct tier *t)
{
    return tier_is_folder(t) ? t->uri : t->state;
}

/* May the tier hold variants of a config? */
bool tier_allows(const struct tier *t, const char *config);

/* Are kind and uri equal? Names may differ. */
bool tier_same_place(const struct tier *a, const struct tier *b);

/* Of reading, without the latency, and of writing; 0: not known. */
double tier_read_s_per_byte(const struct tier *t);
double tier_write_s_per_byte(const struct tier *t);

/* Seconds to read `bytes`. Reading and copying to the GPU overlap, so the slower of the two counts. With
 * t->parallel_reads above 1, each read gets an equal share of the total bandwidth of both. */
static inline double tier_read_s(const struct tier *t, int64_t bytes)
{
    double device = t->device_bytes_per_s, rate = t->read_bytes_per_s;

    if (t->part_bytes_per_s > 0)
        return t->latency_s + (double)bytes / t->part_bytes_per_s;
    return t->latency_s + (double)bytes / (device > 0 && device < rate ? device : rate);
}

/* The standard deviation of a read's time `read_s`; 0: not known. */
static inline double tier_read_sd_s(const struct tier *t, double read_s)
{
    return read_s * (t->part_bytes_per_s > 0 ? t->part_spread : t->read_spread);
}

/* ---- making a tier; ERR_FORMAT: invalid ---- */

const char *tier_kind_name(enum tier_kind kind);
bool tier_kind_find(const char *name, enum tier_kind *kind); // false: no such kind
enum tier_kind tier_kind_of(const char *uri);                // by the scheme of a uri; TIER_FILE: none
int tier_set_name(struct tier *t, const char *name, struct err *err) MUST_CHECK;
int tier_set_pool(struct tier *t, const char *pool, struct err *err) MUST_CHECK;
int tier_add_config(struct tier *t, const char *config, struct err *err) MUST_CHECK; // a config that it may hold
int tier_set_uri(struct tier *t, const char *uri, struct err *err) MUST_CHECK;       // copied; must fit t->kind
int tier_set_state(struct tier *t, const char *path, struct err *err) MUST_CHECK;    // copied
int tier_set_access(struct tier *t, const char *access, struct err *err) MUST_CHECK; // "read"
int tier_check(const struct tier *t, struct err *err) MUST_CHECK;                    // checks the numbers

int tier_add_load(struct tier *t, const struct tier_load *load, struct err *err) MUST_CHECK; // sorted by reads

/* Sets the number of simultaneous reads, 1 to TIER_READS_MAX, that later times assume. Their total bandwidth is the
 * measured one, interpolated linearly between measurements and constant after the last; without measurements, that of a
 * single read. */
void tier_set_reads(struct tier *t, int reads);

/* Checks that all tiers of a pool give the same capacity, and that no tier's state is in a folder of another.
 * ERR_FORMAT names two tiers. */
int tiers_check_together(const struct tiers *t, struct err *err) MUST_CHECK;

#endif
