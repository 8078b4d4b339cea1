/* tier_text.c - KEY=VALUE pairs of a tier, each taken once. */
#include "formats/tier_text.h"

#include "base/opt.h"
#include "base/parse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_NAME,
    KEY_URI,
    KEY_CAPACITY,
    KEY_KIND,
    KEY_READ,
    KEY_WRITE,
    KEY_LATENCY,
    KEY_POOL,
    KEY_CONFIGS,
    KEY_STATE,
    KEY_ACCESS,
    N_KEYS
};
static const char *const key_name[N_KEYS] = { "name",    "uri",  "capacity", "kind",  "read",  "write",
                                              "latency", "pool", "configs",  "state", "access" };

struct pairs {
    char *value[N_KEYS]; // NULL: not given
    struct err *err;
};

/* Trims the blanks at both ends of n bytes. */
static void trim(const char **at, size_t *n)
{
    while (*n > 0 && isspace((unsigned char)**at)) {
        ++*at;
        --*n;
    }
    while (*n > 0 && isspace((unsigned char)(*at)[*n - 1]))
        --*n;
}

/* "2 GB" becomes "2GB". */
static void remove_blanks(char *text)
{
    char *to = text;

    for (; *text; text++)
        if (!isspace((unsigned char)*text))
            *to++ = *text;
    *to = '\0';
}

static int take_pair(void *arg, const char *pair, size_t n)
{
    struct pairs *p = arg;
    const char *equals = memchr(pair, '=', n), *key = pair, *value = equals ? equals + 1 : NULL;
    size_t length = equals ? (size_t)(equals - pair) : n, value_length = equals ? n - length - 1 : 0;

    trim(&key, &length);
    trim(&value, &value_length);

    for (int k = 0; k < N_KEYS; k++) {
        if (!equals || strlen(key_name[k]) != length || memcmp(key_name[k], key, length) != 0)
            continue;
        if (p->value[k])
            return err_set(p->err, ERR_USAGE, "%s= is given twice", key_name[k]);
        p->value[k] = strndup(value, value_length);
        if (!p->value[k])
            return err_nomem(p->err);
        if (k == KEY_CAPACITY || k == KEY_READ || k == KEY_WRITE || k == KEY_LATENCY)
            remove_blanks(p->value[k]);
        return 0;
    }
    err_set(p->err, ERR_USAGE,
            "'%.*s' is not one of name=, uri=, capacity=, kind=, read=, write=, latency=, pool=, configs=, state=, "
            "access=",
            (int)n, pair);
    const char *path = equals ? value : key;
    return *path == '/' ? err_add(p->err, "; did you mean uri=%.*s?", (int)(pair + n - path), path) : ERR_USAGE;
}

static int to_bytes(const struct pairs *p, int key, uint64_t *out, struct err *err)
{
    if (p->value[key] && !parse_size(p->value[key], out))
        return err_set(err, ERR_USAGE, "'%s=%s' is not a size (digits, then K, M, G or T)", key_name[key],
                       p->value[key]);
    return 0;
}

static int take_capacity(struct tier_text *out, const struct pairs *p, struct err *err)
{
    const char *text = p->value[KEY_CAPACITY];
    uint64_t bytes = INT64_MAX;

    out->tier.capacity = INT64_MAX;
    if (!text || !*text || text[strlen(text) - 1] != '%') {
        if (to_bytes(p, KEY_CAPACITY, &bytes, err))
            return err->code;
        out->tier.capacity = (int64_t)bytes;
        return 0;
    }
    if (parse_fraction(text, &out->share) && out->share > 0 && out->share <= 1)
        return 0;
    return err_set(err, ERR_USAGE, "'capacity=%s' is not above 0 %% and at most 100 %% of the free space", text);
}

static int take_numbers(struct tier_text *out, const struct pairs *p, struct err *err)
{
    const char *latency = p->value[KEY_LATENCY];
    uint64_t read = 0, write = 0;

    if (to_bytes(p, KEY_READ, &read, err) || to_bytes(p, KEY_WRITE, &write, err))
        return err->code;
    if (latency && !parse_seconds(latency, &out->tier.latency_s))
        return err_set(err, ERR_USAGE, "'latency=%s' is not a number of seconds, or of ms, us or ns", latency);
    out->tier.read_bytes_per_s = (double)read;
    out->tier.write_bytes_per_s = (double)write;
    out->read = p->value[KEY_READ];
    out->write = p->value[KEY_WRITE];
    out->latency = latency;
    return 0;
}

/* Adds the names in configs=, separated by slashes. */
static int add_configs(struct tier *t, const char *list, struct err *err)
{
    while (*list) {
        char name[128];
        size_t n = strcspn(list, "/");
        if (n >= sizeof(name))
            return err_set(err, ERR_USAGE, "a name in 'configs=' is longer than %zu bytes", sizeof(name) - 1);
        memcpy(name, list, n);
        name[n] = '\0';
        if (tier_add_config(t, name, err))
            return err->code;
        list += n + (list[n] == '/');
    }
    return 0;
}

static int take_values(struct tier_text *out, const struct pairs *p, struct err *err)
{
    struct tier *t = &out->tier;

    if (!p->value[KEY_NAME] || !p->value[KEY_URI])
        return err_set(err, ERR_USAGE, "%s= is missing", p->value[KEY_NAME] ? "uri" : "name");
    t->kind = tier_kind_of(p->value[KEY_URI]);
    out->kind = p->value[KEY_KIND];
    if (out->kind && !tier_kind_find(p->value[KEY_KIND], &t->kind))
        return err_set(err, ERR_USAGE, "'kind=%s' is not one of gpu, dram, file, redis, lmcache", p->value[KEY_KIND]);
    if (tier_set_name(t, p->value[KEY_NAME], err) || tier_set_uri(t, p->value[KEY_URI], err) ||
        take_capacity(out, p, err) || take_numbers(out, p, err) ||
        (p->value[KEY_POOL] && tier_set_pool(t, p->value[KEY_POOL], err)) ||
        (p->value[KEY_CONFIGS] && add_configs(t, p->value[KEY_CONFIGS], err)) ||
        (p->value[KEY_STATE] && tier_set_state(t, p->value[KEY_STATE], err)) ||
        (p->value[KEY_ACCESS] && tier_set_access(t, p->value[KEY_ACCESS], err)))
        return err->code;
    return 0;
}

int tier_text_read(struct tier_text *out, const char *text, struct err *err)
{
    struct pairs p = { .err = err };

    *out = (struct tier_text){ 0 };
    int code = opt_split(text, take_pair, &p);
    if (!code)
        code = take_values(out, &p, err);
    for (int k = 0; k < N_KEYS; k++)
        free(p.value[k]);
    if (code == ERR_FORMAT) // the text comes from a command line, not from a file
        code = err->code = ERR_USAGE;
    return code;
}
