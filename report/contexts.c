/* contexts.c - the placement of each context and its reason: candidates by reduced value, which is utility - rent (the
 * price of the bytes, from the manifest), and example answers.
 */
#include "planner/utility.h"
#include "profiler/run/timing.h"
#include "profiler/score/score.h"
#include "report/report_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DETAILS = 100,
    DETAILS_BYTES = 600000, // of all details
    ROWS_BYTES = REPORT_MAX_BYTES - 4096,
    MAX_CANDIDATES = 6,
    MAX_TEXT = 300, // bytes of a question or an answer
    MAX_ID = 60,
};

/* ---- answers -------------------------------------------------------------- */

struct answered {
    int question, config;
    double similarity;
};

/* Adds a question, its answer with the uncompressed cache, and another answer. */
static void put_pair(struct buf *out, const struct table *t, int q, const char *text)
{
    buf_adds(out, "<td>");
    html_short(out, t->question_text[q], MAX_TEXT);
    buf_adds(out, "<td>");
    html_short(out, t->answer_text[table_answer(t, q, 0)], MAX_TEXT);
    buf_adds(out, "<td>");
    html_short(out, text, MAX_TEXT);
    buf_addc(out, '\n');
}

static void put_answer(struct buf *out, const struct table *t, const struct answered *a)
{
    buf_adds(out, "<tr><td>");
    html_real(out, a->similarity, 2);
    buf_adds(out, "<td>");
    html_text(out, t->config_name[a->config]);
    put_pair(out, t, a->question, t->answer_text[table_answer(t, a->question, a->config)]);
}

/* Adds the sampled answer with the most typical similarity. */
static void put_sampled(struct buf *out, const struct table *t)
{
    double usual = score_same_meaning(t);
    int best = -1;

    for (int q = 0; t->sampled_similarity && q < t->n_questions; q++) {
        double off = fabs((double)t->sampled_similarity[q] - usual);
        if (!isnan(off) && (best < 0 || off < fabs((double)t->sampled_similarity[best] - usual)))
            best = q;
    }
    if (best < 0)
        return;
    buf_adds(out, "<tr><td>");
    html_real(out, (double)t->sampled_similarity[best], 2);
    buf_adds(out, "<td>uncompressed cache, sampled");
    put_pair(out, t, best, t->sampled_text[best]);
}

static const char answers_head[] = "<table><tr><th>similarity<th>config<th>question<th>answer, uncompressed"
                                   "<th>answer, this variant\n";

void report_scale(struct buf *out, const struct table *t)
{
    double unrelated = score_unrelated(t), same = score_same_meaning(t);
    struct score_resolution r = score_resolve(t, SPLIT_TEST);

    if (!t->quality_train)
        return;
    buf_adds(out, "<p>Quality is the mean similarity to the answers of the uncompressed cache; 1: the same answers.");
    if (!isnan(unrelated))
        buf_printf(
            out, " Unrelated answers, to other questions about the same context, score %.3f: near it, nothing is left.",
            unrelated);
    if (!isnan(same))
        buf_printf(
            out,
            " Second answers of the uncompressed cache to the same questions, sampled at temperature %g, score %.3f: "
            "they say the same in other words, so from there on only the wording differs.",
            t->temperature, same);
    if (r.pairs > 2 * r.told)
        buf_printf(
            out,
            " The held-out questions are too few to tell the configs apart: of %d pairs %d differ by less than two "
            "standard errors.",
            r.pairs, r.pairs - r.told);
    for (int v = 0; v < t->n_configs; v++)
        if (!isnan(table_mean(t, t->gold_mean, v))) {
            buf_adds(out, " Gold is the score with the datasets' own answers and metrics.");
            break;
        }
    buf_addc(out, '\n');
}

void report_examples(struct buf *out, const struct table *t)
{
    static const double levels[] = { 0.95, 0.85, 0.7, 0.5, 0.3, 0.1 };
    enum { LEVELS = sizeof(levels) / sizeof(*levels) };
    struct answered best[LEVELS];
    int n = 0;

    for (int i = 0; i < LEVELS; i++)
        best[i] = (struct answered){ -1, -1, (double)NAN };
    for (int q = 0; t->similarity && q < t->n_questions; q++)
        for (int v = 1; v < t->n_configs; v++) {
            double s = (double)t->similarity[table_answer(t, q, v)];
            for (int i = 0; i < LEVELS; i++)
                if (fabs(s - levels[i]) < 0.1 && !(fabs(best[i].similarity - levels[i]) <= fabs(s - levels[i])))
                    best[i] = (struct answered){ q, v, s };
        }
    for (int i = 0; i < LEVELS; i++) {
        if (best[i].question < 0 ||
            (i > 0 && best[i].question == best[i - 1].question && best[i].config == best[i - 1].config))
            continue;
        buf_adds(out, n++ ? "" : "<h2>Examples of similarity</h2>\n");
        buf_adds(out, n == 1 ? answers_head : "");
        put_answer(out, t, &best[i]);
    }
    if (n)
        put_sampled(out, t);
    buf_adds(out, n ? "</table>\n" : "");
}

static int by_similarity(const void *a, const void *b)
{
    const struct answered *x = a, *y = b;

    return x->similarity < y->similarity ? 1 : x->similarity > y->similarity ? -1 : x->question - y->question;
}

