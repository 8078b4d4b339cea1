/* load_disks.c - orders the steps of a load (load_order.h), and leaves out goals for which the disks lack space.
 * Simulates the steps one by one, because removals free bytes; tiers on the same disk share its free bytes.
 */
#include "loader/load/load_internal.h"
#include "loader/store/folder.h"

#include <stdlib.h>

/* ---- order -------------------------------------------------------------------------- */

static int say_too_large(const struct load *l, int tier, struct err *err)
{
    const struct load_tier *t = &l->report.tier[tier];

    if (t->other)
        return err_set(err, ERR_FAIL,
                       "tier '%s' cannot hold the plan: its payloads take %lld bytes, but other namespaces have %lld, "
                       "which leaves %lld",
                       t->name, (long long)t->placed, (long long)t->other, (long long)t->capacity);
    return err_set(err, ERR_FAIL, "tier '%s' cannot hold the plan: its payloads take %lld bytes, its capacity is %lld",
                   t->name, (long long)t->placed, (long long)t->capacity);
}

/* While contexts are left out, nothing is evicted whose bytes are not needed. */
static struct order_file file_of(const struct load *l, struct copy *c)
{
    const struct entry *e = load_entry(l, c);
    const struct goal *g = load_goal(l, e->id), *own = c->goal < 0 ? NULL : &l->goal[c->goal];
    bool keep = own && own->here == (int)(c - l->copy), waits = g && !g->left && g->here < 0;

    c->stay = (g ? g->left : l->n_said > 0) && !c->damaged;
    return (struct order_file){ .tier = c->store,
                                .bytes = keep ? own->want.bytes : e->bytes,
                                .goal = waits ? (int)(g - l->goal) : -1,
                                .keep = keep,
                                .stay = c->stay };
}

static void mark_removals(struct load *l)
{
    for (int i = 0; i < l->order.n; i++) {
        const struct step *step = &l->order.at[i];
        if (step_kind(step) != STEP_REMOVE)
            continue;
        l->copy[step->file].goes = true;
        l->report.n_operations[OP_EVICT] += !load_goal(l, load_entry(l, &l->copy[step->file])->id);
    }
}

static int find_order(struct load *l, struct err *err)
{
    struct order_file *file = calloc((size_t)l->n_copies + 1, sizeof(*file));
    struct order_goal *goal = calloc((size_t)l->n_goals + 1, sizeof(*goal));
    int64_t capacity[TIER_MAX];
    int code = file && goal ? 0 : err_nomem(err);

    for (int i = 0; !code && i < l->n_copies; i++)
        file[i] = file_of(l, &l->copy[i]);
    for (int i = 0; !code && i < l->n_goals; i++) {
        const struct goal *g = &l->goal[i];
        goal[i] = (struct order_goal){ g->want.tier, g->left ? 0 : g->want.bytes, g->source, g->left || g->here >= 0 };
    }
    for (int t = 0; t < l->report.n_tiers; t++)
        capacity[t] = l->report.tier[t].capacity;
    if (!code)
        code = order_steps(
            &l->order, &(struct order_given){ capacity, l->report.n_tiers, file, l->n_copies, goal, l->n_goals }, err);
    if (code == ERR_FAIL && l->report.tier[l->order.over_tier].placed > capacity[l->order.over_tier])
        say_too_large(l, l->order.over_tier, err);
    free(file);
    free(goal);
    return code;
}

/* ---- disks ---------------------------------------------------------------------------- */

struct disk {
    uint64_t device;
    int64_t free_bytes;
};

enum { BLOCK = 4096, STATE_BLOCKS = 64 }; // STATE_BLOCKS: for a store's state, its journal and its folders

/* The bytes of disk for a file of n bytes: whole blocks, one more for its name, one for its rows. */
static int64_t bytes_on_disk(int64_t n)
{
    return n > INT64_MAX - 3 * BLOCK ? INT64_MAX : (n / BLOCK + 3) * BLOCK;
}

/* The number of the first store on the same disk. */
static int first_on_disk(const struct disk *disk, int store)
{
    int i = 0;

    while (disk[i].device != disk[store].device)
        i++;
    return i;
}

static int look_at_disk(const struct load *l, int store, struct disk *disk, struct err *err)
{
    const struct medium *m = &l->store[store].medium;
    int code = m->driver && m->driver->space
                   ? m->driver->space(m, &disk->device, &disk->free_bytes, err)
                   : folder_disk(tier_folder(l->store[store].tier), &disk->device, &disk->free_bytes, err);

    disk->free_bytes -= STATE_BLOCKS * BLOCK;
    return code;
}

static void say_full(struct load *l, struct goal *g, int64_t n, int64_t free_bytes)
{
    const struct tier *t = l->store[g->want.tier].tier;
    struct err why;

    err_set(&why, ERR_FAIL, "context '%.80s': tier '%s' needs %lld bytes, %s'%s' has %lld free", g->want.id, t->name,
            (long long)n, tier_is_folder(t) ? "the disk of " : "", t->uri,
            (long long)(free_bytes < 0 ? 0 : free_bytes));
    load_leave_out(l, g, &why);
}

/* Leaves out goals for which a disk would be too full. The files of their contexts stay. */
static void check_disks(struct load *l)
{
    struct disk disk[TIER_MAX] = { 0 };
    struct err why;

    for (int s = 0; s < l->report.n_tiers; s++)
        if (load_serves(l, s) && look_at_disk(l, s, &disk[s], &why))
            load_give_up(l, s, &why);
    for (int i = 0; i < l->order.n; i++) {
        const struct step *step = &l->order.at[i];
        bool place = step_kind(step) == STEP_PLACE;
        const struct entry *e = place ? &l->goal[step->goal].want : load_entry(l, &l->copy[step->file]);
        const struct goal *g = load_goal(l, e->id);
        int store = place ? e->tier : l->copy[step->file].store;
        int64_t n = bytes_on_disk(e->size);
        int64_t *free_bytes = &disk[first_on_disk(disk, store)].free_bytes;
        if (!load_serves(l, store) || (g && g->left && (place || !l->copy[step->file].stay)))
            continue;
        if (place && n > *free_bytes)
            say_full(l, &l->goal[step->goal], n, *free_bytes);
        else
            *free_bytes += place ? -n : *free_bytes > INT64_MAX - n ? 0 : n;
    }
}

int load_put_in_order(struct load *l, struct err *err)
{
    if (find_order(l, err))
        return err->code;
    mark_removals(l);
    check_disks(l);
    return 0;
}
