/* load.c - a load from end to end: its phases one after another, and what they leave out. */
#include "loader/load/load.h"

#include "base/buf.h"
#include "base/file.h"
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
    l->path = l->o.manifest ? realpath(l->o.manifest, NULL) : NULL;
    l->name_space = o->name_space ? o->name_space : l->manifest.model_digest;
    if (o->retire || (!o->manifest && !o->receipt))
        return 0;
    buf_printf(&b, "%s%s", o->receipt ? o->receipt : o->manifest, o->receipt ? "" : ".receipt");
    l->receipt = buf_take(&b);
    return l->receipt ? 0 : err_nomem(err);
}

/* Plans are of one lineage if their manifests lie in the same folder, as those of one night's state do, or if one names
 * the other as its previous one. Nothing is known of standard input, or of a load by an earlier release. */
static bool is_other(const struct load *l, const struct state_load *is)
{
    const char *own = l->path ? file_name(l->path) : NULL, *in_force = file_name(is->name);
    ptrdiff_t n = own ? own - l->path : 0;

    return n > 0 && in_force != is->name && strcmp(is->manifest, l->manifest.digest) != 0 &&
           strcmp(is->manifest, l->manifest.previous) != 0 &&
           (in_force - is->name != n || strncmp(is->name, l->path, (size_t)n) != 0);
}

/* Two plans that share a namespace would empty each other's cache. */
static int refuse_other(const struct load *l, struct err *err)
{
    int n[TIER_MAX] = { 0 };

    for (int i = 0; i < l->n_copies; i++)
        n[l->copy[i].store] += l->copy[i].goes && !load_goal(l, load_entry(l, &l->copy[i])->id);
    for (int s = 0; s < l->report.n_tiers; s++)
        if (n[s] && is_other(l, &l->store[s].load))
            return err_set(err, ERR_FORMAT,
                           "tier '%s': the load in force was made from '%s', and '%s' would evict %d of its contexts: "
                           "two plans share this namespace; give one --namespace, or --take-over",
                           l->store[s].tier->name, l->store[s].load.name, l->path, n[s]);
    return 0;
}

static int prepare(struct load *l, struct err *err)
{
    if (load_inventory(l, err) || load_match(l, err))
        return err->code;
    load_count_parts(l);
    if (l->report.nothing_to_do)
        return 0;
    if (load_verify(l, err) || load_put_in_order(l, err))
        return err->code;
    return l->o.direction == LOAD_BACK || l->o.retire || l->o.take_over ? 0 : refuse_other(l, err);
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

void load_close(struct load *l)
{
    if (!l)
        return;
    for (int i = 0; i < l->report.n_tiers; i++)
        tier_store_close(&l->store[i]);
    entries_release(&l->before);
    free(l->goal);
    free(l->copy);
    free(l->damaged);
    order_release(&l->order);
    map_release(&l->goals);
    map_release(&l->packed);
    for (int i = 0; i < l->packed_name.n; i++)
        free(l->packed_name.at[i]);
    free(l->packed_name.at);
    free(l->path);
    free(l->receipt);
    free(l->away);
    manifest_release(&l->manifest);
    free(l);
}

/* ---- what is left out --------------------------------------------------------------------- */

static void leave_out(struct load *l, struct goal *g)
{
    l->report.n_operations[g->operation]--;
    l->report.n_goals--;
    l->report.n_skipped++;
    l->report.tier[g->want.tier].placed -= g->want.bytes;
    g->operation = OP_NONE;
    g->left = true;
}

void load_leave_out(struct load *l, struct goal *g, const struct err *why)
{
    l->n_said++;
    l->o.warn("%s: it is left out", why->msg);
    leave_out(l, g);
}

void load_give_up(struct load *l, int store, const struct err *why)
{
    int n = 0;

    if (l->away[store].code)
        return;
    l->away[store] = *why;
    l->report.n_away++;
    for (int i = 0; i < l->n_goals; i++) {
        struct goal *g = &l->goal[i];
        if (g->want.tier == store && g->here < 0 && !g->placed && !g->left) {
            leave_out(l, g);
            n++;
        }
    }
    l->o.warn("%s: nothing more changes in tier '%s'; %d context%s left out", why->msg, l->store[store].tier->name, n,
              n == 1 ? " is" : "s are");
}

/* ---- running ------------------------------------------------------------------------------ */

/* After a killed writer: the load itself does so when it begins. */
static void tidy(struct load *l)
{
    struct err why;

    for (int s = 0; s < l->report.n_tiers; s++)
        if (load_serves(l, s) && tier_store_tidy(&l->store[s], &why))
            load_give_up(l, s, &why);
}

int load_run(struct load *l, struct err *err)
{
    int said = l->n_said;

    l->n_said = 0;
    if (l->report.nothing_to_do)
        tidy(l);
    else {
        load_begin(l);
        if (load_execute(l, err))
            return err_set(err, err->code, "%.400s; the next load goes on from here", err->msg);
        load_settle(l);
    }
    load_set_parts(l);
    l->n_said += said;
    return 0;
}

/* ---- reports --------------------------------------------------------------------------------- */

const struct load_report *load_report(const struct load *l)
{
    return &l->report;
}

void load_each_change(const struct load *l, void (*each)(void *arg, const struct load_change *change), void *arg)
{
    for (int i = 0; i < l->n_copies; i++) {
        const struct entry *e = load_entry(l, &l->copy[i]);
        const char *from = l->store[l->copy[i].store].tier->name;
        if (l->copy[i].goes && !load_goal(l, e->id))
            each(arg, &(struct load_change){ OP_EVICT, from, NULL, e->id, e->config, e->bytes });
    }
    for (int i = 0; i < l->n_goals; i++) {
        const struct goal *g = &l->goal[i];
        const struct entry *want = &g->want;
        if (g->operation != OP_KEEP && !g->left)
            each(arg, &(struct load_change){ g->operation, g->from < 0 ? NULL : l->store[g->from].tier->name,
                                             l->store[want->tier].tier->name, want->id, want->config, want->bytes });
    }
}
