/* load_inventory.c - current and wanted placement: opens the stores, ends a load that was killed at its very end, makes
 * a goal for every context wanted on a tier, and a copy for every payload with a file.
 */
#include "loader/load/load_internal.h"

#include "base/unconst.h"
#include "loader/store/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct entry *load_entry(const struct load *l, const struct copy *c)
{
    return unconst(&l->store[c->store].in.at[c->entry]);
}

bool load_was_placed(const struct load *l, const struct tier_store *s, const struct entry *e)
{
    bool killed = l->o.direction == LOAD_FORWARD && s->load.running;

    return killed ? e->before : e->placed && e->present && !e->damaged;
}

/* ---- stores ------------------------------------------------------------------------ */

/* Called before the tier is locked: a folder cannot be locked twice, and the message about the lock would mislead. */
static int refuse_same_folder(const struct load *l, int tier, struct err *err)
{
    const struct tier *t = l->manifest.tiers.at;
    const char *folder = tier_folder(&t[tier]);
    struct stat a, b;
    bool there = stat(folder, &a) == 0;

    for (int i = 0; i < tier; i++) {
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

static int open_store(struct load *l, int tier, struct err *err)
{
    const struct tier *t = &l->manifest.tiers.at[tier];
    bool away = false;
    struct tier_store_options o = { .tier = t,
                                    .name_space = l->name_space,
                                    .use = l->o.dry_run ? STORE_LOOK : STORE_CHANGE,
                                    .wait_s = l->o.wait_s,
                                    .share = l->o.share,
                                    .group = l->o.group,
                                    .away = &away };

    if (refuse_same_folder(l, tier, err))
        return err->code;
    if (tier_store_open(&l->store[tier], &o, err)) {
        if (!away || (l->o.direction == LOAD_BACK && !l->restoring))
            return err->code;
        l->away[tier] = *err;
        l->report.n_away++;
        return 0;
    }
    l->report.tier[tier].name = t->name;
    l->report.tier[tier].other = l->store[tier].other_bytes;
    l->report.tier[tier].capacity = capacity_of(t, share_of_pool(l, tier), l->store[tier].other_bytes);
    return 0;
}

static int open_stores(struct load *l, struct err *err)
{
    const struct tiers *tiers = &l->manifest.tiers;

    for (int i = 0; i < tiers->n; i++) {
        l->report.n_tiers = i + 1;
        if (tier_folder(&tiers->at[i]) && open_store(l, i, err))
            return err->code;
    }
    return 0;
}

/* A load has ended when the first of its stores has ended it. */
static int end_killed(struct load *l, struct err *err)
{
    for (int i = 0; i < l->report.n_tiers; i++) {
        struct tier_store *s = &l->store[i];
        bool ended = false;
        for (int k = 0; k < l->report.n_tiers && s->tier && s->load.running; k++)
            ended |= l->store[k].tier && !l->store[k].load.running && l->store[k].load.load == s->load.load;
        if (ended && load_end_store(l, s, err))
            return err->code;
    }
    return 0;
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
                           l->store[i].tier->name, load->name, load->manifest,
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

void load_know(struct goal *g, const struct entry *e)
{
    snprintf(g->file, sizeof(g->file), "%s", e->file);
    g->want.file = g->file;
    g->want.size = e->size;
    memcpy(g->want.checksum, e->checksum, sizeof(e->checksum));
    memcpy(g->want.prefix, e->prefix, sizeof(e->prefix));
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
        l->report.n_skipped += !l->store[p->tier].tier;
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

    if (l->away[tier].code)
        l->o.warn("%s: it stays as it is, %d context%s", l->away[tier].msg, n, left);
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

    for (int i = 0; i < l->manifest.n; i++)
        if (l->manifest.at[i].tier >= 0)
            n[l->manifest.at[i].tier]++;
    for (int t = 0; t < l->manifest.tiers.n; t++)
        if (!l->store[t].tier)
            say_tier(l, t, n[t]);
}

static int goals_of_store(struct load *l, int store, struct err *err)
{
    const struct tier_store *s = &l->store[store];

    for (int k = 0; k < s->in.n; k++) {
        const struct entry *e = &s->in.at[k];
        struct entry want = { .id = e->id,
                              .config = e->config,
                              .payload = e->payload,
                              .n_tokens = e->n_tokens,
                              .bytes = e->bytes,
                              .tier = store };
        if (!(l->undoes[store] ? e->before : e->placed) || load_goal(l, e->id))
            continue;
        memcpy(want.token_digest, e->token_digest, DIGEST_HEX);
        memcpy(want.model_digest, e->model_digest, DIGEST_HEX);
        if (add_goal(l, &want, err))
            return err->code;
        load_know(&l->goal[l->n_goals - 1], e);
    }
    return 0;
}

/* Replaces the manifest's goals by those of the previous state. */
static int goals_from_before(struct load *l, struct err *err)
{
    size_t max = 1;

    for (int i = 0; i < l->report.n_tiers; i++)
        max += (size_t)l->store[i].in.n;
    l->goal = calloc(max, sizeof(*l->goal));
    if (!l->goal)
        return err_nomem(err);
    for (int i = 0; i < l->report.n_tiers; i++) {
        if (l->undoes[i] && l->store[i].load.before_capacity)
            l->report.tier[i].capacity = l->store[i].load.before_capacity;
        if (goals_of_store(l, i, err))
            return err->code;
    }
    return 0;
}

/* ---- copies ---------------------------------------------------------------------------- */

static void add_copy(struct load *l, int store, int entry, bool there)
{
    const struct tier_store *s = &l->store[store];
    struct entry *e = &s->in.at[entry];
    struct copy copy = { .store = store, .entry = entry, .goal = -1, .next = -1 };
    bool read = l->o.repair && e->placed;

    if (!e->present)
        return;
    if (there && (!read || tier_store_has(s, e, STORE_CONTENT))) {
        l->copy[l->n_copies++] = copy;
        return;
    }
    e->damaged = true;
    l->damaged[l->n_damaged++] = copy;
    l->o.warn("context '%s': '%s/%s' is %s", e->id, s->tier->uri, e->file,
              read ? "missing or damaged" : "missing or has another size");
}

static int list_store(struct load *l, int store, struct err *err)
{
    const struct tier_store *s = &l->store[store];
    bool *there = calloc((size_t)s->in.n + 1, sizeof(*there));
    int code = there ? tier_store_look(s, there, err) : err_nomem(err);

    for (int i = 0; !code && i < s->in.n; i++)
        add_copy(l, store, i, there[i]);
    free(there);
    return code;
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
        if (l->store[s].tier && list_store(l, s, err))
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
    if (open_stores(l, err) || end_killed(l, err) || (back && check_undoable(l, err)) ||
        (back ? goals_from_before(l, err) : goals_from_manifest(l, err)))
        return err->code;
    if (!back)
        say_skipped(l);
    count_bytes(l);
    return list_copies(l, err);
}
