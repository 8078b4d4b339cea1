/* gain_sweep.c - LRU caches of many sizes on the same requests, what they cost, and which of them are worth it: those
 * beside which no other one is as cheap, as fast on average and as fast for the slowest twentieth. Without prices a
 * cache is cheaper if it has less of both DRAM and SSD. */
#include "base/file.h"
#include "base/parse.h"
#include "cmd/gain.h"
#include "cmd/summary.h"
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES_MAX = 64 };

static const double unit[GAIN_TIERS] = { 1, 1 << 30, 1099511627776.0 }; // of a price

struct sizes {
    int64_t at[SIZES_MAX];
    int n;
};

struct option {
    int64_t capacity[GAIN_TIERS];
    double usd;
    const struct lane *lane;
    bool best;
};

struct sweep {
    struct sizes sizes[GAIN_TIERS];
    double usd[GAIN_TIERS]; // of a unit; NAN: not given
    struct option *option;  // (n)
    struct lane *lane;      // (n)
    int n;
};

/* ---- what is asked for ------------------------------------------------------ */

/* Cuts NAME=TEXT off a list; returns the tier, or -1. */
static int next_part(const char **list, char text[64])
{
    size_t n = strcspn(*list, ",");
    const char *at = *list;

    *list += n + (at[n] == ',');
    int tier = strncmp(at, "dram=", 5) == 0 ? DRAM : strncmp(at, "ssd=", 4) == 0 ? SSD : -1;
    size_t name = tier == DRAM ? 5 : 4;
    if (tier < 0 || n - name >= 64)
        return -1;
    memcpy(text, at + name, n - name);
    text[n - name] = '\0';
    return tier;
}

static bool read_one(const char *text, int64_t *to)
{
    uint64_t bytes;

    if (!parse_size(text, &bytes) || bytes > (uint64_t)INT64_MAX / 4)
        return false;
    *to = (int64_t)bytes;
    return true;
}

/* FROM, FROM..TO in powers of two, or FROM..TO/N in N equal steps. */
static bool read_sizes(char *text, struct sizes *s)
{
    char *to = strstr(text, ".."), *slash = to ? strchr(to, '/') : NULL;
    int64_t from, end, steps;

    if (to)
        *to = '\0';
    if (slash)
        *slash = '\0';
    if (s->n > 0 || !read_one(text, &from) || (to && !read_one(to + 2, &end)))
        return false;
    if (!to) {
        s->at[s->n++] = from;
        return true;
    }
    if (slash) {
        if (!parse_int(slash + 1, &steps) || steps < 1 || steps >= SIZES_MAX || end <= from)
            return false;
        for (int i = 0; i <= steps; i++)
            s->at[s->n++] = from + (int64_t)((double)(end - from) * i / (double)steps);
        return true;
    }
    for (int64_t size = from; from > 0 && size <= end && s->n < SIZES_MAX; size *= 2)
        s->at[s->n++] = size;
    return s->n > 0;
}

static int read_sweep(struct sweep *s, const struct gain_choice *c, struct err *err)
{
    char text[64];

    for (const char *at = c->sweep; at == c->sweep || *at;) {
        const char *part = at;
        int tier = next_part(&at, text);
        if (tier < 0 || !read_sizes(text, &s->sizes[tier]))
            return err_set(
                err, ERR_USAGE,
                "--sweep '%.60s': sizes are dram=64G..1T, in powers of two, or ssd=0..16T/8, in equal steps; "
                "each once, at most %d",
                part, SIZES_MAX);
    }
    return 0;
}

