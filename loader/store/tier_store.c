/* tier_store.c - opens a store, and changes it. tier_publish.c derives the index. */
#include "loader/store/tier_store.h"

#include "base/clock.h"
#include "loader/store/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* Is the tier a folder with its state elsewhere? The lock is in the folder even then. */
static bool has_state_apart(const struct tier *t)
{
    return t->state && tier_is_folder(t);
}

bool tier_store_is_older(const struct tier_state *state, const struct index *index)
{
    const struct index_header *h = index->header;

    return h && (memcmp(h->store, state_id(state), INDEX_ID) != 0 || h->generation > state_generation(state));
}

/* Compares the state with the index on disk. If the index is newer, or of another state, the state was lost or restored
 * from a copy: then it becomes the index's. */
static int check_index(struct tier_store *s, struct err *err)
{
    uint64_t generation = state_generation(s->state);
    struct err why;
    const struct index_header *h = index_open(&s->index, s->folder, &why) ? NULL : s->index.header;
    bool foreign = h && memcmp(h->store, state_id(s->state), INDEX_ID) != 0;

    if (foreign && s->index.n && has_state_apart(s->tier))
        return err_set(
            err, ERR_FAIL,
            "folder '%s' was filled with another state than '%s': name that state; or, if it is lost, remove "
            "the folder's evp-index, and the next load finds the payloads again",
            s->tier->uri, s->tier->state);
    s->lost = !generation || tier_store_is_older(s->state, &s->index);
    if (s->lost && h)
        state_take_over(s->state, h->store, h->generation > generation ? h->generation : generation);
    return 0;
}

/* Finds the payloads of a lost state again, or refuses it. Keeps the index if it is the state's. */
static int check_payloads(struct tier_store *s, bool adopt, struct err *err)
{
    if (s->lost && (adopt ? tier_store_adopt(s, err) : tier_store_refuse_lost(s, err)))
        return err->code;
    if (!index_is_of(&s->index, state_id(s->state), state_generation(s->state)))
        index_close(&s->index);
    s->unswept = !state_is_swept(s->state);
    return 0;
}

int tier_store_tidy(struct tier_store *s, struct err *err)
{
    if (tier_store_publish(s, err))
        return err->code;
    if (!s->unswept || (s->lazy && s->medium.driver->reach))
        return 0;
    return tier_store_sweep(s, err) || state_set_swept(s->state, true, err) ? err->code : tier_store_commit(s, err);
}

/* Takes a payload of the state if it is in the store's namespace. */
static int read_payload(void *arg, const char *name_space, struct entry *e, struct err *err)
{
    struct tier_store *s = arg;

    if (strcmp(name_space, s->name_space) == 0)
        return entries_add(&s->in, e, err);
    if (__builtin_add_overflow(s->other_bytes, e->bytes, &s->other_bytes))
        s->other_bytes = INT64_MAX;
    return 0;
}

/* ---- opening ------------------------------------------------------------------------------ */

