/* load_settle.c - a load in the stores' records, from its first transaction to its last.
 *
 * Begin: every store records the running load, and its placement as the one before, unless a killed load has done so;
 * then the store is tidied. Settle: every store records new ids and numbers of bytes; only then the stores end the
 * load, one by one. A load killed between these last transactions counts as ended; the next load ends it in the
 * remaining stores (load_inventory.c). A store that fails is given up; the load goes on in the others.
 */
#include "base/file.h"
#include "formats/receipt.h"
#include "loader/load/load_internal.h"
#include "loader/store/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- begin ----------------------------------------------------------------------------- */

static int keep_before(struct tier_store *s, struct err *err)
{
    struct state_load *load = &s->load;

    memcpy(load->before, load->manifest, sizeof(load->before));
    memcpy(load->before_name, load->name, sizeof(load->before_name));
    load->before_capacity = load->capacity;
    load->undoable = true;
    return state_keep_before(s->state, load->number, err);
}

static int begin_store(const struct load *l, struct tier_store *s, int64_t number, struct err *err)
{
    struct state_load *load = &s->load;
    bool back = l->o.direction == LOAD_BACK, changes = l->order.n || l->n_damaged;

    /* The namespace needs its number before its rows change. */
    if ((!load->number && state_put_load(s->state, s->name_space, load, err)) ||
        (!back && !load->running && changes && keep_before(s, err)))
        return err->code;
    load->load = number;
    load->running = back ? STATE_BACK : STATE_FORWARD;
    if (!back) {
        memcpy(load->manifest, l->manifest.digest, sizeof(load->manifest));
        snprintf(load->name, sizeof(load->name), "%s",
                 !l->path                               ? "standard input"
                 : strlen(l->path) < sizeof(load->name) ? l->path
                                                        : file_name(l->path));
        load->capacity = s->tier->capacity;
    }
    if (state_put_load(s->state, s->name_space, load, err) || tier_store_commit(s, err) || tier_store_tidy(s, err) ||
        state_set_swept(s->state, false, err))
        return err->code;
    return tier_store_commit(s, err);
}

void load_begin(struct load *l)
{
    int64_t number;
    struct err why;
    bool random = getrandom(&number, sizeof(number), 0) == sizeof(number);

    for (int s = 0; s < l->report.n_tiers; s++) {
        if (!load_serves(l, s) || (l->o.direction == LOAD_BACK && !l->undoes[s]))
            continue;
        int code = random ? begin_store(l, &l->store[s], number, &why)
                          : err_set(&why, ERR_IO, "no random bytes: %s", strerror(errno));
        if (code)
            load_give_up(l, s, &why);
        else if (l->store[s].n_unknown)
            l->o.warn("tier '%s': %d payload%s of no known namespace stay%s there", l->store[s].tier->name,
                      l->store[s].n_unknown, l->store[s].n_unknown == 1 ? "" : "s",
                      l->store[s].n_unknown == 1 ? "s" : "");
    }
}

/* ---- end ---------------------------------------------------------------------------------- */

/* Records the ids and bytes of payloads in place that have changed. */
static int settle_store(struct load *l, int store, struct err *err)
{
    struct tier_store *s = &l->store[store];

    for (int i = 0; i < l->n_copies; i++) {
        const struct copy *c = &l->copy[i];
        const struct goal *g = c->goal < 0 || c->store != store ? NULL : &l->goal[c->goal];
        struct entry *e = load_entry(l, c);
        if (!g || g->here != i || (!c->renamed && e->bytes == g->want.bytes))
            continue;
        e->bytes = g->want.bytes;
        if (tier_store_update(s, c->entry, err))
            return err->code;
    }
    return tier_store_commit(s, err) || tier_store_publish(s, err) ? err->code : 0;
}

/* Puts the manifest of the placement before in force again. */
static void return_to_before(struct state_load *load)
{
    memcpy(load->manifest, load->before, sizeof(load->manifest));
    memcpy(load->name, load->before_name, sizeof(load->name));
    load->capacity = load->before_capacity;
    *load->before = *load->before_name = '\0';
    load->undoable = false;
}

static bool is_empty(const struct tier_store *s)
{
    for (int i = 0; i < s->in.n; i++)
        if (s->in.at[i].row)
            return false;
    return true;
}

int load_end_store(struct load *l, struct tier_store *s, struct err *err)
{
    bool back = s->load.running == STATE_BACK && !l->report.not_back, retired = l->o.retire && is_empty(s);

    s->load.running = STATE_AT_REST;
    if (back)
        return_to_before(&s->load);
    if (l->o.dry_run)
        return 0;
    if (((back || retired) && state_forget_before(s->state, s->load.number, err)) ||
        (retired ? state_drop_load(s->state, &s->load, err) : state_put_load(s->state, s->name_space, &s->load, err)) ||
        state_set_swept(s->state, !s->unswept, err) || tier_store_commit(s, err))
        return err->code;
    return tier_store_publish(s, err);
}

