/* score.c - embeds answers in batches of whole questions, so that a question's answers are compared with its reference
 * at once, and the vectors of all answers never need memory together. Quality follows from similarity, utility from
 * quality. */
#include "profiler/score/score.h"

#include "planner/belief.h"
#include "planner/utility.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int score_lost(const struct table *t, bool *lost)
{
    int n = 0, answered = 0;

    memset(lost, false, (size_t)t->n_contexts * sizeof(*lost));
    for (size_t i = 0; i < table_n_answers(t); i++)
        if (t->answer_n_tokens[i] >= 0)
            lost[t->question_context[i / (size_t)t->n_configs]] = true;
    for (int q = 0; q < t->n_questions; q++)
        if (t->answer_n_tokens[table_answer(t, q, 0)] >= 0) {
            lost[t->question_context[q]] = false;
            answered++;
        }
    for (int c = 0; c < t->n_contexts; c++)
        n += lost[c];
    return answered ? n : -1;
}

/* ---- similarity ------------------------------------------------------------ */

/* Answers per batch, but at least one whole question. Vectors of 384 floats take 100 MB. */
enum { ANSWERS_MAX = 1 << 16 };

/* Of a judged answer: how much less likely, per token, the variant makes the reference's answer. */
static float similarity(const struct table *t, size_t reference, size_t answer, float cosine)
{
    if (t->answer_n_tokens[reference] < 0 || t->answer_n_tokens[answer] < 0)
        return NAN;
    if (t->log_likelihood && !isnan(t->log_likelihood[answer]))
        return expf(fminf(t->log_likelihood[answer] - t->log_likelihood[reference], 0));
    return strcmp(t->answer_text[reference], t->answer_text[answer]) == 0 ? 1 : cosine;
}

/* The same for the reference's answer to q and its sampled one. */
static float similarity_sampled(const struct table *t, int q, float cosine)
{
    size_t reference = table_answer(t, q, 0);

    if (t->answer_n_tokens[reference] < 0 || t->sampled_n_tokens[q] < 0)
        return NAN;
    return strcmp(t->answer_text[reference], t->sampled_text[q]) == 0 ? 1 : cosine;
}

/* A cosine below 0 means the same as 0: nothing in common; above 1 it is a rounding error. */
static double clamp_to_unit(float similarity)
{
    return similarity < 0 ? 0 : similarity > 1 ? 1 : (double)similarity;
}

/* Questions from..to-1. */
struct batch {
    int from, to;
    float *vector;  // (answers of the batch, width)
    float *sampled; // (questions of the batch, width): of the sampled answers; NULL: none
    int *before;    // (Q): the previous question about the same context, or -1
    int *pairs;     // (C): pairs summed in `unrelated` so far
};

/* Compares the reference's answer to q with its answers to earlier questions in the batch. The questions of a context
 * usually come together, and a batch has thousands. */
static void add_unrelated(struct table *t, const struct score_embedder *e, const struct batch *b, int q)
{
    size_t stride = (size_t)t->n_configs * (size_t)e->width, mine = table_answer(t, q, 0);
    const float *at = b->vector + (size_t)(q - b->from) * stride;
    int c = (int)t->question_context[q];

    if (*t->measure) /* cosines are no end of that scale */
        return;
    for (int k = b->before[q], n = 0; k >= b->from && n < UNRELATED_BEFORE; k = b->before[k], n++) {
        float is = similarity(t, table_answer(t, k, 0), mine,
                              e->cosine(at, b->vector + (size_t)(k - b->from) * stride, e->width));
        if (isnan(is))
            continue;
        t->unrelated[c] = (b->pairs[c] ? t->unrelated[c] : 0) + clamp_to_unit(is);
        b->pairs[c]++;
    }
}

static int score_batch(struct table *t, const struct score_embedder *e, const struct batch *b, struct err *err)
{
    const float *at = b->vector, *reference = b->vector, *sampled = b->sampled;

    if (e->embed(e->arg, t->answer_text + table_answer(t, b->from, 0), (b->to - b->from) * t->n_configs, b->vector,
                 err) ||
        (sampled && e->embed(e->arg, t->sampled_text + b->from, b->to - b->from, b->sampled, err)))
        return err->code;
    for (int q = b->from; q < b->to; q++) {
        for (int v = 0; v < t->n_configs; v++, at += e->width) {
            size_t answer = table_answer(t, q, v);
            reference = v == 0 ? at : reference;
            t->similarity[answer] = similarity(t, table_answer(t, q, 0), answer, e->cosine(at, reference, e->width));
        }
        add_unrelated(t, e, b, q);
        if (sampled)
            t->sampled_similarity[q] = similarity_sampled(t, q, e->cosine(sampled, reference, e->width));
        sampled += sampled ? e->width : 0;
    }
    return 0;
}

