/* tier_store.c - opening a store, its changes, the index that follows from them, and sweeping. What other namespaces
 * have is kept as index records, all that publishing and sweeping need of it.
 */
#include "loader/store/tier_store.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "loader/index/folder.h"
#include "loader/index/index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

struct other {
    struct index_record record;
    bool placed;
};

/* Namespace 0 is the store's own. */
struct tier_store_others {
    struct other *at;
    size_t n, cap;
    struct map name_spaces, configs;
};

/* ---- records --------------------------------------------------------------------- */

static int set_record(struct tier_store_others *o, const char *name_space, const struct entry *e,
                      struct index_record *r, struct err *err)
{
    int space = map_add(&o->name_spaces, name_space, strlen(name_space), NULL);
    int config = map_add(&o->configs, e->config, strlen(e->config), NULL);

    if (space < 0 || config < 0)
        return err_nomem(err);
    if (space >= INDEX_TEXTS || config >= INDEX_TEXTS)
        return err_set(err, ERR_FAIL, "an index has at most %d namespaces and configs", INDEX_TEXTS);
    *r = (struct index_record){ .n_tokens = (uint32_t)e->n_tokens,
                                .size = (uint64_t)e->size,
                                .config = (uint16_t)config,
                                .order = (uint32_t)e->row };
    index_key_set(&r->key, e->prefix, e->token_digest, e->n_tokens);
    r->key.name_space[0] = (uint8_t)(space >> 8);
    r->key.name_space[1] = (uint8_t)space;
    r->checksum = strtoull(e->checksum, NULL, 16);
    return object_parse(e->file, r->object)
               ? 0
               : err_set(err, ERR_FORMAT, "'%.100s' is not the name of a placed payload", e->file);
}

/* Takes a payload of the state over: whole if it is the store's own, else as a record. */
static int read_payload(void *arg, const char *name_space, struct entry *e, struct err *err)
{
    struct tier_store *s = arg;
    struct other other = { .placed = e->placed };

    if (strcmp(name_space, s->name_space) == 0)
        return entries_add(&s->in, e, err);
    if (!e->present)
        return 0;
    if (__builtin_add_overflow(s->other_bytes, e->bytes, &s->other_bytes))
        s->other_bytes = INT64_MAX;
    if (set_record(s->others, name_space, e, &other.record, err))
        return err->code;
    return ARRAY_PUSH(s->others, other) ? err_nomem(err) : 0;
}

/* ---- the index ------------------------------------------------------------------------ */

static int make_records(const struct tier_store *s, struct index_made *made, struct err *err)
{
    made->record = malloc((s->others->n + (size_t)s->in.n + 1) * sizeof(*made->record));
    if (!made->record)
        return err_nomem(err);
    for (size_t i = 0; i < s->others->n; i++)
        if (s->others->at[i].placed)
            made->record[made->n++] = s->others->at[i].record;
    for (int i = 0; i < s->in.n; i++) {
        const struct entry *e = &s->in.at[i];
        if (e->present && e->placed && set_record(s->others, s->name_space, e, &made->record[made->n++], err))
            return err->code;
    }
    return 0;
}

/* The keys of a map as a list; NULL without memory. */
static const char **keys_of(const struct map *m)
{
    const char **key = calloc((size_t)m->n + 1, sizeof(*key));

    for (int i = 0; key && i < m->n; i++)
        key[i] = m->at[i].key;
    return key;
}

int tier_store_publish(struct tier_store *s, struct err *err)
{
    struct index_made made = { .generation = state_generation(s->state) };
    const char **spaces = NULL, **configs = NULL;

    if (s->published == made.generation)
        return 0;
    int code = make_records(s, &made, err);
    if (!code) {
        spaces = keys_of(&s->others->name_spaces);
        configs = keys_of(&s->others->configs);
        code = spaces && configs ? 0 : err_nomem(err);
    }
    if (!code) {
        memcpy(made.store, state_id(s->state), sizeof(made.store));
        made.name_space = spaces;
        made.n_name_spaces = s->others->name_spaces.n;
        made.config = configs;
        made.n_configs = s->others->configs.n;
        code = index_write(s->folder, &made, err);
    }
    if (!code)
        s->published = made.generation;
    free(spaces);
    free(configs);
    free(made.record);
    return code;
}

/* The index on disk is used as it is when it is whole and that of the state. */
static int check_index(struct tier_store *s, struct err *err)
{
    struct index ix;
    struct err why;
    bool good = !index_open(&ix, s->folder, &why) && index_is_of(&ix, state_id(s->state), state_generation(s->state)) &&
                !index_check(&ix, &why);

    index_close(&ix);
    s->published = good ? state_generation(s->state) : UINT64_MAX;
    return good ? 0 : tier_store_publish(s, err);
}

/* ---- sweeping --------------------------------------------------------------------------- */

struct sweep {
    const struct tier_store *store;
    struct map named;
};

static int sweep_file(void *arg, const char *file, struct err *err)
{
    const struct sweep *w = arg;

    if (map_find(&w->named, file, strlen(file)) >= 0 || !entry_file_safe(file))
        return 0;
    return unlinkat(w->store->folder, file, 0) && errno != ENOENT
               ? err_set(err, ERR_IO, "cannot remove '%s': %s", file, strerror(errno))
               : 0;
}

