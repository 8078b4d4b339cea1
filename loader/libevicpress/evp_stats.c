/* evp_stats.c - counts what a store does, and gives the counts to the caller. */
#include "loader/libevicpress/evp_stats.h"

#include "base/file.h"
#include "loader/libevicpress/evp_metrics.h"
#include "loader/libevicpress/evp_store.h"

#include <stdlib.h>
#include <string.h>

struct stats {
    struct fork_safe fork; // its lock protects everything
    int users;
    struct metrics metrics;
};

/* A child begins at 0: its parent goes on with what was counted before. */
static void in_child(struct fork_safe *f)
{
    struct metrics *m = &((struct stats *)f)->metrics; /* fork is its first member */
    const size_t key = offsetof(struct evp_counters, finds);

    for (int i = 0; i < m->n; i++)
        memset((char *)&m->at[i] + key, 0, sizeof(*m->at) - key);
}

struct stats *stats_new(void)
{
    struct stats *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->users = 1;
    fork_safe_init(&s->fork, in_child);
    if (metrics_row(&s->metrics, "", ""))
        return s;
    stats_drop(s);
    return NULL;
}

struct stats *stats_share(struct stats *s)
{
    pthread_mutex_lock(&s->fork.lock);
    s->users++;
    pthread_mutex_unlock(&s->fork.lock);
    return s;
}

void stats_drop(struct stats *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->fork.lock);
    bool last = --s->users == 0;
    pthread_mutex_unlock(&s->fork.lock);
    if (!last)
        return;
    fork_safe_release(&s->fork);
    metrics_release(&s->metrics);
    free(s);
}

/* ---- counting ----------------------------------------------------------------- */

int stats_find(struct stats *s, size_t n, const struct evp_prefix *prefix, int code)
{
    pthread_mutex_lock(&s->fork.lock);
    struct evp_counters *all = s->metrics.at;
    all->finds++;
    all->tokens_asked += n;
    all->errors[code < 0 ? -code : 0] += code < 0;
    struct evp_counters *row = code == 1 ? metrics_row(&s->metrics, prefix->tier, prefix->config) : NULL;
    if (row) {
        row->hits++;
        row->tokens_hit += (uint64_t)prefix->n_tokens;
    }
    pthread_mutex_unlock(&s->fork.lock);
    return code;
}

void stats_read(struct stats *s, const char *tier, uint64_t bytes, double seconds)
{
    pthread_mutex_lock(&s->fork.lock);
    struct evp_counters *row = metrics_row(&s->metrics, tier, "");
    if (row) {
        row->reads++;
        row->read_bytes += bytes;
        row->read_s += seconds;
        row->read_square_bytes += (double)bytes * (double)bytes;
        row->read_byte_s += (double)bytes * seconds;
    }
    pthread_mutex_unlock(&s->fork.lock);
}

int stats_count(struct stats *s, const char *tier, size_t member, int code)
{
    pthread_mutex_lock(&s->fork.lock);
    struct evp_counters *row = code < 0 || !member ? s->metrics.at : metrics_row(&s->metrics, tier, "");
    if (code < 0)
        row->errors[-code]++;
    else if (member && row)
        ++*(uint64_t *)(void *)((char *)row + member);
    pthread_mutex_unlock(&s->fork.lock);
    return code;
}

/* ---- for the caller ------------------------------------------------------------- */

/* Copies the records, with what is placed now; the caller frees copy->at. */
static int copy_metrics(struct evp_store *store, struct metrics *copy, struct evp_error *error)
{
    struct snapshot *s = snapshot_take(store);
    struct metrics *m = &store->stats->metrics;

    pthread_mutex_lock(&store->stats->fork.lock);
    for (int i = 0; i < m->n; i++)
        m->at[i].n_placed = m->at[i].placed_bytes = 0;
    for (int t = 0; t < s->header.tiers.n; t++) {
        struct evp_counters *row = metrics_row(m, s->header.tiers.at[t].name, "");
        if (row) {
            row->n_placed = s->view[t]->index.n - s->view[t]->index.n_parts;
            row->placed_bytes = s->view[t]->index.bytes;
        }
    }
    *copy = (struct metrics){ .at = malloc((size_t)m->n * sizeof(*m->at)), .n = m->n };
    if (copy->at)
        memcpy(copy->at, m->at, (size_t)m->n * sizeof(*m->at));
    pthread_mutex_unlock(&store->stats->fork.lock);
    snapshot_give_back(store, s);
    return copy->at ? EVICPRESS_OK : evp_error_set(error, EVICPRESS_MEMORY, "out of memory");
}

int evp_stats(struct evp_store *store, size_t i, struct evp_counters *stats, struct evp_error *error)
{
    struct metrics m;

    if (copy_metrics(store, &m, error))
        return EVICPRESS_MEMORY;
    int found = i < (size_t)m.n;
    if (found)
        *stats = metrics_total(&m, m.at[i].tier, m.at[i].config);
    free(m.at);
    return found;
}

int evp_write_metrics(struct evp_store *store, const char *path, struct evp_error *error)
{
    struct metrics m;
    struct buf text = { 0 };
    struct err err;

    if (!path)
        return evp_error_set(error, EVICPRESS_ARGUMENT, "path is NULL");
    if (copy_metrics(store, &m, error))
        return EVICPRESS_MEMORY;
    metrics_write(&m, path, &text);
    int code = buf_failed(&text) ? err_nomem(&err) : file_write(path, text.at, text.n, &err);
    free(m.at);
    buf_release(&text);
    return code ? evp_error_from(error, &err, EVICPRESS_ARGUMENT) : EVICPRESS_OK;
}
