/* medium_absent.c - stands in for a medium whose shared object cannot be opened. It is always unreachable, so the tier
 * is handled like one on an unreachable server, and other tiers are unaffected.
 */
#include "loader/store/medium_drivers.h"

#include <stdlib.h>

/* Fails with the message of plugin_open(). */
static int fail(const struct medium *m, struct err *err)
{
    *err = *(const struct err *)m->own;
    return err->code;
}

static int fail_to_put(const struct medium *m, const char *key, const struct blob *from, struct err *err)
{
    (void)key;
    (void)from;
    return fail(m, err);
}

static int fail_to_flush(const struct medium *m, const char *key, struct err *err)
{
    (void)key;
    return fail(m, err);
}

static int fail_to_get(const struct medium *m, const char *key, struct blob *b, struct err *err)
{
    (void)key;
    (void)b;
    return fail(m, err);
}

static int fail_to_look(const struct medium *m, const struct medium_object *object, int n, bool *there, struct err *err)
{
    (void)object;
    (void)n;
    (void)there;
    return fail(m, err);
}

static int fail_to_remove(const struct medium *m, const struct medium_object *object, struct err *err)
{
    (void)object;
    return fail(m, err);
}

static int fail_to_tell(const struct medium *m, uint64_t *number, int64_t *free_bytes, struct err *err)
{
    (void)number;
    (void)free_bytes;
    return fail(m, err);
}

static int fail_each(const struct medium *m, medium_visit *each, void *arg, struct err *err)
{
    (void)each;
    (void)arg;
    return fail(m, err);
}

static void forget(struct medium *m)
{
    free(m->own);
}

static const struct medium_driver medium_absent = {
    .name = "absent",
    .chunk = 1,
    .close = forget,
    .reach = fail,
    .put = fail_to_put,
    .flush = fail_to_flush,
    .get = fail_to_get,
    .look = fail_to_look,
    .remove = fail_to_remove,
    .space = fail_to_tell,
    .each = fail_each,
};

int medium_open_absent(struct medium *m, const struct err *why, struct err *err)
{
    struct err *kept = malloc(sizeof(*kept));

    if (kept)
        *kept = *why;
    m->driver = kept ? &medium_absent : NULL;
    m->own = kept;
    return kept ? 0 : err_nomem(err);
}
