/* load_disks.c - orders the steps of a load (load_order.h), and checks that the disks of the tiers have space for them.
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

static struct order_file file_of(const struct load *l, const struct copy *c)
{
    const struct entry *e = load_entry(l, c);
    const struct entry *want = c->goal < 0 ? NULL : &l->goal[c->goal].want;

    return (struct order_file){ .tier = c->store,
                                .bytes = want ? want->bytes : e->bytes,
                                .keep = want && want->tier == c->store,
                                .spare = !e->placed && !load_was_placed(l, &l->store[c->store], e),
                                .packed = c->packed };
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
        goal[i] = (struct order_goal){ g->want.tier, g->want.bytes, g->source, g->here >= 0 };
    }
    for (int t = 0; t < l->report.n_tiers; t++)
        capacity[t] = l->report.tier[t].capacity;
    if (!code)
        code = order_steps(&l->order,
                           &(struct order_given){ capacity, l->report.n_tiers, file, l->n_copies, goal, l->n_goals,
                                                  l->o.direction == LOAD_BACK },
                           err);
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

static int look_at_disks(const struct load *l, struct disk disk[TIER_MAX], struct err *err)
{
    for (int s = 0; s < l->report.n_tiers; s++) {
        const struct medium *m = &l->store[s].medium;
        if (!l->store[s].tier)
            continue;
        int code = m->driver && m->driver->space
                       ? m->driver->space(m, &disk[s].device, &disk[s].free_bytes, err)
                       : folder_disk(tier_folder(l->store[s].tier), &disk[s].device, &disk[s].free_bytes, err);
        if (code)
            return err_wrap(err, "tier '%s'", l->store[s].tier->name);
        disk[s].free_bytes -= STATE_BLOCKS * BLOCK;
    }
    return 0;
}

static int check_disks(const struct load *l, struct err *err)
{
    struct disk disk[TIER_MAX] = { 0 };

    if (look_at_disks(l, disk, err))
        return err->code;
    for (int i = 0; i < l->order.n; i++) {
        const struct step *step = &l->order.at[i];
        bool place = step_kind(step) == STEP_PLACE;
        const struct entry *want = place ? &l->goal[step->goal].want : NULL;
        int store = place ? want->tier : l->copy[step->file].store;
        int64_t n = bytes_on_disk(place ? want->size : load_entry(l, &l->copy[step->file])->size);
        int64_t *free_bytes = &disk[first_on_disk(disk, store)].free_bytes;
        if (place && n > *free_bytes)
            return err_set(err, ERR_FAIL, "tier '%s': context '%.80s' needs %lld bytes, %s'%s' has %lld free",
                           l->store[store].tier->name, want->id, (long long)n,
                           tier_is_folder(l->store[store].tier) ? "the disk of " : "", l->store[store].tier->uri,
                           (long long)(*free_bytes < 0 ? 0 : *free_bytes));
        *free_bytes += place ? -n : *free_bytes > INT64_MAX - n ? 0 : n;
    }
    return 0;
}

int load_put_in_order(struct load *l, struct err *err)
{
    return find_order(l, err) ? err->code : check_disks(l, err);
}
