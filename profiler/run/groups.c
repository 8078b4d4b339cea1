/* groups.c - sorts configs into groups with the same open questions. */
#include "profiler/run/groups.h"

#include <stdlib.h>
#include <string.h>

static bool same_open(const struct work *w, int a, int b)
{
    return memcmp(work_open(w, a), work_open(w, b), (size_t)w->n_questions * sizeof(*w->open)) == 0;
}

static bool is_member(const struct work_groups *groups, int config)
{
    for (int i = 0; i < groups->n; i++)
        if (groups->member[i] == config)
            return true;
    return false;
}

int work_groups_make(struct work_groups *groups, const struct grid *g, const struct work *w, struct err *err)
{
    size_t n = (size_t)g->n_configs + 1;

    *groups = (struct work_groups){ .member = calloc(n, sizeof(*groups->member)),
                                    .config = calloc(n, sizeof(struct config *)),
                                    .sampled = -1 };
    if (!groups->member || !groups->config) {
        work_groups_release(groups);
        return err_nomem(err);
    }
    for (int first = 0; first < g->n_configs; first++) {
        if (work_n_open(w, first) == 0 || is_member(groups, first))
            continue;
        for (int v = first; v < g->n_configs; v++)
            if (same_open(w, v, first))
                groups->member[groups->n++] = v;
        if (first == 0 && g->temperature > 0) {
            groups->sampled = groups->n;
            groups->member[groups->n++] = 0;
        }
    }
    for (int i = 0; i < groups->n; i++)
        groups->config[i] = &g->config[groups->member[i]];
    return 0;
}

void work_groups_release(struct work_groups *groups)
{
    free(groups->member);
    free(groups->config);
    *groups = (struct work_groups){ 0 };
}

int work_group_end(const struct work_groups *groups, const struct work *w, int first)
{
    int end = first + 1;

    while (end < groups->n && same_open(w, groups->member[end], groups->member[first]))
        end++;
    return end;
}

/* The work of the questions where `open` is true, or of all with NULL. */
static struct engine_work work_of(const struct grid *g, const struct work *w, const bool *open)
{
    struct engine_work work = { .n_tokens = w->ids.n, .n_shared = w->n_shared, .max_new_tokens = g->max_new_tokens };

    for (int q = 0; q < w->n_questions; q++) {
        int n = w->question_ids[q].n;
        if (open && !open[q])
            continue;
        work.n_questions++;
        work.question_tokens += n;
        work.longest_question = n > work.longest_question ? n : work.longest_question;
    }
    return work;
}

struct engine_work work_of_group(const struct grid *g, const struct work *w, const struct work_groups *groups,
                                 int first, int end)
{
    struct engine_work work = work_of(g, w, work_open(w, groups->member[first]));

    work.config = groups->config + first;
    work.n_configs = end - first;
    return work;
}

const struct config **grid_configs(const struct grid *g, int *n, struct err *err)
{
    const struct config **config = calloc((size_t)g->n_configs + 1, sizeof(struct config *));

    *n = g->n_configs + (g->temperature > 0);
    for (int v = 0; config && v < *n; v++)
        config[v] = &g->config[v % g->n_configs];
    if (!config)
        err_nomem(err);
    return config;
}

struct engine_work work_at_most(const struct grid *g, const struct work *w, const struct config *const *config, int n)
{
    struct engine_work work = work_of(g, w, NULL);

    work.config = config;
    work.n_configs = n;
    return work;
}

static int add_cost(const struct grid *g, const struct work *w, const struct engine *e, struct engine_cost *total,
                    struct err *err)
{
    struct work_groups groups;

    if (work_groups_make(&groups, g, w, err))
        return err->code;
    for (int first = 0, end; first < groups.n; first = end) {
        end = work_group_end(&groups, w, first);
        struct engine_work work = work_of_group(g, w, &groups, first, end);
        total->decode_flop += engine_cost(e, &work).decode_flop;
    }
    if (groups.n > 0) {
        struct engine_work all = work_of_group(g, w, &groups, 0, groups.n);
        total->prefill_flop += engine_cost(e, &all).prefill_flop;
        total->side_flop += engine_cost(e, &all).side_flop;
    }
    work_groups_release(&groups);
    return 0;
}

int grid_cost(const struct grid *g, const struct engine *e, struct engine_cost *total, struct err *err)
{
    *total = (struct engine_cost){ 0 };
    for (int i = 0; i < g->n_work; i++)
        if (add_cost(g, &g->work[i], e, total, err))
            return err->code;
    return 0;
}
