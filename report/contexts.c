/* contexts.c - the placement of each context and its reason: candidates by reduced value, which is utility - rent (the
 * price of the bytes, from the manifest), and example answers. Seconds and bytes have one unit in each table.
 */
#include "planner/utility.h"
#include "profiler/run/timing.h"
#include "report/report_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DETAILS = 100,
    DETAILS_BYTES = 600000,                // of all details
    ROWS_BYTES = REPORT_MAX_BYTES - 32768, // what follows the rows is shorter
    MAX_CANDIDATES = 6,
    MAX_ID = 120,
};

/* ---- candidates ----------------------------------------------------------- */

struct worth {
    int config, tier; // tier -1: recomputed
    double bytes, quality, sd, ttft_s, utility, reduced;
};

struct worths {
    struct worth *at;
    int n;
};

static int by_worth(const void *a, const void *b)
{
    const struct worth *x = a, *y = b;

    if (x->reduced != y->reduced)
        return x->reduced < y->reduced ? 1 : -1;
    return x->config != y->config ? x->config - y->config : x->tier - y->tier;
}

/* Standard deviations of a context's measured times. */
static double prefill_sd(const struct table *t, int c)
{
    return timed_sd(t->prefill_s[c], t->prefill_spread[c], (int)t->prefill_n[c]);
}

static double question_sd(const struct table *t, int c)
{
    return timed_sd(t->question_s[c], t->question_spread[c], QUESTION_TIMES);
}

static struct plan_goal goal_of(const struct manifest *m)
{
    return (struct plan_goal){ m->alpha, m->slo_ttft_s, m->slo_weight };
}

static void add_stored(struct worths *w, const struct report *r, const struct placement *p, int c, int v)
{
    const struct table *t = r->table;
    const struct manifest *m = r->manifest;
    size_t cell = table_cell(t, c, v);
    bool predicted = m->predicted && t->predicted_quality;
    struct plan_goal goal = goal_of(m);
    double quality = predicted ? t->predicted_quality[cell] : t->quality_train[cell];

    if (t->cell_bytes[cell] < 0 || isnan(quality))
        return;
    for (int i = 0; i < m->tiers.n; i++) {
        double bytes = (double)t->cell_bytes[cell], read_s = tier_read_s(&m->tiers.at[i], table_bytes_read(t, cell));
        double ttft = ttft_stored(read_s, t->decompress_s[cell], t->question_s[c]);
        double value = utility(&goal, quality, ttft,
                               sd_of_sum(tier_read_sd_s(&m->tiers.at[i], read_s), question_sd(t, c)), p->frequency);
        w->at[w->n++] = (struct worth){ .config = v,
                                        .tier = i,
                                        .bytes = bytes,
                                        .quality = quality,
                                        .sd = predicted ? (double)t->predicted_sd[cell] : (double)NAN,
                                        .ttft_s = ttft,
                                        .utility = value,
                                        .reduced = value - m->price[i] * bytes };
    }
}

/* All candidates of a context, best first. */
static struct worths worths_of(const struct report *r, const struct placement *p, int c)
{
    const struct table *t = r->table;
    struct worths w = { .at = calloc((size_t)t->n_configs * (size_t)r->manifest->tiers.n + 1, sizeof(*w.at)) };

    if (!w.at)
        return w;
    for (int v = 0; v < t->n_configs; v++)
        add_stored(&w, r, p, c, v);
    struct plan_goal goal = goal_of(r->manifest);
    double ttft = ttft_recomputed(t->prefill_s[c], t->question_s[c]);
    double value = utility_recomputed(&goal, ttft, sd_of_sum(prefill_sd(t, c), question_sd(t, c)), p->frequency);
    w.at[w.n++] = (struct worth){
        .tier = -1, .quality = 1, .sd = (double)NAN, .ttft_s = ttft, .utility = value, .reduced = value
    };
    qsort(w.at, (size_t)w.n, sizeof(*w.at), by_worth);
    return w;
}

