/* load.c - a load from end to end: its phases one after another, and the way back when one fails. */
#include "loader/load/load.h"

#include "base/buf.h"
#include "loader/load/load_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- opening ---------------------------------------------------------------------------- */

static int set_names(struct load *l, struct err *err)
{
    const struct load_options *o = &l->o;
    struct buf b = { 0 };

    if (o->manifest && strcmp(o->manifest, "-") == 0)
        l->o.manifest = NULL;
    l->name_space = o->name_space ? o->name_space : l->manifest.model_digest;
    if (!o->manifest && !o->receipt)
        return 0;
    buf_printf(&b, "%s%s", o->receipt ? o->receipt : o->manifest, o->receipt ? "" : ".receipt");
    l->receipt = buf_take(&b);
    return l->receipt ? 0 : err_nomem(err);
}

static int prepare(struct load *l, struct err *err)
{
    if (load_inventory(l, err))
        return err->code;
    load_match(l);
    if (load_count_parts(l, err))
        return err->code;
    if (l->report.nothing_to_do)
        return 0;
    return load_verify(l, err) ? err->code : load_put_in_order(l, err);
}

int load_open(struct load **load, const struct load_options *options, struct err *err)
{
    struct load *l = calloc(1, sizeof(*l));

    *load = NULL;
    if (!l)
        return err_nomem(err);
    l->o = *options;
    l->away = calloc(TIER_MAX, sizeof(*l->away));
    int code = l->away ? 0 : err_nomem(err);
    if (!code)
        code = manifest_read(&l->manifest, options->manifest, err);
    if (!code)
        code = set_names(l, err);
    if (!code)
        code = prepare(l, err);
    if (code)
        load_close(l);
    else
        *load = l;
    return code;
}

/* Releases the results of load_inventory() and later phases. */
static void release_work(struct load *l)
{
    for (int i = 0; i < l->report.n_tiers; i++)
        tier_store_close(&l->store[i]);
    free(l->goal);
    free(l->copy);
    free(l->damaged);
    order_release(&l->order);
    map_release(&l->goals);
    l->goal = NULL;
    l->copy = l->damaged = NULL;
    l->n_goals = l->n_copies = l->n_damaged = 0;
}

void load_close(struct load *l)
{
    if (!l)
        return;
    release_work(l);
    free(l->receipt);
    free(l->away);
    manifest_release(&l->manifest);
    free(l);
}

/* ---- running ------------------------------------------------------------------------------ */

static int execute(struct load *l, struct err *err)
{
    if (l->report.nothing_to_do)
        return 0;
    return load_begin(l, err) || load_execute(l, err) || load_settle(l, err) ? err->code : 0;
}

/* Undoes a failed load: opens, locks and reads the stores again, then rolls back. */
static int restore(struct load *l, struct err *err)
{
    struct load_report failed = l->report;

    release_work(l);
    l->report = (struct load_report){ 0 };
    l->o.direction = LOAD_BACK;
    l->o.repair = false;
    l->restoring = true;
    memset(l->away, 0, TIER_MAX * sizeof(*l->away));
    int code = prepare(l, err);
    if (!code)
        code = execute(l, err);
    if (!code && l->report.n_away)
        code = err_set(err, ERR_NET, "%d tier%s cannot be reached", l->report.n_away, l->report.n_away == 1 ? "" : "s");
    l->restoring = false;
    l->o.direction = LOAD_FORWARD;
    l->report = failed;
    return code;
}

int load_run(struct load *l, struct err *err)
{
    struct err why;

    int code = execute(l, err);
    if (!code)
        return load_set_parts(l, err);
    struct err first = *err;
    if (l->o.direction == LOAD_BACK)
        return err_set(err, code, "%.400s; the rollback is not complete: run it again, or load a manifest", first.msg);
    if (restore(l, &why))
        return err_set(err, code, "%.300s; the previous state is not restored (%.120s): run evp-load again", first.msg,
                       why.msg);
    return err_set(err, code, "%.400s; the previous state is restored", first.msg);
}

/* ---- reports --------------------------------------------------------------------------------- */

const struct load_report *load_report(const struct load *l)
{
    return &l->report;
}

void load_each_change(const struct load *l, void (*each)(void *arg, const struct load_change *change), void *arg)
{
    for (int s = 0; s < l->report.n_tiers; s++) {
        for (int i = 0; i < l->store[s].in.n; i++) {
            const struct entry *e = &l->store[s].in.at[i];
            if (load_was_placed(l, &l->store[s], e) && !load_goal(l, e->id))
                each(arg, &(struct load_change){ OP_EVICT, l->store[s].tier->name, NULL, e->id, e->config, e->bytes });
        }
    }
    for (int i = 0; i < l->n_goals; i++) {
        const struct goal *g = &l->goal[i];
        const struct entry *want = &g->want;
        if (g->operation != OP_KEEP)
            each(arg, &(struct load_change){ g->operation, g->from < 0 ? NULL : l->store[g->from].tier->name,
                                             l->store[want->tier].tier->name, want->id, want->config, want->bytes });
    }
}
