/* load_settle.c - a load in the stores' records, from its first transaction to its last.
 *
 * Begin: every store records the running load and marks the placed payloads as the previous state, unless a killed load
 * has left its marks: then those stay. Settle: every store marks payloads as placed or spare; only then the stores end
 * the load, one by one. A load killed between these last transactions counts as ended; the next load ends it in the
 * remaining stores (load_inventory.c).
 */
#include "base/file.h"
#include "formats/receipt.h"
#include "loader/load/load_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- begin ----------------------------------------------------------------------------- */

/* Drops the rows of payloads that are neither in the folder nor in the previous state. */
static int drop_rows(struct tier_store *s, struct err *err)
{
    for (int i = 0; i < s->in.n; i++) {
        struct entry *e = &s->in.at[i];
        if (e->row && !e->present && !e->before) {
            if (state_delete(s->state, e, err))
                return err->code;
            e->row = 0;
        }
    }
    return 0;
}

static int keep_before(struct tier_store *s, struct err *err)
{
    struct state_load *load = &s->load;

    memcpy(load->before, load->manifest, sizeof(load->before));
    memcpy(load->before_name, load->name, sizeof(load->before_name));
    load->before_capacity = load->capacity;
    load->undoable = true;
    for (int i = 0; i < s->in.n; i++)
        s->in.at[i].before = s->in.at[i].placed && s->in.at[i].present;
    return state_keep_before(s->state, load->number, err) ? err->code : drop_rows(s, err);
}

static int begin_store(const struct load *l, struct tier_store *s, int64_t number, struct err *err)
{
    struct state_load *load = &s->load;
    bool back = l->o.direction == LOAD_BACK;

    /* The namespace needs its number before its rows change. */
    if ((!load->number && state_put_load(s->state, s->name_space, load, err)) ||
        (!back && !load->running && keep_before(s, err)))
        return err->code;
    load->load = number;
    load->running = back ? STATE_BACK : STATE_FORWARD;
    if (!back) {
        memcpy(load->manifest, l->manifest.digest, sizeof(load->manifest));
        snprintf(load->name, sizeof(load->name), "%s", l->o.manifest ? file_name(l->o.manifest) : "standard input");
        load->capacity = s->tier->capacity;
    }
    if (state_put_load(s->state, s->name_space, load, err) || state_set_swept(s->state, false, err))
        return err->code;
    return tier_store_commit(s, err);
}

int load_begin(struct load *l, struct err *err)
{
    int64_t number;

    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        return err_set(err, ERR_IO, "no random bytes: %s", strerror(errno));
    for (int s = 0; s < l->report.n_tiers; s++)
        if (l->store[s].tier && (l->o.direction == LOAD_FORWARD || l->undoes[s]) &&
            begin_store(l, &l->store[s], number, err))
            return err->code;
    return 0;
}

/* ---- placed payloads ---------------------------------------------------------------------- */

/* Marks a payload as placed or spare. */
static int mark_entry(struct load *l, int store, int i, struct err *err)
{
    struct entry *e = &l->store[store].in.at[i];
    struct goal *g = load_goal(l, e->id);
    bool mine = g && g->want.tier == store;
    bool placed = mine && (g->here >= 0 ? l->copy[g->here].entry == i : strcmp(g->want.file, e->file) == 0);
    bool same = e->placed == placed && (!placed || e->bytes == g->want.bytes);

    e->placed = placed;
    if (placed)
        e->bytes = g->want.bytes;
    else
        l->report.tier[store].spare += e->bytes;
    if (!same && tier_store_update(&l->store[store], i, err))
        return err->code;
    if (placed)
        load_know(g, e);
    return 0;
}

static int mark_entries(struct load *l, struct err *err)
{
    for (int s = 0; s < l->report.n_tiers; s++) {
        struct tier_store *store = &l->store[s];
        for (int i = 0; i < store->in.n; i++)
            if (store->in.at[i].present && mark_entry(l, s, i, err))
                return err->code;
        if (store->tier && (tier_store_commit(store, err) || tier_store_publish(store, err)))
            return err->code;
    }
    return 0;
}

/* ---- end ---------------------------------------------------------------------------------- */

