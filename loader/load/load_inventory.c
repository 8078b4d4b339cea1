/* load_inventory.c - current and wanted placement: opens the stores, ends a load that was killed at its very end, makes
 * a goal for every context wanted on a tier, and a copy for every payload with a file.
 */
#include "loader/load/load_internal.h"

#include "base/file.h"
#include "base/unconst.h"
#include "loader/store/folder.h"
#include "loader/store/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry *load_entry(const struct load *l, const struct copy *c)
{
    return unconst(&l->store[c->store].in.at[c->entry]);
}

/* ---- stores ------------------------------------------------------------------------ */

/* Called before the tier is locked: a folder cannot be locked twice, and the message about the lock would mislead. */
static int refuse_same_folder(const struct load *l, int tier, struct err *err)
{
    const struct tier *t = l->manifest.tiers.at;
    const char *folder = tier_folder(&t[tier]);
    struct stat a, b;
    bool there = stat(folder, &a) == 0;

    for (int i = 0; i < l->manifest.tiers.n; i++) {
        if (!l->store[i].tier)
            continue;
        const char *other = tier_folder(&t[i]);
        bool same = there && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
        if (same || strcmp(other, folder) == 0)
            return err_set(err, ERR_FORMAT, "tiers '%s' and '%s' are the same folder", t[i].name, t[tier].name);
    }
    return 0;
}

/* The bytes that the manifest places on a tier. */
static int64_t planned_bytes(const struct manifest *m, int tier)
{
    int64_t sum = 0;

    for (int i = 0; i < m->n; i++)
        if (m->at[i].tier == tier && __builtin_add_overflow(sum, m->at[i].bytes, &sum))
            return INT64_MAX;
    return sum;
}

/* A tier's share of its pool's capacity: the bytes that the plan places there; the first tier also gets the rest. So no
 * order of steps can exceed the pool. */
static int64_t share_of_pool(const struct load *l, int tier)
{
    const struct tiers *tiers = &l->manifest.tiers;
    int64_t left = tiers->at[tier].capacity;
    int pool[TIER_MAX];

    tiers_pools(tiers, pool);
    if (!*tiers->at[tier].pool || left == INT64_MAX)
        return left;
    if (pool[tier] < tier)
        return planned_bytes(&l->manifest, tier);
    for (int t = 0; t < tiers->n; t++)
        if (t != tier && pool[t] == tier && __builtin_sub_overflow(left, planned_bytes(&l->manifest, t), &left))
            return INT64_MIN;
    return left;
}

/* The bytes that this namespace may take, given those of the others. */
static int64_t capacity_of(const struct tier *t, int64_t capacity, int64_t other_bytes)
{
    int64_t together = t->total ? t->total : capacity, left = together - other_bytes;

    if (together == INT64_MAX)
        return capacity;
    return left < 0 ? 0 : left < capacity ? left : capacity;
}

/* A folder of kind `file` where the manifest keeps payloads is not empty, unless its disk is not mounted. */
static int check_mounted(const struct load *l, int tier, struct err *err)
{
    const struct tier *t = &l->manifest.tiers.at[tier];
    int n = 0;

    if (l->o.new_disk || t->kind != TIER_FILE || !folder_is_blank(t->uri))
        return 0;
    for (int i = 0; i < l->manifest.n; i++)
        n += l->manifest.at[i].tier == tier && l->manifest.at[i].operation == OP_KEEP;
    return n ? err_set(
                   err, ERR_FAIL,
                   "tier '%s': '%s' is empty, but the plan keeps %d payload%s there: is its disk mounted? If it may "
                   "be empty, use --new",
                   t->name, t->uri, n, n == 1 ? "" : "s")
             : 0;
}

static void leave_out(struct load *l, int tier, const struct err *why)
{
    l->away[tier] = *why;
    l->report.n_away++;
}

/* Makes the folder, so that all writers lock the same folders in the same order. */
static void make_folder(struct load *l, int tier)
{
    struct err why;
    int fd = -1, code = check_mounted(l, tier, &why);

    if (!code && !l->o.dry_run &&
        folder_open(&fd, tier_folder(&l->manifest.tiers.at[tier]), FOLDER_WRITE, geteuid(), &why))
        code = err_wrap(&why, "tier '%s'", l->manifest.tiers.at[tier].name);
    if (fd >= 0)
        close(fd);
    if (code)
        leave_out(l, tier, &why);
}