static bool is_placed(const struct report *r, const struct placement *p, const struct worth *w)
{
    if (p->tier < 0 || w->tier < 0)
        return p->tier < 0 && w->tier < 0;
    return p->tier == w->tier && strcmp(r->table->config_name[w->config], p->config) == 0;
}

/* The units of a table of candidates. */
struct worth_units {
    struct html_unit bytes, seconds;
    int digits; // of utilities
};

static struct worth_units units_of(const struct worths *w, int placed)
{
    double bytes = 0, seconds = 0, utility = 0;

    for (int i = 0; i < w->n; i++)
        if (i < MAX_CANDIDATES || i == placed) {
            bytes = fmax(bytes, w->at[i].bytes);
            seconds = fmax(seconds, w->at[i].ttft_s);
            utility = fmax(utility, fmax(fabs(w->at[i].utility), fabs(w->at[i].reduced)));
        }
    return (struct worth_units){ html_bytes_unit(bytes), html_seconds_unit(seconds), html_digits(utility) };
}

static void put_worth(struct buf *out, const struct report *r, const struct worth *w, const struct worth_units *u)
{
    html_cell_text(out, w->tier < 0 ? "recompute" : r->manifest->tiers.at[w->tier].name);
    html_cell_unit(out, w->bytes, &u->bytes);
    html_cell_error(out, w->quality, w->sd);
    html_cell_unit(out, w->ttft_s, &u->seconds);
    html_cell(out, w->utility, u->digits);
    html_cell(out, w->utility - w->reduced, u->digits);
    html_cell(out, w->reduced, u->digits);
    html_row_end(out);
}

static void put_candidates(struct buf *out, const struct report *r, const struct placement *p, int c)
{
    struct worths w = worths_of(r, p, c);
    int placed = -1;

    out->failed |= !w.at;
    for (int i = 0; i < w.n && placed < 0; i++)
        placed = is_placed(r, p, &w.at[i]) ? i : -1;
    struct worth_units u = units_of(&w, placed);
    html_table(out, "Candidates");
    html_column(out, "config");
    html_column(out, "tier");
    html_column_n(out, "size", u.bytes.name);
    html_column_n(out, "quality", NULL);
    html_column_n(out, "TTFT", u.seconds.name);
    html_column_n(out, "utility", "s");
    html_column_n(out, "rent", "s");
    html_column_n(out, "utility \u2212 rent", "s");
    html_rows(out);
    for (int i = 0; i < w.n; i++)
        if (i < MAX_CANDIDATES || i == placed) {
            html_row(out, i == placed ? ROW_CHOSEN : ROW_PLAIN,
                     w.at[i].tier < 0 ? "-" : r->table->config_name[w.at[i].config], MANIFEST_CONFIG);
            put_worth(out, r, &w.at[i], &u);
        }
    html_table_end(out);
    if (placed > 0 && w.at[0].reduced - w.at[placed].reduced > 1e-6 * (1 + fabs(w.at[0].reduced)))
        buf_printf(
            out,
            "<p class=\"note\">The best candidate has %.3g s more than the chosen one: it does not fit, or a rule, "
            "a quality floor or the cost of moving prevents it.</p>\n",
            w.at[0].reduced - w.at[placed].reduced);
    free(w.at);
}

/* ---- rows ----------------------------------------------------------------- */

struct row_units {
    struct html_unit bytes, seconds;
};

static void put_row(struct buf *out, const struct manifest *m, const struct placement *p, const struct row_units *u)
{
    html_row(out, ROW_PLAIN, p->id, MAX_ID);
    html_cell_int(out, p->n_tokens);
    html_cell(out, p->frequency, 1);
    html_cell_text(out, p->tier < 0 ? "recompute" : m->tiers.at[p->tier].name);
    html_cell_text(out, p->tier < 0 ? "-" : p->config);
    html_cell_unit(out, (double)p->bytes, &u->bytes);
    html_cell(out, p->quality, 3);
    html_cell(out, p->quality_test, 3);
    html_cell_unit(out, p->ttft_s, &u->seconds);
    html_cell_text(out, operation_name(p->operation));
    html_row_end(out);
}

