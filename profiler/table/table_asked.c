/* table_asked.c - weights, the newest questions, and contexts that are forgotten. fmax() ignores NAN, an unknown
 * time. */
#include "profiler/table/table_asked.h"

#include <stdlib.h>
#include <string.h>

static double newest_of(const struct table *t)
{
    double newest = (double)NAN;

    for (int q = 0; q < t->n_questions; q++)
        newest = fmax(newest, t->asked_at[q]);
    return newest;
}

double *table_asked_weights(const struct table *t, double half_life, struct err *err)
{
    const double least = 1e-30; // its square is far from the smallest number
    double newest = newest_of(t), *weight = malloc(((size_t)t->n_questions + 1) * sizeof(*weight));

    if (!weight)
        err_nomem(err);
    for (int q = 0; q < t->n_questions && weight; q++) {
        double w = half_life > 0 && !isnan(t->asked_at[q]) ? exp2((t->asked_at[q] - newest) / half_life) : 1;
        weight[q] = w < least ? 0 : w;
    }
    return weight;
}

int table_asked_since(struct table *t, double seconds, struct err *err)
{
    double newest = newest_of(t);
    bool *keep = calloc((size_t)t->n_questions + 1, sizeof(*keep));

    for (int q = 0; q < t->n_questions && keep; q++)
        keep[q] = !(newest - t->asked_at[q] > seconds);
    int code = keep ? table_keep(t, NULL, keep, err) : err_nomem(err);
    free(keep);
    return code;
}

/* ---- a run ----------------------------------------------------------------- */

/* Returns 1 if a time is newer, 0, or an error. */
static int bring(struct table *t, const struct questions *questions, struct err *err)
{
    struct table_rows rows = { 0 };
    int changed = table_rows_add(&rows, t, err);

    for (int i = 0; i < questions->n && changed >= 0; i++) {
        const struct question *is = &questions->at[i];
        int q = is->asked_at > 0 ? map_find(&rows.questions, is->id, strlen(is->id)) : -1;
        if (q < 0 || t->asked_at[q] >= is->asked_at || strcmp(t->question_text[q], is->text) != 0 ||
            strcmp(t->context_id[t->question_context[q]], is->context) != 0)
            continue;
        t->asked_at[q] = is->asked_at;
        changed = 1;
    }
    table_rows_release(&rows);
    return changed;
}

/* Sets stay (C); returns the number of contexts that do not. last (C): NAN. */
static int choose(const struct table *t, const struct table_asked_run *a, double *last, bool *stay)
{
    double newest = newest_of(t);
    int n = 0;

    for (int i = 0; i < a->questions->n; i++)
        if (a->questions->at[i].asked_at > 0)
            newest = fmax(newest, a->questions->at[i].asked_at);
    for (int q = 0; q < t->n_questions; q++)
        last[t->question_context[q]] = fmax(last[t->question_context[q]], t->asked_at[q]);
    for (int c = 0; c < t->n_contexts; c++) {
        stay[c] =
            map_find(a->contexts, t->context_id[c], strlen(t->context_id[c])) >= 0 || !(newest - last[c] > a->forget);
        n += !stay[c];
    }
    return n;
}

static int forget(struct table *t, const struct table_asked_run *a, int *n_forgotten, struct err *err)
{
    bool *stay = malloc((size_t)t->n_contexts + 1);
    double *last = malloc(((size_t)t->n_contexts + 1) * sizeof(*last));
    int n = 0, code = stay && last ? 0 : err_nomem(err);

    for (int c = 0; c < t->n_contexts && !code; c++)
        last[c] = (double)NAN;
    if (!code)
        n = choose(t, a, last, stay);
    if (!code && n > 0 && n < t->n_contexts) {
        code = table_keep(t, stay, NULL, err);
        *n_forgotten = n;
    }
    free(stay);
    free(last);
    return code;
}

int table_asked_renew(struct table *t, const struct table_asked_run *a, int *n_forgotten, struct err *err)
{
    int changed = bring(t, a->questions, err);

    *n_forgotten = 0;
    if (changed < 0 || (a->forget > 0 && forget(t, a, n_forgotten, err)))
        return err->code;
    return changed || *n_forgotten > 0;
}