/* A tier that cannot be opened is left out. */
static int open_store(struct load *l, int tier, struct err *err)
{
    const struct tier *t = &l->manifest.tiers.at[tier];
    struct tier_store *s = &l->store[tier];
    struct tier_store_options o = { .tier = t,
                                    .name_space = l->name_space,
                                    .use = l->o.dry_run ? STORE_LOOK : STORE_CHANGE,
                                    .wait_s = l->o.wait_s,
                                    .share = l->o.share,
                                    .group = l->o.group,
                                    .adopt = true };

    if (refuse_same_folder(l, tier, err))
        return err->code;
    if (tier_store_open(s, &o, err)) {
        leave_out(l, tier, err);
        return err->code == ERR_NOMEM ? err->code : 0;
    }
    l->report.tier[tier].name = t->name;
    l->report.tier[tier].other = l->store[tier].other_bytes;
    l->report.tier[tier].capacity = capacity_of(t, share_of_pool(l, tier), l->store[tier].other_bytes);
    return 0;
}

static void say_lost(const struct load *l, const struct tier_store *s)
{
    struct err why;

    if (s->n_adopted)
        l->o.warn("tier '%s': its state was lost or is older than its payloads: %d payload%s found again",
                  s->tier->name, s->n_adopted, s->n_adopted == 1 ? " is" : "s are");
    else if (l->o.dry_run && !s->state && s->medium.driver && tier_store_refuse_lost(s, &why))
        l->o.warn("tier '%s': %s", s->tier->name, why.msg);
}

static bool is_served(const struct tier *t)
{
    return tier_folder(t) && !t->read_only;
}

static int open_stores(struct load *l, struct err *err)
{
    const struct tiers *tiers = &l->manifest.tiers;
    int order[TIER_MAX];

    l->report.n_tiers = tiers->n;
    for (int i = 0; i < tiers->n; i++)
        if (is_served(&tiers->at[i]))
            make_folder(l, i);
    for (int i = 0; i < tiers->n; i++) /* a dry run locks nothing, and makes no folder */
        order[i] = i;
    int n = l->o.dry_run ? tiers->n : folder_order(tiers, order);
    for (int i = 0; i < n; i++)
        if (is_served(&tiers->at[order[i]]) && !l->away[order[i]].code && open_store(l, order[i], err))
            return err->code;
    for (int i = 0; i < tiers->n; i++)
        if (l->store[i].tier)
            say_lost(l, &l->store[i]);
    return 0;
}

/* A load has ended when the first of its stores has ended it. */
static void end_killed(struct load *l)
{
    struct err why;

    for (int i = 0; i < l->report.n_tiers; i++) {
        struct tier_store *s = &l->store[i];
        bool ended = false;
        for (int k = 0; k < l->report.n_tiers && s->tier && s->load.running; k++)
            ended |= l->store[k].tier && !l->store[k].load.running && l->store[k].load.load == s->load.load;
        if (ended && load_end_store(l, s, &why))
            load_give_up(l, i, &why);
    }
}

/* ---- rollbacks ---------------------------------------------------------------------- */

/* Only the load in force can be undone, and the caller must name it. A load killed at its beginning has begun in some
 * stores only: the others are unchanged. */
static int check_undoable(struct load *l, struct err *err)
{
    bool undoable = false, running = false;

    for (int i = 0; i < l->report.n_tiers; i++)
        running |= l->store[i].load.running != STATE_AT_REST;
    for (int i = 0; i < l->report.n_tiers; i++) {
        const struct state_load *load = &l->store[i].load;
        l->undoes[i] = l->store[i].tier && *load->manifest && (!running || load->running);
        if (!l->undoes[i])
            continue;
        if (strcmp(load->manifest, l->manifest.digest) != 0)
            return err_set(err, ERR_FORMAT,
                           "tier '%s': the load in force is of '%s' (%.8s), not of '%s' (%.8s): only the load in force "
                           "can be undone",
                           l->store[i].tier->name, file_name(load->name), load->manifest,
                           l->o.manifest ? l->o.manifest : "standard input", l->manifest.digest);
        undoable |= load->undoable;
    }
    return undoable
               ? 0
               : err_set(err, ERR_FAIL, "nothing to roll back: the previous state is not known, or nothing was loaded");
}

