#include "profiler/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float similarity(const struct table *t, size_t reference, size_t answer, float cosine)
{
    if (t->answer_n_tokens[reference] < 0 || t->answer_n_tokens[answer] < 0)
        return NAN;
    return strcmp(t->answer_text[reference], t->answer_text[answer]) == 0 ? 1 : cosine;
}

void score_similarity(struct table *t, const float *cosine)
{
    size_t n_configs = (size_t)t->n_configs;

    for (size_t q = 0; q < (size_t)t->n_questions; q++)
        for (size_t i = q * n_configs; i < (q + 1) * n_configs; i++)
            t->similarity[i] = similarity(t, q * n_configs, i, cosine[i]);
}

/* A cosine below 0 says no more than one of 0, that the answers have nothing in common; above 1 it is rounding. */
static double held_to_unit(float similarity)
{
    return similarity < 0 ? 0 : similarity > 1 ? 1 : (double)similarity;
}

/* n: (C, V), zeroed; how many similarities went into each mean. */
static void mean_of_split(const struct table *t, const char *split, double *quality, int *n)
{
    size_t n_configs = (size_t)t->n_configs, n_cells = (size_t)t->n_contexts * n_configs;

    for (size_t i = 0; i < n_cells; i++)
        quality[i] = 0;
    for (size_t q = 0; q < (size_t)t->n_questions; q++) {
        size_t cell = (size_t)t->question_context[q] * n_configs;
        if (strcmp(t->question_split[q], split) != 0)
            continue;
        for (size_t i = q * n_configs; i < (q + 1) * n_configs; i++, cell++) {
            if (isnan(t->similarity[i]))
                continue;
            quality[cell] += held_to_unit(t->similarity[i]);
            n[cell]++;
        }
    }
    for (size_t i = 0; i < n_cells; i++)
        quality[i] = n[i] ? quality[i] / n[i] : (double)NAN;
}

int score_quality(struct table *t, struct err *err)
{
    size_t n_cells = (size_t)t->n_contexts * (size_t)t->n_configs;
    int *n = calloc(2 * n_cells, sizeof(*n));

    if (!n)
        return err_nomem(err);
    mean_of_split(t, "train", t->quality_train, n);
    mean_of_split(t, "test", t->quality_test, n + n_cells);
    free(n);
    return 0;
}

double score_mean(const struct table *t, const double *column, int config)
{
    double sum = 0;
    int n = 0;

    for (size_t i = (size_t)config; i < (size_t)t->n_contexts * (size_t)t->n_configs; i += (size_t)t->n_configs) {
        if (isnan(column[i]))
            continue;
        sum += column[i];
        n++;
    }
    return n ? sum / n : (double)NAN;
}
