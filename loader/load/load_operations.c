/* load_operations.c - compares the tiers before a load with its goals: which operation each context gets, whether a
 * receipt describes the tiers, and whether there is nothing to do. Reads indexes and receipts only, no payload.
 */
#include "loader/load/load_internal.h"

#include <string.h>

/* ---- the state before ----------------------------------------------------- */

/* Walks the placed payloads of the state before: those of the pending receipt after a killed load, else those that are
 * in the tiers. */
struct walk {
    int store, i;
};

static const struct entry *walk_past(const struct load *l, struct walk *w, int *store)
{
    while (w->i < l->past.in.n) {
        const struct entry *e = &l->past.in.at[w->i++];
        *store = load_store_of(l, &l->past.tiers.at[e->tier]);
        if (*store >= 0)
            return e;
    }
    return NULL;
}

static const struct entry *walk_stores(const struct load *l, struct walk *w, int *store)
{
    for (; w->store < l->n_stores; w->store++, w->i = 0) {
        const struct entries *in = &l->store[w->store].in;
        while (w->i < in->n) {
            const struct entry *e = &in->at[w->i++];
            *store = w->store;
            if (!e->gone && !e->spare)
                return e;
        }
    }
    return NULL;
}

static const struct entry *walk_next(const struct load *l, struct walk *w, int *store)
{
    bool past = l->o.direction == LOAD_FORWARD && l->has_past;

    return past ? walk_past(l, w, store) : walk_stores(l, w, store);
}

int load_map_goals(const struct load *l, struct map *goals, struct err *err)
{
    for (int g = 0; g < l->n_goals; g++)
        if (map_add(goals, l->goal[g].want.id, strlen(l->goal[g].want.id), NULL) != g)
            return err_nomem(err);
    return 0;
}

static int add_evicted(struct load *l, const struct entry *e, int store, struct err *err)
{
    struct entry copy;

    if (entry_copy(&copy, e, err))
        return err->code;
    copy.tier = store;
    return entries_add(&l->evicted, &copy, err);
}

/* A payload that would be kept but lost its file is inserted. */
static void set_operation(const struct load *l, struct load_goal *g, const struct entry *was, int store)
{
    struct cached before = entry_cached(was, l->store[store].tier);
    struct cached after = entry_cached(&g->want, l->store[g->store].tier);

    g->from = store;
    g->operation = operation_between(&before, &after);
    if (g->operation == OP_KEEP && !g->placed)
        g->operation = OP_INSERT;
}

int load_set_operations(struct load *l, struct err *err)
{
    struct walk w = { 0 };
    struct map goals = { 0 };
    const struct entry *was;
    int store;
    int code = load_map_goals(l, &goals, err);

    for (int g = 0; g < l->n_goals; g++) {
        l->goal[g].operation = OP_INSERT;
        l->goal[g].from = -1;
    }
    while (!code && (was = walk_next(l, &w, &store))) {
        int at = map_find(&goals, was->id, strlen(was->id));
        if (at >= 0)
            set_operation(l, &l->goal[at], was, store);
        else
            code = add_evicted(l, was, store, err);
    }
    for (int g = 0; g < l->n_goals; g++)
        l->n_operations[l->goal[g].operation]++;
    l->n_operations[OP_EVICT] = l->evicted.n;
    map_release(&goals);
    return code;
}

/* ---- receipts compared with the tiers ---------------------------------------- */

/* "STORE/FILE"; false without memory. */
static bool add_file_key(struct map *files, int store, const char *file, bool *added)
{
    struct buf key = { 0 };

    buf_printf(&key, "%d/%s", store, file);
    bool done = !buf_failed(&key) && map_add(files, key.at, key.n, added) >= 0;
    buf_release(&key);
    return done;
}

int load_matches_receipt(const struct load *l, const struct receipt *r, bool *matches, struct err *err)
{
    struct map files = { 0 };
    bool stored = true, added = false;

    *matches = true;
    for (int s = 0; s < l->n_stores; s++)
        for (int i = 0; i < l->store[s].in.n; i++)
            if (!l->store[s].in.at[i].gone && !l->store[s].in.at[i].spare)
                stored = stored && add_file_key(&files, s, l->store[s].in.at[i].file, &added);
    int n = files.n, n_placed = 0;
    for (int i = 0; i < r->in.n; i++) {
        int store = load_store_of(l, &r->tiers.at[r->in.at[i].tier]);
        if (store < 0)
            continue;
        n_placed++;
        stored = stored && add_file_key(&files, store, r->in.at[i].file, &added);
        *matches = *matches && !added;
    }
    *matches = *matches && n == n_placed;
    map_release(&files);
    return stored ? 0 : err_nomem(err);
}

/* Is every goal in its place and its index entry right, and nothing but goals and spares in the tiers? */
static bool all_in_place(const struct load *l, const struct steps_file *file)
{
    for (int g = 0; g < l->n_goals; g++)
        if (!l->goal[g].placed)
            return false;
    for (int f = 0; f < l->n_files; f++) {
        const struct entry *e = load_entry(l, f);
        if (e->spare)
            continue;
        if (file[f].goal < 0 || l->goal[file[f].goal].store != l->file[f].store || file[f].bytes != e->bytes)
            return false;
    }
    for (int s = 0; s < l->n_stores; s++)
        if (l->store[s].changed)
            return false;
    return true;
}

int load_set_nothing_to_do(struct load *l, const struct steps_file *file, struct err *err)
{
    struct receipt r;
    bool matches = false;

    if (l->o.direction == LOAD_BACK)
        return 0;
    if (load_read_receipt(l, &r, err))
        return err->code;
    int code = load_matches_receipt(l, &r, &matches, err);
    l->nothing_to_do =
        !code && matches && !l->has_past && strcmp(r.manifest_digest, l->manifest.digest) == 0 && all_in_place(l, file);
    receipt_release(&r);
    return code;
}