/* ---- goals --------------------------------------------------------------------------- */

struct goal *load_goal(const struct load *l, const char *id)
{
    int i = map_find(&l->goals, id, strlen(id));

    return i < 0 ? NULL : &l->goal[i];
}

static int add_goal(struct load *l, const struct entry *want, struct err *err)
{
    l->goal[l->n_goals] = (struct goal){
        .want = *want, .copies = -1, .here = -1, .source = ORDER_PAYLOADS, .from = -1, .operation = OP_INSERT
    };
    return map_add(&l->goals, want->id, strlen(want->id), NULL) == l->n_goals++ ? 0 : err_nomem(err);
}

/* Makes a goal of every context placed on a served tier. */
static int goals_from_manifest(struct load *l, struct err *err)
{
    const struct manifest *m = &l->manifest;

    l->goal = calloc((size_t)m->n + 1, sizeof(*l->goal));
    if (!l->goal)
        return err_nomem(err);
    for (int i = 0; i < m->n; i++) {
        const struct placement *p = &m->at[i];
        struct entry want = { .id = unconst(p->id),
                              .config = unconst(p->config),
                              .payload = unconst(p->payload),
                              .n_tokens = p->n_tokens,
                              .bytes = p->bytes,
                              .tier = p->tier };
        if (p->tier < 0)
            continue;
        l->report.n_skipped += !l->store[p->tier].tier && !m->tiers.at[p->tier].read_only;
        memcpy(want.token_digest, p->token_digest, DIGEST_HEX);
        memcpy(want.model_digest, m->model_digest, DIGEST_HEX);
        if (l->store[p->tier].tier && add_goal(l, &want, err))
            return err->code;
    }
    return 0;
}

/* Warns that a tier is left alone, why, and how many contexts that leaves out. */
static void say_tier(const struct load *l, int tier, int n)
{
    const struct tier *t = &l->manifest.tiers.at[tier];
    const char *left = n == 1 ? " is left out" : "s are left out";

    if (l->away[tier].code && l->o.direction == LOAD_FORWARD && !l->o.retire)
        l->o.warn("%s: it stays as it is, %d context%s", l->away[tier].msg, n, left);
    else if (l->away[tier].code)
        l->o.warn("%s: it stays as it is", l->away[tier].msg);
    else if (n && tier_is_remote(t))
        l->o.warn("tier '%s' is of kind '%s' and has no 'state', the folder that evp-load needs: %d context%s", t->name,
                  tier_kind_name(t->kind), n, left);
    else if (n)
        l->o.warn("tier '%s' is of kind '%s', which evp-load does not serve: %d context%s", t->name,
                  tier_kind_name(t->kind), n, left);
}

static void say_skipped(const struct load *l)
{
    int n[TIER_MAX] = { 0 };

    for (int i = 0; i < l->manifest.n && l->o.direction == LOAD_FORWARD && !l->o.retire; i++)
        if (l->manifest.at[i].tier >= 0)
            n[l->manifest.at[i].tier]++;
    for (int t = 0; t < l->manifest.tiers.n; t++)
        if (!l->store[t].tier && !l->manifest.tiers.at[t].read_only)
            say_tier(l, t, n[t]);
}

static int take_before(void *arg, const char *name_space, struct entry *e, struct err *err)
{
    struct load *l = arg;

    (void)name_space;
    return entries_add(&l->before, e, err);
}

static int list_before(struct load *l, struct err *err)
{
    for (int i = 0; i < l->report.n_tiers; i++) {
        struct tier_store *s = &l->store[i];
        int first = l->before.n;
        if (!l->undoes[i])
            continue;
        if (s->load.before_capacity)
            l->report.tier[i].capacity = s->load.before_capacity;
        if (state_each_before(s->state, s->load.number, take_before, l, err))
            return err->code;
        for (int k = first; k < l->before.n; k++)
            l->before.at[k].tier = i;
    }
    return 0;
}