/* ---- the receipt ----------------------------------------------------------------------------- */

static int list_evicted(const struct load *l, struct map *evicted, struct err *err)
{
    for (int i = 0; i < l->n_copies; i++) {
        const char *id = load_entry(l, &l->copy[i])->id;
        if (l->copy[i].goes && !load_goal(l, id) && map_add(evicted, id, strlen(id), NULL) < 0)
            return err_nomem(err);
    }
    return 0;
}

/* Fills the entries of goals in place, and of contexts that are left out and keep what they have. */
static void know_goals(struct load *l)
{
    for (int i = 0; i < l->n_copies; i++) {
        const struct copy *c = &l->copy[i];
        const struct entry *e = load_entry(l, c);
        struct goal *g = load_goal(l, e->id);
        if (!g || !e->row || (g->here != i && !g->left))
            continue;
        g->want = *e;
        g->want.tier = c->store;
        g->kept = g->left;
        g->operation = g->left ? OP_KEEP : g->operation;
    }
}

/* Writes one row per context of the manifest, in the manifest's order. */
static int write_rows(const struct load *l, const struct map *evicted, struct rows_out *out, struct err *err)
{
    for (int i = 0; i < l->manifest.n; i++) {
        const char *id = l->manifest.at[i].id;
        const struct goal *g = load_goal(l, id);
        int tier = l->manifest.at[i].tier;
        bool gone = !g && map_find(evicted, id, strlen(id)) >= 0, is = g && (!g->left || g->kept);
        const struct receipt_row row = {
            .id = id,
            .entry = is ? &g->want : NULL,
            .operation = is     ? g->operation
                         : gone ? OP_EVICT
                                : OP_NONE,
            .left_out = g ? g->left : tier >= 0 && !l->manifest.tiers.at[tier].read_only && !l->o.retire,
        };
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

static bool has_place(const struct tiers *tiers, const struct tier *t)
{
    for (int i = 0; i < tiers->n; i++)
        if (tier_same_place(&tiers->at[i], t))
            return true;
    return false;
}

/* Tiers that only the load before had keep their payloads: says so, from its receipt. */
static void say_left_tiers(const struct load *l)
{
    struct receipt old;
    struct err ignored;

    if (receipt_read(&old, l->receipt, &ignored))
        return;
    for (int t = 0; t < old.tiers.n; t++) {
        const char *folder = tier_folder(&old.tiers.at[t]);
        int n = 0;
        for (int i = 0; i < old.in.n; i++)
            n += old.in.at[i].tier == t;
        if (n && folder && !has_place(&l->manifest.tiers, &old.tiers.at[t]) && !folder_is_blank(folder))
            l->o.warn("the manifest has no tier at '%s', which keeps its %d payload%s: remove it, or load a manifest "
                      "with that tier",
                      old.tiers.at[t].uri, n, n == 1 ? "" : "s");
    }
    receipt_release(&old);
}

static int settle_receipt(struct load *l, struct err *err)
{
    if (!l->receipt || l->report.not_back)
        return 0;
    say_left_tiers(l);
    know_goals(l);
    if (l->o.direction == LOAD_FORWARD)
        return write_receipt(l, err);
    return unlink(l->receipt) && errno != ENOENT
               ? err_set(err, ERR_IO, "cannot remove '%s': %s", l->receipt, strerror(errno))
               : 0;
}

/* The bytes in the tiers, what contexts keep that are left out among them. */
static void count_placed(struct load *l)
{
    for (int s = 0; s < l->report.n_tiers; s++) {
        const struct entries *in = &l->store[s].in;
        l->report.tier[s].placed = 0;
        for (int i = 0; i < in->n; i++)
            l->report.tier[s].placed += in->at[i].row ? in->at[i].bytes : 0;
    }
}

void load_settle(struct load *l)
{
    struct err why;

    for (int s = 0; s < l->report.n_tiers; s++)
        if (load_serves(l, s) && settle_store(l, s, &why))
            load_give_up(l, s, &why);
    l->report.not_back = l->o.direction == LOAD_BACK && !l->changed && l->report.n_skipped;
    count_placed(l);
    for (int s = 0; s < l->report.n_tiers; s++)
        if (load_serves(l, s) && l->store[s].load.running && load_end_store(l, &l->store[s], &why))
            load_give_up(l, s, &why);
    if (settle_receipt(l, &why)) {
        l->report.no_receipt = true;
        l->o.warn("%s: the load is done, but there is no receipt", why.msg);
    }
}
