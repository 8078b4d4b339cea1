/* policy_cache.c - the textbooks' caches (replay/object_cache.h) on all tiers: what is used is in the fastest one, what
 * that evicts goes to the next, what the last one evicts is gone. One config for all contexts: "lru" keeps caches as
 * they are, "lru+kivi:bits=4" compresses them.
 *
 * Of a run of blocks the last ones leave first. Of the runs of a prompt, the last ones are used first, so that under
 * lru, lfu and belady nothing leaves before what follows it.
 */
#include "logs/access.h"
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
    int64_t *following; // belady: the next request for each row of each request, as the world's path
    double *priority;   // (C) priority: its counts
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
    const int32_t *row;

    s->next = malloc(((size_t)n_contexts + 1) * sizeof(*s->next));
    s->following = malloc(((size_t)w->first[w->n] + 1) * sizeof(*s->following));
    if (!s->next || !s->following)
        return err_nomem(err);
    for (int c = 0; c < n_contexts; c++)
        s->next[c] = w->n;
    for (int i = w->n - 1; i >= 0; i--)
        for (int k = world_rows(w, i, &row) - 1; k >= 0; k--) {
            s->following[w->first[i] + k] = s->next[row[k]];
            s->next[row[k]] = i;
        }
    return 0;
}

/* Reads ":FILE", an access log whose counts are the priorities. *options: what follows, "+CONFIG" or nothing. */
static int read_priorities(struct policy *p, const char **options, struct cache_state *s, struct err *err)
{
    const char *plus = strrchr(*options, '+');
    size_t n = plus ? (size_t)(plus - *options) : strlen(*options);
    char *path = **options == ':' && n > 1 ? strndup(*options + 1, n - 1) : NULL;
    struct access_log log;

    if (!path)
        return err_set(err, ERR_USAGE, "is priority:FILE, an access log whose counts are the priorities");
    *options += n;
    s->priority = calloc((size_t)p->in->table.n_contexts + 1, sizeof(*s->priority));
    int code = s->priority ? access_read(&log, path, &p->in->table.ids, s->priority, err) : err_nomem(err);
    if (!code && log.unknown == log.rows)
        code = err_set(err, ERR_FORMAT, "'%s' has no context of the table", path);
    free(path);
    return code;
}

/* Bytes of a block in the config; 0: rows are whole contexts. */
static int64_t unit_of(const struct policy *p, const struct cache_state *s)
{
    const struct table *t = &p->in->table;

    if (p->world->block_tokens == 0 || t->n_contexts == 0)
        return 0;
    return s->bytes[0] / (t->n_tokens[0] / p->world->block_tokens);
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
    if (strcmp(p->kind->name, "priority") == 0 && read_priorities(p, &options, s, err))
        return err->code;
    if (find_config(p, options, s, err) || (strcmp(p->kind->name, "belady") == 0 && look_ahead(p, s, err)))
        return err->code;
    for (int c = 0; c < t->n_contexts; c++) {
        int64_t bytes = t->cell_bytes[table_cell(t, c, s->config)];
        s->bytes[c] = bytes < 0 ? INT64_MAX : bytes > 0 ? bytes : 1;
    }
    for (s->n_tiers = 0; s->n_tiers < p->in->tiers.n; s->n_tiers++) {
        struct object_cache *tier = &s->tier[s->n_tiers];
        *tier = (struct object_cache){ .kind = object_cache_find(p->kind->name),
                                       .n = t->n_contexts,
                                       .bytes = s->bytes,
                                       .capacity = p->in->capacity[s->n_tiers],
                                       .unit = unit_of(p, s),
                                       .next = s->next,
                                       .priority = s->priority };
        if (object_cache_open(tier, err))
            return err->code;
    }
    return 0;
}

