/* evp_put.c - a serving process puts, moves and removes payloads.
 *
 * Each call opens the tiers as evp-load does (loader/store/tier_store.h), for one context, with the same locks and the
 * same order of writes, and closes them before it returns. A call needs the tier that the payload goes to, with the
 * other tiers of its pool, and the one that it comes from. Other tiers that cannot be opened are left out. On a server
 * that cannot be reached payloads are forgotten, and the next writer's sweep removes them.
 *
 * Between calls SQLite, which keeps the states, has no connection that a fork would share, no lock and no thread.
 * Finding and fetching do not use it. One case remains: if the process forks during a call, SQLite may hold a lock of
 * the process that nobody releases in the child. So that child must not write.
 */
#include "base/clock.h"
#include "codes/config_name.h"
#include "formats/fields.h"
#include "formats/payload.h"
#include "loader/libevicpress/evp_store.h"
#include "loader/store/folder.h"
#include "loader/store/index.h"
#include "loader/store/tier_store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A change: a context, and the name of its new tier; NULL: none. */
struct change {
    const char *id, *tier;
    double until; // clock_now() when waiting for other writers ends
};

struct writer {
    struct evp_store *store;
    struct snapshot *snapshot;
    const char *name_space, *id;
    const struct tiers *tiers;
    int pool[TIER_MAX];               // for each tier: the first tier of its pool
    int order[TIER_MAX], n;           // (n) the tiers with folders, in which they are locked, and unlocked again
    struct tier_store tier[TIER_MAX]; // .tier NULL: not opened
    bool parts;                       // the index also gets the parts of the context
    bool unswept[TIER_MAX];           // the state says that the folder may have files that no payload names
    char left_out[TIER_MAX][256];     // why a tier is not opened; "": it is, or nothing is on it
    int to;                           // the tier that the payload goes into; -1: none
    double until;                     // clock_now() when waiting for other writers ends
    int code;                         // an evp_code more specific than struct err
};

/* A payload to be placed: its entry, its tier, and the source of its bytes. */
struct goods {
    struct entry entry;
    int tier;
    struct blob from; // its bytes
};

/* ---- opening and closing ------------------------------------------------------------------ */

static void close_writer(struct writer *w)
{
    for (int i = 0; i < w->n; i++)
        tier_store_close(&w->tier[w->order[i]]);
    w->store->changing = NULL;
    if (w->snapshot)
        snapshot_give_back(w->store, w->snapshot);
    free(w);
}

/* A tier that cannot be opened is left out, unless the call needs it. */
static int open_tier(struct writer *w, int t, struct err *err)
{
    bool busy = false;
    struct tier_store_options o = { .tier = &w->tiers->at[t],
                                    .name_space = w->name_space,
                                    .context = w->id,
                                    .use = STORE_CHANGE,
                                    .lazy = t != w->to,
                                    .wait_s = fmax(0, w->until - clock_now()),
                                    .busy = &busy };

    if (!tier_store_open(&w->tier[t], &o, err) && !tier_store_tidy(&w->tier[t], err))
        return 0;
    tier_store_close(&w->tier[t]);
    if (busy) {
        w->code = EVICPRESS_BUSY;
        return err_set(err, ERR_IO, "tier '%s': another process is changing it", w->tiers->at[t].name);
    }
    if (err->code == ERR_NOMEM || (w->to >= 0 && w->pool[t] == w->pool[w->to]))
        return err->code;
    snprintf(w->left_out[t], sizeof(w->left_out[t]), "%.255s", err->msg);
    return 0;
}

/* Does this process write to the tier? */
static bool is_written(const struct tier *t)
{
    const char *folder = tier_folder(t);

    return folder && folder[0] == '/' && !t->read_only;
}

/* Makes the tier's folder if only its parent exists. */
static int make_folder(const struct tier *t, struct err *err)
{
    int fd;

    if (folder_open(&fd, tier_folder(t), FOLDER_WRITE, geteuid(), err))
        return err_wrap(err, "tier '%s'", t->name);
    close(fd);
    return 0;
}

