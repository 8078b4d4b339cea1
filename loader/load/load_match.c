/* load_match.c - compares current and wanted placement: the copies of every goal, each context's operation, and whether
 * there is anything to do. The only payloads it reads are spares that would be placed again.
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

/* Is the entry the payload that a goal wants? A rollback knows its checksum. A load compares sizes, because the payload
 * may have been packed again since. */
static bool is_wanted(const struct entry *e, const struct entry *want, int64_t packed_size)
{
    if (!entry_same(e, want))
        return false;
    return *want->checksum ? strcmp(e->checksum, want->checksum) == 0 : packed_size == e->size;
}

/* A spare must be read before it is placed again. Of two copies, the one that readers see stays. */
static void match_in_place(struct load *l, struct goal *g, int number)
{
    struct copy *c = &l->copy[number];
    const struct entry *e = load_entry(l, c);

    if (!e->placed && !tier_store_has(&l->store[c->store], e, STORE_CONTENT))
        return;
    if (g->here >= 0)
        l->copy[g->here].goal = -1;
    g->here = number;
    c->goal = (int)(g - l->goal);
}

static void match_copy(struct load *l, int number)
{
    struct copy *c = &l->copy[number];
    const struct entry *e = load_entry(l, c);
    struct goal *g = load_goal(l, e->id);
    int64_t size = -1;
    char *path = load_find_payload(l, g ? g->want.payload : e->payload, &size);
    bool packed = path;

    free(path);
    c->packed = size == e->size;
    if (!g || !is_wanted(e, &g->want, packed ? size : e->size))
        return;
    if (g->want.tier != c->store) {
        c->goal = (int)(g - l->goal);
        c->next = g->copies;
        g->copies = number;
    } else if (g->here < 0 || e->placed)
        match_in_place(l, g, number);
}

/* Lists the copies of every goal, the one in the fastest tier first. */
static void match_copies(struct load *l)
{
    for (int i = l->n_copies - 1; i >= 0; i--)
        match_copy(l, i);
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
    for (int s = 0; s < l->report.n_tiers; s++) {
        for (int i = 0; i < l->store[s].in.n; i++) {
            const struct entry *e = &l->store[s].in.at[i];
            struct goal *g = load_goal(l, e->id);
            if (!load_was_placed(l, &l->store[s], e))
                continue;
            if (g)
                set_operation(l, g, e, s);
            else
                l->report.n_operations[OP_EVICT]++;
        }
    }
    for (int g = 0; g < l->n_goals; g++)
        l->report.n_operations[l->goal[g].operation]++;
}

/* ---- nothing to do ------------------------------------------------------------------------ */

/* Is the manifest in force everywhere, every goal in place, and all else in the tiers spare? */
static bool all_in_place(const struct load *l)
{
    for (int s = 0; s < l->report.n_tiers; s++) {
        const struct state_load *load = &l->store[s].load;
        if (l->store[s].tier && (load->running || strcmp(load->manifest, l->manifest.digest) != 0))
            return false;
    }
    for (int g = 0; g < l->n_goals; g++)
        if (l->goal[g].here < 0)
            return false;
    for (int i = 0; i < l->n_copies; i++) {
        const struct copy *c = &l->copy[i];
        const struct entry *e = load_entry(l, c);
        const struct entry *want = c->goal < 0 ? NULL : &l->goal[c->goal].want;
        if (e->placed && (!want || want->tier != c->store || want->bytes != e->bytes))
            return false;
    }
    return l->n_damaged == 0;
}

void load_match(struct load *l)
{
    match_copies(l);
    set_operations(l);
    l->report.nothing_to_do = l->o.direction == LOAD_FORWARD && all_in_place(l);
}
