/* answers.c - answers of the uncompressed cache and of a variant side by side: one typical example for each config,
 * and the best, the middle and the worst of one context.
 */
#include "profiler/score/facts.h"
#include "report/report_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_TEXT = 600,      // bytes of a question or an answer that are shown
    MAX_READ = 8 * 1024, // bytes of an answer that are searched for facts
    MAX_EXAMPLES = 24,
};

struct answered {
    int question, config;
    double similarity;
};

/* ---- facts ----------------------------------------------------------------- */

/* An answer and its facts. */
struct told {
    const char *text;
    bool cut; // at the longest answer allowed
    struct facts facts;
};

static int read_facts(struct told *a, enum facts_language language, struct err *err)
{
    char *text = strndup(a->text, html_cut(a->text, MAX_READ));
    bool cut = a->cut || strlen(a->text) > MAX_READ;
    int code = text ? facts_read(&a->facts, &(struct facts_of){ text, cut, language }, err) : err_nomem(err);

    free(text);
    return code;
}

/* Adds a text with its facts marked: kept by the other answer, or not (`missing` is then the element). */
static void put_marked(struct buf *out, const struct told *a, const struct told *other, const char *missing)
{
    size_t end = html_cut(a->text, MAX_TEXT), at = 0;

    for (int i = 0; i < a->facts.found.n; i++) {
        const struct fact *f = &a->facts.found.at[i];
        if (f->offered || f->at < at || f->at + f->bytes > end)
            continue;
        const char *element = facts_has(&other->facts, &a->facts, f) ? "mark" : missing;
        html_part(out, a->text + at, f->at - at);
        buf_printf(out, "<%s>", element);
        html_part(out, a->text + f->at, f->bytes);
        buf_printf(out, "</%s>", element);
        at = f->at + f->bytes;
    }
    html_part(out, a->text + at, end - at);
    buf_adds(out, a->text[end] ? "..." : "");
    buf_adds(out, *a->text ? "" : "<i>nothing</i>");
}

/* ---- pairs of answers ------------------------------------------------------ */

struct pair {
    const char *title, *question, *other_name;
    struct told whole, other;
    double similarity, facts; // facts NAN: none in the uncompressed cache's answer, or not known
};

static void put_pair(struct buf *out, struct pair *p)
{
    struct err ignored;

    if (read_facts(&p->whole, FACTS_DETECT, &ignored) || read_facts(&p->other, p->whole.facts.language, &ignored))
        out->failed = true;
    buf_adds(out, "<article>\n<h3>");
    html_text(out, p->title);
    buf_printf(out, " <span class=\"score\">similarity %.2f", p->similarity);
    if (!isnan(p->facts))
        buf_printf(out, ", facts kept %.0f %%", 100 * p->facts);
    const char *lost = conduct_lost(&p->whole.facts.conduct, &p->other.facts.conduct);
    if (lost)
        buf_printf(out, ", %s", lost);
    buf_adds(out, "</span></h3>\n<p class=\"question\">");
    html_short(out, p->question, MAX_TEXT);
    buf_adds(out, "</p>\n<div class=\"pair\">\n<div><h4>uncompressed cache</h4>\n<p>");
    put_marked(out, &p->whole, &p->other, "del");
    buf_adds(out, "</p></div>\n<div><h4>");
    html_text(out, p->other_name);
    buf_adds(out, "</h4>\n<p>");
    put_marked(out, &p->other, &p->whole, "ins");
    buf_adds(out, "</p></div>\n</div></article>\n");
    facts_release(&p->whole.facts);
    facts_release(&p->other.facts);
}

static struct told told_of(const struct table *t, int q, int v)
{
    size_t answer = table_answer(t, q, v);

    return (struct told){ .text = t->answer_text[answer],
                          .cut = t->max_new_tokens > 0 && t->answer_n_tokens[answer] >= t->max_new_tokens };
}

static void put_answer(struct buf *out, const struct table *t, const struct answered *a)
{
    size_t answer = table_answer(t, a->question, a->config);

    put_pair(out, &(struct pair){ .title = t->config_name[a->config],
                                  .question = t->question_text[a->question],
                                  .other_name = t->config_name[a->config],
                                  .whole = told_of(t, a->question, 0),
                                  .other = told_of(t, a->question, a->config),
                                  .similarity = a->similarity,
                                  .facts = t->facts_kept ? (double)t->facts_kept[answer] : (double)NAN });
}

