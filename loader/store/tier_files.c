/* tier_files.c - puts, flushes, reads back and removes the payloads of a store, in any medium. */
#include "loader/store/tier_store.h"

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

/* ERR_FORMAT: the blob has another checksum than its entry. */
static int check_blob(const struct tier_store *s, const struct blob *b, const struct entry *e, struct err *err)
{
    char checksum[XXH3_HEX];
    int64_t size;

    if (blob_checksum(b, &size, checksum, err))
        return err->code;
    return size == e->size && strcmp(checksum, e->checksum) == 0
               ? 0
               : err_set(err, ERR_FORMAT, "'%s/%s' is damaged: its checksum is wrong", s->tier->uri, e->file);
}

int tier_store_check(const struct tier_store *s, const struct entry *e, struct err *err)
{
    struct blob b;
    int code = s->medium.driver ? medium_get(&s->medium, e->file, e->size, &b, err) : MEDIUM_GONE;

    if (code)
        return code == MEDIUM_GONE ? err_set(err, ERR_FORMAT, "'%s/%s' is missing", s->tier->uri, e->file) : code;
    code = check_blob(s, &b, e, err);
    blob_close(&b);
    return code;
}

bool tier_store_has(const struct tier_store *s, const struct entry *e)
{
    const struct medium_object object = object_of(e);
    bool has = false;
    struct err err;

    return !s->medium.driver->look(&s->medium, &object, 1, &has, &err) && has;
}

int tier_store_look(const struct tier_store *s, bool *there, struct err *err)
{
    struct medium_object *object = calloc((size_t)s->in.n + 1, sizeof(*object));
    int code = object ? 0 : err_nomem(err);

    for (int i = 0; !code && i < s->in.n; i++)
        object[i] = object_of(&s->in.at[i]);
    if (!code && s->in.n && s->medium.driver->look(&s->medium, object, s->in.n, there, err))
        code = err_wrap(err, "tier '%s'", s->tier->name);
    free(object);
    return code;
}

int tier_store_read_back(const struct tier_store *s, const struct entry *e, struct err *err)
{
    struct blob b;

    if (tier_store_get(s, e, &b, err))
        return err->code;
    if (s->medium.driver->drop)
        s->medium.driver->drop(&b);
    int code = check_blob(s, &b, e, err);
    blob_close(&b);
    return code;
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
