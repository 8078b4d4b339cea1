/* tiers.c - tiers.json read strictly and written back.
 *
 * The planner divides by these numbers and compares them, so a number that is missing, negative or not finite is
 * refused. Unknown members are ignored: a file written by hand may carry notes.
 */
#include "formats/tiers.h"

#include "base/file.h"
#include "base/magic.h"
#include "formats/redis_address.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { TIERS_VERSION = 1, TIERS_FILE_MAX = 1 << 20, TIER_CONFIG_MAX = 127 };
static const double spread_max = 1000; // far above any device; keeps times finite
static const double read_s_max = 1e30; // limit for the largest possible variant: utilities and their sums stay finite

static const char *const kind_name[TIER_KINDS] = {
    [TIER_GPU] = "gpu", [TIER_DRAM] = "dram", [TIER_FILE] = "file", [TIER_REDIS] = "redis", [TIER_LMCACHE] = "lmcache"
};

const char *tier_kind_name(enum tier_kind kind)
{
    return kind_name[kind];
}

bool tier_kind_find(const char *name, enum tier_kind *kind)
{
    for (int i = 0; i < TIER_KINDS; i++) {
        if (strcmp(name, kind_name[i]) == 0) {
            *kind = (enum tier_kind)i;
            return true;
        }
    }
    return false;
}

enum tier_kind tier_kind_of(const char *uri)
{
    return redis_address_is(uri) ? TIER_REDIS : TIER_FILE;
}

/* ---- one tier ------------------------------------------------------------ */

/* Is a text 1 to TIER_NAME - 1 letters, digits, - and _? */
static bool is_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t n = strlen(name);

    return n > 0 && n < TIER_NAME && strspn(name, allowed) == n;
}

int tier_set_name(struct tier *t, const char *name, struct err *err)
{
    if (!is_name(name))
        return err_set(err, ERR_FORMAT, "tier name '%.40s' is not 1 to %d letters, digits, - and _", name,
                       TIER_NAME - 1);
    if (strcmp(name, "recompute") == 0)
        return err_set(err, ERR_FORMAT,
                       "a tier cannot be named 'recompute', the name for contexts that are not stored");
    memcpy(t->name, name, strlen(name) + 1);
    return 0;
}

int tier_set_pool(struct tier *t, const char *pool, struct err *err)
{
    if (!is_name(pool))
        return err_set(err, ERR_FORMAT, "tier '%s': pool '%.40s' is not 1 to %d letters, digits, - and _", t->name,
                       pool, TIER_NAME - 1);
    memcpy(t->pool, pool, strlen(pool) + 1);
    return 0;
}

int tier_add_config(struct tier *t, const char *config, struct err *err)
{
    size_t n = strlen(config);

    if (n == 0 || n > TIER_CONFIG_MAX)
        return err_set(err, ERR_FORMAT, "tier '%s': a config is not 1 to %d bytes", t->name, TIER_CONFIG_MAX);
    if (t->n_configs == TIER_CONFIGS)
        return err_set(err, ERR_FORMAT, "tier '%s' has more than %d configs", t->name, TIER_CONFIGS);
    char **more = realloc(t->config, ((size_t)t->n_configs + 1) * sizeof(*more));
    if (!more)
        return err_nomem(err);
    t->config = more;
    t->config[t->n_configs] = strdup(config);
    if (!t->config[t->n_configs])
        return err_nomem(err);
    t->n_configs++;
    return 0;
}

bool tier_allows(const struct tier *t, const char *config)
{
    for (int i = 0; i < t->n_configs; i++) {
        size_t n = strlen(t->config[i]);
        if (strncmp(t->config[i], config, n) == 0 && (config[n] == '\0' || config[n] == ':' || config[n] == '+'))
            return true;
    }
    return t->n_configs == 0;
}

int tier_set_uri(struct tier *t, const char *uri, struct err *err)
{
    struct redis_address address;

    if (!*uri)
        return err_set(err, ERR_FORMAT, "tier '%s': field 'uri' is empty", t->name);
    if (t->kind == TIER_REDIS && redis_address_parse(&address, uri, err))
        return err_wrap(err, "tier '%s'", t->name);
    const char *scheme = strstr(uri, "://");
    if (tier_is_folder(t) && redis_address_is(uri))
        return err_set(err, ERR_FORMAT, "tier '%s': uri '%.200s' is not the path of a folder", t->name, uri);
    if (tier_is_folder(t) && scheme)
        return err_set(err, ERR_FORMAT, "tier '%s': %.*s is not served; uri is a folder, redis:// or rediss://",
                       t->name, (int)(scheme - uri < 40 ? scheme - uri : 40), uri);
    t->uri = strdup(uri);
    return t->uri ? 0 : err_nomem(err);
}