static int read_price(struct sweep *s, const struct gain_choice *c, struct err *err)
{
    const char *price = c->price;
    char text[64];

    s->usd[DRAM] = s->usd[SSD] = (double)NAN;
    for (const char *at = price ? price : ""; *at;) {
        const char *part = at;
        int tier = next_part(&at, text);
        if (tier < 0 || !parse_real(text, &s->usd[tier]) || !(s->usd[tier] >= 0 && s->usd[tier] <= 1e9))
            return err_set(err, ERR_USAGE, "--price '%.60s': prices are dram=USD of a GiB, ssd=USD of a TiB", part);
    }
    for (int t = DRAM; t <= SSD && price; t++) {
        const struct sizes *sizes = &s->sizes[t];
        uint64_t most = sizes->n ? (uint64_t)sizes->at[sizes->n - 1] : t == DRAM ? c->dram : c->ssd;
        if (isnan(s->usd[t]) && most > 0)
            return err_set(err, ERR_USAGE, "--price lacks %s", t == DRAM ? "dram" : "ssd");
        s->usd[t] = isnan(s->usd[t]) ? 0 : s->usd[t];
    }
    return 0;
}

/* ---- which are worth it ------------------------------------------------------ */

static bool as_good(const struct option *a, const struct option *b)
{
    bool as_cheap = isnan(a->usd) ? a->capacity[DRAM] <= b->capacity[DRAM] && a->capacity[SSD] <= b->capacity[SSD]
                                  : a->usd <= b->usd;

    return as_cheap && a->lane->outcome.ttft_mean_s <= b->lane->outcome.ttft_mean_s &&
           a->lane->outcome.ttft_s[1] <= b->lane->outcome.ttft_s[1];
}

static int by_price(const void *a, const void *b)
{
    const struct option *x = a, *y = b;

    if (x->usd != y->usd && !isnan(x->usd))
        return x->usd < y->usd ? -1 : 1;
    for (int t = DRAM; t <= SSD; t++)
        if (x->capacity[t] != y->capacity[t])
            return x->capacity[t] < y->capacity[t] ? -1 : 1;
    return 0;
}

/* Of equal ones the first is best. */
static void choose(struct sweep *s)
{
    qsort(s->option, (size_t)s->n, sizeof(*s->option), by_price);
    for (int i = 0; i < s->n; i++) {
        s->option[i].best = true;
        for (int k = 0; k < s->n && s->option[i].best; k++)
            s->option[i].best =
                k == i || !as_good(&s->option[k], &s->option[i]) || (k > i && as_good(&s->option[i], &s->option[k]));
    }
}

static int run(struct sweep *s, const struct gain *g, struct err *err)
{
    const struct sizes *dram = &s->sizes[DRAM], *ssd = &s->sizes[SSD];

    for (int t = DRAM; t <= SSD; t++)
        if (s->sizes[t].n == 0)
            s->sizes[t] = (struct sizes){ { g->capacity[t] }, 1 };
    int n = dram->n * ssd->n;
    const char **policy = calloc((size_t)n, sizeof(*policy));

    s->option = calloc((size_t)n, sizeof(*s->option));
    s->lane = calloc((size_t)n, sizeof(*s->lane));
    int code = policy && s->option && s->lane ? 0 : err_nomem(err);
    for (int i = 0; i < n && !code; i++) {
        struct option *o = &s->option[i];
        *o = (struct option){ { g->capacity[HBM], dram->at[i / ssd->n], ssd->at[i % ssd->n] }, .lane = &s->lane[i] };
        for (int t = DRAM; t <= SSD; t++)
            o->usd += (double)o->capacity[t] / unit[t] * s->usd[t];
        s->lane[i] = (struct lane){ .world = &g->world,
                                    .at = g->at,
                                    .capacity = o->capacity,
                                    .n_gpus = g->n_gpus,
                                    .alone = g->lane[GAIN_HBM].alone };
        policy[i] = "lru";
    }
    if (!code)
        code = gain_run_lanes(s->lane, policy, n, err);
    s->n = n;
    free(policy);
    return code;
}

/* ---- the result -------------------------------------------------------------- */