/* Fills before (Q). last (C): scratch. */
static void find_before(const struct table *t, int *before, int *last)
{
    for (int c = 0; c < t->n_contexts; c++)
        last[c] = -1;
    for (int q = 0; q < t->n_questions; q++) {
        before[q] = last[t->question_context[q]];
        last[t->question_context[q]] = q;
    }
    for (int c = 0; c < t->n_contexts; c++) {
        last[c] = 0;
        t->unrelated[c] = (double)NAN;
    }
}

/* Fills same_meaning. n: (C), zeroed. */
static void mean_sampled(struct table *t, int *n)
{
    for (int q = 0; q < t->n_questions; q++) {
        int c = (int)t->question_context[q];
        if (isnan(t->sampled_similarity[q]))
            continue;
        t->same_meaning[c] = (n[c] ? t->same_meaning[c] : 0) + clamp_to_unit(t->sampled_similarity[q]);
        n[c]++;
    }
    for (int c = 0; c < t->n_contexts; c++)
        t->same_meaning[c] = n[c] ? t->same_meaning[c] / n[c] : (double)NAN;
}

bool score_has_sampled(const struct table *t)
{
    for (int q = 0; q < t->n_questions; q++)
        if (t->sampled_n_tokens[q] >= 0)
            return true;
    return false;
}

static int score_similarity(struct table *t, const struct score_embedder *e, struct err *err)
{
    int max = ANSWERS_MAX / t->n_configs < 1 ? 1 : ANSWERS_MAX / t->n_configs;
    int n = max < t->n_questions ? max : t->n_questions;
    struct batch b = { .vector = calloc((size_t)n * (size_t)t->n_configs, (size_t)e->width * sizeof(*b.vector)),
                       .before = calloc((size_t)t->n_questions + 1, sizeof(*b.before)),
                       .pairs = calloc((size_t)t->n_contexts + 1, sizeof(*b.pairs)) };
    bool has_sampled = score_has_sampled(t);
    if (has_sampled)
        b.sampled = calloc((size_t)n, (size_t)e->width * sizeof(*b.sampled));
    int code = b.vector && b.before && b.pairs && (b.sampled || !has_sampled) ? 0 : err_nomem(err);

    if (!code)
        find_before(t, b.before, b.pairs);
    while (b.to < t->n_questions && !code) {
        b.from = b.to;
        b.to += t->n_questions - b.to < n ? t->n_questions - b.to : n;
        code = score_batch(t, e, &b, err);
    }
    for (int c = 0; c < t->n_contexts && !code; c++)
        t->unrelated[c] /= b.pairs[c] ? b.pairs[c] : 1;
    if (!code) {
        memset(b.pairs, 0, (size_t)t->n_contexts * sizeof(*b.pairs));
        mean_sampled(t, b.pairs);
    }
    free(b.vector);
    free(b.sampled);
    free(b.before);
    free(b.pairs);
    return code;
}

/* The mean over the contexts with a value. */
static double mean_over_contexts(const struct table *t, const double *column)
{
    double sum = 0;
    int n = 0;

    for (int c = 0; column && c < t->n_contexts; c++) {
        sum += isnan(column[c]) ? 0 : column[c];
        n += !isnan(column[c]);
    }
    return n ? sum / n : (double)NAN;
}

double score_unrelated(const struct table *t)
{
    return mean_over_contexts(t, t->unrelated);
}

double score_same_meaning(const struct table *t)
{
    return mean_over_contexts(t, t->same_meaning);
}

/* ---- quality --------------------------------------------------------------- */

/* One split of the questions, and its columns (C, V). */
struct split_quality {
    const char *split;
    double *mean, *std;
    int32_t *n;
    const double *weight;     // (Q); NULL: all 1
    struct weight_sums *sums; // for score_split()
};

