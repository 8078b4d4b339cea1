/* load_parts.c - after a load: adds the parts of contexts to the indexes, or removes them, as the options say. If the
 * load is killed before, the next one does it.
 */
#include "loader/load/load_internal.h"

static enum tier_store_parts wanted(const struct load *l)
{
    return l->o.chunks ? STORE_PARTS : STORE_WHOLE;
}

void load_count_parts(struct load *l)
{
    struct err why;
    int64_t n;

    l->report.n_parts = 0;
    for (int s = 0; s < l->report.n_tiers; s++) {
        if (!load_serves(l, s) || !l->store[s].state)
            continue;
        if (tier_store_other_parts(&l->store[s], wanted(l), &n, &why))
            load_give_up(l, s, &why);
        else
            l->report.n_parts += (int)n;
    }
}

void load_set_parts(struct load *l)
{
    struct err why;

    load_count_parts(l);
    for (int s = 0; s < l->report.n_tiers; s++)
        if (load_serves(l, s) && tier_store_set_parts(&l->store[s], wanted(l), &why)) {
            err_wrap(&why, "all payloads are in place, but the parts of contexts in the index are not up to date");
            load_give_up(l, s, &why);
        }
}
