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

static int commit_all(struct load *l, struct err *err)
{
    for (int s = 0; s < l->report.n_tiers; s++)
        if (l->store[s].tier && tier_store_commit(&l->store[s], err))
            return err->code;
    return 0;
}

static int publish_all(struct load *l, struct publishing *p, struct err *err)
{
    double start = clock_now();

    for (int s = 0; s < l->report.n_tiers; s++)
        if (l->store[s].tier && tier_store_publish(&l->store[s], err))
            return err_wrap(err, "tier '%s'", l->store[s].tier->name);
    double end = clock_now();
    *p = (struct publishing){ .next = end + publish_every + publish_share * (end - start) };
    return 0;
}

/* Reports that `done` steps are done. */
static int end_steps(struct load *l, int done, struct publishing *p, struct err *err)
{
    load_progress(l, LOAD_STEPS, done, l->order.n);
    return clock_now() > p->next ? publish_all(l, p, err) : 0;
}

/* ---- removals -------------------------------------------------------------------------- */

enum { REMOVALS = 256 }; // per worker: enough to pay for starting it, and waiting for it on a busy machine

/* Files of forgotten copies. */
struct removal {
    const struct load *l;
    const struct copy *const *copy; // (n)
    bool *shared;                   // (n) other payloads use the same file
    int n;
};

static int remove_one(void *arg, int i, struct err *err)
{
    const struct removal *r = arg;
    const struct copy *c = r->copy[i];

    return r->shared[i] ? 0 : tier_store_remove_own(&r->l->store[c->store], load_entry(r->l, c), err);
}

static int remove_files(struct removal *r, struct err *err)
{
    for (int i = 0; i < r->n; i++)
        if (tier_store_shares(&r->l->store[r->copy[i]->store], load_entry(r->l, r->copy[i]), &r->shared[i], err))
            return err->code;
    int jobs = r->l->o.jobs, worth = 1 + r->n / REMOVALS;
    return load_share(&(struct load_work){ remove_one, r, r->n, jobs < worth ? jobs : worth }, err);
}

/* Forgets n copies, then removes their files. The index is written twice, so that readers see the replacements
 * first. */
static int remove_copies(struct load *l, const struct copy *const *copy, int n, struct publishing *p, struct err *err)
{
    struct removal r = { l, copy, NULL, n };

    if (publish_all(l, p, err))
        return err->code;
    for (int i = 0; i < n; i++)
        if (tier_store_forget(&l->store[copy[i]->store], copy[i]->entry, err))
            return err->code;
    if (commit_all(l, err) || publish_all(l, p, err))
        return err->code;
    r.shared = calloc((size_t)n, sizeof(*r.shared));
    int code = r.shared ? remove_files(&r, err) : err_nomem(err);
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
    int code = remove_copies(l, copy, n, p, err) ? err->code : end_steps(l, *end, p, err);
    free(copy);
    return code;
}

/* Missing or damaged payloads lose their names first, so that whole ones can take them. */
static int remove_damaged(struct load *l, struct publishing *p, struct err *err)
{
    const struct copy **copy = calloc((size_t)l->n_damaged + 1, sizeof(const struct copy *));

    if (!copy)
        return err_nomem(err);
    for (int i = 0; i < l->n_damaged; i++)
        copy[i] = &l->damaged[i];
    int code = l->n_damaged ? remove_copies(l, copy, l->n_damaged, p, err) : 0;
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
};

static const struct entry *want_of(const struct batch *b, int i)
{
    return &b->l->goal[b->step[i].goal].want;
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

    if (b->share[i] == OBJECT_TWICE ||
        (b->share[i] == OBJECT_THERE && tier_store_has(&l->store[want->tier], want, STORE_CONTENT)))
        return 0;
    int code = file < 0 ? copy_packed(l, want, err) : copy_placed(l, &l->copy[file], want, err);

    return code ? err_wrap(err, "context '%.80s'", want->id) : 0;
}

static int read_back_one(void *arg, int i, struct err *err)
{
    const struct batch *b = arg;
    const struct entry *want = want_of(b, i);

    return tier_store_read_back(&b->l->store[want->tier], want, err) ? err_wrap(err, "context '%.80s'", want->id) : 0;
}

static int run_batch(struct batch *b, int (*each)(void *arg, int i, struct err *err), struct err *err)
{
    return load_share(&(struct load_work){ each, b, b->n, b->l->o.jobs }, err);
}

static int flush_batch(const struct batch *b, struct err *err)
{
    bool written[TIER_MAX] = { 0 };

    for (int i = 0; i < b->n; i++)
        written[want_of(b, i)->tier] = true;
    for (int s = 0; s < b->l->report.n_tiers; s++)
        if (written[s] && tier_store_flush(&b->l->store[s], err))
            return err->code;
    return 0;
}

static int name_batch(struct batch *b, struct err *err)
{
    for (int i = 0; i < b->n; i++) {
        const struct entry *want = want_of(b, i);
        struct entry e;
        if (entry_copy(&e, want, err))
            return err->code;
        e.present = e.placed = true;
        if (tier_store_add(&b->l->store[want->tier], &e, err))
            return err->code;
        b->l->report.tier[want->tier].written += want->size;
    }
    return commit_all(b->l, err);
}

/* objects: of the steps so far, by store and name. */
static int find_share(struct batch *b, int i, struct map *objects, struct err *err)
{
    const struct entry *want = want_of(b, i);
    char key[OBJECT_FILE + 1] = { (char)want->tier };
    size_t n = strlen(want->file) + 1;
    bool shares, first;

    memcpy(key + 1, want->file, n - 1);
    if (tier_store_shares(&b->l->store[want->tier], want, &shares, err))
        return err->code;
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
    if (run_batch(b, copy_one, err) || flush_batch(b, err) || run_batch(b, read_back_one, err) || name_batch(b, err))
        return err->code;
    return end_steps(b->l, *end, p, err);
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
    int code = remove_damaged(l, &p, err);
    if (!code && l->order.n)
        code = execute(l, b, &p, err);
    free(b);
    return code;
}
