/* exact.c - facts and words of all answers, one question on each thread. */
#include "profiler/score/exact.h"

#include "base/parallel.h"
#include "planner/belief.h"
#include "profiler/score/facts.h"
#include "profiler/score/metric.h"
#include "profiler/score/score.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct facts_of answer_at(const struct table *t, size_t answer, enum facts_language language)
{
    int n = t->answer_n_tokens[answer];

    return (struct facts_of){ t->answer_text[answer], n > 0 && n == t->max_new_tokens, language };
}

static int score_answer(struct table *t, size_t answer, size_t reference, const struct facts *facts, struct err *err)
{
    const char *text = t->answer_text[answer], *wanted = t->answer_text[reference];
    struct facts is = { 0 };
    double share = (double)NAN, f1 = 1;

    if (!table_has_text(t, answer))
        return 0;
    struct facts_of of = answer_at(t, answer, facts->language);
    int code = facts_read(&is, &of, err);
    if (!code)
        code = facts_kept(facts, &is, &share, err);
    if (!code && strcmp(text, wanted) != 0)
        code = metric_token_f1(text, wanted, &f1, err);
    facts_release(&is);
    t->facts_kept[answer] = (float)share;
    t->token_f1[answer] = (float)f1;
    return code;
}

static int score_question(struct table *t, int q, struct err *err)
{
    size_t reference = table_answer(t, q, 0);
    struct facts facts = { 0 };

    if (t->answer_n_tokens[reference] < 0)
        return 0;
    struct facts_of of = answer_at(t, reference, FACTS_DETECT);
    int code = facts_read(&facts, &of, err);
    for (int v = 0; v < t->n_configs && !code; v++)
        code = score_answer(t, reference + (size_t)v, reference, &facts, err);
    facts_release(&facts);
    return code ? err_wrap(err, "question '%s'", t->question_id[q]) : 0;
}

enum { BLOCK = 256 }; // questions that a thread takes at once

struct scoring {
    struct table *table;
    struct err *err; // per block
};

static void score_block(void *arg, int block)
{
    struct scoring *s = arg;
    int from = block * BLOCK, to = s->table->n_questions - from < BLOCK ? s->table->n_questions : from + BLOCK;

    s->err[block].code = 0;
    for (int q = from; q < to && !s->err[block].code; q++)
        s->err[block].code = score_question(s->table, q, &s->err[block]);
}

static int score_all(struct table *t, struct err *err)
{
    int blocks = (t->n_questions + BLOCK - 1) / BLOCK, code = 0;
    struct scoring s = { t, calloc((size_t)blocks + 1, sizeof(*s.err)) };

    if (!s.err)
        return err_nomem(err);
    parallel_do(parallel_threads(), blocks, score_block, &s);
    for (int i = 0; i < blocks && !code; i++) {
        code = s.err[i].code;
        *err = s.err[i];
    }
    free(s.err);
    return code;
}

/* ---- means and predictions ---------------------------------------------------------- */

/* Number and standard deviation of the values behind a mean (C, V). */
struct spread {
    const double *weight; // (Q); NULL: all 1
    int32_t *n;
    double *std;
    struct weight_sums *sums;
};

static int alloc_spread(struct spread *s, const struct table *t, const double *weight, struct err *err)
{
    size_t n = table_n_cells(t) + 1;

    *s = (struct spread){ weight, calloc(n, sizeof(*s->n)), calloc(n, sizeof(*s->std)), calloc(n, sizeof(*s->sums)) };
    return s->n && s->std && s->sums ? 0 : err_nomem(err);
}

static void free_spread(struct spread *s)
{
    free(s->n);
    free(s->std);
    free(s->sums);
}

