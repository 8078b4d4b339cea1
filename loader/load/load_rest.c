/* load_rest.c - a load that finds nothing to do because nothing happened since one that left nothing to do.
 *
 * The stores write down for which manifest all was in its place, and after which transaction (struct state_rest). Where
 * that is this manifest and the last transaction, the index has exactly what the manifest places: neither the
 * manifest's rows nor those of the states are read. That the files are there with their sizes, the spares' and the
 * payload folder's too, is judged as always. What is not quite so is left to the phases.
 */
#include "loader/load/load_internal.h"
#include "loader/load/load_work.h"

#include "base/file.h"
#include "loader/index/index.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- files ------------------------------------------------------------------------ */

enum { LOOKS = 1 << 14, PIECE = 256 }; // files that are looked at together, and by one worker at a time

/* Files of a tier, or with .s NULL of the payload folder, where they may be missing. */
struct looks {
    const struct load *l;
    const struct tier_store *s;
    struct buf names;
    size_t name[LOOKS]; // where it begins
    int64_t size[LOOKS], n_seen;
    int n;
    atomic_bool differs;
};

static const char not_at_rest[] = "not all is as the last load left it";

static bool piece_differs(const struct looks *k, int first, int n, struct err *err)
{
    struct medium_object object[PIECE];
    bool there[PIECE];

    for (int i = 0; i < n; i++) {
        const char *name = k->names.at + k->name[first + i];
        int64_t size = k->size[first + i];
        object[i] = (struct medium_object){ name, size };
        if (!k->s)
            free(load_find_payload(k->l, name, &size));
        there[i] = size == k->size[first + i];
    }
    if (k->s && tier_store_look_at(k->s, object, n, there, err))
        return true;
    return memchr(there, false, (size_t)n);
}

static int look_piece(void *arg, int i, struct err *err)
{
    struct looks *k = arg;
    int first = i * PIECE, n = k->n - first < PIECE ? k->n - first : PIECE;

    if (!k->differs && piece_differs(k, first, n, err))
        k->differs = true;
    return 0;
}

/* Looks at what was added so far. */
static int look(struct looks *k, struct err *err)
{
    const struct load_work work = { look_piece, k, (k->n + PIECE - 1) / PIECE, k->l->o.jobs };

    if (buf_failed(&k->names))
        return err_nomem(err);
    int code = load_share(&work, err);
    k->n_seen += k->n;
    k->n = 0;
    buf_clear(&k->names);
    return code || !k->differs ? code : err_set(err, ERR_FAIL, not_at_rest);
}

static int add(void *arg, const char *name, int64_t size, struct err *err)
{
    struct looks *k = arg;

    if (k->n == LOOKS && look(k, err))
        return err->code;
    k->name[k->n] = k->names.n;
    k->size[k->n++] = size;
    buf_add(&k->names, name, strlen(name) + 1);
    return 0;
}

static int add_object(void *arg, const struct medium_object *object, struct err *err)
{
    return add(arg, object->key, object->size, err);
}

/* ---- tiers ------------------------------------------------------------------------ */

static int check_spares(struct tier_store *s, struct err *err)
{
    int code = tier_store_read_spares(s, err);
    bool *there = calloc((size_t)s->in.n + 1, sizeof(*there));

    if (!code && !there)
        code = err_nomem(err);
    if (!code)
        code = tier_store_look(s, 0, s->in.n, there, err);
    if (!code && s->in.n && memchr(there, false, (size_t)s->in.n))
        code = err_set(err, ERR_FAIL, not_at_rest);
    free(there);
    return code;
}

static int check_files(struct looks *k, struct tier_store *s, int64_t n_placed, struct err *err)
{
    k->n_seen = 0;
    k->s = s;
    if (tier_store_each_placed(s, add_object, k, err) || look(k, err) || check_spares(s, err))
        return err->code;
    if (k->n_seen != n_placed)
        return err_set(err, ERR_FAIL, not_at_rest);
    k->s = NULL;
    if (!k->l->o.payloads)
        return 0;
    return state_each_placed(s->state, s->load.number, add, k, err) || look(k, err) ? err->code : 0;
}

/* Does the state say that nothing was left to do, for the manifest that is in force? */
static int check_state(struct tier_store *s, struct state_rest *rest, struct err *err)
{
    if (state_get_rest(s->state, s->load.number, rest, err))
        return err->code;
    bool still = *rest->manifest && rest->generation == state_generation(s->state) && !s->load.running &&
                 strcmp(rest->manifest, s->load.manifest) == 0 && !state_has_parts(s->state);
    return still ? 0 : err_set(err, ERR_FAIL, not_at_rest);
}