/* Puts the manifest of the previous state in force again. */
static void forget_before(struct tier_store *s)
{
    struct state_load *load = &s->load;

    memcpy(load->manifest, load->before, sizeof(load->manifest));
    memcpy(load->name, load->before_name, sizeof(load->name));
    load->capacity = load->before_capacity;
    *load->before = *load->before_name = '\0';
    load->undoable = false;
    for (int i = 0; i < s->in.n; i++)
        s->in.at[i].before = false;
}

int load_end_store(struct load *l, struct tier_store *s, struct err *err)
{
    bool back = s->load.running == STATE_BACK;

    s->load.running = STATE_AT_REST;
    if (back)
        forget_before(s);
    if (l->o.dry_run)
        return 0;
    if ((back && (state_forget_before(s->state, s->load.number, err) || drop_rows(s, err))) ||
        state_put_load(s->state, s->name_space, &s->load, err) || state_set_swept(s->state, true, err) ||
        tier_store_commit(s, err))
        return err->code;
    return tier_store_publish(s, err);
}

/* ---- the receipt ----------------------------------------------------------------------------- */

static int list_evicted(const struct load *l, struct map *evicted, struct err *err)
{
    for (int s = 0; s < l->report.n_tiers; s++)
        for (int i = 0; i < l->store[s].in.n; i++) {
            const struct entry *e = &l->store[s].in.at[i];
            if (e->before && !e->placed && map_add(evicted, e->id, strlen(e->id), NULL) < 0)
                return err_nomem(err);
        }
    return 0;
}

/* Writes one row per context of the manifest, in the manifest's order. */
static int write_rows(const struct load *l, const struct map *evicted, struct rows_out *out, struct err *err)
{
    for (int i = 0; i < l->manifest.n; i++) {
        const char *id = l->manifest.at[i].id;
        const struct goal *g = load_goal(l, id);
        bool gone = !g && map_find(evicted, id, strlen(id)) >= 0;
        const struct receipt_row row = { id, g ? &g->want : NULL, g ? g->operation : gone ? OP_EVICT : OP_NONE };
        if (receipt_put(out, &l->manifest.tiers, &row, err))
            return err->code;
    }
    return 0;
}

static int write_receipt(const struct load *l, struct err *err)
{
    const struct manifest *m = &l->manifest;
    const struct receipt_made made = { m->digest, &m->tiers, l->o.args, l->o.n_args };
    struct map evicted = { 0 };
    struct rows_out out;
    int code = list_evicted(l, &evicted, err) || receipt_create(&out, l->receipt, &made, err) ? err->code : 0;

    if (!code) {
        code = write_rows(l, &evicted, &out, err);
        if (!code)
            code = rows_finish(&out, err);
        else
            rows_abort(&out);
    }
    map_release(&evicted);
    return code;
}

static int settle_receipt(const struct load *l, struct err *err)
{
    if (!l->receipt)
        return 0;
    if (l->o.direction == LOAD_FORWARD)
        return write_receipt(l, err);
    return unlink(l->receipt) && errno != ENOENT
               ? err_set(err, ERR_IO, "cannot remove '%s': %s", l->receipt, strerror(errno))
               : 0;
}

/* Is the payload of the previous state in another tier, from which a rollback can take it? */
static bool is_elsewhere(const struct load *l, const struct entry *e)
{
    const struct goal *g = load_goal(l, e->id);

    return g && entry_same(&g->want, e) && strcmp(g->want.checksum, e->checksum) == 0;
}

/* Counts the payloads that a rollback would need from the payload folder, and the missing ones. Only the rollback
 * itself checks whether such a file is still the placed payload. */
static void count_lost(struct load *l)
{
    for (int s = 0; s < l->report.n_tiers; s++) {
        for (int i = 0; i < l->store[s].in.n; i++) {
            const struct entry *e = &l->store[s].in.at[i];
            int64_t size = -1;
            if (!e->before || e->present || is_elsewhere(l, e))
                continue;
            free(load_find_payload(l, e->payload, &size));
            l->report.n_refetch++;
            l->report.n_lost += size != e->size;
        }
    }
}

int load_settle(struct load *l, struct err *err)
{
    if (mark_entries(l, err))
        return err->code;
    if (l->o.direction == LOAD_FORWARD)
        count_lost(l);
    if (settle_receipt(l, err))
        return err->code;
    for (int s = 0; s < l->report.n_tiers; s++) {
        if (!l->store[s].load.running)
            continue;
        if (load_end_store(l, &l->store[s], err))
            return err->code;
    }
    return 0;
}