static void put_details(struct buf *out, const struct report *r, const struct placement *p)
{
    const struct table *t = r->table;
    int c = map_find(&t->ids, p->id, strlen(p->id)), v = table_find_config(t, p->config);

    if (c < 0 || !t->quality_train)
        return;
    buf_adds(out, "<details><summary>");
    html_short(out, p->id, MAX_ID);
    buf_adds(out, p->tier < 0 ? " <span class=\"score\">recompute" : " <span class=\"score\">");
    html_text(out, p->tier < 0 ? "" : p->config);
    buf_adds(out, p->tier < 0 ? "" : " on ");
    html_text(out, p->tier < 0 ? "" : r->manifest->tiers.at[p->tier].name);
    buf_adds(out, "</span></summary>\n");
    put_candidates(out, r, p, c);
    if (p->tier >= 0 && v > 0)
        answers_of(out, t, c, v);
    buf_adds(out, "</details>\n");
}

struct used {
    double frequency;
    int row;
};

static int by_use(const void *a, const void *b)
{
    const struct used *x = a, *y = b;

    return x->frequency != y->frequency ? (x->frequency < y->frequency ? 1 : -1) : x->row - y->row;
}

static void put_rows(struct buf *out, const struct manifest *m, const struct used *order)
{
    double bytes = 0, seconds = 0;
    int i = 0;

    for (int k = 0; k < m->n; k++) {
        bytes = fmax(bytes, (double)m->at[k].bytes);
        seconds = fmax(seconds, m->at[k].ttft_s);
    }
    struct row_units u = { html_bytes_unit(bytes), html_seconds_unit(seconds) };
    buf_adds(out, "<h3>All contexts, the most used first</h3>\n");
    html_table(out, "Contexts");
    html_column(out, "context");
    html_column_n(out, "tokens", NULL);
    html_column_n(out, "uses", NULL);
    html_column(out, "tier");
    html_column(out, "config");
    html_column_n(out, "size", u.bytes.name);
    html_column_n(out, "quality, planned", NULL);
    html_column_n(out, "quality, held out", NULL);
    html_column_n(out, "TTFT", u.seconds.name);
    html_column(out, "operation");
    html_rows(out);
    for (; i < m->n && out->n < ROWS_BYTES; i++)
        put_row(out, m, &m->at[order[i].row], &u);
    html_table_end(out);
    if (i < m->n)
        buf_printf(out, "<p>%d less used contexts are left out to keep this page small.</p>\n", m->n - i);
}

/* The reasons of the first placements, as long as there is room. */
static void put_reasons(struct buf *out, const struct report *r, const struct used *order)
{
    size_t begin = out->n;

    buf_adds(out, "<h3>Why each of the most used is where it is</h3>\n<p class=\"note\">Utility counts all uses of a "
                  "context; rent is the price of its bytes on the tier. The plan takes the highest difference that "
                  "fits. &#177;: standard deviation of a prediction.</p>\n");
    for (int i = 0; i < r->manifest->n && i < MAX_DETAILS && out->n - begin < DETAILS_BYTES; i++)
        put_details(out, r, &r->manifest->at[order[i].row]);
}

void report_contexts(struct buf *out, const struct report *r, struct err *err)
{
    const struct manifest *m = r->manifest;
    struct used *order = calloc((size_t)m->n + 1, sizeof(*order));

    if (!order) {
        err_nomem(err);
        out->failed = true;
        return;
    }
    for (int i = 0; i < m->n; i++)
        order[i] = (struct used){ m->at[i].frequency, i };
    qsort(order, (size_t)m->n, sizeof(*order), by_use);
    buf_adds(out, "<section>\n<h2 id=\"contexts\">Contexts</h2>\n");
    if (r->table && r->table->quality_train)
        put_reasons(out, r, order);
    put_rows(out, m, order);
    buf_adds(out, "</section>\n");
    free(order);
}
