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

/* The question of a context's request number k of `asks`, of n questions. */
static int changing(int k, int n, int asks)
{
    int early = (n + 1) / 2, half = (asks + 1) / 2;

    return k < half || n == 1 ? k % early : early + (k - half) % (n - early);
}

/* list: the test questions of context c are list[first[c]] to before list[first[c + 1]]. */
static int choose_questions(struct replay_world *w, const int32_t *first, const int32_t *list, uint64_t seed,
                            struct err *err)
{
    int n_contexts = w->in->table.n_contexts;
    struct rng r = rng_named(seed, "questions");
    int32_t *turn = calloc((size_t)n_contexts + 1, sizeof(*turn));
    double *asks = calloc((size_t)n_contexts + 1, sizeof(*asks));
    int code = turn && asks ? 0 : err_nomem(err);

    if (!code)
        world_count(w, 0, w->n, asks);
    for (int c = 0; c < n_contexts && !code && !w->topics_change; c++)
        turn[c] = first[c + 1] > first[c] ? (int32_t)rng_below(&r, (uint64_t)(first[c + 1] - first[c])) : 0;
    for (int i = 0; i < w->n && !code; i++) {
        int c = w->block_tokens ? -1 : w->path[w->first[i]], n = c < 0 ? 0 : first[c + 1] - first[c];
        int k = n ? turn[c]++ : 0;
        w->question[i] = n ? list[first[c] + (w->topics_change ? changing(k, n, (int)asks[c]) : k % n)] : -1;
    }
    free(turn);
    free(asks);
    return code;
}

int world_open(struct replay_world *w, uint64_t seed, struct err *err)
{
    int32_t *first = NULL, *list = NULL;

    w->question = malloc(((size_t)w->n + 1) * sizeof(*w->question));
    int code = w->question ? list_questions(&w->in->table, &first, &list, err) : err_nomem(err);
    code = code ? code : choose_questions(w, first, list, seed, err);
    free(first);
    free(list);
    if (code)
        world_close(w);
    return code;
}

void world_close(struct replay_world *w)
{
    free(w->question);
    *w = (struct replay_world){ 0 };
}

struct held world_all(const struct replay_world *w, int row, struct plan_placement at)
{
    const struct table *t = &w->in->table;
    struct held held = { .config = at.config };

    if (at.tier != PLAN_RECOMPUTE)
        held.at[at.tier] = t->cell_bytes[table_cell(t, row, at.config)];
    return held;
}

static double quality_of(const struct replay_world *w, int request, int row, int config)
{
    const struct table *t = &w->in->table;
    double answered = (double)NAN;

    if (config == 0)
        return 1;
    if (w->question[request] >= 0 && t->similarity)
        answered = (double)t->similarity[table_answer(t, w->question[request], config)];
    return isnan(answered) ? w->in->quality[table_cell(t, row, config)] : answered;
}

bool world_add(const struct replay_world *w, int request, int row, const struct held *held, struct finding *found)
{
    const struct table *t = &w->in->table;
    size_t cell = table_cell(t, row, held->config);
    double tokens = w->block_tokens ? (double)t->n_tokens[row] : 1;
    int64_t there = 0, all = t->cell_bytes[cell], read = table_bytes_read(t, cell);

    found->kept = (isnan(t->keep_frac[cell]) ? 1 : t->keep_frac[cell]) * (double)t->kv_bytes[row];
    for (int k = 0; k < w->in->tiers.n; k++) {
        if (held->at[k] == 0)
            continue;
        double share = (double)held->at[k] / (double)all;
        there += held->at[k];
        found->share[k] += share * tokens;
        found->shares += share * tokens;
        if (k < w->n_device)
            continue;
        found->read[k] += read < all ? share * (double)read : (double)held->at[k];
        found->gpu_s += share * (isnan(t->decompress_s[cell]) ? 0 : t->decompress_s[cell]);
        found->quality += share * tokens * (quality_of(w, request, row, held->config) - 1);
    }
    return there > 0 && there == all;
}

void world_add_memory(const struct replay_world *w, int request, int row, int config, struct finding *found)
{
    double tokens = w->block_tokens ? (double)w->in->table.n_tokens[row] : 1;

    found->kept = (double)w->in->table.kv_bytes[row];
    found->in_memory += tokens;
    found->shares += tokens;
    found->quality += tokens * (quality_of(w, request, row, config) - 1);
}

/* Of a prompt, whose first token follows from a token that is computed. */
static double prefill_s(const struct replay_world *w, int request, double tokens_found)
{
    double all = (double)w->tokens[request], old = fmin(tokens_found, all - 1);

    return (all - old) * (w->token_s + w->pair_s * (all + old) / 2);
}

void world_finish(const struct replay_world *w, int request, struct finding *found)
{
    const struct table *t = &w->in->table;

    if (!w->block_tokens) {
        int row = w->path[w->first[request]];
        found->gpu_s += found->shares > 0 ? t->question_s[row] : ttft_recomputed(t->prefill_s[row], t->question_s[row]);
        found->quality += 1;
        found->kept = found->shares > 0 ? found->kept : (double)t->kv_bytes[row];
        return;
    }
    double all = (double)w->tokens[request], of_prompt = 1 / fmax(all, found->shares); // the last block may be longer
    found->gpu_s += prefill_s(w, request, found->shares);
    for (int k = 0; k < w->in->tiers.n; k++)
        found->share[k] *= of_prompt;
    found->shares *= of_prompt;
    found->in_memory *= of_prompt;
    found->quality = 1 + found->quality * of_prompt;
    found->kept = all * w->kv_token_bytes;
}

double world_tokens(const struct replay_world *w, int request)
{
    return w->block_tokens ? (double)w->tokens[request] : (double)w->in->table.kv_bytes[w->path[w->first[request]]];
}

void world_count(const struct replay_world *w, int first, int end, double *count)
{
    memset(count, 0, (size_t)w->in->table.n_contexts * sizeof(*count));
    for (int i = w->first[first]; i < w->first[end]; i++)
        count[w->path[i]]++;
}

int world_expect(const struct replay_world *w, int first, int end, struct placement_input *in, struct err *err)
{
    int middle = first + (end - first) / 2;

    if (!w->learns) {
        world_count(w, first, end, in->frequency);
        return 0;
    }
    double *before = calloc((size_t)in->table.n_contexts + 1, sizeof(*before));
    if (!before)
        return err_nomem(err);
    world_count(w, first, middle, before);
    world_count(w, middle, end, in->frequency);
    placement_learn_rates(in, before, 0);
    free(before);
    return 0;
}
