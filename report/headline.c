/* headline.c - what the page says, in one breath: TTFT before and after, what is recomputed, quality with its error and
 * what that rests on, and the day; and at its end the commands that made the files. */
#include "base/json.h"
#include "report/report_internal.h"

#include "planner/plan.h"
#include "profiler/score/score.h"

#include <math.h>
#include <string.h>

/* ---- quality of the plan --------------------------------------------------- */

/* The held-out answers behind a plan. Whole and recomputed caches give the reference's answers: they need no test. */
struct held_out {
    int compressed, tested; // contexts
    int64_t answers;        // -1: not known
    double error;           // of the plan's mean over accesses; NAN: not known
};

static void add_answers(struct held_out *h, const struct report *r, const struct placement *p, double *variance)
{
    const struct table *t = r->table;
    int c = t ? map_find(&t->ids, p->id, strlen(p->id)) : MAP_ABSENT;
    int v = c >= 0 ? table_find_config(t, p->config) : -1;
    double n = v >= 0 && t->quality_test_n ? t->quality_test_n[table_cell(t, c, v)] : -1;

    if (n < 1) {
        h->answers = -1;
        *variance = (double)NAN;
        return;
    }
    double sd = t->quality_test_std[table_cell(t, c, v)];
    h->answers += h->answers < 0 ? 0 : (int64_t)n;
    *variance += p->frequency * p->frequency * sd * sd / n;
}

static struct held_out held_out_of(const struct report *r)
{
    struct held_out h = { 0 };
    double variance = 0, uses = 0;

    for (int i = 0; i < r->manifest->n; i++) {
        const struct placement *p = &r->manifest->at[i];
        uses += p->frequency;
        if (p->tier < 0 || strcmp(p->config, "none") == 0)
            continue;
        h.compressed++;
        if (isnan(p->quality_test))
            continue;
        h.tested++;
        add_answers(&h, r, p, &variance);
    }
    h.error = uses > 0 ? sqrt(variance) / uses : (double)NAN;
    return h;
}

static void put_quality(struct buf *out, const struct report *r)
{
    const struct manifest_total *plan = &r->manifest->total[0];
    struct held_out h = held_out_of(r);

    if (h.compressed == 0) {
        buf_adds(out, "no cache is compressed, so answers stay the same");
        return;
    }
    if (h.tested < h.compressed) {
        buf_printf(out, "quality %.3f as %s, held-out answers cover %d of %d compressed contexts", plan->quality,
                   r->manifest->predicted ? "predicted" : "measured on training questions", h.tested, h.compressed);
        return;
    }
    buf_printf(out, "quality %.3f", plan->quality_test);
    if (!isnan(h.error))
        buf_printf(out, " &#177; %.3f", h.error);
    if (h.answers > 0)
        buf_printf(out, " over %lld held-out answer%s of %d context%s", (long long)h.answers, h.answers == 1 ? "" : "s",
                   h.tested, h.tested == 1 ? "" : "s");
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
    buf_printf(out, "</h1>\n<p class=\"lede\">%d of %d context%s recomputed; ", recomputed, m->n, m->n == 1 ? "" : "s");
    if (m->n_totals)
        put_quality(out, r);
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

/* The day of the latest measurement. */
static double day_of(const struct table *t)
{
    double latest = (double)NAN;

    for (int c = 0; t && c < t->n_contexts; c++)
        latest = fmax(latest, t->profiled_at[c]);
    return latest;
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

void report_headline(struct buf *out, const struct report *r)
{
    double day = day_of(r->table);

    if (r->manifest)
        put_plan(out, r);
    else if (r->table)
        put_table(out, r->table);
    else if (r->frontier)
        buf_printf(out, "<h1>A sweep over alpha</h1>\n<p class=\"lede\">%d plans", r->frontier->n);
    else
        buf_adds(out, "<h1>A load</h1>\n<p class=\"lede\">");
    if (r->receipt)
        buf_printf(out, "%s%d of %d contexts loaded", r->manifest || r->table || r->frontier ? "; " : "",
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
    buf_printf(out, "; %d context%s, %d configs, %d questions.</p>\n", r->table->n_contexts,
               r->table->n_contexts == 1 ? "" : "s", r->table->n_configs, r->table->n_questions);
}

/* ---- how it was made ------------------------------------------------------- */

enum { MADE_BYTES = 20000, MADE_DEPTH = 32 };

/* A word as a shell reads it. */
static void put_word(struct buf *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+%@";

    if (*word && strspn(word, plain) == strlen(word)) {
        buf_adds(out, word);
        return;
    }
    buf_addc(out, '\'');
    for (; *word; word++)
        if (*word == '\'')
            buf_adds(out, "'\\''");
        else
            buf_addc(out, *word);
    buf_addc(out, '\'');
}

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
    put_word(&line, tool);
    for (const struct json *a = json_first(json_get(made, "args")); a; a = json_next(a)) {
        buf_addc(&line, ' ');
        put_word(&line, json_text(a) ? json_text(a) : "?");
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
