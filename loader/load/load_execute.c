/* load_execute.c - carries out the steps. Payloads are placed in batches: several workers copy the files of a batch,
 * one flush per tier makes them durable, they are read back, and one transaction names them. Removals come in series: a
 * transaction forgets the payloads, the index is written without them, then the files are deleted.
 */
#include "base/clock.h"
#include "loader/load/load_internal.h"
#include "loader/load/load_work.h"

#include "base/file.h"
#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH_FILES = 1024 };
static const int64_t batch_bytes = (int64_t)1 << 30;

/* While payloads are placed, the indexes are written again after publish_every seconds plus publish_share times the
 * duration of the last write. */
static const double publish_every = 1, publish_share = 10;

struct publishing {
    double next; // time of the next write of the indexes
};

/* ---- transactions -------------------------------------------------------------------- */

static void commit_all(struct load *l)
{
    struct err why;

    for (int s = 0; s < l->report.n_tiers; s++)
        if (load_serves(l, s) && tier_store_commit(&l->store[s], &why))
            load_give_up(l, s, &why);
}

static void publish_all(struct load *l, struct publishing *p)
{
    double start = clock_now();
    struct err why;

    for (int s = 0; s < l->report.n_tiers; s++)
        if (load_serves(l, s) && tier_store_publish(&l->store[s], &why))
            load_give_up(l, s, &why);
    double end = clock_now();
    p->next = end + publish_every + publish_share * (end - start);
}

/* Reports that `done` steps are done. */
static void end_steps(struct load *l, int done, struct publishing *p)
{
    load_progress(l, LOAD_STEPS, done, l->order.n);
    if (clock_now() > p->next)
        publish_all(l, p);
}

/* ---- removals -------------------------------------------------------------------------- */

enum { REMOVALS = 256 }; // per worker: enough to pay for starting it, and waiting for it on a busy machine

/* Files of forgotten copies. */
struct removal {
    struct load *l;
    const struct copy **copy; // (n)
    bool *shared;             // (n) other payloads use the same file
    int n;
    atomic_bool failed[TIER_MAX]; // a file could not be removed
    atomic_int n_failed;
    struct err why; // of the first failure
};

static int remove_one(void *arg, int i, struct err *err)
{
    struct removal *r = arg;
    const struct copy *c = r->copy[i];
    struct err why;

    (void)err;
    if (r->shared[i] || !tier_store_remove_own(&r->l->store[c->store], load_entry(r->l, c), &why))
        return 0;
    r->failed[c->store] = true;
    if (r->n_failed++ == 0)
        r->why = why;
    return 0;
}

/* A file that cannot be removed is left for the next load's sweep. */
static int remove_files(struct removal *r, struct err *err)
{
    struct load *l = r->l;
    int jobs = l->o.jobs, worth = 1 + r->n / REMOVALS;
    struct err why;

    for (int i = 0; i < r->n; i++) {
        int store = r->copy[i]->store;
        r->shared[i] = true; // if the state cannot tell
        if (!load_serves(l, store) ||
            tier_store_shares(&l->store[store], load_entry(l, r->copy[i]), &r->shared[i], &why))
            r->failed[store] = true;
    }
    int code = load_share(&(struct load_work){ remove_one, r, r->n, jobs < worth ? jobs : worth }, err);
    for (int s = 0; s < l->report.n_tiers; s++)
        l->store[s].unswept |= r->failed[s];
    if (r->n_failed)
        l->o.warn("%s: the next load removes it", r->why.msg);
    return code;
}

/* A payload stays if what replaces it could not be placed, or readers do not see that yet. */
static bool must_stay(const struct load *l, const struct copy *c)
{
    const struct goal *g = load_goal(l, load_entry(l, c)->id);

    return !load_serves(l, c->store) ||
           (g && !c->stay && !c->damaged && g->here < 0 && (g->left || !load_serves(l, g->want.tier)));
}

/* Forgets copies. The index is written twice, so that readers see the replacements first. */
static void forget_copies(struct removal *r, struct publishing *p)
{
    struct load *l = r->l;
    struct err why;
    int n = 0;

    publish_all(l, p);
    for (int i = 0; i < r->n; i++) {
        const struct copy *c = r->copy[i];
        if (must_stay(l, c))
            l->held[c->store] = true;
        else if (tier_store_forget(&l->store[c->store], c->entry, &why))
            load_give_up(l, c->store, &why);
        else {
            l->changed = true;
            l->used[c->store] -= load_entry(l, c)->bytes;
            r->copy[n++] = c;
        }
    }
    r->n = n;
    commit_all(l);
    publish_all(l, p);
}

static int remove_copies(struct load *l, const struct copy **copy, int n, struct publishing *p, struct err *err)
{
    struct removal r = { .l = l, .copy = copy, .n = n };

    if (!n)
        return 0;
    r.shared = calloc((size_t)n, sizeof(*r.shared));
    if (!r.shared)
        return err_nomem(err);
    forget_copies(&r, p);
    int code = remove_files(&r, err);
    free(r.shared);
    return code;
}

