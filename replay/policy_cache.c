/* policy_cache.c - the textbooks' caches (replay/object_cache.h) on all tiers: what is used is in the fastest one, what
 * that evicts goes to the next, what the last one evicts is gone. One config for all contexts: "lru" keeps caches as
 * they are, "lru+kivi:bits=4" compresses them.
 *
 * "tlru:1.5" is LRU, but contexts that are computed within 1.5 s leave first (W. Zhang et al., Tail-optimized caching
 * for LLM inference, NeurIPS 2025): whether these are held hardly changes the tail. Here contexts are held as a whole.
 *
 * What the queue of a tier has no room to write (replay/simulate.h) is not stored there: of a prompt the beginning is
 * stored, and of what an eviction brings, too; what would follow a gap goes.
 *
 * Of a run of blocks the last ones leave first. Of the runs of a prompt, the last ones are used first, so that under
 * lru, lfu and belady nothing leaves before what follows it.
 */
#include "base/parse.h"
#include "logs/access.h"
#include "planner/utility.h"
#include "replay/object_cache.h"
#include "replay/policy.h"

#include <stdlib.h>
#include <string.h>

struct cache_state {
    int config;
    int64_t *bytes; // (C) by row; of a context without the config: above every capacity
    struct object_cache tier[TIER_MAX];
    int n_tiers, n_device;
    int64_t unit;       // bytes of a block in the config; 0: rows are whole contexts
    int64_t *next;      // (C) belady: the next request for each; n: none
    int64_t *following; // belady: the next request for each row of each request, as the world's path
    double *priority;   // (C) priority: its counts; tlru: 0 or 1
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

/* Reads ":SECONDS": contexts that take longer to compute leave after the others. */
static int read_threshold(struct policy *p, const char **options, struct cache_state *s, struct err *err)
{
    const struct table *t = &p->in->table;
    size_t n = strcspn(*options, "+");
    char *text = **options == ':' ? strndup(*options + 1, n - 1) : NULL;
    double most;
    bool good = text && parse_real(text, &most) && most >= 0;

    free(text);
    if (!good || p->world->block_tokens)
        return err_set(err, ERR_USAGE, good ? "needs a table" : "is tlru:SECONDS, the TTFT that is fast enough");
    *options += n;
    s->priority = calloc((size_t)t->n_contexts + 1, sizeof(*s->priority));
    for (int c = 0; s->priority && c < t->n_contexts; c++)
        s->priority[c] = ttft_recomputed(t->prefill_s[c], t->question_s[c]) > most;
    return s->priority ? 0 : err_nomem(err);
}

static int64_t unit_of(const struct policy *p, const struct cache_state *s)
{
    const struct table *t = &p->in->table;

    if (p->world->block_tokens == 0 || t->n_contexts == 0)
        return 0;
    return s->bytes[0] / (t->n_tokens[0] / p->world->block_tokens);
}

/* In bytes of the config: the memory of a GPU holds KV as it is. */
static int64_t capacity_of(const struct policy *p, const struct cache_state *s, int tier)
{
    const struct table *t = &p->in->table;
    int64_t capacity = p->in->capacity[tier];

    if (tier >= p->world->n_device || t->n_contexts == 0 || capacity >= INT64_MAX / 4)
        return capacity;
    return (int64_t)((double)capacity * (double)s->bytes[0] / (double)t->kv_bytes[0]);
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
    bool slow_stay = strcmp(p->kind->name, "tlru") == 0;
    if ((strcmp(p->kind->name, "priority") == 0 && read_priorities(p, &options, s, err)) ||
        (slow_stay && read_threshold(p, &options, s, err)))
        return err->code;
    if (find_config(p, options, s, err) || (strcmp(p->kind->name, "belady") == 0 && look_ahead(p, s, err)))
        return err->code;
    for (int c = 0; c < t->n_contexts; c++) {
        int64_t bytes = t->cell_bytes[table_cell(t, c, s->config)];
        s->bytes[c] = bytes < 0 ? INT64_MAX : bytes > 0 ? bytes : 1;
    }
    s->unit = unit_of(p, s);
    s->n_device = p->world->n_device;
    for (s->n_tiers = 0; s->n_tiers < p->in->tiers.n; s->n_tiers++) {
        struct object_cache *tier = &s->tier[s->n_tiers];
        *tier = (struct object_cache){ .kind = object_cache_find(slow_stay ? "priority" : p->kind->name),
                                       .n = t->n_contexts,
                                       .bytes = s->bytes,
                                       .capacity = capacity_of(p, s, s->n_tiers),
                                       .unit = s->unit,
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

/* The first of some bytes of a row that may still be written to a tier. */
static int64_t writable(const struct cache_state *s, int tier, int64_t bytes, const struct sim_bytes *written)
{
    double room = written->room[tier] - written->at[tier];

    if (tier < s->n_device || (double)bytes <= room)
        return bytes;
    return s->unit && room > 0 ? (int64_t)room / s->unit * s->unit : 0;
}

/* A row, in a tier and those after it, is of no use any more. */
static void forget(struct cache_state *s, int32_t row, int tier)
{
    for (int t = tier; t < s->n_tiers; t++)
        if (object_cache_has(&s->tier[t], row))
            object_cache_remove(&s->tier[t], row);
}

/* Stores bytes of a row that come before those which the tier may have of it. */
static void store(struct cache_state *s, int32_t row, int tier, int64_t bytes, struct sim_bytes *written)
{
    struct object_cache *c = &s->tier[tier];
    int64_t fits = part_of(c, bytes) ? writable(s, tier, bytes, written) : bytes;

    if (fits < bytes) {
        forget(s, row, tier);
        written->dropped += (double)(bytes - fits);
        bytes = fits;
    }
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
    if (tier < s->n_device)
        return;
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

/* The fastest tier that can hold something of a row. */
static int top_of(const struct cache_state *s, int32_t row)
{
    int t = 0;

    while (t + 1 < s->n_tiers && part_of(&s->tier[t], s->bytes[row]) == 0)
        t++;
    return t;
}

/* Is a row where it would be stored? */
static bool is_up(const struct cache_state *s, int32_t row)
{
    return s->tier[top_of(s, row)].part[row] == s->bytes[row];
}

/* Uses the rows of a request that need not move. */
static void hit(struct cache_state *s, const int32_t *row, int n)
{
    for (int k = n - 1; k >= 0; k--)
        if (is_up(s, row[k]))
            object_cache_hit(&s->tier[top_of(s, row[k])], row[k]);
}

/* The first `bytes` of a row move up, or are stored, when the first token is out. */
static void bring(struct cache_state *s, int32_t row, int64_t bytes, struct sim_bytes *written)
{
    if (s->bytes[row] == INT64_MAX || is_up(s, row))
        return;
    forget(s, row, 0);
    store(s, row, top_of(s, row), bytes, written);
}

/* Bytes of a row that some tier has. */
static int64_t held_of(const struct cache_state *s, int32_t row)
{
    int64_t held = 0;

    for (int t = 0; t < s->n_tiers; t++)
        held += s->tier[t].part[row];
    return held;
}

/* How many rows of a request, from the first, there is room to bring to their tier, one for all; *part: bytes of the
 * last. What is neither brought nor held is dropped. */
static int fitting(const struct cache_state *s, const int32_t *row, int n, int64_t *part, struct sim_bytes *written)
{
    int top = n ? top_of(s, row[0]) : 0, fit = n;
    double room = written->room[top];

    *part = n ? s->bytes[row[n - 1]] : 0;
    for (int k = 0; k < n && top >= s->n_device; k++) {
        int64_t bytes = s->bytes[row[k]], held = held_of(s, row[k]);
        if (part_of(&s->tier[top], bytes) == 0 || is_up(s, row[k]))
            continue;
        if (fit == n && (double)bytes <= room) {
            room -= (double)bytes;
            continue;
        }
        int64_t first = fit < n || !s->unit ? 0 : (int64_t)room / s->unit * s->unit;
        bool some = first > held;
        if (fit == n) {
            *part = some ? first : k ? s->bytes[row[k - 1]] : 0;
            fit = k + some;
        }
        written->dropped += (double)(bytes - (some ? first : held));
    }
    return fit;
}

static int finish(struct policy *p, int request, struct sim_bytes *written, struct err *err)
{
    struct cache_state *s = p->state;
    const struct object_cache_kind *kind = s->n_tiers ? s->tier[0].kind : NULL;
    const int32_t *row;
    int64_t part;
    int n = world_rows(p->world, request, &row);

    (void)err;
    if (!kind)
        return 0;
    for (int k = 0; s->next && k < n; k++)
        s->next[row[k]] = s->following[p->world->first[request] + k];
    hit(s, row, n);
    n = fitting(s, row, n, &part, written);
    for (int k = 0; k < n; k++) {
        int at = kind->forward ? k : n - 1 - k;
        bring(s, row[at], at == n - 1 ? part : s->bytes[row[at]], written);
    }
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
                         policy_s3fifo = CACHE("s3fifo"), policy_arc = CACHE("arc"), policy_slru = CACHE("slru"),
                         policy_sieve = CACHE("sieve"), policy_fifo = CACHE("fifo"), policy_belady = CACHE("belady"),
                         policy_tlru = { "tlru", ":SECONDS[+CONFIG]", open_cache, find, finish, close_cache },
                         policy_priority = { "priority", ":FILE[+CONFIG]", open_cache, find, finish, close_cache };
