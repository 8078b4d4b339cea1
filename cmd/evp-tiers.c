/* evp-tiers - measures storage tiers and writes tiers.json.
 *
 * A tier is given as name=...,uri=...; numbers that are not given are measured in its folder. Only folders are measured
 * here: a GPU, Redis and LMCache have tools of their own, and the numbers of those are given.
 */
#include "base/file.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/parse.h"
#include "loader/store/probe.h"
#include "loader/formats/tiers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    struct opt_list tier;
    uint64_t probe;
    const char *output;
    struct opt_common common;
} cfg = { .probe = 32 << 20 };

static const struct opt opts[] = {
    OPT_MANY(
        0, "tier", &cfg.tier, "KEY=VALUE,...",
        "a tier, fast ones first: name=, uri= (a folder, or redis://...), capacity= (none: unlimited), kind=; read=, "
        "write= (bytes per second) and latency= (seconds) are measured when not given; may be repeated"),
    OPT_BYTES(0, "probe", &cfg.probe, "write and read back a file of this size"),
    OPT_OUTPUT(&cfg.output, "FILE"),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-tiers",
    .summary = "measure storage tiers and write tiers.json",
    .operands = "",
    .opts = opts,
    .common = &cfg.common,
    .about =
        "Sizes take K, M, G, T (powers of 1024). The kind is gpu, dram, file, redis or lmcache; a folder in memory is "
        "dram, another folder is file. Folders whose parent exists are made for measuring and removed again. "
        "gpu, redis and lmcache are not measured: give read=, write= and latency=. tiers.json goes to standard output "
        "unless --output is given.",
    .examples = "  evp-tiers --tier name=dram,uri=/dev/shm/evp,capacity=2G >tiers.json\n"
                "  evp-tiers --tier name=far,uri=redis://a:1,read=1G,write=1G,latency=0.002\n",
};

/* ---- a --tier ------------------------------------------------------------ */

enum { KEY_NAME, KEY_URI, KEY_CAPACITY, KEY_KIND, KEY_READ, KEY_WRITE, KEY_LATENCY, N_KEYS };
static const char *const key_name[N_KEYS] = { "name", "uri", "capacity", "kind", "read", "write", "latency" };

struct spec {
    char *value[N_KEYS]; // NULL: not given
    struct err *err;
};

static int take_pair(void *arg, const char *pair, size_t n)
{
    struct spec *s = arg;
    const char *equals = memchr(pair, '=', n);
    size_t length = equals ? (size_t)(equals - pair) : n;

    for (int k = 0; k < N_KEYS; k++) {
        if (!equals || strlen(key_name[k]) != length || memcmp(key_name[k], pair, length) != 0)
            continue;
        if (s->value[k])
            return err_set(s->err, ERR_USAGE, "%s= is given twice", key_name[k]);
        s->value[k] = strndup(equals + 1, n - length - 1);
        return s->value[k] ? 0 : err_nomem(s->err);
    }
    return err_set(s->err, ERR_USAGE,
                   "'%.*s' is none of name=, uri=, capacity=, kind=, read=, write=, latency=", (int)n, pair);
}

static int to_bytes(const struct spec *s, int key, uint64_t *out, struct err *err)
{
    if (s->value[key] && !parse_size(s->value[key], out))
        return err_set(err, ERR_USAGE, "'%s=%s' is not a size (digits, then K, M, G or T)", key_name[key],
                       s->value[key]);
    return 0;
}

static int to_numbers(struct tier *t, const struct spec *s, struct err *err)
{
    uint64_t capacity = INT64_MAX, read = 0, write = 0;

    if (to_bytes(s, KEY_CAPACITY, &capacity, err) || to_bytes(s, KEY_READ, &read, err) ||
        to_bytes(s, KEY_WRITE, &write, err))
        return err->code;
    if (s->value[KEY_LATENCY] && !parse_real(s->value[KEY_LATENCY], &t->latency_s))
        return err_set(err, ERR_USAGE, "'latency=%s' is not a number of seconds", s->value[KEY_LATENCY]);
    t->capacity = (int64_t)capacity;
    t->read_bytes_per_s = (double)read;
    t->write_bytes_per_s = (double)write;
    return 0;
}

/* Makes the folder if only its parent exists. *made: the caller removes it again. */
static int enter_folder(const char *path, bool *made, struct err *err)
{
    *made = mkdir(path, 0777) == 0;
    if (!*made && errno != EEXIST)
        return err_set(err, ERR_IO, "cannot make folder '%s': %s", path, strerror(errno));
    return file_is_dir(path) ? 0 : err_set(err, ERR_IO, "'%s' is not a folder", path);
}

static void warn_of(const struct tier *t, const struct folder *folder, const struct probe *p)
{
    char capacity[TEXT_SHORT], left[TEXT_SHORT];

    if (t->capacity != INT64_MAX && (uint64_t)t->capacity > folder->free_bytes)
        log_warn("tier '%s' has a capacity of %s, but '%s' has only %s free", t->name,
                 text_bytes(capacity, (double)t->capacity), t->uri, text_bytes(left, (double)folder->free_bytes));
    if (p->cached > 0.05)
        log_warn(
            "tier '%s': %.0f %% of the test file stayed in memory, so the read bandwidth is partly that of memory; "
            "give read= and latency=",
            t->name, 100 * p->cached);
}

