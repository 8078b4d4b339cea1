/* evp_store.c - stores of the installed library: open, refresh, close; the state of their tiers. */
#include "loader/libevicpress/evp_store.h"

#include "base/file.h"
#include "loader/store/folder.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(offsetof(struct evp_store, fork) == 0, "in_child() casts the member to the store");

atomic_bool store_cut_short;

/* ---- snapshots --------------------------------------------------------------- */

static struct view *view_new(void)
{
    struct view *v = calloc(1, sizeof(*v));

    if (v) {
        v->users = 1;
        v->folder = -1;
    }
    return v;
}

static struct view *view_share(struct view *v)
{
    v->users++;
    return v;
}

static void view_drop(struct view *v)
{
    if (!v || --v->users > 0)
        return;
    index_close(&v->index);
    medium_close(&v->medium);
    if (v->folder >= 0)
        close(v->folder);
    free(v->uri);
    free(v);
}

static void snapshot_free(struct snapshot *s)
{
    if (!s)
        return;
    for (int t = 0; t < TIER_MAX; t++)
        view_drop(s->view[t]);
    manifest_release(&s->header);
    free(s);
}

static struct stamp stamp_of(const char *path)
{
    struct stat st;

    return stat(path, &st) ? (struct stamp){ 0 } : (struct stamp){ st.st_dev, st.st_ino, st.st_size, st.st_mtim };
}

/* Uses the full path instead of the open folder, so that a folder removed and made again is noticed. */
static struct stamp stamp_index(const struct tier *tier)
{
    char *path = file_join(tier_folder(tier), "evp-index");
    struct stamp stamp = path ? stamp_of(path) : (struct stamp){ 0 };

    free(path);
    return stamp;
}

static bool stamp_same(const struct stamp *a, const struct stamp *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->time.tv_sec == b->time.tv_sec &&
           a->time.tv_nsec == b->time.tv_nsec;
}

/* The inputs for opening a view. */
struct view_from {
    uid_t also;
    struct view *before; // the tier's in the old snapshot, to be used again; NULL: none
};

/* The number of the tier in the old snapshot; -1: absent. */
static int tier_before(const struct snapshot *old, const struct tier *t)
{
    for (int i = 0; old && i < old->header.tiers.n; i++)
        if (tier_same_place(&old->header.tiers.at[i], t))
            return i;
    return -1;
}

static int open_medium(struct view *v, const struct tier *t, const struct view_from *from, struct err *err)
{
    const struct medium *like = from->before ? &from->before->medium : NULL;
    const struct medium_place place = {
        .tier = t, .folder = v->folder, .store = index_store(&v->index), .like = like && like->driver ? like : NULL
    };

    v->uri = strdup(t->uri);
    if (!v->uri)
        return err_nomem(err);
    if (medium_open(&v->medium, &place, err))
        return err->code;
    v->medium.uri = v->uri;
    return 0;
}

static int read_view(struct view *v, const struct tier *t, const struct view_from *from, struct err *err)
{
    if (folder_open(&v->folder, tier_folder(t), FOLDER_READ, from->also, err))
        return err->code;
    if (v->folder < 0)
        return 0;
    if (index_open(&v->index, v->folder, err))
        return err->code;
    return index_store(&v->index) ? open_medium(v, t, from, err) : 0;
}

/* Is there a folder to open? An evp_code, with a message. */
static int judge_tier(const struct tier *t, struct evp_error *why)
{
    const char *folder = tier_folder(t);
    struct stat st;
    struct err err;

    if (!folder) {
        err_set(&err, ERR_FORMAT, "tiers of kind '%s' are not served", tier_kind_name(t->kind));
        return evp_error_set(why, EVICPRESS_UNKNOWN, err.msg);
    }
    if (folder[0] != '/') {
        err_set(&err, ERR_FORMAT, "'%.160s' is a relative path: the tiers must have absolute paths", folder);
        return evp_error_set(why, EVICPRESS_ARGUMENT, err.msg);
    }
    int failed = stat(folder, &st) ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    if (!failed)
        return EVICPRESS_OK;
    if (failed == ENOENT || failed == ENOTDIR) {
        err_set(&err, ERR_IO, "there is no folder '%.160s'", folder);
        return evp_error_set(why, EVICPRESS_GONE, err.msg);
    }
    err_set(&err, ERR_IO, "cannot open folder '%.160s': %s", folder, strerror(failed));
    return evp_error_set(why, EVICPRESS_IO, err.msg);
}

