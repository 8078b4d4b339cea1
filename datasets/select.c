/* select.c - groups the contexts by dataset, orders each group as its contexts are tried, marks those to keep, and
 * compacts the list.
 */
#include "datasets/select.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

/* Contexts grouped by dataset. */
struct groups {
    struct map datasets;
    int *of;    // (n): the dataset of each context
    int *start; // (datasets + 1): the start of each dataset in `order`
    int *order; // (n): contexts, dataset by dataset, in the order of trial
};

static void groups_release(struct groups *g)
{
    map_release(&g->datasets);
    free(g->of);
    free(g->start);
    free(g->order);
}

static int groups_init(struct groups *g, const struct contexts *list, struct err *err)
{
    size_t n = (size_t)list->n;

    *g = (struct groups){ .of = calloc(n + 1, sizeof(int)), .order = calloc(n + 1, sizeof(int)) };
    if (!g->of || !g->order)
        return err_nomem(err);
    for (int i = 0; i < list->n; i++) {
        g->of[i] = map_add(&g->datasets, list->at[i].dataset, strlen(list->at[i].dataset), NULL);
        if (g->of[i] < 0)
            return err_nomem(err);
    }
    g->start = calloc((size_t)g->datasets.n + 2, sizeof(int));
    if (!g->start)
        return err_nomem(err);
    /* A counting sort. Sizes are stored two entries further and summed, so start[d + 1] is the beginning of d. Filling
     * d moves it to the end of d, the beginning of d + 1. */
    for (int i = 0; i < list->n; i++)
        g->start[g->of[i] + 2]++;
    for (int d = 2; d < g->datasets.n + 2; d++)
        g->start[d] += g->start[d - 1];
    for (int i = 0; i < list->n; i++)
        g->order[g->start[g->of[i] + 1]++] = i;
    return 0;
}

static void shuffle(int *order, int n, struct rng rng)
{
    for (int i = n - 1; i > 0; i--) {
        int j = (int)rng_below(&rng, (uint64_t)i + 1), was = order[i];
        order[i] = order[j];
        order[j] = was;
    }
}

struct choice {
    struct contexts *list;
    const struct selection *selection;
    bool *keep; // (list->n)
};

/* Marks the contexts of one dataset to keep; order[] has all n of them. */
static int choose(struct choice *choice, const int *order, int n, struct err *err)
{
    const struct selection *s = choice->selection;
    int kept = 0;

    for (int i = 0; i < n && (s->limit == 0 || kept < s->limit); i++) {
        struct context *c = &choice->list->at[order[i]];
        if (s->count && s->count(s->arg, c, err))
            return err_wrap(err, "context '%s'", c->id);
        if (s->count && (c->n_tokens < s->min || c->n_tokens > s->max))
            continue;
        choice->keep[order[i]] = true;
        kept++;
    }
    return 0;
}

/* Drops the contexts that are not marked and numbers the ids again. */
static int compact(struct contexts *list, const bool *keep, struct err *err)
{
    int n = 0;

    map_release(&list->ids);
    for (int i = 0; i < list->n; i++) {
        struct context c = list->at[i];
        list->at[i] = (struct context){ 0 };
        if (keep[i])
            list->at[n++] = c;
        else
            context_release(&c);
    }
    list->n = n;
    for (int i = 0; i < n; i++)
        if (map_add(&list->ids, list->at[i].id, strlen(list->at[i].id), NULL) < 0)
            return err_nomem(err);
    return 0;
}

int select_contexts(struct contexts *list, const struct selection *s, struct err *err)
{
    struct groups g;
    bool *keep = calloc((size_t)list->n + 1, sizeof(*keep));
    struct choice choice = { .list = list, .selection = s, .keep = keep };
    int code = groups_init(&g, list, err);

    if (!keep)
        code = err_nomem(err);
    for (int d = 0; !code && d < g.datasets.n; d++) {
        int *order = g.order + g.start[d], n = g.start[d + 1] - g.start[d];
        if (s->sampled)
            shuffle(order, n, rng_named(s->seed, g.datasets.at[d].key));
        code = choose(&choice, order, n, err);
    }
    if (!code)
        code = compact(list, keep, err);
    groups_release(&g);
    free(keep);
    return code;
}