/* The first bytes of a row that a cache can hold at all. */
static int64_t part_of(const struct object_cache *c, int64_t bytes)
{
    if (bytes <= c->capacity)
        return bytes;
    return c->unit && bytes < INT64_MAX ? c->capacity / c->unit * c->unit : 0;
}

static void store(struct cache_state *s, int32_t row, int tier, int64_t bytes, struct sim_bytes *written);

static void evict(struct cache_state *s, int32_t coming, int tier, int64_t needed, struct sim_bytes *written)
{
    int64_t freed;
    int32_t gone = object_cache_evict(&s->tier[tier], coming, needed, &freed);

    if (tier + 1 < s->n_tiers)
        store(s, gone, tier + 1, freed, written);
}

/* Stores bytes of a row that come before those which the tier may have of it. */
static void store(struct cache_state *s, int32_t row, int tier, int64_t bytes, struct sim_bytes *written)
{
    struct object_cache *c = &s->tier[tier];
    int64_t had = c->part[row], part = part_of(c, bytes + had), room = c->capacity - part;

    if (had)
        object_cache_remove(c, row);
    if (part < bytes + had && tier + 1 < s->n_tiers)
        store(s, row, tier + 1, bytes + had - part, written);
    if (part == 0)
        return;
    while (!c->kind->looks && c->held > room)
        evict(s, row, tier, c->held - room, written);
    object_cache_insert(c, row, part);
    while (c->held > c->capacity)
        evict(s, row, tier, c->held - c->capacity, written);
    written->at[tier] += (double)(c->part[row] > had ? c->part[row] - had : 0);
    written->n += c->part[row] > had;
}

static struct held find(const struct policy *p, int row)
{
    const struct cache_state *s = p->state;
    struct held held = { .config = s->config };

    for (int t = 0; t < s->n_tiers; t++)
        held.at[t] = s->tier[t].part[row];
    return held;
}

/* Uses the rows of a request that are in the fastest tier. */
static void hit(struct cache_state *s, const int32_t *row, int n)
{
    for (int k = n - 1; k >= 0; k--)
        if (s->tier[0].part[row[k]] == s->bytes[row[k]])
            object_cache_hit(&s->tier[0], row[k]);
}

/* A row moves up, or is stored, when the first token is out. */
static void bring(struct cache_state *s, int32_t row, struct sim_bytes *written)
{
    if (s->bytes[row] == INT64_MAX || s->tier[0].part[row] == s->bytes[row])
        return;
    for (int t = 0; t < s->n_tiers; t++)
        if (object_cache_has(&s->tier[t], row))
            object_cache_remove(&s->tier[t], row);
    store(s, row, 0, s->bytes[row], written);
}

static int finish(struct policy *p, int request, struct sim_bytes *written, struct err *err)
{
    struct cache_state *s = p->state;
    const struct object_cache_kind *kind = s->n_tiers ? s->tier[0].kind : NULL;
    const int32_t *row;
    int n = world_rows(p->world, request, &row);

    (void)err;
    if (!kind)
        return 0;
    for (int k = 0; s->next && k < n; k++)
        s->next[row[k]] = s->following[p->world->first[request] + k];
    hit(s, row, n);
    for (int k = 0; k < n; k++)
        bring(s, row[kind->forward ? k : n - 1 - k], written);
    if (kind->renews && n > 1)
        hit(s, row, n);
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
        free(s->priority);
    }
    free(s);
}

#define CACHE(name)                                                                                                    \
    {                                                                                                                  \
        name, "[+CONFIG]", open_cache, find, finish, close_cache                                                       \
    }
const struct policy_kind policy_lru = CACHE("lru"), policy_lfu = CACHE("lfu"), policy_gdsf = CACHE("gdsf"),
                         policy_s3fifo = CACHE("s3fifo"), policy_sieve = CACHE("sieve"), policy_fifo = CACHE("fifo"),
                         policy_belady = CACHE("belady"),
                         policy_priority = { "priority", ":FILE[+CONFIG]", open_cache, find, finish, close_cache };