/* Opens a store without its rows; a folder that is not there yet is left to the phases. */
static int open_store(struct load *l, int tier, struct err *err)
{
    const struct tier *t = &l->manifest.tiers.at[tier];
    const struct tier_store_options o = { .tier = t,
                                          .name_space = l->name_space,
                                          .context = "",
                                          .use = STORE_CHANGE,
                                          .share = l->o.share,
                                          .group = l->o.group };

    if (!tier_is_folder(t) || !file_is_dir(t->uri))
        return err_set(err, ERR_FAIL, not_at_rest);
    return tier_store_open(&l->store[tier], &o, err);
}

static int check_tiers(struct load *l, struct state_rest rest[TIER_MAX], struct err *err)
{
    const struct tiers *tiers = &l->manifest.tiers;
    bool any = false;

    for (int t = 0; t < tiers->n; t++) {
        l->report.n_tiers = t + 1;
        if (!tier_folder(&tiers->at[t])) /* not served: nothing was left out */
            continue;
        if (open_store(l, t, err) || check_state(&l->store[t], &rest[t], err))
            return err->code;
        any = true;
    }
    return any ? digest_file(l->o.manifest, l->manifest.digest, err) : err_set(err, ERR_FAIL, not_at_rest);
}

static int check_all(struct load *l, struct looks *k, struct state_rest rest[TIER_MAX], struct err *err)
{
    if (manifest_read_header(&l->manifest, l->o.manifest, err))
        return err->code;
    l->name_space = l->o.name_space ? l->o.name_space : l->manifest.model_digest;
    if (strlen(l->name_space) >= INDEX_TEXT || check_tiers(l, rest, err))
        return ERR_FAIL;
    for (int t = 0; t < l->report.n_tiers; t++)
        if (l->store[t].tier &&
            (strcmp(rest[t].manifest, l->manifest.digest) != 0 || check_files(k, &l->store[t], rest[t].n_placed, err)))
            return ERR_FAIL;
    return 0;
}

/* ---- the load --------------------------------------------------------------------- */

static void report(struct load *l, const struct state_rest rest[TIER_MAX])
{
    struct load_report *r = &l->report;

    r->nothing_to_do = true;
    for (int t = 0; t < r->n_tiers; t++) {
        const struct tier_store *s = &l->store[t];
        if (!s->tier)
            continue;
        r->n_goals += (int)rest[t].n_placed;
        r->tier[t] = (struct load_tier){
            .name = s->tier->name, .capacity = s->tier->capacity, .placed = rest[t].bytes, .other = s->other_bytes
        };
    }
    r->n_operations[OP_KEEP] = r->n_goals;
}

bool load_at_rest(struct load *l)
{
    const struct load_options *o = &l->o;
    bool may_be = o->manifest && strcmp(o->manifest, "-") != 0 && o->direction == LOAD_FORWARD && !o->repair &&
                  !o->chunks && !o->dry_run;
    struct looks *k = may_be ? calloc(1, sizeof(*k)) : NULL;
    struct state_rest rest[TIER_MAX] = { 0 };
    struct err why;

    if (!k)
        return false;
    k->l = l;
    bool at_rest = !check_all(l, k, rest, &why);
    buf_release(&k->names);
    free(k);
    if (at_rest) {
        report(l, rest);
        return true;
    }
    for (int t = 0; t < l->report.n_tiers; t++)
        tier_store_close(&l->store[t]);
    manifest_release(&l->manifest);
    l->report = (struct load_report){ 0 };
    return false;
}

/* ---- what the stores write down ---------------------------------------------------- */

int load_put_rest(const struct load *l, int tier, struct err *err)
{
    const struct tier_store *s = &l->store[tier];
    struct state_rest rest = { .n_placed = l->planned.count[tier], .bytes = l->planned.bytes[tier] };

    if (l->report.n_skipped || l->report.n_away || l->o.chunks)
        return 0;
    memcpy(rest.manifest, l->manifest.digest, sizeof(rest.manifest));
    return state_put_rest(s->state, s->load.number, &rest, err);
}

int load_rest(struct load *l, struct err *err)
{
    struct state_rest rest;

    for (int t = 0; t < l->report.n_tiers && !l->o.dry_run; t++) {
        struct tier_store *s = &l->store[t];
        int code = s->tier ? check_state(s, &rest, err) : 0;
        if (code && (code != ERR_FAIL || load_put_rest(l, t, err) || tier_store_commit(s, err)))
            return err->code;
    }
    return 0;
}
