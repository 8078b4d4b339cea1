/* load.c - opening a load: locks the tiers, reads indexes and receipts, makes a goal of every placed context, finds the
 * file or payload each goal comes from, and orders the steps. Changes nothing but what a killed load left unfinished.
 */
#include "loader/load/load.h"

#include "base/file.h"
#include "base/unconst.h"
#include "loader/formats/operation.h"
#include "loader/load/load_internal.h"
#include "methods/packed_payload.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- paths and stores ---------------------------------------------------- */

static char *with_suffix(const char *path, const char *suffix)
{
    struct buf b = { 0 };

    buf_printf(&b, "%s%s", path, suffix);
    return buf_take(&b);
}

static int set_paths(struct load *l, struct err *err)
{
    const struct load_options *o = &l->o;
    bool standard = !o->manifest || strcmp(o->manifest, "-") == 0;

    if (!o->receipt && standard)
        return err_set(err, ERR_USAGE, "a manifest from standard input needs --receipt");
    l->receipt = o->receipt ? strdup(o->receipt) : with_suffix(o->manifest, ".receipt");
    l->pending = l->receipt ? with_suffix(l->receipt, ".pending") : NULL;
    l->before = l->receipt ? with_suffix(l->receipt, ".before") : NULL;
    return l->pending && l->before ? 0 : err_nomem(err);
}

static bool tier_is_used(const struct manifest *m, int tier)
{
    for (int i = 0; i < m->n; i++)
        if (m->at[i].tier == tier)
            return true;
    return false;
}