/* Carries out the series of removals from step `first`; *end: the step after it. */
static int remove_series(struct load *l, int first, int *end, struct publishing *p, struct err *err)
{
    const struct copy **copy = calloc((size_t)(l->order.n - first), sizeof(const struct copy *));
    int n = 0;

    if (!copy)
        return err_nomem(err);
    for (*end = first; *end < l->order.n && step_kind(&l->order.at[*end]) == STEP_REMOVE; ++*end)
        copy[n++] = &l->copy[l->order.at[*end].file];
    int code = remove_copies(l, copy, n, p, err);
    end_steps(l, *end, p);
    free(copy);
    return code;
}

/* Missing or damaged payloads lose their names first, so that whole ones can take them. */
static int remove_damaged(struct load *l, struct publishing *p, struct err *err)
{
    const struct copy **copy = calloc((size_t)l->n_damaged + 1, sizeof(const struct copy *));

    if (!copy)
        return err_nomem(err);
    for (int i = 0; i < l->n_damaged; i++) {
        l->damaged[i].damaged = true;
        copy[i] = &l->damaged[i];
    }
    int code = remove_copies(l, copy, l->n_damaged, p, err);
    free(copy);
    return code;
}

/* ---- placing --------------------------------------------------------------------------------- */

/* Who else uses the object of a step. Contexts with the same tokens share one object. */
enum share { OBJECT_OWN, OBJECT_THERE, OBJECT_TWICE }; // nobody; the tier has it already; an earlier step of the batch

struct batch {
    struct load *l;
    const struct step *step;
    int n;
    enum share share[BATCH_FILES];
    struct err said[BATCH_FILES]; // why a step failed; .code 0: it did not
};

static const struct entry *want_of(const struct batch *b, int i)
{
    return &b->l->goal[b->step[i].goal].want;
}

static bool is_open(const struct batch *b, int i)
{
    return !b->l->goal[b->step[i].goal].left && !b->said[i].code;
}

static int copy_packed(const struct load *l, const struct entry *want, struct err *err)
{
    char *path = file_join(l->o.payloads, want->payload);

    if (!path)
        return err_nomem(err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct blob from = blob_of_file(fd);
    from.size = want->size; /* a known size saves a stat() */
    int code = fd < 0 ? err_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno))
                      : tier_store_put(&l->store[want->tier], &from, want, err);
    if (fd >= 0)
        close(fd);
    free(path);
    return code;
}

static int copy_placed(const struct load *l, const struct copy *c, const struct entry *want, struct err *err)
{
    struct blob from;

    if (tier_store_get(&l->store[c->store], load_entry(l, c), &from, err))
        return err->code;
    int code = tier_store_put(&l->store[want->tier], &from, want, err);
    blob_close(&from);
    return code;
}

static int copy_one(void *arg, int i, struct err *err)
{
    const struct batch *b = arg;
    const struct load *l = b->l;
    const struct entry *want = want_of(b, i);
    int file = b->step[i].file;

    if (b->share[i] == OBJECT_TWICE)
        return 0;
    if (b->share[i] == OBJECT_THERE) { /* only a damaged one may be overwritten */
        int code = tier_store_check(&l->store[want->tier], want, err);
        if (code != ERR_FORMAT)
            return code;
    }
    return file < 0 ? copy_packed(l, want, err) : copy_placed(l, &l->copy[file], want, err);
}

static int read_back_one(void *arg, int i, struct err *err)
{
    const struct batch *b = arg;
    const struct entry *want = want_of(b, i);

    return tier_store_read_back(&b->l->store[want->tier], want, err);
}

struct batch_work {
    struct batch *batch;
    int (*each)(void *arg, int i, struct err *err);
};

static int try_one(void *arg, int i, struct err *err)
{
    const struct batch_work *w = arg;
    struct batch *b = w->batch;

    if (!is_open(b, i) || !w->each(b, i, err))
        return 0;
    b->said[i] = *err;
    err_wrap(&b->said[i], "context '%.80s'", want_of(b, i)->id);
    return err->code == ERR_NOMEM ? err->code : 0;
}

static int run_batch(struct batch *b, int (*each)(void *arg, int i, struct err *err), struct err *err)
{
    return load_share(&(struct load_work){ try_one, &(struct batch_work){ b, each }, b->n, b->l->o.jobs }, err);
}

static void flush_batch(struct batch *b)
{
    bool written[TIER_MAX] = { 0 };
    struct err why[TIER_MAX];

    for (int i = 0; i < b->n; i++)
        written[want_of(b, i)->tier] |= is_open(b, i);
    for (int s = 0; s < b->l->report.n_tiers; s++)
        if (!written[s] || !tier_store_flush(&b->l->store[s], &why[s]))
            why[s].code = 0;
    for (int i = 0; i < b->n; i++)
        if (is_open(b, i) && why[want_of(b, i)->tier].code)
            b->said[i] = why[want_of(b, i)->tier];
}

