/* load_execute.c - the steps. Payloads are placed in batches: several workers copy the files of a batch, one flush per
 * tier makes them safe, they are read back, one transaction names them. Removals come in runs: a transaction forgets
 * the payloads, the index without them is put in place, then the files go.
 */
#include "base/clock.h"
#include "loader/load/load_internal.h"
#include "loader/load/load_work.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH_FILES = 1024 };
static const int64_t batch_bytes = (int64_t)1 << 30;

/* Seconds between two writes of the indexes while payloads are placed: at least so many, and so many times what the
 * last one took. */
static const double publish_every = 1, publish_share = 10;

struct publishing {
    double next; // when the indexes will be written again
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
    p->next = end + publish_every + publish_share * (end - start);
    return 0;
}

/* ---- removals -------------------------------------------------------------------------- */

/* Forgets n copies, then removes their files. Readers must have what replaces them, so the index is written twice. */
static int remove_copies(struct load *l, const struct copy *const *copy, int n, struct publishing *p, struct err *err)
{
    if (publish_all(l, p, err))
        return err->code;
    for (int i = 0; i < n; i++)
        if (tier_store_forget(&l->store[copy[i]->store], copy[i]->entry, err))
            return err->code;
    if (commit_all(l, err) || publish_all(l, p, err))
        return err->code;
    for (int i = 0; i < n; i++)
        if (tier_store_remove(&l->store[copy[i]->store], load_entry(l, copy[i]), err))
            return err->code;
    return 0;
}

/* The run of removals from step `first` on; *end: the step after it. */
static int remove_run(struct load *l, int first, int *end, struct publishing *p, struct err *err)
{
    const struct copy **copy = calloc((size_t)(l->order.n - first), sizeof(const struct copy *));
    int n = 0;

    if (!copy)
        return err_nomem(err);
    for (*end = first; *end < l->order.n && l->order.at[*end].kind == STEP_REMOVE; ++*end)
        copy[n++] = &l->copy[l->order.at[*end].file];
    int code = remove_copies(l, copy, n, p, err);
    free(copy);
    return code;
}

/* Payloads that are missing or damaged lose their names first, so that whole ones can have them. */
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

/* What a step of a batch does for its object, which other payloads may have too: contexts with the same tokens. */
enum share { OBJECT_OWN, OBJECT_THERE, OBJECT_TWICE }; // nobody else has it; the tier has it; an earlier step puts it

struct batch {
    struct load *l;
    const struct step *step;
    int n;
    enum share share[BATCH_FILES];
};

static int copy_packed(const struct load *l, const struct goal *g, struct err *err)
{
    char *path = file_join(l->o.payloads, g->want.payload);

    if (!path)
        return err_nomem(err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct blob from = blob_of_file(fd);
    int code = fd < 0 ? err_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno))
                      : tier_store_put(&l->store[g->store], &from, &g->want, err);
    if (fd >= 0)
        close(fd);
    free(path);
    return code;
}

static int copy_placed(const struct load *l, const struct copy *c, const struct goal *g, struct err *err)
{
    struct blob from;

    if (tier_store_get(&l->store[c->store], load_entry(l, c), &from, err))
        return err->code;
    int code = tier_store_put(&l->store[g->store], &from, &g->want, err);
    blob_close(&from);
    return code;
}

static int copy_piece(void *arg, int i, struct err *err)
{
    const struct batch *b = arg;
    const struct load *l = b->l;
    const struct goal *g = &l->goal[b->step[i].goal];
    int file = b->step[i].file;

    if (b->share[i] == OBJECT_TWICE ||
        (b->share[i] == OBJECT_THERE && tier_store_has(&l->store[g->store], &g->want, STORE_CONTENT)))
        return 0;
    int code = file < 0 ? copy_packed(l, g, err) : copy_placed(l, &l->copy[file], g, err);

    return code ? err_wrap(err, "context '%.80s'", g->want.id) : 0;
}

static int read_back_piece(void *arg, int i, struct err *err)
{
    const struct batch *b = arg;
    const struct goal *g = &b->l->goal[b->step[i].goal];

    return tier_store_read_back(&b->l->store[g->store], &g->want, err) ? err_wrap(err, "context '%.80s'", g->want.id)
                                                                       : 0;
}

static int run_batch(struct batch *b, int (*piece)(void *arg, int i, struct err *err), struct err *err)
{
    return load_share(&(struct load_work){ piece, b, b->n, b->l->o.jobs }, err);
}

static int flush_batch(const struct batch *b, struct err *err)
{
    bool written[TIER_MAX] = { 0 };

    for (int i = 0; i < b->n; i++)
        written[b->l->goal[b->step[i].goal].store] = true;
    for (int s = 0; s < b->l->report.n_tiers; s++)
        if (written[s] && tier_store_flush(&b->l->store[s], err))
            return err->code;
    return 0;
}

static int name_batch(struct batch *b, struct err *err)
{
    for (int i = 0; i < b->n; i++) {
        struct goal *g = &b->l->goal[b->step[i].goal];
        struct entry e = g->want;
        g->borrows = true;
        e.present = e.placed = true;
        e.before = false;
        if (tier_store_add(&b->l->store[g->store], &e, err))
            return err->code;
        b->l->report.tier[g->store].written += g->want.size;
    }
    return commit_all(b->l, err);
}

static int find_shared(struct batch *b, struct err *err)
{
    struct map there = { 0 };
    int code = 0;

    for (int i = 0; i < b->n && !code; i++) {
        const struct goal *g = &b->l->goal[b->step[i].goal];
        const struct tier_store *s = &b->l->store[g->store];
        bool shares, first;
        char key[OBJECT_FILE + 8];
        int n = snprintf(key, sizeof(key), "%d %s", g->store, g->want.file);
        code = tier_store_shares(s, &g->want, &shares, err);
        if (!code && map_add(&there, key, (size_t)n, &first) < 0)
            code = err_nomem(err);
        if (!code)
            b->share[i] = !first ? OBJECT_TWICE : shares ? OBJECT_THERE : OBJECT_OWN;
    }
    map_release(&there);
    return code;
}

/* The batch from step `first` on; *end: the step after it. */
static int place_batch(struct load *l, int first, int *end, struct err *err)
{
    struct batch b = { .l = l, .step = &l->order.at[first] };
    int64_t bytes = 0;

    for (*end = first; *end < l->order.n && l->order.at[*end].kind == STEP_PLACE && b.n < BATCH_FILES; ++*end) {
        bytes += l->goal[l->order.at[*end].goal].want.size;
        if (b.n++ && bytes > batch_bytes) {
            b.n--;
            break;
        }
    }
    if (find_shared(&b, err) || run_batch(&b, copy_piece, err) || flush_batch(&b, err) ||
        run_batch(&b, read_back_piece, err))
        return err->code;
    return name_batch(&b, err);
}

int load_execute(struct load *l, struct err *err)
{
    struct publishing p = { .next = clock_now() + publish_every };
    int code = remove_damaged(l, &p, err);

    if (!l->order.n)
        return code;
    load_progress(l, LOAD_STEPS, 0, l->order.n);
    for (int i = 0, end = 0; i < l->order.n && !code; i = end) {
        code = l->order.at[i].kind == STEP_REMOVE ? remove_run(l, i, &end, &p, err) : place_batch(l, i, &end, err);
        if (!code && clock_now() > p.next)
            code = publish_all(l, &p, err);
        load_progress(l, LOAD_STEPS, end, l->order.n);
    }
    return code;
}