/* Adds the best, the middle and the worst answer of a context under one config. */
static void put_answers(struct buf *out, const struct table *t, int context, int config)
{
    struct answered *at = calloc((size_t)t->n_questions + 1, sizeof(*at));
    int n = 0;

    for (int q = 0; at && t->similarity && q < t->n_questions; q++) {
        double s = (double)t->similarity[table_answer(t, q, config)];
        if (t->question_context[q] == context && !isnan(s))
            at[n++] = (struct answered){ q, config, s };
    }
    if (n > 0) {
        qsort(at, (size_t)n, sizeof(*at), by_similarity);
        buf_adds(out, answers_head);
        put_answer(out, t, &at[0]);
        if (n > 2)
            put_answer(out, t, &at[n / 2]);
        if (n > 1)
            put_answer(out, t, &at[n - 1]);
        buf_adds(out, "</table>\n");
    }
    out->failed |= !at;
    free(at);
}

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
        double bytes = (double)t->cell_bytes[cell], read_s = tier_read_s(&m->tiers.at[i], t->cell_bytes[cell]);
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

static void put_worth(struct buf *out, const struct report *r, const struct worth *w, bool placed)
{
    buf_adds(out, placed ? "<tr><td><b>chosen</b><td>" : "<tr><td><td>");
    html_text(out, w->tier < 0 ? "-" : r->table->config_name[w->config]);
    buf_adds(out, "<td>");
    html_text(out, w->tier < 0 ? "recompute" : r->manifest->tiers.at[w->tier].name);
    buf_adds(out, "<td>");
    html_bytes(out, w->bytes);
    buf_adds(out, "<td>");
    html_real(out, w->quality, 3);
    if (!isnan(w->sd))
        buf_printf(out, " &plusmn; %.3f", w->sd);
    buf_adds(out, "<td>");
    html_seconds(out, w->ttft_s);
    buf_printf(out, "<td>%.6g<td>%.6g<td>%.6g\n", w->utility, w->utility - w->reduced, w->reduced);
}

static void put_candidates(struct buf *out, const struct report *r, const struct placement *p, int c)
{
    struct worths w = worths_of(r, p, c);
    int placed = -1;

    out->failed |= !w.at;
    for (int i = 0; i < w.n && placed < 0; i++)
        placed = is_placed(r, p, &w.at[i]) ? i : -1;
    bool best = placed >= 0 && w.at[0].reduced - w.at[placed].reduced <= 1e-6 * (1 + fabs(w.at[0].reduced));
    if (best)
        buf_adds(out, "<p>No candidate has a higher reduced value.\n");
    else if (placed > 0)
        buf_printf(out,
                   "<p>The best candidate has %.3g more: it does not fit, or a rule, a quality floor or the cost of "
                   "moving prevents it.\n",
                   w.at[0].reduced - w.at[placed].reduced);
    buf_adds(out,
             "<table><tr><th><th>config<th>tier<th>bytes<th>quality<th>TTFT<th>utility<th>rent<th>reduced value\n");
    for (int i = 0; i < w.n; i++)
        if (i < MAX_CANDIDATES || i == placed)
            put_worth(out, r, &w.at[i], i == placed);
    buf_adds(out, "</table>\n");
    free(w.at);
}

/* ---- rows ----------------------------------------------------------------- */

static void put_row(struct buf *out, const struct manifest *m, const struct placement *p)
{
    buf_adds(out, "<tr><td>");
    html_short(out, p->id, MAX_ID);
    buf_printf(out, "<td>%lld<td>%.6g<td>%s<td>", (long long)p->n_tokens, p->frequency,
               p->tier < 0 ? "recompute" : m->tiers.at[p->tier].name);
    html_text(out, p->tier < 0 ? "-" : p->config);
    buf_adds(out, "<td>");
    html_bytes(out, (double)p->bytes);
    buf_adds(out, "<td>");
    html_real(out, p->quality, 3);
    buf_adds(out, "<td>");
    html_real(out, p->quality_test, 3);
    buf_adds(out, "<td>");
    html_seconds(out, p->ttft_s);
    buf_printf(out, "<td>%s\n", operation_name(p->operation));
}

static void put_details(struct buf *out, const struct report *r, const struct placement *p)
{
    const struct table *t = r->table;
    int c = map_find(&t->ids, p->id, strlen(p->id)), v = table_find_config(t, p->config);

    if (c < 0 || !t->quality_train)
        return;
    buf_adds(out, "<details><summary>");
    html_short(out, p->id, MAX_ID);
    buf_adds(out, p->tier < 0 ? ": recompute" : ": ");
    html_text(out, p->tier < 0 ? "" : p->config);
    buf_adds(out, p->tier < 0 ? "" : " on ");
    html_text(out, p->tier < 0 ? "" : r->manifest->tiers.at[p->tier].name);
    buf_adds(out, "</summary>\n");
    put_candidates(out, r, p, c);
    if (p->tier >= 0 && v > 0)
        put_answers(out, t, c, v);
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
    int i = 0;

    buf_adds(out, "<h2>Contexts</h2>\n<table><tr><th>context<th>tokens<th>uses<th>tier<th>config<th>bytes<th>quality"
                  "<th>held out<th>TTFT<th>operation\n");
    for (; i < m->n && out->n < ROWS_BYTES - 1024; i++)
        put_row(out, m, &m->at[order[i].row]);
    buf_adds(out, "</table>\n");
    if (i < m->n)
        buf_printf(out, "<p>%d less used contexts are left out to keep this page small.\n", m->n - i);
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
    if (r->table && r->table->quality_train) {
        size_t begin = out->n;
        buf_adds(
            out,
            "<h2>Placement of the most used contexts</h2>\n<p>Reduced value = utility - rent; rent is the price of the "
            "bytes on their tier. The plan takes the highest that fits.\n");
        for (int i = 0; i < m->n && i < MAX_DETAILS && out->n - begin < DETAILS_BYTES; i++)
            put_details(out, r, &m->at[order[i].row]);
    }
    put_rows(out, m, order);
    free(order);
}