static int lock_folder(struct tier_store *s, const struct tier_store_options *o, struct err *err)
{
    double until = clock_now() + o->wait_s;

    s->lock = openat(s->folder, "evp-lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock < 0)
        return err_set(err, ERR_IO, "cannot lock folder '%s': %s", tier_folder(s->tier), strerror(errno));
    while (flock(s->lock, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_set(err, ERR_IO, "cannot lock folder '%s': %s", tier_folder(s->tier), strerror(errno));
        if (clock_now() >= until) {
            if (o->busy)
                *o->busy = true;
            return err_set(err, ERR_IO, "another evp-load is running in '%s'; use --wait", tier_folder(s->tier));
        }
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    }
    return 0;
}

static int read_context(struct tier_store *s, struct err *err)
{
    int64_t all;

    if (state_each_of(s->state, &(struct state_context){ s->load.number, s->context }, read_payload, s, err) ||
        state_used(s->state, s->load.number, &s->own_bytes, &all, err))
        return err->code;
    s->other_bytes = all == INT64_MAX ? all : all - s->own_bytes;
    return 0;
}

static int read_payloads(struct tier_store *s, struct err *err)
{
    return s->context ? read_context(s, err) : state_each(s->state, read_payload, s, err);
}

/* Creates and checks a separate folder for the state like the tier's. */
static int check_state_folder(const struct tier_store_options *o, struct err *err)
{
    int fd;

    if (folder_open(&fd, o->tier->state, o->use == STORE_CHANGE ? FOLDER_WRITE : FOLDER_READ, geteuid(), err))
        return err->code;
    bool remote = fd >= 0 && folder_is_remote(fd);
    if (fd >= 0)
        close(fd);
    return !remote
               ? 0
               : err_set(err, ERR_FAIL, "the tier's 'state' '%s' is on a network file system: it needs a local disk",
                         o->tier->state);
}

static int open_state(struct tier_store *s, const struct tier_store_options *o, struct err *err)
{
    const struct tier *t = o->tier;
    bool apart = has_state_apart(t);

    if (!apart && folder_is_remote(s->folder))
        return err_set(err, ERR_FAIL,
                       "folder '%s' is on a network file system, where locks are unreliable: give the tier a 'state', "
                       "a folder on a local disk",
                       tier_folder(t));
    if ((apart && check_state_folder(o, err)) ||
        state_open(&s->state, t->state ? t->state : t->uri, t->state ? t->uri : "",
                   o->use == STORE_CHANGE ? STATE_CHANGE : STATE_LOOK, err))
        return err->code;
    return 0;
}

/* Opens the medium. An unreachable one fails before anything changes. */
static int open_medium(struct tier_store *s, const struct tier_store_options *o, struct err *err)
{
    const struct medium_place place = { .tier = o->tier,
                                        .folder = s->folder,
                                        .store = s->state ? state_id(s->state) : NULL };

    if (medium_open(&s->medium, &place, err))
        return err->code;
    const struct medium_driver *d = s->medium.driver;
    int (*reach)(const struct medium *m, struct err *err) = o->use == STORE_CHANGE && d->claim ? d->claim : d->reach;
    if (o->lazy || !reach || !reach(&s->medium, err))
        return 0;
    if (o->away)
        *o->away = true;
    return err->code;
}

static int open_folder(struct tier_store *s, const struct tier_store_options *o, struct err *err)
{
    bool change = o->use == STORE_CHANGE;

    if (folder_open(&s->folder, tier_folder(o->tier), change ? FOLDER_WRITE : FOLDER_READ, geteuid(), err))
        return err->code;
    if (s->folder < 0)
        return tier_is_folder(o->tier) ? 0 : open_medium(s, o, err);
    if ((change && lock_folder(s, o, err)) || (change && o->share && folder_share(s->folder, o->group, err)) ||
        open_state(s, o, err) || (change && check_index(s, err)) || open_medium(s, o, err) ||
        (change && check_payloads(s, o->adopt, err)))
        return err->code;
    if (!s->state)
        return 0;
    return state_get_load(s->state, s->name_space, &s->load, err) ? err->code : read_payloads(s, err);
}

int tier_store_open(struct tier_store *s, const struct tier_store_options *o, struct err *err)
{
    *s = (struct tier_store){
        .tier = o->tier, .name_space = o->name_space, .context = o->context, .lazy = o->lazy, .folder = -1, .lock = -1
    };
    int code = tier_folder(o->tier) ? open_folder(s, o, err)
                                    : err_set(err, ERR_FAIL, "kind '%s' is not a folder, and the tier has no 'state'",
                                              tier_kind_name(o->tier->kind));
    if (!code)
        return 0;
    err_wrap(err, "tier '%s'", o->tier->name);
    tier_store_close(s);
    return code;
}

void tier_store_close(struct tier_store *s)
{
    if (!s->tier)
        return;
    state_close(s->state);
    if (s->lock >= 0) {
        int lock = s->lock;
        flock(lock, LOCK_UN); /* a forked process may also have the descriptor */
        /* Before the number can belong to another file: evp_store.c closes it in a forked process. */
        s->lock = -1;
        close(lock);
    }
    medium_close(&s->medium);
    if (s->folder >= 0)
        close(s->folder);
    index_close(&s->index);
    free(s->touched.at);
    entries_release(&s->in);
    *s = (struct tier_store){ .folder = -1, .lock = -1 };
}

/* ---- changes -------------------------------------------------------------------------------- */

int tier_store_add(struct tier_store *s, struct entry *e, struct err *err)
{
    if (!state_insert(s->state, s->load.number, e, err))
        return entries_add(&s->in, e, err) ? err->code : tier_store_touch(s, s->in.n - 1, err);
    entry_release(e);
    return err->code;
}

int tier_store_update(struct tier_store *s, int i, struct err *err)
{
    return state_update(s->state, &s->in.at[i], err) ? err->code : tier_store_touch(s, i, err);
}

int tier_store_forget(struct tier_store *s, int i, struct err *err)
{
    struct entry *e = &s->in.at[i];

    if (tier_store_touch(s, i, err) || state_delete(s->state, e, err))
        return err->code;
    e->row = 0;
    return 0;
}

int tier_store_put_parts(struct tier_store *s, int i, const struct state_parts *parts, struct err *err)
{
    return state_put_parts(s->state, &s->in.at[i], parts, err) ? err->code : tier_store_touch(s, i, err);
}

int tier_store_drop_parts(struct tier_store *s, int i, struct err *err)
{
    bool has;

    if (tier_store_has_parts(s, i, &has, err))
        return err->code;
    return has && (tier_store_touch(s, i, err) || state_delete_parts(s->state, &s->in.at[i], err)) ? err->code : 0;
}

int tier_store_commit(struct tier_store *s, struct err *err)
{
    return state_commit(s->state, err) ? err_wrap(err, "tier '%s'", s->tier->name) : 0;
}
