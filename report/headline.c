/* headline.c - what the page says, in one breath: TTFT before and after, what is recomputed, quality with its error and
 * what that rests on, and the day; and at its end the commands that made the files. */
#include "base/json.h"
#include "report/report_internal.h"

#include "planner/plan.h"
#include "profiler/run/timing.h"

#include <math.h>
#include <string.h>

/* ---- quality of the plan --------------------------------------------------- */

/* The number of held-out answers behind a plan's compressed contexts; 0: not known. */
static int64_t answers_of_plan(const struct report *r)
{
    const struct table *t = r->table;
    int64_t n = 0;

    for (int i = 0; t && t->quality_test_n && i < r->manifest->n; i++) {
        const struct placement *p = &r->manifest->at[i];
        int c = map_find(&t->ids, p->id, strlen(p->id));
        int v = c >= 0 && p->tier >= 0 && p->frequency > 0 ? table_find_config(t, p->config) : 0;
        if (v > 0 && t->quality_test_n[table_cell(t, c, v)] > 0)
            n += t->quality_test_n[table_cell(t, c, v)];
    }
    return n;
}

static void put_error(struct buf *out, double v, double error)
{
    buf_printf(out, isnan(v) ? "not known" : "%.3f", v);
    if (!isnan(v) && !isnan(error))
        buf_printf(out, " &#177; %.3f", error);
}

static bool is_compressed(const struct manifest *m)
{
    for (int i = 0; i < m->n; i++)
        if (m->at[i].tier >= 0 && strcmp(m->at[i].config, "none") != 0)
            return true;
    return false;
}

static void put_quality(struct buf *out, const struct report *r)
{
    const struct manifest_total *plan = &r->manifest->total[0];
    int64_t answers = answers_of_plan(r);

    if (!is_compressed(r->manifest)) {
        buf_adds(out, "no cache is compressed, so answers stay the same");
        return;
    }
    buf_adds(out, "quality ");
    if (plan->n_tested < plan->n_compressed) {
        put_error(out, plan->quality, plan->quality_error);
        buf_printf(out, " as %s; ", r->manifest->predicted ? "predicted" : "measured on training questions");
        if (plan->n_tested == 0)
            buf_adds(out, "no compressed context has held-out answers");
        else {
            put_error(out, plan->quality_tested, plan->quality_test_error);
            buf_printf(out, " in those %d of %d compressed contexts that have other answers", plan->n_tested,
                       plan->n_compressed);
        }
        return;
    }
    put_error(out, plan->quality_test, plan->quality_test_error);
    if (answers > 0)
        buf_printf(out, " over %lld held-out answer%s of %d context%s", (long long)answers, answers == 1 ? "" : "s",
                   plan->n_tested, plan->n_tested == 1 ? "" : "s");
    else
        buf_adds(out, " on held-out questions");
}

/* ---- the headline ---------------------------------------------------------- */

static void put_plan(struct buf *out, const struct report *r)
{
    const struct manifest *m = r->manifest;
    const struct manifest_total *plan = &m->total[0];
    bool compared = m->n_totals == 1 + BASELINE_COUNT;
    int recomputed = 0;

    for (int i = 0; i < m->n; i++)
        recomputed += m->at[i].tier < 0;
    buf_adds(out, "<h1>");
    if (m->n_totals == 0 || isnan(plan->ttft_s))
        buf_printf(out, "A plan for %d context%s", m->n, m->n == 1 ? "" : "s");
    else if (compared && recomputed == m->n) {
        buf_adds(out, "Every context is recomputed: TTFT ");
        html_seconds(out, plan->ttft_s);
    } else {
        double plain = compared ? m->total[1 + BASELINE_PLAIN].ttft_s : (double)NAN;
        buf_adds(out, "TTFT ");
        html_seconds(out, plan->ttft_s);
        buf_adds(out, plan->ttft_s < 0.95 * plain ? " in place of " : isnan(plain) ? "" : ", uncompressed ");
        if (!isnan(plain))
            html_seconds(out, plain);
    }
    buf_printf(out, "</h1>\n<p class=\"lede\">%d of %d context%s recomputed", recomputed, m->n, m->n == 1 ? "" : "s");
    if (m->n_totals) {
        buf_adds(out, "; ");
        put_quality(out, r);
    }
}

/* The config that keeps most quality in at most half of the size. */
static void put_table(struct buf *out, const struct table *t)
{
    int best = -1;

    for (int v = 1; v < t->n_configs && t->quality_train; v++)
        if (table_mean(t, t->size_frac, v) <= 0.505 &&
            (best < 0 || table_mean(t, t->quality_train, v) > table_mean(t, t->quality_train, best)))
            best = v;
    if (best < 0 || isnan(table_mean(t, t->quality_train, best))) {
        buf_printf(out, "<h1>A profile of %d context%s</h1>\n<p class=\"lede\">%d configs, %d questions", t->n_contexts,
                   t->n_contexts == 1 ? "" : "s", t->n_configs, t->n_questions);
        return;
    }
    buf_printf(out, "<h1>Quality %.3f in %.0f %% of the size</h1>\n<p class=\"lede\">with ",
               table_mean(t, t->quality_train, best), 100 * table_mean(t, t->size_frac, best));
    html_short(out, t->config_name[best], 80);
    buf_printf(out, ", the best of %d configs in at most half of the size, on the training questions of %d context%s",
               t->n_configs - 1, t->n_contexts, t->n_contexts == 1 ? "" : "s");
}