/* Calls `add` for every similarity of the split. */
static void each_similarity(const struct table *t, const struct split_quality *s,
                            void (*add)(const struct split_quality *, size_t cell, double weight, double is))
{
    for (int q = 0; q < t->n_questions; q++) {
        double weight = s->weight ? s->weight[q] : 1;
        if (weight <= 0 || strcmp(t->question_split[q], s->split) != 0)
            continue;
        for (int v = 0; v < t->n_configs; v++) {
            float is = t->similarity[table_answer(t, q, v)];
            if (!isnan(is))
                add(s, table_cell(t, (int)t->question_context[q], v), weight, clamp_to_unit(is));
        }
    }
}

static void add_to_mean(const struct split_quality *s, size_t cell, double weight, double is)
{
    s->mean[cell] += weight * is;
    weight_sums_add(&s->sums[cell], weight);
}

static void add_to_std(const struct split_quality *s, size_t cell, double weight, double is)
{
    double off = is - s->mean[cell];

    s->std[cell] += weight * off * off;
}

/* In two passes, because the deviation needs the mean. */
static void score_split(const struct table *t, const struct split_quality *s)
{
    size_t n_cells = table_n_cells(t);

    for (size_t i = 0; i < n_cells; i++) {
        s->mean[i] = s->std[i] = 0;
        s->sums[i] = (struct weight_sums){ 0 };
    }
    each_similarity(t, s, add_to_mean);
    for (size_t i = 0; i < n_cells; i++) {
        s->n[i] = weight_sums_n(&s->sums[i]);
        s->mean[i] = s->n[i] ? s->mean[i] / s->sums[i].sum : (double)NAN;
    }
    each_similarity(t, s, add_to_std);
    for (size_t i = 0; i < n_cells; i++)
        s->std[i] = weight_sums_std(&s->sums[i], s->std[i]);
}

int score_answers(struct table *t, const struct score_embedder *e, const double *weight, struct err *err)
{
    struct weight_sums *sums = calloc(table_n_cells(t) + 1, sizeof(*sums));
    int code = sums ? score_similarity(t, e, err) : err_nomem(err);

    if (!code) {
        score_split(t, &(struct split_quality){ "train", t->quality_train, t->quality_train_std, t->quality_train_n,
                                                weight, sums });
        score_split(t, &(struct split_quality){ "test", t->quality_test, t->quality_test_std, t->quality_test_n, weight,
                                                sums });
    }
    free(sums);
    return code;
}

/* ---- speed ------------------------------------------------------------------ */

double score_speed(const struct table *t, int config, int batch)
{
    const double *column = t->decode_s[batch];
    double sum = 0;
    int n = 0;

    for (int c = 0; column && c < t->n_contexts; c++) {
        double speed = column[table_cell(t, c, 0)] / column[table_cell(t, c, config)];
        sum += isnan(speed) ? 0 : speed;
        n += !isnan(speed);
    }
    return n ? sum / n : (double)NAN;
}

bool score_has_speed(const struct table *t)
{
    return !isnan(score_speed(t, 0, 0));
}

/* ---- errors of qualities --------------------------------------------------- */

/* Mean and standard error of a sequence of numbers. */
struct context_sample {
    int n;
    double mean, squares; // of the differences from the mean (Welford)
};

static void sample_add(struct context_sample *s, double v)
{
    double off = v - s->mean;

    s->n++;
    s->mean += off / s->n;
    s->squares += off * (v - s->mean);
}

static double sample_error(const struct context_sample *s)
{
    return s->n > 1 ? sqrt(s->squares / (s->n - 1) / s->n) : (double)NAN;
}

double score_error(const struct table *t, enum split split, int config)
{
    const double *mean = split == SPLIT_TRAIN ? t->quality_train : t->quality_test;
    const double *std = split == SPLIT_TRAIN ? t->quality_train_std : t->quality_test_std;
    const int32_t *n = split == SPLIT_TRAIN ? t->quality_train_n : t->quality_test_n;
    struct context_sample s = { 0 };
    size_t one = 0;

    for (int c = 0; mean && c < t->n_contexts; c++) {
        size_t cell = table_cell(t, c, config);
        if (isnan(mean[cell]))
            continue;
        sample_add(&s, mean[cell]);
        one = cell;
    }
    if (s.n == 1 && std && n && n[one] > 1)
        return std[one] / sqrt(n[one]);
    return sample_error(&s);
}

