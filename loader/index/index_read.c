/* index_read.c - an index opened and searched: its base and the delta above it as if they were one. */
#include "loader/index/index_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- opening ------------------------------------------------------------------ */

/* Numbers of namespaces and configs mean in the base what they mean in the delta. */
static bool texts_agree(const struct index_file *top, const struct index_file *base)
{
    const struct index_header *t = &top->header, *b = &base->header;

    return b->n_name_spaces <= t->n_name_spaces && b->n_configs <= t->n_configs &&
           memcmp(top->name_space, base->name_space, b->n_name_spaces * sizeof(*top->name_space)) == 0 &&
           memcmp(top->config, base->config, b->n_configs * sizeof(*top->config)) == 0;
}

static int check_pair(const struct index_file *top, const struct index_file *base, struct err *err)
{
    const struct index_header *t = &top->header, *b = &base->header;

    if (b->checksum != t->base || b->base || memcmp(t->store, b->store, sizeof(t->store)) != 0)
        return index_damaged(err, "its base is another one");
    if (!texts_agree(top, base))
        return index_damaged(err, "a text of its base");
    if (t->n_gone > t->n_records || t->n_gone > b->n_records)
        return index_damaged(err, "the records that are gone");
    return 0;
}

/* A writer that merges base and delta removes the base after it has put another delta in place: whoever opened the old
 * one opens the new one, then. */
static int open_files(struct index *ix, int folder, struct err *err)
{
    char name[INDEX_BASE_NAME];
    uint64_t before = 0;

    for (;;) {
        if (index_file_open(&ix->top, folder, "evp-index", err))
            return err->code;
        if (!ix->top || !ix->top->header.base)
            return 0;
        index_base_name(ix->top->header.base, name);
        if (index_file_open(&ix->base, folder, name, err))
            return err->code;
        if (ix->base)
            return check_pair(ix->top, ix->base, err);
        if (ix->top->header.checksum == before)
            return index_damaged(err, "its base is missing");
        before = ix->top->header.checksum;
        index_close(ix);
    }
}

int index_open(struct index *ix, int folder, struct err *err)
{
    *ix = (struct index){ 0 };
    if (open_files(ix, folder, err))
        return err->code;
    if (!ix->top)
        return 0;
    ix->name_space = ix->top->name_space;
    ix->config = ix->top->config;
    ix->n_name_spaces = (int)ix->top->header.n_name_spaces;
    ix->n_configs = (int)ix->top->header.n_configs;
    ix->n = ix->top->n;
    if (ix->base)
        ix->n += ix->base->n - 2 * (size_t)ix->top->header.n_gone;
    ix->n_parts = ix->top->header.n_parts;
    return ix->n_parts <= ix->n ? 0 : index_damaged(err, "the number of its parts");
}

void index_close(struct index *ix)
{
    index_file_close(ix->top);
    index_file_close(ix->base);
    *ix = (struct index){ 0 };
}

const uint8_t *index_store(const struct index *ix)
{
    return ix->top ? ix->top->header.store : NULL;
}

bool index_is_of(const struct index *ix, const uint8_t store[INDEX_ID], uint64_t generation)
{
    return ix->top && memcmp(ix->top->header.store, store, INDEX_ID) == 0 && ix->top->header.generation == generation;
}

/* ---- searching ------------------------------------------------------------------ */

int index_name_space(const struct index *ix, const char *name)
{
    for (int i = 0; i < ix->n_name_spaces; i++)
        if (strcmp(ix->name_space[i].at, name) == 0)
            return i;
    return -1;
}

bool index_may_have(const struct index *ix, const struct index_key *key)
{
    return (ix->top && index_file_may_have(ix->top, key)) || (ix->base && index_file_may_have(ix->base, key));
}

int index_seek(const struct index *ix, const struct index_key *key, struct index_record *record, struct err *err)
{
    struct index_cursor above, below;

    index_cursor_file(&above, ix->top);
    index_cursor_file(&below, ix->base);
    if (index_cursor_seek(&above, key, err) || index_cursor_seek(&below, key, err))
        return err->code;
    return index_merge_next(&above, &below, record, err);
}

int index_seek_object(const struct index *ix, const struct index_key *key, const uint8_t object[INDEX_ID],
                      struct index_record *record, struct err *err)
{
    struct index_cursor above, below;
    int got;

    index_cursor_file(&above, ix->top);
    index_cursor_file(&below, ix->base);
    if (index_cursor_seek(&above, key, err) || index_cursor_seek(&below, key, err))
        return err->code;
    while ((got = index_merge_next(&above, &below, record, err)) == 1 && memcmp(&record->key, key, sizeof(*key)) == 0)
        if (memcmp(record->object, object, INDEX_ID) == 0)
            return 1;
    return got < 0 ? got : 0;
}

/* ---- walking and checking ---------------------------------------------------------- */

struct index_walk {
    struct index_cursor above, below;
};

struct index_walk *index_walk_new(const struct index *ix, struct err *err)
{
    struct index_walk *w = malloc(sizeof(*w));

    if (!w) {
        err_nomem(err);
        return NULL;
    }
    index_cursor_file(&w->above, ix->top);
    index_cursor_file(&w->below, ix->base);
    return w;
}

int index_walk_next(struct index_walk *w, struct index_record *record, struct err *err)
{
    return index_merge_next(&w->above, &w->below, record, err);
}

void index_walk_free(struct index_walk *w)
{
    free(w);
}

static int count_gone(const struct index_file *top, size_t *n, struct err *err)
{
    struct index_cursor c;
    const struct index_record *r;
    int got;

    *n = 0;
    index_cursor_file(&c, top);
    while ((got = index_cursor_peek(&c, &r, err)) == 1) {
        *n += index_gone(r);
        c.at++;
    }
    return got;
}

/* Does the delta remove what the base has, and add what it lacks? */
static int check_count(const struct index *ix, struct err *err)
{
    struct index_walk *w = index_walk_new(ix, err);
    struct index_record record;
    size_t n = 0, n_parts = 0, n_gone;
    int got = w ? 1 : err->code;

    while (got == 1) {
        got = index_walk_next(w, &record, err);
        n += got == 1;
        n_parts += got == 1 && index_is_part(&record.key);
    }
    index_walk_free(w);
    if (got < 0 || count_gone(ix->top, &n_gone, err))
        return err->code;
    return n == ix->n && n_parts == ix->n_parts && n_gone == ix->top->header.n_gone
               ? 0
               : index_damaged(err, "the number of its records");
}

int index_check(const struct index *ix, struct err *err)
{
    if (!ix->top)
        return 0;
    if (index_file_check(ix->top, err) || (ix->base && index_file_check(ix->base, err)))
        return err->code;
    return check_count(ix, err);
}