int tier_set_state(struct tier *t, const char *path, struct err *err)
{
    if (!tier_is_folder(t) && !tier_is_remote(t))
        return err_set(err, ERR_FORMAT, "tier '%s': field 'state' is for kinds dram, file and redis, not '%s'", t->name,
                       tier_kind_name(t->kind));
    if (!*path)
        return err_set(err, ERR_FORMAT, "tier '%s': field 'state' is empty", t->name);
    t->state = strdup(path);
    return t->state ? 0 : err_nomem(err);
}

int tier_set_access(struct tier *t, const char *access, struct err *err)
{
    if (strcmp(access, "read") != 0)
        return err_set(err, ERR_FORMAT, "tier '%s': access '%.40s' is not read", t->name, access);
    if (!tier_is_folder(t) && !tier_is_remote(t))
        return err_set(err, ERR_FORMAT, "tier '%s': field 'access' is for kinds dram, file and redis, not '%s'",
                       t->name, tier_kind_name(t->kind));
    t->read_only = true;
    return 0;
}

int tier_add_load(struct tier *t, const struct tier_load *load, struct err *err)
{
    int last = t->n_loads ? t->load[t->n_loads - 1].reads : 1;

    if (load->reads <= last || load->reads > TIER_READS_MAX)
        return err_set(err, ERR_FORMAT, "tier '%s': field 'parallel': reads is %d, not %d to %d", t->name, load->reads,
                       last + 1, TIER_READS_MAX);
    if (!(load->bytes_per_s > 0) || !isfinite(load->bytes_per_s))
        return err_set(err, ERR_FORMAT, "tier '%s': the bandwidth of %d reads is not above 0", t->name, load->reads);
    if (!(load->spread >= 0 && load->spread <= spread_max))
        return err_set(err, ERR_FORMAT, "tier '%s': the spread of %d reads is not 0 to %g", t->name, load->reads,
                       spread_max);
    if (t->n_loads == TIER_LOADS)
        return err_set(err, ERR_FORMAT, "tier '%s': field 'parallel' has more than %d members", t->name, TIER_LOADS);
    struct tier_load *more = realloc(t->load, ((size_t)t->n_loads + 1) * sizeof(*more));
    if (!more)
        return err_nomem(err);
    t->load = more;
    t->load[t->n_loads++] = *load;
    return 0;
}

void tier_set_reads(struct tier *t, int reads)
{
    struct tier_load at = { 1, t->read_bytes_per_s, t->read_spread };

    for (int i = 0; i < t->n_loads && at.reads < reads; i++) {
        struct tier_load next = t->load[i];
        if (next.reads > reads) {
            double share = (double)(reads - at.reads) / (next.reads - at.reads);
            next = (struct tier_load){ reads, at.bytes_per_s + share * (next.bytes_per_s - at.bytes_per_s),
                                       at.spread + share * (next.spread - at.spread) };
        }
        at = next;
    }
    if (t->device_bytes_per_s > 0 && t->device_bytes_per_s < at.bytes_per_s)
        at.bytes_per_s = t->device_bytes_per_s;
    t->parallel_reads = reads;
    t->part_bytes_per_s = reads > 1 ? at.bytes_per_s / reads : 0;
    t->part_spread = at.spread;
}