/* The means over the questions of a split (Welford). */
static void set_means(const struct table *t, const char *split, const float *each, double *mean, const struct spread *s)
{
    size_t n_cells = table_n_cells(t);

    memset(s->sums, 0, n_cells * sizeof(*s->sums));
    memset(s->std, 0, n_cells * sizeof(*s->std));
    memset(mean, 0, n_cells * sizeof(*mean));
    for (int q = 0; q < t->n_questions; q++)
        for (int v = 0; v < t->n_configs; v++) {
            size_t cell = table_cell(t, (int)t->question_context[q], v);
            double is = (double)each[table_answer(t, q, v)], off = is - mean[cell];
            double weight = s->weight ? s->weight[q] : 1;
            if (weight <= 0 || isnan(is) || strcmp(t->question_split[q], split) != 0)
                continue;
            weight_sums_add(&s->sums[cell], weight);
            mean[cell] += weight * off / s->sums[cell].sum;
            s->std[cell] += weight * off * (is - mean[cell]);
        }
    for (size_t i = 0; i < n_cells; i++) {
        s->n[i] = weight_sums_n(&s->sums[i]);
        mean[i] = s->n[i] ? fmin(fmax(mean[i], 0), 1) : (double)NAN; /* rounding may leave the unit interval */
        s->std[i] = weight_sums_std(&s->sums[i], s->std[i]);
    }
}

int exact_score(struct table *t, const double *weight, struct err *err)
{
    struct spread s;
    int code = alloc_spread(&s, t, weight, err);

    if (!code)
        code = score_all(t, err);
    if (!code) {
        set_means(t, "train", t->facts_kept, t->facts_train, &s);
        set_means(t, "test", t->facts_kept, t->facts_test, &s);
        set_means(t, "train", t->token_f1, t->token_f1_train, &s);
        set_means(t, "test", t->token_f1, t->token_f1_test, &s);
    }
    free_spread(&s);
    return code;
}

/* The variance of one answer's share and of a config's mean, as if each answer kept all facts or none, after one more
 * answer of each kind: a few answers that kept everything prove little. */
static void doubt(const struct table *t, const struct spread *s, int v, double *of_answer, double *of_mean)
{
    double n = 2, kept = 1;

    for (int c = 0; c < t->n_contexts; c++) {
        size_t cell = table_cell(t, c, v);
        n += s->n[cell];
        kept += s->n[cell] ? s->n[cell] * t->facts_train[cell] : 0;
    }
    *of_answer = kept / n * (1 - kept / n);
    *of_mean = *of_answer / n;
}

static void predict_config(struct table *t, const struct belief *b, const struct spread *s, int v)
{
    double of_answer = 0, of_mean = 0;

    if (v > 0 && !isnan(b->mean[v])) {
        doubt(t, s, v, &of_answer, &of_mean);
        b->within[v] = fmax(b->within[v], of_answer);
    }
    for (int c = 0; c < t->n_contexts && !isnan(b->mean[v]); c++) {
        size_t cell = table_cell(t, c, v);
        if (t->cell_bytes[cell] < 0)
            continue;
        struct believed is = belief_of(b, v, t->facts_train[cell], s->n[cell]);
        t->predicted_facts[cell] = (float)is.quality;
        t->predicted_facts_sd[cell] = (float)fmin(sqrt(is.sd * is.sd + of_mean), 1);
    }
}

int exact_predict(struct table *t, const double *weight, struct err *err)
{
    struct spread s;
    struct belief b = { 0 };
    int code = alloc_spread(&s, t, weight, err);

    if (!code) {
        set_means(t, "train", t->facts_kept, t->facts_train, &s);
        code = belief_fit(&b, &(struct belief_cells){ t->n_contexts, t->n_configs, t->facts_train, s.std, s.n }, err);
    }
    for (int v = 0; v < t->n_configs && !code; v++)
        predict_config(t, &b, &s, v);
    belief_release(&b);
    free_spread(&s);
    return code;
}

int exact_languages(const struct table *t, int *n_answers, int *n_other, struct err *err)
{
    *n_answers = *n_other = 0;
    for (int q = 0; q < t->n_questions; q++) {
        size_t reference = table_answer(t, q, 0);
        struct facts facts;
        if (t->answer_n_tokens[reference] <= 0)
            continue;
        struct facts_of of = answer_at(t, reference, FACTS_DETECT);
        if (facts_read(&facts, &of, err))
            return err->code;
        ++*n_answers;
        *n_other += facts.language == FACTS_OTHER;
        facts_release(&facts);
    }
    return 0;
}
