/* tier_news.c - what of a store its index on disk does not say yet, and writing it there. The index is changed by the
 * rows that changed; only where it is not that of the state it is made from all rows.
 */
#include "loader/store/tier_news.h"

#include "base/array.h"
#include "base/map.h"
#include "loader/index/index.h"

#include <stdlib.h>
#include <string.h>

struct records {
    struct index_record *at;
    size_t n, cap;
    struct map name_spaces, configs; // numbered as in the index
};

/* A row that changed. One that was deleted may come again for another payload. */
struct touched {
    int entry; // number in s->in
    int64_t row;
    struct state_parts gone; // that the index may have of the row, and the state has no longer
};

struct tier_store_news {
    struct touched *at;
    size_t n, cap;
    struct records placed; // of entries that are not in s->in; numbered on their own
};

/* ---- records --------------------------------------------------------------------- */

static void records_release(struct records *r)
{
    free(r->at);
    map_release(&r->name_spaces);
    map_release(&r->configs);
}

/* Adds the records of an entry's parts, which are like its own record but for this. */
static int add_parts(struct records *list, const struct index_record *own, const struct entry *e,
                     const struct state_parts *parts, struct err *err)
{
    const struct index_whole whole = { (uint32_t)e->n_tokens, parts->header };
    struct index_record r = *own;

    memcpy(&r.checksum, &whole, sizeof(r.checksum));
    for (int i = 0; i < parts->n; i++) {
        index_key_set_part(&r.key, parts->digest[i]);
        r.n_tokens = (uint32_t)(i + 1) * DIGEST_CHUNK;
        if (ARRAY_PUSH(list, r))
            return err_nomem(err);
    }
    return 0;
}

static int too_many_texts(struct err *err)
{
    return err_set(err, ERR_FAIL, "an index has at most %d namespaces and configs", INDEX_TEXTS);
}

/* What is added to a list: the records of an entry, whose row may be gone meanwhile. */
struct added {
    const char *name_space;
    const struct entry *e;
    int64_t row;
    const struct state_parts *gone; // parts to say that they are gone; NULL: none
};

/* Adds the record of an entry alone; a row that is not the entry's any longer is gone. */
static int add_record(struct records *list, const struct added *added, struct err *err)
{
    const struct entry *e = added->e;
    int space = map_add(&list->name_spaces, added->name_space, strlen(added->name_space), NULL);
    int config = map_add(&list->configs, e->config, strlen(e->config), NULL);
    bool placed = e->present && e->placed && e->row == added->row;
    struct index_record r = { .n_tokens = (uint32_t)e->n_tokens,
                              .size = (uint64_t)e->size,
                              .checksum = strtoull(e->checksum, NULL, 16),
                              .config = (uint16_t)config,
                              .flags = placed ? 0 : INDEX_GONE,
                              .order = (uint32_t)added->row };

    if (space < 0 || config < 0)
        return err_nomem(err);
    if (space >= INDEX_TEXTS || config >= INDEX_TEXTS)
        return too_many_texts(err);
    if (!object_parse(e->file, r.object))
        return err_set(err, ERR_FORMAT, "'%.100s' is not the name of a placed payload", e->file);
    index_key_set(&r.key, e->prefix, e->token_digest, e->n_tokens);
    index_key_in(&r.key, space);
    return ARRAY_PUSH(list, r) ? err_nomem(err) : 0;
}

/* Adds the record of an entry and those of its parts. */
static int add_records(struct records *list, struct tier_state *state, const struct added *added, struct err *err)
{
    const struct entry *e = added->e;
    struct state_parts parts = { 0 };

    if (add_record(list, added, err) || (e->row == added->row && state_get_parts(state, e, &parts, err) < 0))
        return err->code;
    struct index_record r = list->at[list->n - 1];
    int code = add_parts(list, &r, e, &parts, err);
    state_parts_release(&parts);
    r.flags = INDEX_GONE;
    return code || !added->gone ? code : add_parts(list, &r, e, added->gone, err);
}

/* Who lists what is placed. */
struct placed {
    struct records list;
    struct tier_state *state;
};

static int add_placed(void *arg, const char *name_space, struct entry *e, struct err *err)
{
    struct placed *p = arg;
    const struct added added = { name_space, e, e->row, NULL };

    return e->present && e->placed ? add_records(&p->list, p->state, &added, err) : 0;
}

/* ---- the index ------------------------------------------------------------------------ */

/* The keys of a map as a list; NULL without memory. */
static const char **keys_of(const struct map *m)
{
    const char **key = calloc((size_t)m->n + 1, sizeof(*key));

    for (int i = 0; key && i < m->n; i++)
        key[i] = m->at[i].key;
    return key;
}