static int measure_folder(struct tier *t, const struct spec *s, struct err *err)
{
    bool by_hand = s->value[KEY_READ] && s->value[KEY_WRITE] && s->value[KEY_LATENCY], made;
    struct folder folder;
    struct probe p = { 0 };

    if (enter_folder(t->uri, &made, err))
        return err->code;
    int code = probe_look(&folder, t->uri, err);
    if (!code && !by_hand)
        code = probe_run(&p, t->uri, cfg.probe, err);
    if (made)
        rmdir(t->uri);
    if (code)
        return code;
    if (!s->value[KEY_KIND])
        t->kind = folder.in_memory ? TIER_DRAM : TIER_FILE;
    if (!s->value[KEY_READ])
        t->read_bytes_per_s = p.read_bytes_per_s;
    if (!s->value[KEY_WRITE])
        t->write_bytes_per_s = p.write_bytes_per_s;
    if (!s->value[KEY_LATENCY])
        t->latency_s = p.latency_s;
    warn_of(t, &folder, &p);
    return 0;
}

static int tier_from_spec(struct tier *t, const struct spec *s, struct err *err)
{
    if (!s->value[KEY_NAME] || !s->value[KEY_URI])
        return err_set(err, ERR_USAGE, "%s= is missing", s->value[KEY_NAME] ? "uri" : "name");
    t->kind = strncmp(s->value[KEY_URI], "redis://", 8) == 0 ? TIER_REDIS : TIER_FILE;
    if (s->value[KEY_KIND] && !tier_kind_find(s->value[KEY_KIND], &t->kind))
        return err_set(err, ERR_USAGE, "'kind=%s' is none of gpu, dram, file, redis, lmcache", s->value[KEY_KIND]);
    if (tier_set_name(t, s->value[KEY_NAME], err) || tier_set_uri(t, s->value[KEY_URI], err) || to_numbers(t, s, err))
        return err->code;
    if (tier_is_folder(t))
        return measure_folder(t, s, err);
    if (!s->value[KEY_READ] || !s->value[KEY_WRITE] || !s->value[KEY_LATENCY])
        return err_set(err, ERR_USAGE, "a tier of kind %s cannot be measured here: give read=, write= and latency=",
                       tier_kind_name(t->kind));
    return 0;
}

static int take_tier(struct tiers *tiers, const char *text, struct err *err)
{
    struct tier *t = &tiers->at[tiers->n++];
    struct spec s = { .err = err };

    int code = opt_split(text, take_pair, &s);
    if (!code)
        code = tier_from_spec(t, &s, err);
    if (!code)
        code = tier_check(t, err);
    if (!code && tiers_find(tiers, t->name) != tiers->n - 1)
        code = err_set(err, ERR_USAGE, "another tier has the same name");
    for (int k = 0; k < N_KEYS; k++)
        free(s.value[k]);
    if (!code)
        return 0;
    if (code == ERR_FORMAT) // what would be a malformed file is a wrong command line here
        err->code = ERR_USAGE;
    return err_wrap(err, "--tier '%s'", text);
}

/* ---- the result ---------------------------------------------------------- */

static void show(const struct tiers *tiers)
{
    char capacity[TEXT_SHORT], reads[TEXT_SHORT], writes[TEXT_SHORT], latency[TEXT_SHORT];

    log_info("%-12s %-8s %12s %14s %14s %10s", "tier", "kind", "capacity", "read", "write", "latency");
    for (int i = 0; i < tiers->n; i++) {
        const struct tier *t = &tiers->at[i];
        log_info("%-12s %-8s %12s %12s/s %12s/s %10s", t->name, tier_kind_name(t->kind),
                 t->capacity == INT64_MAX ? "unlimited" : text_bytes(capacity, (double)t->capacity),
                 text_bytes(reads, t->read_bytes_per_s), text_bytes(writes, t->write_bytes_per_s),
                 text_seconds(latency, t->latency_s));
        if (i > 0 && t->read_bytes_per_s > 1.5 * t[-1].read_bytes_per_s)
            log_warn("tier '%s' reads faster than '%s' before it: list fast tiers first", t->name, t[-1].name);
    }
}

static int write_tiers(const struct tiers *tiers, struct err *err)
{
    struct buf text = { 0 };
    int code = 0;

    tiers_write(tiers, &text);
    buf_addc(&text, '\n');
    if (buf_failed(&text))
        code = err_nomem(err);
    else if (cfg.output)
        code = file_write(cfg.output, text.at, text.n, err);
    else
        fwrite(text.at, 1, text.n, stdout);
    buf_release(&text);
    return code;
}

static int run(struct err *err)
{
    struct tiers tiers = { 0 };
    int code = 0;

    if (cfg.tier.n == 0)
        return err_set(err, ERR_USAGE, "no tier is given: add --tier name=NAME,uri=FOLDER");
    if (cfg.tier.n > TIER_MAX)
        return err_set(err, ERR_USAGE, "%d tiers are given, and %d is the maximum", cfg.tier.n, TIER_MAX);
    tiers.at = calloc((size_t)cfg.tier.n, sizeof(*tiers.at));
    if (!tiers.at)
        return err_nomem(err);
    for (int i = 0; i < cfg.tier.n && !code; i++)
        code = take_tier(&tiers, cfg.tier.at[i], err);
    if (!code) {
        show(&tiers);
        code = write_tiers(&tiers, err);
    }
    tiers_release(&tiers);
    return code;
}

int main(int argc, char **argv)
{
    struct err err;
    int first, status = opt_parse(&tool, argc, argv, &first);

    if (status != OPT_RUN)
        return status;
    return opt_finish(run(&err) ? log_failure(&err) : 0);
}