/* Adds the sampled answer with the most typical similarity. */
static void put_sampled(struct buf *out, const struct table *t)
{
    int best = -1;
    double sum = 0, n = 0, mean;

    for (int q = 0; t->sampled_similarity && q < t->n_questions; q++)
        if (!isnan(t->sampled_similarity[q])) {
            sum += (double)t->sampled_similarity[q];
            n++;
        }
    mean = sum / n;
    for (int q = 0; t->sampled_similarity && q < t->n_questions; q++) {
        double off = fabs((double)t->sampled_similarity[q] - mean);
        if (!isnan(off) && (best < 0 || off < fabs((double)t->sampled_similarity[best] - mean)))
            best = q;
    }
    if (best < 0)
        return;
    put_pair(out, &(struct pair){ .title = "the uncompressed cache, asked again",
                                  .question = t->question_text[best],
                                  .other_name = "uncompressed cache, sampled",
                                  .whole = told_of(t, best, 0),
                                  .other = { .text = t->sampled_text[best] },
                                  .similarity = (double)t->sampled_similarity[best],
                                  .facts = (double)NAN });
}

/* ---- one example of each config -------------------------------------------- */

/* The changed answer of a config whose similarity is nearest to the mean of its changed answers. Sets *same to the
 * number of answers that did not change, *n to that of all. question -1: none changed. */
static struct answered typical(const struct table *t, int v, int *same, int *n)
{
    struct answered best = { -1, v, (double)NAN };
    double sum = 0;

    *same = *n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int q = 0; q < t->n_questions; q++) {
            double s = (double)t->similarity[table_answer(t, q, v)], mean = sum / (*n - *same);
            bool changed = strcmp(t->answer_text[table_answer(t, q, v)], t->answer_text[table_answer(t, q, 0)]) != 0;
            if (isnan(s))
                continue;
            if (pass == 0) {
                (*n)++;
                *same += !changed;
                sum += changed ? s : 0;
            } else if (changed && !(fabs(best.similarity - mean) <= fabs(s - mean)))
                best = (struct answered){ q, v, s };
        }
    return best;
}

static int by_falling(const void *a, const void *b)
{
    const struct answered *x = a, *y = b;

    return x->similarity < y->similarity ? 1 : x->similarity > y->similarity ? -1 : x->config - y->config;
}

void answers_examples(struct buf *out, const struct report *r)
{
    const struct table *t = r->table;
    struct answered at[MAX_EXAMPLES];
    int n = 0, unchanged = 0, answers = 0;

    for (int v = 1; t->similarity && v < t->n_configs && n < MAX_EXAMPLES; v++) {
        int same, all;
        at[n] = typical(t, v, &same, &all);
        unchanged += same;
        answers += all;
        n += at[n].question >= 0;
    }
    if (answers == 0)
        return;
    qsort(at, (size_t)n, sizeof(*at), by_falling);
    buf_printf(
        out,
        "<section>\n<h2 id=\"answers\">What changed in the answers</h2>\n<p>%d of %d answers are those of the whole "
        "cache, word for word. Of the others, one for each config whose similarity is typical of it. Facts are "
        "numbers, dates, names and negations: <mark>kept</mark>, <del>lost</del>, "
        "<ins>not in the uncompressed cache's answer</ins>.</p>\n"
        "<div class=\"examples\">\n",
        unchanged, answers);
    for (int i = 0; i < n; i++)
        put_answer(out, t, &at[i]);
    put_sampled(out, t);
    buf_adds(out, "</div>\n</section>\n");
}

/* ---- one context ----------------------------------------------------------- */

void answers_of(struct buf *out, const struct table *t, int context, int config)
{
    struct answered *at = calloc((size_t)t->n_questions + 1, sizeof(*at));
    int n = 0;

    for (int q = 0; at && t->similarity && q < t->n_questions; q++) {
        double s = (double)t->similarity[table_answer(t, q, config)];
        if (t->question_context[q] == context && !isnan(s))
            at[n++] = (struct answered){ q, config, s };
    }
    if (n > 0) {
        qsort(at, (size_t)n, sizeof(*at), by_falling);
        buf_adds(out, "<div class=\"examples\">\n");
        put_answer(out, t, &at[0]);
        if (n > 2)
            put_answer(out, t, &at[n / 2]);
        if (n > 1)
            put_answer(out, t, &at[n - 1]);
        buf_adds(out, "</div>\n");
    }
    out->failed |= !at;
    free(at);
}