/* Writes all records (old NULL), or those that changed. */
static int write_index(struct tier_store *s, const struct records *list, const struct index *old, struct err *err)
{
    const char **spaces = keys_of(&list->name_spaces), **configs = keys_of(&list->configs);
    struct index_made made = { .generation = state_generation(s->state),
                               .name_space = spaces,
                               .n_name_spaces = list->name_spaces.n,
                               .config = configs,
                               .n_configs = list->configs.n,
                               .record = list->at,
                               .n = list->n };
    int code = spaces && configs ? 0 : err_nomem(err);

    memcpy(made.store, state_id(s->state), sizeof(made.store));
    if (!code)
        code = old ? index_change(s->folder, old, &made, err) : index_write(s->folder, &made, err);
    free(spaces);
    free(configs);
    return code;
}

static int write_all(struct tier_store *s, struct err *err)
{
    struct placed p = { .state = s->state };
    int code = state_each(s->state, add_placed, &p, err) ? err->code : write_index(s, &p.list, NULL, err);

    records_release(&p.list);
    return code;
}

/* Gives the texts of an index the numbers that they have there. */
static int number_texts(struct map *m, const struct index_text *text, int n, struct err *err)
{
    for (int i = 0; i < n; i++) {
        bool added;
        if (map_add(m, text[i].at, strlen(text[i].at), &added) < 0)
            return err_nomem(err);
        if (!added)
            return err_set(err, ERR_FORMAT, "'evp-index' is damaged (a text comes twice)");
    }
    return 0;
}

/* Gives the list, which is empty, the records of what was placed. */
static int take_placed(struct records *list, const char *name_space, struct records *placed, struct err *err)
{
    int space = map_add(&list->name_spaces, name_space, strlen(name_space), NULL);

    list->at = placed->at;
    list->n = placed->n;
    list->cap = placed->cap;
    placed->at = NULL;
    placed->n = placed->cap = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct map_entry *text = &placed->configs.at[list->at[i].config];
        int config = map_add(&list->configs, text->key, text->n, NULL);
        if (space < 0 || config < 0)
            return err_nomem(err);
        if (space >= INDEX_TEXTS || config >= INDEX_TEXTS)
            return too_many_texts(err);
        index_key_in(&list->at[i].key, space);
        list->at[i].config = (uint16_t)config;
    }
    return 0;
}

static int write_changes(struct tier_store *s, const struct index *old, struct err *err)
{
    struct records list = { 0 };
    int code = number_texts(&list.name_spaces, old->name_space, old->n_name_spaces, err) ||
                       number_texts(&list.configs, old->config, old->n_configs, err) ||
                       take_placed(&list, s->name_space, &s->news->placed, err)
                   ? err->code
                   : 0;

    for (size_t i = 0; i < s->news->n && !code; i++) {
        const struct touched *t = &s->news->at[i];
        const struct added added = { s->name_space, &s->in.at[t->entry], t->row, &t->gone };
        code = add_records(&list, s->state, &added, err);
    }
    if (!code)
        code = write_index(s, &list, old, err);
    records_release(&list);
    return code;
}

/* ERR_FORMAT: the index on disk is damaged, or not what was written last. */
static int change_index(struct tier_store *s, struct err *err)
{
    struct index ix;
    int code = index_open(&ix, s->folder, err);

    if (!code)
        code = index_is_of(&ix, state_id(s->state), s->published)
                   ? write_changes(s, &ix, err)
                   : err_set(err, ERR_FORMAT, "'evp-index' is not that of the state");
    index_close(&ix);
    return code;
}

static void forget(struct tier_store_news *news)
{
    for (size_t i = 0; i < news->n; i++)
        state_parts_release(&news->at[i].gone);
    news->n = news->placed.n = 0;
}

int tier_store_publish(struct tier_store *s, struct err *err)
{
    if (s->published == state_generation(s->state))
        return 0;
    int code = s->published == (uint64_t)TIER_UNPUBLISHED ? ERR_FORMAT : change_index(s, err);
    s->published = (uint64_t)TIER_UNPUBLISHED; /* after a failure, too: the records of what was placed are gone */
    if (code == ERR_FORMAT)
        code = write_all(s, err);
    if (!code) {
        s->published = state_generation(s->state);
        forget(s->news);
    }
    return code;
}

/* ---- what is new ------------------------------------------------------------------- */

int tier_news_open(struct tier_store *s, struct err *err)
{
    s->news = calloc(1, sizeof(*s->news));
    return s->news ? 0 : err_nomem(err);
}

void tier_news_close(struct tier_store *s)
{
    if (!s->news)
        return;
    forget(s->news);
    free(s->news->at);
    records_release(&s->news->placed);
    free(s->news);
    s->news = NULL;
}

int tier_news_touch(struct tier_store *s, int entry, struct state_parts *gone, struct err *err)
{
    struct touched t = { entry, s->in.at[entry].row, gone ? *gone : (struct state_parts){ 0 } };

    if (!ARRAY_PUSH(s->news, t))
        return 0;
    state_parts_release(&t.gone);
    return err_nomem(err);
}

int tier_news_place(struct tier_store *s, const struct entry *e, struct err *err)
{
    const struct added added = { s->name_space, e, e->row, NULL };

    return add_record(&s->news->placed, &added, err);
}
