/* tiers.c - tiers.json read strictly and written back.
 *
 * The planner divides by these numbers and compares them, so a number that is missing, negative or not finite is
 * refused. Unknown members are ignored: a file written by hand may carry notes.
 */
#include "loader/formats/tiers.h"

#include "base/file.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { TIERS_VERSION = 1, TIERS_FILE_MAX = 1 << 20 };

static const char *const kind_name[] = {
    [TIER_GPU] = "gpu", [TIER_DRAM] = "dram", [TIER_FILE] = "file", [TIER_REDIS] = "redis", [TIER_LMCACHE] = "lmcache"
};
enum { N_KINDS = sizeof(kind_name) / sizeof(*kind_name) };

const char *tier_kind_name(enum tier_kind kind)
{
    return kind_name[kind];
}

bool tier_kind_find(const char *name, enum tier_kind *kind)
{
    for (int i = 0; i < N_KINDS; i++) {
        if (strcmp(name, kind_name[i]) == 0) {
            *kind = (enum tier_kind)i;
            return true;
        }
    }
    return false;
}

/* ---- one tier ------------------------------------------------------------ */

int tier_set_name(struct tier *t, const char *name, struct err *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t n = strlen(name);

    if (n == 0 || n >= TIER_NAME || strspn(name, allowed) != n)
        return err_set(err, ERR_FORMAT, "tier name '%.40s' is not 1 to %d letters, digits, - and _", name,
                       TIER_NAME - 1);
    if (strcmp(name, "recompute") == 0)
        return err_set(err, ERR_FORMAT,
                       "a tier may not be named 'recompute': that is the name for contexts that are not stored");
    memcpy(t->name, name, n + 1);
    return 0;
}

int tier_set_uri(struct tier *t, const char *uri, struct err *err)
{
    bool redis = strncmp(uri, "redis://", 8) == 0;

    if (!*uri)
        return err_set(err, ERR_FORMAT, "tier '%s': field 'uri' is empty", t->name);
    if (t->kind == TIER_REDIS && !redis)
        return err_set(err, ERR_FORMAT, "tier '%s': uri '%.200s' does not begin with redis://", t->name, uri);
    if (tier_is_folder(t) && strstr(uri, "://"))
        return err_set(err, ERR_FORMAT, "tier '%s': uri '%.200s' is not the path of a folder", t->name, uri);
    t->uri = strdup(uri);
    return t->uri ? 0 : err_nomem(err);
}

int tier_check(const struct tier *t, struct err *err)
{
    if (t->capacity < 0)
        return err_set(err, ERR_FORMAT, "tier '%s': the capacity is negative", t->name);
    if (!(t->read_bytes_per_s > 0) || !isfinite(t->read_bytes_per_s))
        return err_set(err, ERR_FORMAT, "tier '%s': the read bandwidth is not above 0", t->name);
    if (!(t->write_bytes_per_s > 0) || !isfinite(t->write_bytes_per_s))
        return err_set(err, ERR_FORMAT, "tier '%s': the write bandwidth is not above 0", t->name);
    if (!(t->latency_s >= 0) || !isfinite(t->latency_s))
        return err_set(err, ERR_FORMAT, "tier '%s': the latency is negative", t->name);
    return 0;
}

static int read_numbers(struct tier *t, const struct json *object, struct err *err)
{
    t->capacity = INT64_MAX;
    if (json_want_real(object, "read_bytes_per_s", &t->read_bytes_per_s, err) ||
        json_want_real(object, "write_bytes_per_s", &t->write_bytes_per_s, err) ||
        json_want_real(object, "latency_s", &t->latency_s, err) ||
        (!json_is_null(json_get(object, "capacity_bytes")) &&
         json_want_int(object, "capacity_bytes", &t->capacity, err)))
        return err_wrap(err, "tier '%s'", t->name);
    return tier_check(t, err);
}

static int read_tier(struct tier *t, const struct json *object, struct err *err)
{
    const char *name, *kind, *uri;

    if (!json_is_object(object))
        return err_set(err, ERR_FORMAT, "a tier is not an object");
    if (json_want_text(object, "name", &name, err) || tier_set_name(t, name, err))
        return err->code;
    if (json_want_text(object, "kind", &kind, err) || json_want_text(object, "uri", &uri, err))
        return err_wrap(err, "tier '%s'", t->name);
    if (!tier_kind_find(kind, &t->kind))
        return err_set(err, ERR_FORMAT, "tier '%s': kind '%.40s' is none of gpu, dram, file, redis, lmcache", t->name,
                       kind);
    if (tier_set_uri(t, uri, err))
        return err->code;
    return read_numbers(t, object, err);
}

bool tier_same_place(const struct tier *a, const struct tier *b)
{
    return a->kind == b->kind && strcmp(a->uri, b->uri) == 0;
}

/* ---- the list ------------------------------------------------------------ */

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
    return 0;
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
        return err_set(err, ERR_FORMAT, "is not a list of tiers: no \"evp\":\"tiers\"");
    if (json_want_int(root, "version", &version, err))
        return err->code;
    if (version != TIERS_VERSION)
        return err_set(err, ERR_FORMAT, "is of version %lld, this program reads %d", (long long)version, TIERS_VERSION);
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
        if (code)
            err_wrap(err, "'%s'", path);
    }
    buf_release(&text);
    return code;
}

static void put_tier(const struct tier *t, struct json_out *w)
{
    json_begin(w, NULL, '{');
    json_put_text(w, "name", t->name);
    json_put_text(w, "kind", tier_kind_name(t->kind));
    json_put_text(w, "uri", t->uri);
    if (t->capacity == INT64_MAX)
        json_put_null(w, "capacity_bytes");
    else
        json_put_int(w, "capacity_bytes", t->capacity);
    json_put_real(w, "read_bytes_per_s", t->read_bytes_per_s);
    json_put_real(w, "write_bytes_per_s", t->write_bytes_per_s);
    json_put_real(w, "latency_s", t->latency_s);
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
    for (int i = 0; i < t->n; i++)
        free(t->at[i].uri);
    free(t->at);
    *t = (struct tiers){ 0 };
}