/* The time of the latest measurement; NaN: not known, or beyond the year 9999. */
static double day_of(const struct table *t)
{
    double latest = (double)NAN;

    for (int c = 0; t && c < t->n_contexts; c++)
        latest = fmax(latest, t->profiled_at[c]);
    return latest >= 0 && latest < 253402300800.0 ? latest : (double)NAN;
}

static void put_meant(struct buf *out, const struct manifest *m)
{
    if (m->n_totals != 1 + BASELINE_COUNT || isnan(m->total[0].ttft_s))
        return;
    buf_adds(out, "<p class=\"meta\">TTFT is the mean time to first token of a use. ");
    html_seconds(out, m->total[1 + BASELINE_PLAIN].ttft_s);
    buf_adds(out,
             " is that of uncompressed caches in the same space, the most used first; recomputing everything takes ");
    html_seconds(out, m->total[1 + BASELINE_RECOMPUTE].ttft_s);
    buf_adds(out, ".</p>\n");
}

static void put_noise(struct buf *out, const struct table *t)
{
    int n = 0;

    for (int c = 0; c < t->n_contexts; c++)
        n += timing_is_noisy(t->prefill_s[c], t->prefill_spread[c]);
    if (n)
        buf_printf(
            out,
            " The machine was busy: prefill times of %d context%s scatter, so the TTFTs of other runs will differ.", n,
            n == 1 ? "" : "s");
}

void report_headline(struct buf *out, const struct report *r)
{
    double day = day_of(r->table);

    if (r->manifest)
        put_plan(out, r);
    else if (r->table)
        put_table(out, r->table);
    else if (r->frontier)
        buf_printf(out, "<h1>A sweep over alpha</h1>\n<p class=\"lede\">%d plans", r->frontier->n);
    else if (r->replay)
        buf_printf(out, "<h1>A replay</h1>\n<p class=\"lede\">%d lines", r->replay->n);
    else
        buf_adds(out, "<h1>A load</h1>\n<p class=\"lede\">");
    if (r->receipt)
        buf_printf(out, "%s%d of %d contexts loaded", r->manifest || r->table || r->frontier || r->replay ? "; " : "",
                   r->receipt->in.n, r->receipt->ids.n);
    if (!isnan(day)) {
        buf_adds(out, "; ");
        html_day(out, day);
    }
    buf_adds(out, ".</p>\n");
    if (r->manifest)
        put_meant(out, r->manifest);
    if (!r->table)
        return;
    buf_adds(out, "<p class=\"meta\">Model ");
    html_short(out, r->table->model, 200);
    buf_adds(out, ", ");
    html_short(out, r->table->dtype, 40);
    buf_adds(out, " on ");
    html_short(out, r->table->backend, 40);
    buf_printf(out, "; %d context%s, %d configs, %d questions.", r->table->n_contexts,
               r->table->n_contexts == 1 ? "" : "s", r->table->n_configs, r->table->n_questions);
    put_noise(out, r->table);
    buf_adds(out, "</p>\n");
}

/* ---- how it was made ------------------------------------------------------- */

enum { MADE_BYTES = 20000, MADE_DEPTH = 32 };

/* Adds the commands of a lineage, a line each, the first one first; each once. */
static void put_commands(struct buf *out, const struct json *made, int depth)
{
    const char *tool = json_text(json_get(made, "tool"));
    struct buf line = { 0 };

    for (const struct json *f = json_first(json_get(made, "from")); f && depth < MADE_DEPTH; f = json_next(f))
        put_commands(out, f, depth + 1);
    if (!tool || out->n > MADE_BYTES)
        return;
    buf_adds(&line, "\n");
    buf_add_word(&line, tool);
    for (const struct json *a = json_first(json_get(made, "args")); a; a = json_next(a)) {
        buf_addc(&line, ' ');
        buf_add_word(&line, json_text(a) ? json_text(a) : "?");
    }
    buf_addc(&line, '\n');
    if (!strstr(buf_str(out), buf_str(&line)))
        buf_adds(out, buf_str(&line) + (out->n ? 1 : 0));
    out->failed |= buf_failed(&line);
    buf_release(&line);
}

void report_made(struct buf *out, const struct report *r)
{
    struct buf commands = { 0 };
    struct err ignored;
    struct json *plan = r->manifest && r->manifest->header
                            ? json_parse(r->manifest->header, strlen(r->manifest->header), &ignored)
                            : NULL;
    struct json *table = r->table ? table_lineage(r->table) : NULL;

    put_commands(&commands, table, 0);
    put_commands(&commands, plan, 0);
    if (commands.n) {
        buf_adds(out, "<section>\n<h2 id=\"made\">How it was made</h2>\n<pre><code>");
        html_short(out, buf_str(&commands) + (buf_str(&commands)[0] == '\n'), MADE_BYTES);
        buf_adds(out, "</code></pre>\n</section>\n");
    }
    out->failed |= buf_failed(&commands);
    json_free(plan);
    json_free(table);
    buf_release(&commands);
}
