/* tier_publish.c - derives the index from a store's rows. The new index has the old records, except those of changed
 * rows, plus the new records of these rows. If the old index is not the state's, all rows are read instead.
 */
#include "base/array.h"
#include "base/map.h"
#include "loader/store/tier_store.h"

#include <stdlib.h>
#include <string.h>

struct records {
    struct index_record *at;
    size_t n, cap;
    struct map name_spaces, configs; // numbered as in the index
};

static void records_release(struct records *r)
{
    free(r->at);
    map_release(&r->name_spaces);
    map_release(&r->configs);
}

static int by_order(const void *a, const void *b)
{
    return index_compare(a, b);
}

/* Sorts, and removes duplicates. */
static void records_sort(struct records *r)
{
    size_t n = 0;

    if (r->n) // without records `at` may be NULL
        qsort(r->at, r->n, sizeof(*r->at), by_order);
    for (size_t i = 0; i < r->n; i++)
        if (!n || index_compare(&r->at[n - 1], &r->at[i]) != 0)
            r->at[n++] = r->at[i];
    r->n = n;
}

/* ---- from rows to records ------------------------------------------------------------ */

/* Adds the records of an entry's parts: copies of its own record, except these fields. */
static int add_parts(struct records *list, const struct entry *e, const struct state_parts *parts, struct err *err)
{
    const struct index_whole whole = { (uint32_t)e->n_tokens, parts->header };
    struct index_record r = list->at[list->n - 1];

    memcpy(&r.checksum, &whole, sizeof(r.checksum));
    for (int i = 0; i < parts->n; i++) {
        index_key_set_part(&r.key, parts->digest[i]);
        r.n_tokens = (uint32_t)(i + 1) * DIGEST_CHUNK;
        if (ARRAY_PUSH(list, r))
            return err_nomem(err);
    }
    return 0;
}

/* Adds the record of an entry, without its parts. */
static int add_record(struct records *list, const char *name_space, const struct entry *e, struct err *err)
{
    int space = map_add(&list->name_spaces, name_space, strlen(name_space), NULL);
    int config = map_add(&list->configs, e->config, strlen(e->config), NULL);
    struct index_record r = { .n_tokens = (uint32_t)e->n_tokens,
                              .size = (uint64_t)e->size,
                              .checksum = strtoull(e->checksum, NULL, 16),
                              .config = (uint16_t)config,
                              .order = (uint32_t)e->row };

    if (space < 0 || config < 0)
        return err_nomem(err);
    if (e->row > UINT32_MAX)
        return err_set(err, ERR_FAIL, "an index can number at most 2^32 payloads");
    if (space >= INDEX_TEXTS || config >= INDEX_TEXTS)
        return err_set(err, ERR_FAIL, "an index has at most %d namespaces and configs", INDEX_TEXTS);
    if (!object_parse(e->file, r.object))
        return err_set(err, ERR_FORMAT, "'%.100s' is not the name of a stored payload", e->file);
    index_key_set(&r.key, e->prefix, e->token_digest, e->n_tokens);
    index_key_in(&r.key, space);
    return ARRAY_PUSH(list, r) ? err_nomem(err) : 0;
}

/* Adds the records of an entry. */
static int add_entry(struct records *list, struct tier_state *state, const char *name_space, const struct entry *e,
                     struct err *err)
{
    struct state_parts parts;

    if (add_record(list, name_space, e, err) || state_get_parts(state, e, &parts, err) < 0)
        return err->code;
    int code = add_parts(list, e, &parts, err);
    state_parts_release(&parts);
    return code;
}

/* ---- all rows -------------------------------------------------------------------------- */

struct all {
    struct records *list;
    struct tier_state *state;
};

static int add_row(void *arg, const char *name_space, struct entry *e, struct err *err)
{
    const struct all *all = arg;

    return add_entry(all->list, all->state, name_space, e, err);
}

static int list_all(struct records *list, const struct tier_store *s, struct err *err)
{
    struct all all = { list, s->state };

    if (state_each(s->state, add_row, &all, err))
        return err->code;
    records_sort(list);
    return 0;
}

/* ---- rows that changed -------------------------------------------------------------------- */