/* Reads a tier that has changed. If it cannot be read, its old view stays in use, and other tiers are unaffected. */
static int read_tier(struct snapshot *s, int tier, const struct view_from *from, struct err *err)
{
    const struct tier *t = &s->header.tiers.at[tier];
    struct evp_error *why = &s->why[tier];
    struct view *v = view_new();

    s->view[tier] = v;
    if (!v)
        return err_nomem(err);
    if (judge_tier(t, why) == EVICPRESS_OK) {
        if (!read_view(v, t, from, err))
            return 0;
        if (err->code == ERR_NOMEM)
            return err->code;
        evp_error_from(why, err, EVICPRESS_DAMAGED);
    }
    if (why->code == EVICPRESS_IO)
        s->seen[tier].size = -1; /* the next refresh tries again, even if no file has changed */
    if (why->code != EVICPRESS_IO && why->code != EVICPRESS_DAMAGED)
        return 0;
    view_drop(v);
    s->view[tier] = from->before ? view_share(from->before) : view_new();
    return s->view[tier] ? 0 : err_nomem(err);
}

static int open_view(struct snapshot *s, int tier, uid_t also, const struct snapshot *old, struct err *err)
{
    const struct tier *t = &s->header.tiers.at[tier];
    int before = tier_before(old, t);
    const struct view_from from = { also, before < 0 ? NULL : old->view[before] };

    if (tier_folder(t)) /* before reading: a replacement in between is noticed later */
        s->seen[tier] = stamp_index(t);
    if (before < 0 || old->why[before].code || !stamp_same(&old->seen[before], &s->seen[tier]))
        return read_tier(s, tier, &from, err);
    s->view[tier] = view_share(from.before);
    return 0;
}

const char *snapshot_name_space(const struct evp_store *store, const struct snapshot *s)
{
    return store->name_space ? store->name_space : s->header.model_digest;
}

static struct snapshot *snapshot_read(const struct evp_store *store, struct err *err)
{
    struct snapshot *s = calloc(1, sizeof(*s));
    struct stat st;

    if (!s) {
        err_nomem(err);
        return NULL;
    }
    s->users = 1;
    uid_t owner = stat(store->path, &st) ? geteuid() : st.st_uid;
    s->manifest = stamp_of(store->path);
    int code = manifest_read_header(&s->header, store->path, err);
    for (int t = 0; t < s->header.tiers.n && !code; t++)
        code = open_view(s, t, owner, store->now, err);
    for (int t = 0; t < s->header.tiers.n && !code; t++)
        s->name_space[t] = index_name_space(&s->view[t]->index, snapshot_name_space(store, s));
    if (!code)
        return s;
    snapshot_free(s);
    return NULL;
}

static bool snapshot_is_current(const struct snapshot *s, const char *path)
{
    struct stamp stamp = stamp_of(path);
    bool same = stamp_same(&stamp, &s->manifest);

    for (int t = 0; t < s->header.tiers.n && same; t++) {
        const struct tier *tier = &s->header.tiers.at[t];
        if (!tier_folder(tier))
            continue;
        stamp = stamp_index(tier);
        same = stamp_same(&stamp, &s->seen[t]);
    }
    return same;
}

/* ---- stores ------------------------------------------------------------------- */

struct snapshot *snapshot_take(struct evp_store *store)
{
    pthread_mutex_lock(&store->fork.lock);
    struct snapshot *s = store->now;
    s->users++;
    pthread_mutex_unlock(&store->fork.lock);
    return s;
}

void snapshot_give_back(struct evp_store *store, struct snapshot *s)
{
    pthread_mutex_lock(&store->fork.lock);
    bool last = --s->users == 0;
    pthread_mutex_unlock(&store->fork.lock);
    if (last)
        snapshot_free(s);
}

/* The caller's options, from an older or a newer header. */
static int take_options(struct evp_options *o, const struct evp_options *given, struct evp_error *error)
{
    const unsigned char *more = (const unsigned char *)given;

    *o = (struct evp_options){ 0 };
    if (!given)
        return 0;
    if (given->size < sizeof(given->size))
        return evp_error_set(error, EVICPRESS_ARGUMENT, "options: size is not set");
    for (size_t i = sizeof(*o); i < given->size; i++)
        if (more[i])
            return evp_error_set(error, EVICPRESS_ARGUMENT,
                                 "options: an option is set that this version of the library lacks");
    memcpy(o, given, given->size < sizeof(*o) ? given->size : sizeof(*o));
    return 0;
}

/* The child does not continue the calls of other threads; their snapshots stay open. But it closes the tiers' locks,
 * which are the parent's: a descriptor left here would keep them locked after the parent's death. */
static void in_child(struct fork_safe *f)
{
    struct evp_store *s = (struct evp_store *)f; /* fork is its first member */

    if (s->changing)
        store_cut_short = true;
    for (int t = 0; s->changing && t < TIER_MAX; t++)
        if (s->changing[t].lock >= 0)
            close(s->changing[t].lock);
    s->changing = NULL;
    fork_safe_renew(&s->refreshing);
    fork_safe_renew(&s->writing);
}

