/* policy_cache.c - the textbooks' caches (replay/object_cache.h) on all tiers: what is used is in the fastest one, what that
 * evicts goes to the next, what the last one evicts is gone. One config for all contexts: "lru" keeps caches as they
 * are, "lru+kivi:bits=4" compresses them.
 */
#include "replay/object_cache.h"
#include "replay/policy.h"

#include <stdlib.h>
#include <string.h>

struct cache_state {
    int config;
    int64_t *bytes; // (C) by row; of a context without the config: above every capacity
    struct object_cache tier[TIER_MAX];
    int n_tiers;
    int64_t *next;      // (C) belady: the next request for each; n: none
    int64_t *following; // (n) belady: the next request for the context of each request
};

static int find_config(struct policy *p, const char *options, struct cache_state *s, struct err *err)
{
    s->config = 0;
    if (*options == '\0')
        return 0;
    s->config = *options == '+' ? table_find_config(&p->in->table, options + 1) : -1;
    return s->config >= 0 ? 0 : err_set(err, ERR_USAGE, "the table has no config '%s'", options + (*options == '+'));
}

static int look_ahead(struct policy *p, struct cache_state *s, struct err *err)
{
    const struct replay_world *w = p->world;
    int n_contexts = p->in->table.n_contexts;

    s->next = malloc(((size_t)n_contexts + 1) * sizeof(*s->next));
    s->following = malloc(((size_t)w->n + 1) * sizeof(*s->following));
    if (!s->next || !s->following)
        return err_nomem(err);
    for (int c = 0; c < n_contexts; c++)
        s->next[c] = w->n;
    for (int i = w->n - 1; i >= 0; i--) {
        s->following[i] = s->next[w->row[i]];
        s->next[w->row[i]] = i;
    }
    return 0;
}

static int open_cache(struct policy *p, const char *options, struct err *err)
{
    const struct table *t = &p->in->table;
    struct cache_state *s = calloc(1, sizeof(*s));

    p->state = s;
    if (!s)
        return err_nomem(err);
    s->bytes = malloc(((size_t)t->n_contexts + 1) * sizeof(*s->bytes));
    if (!s->bytes)
        return err_nomem(err);
    for (int i = 0; i < p->in->tiers.n; i++)
        if (*p->in->tiers.at[i].pool)
            return err_set(err, ERR_USAGE, "tier '%s' shares its capacity with another one: only plans can use it",
                           p->in->tiers.at[i].name);
    if (find_config(p, options, s, err) || (strcmp(p->kind->name, "belady") == 0 && look_ahead(p, s, err)))
        return err->code;
    for (int c = 0; c < t->n_contexts; c++) {
        int64_t bytes = t->cell_bytes[table_cell(t, c, s->config)];
        s->bytes[c] = bytes >= 0 ? bytes : INT64_MAX;
    }
    for (s->n_tiers = 0; s->n_tiers < p->in->tiers.n; s->n_tiers++) {
        struct object_cache *tier = &s->tier[s->n_tiers];
        *tier = (struct object_cache){ .kind = object_cache_find(p->kind->name),
                                       .n = t->n_contexts,
                                       .bytes = s->bytes,
                                       .capacity = p->in->capacity[s->n_tiers],
                                       .next = s->next };
        if (object_cache_open(tier, err))
            return err->code;
    }
    return 0;
}

static int tier_of(const struct cache_state *s, int row)
{
    int t = 0;

    while (t < s->n_tiers && !object_cache_has(&s->tier[t], row))
        t++;
    return t < s->n_tiers ? t : PLAN_RECOMPUTE;
}

static void store(struct cache_state *s, int row, int tier, struct sim_bytes *written)
{
    struct object_cache *c = &s->tier[tier];

    if (s->bytes[row] == INT64_MAX)
        return;
    if (s->bytes[row] > c->capacity) {
        if (tier + 1 < s->n_tiers)
            store(s, row, tier + 1, written);
        return;
    }
    while (c->held > c->capacity - s->bytes[row]) {
        int32_t gone = object_cache_evict(c, row);
        if (tier + 1 < s->n_tiers)
            store(s, gone, tier + 1, written);
    }
    object_cache_insert(c, row);
    written->at[tier] += (double)s->bytes[row];
}

static struct plan_placement find(struct policy *p, int request)
{
    struct cache_state *s = p->state;
    int row = p->world->row[request], tier = tier_of(s, row);

    if (s->next)
        s->next[row] = s->following[request];
    if (tier != PLAN_RECOMPUTE)
        object_cache_hit(&s->tier[tier], row);
    return (struct plan_placement){ tier == PLAN_RECOMPUTE ? 0 : s->config, tier };
}

/* A context moves up, or is stored, when its first token is out. */
static int finish(struct policy *p, int request, struct sim_bytes *written, struct err *err)
{
    struct cache_state *s = p->state;
    int row = p->world->row[request], tier = tier_of(s, row);

    (void)err;
    if (tier == 0)
        return 0;
    if (tier != PLAN_RECOMPUTE)
        object_cache_remove(&s->tier[tier], row);
    store(s, row, 0, written);
    return 0;
}

static void close_cache(struct policy *p)
{
    struct cache_state *s = p->state;

    for (int t = 0; s && t < s->n_tiers; t++)
        object_cache_close(&s->tier[t]);
    if (s) {
        free(s->bytes);
        free(s->next);
        free(s->following);
    }
    free(s);
}

#define CACHE(name, about)                                                                                             \
    {                                                                                                                  \
        name, "[+CONFIG]", about, open_cache, find, finish, close_cache                                                \
    }
const struct policy_kind policy_lru = CACHE("lru", "the context that was used longest ago leaves"),
                         policy_lfu = CACHE("lfu", "the one that was used least often"),
                         policy_gdsf = CACHE("gdsf", "the one with the fewest uses per byte, aged"),
                         policy_s3fifo = CACHE("s3fifo", "S3-FIFO: what is used once leaves soon"),
                         policy_sieve = CACHE("sieve", "SIEVE: a hand passes those that were used"),
                         policy_fifo = CACHE("fifo", "the oldest leaves"),
                         policy_belady = CACHE("belady", "the one whose next use is farthest, as no one can know");