int tier_check(const struct tier *t, struct err *err)
{
    if (t->total < 0)
        return err_set(err, ERR_FORMAT, "tier '%s': field 'total_bytes' is negative", t->name);
    if (t->capacity < 0)
        return err_set(err, ERR_FORMAT, "tier '%s': the capacity is negative", t->name);
    if (!(t->read_bytes_per_s > 0) || !isfinite(t->read_bytes_per_s))
        return err_set(err, ERR_FORMAT, "tier '%s': the read bandwidth is not above 0", t->name);
    if (!(t->write_bytes_per_s > 0 || (t->read_only && t->write_bytes_per_s == 0)) || !isfinite(t->write_bytes_per_s))
        return err_set(err, ERR_FORMAT, "tier '%s': the write bandwidth is not above 0", t->name);
    if (!(t->latency_s >= 0) || !isfinite(t->latency_s))
        return err_set(err, ERR_FORMAT, "tier '%s': the latency is negative", t->name);
    if (!(t->device_bytes_per_s >= 0) || !isfinite(t->device_bytes_per_s))
        return err_set(err, ERR_FORMAT, "tier '%s': the bandwidth to the GPU is negative", t->name);
    if (!(t->read_spread >= 0 && t->read_spread <= spread_max))
        return err_set(err, ERR_FORMAT, "tier '%s': the spread of reads is not 0 to %g", t->name, spread_max);
    if (!(tier_read_s(t, INT64_MAX) <= read_s_max))
        return err_set(err, ERR_FORMAT, "tier '%s': latency and bandwidth are out of range", t->name);
    return 0;
}

/* Reads `parallel` and `parallel_reads`. */
static int read_loads(struct tier *t, const struct json *object, struct err *err)
{
    const struct json *array = json_get(object, "parallel");
    int64_t reads = 1;

    if (array && !json_is_null(array) && !json_is_array(array))
        return err_set(err, ERR_FORMAT, "tier '%s': field 'parallel' is not an array", t->name);
    for (const struct json *v = json_first(array); v; v = json_next(v)) {
        struct tier_load load = { 0 };
        if (!json_is_object(v))
            return err_set(err, ERR_FORMAT, "tier '%s': field 'parallel' has a member that is not an object", t->name);
        if (json_want_int(v, "reads", &reads, err) || json_want_real(v, "bytes_per_s", &load.bytes_per_s, err) ||
            json_may_real(v, "spread", &load.spread, err))
            return err_wrap(err, "tier '%s': field 'parallel'", t->name);
        load.reads = reads < 0 || reads > TIER_READS_MAX ? TIER_READS_MAX + 1 : (int)reads;
        if (tier_add_load(t, &load, err))
            return err->code;
    }
    reads = 1;
    if (json_may_int(object, "parallel_reads", &reads, err))
        return err_wrap(err, "tier '%s'", t->name);
    if (reads < 1 || reads > TIER_READS_MAX)
        return err_set(err, ERR_FORMAT, "tier '%s': field 'parallel_reads' is not 1 to %d", t->name, TIER_READS_MAX);
    tier_set_reads(t, (int)reads);
    return 0;
}

static int read_numbers(struct tier *t, const struct json *object, struct err *err)
{
    t->capacity = INT64_MAX;
    if (json_want_real(object, "read_bytes_per_s", &t->read_bytes_per_s, err) ||
        (t->read_only ? json_may_real : json_want_real)(object, "write_bytes_per_s", &t->write_bytes_per_s, err) ||
        json_want_real(object, "latency_s", &t->latency_s, err) ||
        json_may_real(object, "device_bytes_per_s", &t->device_bytes_per_s, err) ||
        (!json_is_null(json_get(object, "capacity_bytes")) &&
         json_want_int(object, "capacity_bytes", &t->capacity, err)) ||
        json_may_real(object, "read_spread", &t->read_spread, err) ||
        json_may_int(object, "total_bytes", &t->total, err))
        return err_wrap(err, "tier '%s'", t->name);
    return read_loads(t, object, err) ? err->code : tier_check(t, err);
}

static int read_configs(struct tier *t, const struct json *array, struct err *err)
{
    if (!array || json_is_null(array))
        return 0;
    if (!json_is_array(array) || json_count(array) == 0)
        return err_set(err, ERR_FORMAT, "tier '%s': field 'configs' is not an array of one or more names", t->name);
    for (const struct json *v = json_first(array); v; v = json_next(v)) {
        const char *config = json_text(v);
        if (!config)
            return err_set(err, ERR_FORMAT, "tier '%s': field 'configs' has an entry that is not a text", t->name);
        if (tier_add_config(t, config, err))
            return err->code;
    }
    return 0;
}