double score_mean_error(const struct table *t, const double *mean, const float *answers, enum split split, int config)
{
    struct context_sample contexts = { 0 }, questions = { 0 };

    for (int c = 0; mean && c < t->n_contexts; c++)
        if (!isnan(mean[table_cell(t, c, config)]))
            sample_add(&contexts, mean[table_cell(t, c, config)]);
    for (int q = 0; contexts.n == 1 && answers && q < t->n_questions; q++) {
        float is = answers[table_answer(t, q, config)];
        if (!isnan(is) && strcmp(t->question_split[q], split_name(split)) == 0)
            sample_add(&questions, (double)is);
    }
    return sample_error(contexts.n == 1 ? &questions : &contexts);
}

/* Adds a pair of configs, compared over questions 0 .. n_questions - 1. */
static void resolve_pair(struct score_resolution *r, const struct table *t, const char *split, int n_questions,
                         const int pair[2])
{
    struct context_sample s = { 0 };
    bool alike = true;

    for (int q = 0; q < n_questions; q++) {
        float a = t->similarity[table_answer(t, q, pair[0])], b = t->similarity[table_answer(t, q, pair[1])];
        if (isnan(a) || isnan(b) || strcmp(t->question_split[q], split) != 0)
            continue;
        double difference = clamp_to_unit(a) - clamp_to_unit(b);
        alike = alike && difference == 0;
        sample_add(&s, difference);
    }
    r->pairs += !alike;
    r->told += !alike && s.n > 1 && fabs(s.mean) >= 2 * sample_error(&s);
}

struct score_resolution score_resolve(const struct table *t, enum split split)
{
    const double steps = 3e8; // a second's work
    double pairs = (double)t->n_configs * t->n_configs / 2, max = steps / pairs;
    struct score_resolution r = { 0, 0 };
    int n = max < t->n_questions ? (int)max : t->n_questions;

    for (int v = 1; t->similarity && v < t->n_configs; v++)
        for (int w = v + 1; w < t->n_configs; w++)
            resolve_pair(&r, t, split_name(split), n, (const int[2]){ v, w });
    return r;
}

/* ---- predictions ----------------------------------------------------------- */

static void predict_cells(struct table *t, const struct belief *b)
{
    for (int c = 0; c < t->n_contexts; c++)
        for (int v = 0; v < t->n_configs; v++) {
            size_t i = table_cell(t, c, v);
            t->cell_asked[i] = isnan(t->quality_train[i]) ? 0 : t->quality_train_n[i];
            if (t->cell_bytes[i] < 0 || isnan(b->mean[v]))
                continue;
            struct believed is = belief_of(b, v, t->quality_train[i], t->cell_asked[i]);
            t->predicted_quality[i] = is.quality;
            t->predicted_sd[i] = (float)is.sd;
        }
}

int score_predict(struct table *t, struct err *err)
{
    const struct belief_cells cells = { t->n_contexts, t->n_configs, t->quality_train, t->quality_train_std,
                                        t->quality_train_n };
    struct belief b;
    int code = belief_fit(&b, &cells, err);

    if (!code)
        code = table_alloc_belief(t, err);
    if (!code) {
        size_t bytes = (size_t)t->n_configs * sizeof(double);
        memcpy(t->belief_mean, b.mean, bytes);
        memcpy(t->belief_between, b.between, bytes);
        memcpy(t->belief_within, b.within, bytes);
        predict_cells(t, &b);
    }
    belief_release(&b);
    return code;
}

/* ---- utility --------------------------------------------------------------- */

/* Scores one variant on every tier. */
static void score_cell(struct table *t, const struct tiers *tiers, double alpha, size_t cell)
{
    const struct plan_goal goal = { .alpha = alpha }; /* a promised TTFT concerns only plans */
    size_t at = cell * (size_t)t->n_tiers;
    double question_s = t->question_s[cell / (size_t)t->n_configs];

    for (int d = 0; d < tiers->n; d++, at++) {
        double read_s = tier_read_s(&tiers->at[d], table_bytes_read(t, cell));
        t->ttft_s[at] = ttft_stored(read_s, t->decompress_s[cell], question_s);
        t->utility[at] = utility(&goal, t->quality_train[cell], t->ttft_s[at], 0, 1);
    }
}

/* A context that is not stored is recomputed uncompressed, as config 0, with the reference's answers. */
static void score_recompute(struct table *t, int context, double alpha)
{
    size_t at = (table_cell(t, context, 0) + 1) * (size_t)t->n_tiers - 1;

    t->ttft_s[at] = ttft_recomputed(t->prefill_s[context], t->question_s[context]);
    t->utility[at] = utility_recomputed(&(struct plan_goal){ .alpha = alpha }, t->ttft_s[at], 0, 1);
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
