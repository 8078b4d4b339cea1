/* configs.c - one line per config, the best quality first, and what the numbers mean. */
#include "base/map.h"
#include "report/report_internal.h"

#include "profiler/score/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int *report_uses(const struct report *r, struct err *err)
{
    const struct table *t = r->table;
    int *uses = calloc((size_t)t->n_configs + 1, sizeof(*uses));
    struct map names = { 0 };
    int code = uses ? 0 : err_nomem(err);

    for (int v = 0; v < t->n_configs && !code; v++)
        if (map_add(&names, t->config_name[v], strlen(t->config_name[v]), NULL) == MAP_NOMEM)
            code = err_nomem(err);
    for (int i = 0; r->manifest && i < r->manifest->n && !code; i++) {
        const struct placement *p = &r->manifest->at[i];
        int v = p->tier >= 0 ? map_find(&names, p->config, strlen(p->config)) : MAP_ABSENT;
        if (v >= 0)
            uses[v]++;
    }
    map_release(&names);
    if (code) {
        free(uses);
        return NULL;
    }
    return uses;
}

struct ranked {
    int config;
    double quality;
};

static int by_quality(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    double qx = isnan(x->quality) ? -1 : x->quality, qy = isnan(y->quality) ? -1 : y->quality;

    if (qx != qy)
        return qx < qy ? 1 : -1;
    return x->config - y->config;
}

/* What all rows of the table share. */
struct columns {
    struct html_unit unit; // of decompression
    bool gold;
    int *uses; // (V)
};

static void put_head(struct buf *out, const struct report *r, const struct columns *columns)
{
    html_table(out, "Configs");
    buf_adds(out, "<caption>Means over contexts, the best quality first</caption>\n<thead><tr><th scope=\"col\">config"
                  "<th scope=\"col\" class=\"n\">size,&nbsp;%<th scope=\"col\" class=\"n\">quality, training"
                  "<th scope=\"col\" class=\"n\">quality, held out<th scope=\"col\" class=\"n\">contexts held out");
    if (columns->gold)
        buf_adds(out, "<th scope=\"col\" class=\"n\">gold");
    buf_printf(out, "<th scope=\"col\" class=\"n\">decompression,&nbsp;%s", columns->unit.name);
    if (r->manifest)
        buf_adds(out, "<th scope=\"col\" class=\"n\">in this plan");
    buf_adds(out, "\n<tbody>\n");
}

static void put_row(struct buf *out, const struct report *r, int v, const struct columns *columns)
{
    const struct table *t = r->table;
    int uses = columns->uses[v], tested = 0;

    for (int c = 0; c < t->n_contexts; c++)
        tested += t->quality_test && !isnan(t->quality_test[table_cell(t, c, v)]);
    buf_adds(out, uses ? "<tr class=\"chosen\"><th scope=\"row\">" : "<tr><th scope=\"row\">");
    html_text(out, t->config_name[v]);
    html_cell(out, 100 * table_mean(t, t->size_frac, v), 1);
    html_cell_error(out, table_mean(t, t->quality_train, v), score_error(t, SPLIT_TRAIN, v));
    html_cell_error(out, table_mean(t, t->quality_test, v), score_error(t, SPLIT_TEST, v));
    buf_printf(out, "<td class=\"n\">%d of %d", tested, t->n_contexts);
    if (columns->gold)
        html_cell(out, table_mean(t, t->gold_mean, v), 3);
    html_cell_unit(out, table_mean(t, t->decompress_s, v), &columns->unit);
    if (r->manifest)
        buf_printf(out, "<td class=\"n\">%d", uses);
    buf_addc(out, '\n');
}

static void put_scale(struct buf *out, const struct table *t, bool gold)
{
    double unrelated = score_unrelated(t), same = score_same_meaning(t);
    struct score_resolution r = score_resolve(t, SPLIT_TEST);

    buf_adds(out,
             "<p class=\"note\">Quality: mean similarity to the answers of the whole cache; 1: the same answers. It "
             "hardly notices a wrong date, name or number.");
    if (!isnan(unrelated))
        buf_printf(out, " Unrelated answers, to other questions about the same context, score %.3f.", unrelated);
    if (!isnan(same))
        buf_printf(out, " The whole cache, asked again at temperature %g, scores %.3f against its own first answers.",
                   t->temperature, same);
    if (r.pairs > 2 * r.told)
        buf_printf(out,
                   " The held-out questions are too few to tell the configs apart: of %d pairs %d differ by less than "
                   "two standard errors.",
                   r.pairs, r.pairs - r.told);
    if (gold)
        buf_adds(out, " Gold is the score with the datasets' own answers and metrics.");
    buf_adds(out, " &plusmn;: standard error over contexts.\n");
}

int report_configs(struct buf *out, const struct report *r, struct err *err)
{
    const struct table *t = r->table;
    struct ranked *at = calloc((size_t)t->n_configs + 1, sizeof(*at));
    struct columns columns = { .uses = report_uses(r, err) };
    double slowest = 0;

    if (!at || !columns.uses) {
        free(at);
        free(columns.uses);
        return err_nomem(err);
    }
    for (int v = 0; v < t->n_configs; v++) {
        at[v] = (struct ranked){ v, table_mean(t, t->quality_train, v) };
        slowest = fmax(slowest, table_mean(t, t->decompress_s, v));
        columns.gold |= !isnan(table_mean(t, t->gold_mean, v));
    }
    qsort(at, (size_t)t->n_configs, sizeof(*at), by_quality);
    columns.unit = html_seconds_unit(slowest);
    buf_adds(out, "<section>\n<h2 id=\"configs\">Configs</h2>\n");
    put_head(out, r, &columns);
    for (int i = 0; i < t->n_configs; i++)
        put_row(out, r, at[i].config, &columns);
    html_table_end(out);
    if (t->quality_train)
        put_scale(out, t, columns.gold);
    else
        buf_adds(out, "<p>The profile has no qualities yet: run evp-score on it.\n");
    buf_adds(out, "</section>\n");
    free(at);
    free(columns.uses);
    return 0;
}