int tier_store_touch(struct tier_store *s, int entry, struct err *err)
{
    const struct tier_touched touched = { s->in.at[entry].row, entry };

    return ARRAY_PUSH(&s->touched, touched) ? err_nomem(err) : 0;
}

static int by_row(const void *a, const void *b)
{
    const struct tier_touched *x = a, *y = b;

    return x->row != y->row ? (x->row > y->row) - (x->row < y->row) : (x->entry > y->entry) - (x->entry < y->entry);
}

/* Was the row of a record touched? */
static bool is_touched(const struct tier_store *s, const struct index_record *r)
{
    size_t low = 0, high = s->touched.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->touched.at[middle].row < r->order)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->touched.n && s->touched.at[low].row == r->order;
}

/* Numbers the texts of an index as in the index. */
static int number_texts(struct map *m, const struct index_text *text, int n, struct err *err)
{
    for (int i = 0; i < n; i++)
        if (map_add(m, text[i].at, strlen(text[i].at), NULL) != i)
            return err_set(err, ERR_FORMAT, "'evp-index' is damaged (a text comes twice)");
    return 0;
}

/* Adds the new records of the touched rows; a deleted row's number may now belong to another payload. */
static int list_touched(struct records *list, struct tier_store *s, struct err *err)
{
    const struct tier_touched *t = s->touched.at;
    int code = 0;

    if (s->touched.n > 0)
        qsort(s->touched.at, s->touched.n, sizeof(*s->touched.at), by_row);
    for (size_t i = 0; i < s->touched.n && !code; i++)
        if ((!i || by_row(&t[i - 1], &t[i]) != 0) && s->in.at[t[i].entry].row == t[i].row)
            code = add_entry(list, s->state, s->name_space, &s->in.at[t[i].entry], err);
    records_sort(list);
    return code;
}

/* Merges the index's records of untouched rows into the sorted list. */
static int merge(struct records *list, const struct tier_store *s, struct err *err)
{
    struct index_record *all = malloc((s->index.n + list->n + 1) * sizeof(*all));
    size_t n = 0, next = 0;

    if (!all)
        return err_nomem(err);
    for (size_t i = 0; i < s->index.n; i++) {
        const struct index_record *r = &s->index.record[i];
        if (is_touched(s, r))
            continue;
        while (next < list->n && index_compare(&list->at[next], r) < 0)
            all[n++] = list->at[next++];
        all[n++] = *r;
    }
    while (next < list->n)
        all[n++] = list->at[next++];
    free(list->at);
    list->at = all;
    list->n = list->cap = n;
    return 0;
}

static int list_changed(struct records *list, struct tier_store *s, struct err *err)
{
    const struct index *ix = &s->index;

    return number_texts(&list->name_spaces, ix->name_space, ix->n_name_spaces, err) ||
                   number_texts(&list->configs, ix->config, ix->n_configs, err) || list_touched(list, s, err) ||
                   merge(list, s, err)
               ? err->code
               : 0;
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

static int write_index(struct tier_store *s, const struct records *list, struct err *err)
{
    const char **spaces = keys_of(&list->name_spaces), **configs = keys_of(&list->configs);
    struct index_made made = { .generation = state_generation(s->state),
                               .name_space = spaces,
                               .n_name_spaces = list->name_spaces.n,
                               .config = configs,
                               .n_configs = list->configs.n,
                               .record = list->at,
                               .n = list->n };
    struct index written;
    int code = spaces && configs ? 0 : err_nomem(err);

    memcpy(made.store, state_id(s->state), sizeof(made.store));
    if (!code)
        code = index_write(&written, s->folder, &made, err);
    free(spaces);
    free(configs);
    if (code)
        return code;
    index_close(&s->index);
    s->index = written;
    s->touched.n = 0;
    return 0;
}

int tier_store_publish(struct tier_store *s, struct err *err)
{
    struct records list = { 0 };

    if (index_is_of(&s->index, state_id(s->state), state_generation(s->state)))
        return 0;
    int code = index_store(&s->index) ? list_changed(&list, s, err) : ERR_FORMAT;
    if (code == ERR_FORMAT) {
        records_release(&list);
        list = (struct records){ 0 };
        code = list_all(&list, s, err);
    }
    if (!code)
        code = write_index(s, &list, err);
    records_release(&list);
    return code;
}