static void put_options(struct sheet *sheet, const struct gain *g, const struct sweep *s, const char *name, bool best)
{
    static const char *const columns[] = {
        "usd",    "dram_bytes", "ssd_bytes", "computed",     "saved_s",
        "ttft_s", "ttft_p95_s", "busiest",   "busiest_busy", "writes_dropped_bytes"
    };

    sheet_table(sheet, name, columns, sizeof(columns) / sizeof(*columns));
    for (int i = 0; i < s->n; i++) {
        const struct option *o = &s->option[i];
        double busy;
        if (best && !o->best)
            continue;
        const char *busiest = lane_busiest(o->lane, &busy);
        sheet_real(sheet, NULL, o->usd, 2);
        sheet_bytes(sheet, NULL, o->capacity[DRAM]);
        sheet_bytes(sheet, NULL, o->capacity[SSD]);
        sheet_real(sheet, NULL, 1 - gain_found(o->lane), 3);
        sheet_seconds(sheet, NULL, g->lane[GAIN_HBM].sim.gpu_busy_s - o->lane->sim.gpu_busy_s);
        sheet_seconds(sheet, NULL, o->lane->outcome.ttft_mean_s);
        sheet_seconds(sheet, NULL, o->lane->outcome.ttft_s[1]);
        sheet_text(sheet, NULL, o->lane->alone ? NULL : busiest);
        sheet_real(sheet, NULL, o->lane->alone ? (double)NAN : busy, 3);
        sheet_bytes(sheet, NULL, (int64_t)fmin(o->lane->dropped, 9e18));
    }
    sheet_table_end(sheet);
}

static int print(const struct sweep *s, const struct gain *g, char **path, int n, struct err *err)
{
    struct sheet sheet = { 0 };
    int best = 0;

    for (int i = 0; i < s->n; i++)
        best += s->option[i].best;
    gain_begin(&sheet, path, n);
    gain_put_facts(&sheet, g);
    sheet_int(&sheet, "n_sizes", s->n);
    sheet_int(&sheet, "n_best", best);
    sheet_seconds(&sheet, "ttft_with_gpu_memory_alone_s", g->lane[GAIN_HBM].outcome.ttft_mean_s);
    put_options(&sheet, g, s, "best", true);
    if (g->c->json)
        put_options(&sheet, g, s, "sizes", false);
    summary_int("sizes", s->n);
    summary_int("best", best);
    return gain_end(&sheet, g, err);
}

static int draw(const struct sweep *s, const char *path, struct err *err)
{
    struct report_size *at = calloc((size_t)s->n, sizeof(*at));
    char dram[TEXT_SHORT], ssd[TEXT_SHORT];
    struct buf svg = { 0 };

    if (!at)
        return err_nomem(err);
    for (int i = 0; i < s->n; i++) {
        const struct option *o = &s->option[i];
        snprintf(at[i].name, sizeof(at[i].name), "DRAM %s, SSD %s", text_bytes(dram, (double)o->capacity[DRAM]),
                 text_bytes(ssd, (double)o->capacity[SSD]));
        at[i].usd = o->usd;
        at[i].ttft_s = o->lane->outcome.ttft_mean_s;
        at[i].p95_s = o->lane->outcome.ttft_s[1];
        at[i].best = o->best;
    }
    int code = report_sizes_svg(at, s->n, &svg, err);
    if (!code)
        code = file_write(path, svg.at, svg.n, err);
    free(at);
    buf_release(&svg);
    return code;
}

static int read(struct sweep *s, const struct gain_choice *c, struct err *err)
{
    *s = (struct sweep){ 0 };
    if (!c->sweep && (c->price || c->picture))
        return err_set(err, ERR_USAGE, "--%s is for --sweep", c->price ? "price" : "picture");
    if (c->picture && !c->price)
        return err_set(err, ERR_USAGE, "--picture needs --price");
    return c->sweep && read_sweep(s, c, err) ? err->code : read_price(s, c, err);
}

int gain_sweep_check(const struct gain_choice *c, struct err *err)
{
    struct sweep s;

    return read(&s, c, err);
}

int gain_sweep(const struct gain *g, char **path, int n, struct err *err)
{
    struct sweep s;
    int code = read(&s, g->c, err);

    if (!code && !run(&s, g, err)) {
        choose(&s);
        code = print(&s, g, path, n, err);
        if (!code && g->c->picture)
            code = draw(&s, g->c->picture, err);
    } else if (!code)
        code = err->code;
    free(s.option);
    free(s.lane);
    return code;
}