/* The goals of a rollback: the placement before, and in stores that the load to undo has not reached, their own. */
static int goals_from_before(struct load *l, struct err *err)
{
    size_t max = 1;

    if (list_before(l, err))
        return err->code;
    for (int i = 0; i < l->report.n_tiers; i++)
        max += (size_t)l->store[i].in.n;
    l->goal = calloc(max + (size_t)l->before.n, sizeof(*l->goal));
    if (!l->goal)
        return err_nomem(err);
    for (int i = 0; i < l->before.n; i++)
        if (!load_goal(l, l->before.at[i].id) && add_goal(l, &l->before.at[i], err))
            return err->code;
    for (int i = 0; i < l->report.n_tiers; i++)
        for (int k = 0; k < l->store[i].in.n && !l->undoes[i]; k++) {
            struct entry want = l->store[i].in.at[k];
            want.tier = i;
            if (!load_goal(l, want.id) && add_goal(l, &want, err))
                return err->code;
        }
    return 0;
}

/* ---- copies ---------------------------------------------------------------------------- */

static void say_damaged(struct load *l, const struct copy *c, const char *what)
{
    const struct entry *e = load_entry(l, c);

    l->damaged[l->n_damaged++] = *c;
    l->o.warn("context '%s': %s", e->id, what);
}

/* Adds a copy, or a damaged one. One that cannot be read now stays as it is. */
static void add_copy(struct load *l, int store, int entry, bool there)
{
    const struct tier_store *s = &l->store[store];
    const struct entry *e = &s->in.at[entry];
    const struct copy copy = { .store = store, .entry = entry, .goal = -1, .next = -1 };
    struct err why;

    if (!there) {
        err_set(&why, ERR_FORMAT, "'%s/%s' is missing or has another size", s->tier->uri, e->file);
        say_damaged(l, &copy, why.msg);
        return;
    }
    int code = l->o.repair ? tier_store_check(s, e, &why) : 0;
    if (code == ERR_FORMAT) {
        say_damaged(l, &copy, why.msg);
        return;
    }
    if (code) {
        l->report.n_unknown++;
        l->o.warn("context '%s': %s: it is not verified", e->id, why.msg);
    }
    l->copy[l->n_copies++] = copy;
}

static int list_store(struct load *l, int store, struct err *err)
{
    const struct tier_store *s = &l->store[store];
    bool *there = calloc((size_t)s->in.n + 1, sizeof(*there));
    struct err why;

    if (!there)
        return err_nomem(err);
    if (s->in.n && tier_store_look(s, there, &why))
        load_give_up(l, store, &why);
    else
        for (int i = 0; i < s->in.n; i++)
            add_copy(l, store, i, there[i]);
    free(there);
    return 0;
}

static int list_copies(struct load *l, struct err *err)
{
    size_t max = 1;

    for (int s = 0; s < l->report.n_tiers; s++)
        max += (size_t)l->store[s].in.n;
    l->copy = calloc(max, sizeof(*l->copy));
    l->damaged = calloc(max, sizeof(*l->damaged));
    if (!l->copy || !l->damaged)
        return err_nomem(err);
    for (int s = 0; s < l->report.n_tiers; s++)
        if (load_serves(l, s) && list_store(l, s, err))
            return err->code;
    l->report.n_damaged = l->n_damaged;
    return 0;
}

static void count_bytes(struct load *l)
{
    for (int i = 0; i < l->n_goals; i++) {
        const struct entry *want = &l->goal[i].want;
        int64_t *sum = &l->report.tier[want->tier].placed;
        if (__builtin_add_overflow(*sum, want->bytes, sum))
            *sum = INT64_MAX;
    }
    l->report.n_goals = l->n_goals;
}

int load_inventory(struct load *l, struct err *err)
{
    bool back = l->o.direction == LOAD_BACK;

    if (strlen(l->name_space) >= INDEX_TEXT)
        return err_set(err, ERR_USAGE, "the name of a namespace has at most %d bytes", INDEX_TEXT - 1);
    if (open_stores(l, err))
        return err->code;
    end_killed(l);
    if ((back && check_undoable(l, err)) ||
        (!l->o.retire && (back ? goals_from_before(l, err) : goals_from_manifest(l, err))))
        return err->code;
    say_skipped(l);
    count_bytes(l);
    return list_copies(l, err);
}
