/* tier_files.c - puts, flushes, reads back, removes and sweeps the payloads of a store, in any medium. */
#include "loader/store/tier_store.h"

#include "base/map.h"

#include <stdlib.h>
#include <string.h>

static struct medium_object object_of(const struct entry *e)
{
    return (struct medium_object){ e->file, e->size };
}

int tier_store_put(const struct tier_store *s, const struct blob *from, const struct entry *e, struct err *err)
{
    const struct medium *m = &s->medium;

    return m->driver->put(m, e->file, from, err) ? err_wrap(err, "tier '%s'", s->tier->name) : 0;
}

int tier_store_flush_file(const struct tier_store *s, const struct entry *e, struct err *err)
{
    return s->medium.driver->flush(&s->medium, e->file, err);
}

int tier_store_flush(const struct tier_store *s, struct err *err)
{
    return s->medium.driver->flush(&s->medium, NULL, err) ? err_wrap(err, "tier '%s'", s->tier->name) : 0;
}

int tier_store_get(const struct tier_store *s, const struct entry *e, struct blob *b, struct err *err)
{
    int code = medium_get(&s->medium, e->file, e->size, b, err);

    return code == MEDIUM_GONE ? err_set(err, ERR_IO, "cannot open '%s/%s': it is not there", s->tier->uri, e->file)
                               : code;
}

/* Does an open payload have the checksum of its entry? */
static bool is_whole(const struct blob *b, const struct entry *e)
{
    char checksum[XXH3_HEX];
    struct err err;
    int64_t size;

    return !blob_checksum(b, &size, checksum, &err) && size == e->size && strcmp(checksum, e->checksum) == 0;
}

bool tier_store_has(const struct tier_store *s, const struct entry *e, enum tier_store_check check)
{
    const struct medium_object object = object_of(e);
    bool has = false;
    struct blob b;
    struct err err;

    if (!s->medium.driver)
        return false;
    if (check == STORE_SIZE)
        return !s->medium.driver->look(&s->medium, &object, 1, &has, &err) && has;
    if (medium_get(&s->medium, e->file, e->size, &b, &err))
        return false;
    has = is_whole(&b, e);
    blob_close(&b);
    return has;
}

int tier_store_look(const struct tier_store *s, bool *there, struct err *err)
{
    struct medium_object *object = calloc((size_t)s->in.n + 1, sizeof(*object));
    bool *found = calloc((size_t)s->in.n + 1, sizeof(*found));
    int n = 0, code = object && found ? 0 : err_nomem(err);

    for (int i = 0; !code && i < s->in.n; i++)
        if (s->in.at[i].present)
            object[n++] = object_of(&s->in.at[i]);
    if (!code && n && s->medium.driver->look(&s->medium, object, n, found, err))
        code = err_wrap(err, "tier '%s'", s->tier->name);
    n = 0;
    for (int i = 0; !code && i < s->in.n; i++)
        there[i] = s->in.at[i].present && found[n++];
    free(object);
    free(found);
    return code;
}

int tier_store_read_back(const struct tier_store *s, const struct entry *e, struct err *err)
{
    struct blob b;

    if (tier_store_get(s, e, &b, err))
        return err->code;
    if (s->medium.driver->drop)
        s->medium.driver->drop(&b);
    bool whole = is_whole(&b, e);
    blob_close(&b);
    return whole ? 0 : err_set(err, ERR_IO, "'%s/%s' reads back with a wrong checksum", s->tier->uri, e->file);
}

int tier_store_shares(const struct tier_store *s, const struct entry *e, bool *shares, struct err *err)
{
    return state_is_named(s->state, e->file, shares, err) ? err_wrap(err, "tier '%s'", s->tier->name) : 0;
}

int tier_store_remove(const struct tier_store *s, const struct entry *e, struct err *err)
{
    bool shares;

    if (tier_store_shares(s, e, &shares, err))
        return err->code;
    return shares ? 0 : tier_store_remove_own(s, e, err);
}

int tier_store_remove_own(const struct tier_store *s, const struct entry *e, struct err *err)
{
    const struct medium_object object = object_of(e);

    return s->medium.driver->remove(&s->medium, &object, err);
}

/* ---- sweeping --------------------------------------------------------------------------- */

struct sweep {
    const struct tier_store *store;
    struct map named;
};

static int sweep_object(void *arg, const struct medium_object *object, struct err *err)
{
    const struct sweep *w = arg;
    const struct medium *m = &w->store->medium;

    if (map_find(&w->named, object->key, strlen(object->key)) >= 0 || !entry_file_safe(object->key))
        return 0;
    return m->driver->remove(m, object, err);
}

static int keep_file(void *arg, const char *name_space, struct entry *e, struct err *err)
{
    struct sweep *w = arg;

    (void)name_space;
    return e->present && map_add(&w->named, e->file, strlen(e->file), NULL) < 0 ? err_nomem(err) : 0;
}

int tier_store_sweep(struct tier_store *s, struct err *err)
{
    struct sweep w = { .store = s };
    int code = state_each(s->state, keep_file, &w, err) || s->medium.driver->each(&s->medium, sweep_object, &w, err)
                   ? err->code
                   : 0;

    map_release(&w.named);
    s->unswept = code;
    return code;
}