/* Opens all existing tiers that this process writes, and w->to even if it must be created. */
static int open_tiers(struct writer *w, struct err *err)
{
    const struct tier *tier = w->tiers->at, *to = w->to < 0 ? NULL : &tier[w->to];

    if (to && !is_written(to)) {
        w->code = EVICPRESS_ARGUMENT;
        return to->read_only
                   ? err_set(err, ERR_FORMAT, "tier '%s' is filled by another host: this one only reads it", to->name)
                   : err_set(err, ERR_FORMAT, "tier '%s' has no folder with an absolute path", to->name);
    }
    if (to && to->kind == TIER_FILE && folder_is_blank(to->uri)) {
        w->code = EVICPRESS_GONE;
        return err_set(err, ERR_FAIL, "tier '%s': '%s' is empty: is its disk mounted? evp-load makes a new tier",
                       to->name, to->uri);
    }
    tiers_pools(w->tiers, w->pool);
    if (to && make_folder(to, err))
        return err->code;
    w->n = folder_order(w->tiers, w->order);
    for (int i = 0; i < w->n; i++)
        if (is_written(&tier[w->order[i]]) && open_tier(w, w->order[i], err))
            return err->code;
    return w->to < 0 || w->tier[w->to].tier ? 0 : err_set(err, ERR_IO, "tier '%s' is gone", to->name);
}

static struct writer *open_writer(struct evp_store *store, struct change change, struct evp_error *error)
{
    struct writer *w = calloc(1, sizeof(*w));
    struct err err;

    if (!w) {
        evp_error_set(error, EVICPRESS_MEMORY, "out of memory");
        return NULL;
    }
    for (int t = 0; t < TIER_MAX; t++)
        w->tier[t].lock = -1;
    w->store = store;
    store->changing = w->tier;
    w->id = change.id;
    w->until = change.until;
    w->snapshot = snapshot_take(store);
    w->name_space = snapshot_name_space(store, w->snapshot);
    w->tiers = &w->snapshot->header.tiers;
    w->to = change.tier ? tiers_find(w->tiers, change.tier) : -1;
    if (change.tier && w->to < 0) {
        err_set(&err, ERR_FORMAT, "the manifest has no tier '%.40s'", change.tier);
        evp_error_set(error, EVICPRESS_UNKNOWN, err.msg);
    } else if (strlen(w->name_space) >= INDEX_TEXT) {
        evp_error_set(error, EVICPRESS_ARGUMENT, "the name of the namespace is too long");
    } else if (open_tiers(w, &err)) {
        if (w->code)
            evp_error_set(error, w->code, err.msg);
        else
            evp_error_from(error, &err, EVICPRESS_DAMAGED);
    } else
        return w;
    close_writer(w);
    return NULL;
}

/* ---- the context's payloads ---------------------------------------------------------------- */

static struct entry *entry_at(const struct writer *w, int t, int i)
{
    return &w->tier[t].in.at[i];
}

/* Finds the placed payload of the context in the fastest tier; false if there is none. */
static bool find_placed(const struct writer *w, int *tier, int *entry)
{
    for (*tier = 0; *tier < w->tiers->n; ++*tier)
        for (*entry = 0; *entry < w->tier[*tier].in.n; ++*entry) {
            if (entry_at(w, *tier, *entry)->row)
                return true;
        }
    return false;
}

/* The context's payload with this file in a tier, or -1. */
static int find_file(const struct tier_store *s, const char *file)
{
    for (int i = 0; i < s->in.n; i++) {
        const struct entry *e = &s->in.at[i];
        if (e->row && strcmp(e->file, file) == 0)
            return i;
    }
    return -1;
}

/* Free bytes of a tier or its pool. The context's own payloads there count as free. */
static int64_t free_bytes(const struct writer *w, int tier)
{
    const struct tier *t = &w->tiers->at[tier];
    int64_t own = 0, others = 0, total = t->total ? t->total : t->capacity;

    for (int s = 0; s < w->tiers->n; s++) {
        if (w->pool[s] != w->pool[tier] || !w->tier[s].tier)
            continue;
        int64_t taken = w->tier[s].own_bytes;
        for (int i = 0; i < w->tier[s].in.n; i++)
            if (entry_at(w, s, i)->row)
                taken -= entry_at(w, s, i)->bytes;
        if (__builtin_add_overflow(own, taken, &own))
            own = INT64_MAX;
        if (__builtin_add_overflow(others, w->tier[s].other_bytes, &others))
            others = INT64_MAX;
    }
    int64_t mine = t->capacity == INT64_MAX ? INT64_MAX : t->capacity - own;
    int64_t all = total == INT64_MAX ? INT64_MAX : others > total - own ? -1 : total - own - others;
    return mine < all ? mine : all;
}

/* ---- steps -------------------------------------------------------------------------------- */

/* Records, in the current transaction, that the folder may get files that no payload names. */
static int expect_files(struct writer *w, int t, struct err *err)
{
    w->unswept[t] = true;
    return state_set_swept(w->tier[t].state, false, err);
}

