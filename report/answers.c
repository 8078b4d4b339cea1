/* answers.c - answers of the whole cache and of a variant side by side: one typical example for each config, and the
 * best, the middle and the worst of one context.
 */
#include "report/report_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_TEXT = 300, // bytes of a question or an answer
    MAX_EXAMPLES = 24,
};

struct answered {
    int question, config;
    double similarity;
};

static void put_side(struct buf *out, const char *whose, const char *text)
{
    buf_adds(out, "<div><h4>");
    html_text(out, whose);
    buf_adds(out, *text ? "</h4>\n<p>" : "</h4>\n<p><i>nothing</i>");
    html_short(out, text, MAX_TEXT);
    buf_adds(out, "</div>\n");
}

static void put_begin(struct buf *out, const char *title, double similarity, const char *question)
{
    buf_adds(out, "<article>\n<h3>");
    html_text(out, title);
    buf_printf(out, " <span class=\"score\">similarity %.2f", similarity);
    buf_adds(out, "</span></h3>\n<p class=\"question\">");
    html_short(out, question, MAX_TEXT);
    buf_adds(out, "\n<div class=\"pair\">\n");
}

static void put_end(struct buf *out)
{
    buf_adds(out, "</div></article>\n");
}

static void put_answer(struct buf *out, const struct table *t, const struct answered *a)
{
    put_begin(out, t->config_name[a->config], a->similarity, t->question_text[a->question]);
    put_side(out, "whole cache", t->answer_text[table_answer(t, a->question, 0)]);
    put_side(out, t->config_name[a->config], t->answer_text[table_answer(t, a->question, a->config)]);
    put_end(out);
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
    put_begin(out, "the whole cache, asked again", (double)t->sampled_similarity[best], t->question_text[best]);
    put_side(out, "whole cache", t->answer_text[table_answer(t, best, 0)]);
    put_side(out, "whole cache, sampled", t->sampled_text[best]);
    put_end(out);
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
        "cache, word for word. Of the others, one for each config whose similarity is typical of it.\n"
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
