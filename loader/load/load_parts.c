/* load_parts.c - after a load: adds the parts of contexts to the indexes, or removes them, as the options say. A
 * rollback does not undo this; if the load is killed before, the next one does it.
 */
#include "loader/load/load_internal.h"

static enum tier_store_parts wanted(const struct load *l)
{
    return l->o.chunks ? STORE_PARTS : STORE_WHOLE;
}

int load_count_parts(struct load *l, struct err *err)
{
    int64_t n;

    l->report.n_parts = 0;
    for (int s = 0; s < l->report.n_tiers && l->o.direction == LOAD_FORWARD; s++) {
        if (!l->store[s].state)
            continue;
        if (tier_store_other_parts(&l->store[s], wanted(l), &n, err))
            return err->code;
        l->report.n_parts += (int)n;
    }
    return 0;
}

int load_set_parts(struct load *l, struct err *err)
{
    if (load_count_parts(l, err))
        return err->code;
    for (int s = 0; s < l->report.n_tiers && l->o.direction == LOAD_FORWARD; s++)
        if (l->store[s].tier && tier_store_set_parts(&l->store[s], wanted(l), err))
            return err_wrap(err,
                            "all payloads are in place, but the parts of contexts in the index are not up to date");
    return 0;
}
