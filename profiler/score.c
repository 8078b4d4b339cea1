/* Answers are embedded in batches of whole questions: a question's answers are compared with its reference at once, and
 * the vectors of all answers never need memory together. Quality follows from similarity, utility from quality. */
#include "profiler/score.h"

#include "planner/utility.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int score_lost(const struct table *t, bool *lost)
{
    int n = t->n_contexts;

    memset(lost, true, (size_t)t->n_contexts * sizeof(*lost));
    for (int q = 0; q < t->n_questions; q++) {
        bool *of = &lost[t->question_context[q]];
        if (!*of || t->answer_n_tokens[table_answer(t, q, 0)] < 0)
            continue;
        *of = false;
        n--;
    }
    return n;
}

/* ---- similarity ------------------------------------------------------------ */

/* Answers of one batch. A batch has whole questions: at least one, whatever the number of configs. Vectors of 384
 * floats are 100 MB. */
enum { ANSWERS_MAX = 1 << 16 };

static float similarity(const struct table *t, size_t reference, size_t answer, float cosine)
{
    if (t->answer_n_tokens[reference] < 0 || t->answer_n_tokens[answer] < 0)
        return NAN;
    return strcmp(t->answer_text[reference], t->answer_text[answer]) == 0 ? 1 : cosine;
}

/* Questions from..to-1. */
struct batch {
    int from, to;
    float *vector; // (answers of the batch, width)
};

static int score_batch(struct table *t, const struct score_embedder *e, const struct batch *b, struct err *err)
{
    const float *at = b->vector, *reference = b->vector;

    if (e->embed(e->arg, t->answer_text + table_answer(t, b->from, 0), (b->to - b->from) * t->n_configs, b->vector,
                 err))
        return err->code;
    for (int q = b->from; q < b->to; q++) {
        for (int v = 0; v < t->n_configs; v++, at += e->width) {
            size_t answer = table_answer(t, q, v);
            reference = v == 0 ? at : reference;
            t->similarity[answer] = similarity(t, table_answer(t, q, 0), answer, e->cosine(at, reference, e->width));
        }
    }
    return 0;
}

static int score_similarity(struct table *t, const struct score_embedder *e, struct err *err)
{
    int max = ANSWERS_MAX / t->n_configs < 1 ? 1 : ANSWERS_MAX / t->n_configs;
    int n = max < t->n_questions ? max : t->n_questions;
    struct batch b = { .vector = calloc((size_t)n * (size_t)t->n_configs, (size_t)e->width * sizeof(*b.vector)) };
    int code = b.vector ? 0 : err_nomem(err);

    while (b.to < t->n_questions && !code) {
        b.from = b.to;
        b.to += t->n_questions - b.to < n ? t->n_questions - b.to : n;
        code = score_batch(t, e, &b, err);
    }
    free(b.vector);
    return code;
}

/* ---- quality --------------------------------------------------------------- */

/* A cosine below 0 says no more than one of 0, that the answers have nothing in common; above 1 it is rounding. */
static double clamp_to_unit(float similarity)
{
    return similarity < 0 ? 0 : similarity > 1 ? 1 : (double)similarity;
}

/* One split of the questions, and its columns (C, V). */
struct split_quality {
    const char *split;
    double *mean, *std;
    int32_t *n;
};

/* Calls `add` for every similarity of the split that is there. */
static void each_similarity(const struct table *t, const struct split_quality *s,
                            void (*add)(const struct split_quality *, size_t cell, double is))
{
    for (int q = 0; q < t->n_questions; q++) {
        if (strcmp(t->question_split[q], s->split) != 0)
            continue;
        for (int v = 0; v < t->n_configs; v++) {
            float is = t->similarity[table_answer(t, q, v)];
            if (!isnan(is))
                add(s, table_cell(t, (int)t->question_context[q], v), clamp_to_unit(is));
        }
    }
}

static void add_to_mean(const struct split_quality *s, size_t cell, double is)
{
    s->mean[cell] += is;
    s->n[cell]++;
}

static void add_to_std(const struct split_quality *s, size_t cell, double is)
{
    double off = is - s->mean[cell];

    s->std[cell] += off * off;
}

/* In two passes: the deviation is from the mean. */
static void score_split(const struct table *t, const struct split_quality *s)
{
    size_t n_cells = table_n_cells(t);

    for (size_t i = 0; i < n_cells; i++) {
        s->mean[i] = s->std[i] = 0;
        s->n[i] = 0;
    }
    each_similarity(t, s, add_to_mean);
    for (size_t i = 0; i < n_cells; i++)
        s->mean[i] = s->n[i] ? s->mean[i] / s->n[i] : (double)NAN;
    each_similarity(t, s, add_to_std);
    for (size_t i = 0; i < n_cells; i++)
        s->std[i] = s->n[i] > 1 ? sqrt(s->std[i] / (s->n[i] - 1)) : (double)NAN;
}

int score_answers(struct table *t, const struct score_embedder *e, struct err *err)
{
    if (score_similarity(t, e, err))
        return err->code;
    score_split(t, &(struct split_quality){ "train", t->quality_train, t->quality_train_std, t->quality_train_n });
    score_split(t, &(struct split_quality){ "test", t->quality_test, t->quality_test_std, t->quality_test_n });
    return 0;
}

/* ---- utility --------------------------------------------------------------- */

/* One variant on every tier. */
static void score_cell(struct table *t, const struct tiers *tiers, double alpha, size_t cell)
{
    size_t at = cell * (size_t)t->n_tiers;
    double question_s = t->question_s[cell / (size_t)t->n_configs];

    for (int d = 0; d < tiers->n; d++, at++) {
        double read_s = tier_read_s(&tiers->at[d], t->cell_bytes[cell]);
        t->ttft_s[at] = ttft_stored(read_s, t->decompress_s[cell], question_s);
        t->utility[at] = utility(alpha, t->quality_train[cell], t->ttft_s[at], 1);
    }
}

/* A context that is not stored is computed again, uncompressed: config 0, whose answers are the reference's. */
static void score_recompute(struct table *t, int context, double alpha)
{
    size_t at = (table_cell(t, context, 0) + 1) * (size_t)t->n_tiers - 1;

    t->ttft_s[at] = ttft_recomputed(t->prefill_s[context], t->question_s[context]);
    t->utility[at] = utility_recomputed(alpha, t->ttft_s[at], 1);
}

static int name_tier(struct table *t, int tier, const char *name, struct err *err)
{
    char *copy = strdup(name);

    if (table_own(t, copy, err))
        return err->code;
    t->tier_name[tier] = copy;
    return 0;
}

int score_tiers(struct table *t, const struct tiers *tiers, double alpha, struct err *err)
{
    for (int d = 0; d <= tiers->n; d++)
        if (name_tier(t, d, d < tiers->n ? tiers->at[d].name : "recompute", err))
            return err->code;
    for (size_t cell = 0; cell < table_n_cells(t); cell++)
        if (t->cell_bytes[cell] >= 0)
            score_cell(t, tiers, alpha, cell);
    for (int c = 0; c < t->n_contexts; c++)
        score_recompute(t, c, alpha);
    return 0;
}