int tier_store_sweep(struct tier_store *s, struct err *err)
{
    struct sweep w = { .store = s };
    char file[OBJECT_FILE];
    bool stored = true;

    for (size_t i = 0; i < s->others->n; i++) {
        object_file(s->others->at[i].record.object, file);
        stored = stored && map_add(&w.named, file, strlen(file), NULL) >= 0;
    }
    for (int i = 0; i < s->in.n; i++)
        if (s->in.at[i].present)
            stored = stored && map_add(&w.named, s->in.at[i].file, strlen(s->in.at[i].file), NULL) >= 0;
    int code = stored ? folder_each_payload(s->folder, sweep_file, &w, err) : err_nomem(err);
    map_release(&w.named);
    return code;
}

/* ---- opening ------------------------------------------------------------------------------ */

static int lock_folder(struct tier_store *s, const struct tier_store_options *o, struct err *err)
{
    double until = clock_now() + o->wait_s;

    s->lock = openat(s->folder, "evp-lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock < 0)
        return err_set(err, ERR_IO, "cannot lock folder '%s': %s", s->tier->uri, strerror(errno));
    while (flock(s->lock, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_set(err, ERR_IO, "cannot lock folder '%s': %s", s->tier->uri, strerror(errno));
        if (clock_now() >= until) {
            if (o->busy)
                *o->busy = true;
            return err_set(err, ERR_IO, "another evp-load is at work in '%s'; --wait waits for it", s->tier->uri);
        }
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    }
    return 0;
}

/* Before release 0.2.0 stores had an index of JSON and no state. */
static int refuse_old(const struct tier_store *s, struct err *err)
{
    char first = 0;
    int fd = openat(s->folder, "evp-index", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return 0;
    bool old = read(fd, &first, 1) == 1 && first == '{';
    close(fd);
    return old ? err_set(
                     err, ERR_FORMAT,
                     "folder '%s' was filled by an earlier release: remove its evp-* files, and load again with the "
                     "payload folder",
                     s->tier->uri)
               : 0;
}

static int open_state(struct tier_store *s, const struct tier_store_options *o, struct err *err)
{
    const char *dir = o->tier->state ? o->tier->state : o->tier->uri;

    if (!o->tier->state && folder_is_remote(s->folder))
        return err_set(err, ERR_FAIL,
                       "folder '%s' is on a network file system, whose locks cannot be relied on: give the tier a "
                       "'state', a folder on a local disk",
                       o->tier->uri);
    if (refuse_old(s, err) || state_open(&s->state, dir, o->tier->state ? o->tier->uri : "",
                                         o->use == STORE_CHANGE ? STATE_CHANGE : STATE_LOOK, err))
        return err->code;
    if (!s->state)
        return 0;
    return state_get_load(s->state, s->name_space, &s->load, err) ? err->code
                                                                  : state_each(s->state, read_payload, s, err);
}

static int open_folder(struct tier_store *s, const struct tier_store_options *o, struct err *err)
{
    bool change = o->use == STORE_CHANGE;

    if (folder_open(&s->folder, o->tier->uri, change ? FOLDER_WRITE : FOLDER_READ, geteuid(), err))
        return err->code;
    if (s->folder < 0)
        return 0;
    if ((change && lock_folder(s, o, err)) || (change && o->share && folder_share(s->folder, o->group, err)) ||
        open_state(s, o, err))
        return err->code;
    if (!change)
        return 0;
    if (check_index(s, err))
        return err->code;
    return state_is_swept(s->state) ? 0 : tier_store_sweep(s, err);
}

int tier_store_open(struct tier_store *s, const struct tier_store_options *o, struct err *err)
{
    *s = (struct tier_store){ .tier = o->tier, .name_space = o->name_space, .folder = -1, .lock = -1 };
    s->others = calloc(1, sizeof(*s->others));
    if (!s->others || map_add(&s->others->name_spaces, o->name_space, strlen(o->name_space), NULL) < 0) {
        tier_store_close(s);
        return err_nomem(err);
    }
    int code = tier_is_folder(o->tier)
                   ? open_folder(s, o, err)
                   : err_set(err, ERR_FAIL, "kind '%s' is not a folder", tier_kind_name(o->tier->kind));
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
        flock(s->lock,
              LOCK_UN); /* a process that was forked meanwhile has the descriptor, too, and must not keep it locked */
        close(s->lock);
    }
    if (s->folder >= 0)
        close(s->folder);
    if (s->others) {
        map_release(&s->others->name_spaces);
        map_release(&s->others->configs);
        free(s->others->at);
        free(s->others);
    }
    entries_release(&s->in);
    *s = (struct tier_store){ .folder = -1, .lock = -1 };
}

/* ---- changes -------------------------------------------------------------------------------- */

int tier_store_add(struct tier_store *s, struct entry *e, struct err *err)
{
    if (!state_insert(s->state, s->load.number, e, err))
        return entries_add(&s->in, e, err);
    entry_release(e);
    return err->code;
}

int tier_store_update(struct tier_store *s, int i, struct err *err)
{
    return state_update(s->state, s->load.number, &s->in.at[i], err);
}

int tier_store_forget(struct tier_store *s, int i, struct err *err)
{
    struct entry *e = &s->in.at[i];

    e->present = e->placed = false;
    if (e->before)
        return tier_store_update(s, i, err);
    int code = state_delete(s->state, e, err);
    e->row = 0;
    return code;
}

int tier_store_commit(struct tier_store *s, struct err *err)
{
    return state_commit(s->state, err) ? err_wrap(err, "tier '%s'", s->tier->name) : 0;
}