/* Records that every file is named by a payload again, except in tiers where some were left. */
static int finish(struct writer *w, struct err *err)
{
    for (int t = 0; t < w->tiers->n; t++)
        if (w->unswept[t] && !w->tier[t].unswept &&
            (state_set_swept(w->tier[t].state, true, err) || tier_store_commit(&w->tier[t], err)))
            return err->code;
    return 0;
}

/* Publishes a tier without its forgotten payloads, and deletes their files. gone: (in.n) */
static int remove_files(struct writer *w, int t, const bool *gone, struct err *err)
{
    struct tier_store *s = &w->tier[t];

    if (expect_files(w, t, err) || tier_store_commit(s, err) || tier_store_publish(s, err))
        return err->code;
    for (int i = 0; i < s->in.n && !s->unswept; i++)
        if (gone[i] && tier_store_remove(s, &s->in.at[i], err)) {
            if ((err->code != ERR_NET && err->code != ERR_DEVICE) || t == w->to)
                return err->code;
            s->unswept = true;
        }
    return 0;
}

/* Removes the payloads of the context from a tier, except the file `keep`. */
static int drop_context(struct writer *w, int t, const char *keep, struct err *err)
{
    struct tier_store *s = &w->tier[t];
    bool *gone = calloc((size_t)s->in.n + 1, sizeof(*gone)), any = false;
    int code = gone ? 0 : err_nomem(err);

    for (int i = 0; i < s->in.n && !code; i++) {
        const struct entry *e = &s->in.at[i];
        gone[i] = e->row && (!keep || strcmp(e->file, keep) != 0);
        any |= gone[i];
        if (gone[i])
            code = tier_store_forget(s, i, err);
    }
    if (!code && any)
        code = remove_files(w, t, gone, err);
    if (!code && any)
        stats_count(w->store->stats, w->tiers->at[t].name, offsetof(struct evp_counters, evictions), code);
    free(gone);
    return code;
}

static int drop_everywhere(struct writer *w, int keep_tier, const char *keep, struct err *err)
{
    for (int t = 0; t < w->tiers->n; t++)
        if (w->tier[t].tier && drop_context(w, t, t == keep_tier ? keep : NULL, err))
            return err->code;
    return 0;
}

static int check_free(struct writer *w, const struct goods *g, struct err *err)
{
    const struct entry *e = &g->entry;
    int64_t lacking = e->bytes - free_bytes(w, g->tier);

    if (lacking <= 0)
        return 0;
    w->code = EVICPRESS_FULL;
    return err_set(err, ERR_FAIL, "tier '%s' lacks %lld bytes for context '%.80s', which takes %lld",
                   w->tiers->at[g->tier].name, (long long)lacking, e->id, (long long)e->bytes);
}

/* Commits, before a file is written, that it may appear; gives the namespace its number. */
static int begin_file(struct writer *w, int t, struct err *err)
{
    struct tier_store *s = &w->tier[t];

    if (!s->load.number && state_put_load(s->state, s->name_space, &s->load, err))
        return err->code;
    return expect_files(w, t, err) || tier_store_commit(s, err) ? err->code : 0;
}

/* Writes the file, unless another context has the same object. */
static int write_file(struct tier_store *s, const struct goods *g, struct err *err)
{
    bool shares;

    if (tier_store_shares(s, &g->entry, &shares, err))
        return err->code;
    int there = shares ? tier_store_check(s, &g->entry, err) : ERR_FORMAT;
    if (there != ERR_FORMAT) /* only a damaged one may be overwritten */
        return there;
    return tier_store_put(s, &g->from, &g->entry, err) || tier_store_flush_file(s, &g->entry, err) ||
                   tier_store_read_back(s, &g->entry, err)
               ? err->code
               : 0;
}

static int place_new(struct writer *w, struct goods *g, struct err *err)
{
    struct tier_store *s = &w->tier[g->tier];
    struct entry e;

    if (begin_file(w, g->tier, err) || write_file(s, g, err) || entry_copy(&e, &g->entry, err))
        return err->code;
    e.row = 0;
    return tier_store_add(s, &e, err) || tier_store_commit(s, err) || tier_store_publish(s, err) ? err->code : 0;
}

/* Adds the parts of a placed payload to the index, or removes them. */
static int set_parts(const struct writer *w, struct tier_store *s, const char *file, struct err *err)
{
    int i = find_file(s, file);

    if (w->parts ? tier_store_read_parts(s, i, err) : tier_store_drop_parts(s, i, err))
        return err->code;
    return tier_store_commit(s, err) || tier_store_publish(s, err) ? err->code : 0;
}