static int read_tier(struct tier *t, const struct json *object, struct err *err)
{
    const char *name, *kind, *uri, *state = NULL, *pool = NULL, *access = NULL;

    if (!json_is_object(object))
        return err_set(err, ERR_FORMAT, "a tier is not an object");
    if (json_want_text(object, "name", &name, err) || tier_set_name(t, name, err))
        return err->code;
    if (json_want_text(object, "kind", &kind, err) || json_want_text(object, "uri", &uri, err))
        return err_wrap(err, "tier '%s'", t->name);
    if (!tier_kind_find(kind, &t->kind))
        return err_set(err, ERR_FORMAT, "tier '%s': kind '%.40s' is not one of gpu, dram, file, redis, lmcache",
                       t->name, kind);
    if (json_may_text(object, "state", &state, err) || json_may_text(object, "pool", &pool, err) ||
        json_may_text(object, "access", &access, err))
        return err_wrap(err, "tier '%s'", t->name);
    if (tier_set_uri(t, uri, err) || (access && tier_set_access(t, access, err)) ||
        (state && tier_set_state(t, state, err)) || (pool && tier_set_pool(t, pool, err)) ||
        read_configs(t, json_get(object, "configs"), err))
        return err->code;
    return read_numbers(t, object, err);
}

bool tier_same_place(const struct tier *a, const struct tier *b)
{
    return a->kind == b->kind && strcmp(a->uri, b->uri) == 0;
}

/* ---- the list ------------------------------------------------------------ */

void tiers_pools(const struct tiers *t, int *first)
{
    for (int i = 0; i < t->n; i++) {
        first[i] = i;
        for (int k = 0; k < i && *t->at[i].pool && first[i] == i; k++)
            first[i] = strcmp(t->at[k].pool, t->at[i].pool) == 0 ? k : i;
    }
}

/* ERR_FORMAT if the state of a tier is in a folder of another. */
static int check_states(const struct tiers *t, struct err *err)
{
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < t->n; k++) {
            const char *state = i == k ? NULL : t->at[i].state, *other = t->at[k].state;
            if (state && (strcmp(state, t->at[k].uri) == 0 || (other && strcmp(state, other) == 0)))
                return err_set(err, ERR_FORMAT, "the 'state' of tier '%s' is also a folder of tier '%s'", t->at[i].name,
                               t->at[k].name);
        }
    return 0;
}

int tiers_check_together(const struct tiers *t, struct err *err)
{
    int first[TIER_MAX];

    if (check_states(t, err))
        return err->code;
    tiers_pools(t, first);
    for (int i = 0; i < t->n; i++)
        if (t->at[i].capacity != t->at[first[i]].capacity)
            return err_set(err, ERR_FORMAT, "tiers '%s' and '%s' give pool '%s' different capacities",
                           t->at[first[i]].name, t->at[i].name, t->at[i].pool);
    return 0;
}

static int read_list(struct tiers *t, const struct json *array, struct err *err)
{
    int n = json_count(array);

    if (!json_is_array(array))
        return err_set(err, ERR_FORMAT, "field 'tiers' is not an array");
    if (n < 1 || n > TIER_MAX)
        return err_set(err, ERR_FORMAT, "field 'tiers' holds %d tiers, not 1 to %d", n, TIER_MAX);
    t->at = calloc((size_t)n, sizeof(*t->at));
    if (!t->at)
        return err_nomem(err);
    for (const struct json *v = json_first(array); v; v = json_next(v)) {
        struct tier *tier = &t->at[t->n++];
        if (read_tier(tier, v, err))
            return err->code;
        if (tiers_find(t, tier->name) != t->n - 1)
            return err_set(err, ERR_FORMAT, "tier '%s' comes twice", tier->name);
    }
    return tiers_check_together(t, err);
}

int tiers_from_json(struct tiers *t, const struct json *array, struct err *err)
{
    *t = (struct tiers){ 0 };
    if (!array)
        return err_set(err, ERR_FORMAT, "field 'tiers' is missing");
    int code = read_list(t, array, err);
    if (code)
        tiers_release(t);
    return code;
}

static int from_root(struct tiers *t, const struct json *root, struct err *err)
{
    const char *kind = json_text(json_get(root, "evp"));
    int64_t version;

    if (!kind || strcmp(kind, "tiers") != 0)
        return err_set(err, ERR_FORMAT, "not a list of tiers: \"evp\":\"tiers\" is missing");
    if (json_want_int(root, "version", &version, err))
        return err->code;
    if (version != TIERS_VERSION)
        return err_set(err, ERR_FORMAT, "is of version %lld; this program reads version %d", (long long)version,
                       TIERS_VERSION);
    return tiers_from_json(t, json_get(root, "tiers"), err);
}