static int name_one(struct load *l, struct goal *g, struct err *err)
{
    struct entry e;

    if (entry_copy(&e, &g->want, err) || tier_store_add(&l->store[g->want.tier], &e, err))
        return err->code;
    g->placed = l->changed = true;
    l->used[g->want.tier] += g->want.bytes;
    l->report.tier[g->want.tier].written += g->want.size;
    return 0;
}

/* A payload that could not be placed may have left a file: the next load sweeps it. */
static void name_batch(struct batch *b)
{
    struct load *l = b->l;
    struct err why;

    for (int i = 0; i < b->n; i++) {
        struct goal *g = &l->goal[b->step[i].goal];
        if (g->left)
            continue;
        if (b->said[i].code) {
            l->store[g->want.tier].unswept = true;
            load_leave_out(l, g, &b->said[i]);
        } else if (name_one(l, g, &why))
            load_give_up(l, g->want.tier, &why);
    }
    commit_all(l);
}

/* Payloads that had to stay may leave too few bytes for this one. */
static bool has_space(struct batch *b, int i)
{
    const struct load *l = b->l;
    const struct entry *want = want_of(b, i);
    const struct load_tier *t = &l->report.tier[want->tier];

    if (!l->held[want->tier] || l->used[want->tier] + want->bytes <= t->capacity)
        return true;
    err_set(&b->said[i], ERR_FAIL, "context '%.80s': tier '%s' lacks %lld bytes", want->id, t->name,
            (long long)(l->used[want->tier] + want->bytes - t->capacity));
    return false;
}

/* objects: of the steps so far, by store and name. */
static int find_share(struct batch *b, int i, struct map *objects, struct err *err)
{
    const struct entry *want = want_of(b, i);
    char key[OBJECT_FILE + 1] = { (char)want->tier };
    size_t n = strlen(want->file) + 1;
    bool shares, first;

    memcpy(key + 1, want->file, n - 1);
    if (tier_store_shares(&b->l->store[want->tier], want, &shares, &b->said[i]))
        return 0;
    if (map_add(objects, key, n, &first) < 0)
        return err_nomem(err);
    b->share[i] = !first ? OBJECT_TWICE : shares ? OBJECT_THERE : OBJECT_OWN;
    return 0;
}

/* Takes steps from number `first`. */
static int take_batch(struct batch *b, int first, struct err *err)
{
    const struct order *order = &b->l->order;
    struct map objects = { 0 };
    int64_t bytes = 0;
    int code = 0;

    b->step = &order->at[first];
    for (b->n = 0; !code && b->n < order->n - first && b->n < BATCH_FILES; b->n++) {
        if (step_kind(&b->step[b->n]) != STEP_PLACE)
            break;
        bytes += want_of(b, b->n)->size;
        if (b->n && bytes > batch_bytes)
            break;
        b->said[b->n].code = 0;
        if (is_open(b, b->n) && has_space(b, b->n))
            code = find_share(b, b->n, &objects, err);
    }
    map_release(&objects);
    return code;
}

/* Carries out the batch from step `first`; *end: the step after it. */
static int place_batch(struct batch *b, int first, int *end, struct publishing *p, struct err *err)
{
    if (take_batch(b, first, err))
        return err->code;
    *end = first + b->n;
    if (run_batch(b, copy_one, err))
        return err->code;
    flush_batch(b);
    if (run_batch(b, read_back_one, err))
        return err->code;
    name_batch(b);
    end_steps(b->l, *end, p);
    return 0;
}

/* ---- all steps ------------------------------------------------------------------------------- */

static int execute(struct load *l, struct batch *b, struct publishing *p, struct err *err)
{
    int code = 0;

    load_progress(l, LOAD_STEPS, 0, l->order.n);
    for (int i = 0, end = 0; i < l->order.n && !code; i = end)
        code = step_kind(&l->order.at[i]) == STEP_REMOVE ? remove_series(l, i, &end, p, err)
                                                         : place_batch(b, i, &end, p, err);
    return code;
}

int load_execute(struct load *l, struct err *err)
{
    struct publishing p = { .next = clock_now() + publish_every };
    struct batch *b = calloc(1, sizeof(*b));

    if (!b)
        return err_nomem(err);
    b->l = l;
    for (int s = 0; s < l->report.n_tiers; s++)
        for (int i = 0; i < l->store[s].in.n; i++)
            l->used[s] += l->store[s].in.at[i].bytes;
    int code = remove_damaged(l, &p, err);
    if (!code && l->order.n)
        code = execute(l, b, &p, err);
    free(b);
    return code;
}