/* Places the goods; then removes all other payloads of the context. */
static int place(struct writer *w, struct goods *g, struct err *err)
{
    struct tier_store *s = &w->tier[g->tier];
    struct entry *e = &g->entry;
    int there = find_file(s, e->file);
    bool whole = there >= 0 && tier_store_has(s, e);
    int code = 0;

    if (!tier_allows(&w->tiers->at[g->tier], e->config)) {
        w->code = EVICPRESS_ARGUMENT;
        return err_set(err, ERR_FAIL, "tier '%s' may not hold config '%.80s'", w->tiers->at[g->tier].name, e->config);
    }
    if (check_free(w, g, err))
        return err->code;
    if (there >= 0 && !whole)
        code = drop_context(w, g->tier, NULL, err);
    if (!code && !whole)
        code = place_new(w, g, err);
    if (!code)
        code = set_parts(w, s, e->file, err);
    if (!code)
        code = drop_everywhere(w, g->tier, e->file, err);
    return code ? code : finish(w, err);
}

/* ---- the functions ------------------------------------------------------------------------ */

/* Ends a call whose work returned `code`. Refreshes the store, so that the process sees its own change at once. */
static int end_writing(struct writer *w, int code, const struct err *err, struct evp_error *error)
{
    struct evp_store *store = w->store;
    int more = w->code;
    struct err ignored;

    pthread_mutex_lock(&store->fork.lock);
    memcpy(store->left_out, w->left_out, sizeof(store->left_out));
    pthread_mutex_unlock(&store->fork.lock);
    close_writer(w);
    if (!code && snapshot_refresh(store, &ignored) < 0)
        code = evp_error_from(error, &ignored, EVICPRESS_DAMAGED);
    else if (code)
        code = more ? evp_error_set(error, more, err->msg) : evp_error_from(error, err, EVICPRESS_DAMAGED);
    pthread_mutex_unlock(&store->writing);
    return code;
}

/* Waits for the store's other threads. */
static int lock_store(struct evp_store *store, double until, struct evp_error *error)
{
    const double s = fmin(until, 1e9); /* time_t may have 32 bits */
    const struct timespec time = { .tv_sec = (time_t)s, .tv_nsec = (long)((s - floor(s)) * 1e9) };

    if (!pthread_mutex_clocklock(&store->writing, CLOCK_MONOTONIC, &time))
        return EVICPRESS_OK;
    return evp_error_set(error, EVICPRESS_BUSY, "another thread is changing a tier");
}

/* Opens the tiers: *w, or NULL after a failure, which is returned. */
static int enter(struct writer **w, struct evp_store *store, struct change change, struct evp_error *error)
{
    struct evp_error why;

    *w = NULL;
    change.until = clock_now() + store->wait_s;
    if (store_cut_short)
        return evp_error_set(
            error, EVICPRESS_IO,
            "this process was forked while another thread was changing a tier: only its parent can write");
    if (lock_store(store, change.until, error))
        return EVICPRESS_BUSY;
    *w = open_writer(store, change, &why);
    if (*w)
        return EVICPRESS_OK;
    pthread_mutex_unlock(&store->writing);
    return evp_error_set(error, why.code, why.text);
}

/* Checks that a payload is whole and of the manifest's model. Fills the entry; its texts are borrowed. */
static int check_payload(const struct snapshot *s, const struct payload *p, struct entry *e, struct err *err)
{
    if (payload_check_sums(p, err) || config_name_check(p->config, err))
        return err->code;
    if (*s->header.model_digest && strcmp(p->model_digest, s->header.model_digest) != 0)
        return err_set(err, ERR_FORMAT, "it was made for another model than the manifest's");
    memcpy(e->token_digest, p->token_digest, DIGEST_HEX);
    memcpy(e->model_digest, p->model_digest, DIGEST_HEX);
    e->n_tokens = p->n_tokens;
    e->bytes = payload_bytes(p);
    return index_prefix(p->tokens->at, p->n_tokens, e->prefix, err);
}

/* The goods of a call; the caller releases the entry. */
static int take_goods(struct goods *g, const struct evp_put_args *put, const struct snapshot *s, const char *name_space,
                      struct err *err)
{
    struct payload p;
    struct entry *e = &g->entry;

    *g = (struct goods){ .from = blob_of_bytes(put->payload, put->size) };
    if (field_check_utf8("id", put->id, MANIFEST_ID, err) || payload_parse(&p, put->payload, put->size, err))
        return err->code;
    e->size = (int64_t)put->size;
    digest_xxh3_hex(put->payload, put->size, e->checksum);
    int code = check_payload(s, &p, e, err);
    if (!code) {
        e->id = strdup(put->id);
        e->config = strdup(p.config);
        e->payload = e->id && e->config ? manifest_payload_name(e->id, e->token_digest, e->config) : NULL;
        code = e->payload ? entry_set_file(e, name_space, err) : err_nomem(err);
    }
    payload_close(&p);
    if (!code)
        code = entry_check(e, err);
    return code;
}

