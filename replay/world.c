/* world.c - questions are drawn once, so that all policies answer the same ones. */
#include "replay/world.h"

#include "base/rng.h"
#include "planner/utility.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_test(const struct table *t, int question)
{
    return t->question_split && strcmp(t->question_split[question], "test") == 0;
}

/* Lists the test questions of each context: first[c] to before first[c + 1]. */
static int list_questions(const struct table *t, int32_t **first, int32_t **of, struct err *err)
{
    int32_t *at = calloc((size_t)t->n_contexts + 2, sizeof(*at));
    int32_t *list = calloc((size_t)t->n_questions + 1, sizeof(*list));

    *first = at;
    *of = list;
    if (!at || !list)
        return err_nomem(err);
    for (int q = 0; q < t->n_questions; q++)
        if (is_test(t, q))
            at[t->question_context[q] + 2]++;
    for (int c = 0; c < t->n_contexts; c++)
        at[c + 2] += at[c + 1];
    for (int q = 0; q < t->n_questions; q++)
        if (is_test(t, q))
            list[at[t->question_context[q] + 1]++] = q;
    return 0;
}

int world_open(struct replay_world *w, uint64_t seed, struct err *err)
{
    const struct table *t = &w->in->table;
    struct rng r = rng_named(seed, "questions");
    int32_t *first = NULL, *list = NULL, *turn = calloc((size_t)t->n_contexts + 1, sizeof(*turn));

    w->question = malloc(((size_t)w->n + 1) * sizeof(*w->question));
    int code = turn && w->question ? list_questions(t, &first, &list, err) : err_nomem(err);
    for (int c = 0; c < t->n_contexts && !code; c++)
        turn[c] = first[c + 1] > first[c] ? (int32_t)rng_below(&r, (uint64_t)(first[c + 1] - first[c])) : 0;
    for (int i = 0; i < w->n && !code; i++) {
        int c = w->row[i], n_questions = first[c + 1] - first[c];
        w->question[i] = n_questions ? list[first[c] + turn[c]++ % n_questions] : -1;
    }
    free(first);
    free(list);
    free(turn);
    if (code)
        world_close(w);
    return code;
}

void world_close(struct replay_world *w)
{
    free(w->question);
    *w = (struct replay_world){ 0 };
}

double world_gpu_s(const struct replay_world *w, int request, struct plan_placement at)
{
    const struct table *t = &w->in->table;
    int row = w->row[request];

    if (at.tier == PLAN_RECOMPUTE)
        return ttft_recomputed(t->prefill_s[row], t->question_s[row]);
    return ttft_stored(0, t->decompress_s[table_cell(t, row, at.config)], t->question_s[row]);
}

double world_read(const struct replay_world *w, int request, struct plan_placement at)
{
    const struct table *t = &w->in->table;

    return at.tier == PLAN_RECOMPUTE ? 0 : (double)t->cell_bytes[table_cell(t, w->row[request], at.config)];
}

double world_quality(const struct replay_world *w, int request, struct plan_placement at)
{
    const struct table *t = &w->in->table;
    double answered = (double)NAN;

    if (at.tier == PLAN_RECOMPUTE || at.config == 0)
        return 1;
    if (w->question[request] >= 0 && t->similarity)
        answered = (double)t->similarity[table_answer(t, w->question[request], at.config)];
    return isnan(answered) ? w->in->quality[table_cell(t, w->row[request], at.config)] : answered;
}

void world_count(const struct replay_world *w, int first, int end, double *count)
{
    memset(count, 0, (size_t)w->in->table.n_contexts * sizeof(*count));
    for (int i = first; i < end; i++)
        count[w->row[i]]++;
}