int evp_open_with(struct evp_store **store, const char *manifest, const struct evp_options *options,
                  struct evp_error *error)
{
    struct evp_options o;
    struct err err;

    *store = NULL;
    if (!manifest || strcmp(manifest, "-") == 0)
        return evp_error_set(error, EVICPRESS_ARGUMENT, "manifest is not a path");
    if (take_options(&o, options, error))
        return EVICPRESS_ARGUMENT;
    if ((o.verify != EVICPRESS_VERIFY && o.verify != EVICPRESS_TRUST) || !(o.wait_s >= 0))
        return evp_error_set(error, EVICPRESS_ARGUMENT, "an option is out of range");
    struct evp_store *s = calloc(1, sizeof(*s));
    if (!s)
        return evp_error_set(error, EVICPRESS_MEMORY, "out of memory");
    fork_safe_init(&s->fork, in_child);
    pthread_mutex_init(&s->refreshing, NULL);
    pthread_mutex_init(&s->writing, NULL);
    s->wait_s = o.wait_s;
    s->verify = o.verify;
    s->path = strdup(manifest);
    s->name_space = o.name_space ? strdup(o.name_space) : NULL;
    s->stats = stats_new();
    if (!s->path || !s->stats || (o.name_space && !s->name_space))
        err_nomem(&err);
    else
        s->now = snapshot_read(s, &err);
    if (!s->now) {
        evp_close(s);
        return evp_error_from(error, &err, EVICPRESS_DAMAGED);
    }
    *store = s;
    return EVICPRESS_OK;
}

int evp_get_tier(struct evp_store *store, size_t i, struct evp_tier *tier, struct evp_error *error)
{
    struct snapshot *s = snapshot_take(store);
    int found = i < (size_t)s->header.tiers.n;

    (void)error;
    *tier = (struct evp_tier){ 0 };
    if (found) {
        const struct tier *t = &s->header.tiers.at[i];
        memcpy(tier->name, t->name, TIER_NAME);
        const struct index *index = &s->view[i]->index;
        tier->code = s->why[i].code;
        snprintf(tier->text, sizeof(tier->text), "%.255s", s->why[i].text);
        pthread_mutex_lock(&store->fork.lock);
        if (!tier->code)
            memcpy(tier->text, store->left_out[i], sizeof(tier->text));
        pthread_mutex_unlock(&store->fork.lock);
        tier->n_placed = index->n - index->n_parts;
    }
    snapshot_give_back(store, s);
    return found;
}

int evp_open(struct evp_store **store, const char *manifest, struct evp_error *error)
{
    return evp_open_with(store, manifest, NULL, error);
}

void evp_close(struct evp_store *store)
{
    if (!store)
        return;
    fork_safe_release(&store->fork);
    snapshot_free(store->now);
    stats_drop(store->stats);
    pthread_mutex_destroy(&store->refreshing);
    pthread_mutex_destroy(&store->writing);
    free(store->path);
    free(store->name_space);
    free(store);
}

/* Are two snapshots equal? */
static bool snapshot_is_same(const struct snapshot *old, const struct snapshot *new)
{
    bool same = stamp_same(&old->manifest, &new->manifest);

    for (int t = 0; t < new->header.tiers.n &&same; t++)
        same = new->why[t].code == old->why[t].code && (new->why[t].code || new->view[t] == old->view[t]);
    return same;
}

/* The caller holds the lock `refreshing`. */
static int refresh(struct evp_store *store, struct err *err)
{
    struct snapshot *old = snapshot_take(store);
    bool current = snapshot_is_current(old, store->path);

    snapshot_give_back(store, old);
    if (current)
        return 0;
    struct snapshot *new = snapshot_read(store, err);
    if (!new)
        return err->code;
    pthread_mutex_lock(&store->fork.lock);
    old = store->now;
    store->now = new;
    if (!stamp_same(&old->manifest, &new->manifest)) /* its tiers may have other numbers */
        memset(store->left_out, 0, sizeof(store->left_out));
    pthread_mutex_unlock(&store->fork.lock);
    bool same = snapshot_is_same(old, new);
    snapshot_give_back(store, old);
    return !same;
}

int snapshot_refresh(struct evp_store *store, struct err *err)
{
    pthread_mutex_lock(&store->refreshing);
    int changed = refresh(store, err);
    pthread_mutex_unlock(&store->refreshing);
    return changed;
}

int evp_refresh(struct evp_store *store, struct evp_error *error)
{
    struct err err;

    if (pthread_mutex_trylock(&store->refreshing))
        return 0; /* another thread is refreshing */
    int changed = refresh(store, &err);
    pthread_mutex_unlock(&store->refreshing);
    return stats_count(store->stats, "", 0, changed < 0 ? evp_error_from(error, &err, EVICPRESS_DAMAGED) : changed);
}