static int check_put(const struct evp_put_args *put, struct evp_error *error)
{
    uint64_t any = 0;

    for (size_t i = 0; i < sizeof(put->reserved) / sizeof(*put->reserved); i++)
        any |= put->reserved[i];
    if (put->chunks > 1)
        return evp_error_set(error, EVICPRESS_ARGUMENT, "chunks is not 0 or 1");
    if (!put->id || !put->tier || !put->payload)
        return evp_error_set(error, EVICPRESS_ARGUMENT, "id, tier or payload is NULL");
    return any ? evp_error_set(error, EVICPRESS_ARGUMENT, "reserved is not zero") : EVICPRESS_OK;
}

static int put_payload(struct evp_store *store, const struct evp_put_args *put, struct evp_error *error)
{
    struct goods g;
    struct writer *w;
    struct err err;

    if (check_put(put, error))
        return EVICPRESS_ARGUMENT;
    struct snapshot *s = snapshot_take(store);
    int code = take_goods(&g, put, s, snapshot_name_space(store, s), &err);
    snapshot_give_back(store, s);
    if (code) {
        entry_release(&g.entry);
        err_wrap(&err, "the payload of '%.80s'", put->id);
        return evp_error_from(error, &err, EVICPRESS_ARGUMENT);
    }
    code = enter(&w, store, (struct change){ .id = put->id, .tier = put->tier }, error);
    if (!code) {
        g.tier = w->to;
        w->parts = put->chunks;
        code = end_writing(w, place(w, &g, &err), &err, error);
    }
    entry_release(&g.entry);
    return code;
}

static int unknown_context(struct writer *w, struct err *err)
{
    for (int t = 0; t < w->tiers->n; t++)
        if (*w->left_out[t])
            return err_set(err, ERR_IO, "context '%.80s' is not on the other tiers: %s", w->id, w->left_out[t]);
    w->code = EVICPRESS_UNKNOWN;
    return err_set(err, ERR_FAIL, "context '%.80s' is not placed", w->id);
}

static int move(struct writer *w, struct err *err)
{
    struct goods g = { .tier = w->to };
    int from, i;

    if (!find_placed(w, &from, &i))
        return unknown_context(w, err);
    if (tier_store_get(&w->tier[from], entry_at(w, from, i), &g.from, err))
        return err->code;
    int code = tier_store_has_parts(&w->tier[from], i, &w->parts, err);
    if (!code)
        code = entry_copy(&g.entry, entry_at(w, from, i), err);
    if (!code)
        code = place(w, &g, err);
    blob_close(&g.from);
    entry_release(&g.entry);
    return code;
}

static int move_payload(struct evp_store *store, const char *id, const char *tier, struct evp_error *error)
{
    struct writer *w;
    struct err err;

    if (!id || !tier)
        return evp_error_set(error, EVICPRESS_ARGUMENT, "id or tier is NULL");
    int code = enter(&w, store, (struct change){ .id = id, .tier = tier }, error);
    return code ? code : end_writing(w, move(w, &err), &err, error);
}

static int remove_payload(struct evp_store *store, const char *id, struct evp_error *error)
{
    struct writer *w;
    struct err err;
    int tier, i;

    if (!id)
        return evp_error_set(error, EVICPRESS_ARGUMENT, "id is NULL");
    int code = enter(&w, store, (struct change){ .id = id }, error);
    if (code)
        return code;
    code = find_placed(w, &tier, &i) ? drop_everywhere(w, -1, NULL, &err) : unknown_context(w, &err);
    if (!code)
        code = finish(w, &err);
    return end_writing(w, code, &err, error);
}

/* ---- counting the calls ------------------------------------------------------------------- */

int evp_put(struct evp_store *store, const struct evp_put_args *put, struct evp_error *error)
{
    int code = put_payload(store, put, error);

    return stats_count(store->stats, code ? "" : put->tier, offsetof(struct evp_counters, puts), code);
}

int evp_move(struct evp_store *store, const char *id, const char *tier, struct evp_error *error)
{
    int code = move_payload(store, id, tier, error);

    return stats_count(store->stats, code ? "" : tier, offsetof(struct evp_counters, moves), code);
}

int evp_remove(struct evp_store *store, const char *id, struct evp_error *error)
{
    return stats_count(store->stats, "", offsetof(struct evp_counters, removes), remove_payload(store, id, error));
}
