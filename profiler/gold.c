/* gold.c - right answers as JSON in a table, and their scores. */
#include "profiler/gold.h"

#include "base/json.h"
#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- from contexts to a table -------------------------------------------------- */

/* The length of the white space that s begins with. */
static size_t blank(const char *s)
{
    size_t n = strlen(s), at = 0;
    uint32_t c;

    for (int length; at < n && (length = utf8_decode(s + at, n - at, &c)) > 0 && utf8_is_space(c);)
        at += (size_t)length;
    return at;
}

static bool same_words(const char *a, const char *b)
{
    a += blank(a);
    b += blank(b);
    while (*a && *b) {
        size_t in_a = blank(a), in_b = blank(b);
        if (!in_a != !in_b)
            break;
        a += in_a;
        b += in_b;
        if (!in_a && *a++ != *b++)
            return false;
    }
    return !a[blank(a)] && !b[blank(b)];
}

int gold_find(const struct context *c, const char *question, char **json, struct err *err)
{
    struct buf out = { 0 };
    struct json_out w = { .buf = &out };

    *json = NULL;
    for (int i = 0; i < c->inputs.n; i++) {
        const struct context_input *in = &c->inputs.at[i];
        if (in->n_answers == 0 || !same_words(in->question, question))
            continue;
        json_begin(&w, NULL, '[');
        for (int a = 0; a < in->n_answers; a++)
            json_put_text(&w, NULL, in->answer[a]);
        json_end(&w, ']');
        *json = buf_take(&out);
        return *json ? 0 : err_nomem(err);
    }
    return 0;
}

bool gold_is_list(const char *json)
{
    struct err ignored;
    struct json *list = *json ? json_parse(json, strlen(json), &ignored) : NULL;
    bool good = !*json || (json_is_array(list) && json_count(list) > 0);

    for (const struct json *a = json_first(list); a && good; a = json_next(a))
        good = json_is_text(a);
    json_free(list);
    return good;
}

/* ---- scores --------------------------------------------------------------------- */

/* A question's answers under every config. */
static int score_answers_of(struct table *t, int q, const struct gold *gold, const struct gold_scorer *scorer,
                            struct err *err)
{
    for (int v = 0; v < t->n_configs; v++) {
        size_t at = table_answer(t, q, v);
        double is = (double)NAN;
        if (t->answer_n_tokens[at] >= 0 &&
            scorer->score(t->context_dataset[t->question_context[q]], t->answer_text[at], gold, &is, err))
            return err_wrap(err, "question '%s'", t->question_id[q]);
        t->gold_score[at] = (float)is;
    }
    return 0;
}

static int score_question(struct table *t, int q, const struct gold_scorer *scorer, struct err *err)
{
    const char *text = t->gold_answers[q];
    struct json *list = json_parse(text, strlen(text), err);
    struct gold gold = { 0 };
    int code = list ? 0 : err->code;
    const char **at = calloc((size_t)json_count(list) + 1, sizeof(*at));

    if (!code && !at)
        code = err_nomem(err);
    for (const struct json *a = code ? NULL : json_first(list); a; a = json_next(a))
        at[gold.n++] = json_text(a);
    gold.at = at;
    if (!code)
        code = score_answers_of(t, q, &gold, scorer, err);
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

int gold_score(struct table *t, const struct gold_scorer *scorer, struct err *err)
{
    for (int q = 0; q < t->n_questions; q++)
        if (*t->gold_answers[q] && score_question(t, q, scorer, err))
            return err->code;
    return mean_over_questions(t, err);
}