/* Called before the tier is locked: a folder cannot be locked twice, and the sentence about a lock would mislead. */
static int refuse_same_folder(const struct load *l, int tier, struct err *err)
{
    const struct tier *t = l->manifest.tiers.at;
    struct stat a, b;
    bool there = stat(t[tier].uri, &a) == 0;

    for (int i = 0; i < tier; i++) {
        if (!l->store[i].tier)
            continue;
        bool same = there && stat(t[i].uri, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
        if (same || strcmp(t[i].uri, t[tier].uri) == 0)
            return err_set(err, ERR_FORMAT, "tiers '%s' and '%s' are the same folder", t[i].name, t[tier].name);
    }
    return 0;
}

static int open_stores(struct load *l, struct err *err)
{
    const struct tiers *tiers = &l->manifest.tiers;

    for (int i = 0; i < tiers->n; i++) {
        l->capacity[i] = tiers->at[i].capacity;
        l->n_stores = i + 1;
        if (!tier_is_folder(&tiers->at[i]) && !tier_is_used(&l->manifest, i))
            continue;
        if (refuse_same_folder(l, i, err) ||
            tier_store_open(&l->store[i], &tiers->at[i], l->o.dry_run ? STORE_LOOK : STORE_CHANGE, err))
            return err->code;
    }
    return 0;
}

int load_store_of(const struct load *l, const struct tier *tier)
{
    for (int i = 0; i < l->n_stores; i++)
        if (l->store[i].tier && strcmp(l->store[i].tier->uri, tier->uri) == 0)
            return i;
    return -1;
}

/* ---- receipts ------------------------------------------------------------ */

/* A receipt of this manifest must place every context as the manifest does. */
static int check_receipt(const struct load *l, const struct receipt *r, struct err *err)
{
    if (r->ids.n != l->manifest.n)
        return err_set(err, ERR_FORMAT, "receipt '%s' has %d contexts where the manifest has %d", l->receipt, r->ids.n,
                       l->manifest.n);
    for (int i = 0; i < r->in.n; i++) {
        const struct entry *e = &r->in.at[i];
        const struct placement *p = manifest_find(&l->manifest, e->id);
        struct cached planned = manifest_cached(&l->manifest.tiers, p), found = entry_cached(e, NULL);
        const char *wrong = NULL;
        if (!planned.tier)
            wrong = "is not placed by the manifest";
        else if (!cached_same(&planned, &found))
            wrong = "has another config or other tokens than in the manifest";
        else if (strcmp(l->manifest.tiers.at[p->tier].name, r->tiers.at[e->tier].name) != 0)
            wrong = "is in another tier than in the manifest";
        if (wrong)
            return err_set(err, ERR_FORMAT, "receipt '%s': context '%.80s' (%s) %s", l->receipt, e->id, e->file, wrong);
    }
    return 0;
}

int load_read_receipt(const struct load *l, struct receipt *r, struct err *err)
{
    *r = (struct receipt){ 0 };
    if (!file_exists(l->receipt))
        return 0;
    if (receipt_read(r, l->receipt, err))
        return err->code;
    if (strcmp(r->manifest_digest, l->manifest.digest) != 0 || !check_receipt(l, r, err))
        return 0;
    receipt_release(r);
    return err->code;
}

/* Reads a past state. Forward: the one before a killed load, if there was one. Back: the one to return to. */
static int read_past(struct load *l, struct err *err)
{
    struct receipt now;

    if (file_exists(l->pending)) {
        l->has_past = true;
        return receipt_read(&l->past, l->pending, err);
    }
    if (l->o.direction == LOAD_FORWARD)
        return 0;
    if (!file_exists(l->before))
        return err_set(err, ERR_FAIL, "nothing to roll back: there is no '%s'", l->before);
    if (load_read_receipt(l, &now, err))
        return err->code;
    bool mine = strcmp(now.manifest_digest, l->manifest.digest) == 0;
    receipt_release(&now);
    if (!mine)
        return err_set(err, ERR_FORMAT, "receipt '%s' is of another manifest: give the manifest that was loaded last",
                       l->receipt);
    l->has_past = true;
    return receipt_read(&l->past, l->before, err);
}

/* ---- goals --------------------------------------------------------------- */

static int goal_from_placement(struct load *l, const struct placement *p, struct load_goal *g, struct err *err)
{
    struct entry e = { .id = unconst(p->id), .config = unconst(p->config), .n_tokens = p->n_tokens, .bytes = p->bytes };

    memcpy(e.token_digest, p->token_digest, DIGEST_HEX);
    memcpy(e.model_digest, l->manifest.model_digest, DIGEST_HEX);
    g->payload = p->payload;
    g->store = p->tier;
    return entry_copy(&g->want, &e, err);
}

static int goals_from_manifest(struct load *l, struct err *err)
{
    l->goal = calloc((size_t)l->manifest.n + 1, sizeof(*l->goal));
    if (!l->goal)
        return err_nomem(err);
    for (int i = 0; i < l->manifest.n; i++)
        if (l->manifest.at[i].tier >= 0 && goal_from_placement(l, &l->manifest.at[i], &l->goal[l->n_goals++], err))
            return err->code;
    return 0;
}

static int goals_from_past(struct load *l, struct err *err)
{
    l->goal = calloc((size_t)l->past.in.n + 1, sizeof(*l->goal));
    if (!l->goal)
        return err_nomem(err);
    for (int t = 0; t < l->past.tiers.n; t++) {
        int store = load_store_of(l, &l->past.tiers.at[t]);
        if (store >= 0)
            l->capacity[store] = l->past.tiers.at[t].capacity;
    }
    for (int i = 0; i < l->past.in.n; i++) {
        const struct entry *e = &l->past.in.at[i];
        int store = load_store_of(l, &l->past.tiers.at[e->tier]);
        struct load_goal *g = &l->goal[l->n_goals];
        if (store < 0)
            continue;
        if (entry_copy(&g->want, e, err))
            return err->code;
        g->store = store;
        g->payload = entry_payload(&g->want);
        l->n_goals++;
    }
    return 0;
}

/* ---- what is in the tiers -------------------------------------------------- */

static int list_files(struct load *l, struct err *err)
{
    size_t max = 1;

    for (int s = 0; s < l->n_stores; s++)
        max += (size_t)l->store[s].in.n;
    l->file = calloc(max, sizeof(*l->file));
    if (!l->file)
        return err_nomem(err);
    for (int s = 0; s < l->n_stores; s++) {
        struct tier_store *store = &l->store[s];
        for (int i = 0; i < store->in.n; i++) {
            struct entry *e = &store->in.at[i];
            bool read = l->o.repair && !e->spare;
            if (tier_store_has(store, e, read ? STORE_CONTENT : STORE_SIZE)) {
                l->file[l->n_files++] = (struct load_file){ s, i };
                continue;
            }
            e->gone = store->changed = true;
            l->n_damaged++;
            l->o.warn("context '%s': '%s/%s' is %s", e->id, store->tier->uri, e->file,
                      read ? "missing or damaged" : "missing or has another size");
        }
    }
    return 0;
}

void load_report(const struct load *l, enum load_phase phase, int done, int total)
{
    if (l->o.progress)
        l->o.progress(l->o.arg, phase, done, total);
}

struct entry *load_entry(const struct load *l, int file)
{
    return &l->store[l->file[file].store].in.at[l->file[file].entry];
}

/* The path of a file of this name in the payload folder, allocated; NULL: there is none. */
static char *find_payload(const struct load *l, const char *payload, int64_t *size)
{
    char *path = l->o.payloads ? file_join(l->o.payloads, payload) : NULL;
    struct stat st;

    if (path && !stat(path, &st) && S_ISREG(st.st_mode)) {
        *size = st.st_size;
        return path;
    }
    free(path);
    return NULL;
}

bool load_is_packed(const struct load *l, const char *payload, int64_t want)
{
    int64_t size = -1;
    char *path = find_payload(l, payload, &size);

    free(path);
    return path && size == want;
}

/* Sets the goal whose payload each file holds. */
static int match_files(struct load *l, struct steps_file *file, struct err *err)
{
    struct map goals = { 0 };
    int code = load_map_goals(l, &goals, err);

    for (int f = 0; f < l->n_files && !code; f++) {
        const struct entry *e = load_entry(l, f);
        int64_t size = e->size;
        int at = map_find(&goals, e->id, strlen(e->id));
        struct load_goal *g = at < 0 ? NULL : &l->goal[at];
        file[f] = (struct steps_file){ l->file[f].store, e->bytes, -1, e->spare, false };
        file[f].packed = load_is_packed(l, entry_payload(e), e->size);
        if (!g || !entry_same(e, &g->want) || (*g->want.checksum && strcmp(e->checksum, g->want.checksum) != 0))
            continue;
        free(find_payload(l, g->payload, &size)); /* a payload of another size was packed again */
        bool here = g->store == l->file[f].store;
        if (size != e->size || (here && e->spare && !tier_store_has(&l->store[g->store], e, STORE_CONTENT)))
            continue; /* a spare is placed again only after it was read */
        file[f].goal = at;
        file[f].bytes = g->want.bytes;
        g->placed = g->placed || here;
    }
    map_release(&goals);
    return code;
}

/* ---- payloads that goals need -------------------------------------------- */

static int compare_payload(const struct load_goal *g, const struct packed_payload *p, struct err *err)
{
    const struct entry *want = &g->want;

    if (strcmp(p->config.name, want->config) != 0)
        return err_set(err, ERR_FORMAT, "has config '%s', not '%s'", p->config.name, want->config);
    if (strcmp(p->file.token_digest, want->token_digest) != 0 || p->file.n_tokens != want->n_tokens)
        return err_set(err, ERR_FORMAT, "was made of other tokens than the manifest says");
    if (*want->model_digest && strcmp(p->file.model_digest, want->model_digest) != 0)
        return err_set(err, ERR_FORMAT, "was made for another model than the manifest says");
    if (p->bytes != want->bytes)
        return err_set(err, ERR_FORMAT, "counts %lld bytes, the manifest %lld", (long long)p->bytes,
                       (long long)want->bytes);
    return 0;
}

/* Reads the payload of a goal whole, and sets the size, checksum and file name it will have in the tier. */
static int check_packed(struct load_goal *g, const char *path, struct err *err)
{
    struct entry *want = &g->want;
    char checksum[XXH3_HEX];
    struct packed_payload p;
    int64_t size;

    if (tier_store_checksum(path, &size, checksum, err))
        return err->code;
    if (*want->checksum) /* a rollback knows size and checksum already */
        return size == want->size && strcmp(checksum, want->checksum) == 0
                   ? 0
                   : err_set(err, ERR_FORMAT, "'%s' is not the file that was placed before", path);
    if (packed_payload_open(&p, path, PAYLOAD_WHOLE, err))
        return err->code;
    int code = compare_payload(g, &p, err);
    packed_payload_close(&p);
    if (code)
        return err_wrap(err, "'%s'", path);
    want->size = size;
    memcpy(want->checksum, checksum, sizeof(checksum));
    return entry_set_file(want, g->payload, err);
}

/* Makes a file of another tier the source of a goal, after its checksum was compared. */
static int take_from(struct load *l, struct load_goal *g, int f, struct err *err)
{
    const struct tier_store *store = &l->store[l->file[f].store];
    const struct entry *e = load_entry(l, f);

    if (!tier_store_has(store, e, STORE_CONTENT))
        return err_set(err, ERR_FORMAT, "'%s/%s' is damaged", store->tier->uri, e->file);
    g->want.size = e->size;
    memcpy(g->want.checksum, e->checksum, sizeof(e->checksum));
    return entry_set_file(&g->want, g->payload, err);
}

static int find_in_tiers(struct load *l, struct load_goal *g, struct steps_file *file, struct err *err)
{
    const char *folder = l->o.payloads;
    bool found = false;

    for (int f = 0; f < l->n_files; f++) {
        if (file[f].goal < 0 || &l->goal[file[f].goal] != g)
            continue;
        if (!found && take_from(l, g, f, err))
            return err->code;
        found = true;
        if (strcmp(load_entry(l, f)->checksum, g->want.checksum) != 0)
            file[f].goal = -1; /* two files with different bytes: only the first is the source */
    }
    if (found)
        return 0;
    if (l->o.direction == LOAD_BACK)
        return folder
                   ? err_set(err, ERR_FAIL, "cannot roll back: '%s' is neither whole in a tier nor in '%s'", g->payload,
                             folder)
                   : err_set(err, ERR_FAIL,
                             "cannot roll back: '%s' is whole in no tier, and no payload folder is given (--payloads)",
                             g->payload);
    if (!folder)
        return err_set(err, ERR_FORMAT, "payload '%s' is needed, and no payload folder is given (--payloads)",
                       g->payload);
    return err_set(err, ERR_FORMAT, "there is no payload '%s' in '%s'", g->payload, folder);
}

static int check_goals(struct load *l, struct steps_file *file, struct err *err)
{
    int code = 0, n = 0, done = 0;

    for (int i = 0; i < l->n_goals; i++)
        n += !l->goal[i].placed;
    if (!n)
        return 0;
    load_report(l, LOAD_CHECKS, 0, n);
    for (int i = 0; i < l->n_goals && !code; i++) {
        struct load_goal *g = &l->goal[i];
        int64_t size;
        if (g->placed)
            continue;
        char *path = find_payload(l, g->payload, &size);
        g->packed = path != NULL;
        code = path ? check_packed(g, path, err) : find_in_tiers(l, g, file, err);
        if (code && path && l->o.direction == LOAD_BACK) { /* not what was placed; a tier may still have it */
            g->packed = false;
            code = find_in_tiers(l, g, file, err);
        }
        free(path);
        if (code)
            err_wrap(err, "context '%.80s'", g->want.id);
        else
            load_report(l, LOAD_CHECKS, ++done, n);
    }
    return code;
}

/* ---- the order ------------------------------------------------------------ */

static int plan_steps(struct load *l, const struct steps_file *file, struct err *err)
{
    struct steps_goal *goal = calloc((size_t)l->n_goals + 1, sizeof(*goal));
    struct steps_given given = {
        l->capacity, l->n_stores, file, l->n_files, goal, l->n_goals, l->o.direction == LOAD_BACK
    };

    if (!goal)
        return err_nomem(err);
    for (int i = 0; i < l->n_goals; i++)
        goal[i] = (struct steps_goal){ l->goal[i].store, l->goal[i].want.bytes, l->goal[i].packed };
    int code = steps_plan(&l->steps, &given, err);
    int over = l->steps.over_tier;
    if (code == ERR_FAIL && load_goal_bytes(l, over) > l->capacity[over])
        err_set(err, ERR_FAIL, "tier '%s' cannot hold the plan: its payloads count %lld bytes, its capacity is %lld",
                l->store[over].tier->name, (long long)load_goal_bytes(l, over), (long long)l->capacity[over]);
    free(goal);
    return code;
}

static int plan_all(struct load *l, struct err *err)
{
    struct steps_file *file = calloc((size_t)l->n_files + 1, sizeof(*file));

    if (!file)
        return err_nomem(err);
    int code = match_files(l, file, err);
    if (!code)
        code = load_set_operations(l, err);
    if (!code)
        code = load_set_nothing_to_do(l, file, err);
    if (!code && !l->nothing_to_do) {
        code = check_goals(l, file, err);
        if (!code)
            code = plan_steps(l, file, err);
        if (!code)
            code = load_check_disks(l, err);
    }
    free(file);
    return code;
}

/* ---- opening -------------------------------------------------------------- */

int load_prepare(struct load *l, struct err *err)
{
    bool back = l->o.direction == LOAD_BACK;

    if (open_stores(l, err) || read_past(l, err) || (back ? goals_from_past(l, err) : goals_from_manifest(l, err)) ||
        list_files(l, err))
        return err->code;
    return plan_all(l, err);
}

int load_open(struct load *l, const struct load_options *options, struct err *err)
{
    *l = (struct load){ .o = *options };
    int code = set_paths(l, err);
    if (!code)
        code = manifest_read(&l->manifest, options->manifest, err);
    if (!code)
        code = load_prepare(l, err);
    if (code)
        load_close(l);
    return code;
}

void load_close(struct load *l)
{
    for (int i = 0; i < l->n_stores; i++)
        tier_store_close(&l->store[i]);
    for (int i = 0; i < l->n_goals; i++)
        entry_release(&l->goal[i].want);
    free(l->goal);
    free(l->file);
    free(l->receipt);
    free(l->pending);
    free(l->before);
    entries_release(&l->evicted);
    steps_release(&l->steps);
    receipt_release(&l->past);
    manifest_release(&l->manifest);
    *l = (struct load){ 0 };
}

int64_t load_goal_bytes(const struct load *l, int store)
{
    int64_t sum = 0;

    for (int i = 0; i < l->n_goals; i++)
        if (l->goal[i].store == store && __builtin_add_overflow(sum, l->goal[i].want.bytes, &sum))
            return INT64_MAX;
    return sum;
}
