/* show_metrics.c - what servers have counted: the metrics files of libevicpress, added up. */
#include "show/show.h"

#include "loader/libevicpress/evp_metrics.h"

#include <math.h>

/* part / whole; NAN: nothing to divide by. */
static double share(double part, double whole)
{
    return whole > 0 ? part / whole : (double)NAN;
}

static void put_all(struct sheet *s, const struct evp_counters *all)
{
    sheet_int(s, "finds", (int64_t)all->finds);
    sheet_int(s, "hits", (int64_t)all->hits);
    sheet_real(s, "hit_share", share((double)all->hits, (double)all->finds), 3);
    sheet_int(s, "tokens_asked", (int64_t)all->tokens_asked);
    sheet_int(s, "tokens_hit", (int64_t)all->tokens_hit);
    sheet_real(s, "tokens_hit_share", share((double)all->tokens_hit, (double)all->tokens_asked), 3);
    sheet_int(s, "removes", (int64_t)all->removes);
    sheet_table(s, "errors", (const char *const[]){ "error", "calls" }, 2);
    for (int i = 1; metrics_code(i); i++) {
        if (all->errors[i] == 0)
            continue;
        sheet_text(s, NULL, metrics_code(i));
        sheet_int(s, NULL, (int64_t)all->errors[i]);
    }
    sheet_table_end(s);
}

static void put_tiers(struct sheet *s, const struct metrics *m)
{
    static const char *const column[] = { "tier",    "hits",     "tokens_hit",       "reads", "read_bytes",
                                          "time_s",  "mean_s",   "rate_bytes_per_s", "puts",  "moves",
                                          "evicted", "contexts", "placed_bytes" };

    sheet_table(s, "tiers", column, sizeof(column) / sizeof(*column));
    for (int i = 0; i < m->n; i++) {
        if (!*m->at[i].tier || *m->at[i].config)
            continue;
        const struct evp_counters t = metrics_total(m, m->at[i].tier, "");
        sheet_text(s, NULL, t.tier);
        sheet_int(s, NULL, (int64_t)t.hits);
        sheet_int(s, NULL, (int64_t)t.tokens_hit);
        sheet_int(s, NULL, (int64_t)t.reads);
        sheet_bytes(s, NULL, (int64_t)t.read_bytes);
        sheet_seconds(s, NULL, t.read_s);
        sheet_seconds(s, NULL, share(t.read_s, (double)t.reads));
        sheet_rate(s, NULL, share((double)t.read_bytes, t.read_s));
        sheet_int(s, NULL, (int64_t)t.puts);
        sheet_int(s, NULL, (int64_t)t.moves);
        sheet_int(s, NULL, (int64_t)t.evictions);
        sheet_int(s, NULL, (int64_t)t.n_placed);
        sheet_bytes(s, NULL, (int64_t)t.placed_bytes);
    }
    sheet_table_end(s);
}

static void put_configs(struct sheet *s, const struct metrics *m)
{
    sheet_table(s, "configs", (const char *const[]){ "tier", "config", "hits", "tokens_hit" }, 4);
    for (int i = 0; i < m->n; i++) {
        if (!*m->at[i].config)
            continue;
        sheet_text(s, NULL, m->at[i].tier);
        sheet_text(s, NULL, m->at[i].config);
        sheet_int(s, NULL, (int64_t)m->at[i].hits);
        sheet_int(s, NULL, (int64_t)m->at[i].tokens_hit);
    }
    sheet_table_end(s);
}

int show_metrics(struct sheet *s, const char *path, struct err *err)
{
    struct metrics m = { 0 };
    int code = metrics_read(&m, path, err);

    if (!code) {
        const struct evp_counters all = metrics_total(&m, "", "");
        put_all(s, &all);
        put_tiers(s, &m);
        put_configs(s, &m);
    }
    metrics_release(&m);
    return code;
}
