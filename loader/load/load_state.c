/* load_state.c - what a load finds, compared with what it leads to: operations, no-ops, room on the disks. */
#include "loader/load/load_internal.h"

#include <string.h>

/* ---- the state before ----------------------------------------------------- */

/* Walks the placed payloads of the state before: that of a receipt when a load was killed, else what lies there. */
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

static int note_evicted(struct load *l, const struct entry *e, int store, struct err *err)
{
    struct entry copy;

    if (entry_copy(&copy, e, err))
        return err->code;
    copy.tier = store;
    return entries_add(&l->evicted, &copy, err);
}

static void name_operation(struct load_goal *g, const struct entry *was, int store)
{
    g->from = store;
    if (!entry_same(was, &g->want))
        g->operation = OP_RECOMPRESS;
    else if (store != g->store)
        g->operation = OP_MOVE;
    else
        g->operation = g->placed ? OP_KEEP : OP_INSERT;
}

int load_name_operations(struct load *l, struct err *err)
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
            name_operation(&l->goal[at], was, store);
        else
            code = note_evicted(l, was, store, err);
    }
    for (int g = 0; g < l->n_goals; g++)
        l->n_operations[l->goal[g].operation]++;
    l->n_operations[OP_EVICT] = l->evicted.n;
    map_release(&goals);
    return code;
}

/* ---- receipts against what lies there -------------------------------------- */

static bool add_place(struct map *places, int store, const char *file, bool *added)
{
    struct buf key = { 0 };

    buf_printf(&key, "%d/%s", store, file);
    bool done = !buf_failed(&key) && map_add(places, key.at, key.n, added) >= 0;
    buf_release(&key);
    return done;
}

int load_is_told_by(const struct load *l, const struct receipt *r, bool *told, struct err *err)
{
    struct map places = { 0 };
    bool known = true, added = false;

    *told = true;
    for (int s = 0; s < l->n_stores; s++)
        for (int i = 0; i < l->store[s].in.n; i++)
            if (!l->store[s].in.at[i].gone && !l->store[s].in.at[i].spare)
                known = known && add_place(&places, s, l->store[s].in.at[i].file, &added);
    int n = places.n, n_placed = 0;
    for (int i = 0; i < r->in.n; i++) {
        int store = load_store_of(l, &r->tiers.at[r->in.at[i].tier]);
        if (store < 0)
            continue;
        n_placed++;
        known = known && add_place(&places, store, r->in.at[i].file, &added);
        *told = *told && !added;
    }
    *told = *told && n == n_placed;
    map_release(&places);
    return known ? 0 : err_nomem(err);
}

/* Is every file a goal in its place, and every goal's index entry right? */
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

int load_ask_nothing_to_do(struct load *l, const struct steps_file *file, struct err *err)
{
    struct receipt r;
    bool told = false;

    if (l->o.direction == LOAD_BACK)
        return 0;
    if (load_read_receipt(l, &r, err))
        return err->code;
    int code = load_is_told_by(l, &r, &told, err);
    l->nothing_to_do =
        !code && told && !l->has_past && strcmp(r.manifest_digest, l->manifest.digest) == 0 && all_in_place(l, file);
    receipt_release(&r);
    return code;
}

/* ---- room ----------------------------------------------------------------- */

struct disk {
    uint64_t device;
    int64_t room;
};

/* What a file of n bytes takes of a disk: whole blocks, and something for its name. */
static int64_t on_disk(int64_t n)
{
    enum { BLOCK = 4096 };

    return n > INT64_MAX - 2 * BLOCK ? INT64_MAX : (n / BLOCK + 2) * BLOCK;
}

/* Two tiers may share a disk: the number of the first store on the same one. */
static int first_on_disk(const struct disk *disk, int store)
{
    int i = 0;

    while (disk[i].device != disk[store].device)
        i++;
    return i;
}

int load_check_disks(const struct load *l, struct err *err)
{
    struct disk disk[TIER_MAX] = { 0 };

    for (int s = 0; s < l->n_stores; s++)
        if (l->store[s].tier && tier_store_disk(&l->store[s], &disk[s].device, &disk[s].room, err))
            return err->code;
    for (int i = 0; i < l->steps.n; i++) {
        const struct step *step = &l->steps.at[i];
        if (step->kind == STEP_STAGE)
            continue;
        bool place = step->kind == STEP_PLACE;
        int store = place ? l->goal[step->goal].store : l->file[step->file].store;
        int64_t n = on_disk(place ? l->goal[step->goal].want.size : load_entry(l, step->file)->size);
        int64_t *room = &disk[first_on_disk(disk, store)].room;
        if (place && n > *room)
            return err_set(err, ERR_FAIL, "tier '%s': the disk of '%s' has no room for context '%.80s' (%lld bytes)",
                           l->store[store].tier->name, l->store[store].tier->uri, l->goal[step->goal].want.id,
                           (long long)l->goal[step->goal].want.size);
        *room += place ? -n : *room > INT64_MAX - n ? 0 : n;
    }
    return 0;
}
