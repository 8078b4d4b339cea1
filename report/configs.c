/* configs.c - one line per config, the best quality first, and what the numbers mean. */
#include "base/map.h"
#include "report/report_internal.h"

#include "profiler/score/score.h"

#include <math.h>
#include <stdio.h>
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
    bool gold, facts, speed;
    int *uses; // (V)
};

static void put_head(struct buf *out, const struct report *r, const struct columns *columns)
{
    buf_adds(out, "<h3>Means over contexts, the best quality first</h3>\n");
    html_table(out, "Configs");
    html_column(out, "config");
    html_column_n(out, "size", "%");
    html_column_n(out, "quality, training", NULL);
    html_column_n(out, "quality, held out", NULL);
    html_column_n(out, "contexts held out", NULL);
    if (columns->facts) {
        html_column_n(out, "facts kept, training", "%");
        html_column_n(out, "facts kept, held out", "%");
        html_column_n(out, "token F1, training", NULL);
    }
    if (columns->gold)
        html_column_n(out, "gold", NULL);
    html_column_n(out, "decompression", columns->unit.name);
    for (int b = 0; columns->speed && b < TABLE_BATCHES; b++) {
        char name[32];
        snprintf(name, sizeof(name), "tokens/s at batch %d", table_batch[b]);
        html_column_n(out, name, NULL);
    }
    if (r->manifest)
        html_column_n(out, "in this plan", NULL);
    html_rows(out);
}

static void put_row(struct buf *out, const struct report *r, int v, const struct columns *columns)
{
    const struct table *t = r->table;
    int uses = columns->uses[v], tested = 0;

    for (int c = 0; c < t->n_contexts; c++)
        tested += t->quality_test && !isnan(t->quality_test[table_cell(t, c, v)]);
    html_row(out, uses ? ROW_CHOSEN : ROW_PLAIN, t->config_name[v], MANIFEST_CONFIG);
    html_cell(out, 100 * table_mean(t, t->size_frac, v), 1);
    html_cell_error(out, table_mean(t, t->quality_train, v), score_error(t, SPLIT_TRAIN, v));
    html_cell_error(out, table_mean(t, t->quality_test, v), score_error(t, SPLIT_TEST, v));
    buf_printf(out, "<td>%d of %d</td>", tested, t->n_contexts);
    if (columns->facts) {
        html_cell(out, 100 * table_mean(t, t->facts_train, v), 1);
        html_cell(out, 100 * table_mean(t, t->facts_test, v), 1);
        html_cell(out, table_mean(t, t->token_f1_train, v), 3);
    }
    if (columns->gold)
        html_cell(out, table_mean(t, t->gold_mean, v), 3);
    html_cell_unit(out, table_mean(t, t->decompress_s, v), &columns->unit);
    for (int b = 0; columns->speed && b < TABLE_BATCHES; b++)
        html_cell(out, score_speed(t, v, b), 2);
    if (r->manifest)
        html_cell_int(out, uses);
    html_row_end(out);
}

static void put_scale(struct buf *out, const struct table *t, const struct columns *columns)
{
    double unrelated = score_unrelated(t), same = score_same_meaning(t);
    struct score_resolution r = score_resolve(t, SPLIT_TEST);

    buf_adds(out, "<p class=\"note\">Quality: mean similarity to the answers of the uncompressed cache; 1: the same "
                  "answers. It hardly notices a wrong date, name or number.");
    if (!isnan(unrelated))
        buf_printf(out, " Unrelated answers, to other questions about the same context, score %.3f.", unrelated);
    if (!isnan(same))
        buf_printf(out,
                   " The uncompressed cache, asked again at temperature %g, scores %.3f against its own first "
                   "answers.",
                   t->temperature, same);
    if (r.pairs > 2 * r.told)
        buf_printf(out,
                   " The held-out questions are too few to tell the configs apart: of %d pairs %d differ by less than "
                   "two standard errors.",
                   r.pairs, r.pairs - r.told);
    if (columns->facts)
        buf_adds(out,
                 " Facts: numbers, dates, names and negations of the uncompressed cache's answer that the variant's "
                 "keeps.");
    if (columns->speed)
        buf_adds(
            out,
            " Tokens/s: of as many answers as the batch says, decoding together; 1: as fast as over the uncompressed "
            "cache.");
    if (columns->gold)
        buf_adds(out, " Gold is the score with the datasets' own answers and metrics.");
    buf_adds(out, " &#177;: standard error over contexts.</p>\n");
}

int report_configs(struct buf *out, const struct report *r, struct err *err)
{
    const struct table *t = r->table;
    struct ranked *at = calloc((size_t)t->n_configs + 1, sizeof(*at));
    struct columns columns = { .uses = report_uses(r, err), .speed = score_has_speed(t) };
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
        columns.facts |= !isnan(table_mean(t, t->facts_train, v));
    }
    qsort(at, (size_t)t->n_configs, sizeof(*at), by_quality);
    columns.unit = html_seconds_unit(slowest);
    buf_adds(out, "<section>\n<h2 id=\"configs\">Configs</h2>\n");
    put_head(out, r, &columns);
    for (int i = 0; i < t->n_configs; i++)
        put_row(out, r, at[i].config, &columns);
    html_table_end(out);
    if (t->quality_train)
        put_scale(out, t, &columns);
    else
        buf_adds(out, "<p>The profile has no qualities yet: run evp-score on it.</p>\n");
    buf_adds(out, "</section>\n");
    free(at);
    free(columns.uses);
    return 0;
}
