/* load_disk.c - whether the disks of the tiers can take the files of a load. Follows the steps one by one, because
 * removals give bytes back; tiers on the same disk share its free bytes. Files staged in the payload folder are not
 * counted: a full disk there fails while they are copied.
 */
#include "loader/load/load_internal.h"

struct disk {
    uint64_t device;
    int64_t free_bytes;
};

/* The bytes that a file of n bytes takes on a disk: whole blocks, and one block for its name. */
static int64_t bytes_on_disk(int64_t n)
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
        if (l->store[s].tier && tier_store_disk(&l->store[s], &disk[s].device, &disk[s].free_bytes, err))
            return err->code;
    for (int i = 0; i < l->steps.n; i++) {
        const struct step *step = &l->steps.at[i];
        if (step->kind == STEP_STAGE)
            continue;
        bool place = step->kind == STEP_PLACE;
        int store = place ? l->goal[step->goal].store : l->file[step->file].store;
        int64_t n = bytes_on_disk(place ? l->goal[step->goal].want.size : load_entry(l, step->file)->size);
        int64_t *free_bytes = &disk[first_on_disk(disk, store)].free_bytes;
        if (place && n > *free_bytes)
            return err_set(err, ERR_FAIL, "tier '%s': context '%.80s' needs %lld bytes, the disk of '%s' has %lld free",
                           l->store[store].tier->name, l->goal[step->goal].want.id, (long long)n,
                           l->store[store].tier->uri, (long long)*free_bytes);
        *free_bytes += place ? -n : *free_bytes > INT64_MAX - n ? 0 : n;
    }
    return 0;
}