int tiers_read(struct tiers *t, const char *path, struct err *err)
{
    struct buf text = { 0 };

    *t = (struct tiers){ 0 };
    int code = file_read(&text, path, TIERS_FILE_MAX, err);
    if (!code) {
        struct json *root = json_parse(buf_str(&text), text.n, err);
        code = root ? from_root(t, root, err) : err->code;
        json_free(root);
        if (code && err_wrap(err, "'%s'", path))
            code = magic_refuse(err, path, "tiers");
    }
    buf_release(&text);
    return code;
}

static void put_configs(const struct tier *t, struct json_out *w)
{
    if (!t->n_configs)
        return;
    json_begin(w, "configs", '[');
    for (int i = 0; i < t->n_configs; i++)
        json_put_text(w, NULL, t->config[i]);
    json_end(w, ']');
}

static void put_loads(const struct tier *t, struct json_out *w)
{
    if (!t->n_loads)
        return;
    json_begin(w, "parallel", '[');
    for (int i = 0; i < t->n_loads; i++) {
        json_begin(w, NULL, '{');
        json_put_int(w, "reads", t->load[i].reads);
        json_put_real(w, "bytes_per_s", t->load[i].bytes_per_s);
        if (t->load[i].spread > 0)
            json_put_real(w, "spread", t->load[i].spread);
        json_end(w, '}');
    }
    json_end(w, ']');
}

static void put_tier(const struct tier *t, struct json_out *w)
{
    json_begin(w, NULL, '{');
    json_put_text(w, "name", t->name);
    json_put_text(w, "kind", tier_kind_name(t->kind));
    json_put_text(w, "uri", t->uri);
    if (t->read_only)
        json_put_text(w, "access", "read");
    if (t->state)
        json_put_text(w, "state", t->state);
    if (t->capacity == INT64_MAX)
        json_put_null(w, "capacity_bytes");
    else
        json_put_int(w, "capacity_bytes", t->capacity);
    if (t->total)
        json_put_int(w, "total_bytes", t->total);
    json_put_real(w, "read_bytes_per_s", t->read_bytes_per_s);
    if (t->write_bytes_per_s > 0)
        json_put_real(w, "write_bytes_per_s", t->write_bytes_per_s);
    json_put_real(w, "latency_s", t->latency_s);
    if (t->device_bytes_per_s > 0)
        json_put_real(w, "device_bytes_per_s", t->device_bytes_per_s);
    if (*t->pool)
        json_put_text(w, "pool", t->pool);
    put_configs(t, w);
    if (t->read_spread > 0)
        json_put_real(w, "read_spread", t->read_spread);
    put_loads(t, w);
    if (t->parallel_reads > 1)
        json_put_int(w, "parallel_reads", t->parallel_reads);
    json_end(w, '}');
}

void tiers_to_json(const struct tiers *t, struct json_out *w, const char *name)
{
    json_begin(w, name, '[');
    for (int i = 0; i < t->n; i++)
        put_tier(&t->at[i], w);
    json_end(w, ']');
}

void tiers_write(const struct tiers *t, struct buf *out)
{
    struct json_out w = { .buf = out };

    json_begin(&w, NULL, '{');
    json_put_text(&w, "evp", "tiers");
    json_put_int(&w, "version", TIERS_VERSION);
    tiers_to_json(t, &w, "tiers");
    json_end(&w, '}');
}

int tiers_find(const struct tiers *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->at[i].name, name) == 0)
            return i;
    return -1;
}

void tiers_release(struct tiers *t)
{
    for (int i = 0; i < t->n; i++) {
        for (int k = 0; k < t->at[i].n_configs; k++)
            free(t->at[i].config[k]);
        free(t->at[i].config);
        free(t->at[i].load);
        free(t->at[i].uri);
        free(t->at[i].state);
    }
    free(t->at);
    *t = (struct tiers){ 0 };
}

double tier_read_s_per_byte(const struct tier *t)
{
    const int64_t many = INT64_C(1) << 30;

    return (tier_read_s(t, many) - t->latency_s) / (double)many;
}

double tier_write_s_per_byte(const struct tier *t)
{
    return t->write_bytes_per_s > 0 ? 1 / t->write_bytes_per_s : 0;
}
