/* load_sift.c - the manifest read, and the payloads that are in their place already taken out of what a load works on.
 *
 * Of a manifest's rows only what a load needs is kept (load_planned.h). While the rows of a store's state are read,
 * those of payloads that the manifest wants just there are compared with them, and forgotten. So a load takes the
 * memory of what it changes. What is not quite as it should be stays, for load_match.c to judge.
 */
#include "loader/load/load_internal.h"
#include "loader/load/load_work.h"

#include <stdlib.h>
#include <string.h>

/* ---- the manifest -------------------------------------------------------------------- */

static int add_row(void *arg, const struct manifest *m, const struct placement *row, struct err *err)
{
    return planned_add(arg, m->model_digest, row, err);
}

int load_read(struct load *l, struct err *err)
{
    int code = planned_init(&l->planned, err);

    if (l->o.manifest && strcmp(l->o.manifest, "-") == 0)
        l->o.manifest = NULL;
    if (!code)
        code = manifest_each(&l->manifest, l->o.manifest, add_row, &l->planned, err);
    planned_end(&l->planned);
    return code;
}

/* ---- payloads in their place --------------------------------------------------------------- */

bool load_in_place(const struct load *l, const char *id)
{
    const struct planned_context *c = planned_find(&l->planned, id);

    return c && c->in_place;
}

/* Payloads that are looked at, some by each worker. */
struct look {
    const struct load *l;
    const struct tier_store *s;
    int first, n;
    bool *there; // (n)
};

enum { PIECE = 256 };

/* A payload that was packed again since is not the one that is wanted. */
static bool is_packed_again(const struct load *l, const struct entry *e)
{
    int64_t size = e->size;

    free(load_find_payload(l, e->payload, &size));
    return size != e->size;
}

static int look_piece(void *arg, int i, struct err *err)
{
    const struct look *k = arg;
    int at = i * PIECE, n = k->n - at < PIECE ? k->n - at : PIECE;

    if (tier_store_look(k->s, k->first + at, n, k->there + at, err))
        return err->code;
    for (; n > 0; at++, n--) {
        const struct entry *e = &k->s->in.at[k->first + at];
        bool read = k->there[at] && k->l->o.repair && e->placed;
        k->there[at] = k->there[at] && !is_packed_again(k->l, e) && (!read || tier_store_has(k->s, e, STORE_CONTENT));
    }
    return 0;
}

/* The context that an entry is the payload of, in its place; NULL: it is not. */
static struct planned_context *settled_by(const struct load_sift *sift, const struct entry *e)
{
    struct planned_context *c = planned_of(&sift->l->planned, e);
    struct err why;

    return c && e->placed && c->tier == sift->tier && c->bytes == e->bytes && !c->in_place && !planned_know(c, e, &why)
               ? c
               : NULL;
}

int load_sift(void *arg, struct tier_store *s, int first, struct err *err)
{
    const struct load_sift *sift = arg;
    struct look k = { sift->l, s, first, s->in.n - first, NULL };
    int left = first;

    if (s->load.running || sift->l->o.chunks || state_has_parts(s->state)) /* all of them are to be gone through */
        return 0;
    k.there = calloc((size_t)k.n + 1, sizeof(*k.there));
    if (!k.there)
        return err_nomem(err);
    int code = load_share(&(struct load_work){ look_piece, &k, (k.n + PIECE - 1) / PIECE, sift->l->o.jobs }, err);
    for (int i = 0; i < k.n && !code; i++) {
        struct entry *e = &s->in.at[first + i];
        struct planned_context *c = k.there[i] ? settled_by(sift, e) : NULL;
        if (c) {
            planned_settle(&sift->l->planned, c);
            entry_release(e);
        } else
            s->in.at[left++] = *e;
    }
    if (!code)
        s->in.n = left;
    free(k.there);
    return code;
}
