/* gold.c - scores variants by a dataset's right answers. */
#include "profiler/score/gold.h"

#include "base/json.h"
#include "profiler/score/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Scores a question's answers under every config. */
static int score_answers_of(struct table *t, int q, const struct metric_gold *gold, struct err *err)
{
    for (int v = 0; v < t->n_configs; v++) {
        size_t at = table_answer(t, q, v);
        double is = (double)NAN;
        if (table_has_text(t, at) &&
            metric_score(t->context_dataset[t->question_context[q]], t->answer_text[at], gold, &is, err))
            return err_wrap(err, "question '%s'", t->question_id[q]);
        t->gold_score[at] = (float)is;
    }
    return 0;
}

static int score_question(struct table *t, int q, struct err *err)
{
    const char *text = t->gold_answers[q];
    struct json *list = json_parse(text, strlen(text), err);
    struct metric_gold gold = { 0 };
    int code = list ? 0 : err->code;
    const char **at = calloc((size_t)json_count(list) + 1, sizeof(*at));

    if (!code && !at)
        code = err_nomem(err);
    for (const struct json *a = code ? NULL : json_first(list); a; a = json_next(a))
        at[gold.n++] = json_text(a);
    gold.at = at;
    if (!code)
        code = score_answers_of(t, q, &gold, err);
    free(at);
    json_free(list);
    return code;
}

static int mean_over_questions(struct table *t, struct err *err)
{
    int *n = calloc(table_n_cells(t) + 1, sizeof(*n));

    if (!n)
        return err_nomem(err);
    for (int q = 0; q < t->n_questions; q++)
        for (int v = 0; v < t->n_configs; v++) {
            size_t cell = table_cell(t, (int)t->question_context[q], v);
            float is = t->gold_score[table_answer(t, q, v)];
            if (isnan(is))
                continue;
            t->gold_mean[cell] = (double)is + (n[cell] ? t->gold_mean[cell] : 0);
            n[cell]++;
        }
    for (size_t i = 0; i < table_n_cells(t); i++)
        t->gold_mean[i] = n[i] ? t->gold_mean[i] / n[i] : (double)NAN;
    free(n);
    return 0;
}

int gold_score(struct table *t, struct err *err)
{
    for (int q = 0; q < t->n_questions; q++)
        if (*t->gold_answers[q] && score_question(t, q, err))
            return err->code;
    return mean_over_questions(t, err);
}
