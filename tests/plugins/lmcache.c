/* lmcache.c - a medium in the place of evp-lmcache.so, which nothing of ours knows: values in this process's memory.
 *
 * It has what loader/store/medium.h wants of a medium and nothing more.
 */
#include "loader/store/medium.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct value {
    struct value *next;
    char *bytes;
    int64_t size;
    char key[OBJECT_FILE];
};

struct memory {
    pthread_mutex_t lock;
    struct value *first;
};

static int open_memory(struct medium *m, const struct medium_place *place, struct err *err)
{
    struct memory *own = calloc(1, sizeof(*own));

    (void)place;
    if (!own)
        return err_nomem(err);
    pthread_mutex_init(&own->lock, NULL);
    m->own = own;
    return 0;
}

/* Where the value of a key is linked, or its place at the end. */
static struct value **find(struct memory *own, const char *key)
{
    struct value **at = &own->first;

    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    return at;
}

static void drop(struct value **at)
{
    struct value *v = *at;

    if (!v)
        return;
    *at = v->next;
    free(v->bytes);
    free(v);
}

static void close_memory(struct medium *m)
{
    struct memory *own = m->own;

    while (own->first)
        drop(&own->first);
    pthread_mutex_destroy(&own->lock);
    free(own);
}

static int reach(const struct medium *m, struct err *err)
{
    (void)m;
    (void)err;
    return 0;
}

/* All bytes of `from`, whose size may be known at its end alone. */
static int read_all(struct value *v, const struct blob *from, struct err *err)
{
    enum { STEP = 1 << 20 };

    for (ssize_t n = 1; n > 0; v->size += n) {
        char *more = realloc(v->bytes, (size_t)v->size + STEP);
        if (!more)
            return err_nomem(err);
        v->bytes = more;
        n = blob_next(from, v->bytes + v->size, STEP, (uint64_t)v->size, err);
        if (n < 0)
            return err->code;
    }
    return 0;
}

static int put(const struct medium *m, const char *key, const struct blob *from, struct err *err)
{
    struct memory *own = m->own;
    struct value *v = calloc(1, sizeof(*v));

    if (!v || read_all(v, from, err)) {
        int code = v ? err->code : err_nomem(err);
        drop(&v);
        return code;
    }
    memcpy(v->key, key, strlen(key) + 1);
    pthread_mutex_lock(&own->lock);
    drop(find(own, key));
    v->next = own->first;
    own->first = v;
    pthread_mutex_unlock(&own->lock);
    return 0;
}

static int flush(const struct medium *m, const char *key, struct err *err)
{
    (void)m;
    (void)key;
    (void)err;
    return 0;
}

/* A copy, because an open object needs its medium no longer. */
static int copy(const struct value *v, struct blob *b, struct err *err)
{
    if (!v)
        return MEDIUM_GONE;
    if (v->size != b->size)
        return err_set(err, ERR_FORMAT, "'%s' has another size than was placed", v->key);
    b->own = malloc((size_t)v->size + 1);
    if (!b->own)
        return err_nomem(err);
    memcpy(b->own, v->bytes, (size_t)v->size);
    return 0;
}

static int get(const struct medium *m, const char *key, struct blob *b, struct err *err)
{
    struct memory *own = m->own;

    pthread_mutex_lock(&own->lock);
    int code = copy(*find(own, key), b, err);
    pthread_mutex_unlock(&own->lock);
    return code;
}

static int read_copy(const struct blob *b, void *to, size_t n, uint64_t offset, struct err *err)
{
    (void)err;
    memcpy(to, (const char *)b->own + offset, n);
    return 0;
}

static void release(struct blob *b)
{
    free(b->own);
}

static int look(const struct medium *m, const struct medium_object *object, int n, bool *there, struct err *err)
{
    struct memory *own = m->own;

    (void)err;
    pthread_mutex_lock(&own->lock);
    for (int i = 0; i < n; i++) {
        const struct value *v = *find(own, object[i].key);
        there[i] = v && v->size == object[i].size;
    }
    pthread_mutex_unlock(&own->lock);
    return 0;
}

static int remove_value(const struct medium *m, const struct medium_object *object, struct err *err)
{
    struct memory *own = m->own;

    (void)err;
    pthread_mutex_lock(&own->lock);
    drop(find(own, object->key));
    pthread_mutex_unlock(&own->lock);
    return 0;
}

static int each_value(const struct medium *m, medium_visit *each, void *arg, struct err *err)
{
    const struct memory *own = m->own;
    int code = 0;

    for (const struct value *v = own->first; v && !code; v = v->next)
        code = each(arg, &(struct medium_object){ v->key, v->size }, err);
    return code;
}

static const struct medium_driver memory = {
    .name = "memory",
    .chunk = 1 << 20,
    .open = open_memory,
    .close = close_memory,
    .reach = reach,
    .put = put,
    .flush = flush,
    .get = get,
    .read = read_copy,
    .release = release,
    .look = look,
    .remove = remove_value,
    .each = each_value,
};

const struct medium_plugin MEDIUM_SYMBOL = { MEDIUM_VERSION, &memory };
