/* load_match.c - compares current and wanted placement: the copies of every goal, each context's operation, and whether
 * there is anything to do.
 */
#include "loader/load/load_internal.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *load_find_payload(const struct load *l, const char *payload, int64_t *size)
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

/* ---- copies ------------------------------------------------------------------------ */

/* Does the payload folder have other bytes than the entry? Sizes are compared, because the payload may have been packed
 * again since; with --verify also the bytes. A file that fails its check counts as absent. */
static bool is_repacked(const struct load *l, struct goal *g, const struct entry *e, const char *path, int64_t size)
{
    struct entry packed = g->want;
    char checksum[XXH3_HEX];
    struct err why;

    if (size == e->size &&
        (!l->o.repair || (!load_checksum(path, &size, checksum, &why) && strcmp(checksum, e->checksum) == 0)))
        return false;
    g->spoilt = load_check_packed(&packed, path, size, &why) != 0;
    if (g->spoilt)
        l->o.warn("context '%.80s': %s: it counts as absent", e->id, why.msg);
    return !g->spoilt;
}

static bool is_wanted(const struct load *l, struct goal *g, const struct entry *e)
{
    int64_t size;
    bool same = entry_same(e, &g->want);
    char *path = same && !g->spoilt ? load_find_payload(l, g->want.payload, &size) : NULL;
    bool wanted = same && !(path && is_repacked(l, g, e, path, size));

    free(path);
    return wanted;
}

static void match_copy(struct load *l, int number)
{
    struct copy *c = &l->copy[number];
    const struct entry *e = load_entry(l, c);
    struct goal *g = load_goal(l, e->id);

    if (!g)
        return;
    g->from = c->store;
    if (!is_wanted(l, g, e))
        return;
    c->goal = (int)(g - l->goal);
    if (g->want.tier != c->store) {
        c->next = g->copies;
        g->copies = number;
        return;
    }
    if (g->here >= 0)
        l->copy[g->here].goal = -1;
    g->here = number;
}

/* ---- payloads named by their tokens ------------------------------------------------------ */

/* A lost state has forgotten which context a payload belongs to: tier_store_adopt(). */
static bool is_nameless(const struct entry *e)
{
    return strcmp(e->id, e->token_digest) == 0;
}

/* The goals by their tokens; of several contexts with the same tokens, the first, with the others as its circle. */
static int list_tokens(struct load *l, struct map *tokens, int *goal, struct err *err)
{
    for (int i = 0; i < l->n_goals; i++) {
        bool first;
        int n = map_add(tokens, l->goal[i].want.token_digest, DIGEST_HEX - 1, &first);
        if (n < 0)
            return err_nomem(err);
        if (first)
            goal[n] = i;
        l->goal[i].twin = first ? i : l->goal[goal[n]].twin;
        l->goal[goal[n]].twin = i;
    }
    return 0;
}

/* Would this copy, whose id no goal has, help a goal with the same tokens? It is a payload of the goal's context under
 * an earlier id: the goal's own variant, or all that the tiers have of it. */
static bool helps(const struct entry *e, const struct goal *g)
{
    struct cached has = entry_cached(e, NULL), want = entry_cached(&g->want, NULL);

    return g->here < 0 && (g->from < 0 || is_nameless(e) || cached_same(&has, &want));
}

static int name_copy(struct copy *c, struct entry *e, const struct entry *want, struct err *err)
{
    char *id = strdup(want->id), *payload = strdup(want->payload);

    if (!id || !payload) {
        free(id);
        free(payload);
        return err_nomem(err);
    }
    free(e->id);
    free(e->payload);
    e->id = id;
    e->payload = payload;
    c->renamed = true;
    return 0;
}

static int name_copies(struct load *l, struct err *err)
{
    struct map tokens = { 0 };
    int *goal = calloc((size_t)l->n_goals + 1, sizeof(*goal));
    int code = goal ? list_tokens(l, &tokens, goal, err) : err_nomem(err);

    for (int i = l->n_copies - 1; i >= 0 && !code; i--) {
        struct entry *e = load_entry(l, &l->copy[i]);
        int n = load_goal(l, e->id) ? -1 : map_find(&tokens, e->token_digest, DIGEST_HEX - 1);
        if (n < 0 || !helps(e, &l->goal[goal[n]]))
            continue;
        code = name_copy(&l->copy[i], e, &l->goal[goal[n]].want, err);
        if (!code)
            match_copy(l, i);
    }
    map_release(&tokens);
    free(goal);
    return code;
}

/* ---- operations ----------------------------------------------------------------------- */

/* A payload to be kept whose file is lost becomes an insert. */
static void set_operation(const struct load *l, struct goal *g, const struct entry *was, int store)
{
    struct cached before = entry_cached(was, l->store[store].tier);
    struct cached after = entry_cached(&g->want, l->store[g->want.tier].tier);

    g->from = store;
    g->operation = operation_between(&before, &after);
    if (g->operation == OP_KEEP && g->here < 0)
        g->operation = OP_INSERT;
}

static void set_operations(struct load *l)
{
    for (int i = 0; i < l->n_copies; i++) {
        const struct entry *e = load_entry(l, &l->copy[i]);
        struct goal *g = load_goal(l, e->id);
        if (g)
            set_operation(l, g, e, l->copy[i].store);
    }
    for (int g = 0; g < l->n_goals; g++)
        l->report.n_operations[l->goal[g].operation]++;
}

/* ---- nothing to do ------------------------------------------------------------------------ */

/* Is the manifest in force everywhere, every goal in place, and nothing else in the tiers? */
static bool all_in_place(const struct load *l)
{
    for (int s = 0; s < l->report.n_tiers; s++)
        if (load_serves(l, s) &&
            (l->store[s].load.running || strcmp(l->store[s].load.manifest, l->manifest.digest) != 0))
            return false;
    for (int g = 0; g < l->n_goals; g++)
        if (l->goal[g].here < 0)
            return false;
    for (int i = 0; i < l->n_copies; i++) {
        const struct copy *c = &l->copy[i];
        if (c->goal < 0 || l->goal[c->goal].here != i || c->renamed ||
            l->goal[c->goal].want.bytes != load_entry(l, c)->bytes)
            return false;
    }
    return l->n_damaged == 0;
}

int load_match(struct load *l, struct err *err)
{
    for (int i = l->n_copies - 1; i >= 0; i--) /* so the copy in the fastest tier becomes a goal's first */
        match_copy(l, i);
    if (name_copies(l, err))
        return err->code;
    set_operations(l);
    l->report.nothing_to_do = l->o.direction == LOAD_FORWARD && !l->o.retire && all_in_place(l);
    return 0;
}
