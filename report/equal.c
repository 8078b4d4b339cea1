/* equal.c - a replay read at one quality: the TTFT of each kind of policy there, and the highest rate that keeps a
 * given TTFT.
 *
 * Two policies of a kind, each for a share of the requests, have the means on the line between theirs. So a kind brings
 * what the lower convex hull of its points (quality, TTFT) says, and less quality costs no more TTFT. With queues the
 * line is an estimate. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_MAX = 256, ROWS_MAX = 4096 };

struct point {
    char kind[KIND_MAX];
    double rate, quality, ttft_s;
};

/* The points of one kind at one rate, of which the first n_hull are its hull, by quality. */
struct group {
    struct point *at;
    int n, n_hull;
};

/* A policy's name without the parameters of its config and without a manifest's file name: lru+snapkv+kivi of
 * lru+snapkv:drop=0.5+kivi:bits=4, manifest=sweep/ of manifest=sweep/a.jsonl. */
static void set_kind(struct point *p, const char *policy)
{
    const char *slash = strrchr(policy, '/'), *plus = strchr(policy, '+');
    size_t n = 0;

    if (strncmp(policy, "manifest=", strlen("manifest=")) == 0) {
        n = slash ? (size_t)(slash - policy) + 1 : strlen("manifest=");
        n = n < KIND_MAX ? n : KIND_MAX - 1;
        memcpy(p->kind, policy, n);
    } else {
        for (const char *at = policy; *at && n + 1 < KIND_MAX; at++) {
            if (plus && at > plus && *at == ':')
                at += strcspn(at, "+") - 1;
            else
                p->kind[n++] = *at;
        }
    }
    p->kind[n] = '\0';
}

static int compare(double a, double b)
{
    return (a > b) - (a < b);
}

static int by_group(const void *a, const void *b)
{
    const struct point *p = a, *q = b;
    int order = compare(p->rate, q->rate);

    order = order ? order : strcmp(p->kind, q->kind);
    order = order ? order : compare(p->quality, q->quality);
    return order ? order : compare(p->ttft_s, q->ttft_s);
}

/* Is c to the right of, or on, the line from a through b? */
static bool turns_right(const struct point *a, const struct point *b, const struct point *c)
{
    return (b->quality - a->quality) * (c->ttft_s - a->ttft_s) <= (b->ttft_s - a->ttft_s) * (c->quality - a->quality);
}

/* Moves the hull's points to the front (Andrew's monotone chain); what lies left of the lowest one is not needed. */
static void find_hull(struct group *g)
{
    int lowest = 0;

    for (int i = 0; i < g->n; i++) {
        while (g->n_hull > 1 && turns_right(&g->at[g->n_hull - 2], &g->at[g->n_hull - 1], &g->at[i]))
            g->n_hull--;
        g->at[g->n_hull++] = g->at[i];
    }
    for (int i = 1; i < g->n_hull; i++)
        if (g->at[i].ttft_s <= g->at[lowest].ttft_s)
            lowest = i;
    g->at += lowest;
    g->n_hull -= lowest;
}

/* NAN: none of the kind has so high a quality. */
static double ttft_at(const struct group *g, double quality)
{
    int i = 0;

    while (i < g->n_hull && g->at[i].quality < quality)
        i++;
    if (i == g->n_hull)
        return (double)NAN;
    if (i == 0)
        return g->at[0].ttft_s;
    const struct point *a = &g->at[i - 1], *b = &g->at[i];
    return a->ttft_s + (b->ttft_s - a->ttft_s) * (quality - a->quality) / (b->quality - a->quality);
}

static double lowest_of(const struct group *g, int n, double rate, double quality)
{
    double lowest = (double)NAN;

    for (int i = 0; i < n; i++)
        if (g[i].at->rate == rate)
            lowest = fmin(lowest, ttft_at(&g[i], quality));
    return lowest;
}

/* NAN: at none. */
static double highest_rate(const struct group *g, int n, const char *kind, double quality, double max_s)
{
    double highest = (double)NAN;

    for (int i = 0; i < n; i++)
        if (strcmp(g[i].at->kind, kind) == 0 && ttft_at(&g[i], quality) <= max_s)
            highest = fmax(highest, g[i].at->rate);
    return highest;
}

static void put_number(struct buf *out, double v)
{
    if (isfinite(v))
        buf_printf(out, "\t%.6g", v);
    else
        buf_adds(out, "\t-");
}

static void put_groups(struct buf *out, const struct group *g, int n, double quality, double max_s)
{
    double lowest = (double)NAN;

    for (int i = 0; i < n; i++) {
        double ttft_s = ttft_at(&g[i], quality);
        if (i == 0 || g[i].at->rate != g[i - 1].at->rate)
            lowest = lowest_of(g, n, g[i].at->rate, quality);
        buf_printf(out, "%.6g", quality);
        put_number(out, g[i].at->rate);
        buf_printf(out, "\t%s\t%d", g[i].at->kind, g[i].n);
        put_number(out, ttft_s);
        put_number(out, ttft_s / lowest);
        put_number(out, highest_rate(g, n, g[i].at->kind, quality, max_s));
        buf_addc(out, '\n');
    }
}

/* The known points of the table, in groups; at and g have space for all rows. */
static int make_groups(const struct tsv *replay, struct point *at, struct group *g)
{
    int n = 0, n_groups = 0;

    for (int i = 0; i < replay->n; i++) {
        at[n] = (struct point){ .rate = tsv_named(replay, i, "rate"),
                                .quality = tsv_named(replay, i, "quality"),
                                .ttft_s = tsv_named(replay, i, "ttft_mean_s") };
        set_kind(&at[n], replay->name[i]);
        n += isfinite(at[n].rate) && isfinite(at[n].quality) && isfinite(at[n].ttft_s);
    }
    qsort(at, (size_t)n, sizeof(*at), by_group);
    for (int i = 0; i < n; i++) {
        if (i == 0 || at[i].rate != at[i - 1].rate || strcmp(at[i].kind, at[i - 1].kind) != 0)
            g[n_groups++] = (struct group){ .at = &at[i] };
        g[n_groups - 1].n++;
    }
    for (int i = 0; i < n_groups; i++)
        find_hull(&g[i]);
    return n_groups;
}

int report_at_quality(const struct tsv *replay, const struct report_at *at, struct buf *out, struct err *err)
{
    if (replay->n > ROWS_MAX)
        return err_set(err, ERR_FORMAT, "a replay of %d lines; at most %d are compared", replay->n, ROWS_MAX);
    size_t rows = (size_t)replay->n + 1;
    struct point *points = calloc(rows, sizeof(*points));
    struct group *g = calloc(rows, sizeof(*g));

    if (points && g) {
        int n_groups = make_groups(replay, points, g);
        buf_adds(out, "at_quality\trate\tpolicy\tpoints\tttft_mean_s\tof_lowest\thighest_rate\n");
        for (int i = 0; i < at->n; i++)
            put_groups(out, g, n_groups, at->quality[i], at->max_s);
    }
    bool failed = !points || !g || buf_failed(out);
    free(points);
    free(g);
    return failed ? err_nomem(err) : 0;
}
