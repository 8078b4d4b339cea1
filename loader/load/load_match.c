/* load_match.c - compares what is with what shall be: the copies of every goal, each context's operation, and whether
 * there is nothing to do. Reads no payload but a spare that would be placed again.
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

/* Is the entry the payload that a goal wants? A rollback knows its checksum; else it may have been packed again since.
 */
static bool is_wanted(const struct entry *e, const struct entry *want, int64_t packed_size)
{
    if (!entry_same(e, want))
        return false;
    return *want->checksum ? strcmp(e->checksum, want->checksum) == 0 : packed_size == e->size;
}

/* A spare is placed again only after it was read. Of two copies, the one that readers see stays. */
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

static int match_copy(struct load *l, int number, struct planned_texts *texts, struct err *err)
{
    struct copy *c = &l->copy[number];
    const struct entry *e = load_entry(l, c);
    struct goal *g = load_goal(l, e->id);
    struct entry want = *e;
    int64_t size = -1;

    if (g && planned_entry(&l->planned, g->context, texts, &want, err))
        return err->code;
    char *path = load_find_payload(l, want.payload, &size);
    c->packed = size == e->size;
    free(path);
    if (!g || !is_wanted(e, &want, path ? size : e->size))
        return 0;
    if (want.tier != c->store) {
        c->goal = (int)(g - l->goal);
        c->next = g->copies;
        g->copies = number;
    } else if (g->here < 0 || e->placed)
        match_in_place(l, g, number);
    return 0;
}

/* The first copy of a goal is in its fastest tier. */
static int match_copies(struct load *l, struct err *err)
{
    struct planned_texts texts = { 0 };
    int code = 0;

    for (int i = l->n_copies - 1; i >= 0 && !code; i--)
        code = match_copy(l, i, &texts, err);
    buf_release(&texts.payload);
    return code;
}

/* ---- operations ----------------------------------------------------------------------- */

/* A payload that would be kept but lost its file is inserted. */
static void set_operation(const struct load *l, struct goal *g, const struct entry *was, int store)
{
    const struct entry want = planned_variant(&l->planned, g->context);
    struct cached before = entry_cached(was, l->store[store].tier);
    struct cached after = entry_cached(&want, l->store[want.tier].tier);

    g->from = (int8_t)store;
    g->operation = (uint8_t)operation_between(&before, &after);
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
            else if (!load_in_place(l, e->id))
                l->report.n_operations[OP_EVICT]++;
        }
    }
    l->report.n_operations[OP_KEEP] += l->planned.n_in_place;
    for (int g = 0; g < l->n_goals; g++)
        l->report.n_operations[l->goal[g].operation]++;
}

/* ---- nothing to do ------------------------------------------------------------------------ */

/* Is the manifest in force everywhere, every goal in its place, and nothing but goals and spares in the tiers? */
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
        const struct planned_context *p = c->goal < 0 ? NULL : load_context(l, &l->goal[c->goal]);
        if (e->placed && (!p || p->tier != c->store || p->bytes != e->bytes))
            return false;
    }
    return l->n_damaged == 0;
}

int load_match(struct load *l, struct err *err)
{
    if (match_copies(l, err))
        return err->code;
    set_operations(l);
    l->report.nothing_to_do = l->o.direction == LOAD_FORWARD && all_in_place(l);
    return 0;
}
