/* load_run.c - carries the steps out. First it keeps the state before on disk (the pending receipt); then it removes,
 * stages and places files; then it marks what is placed and what is spare, and writes the receipt. When a step fails it
 * opens a load back to the pending receipt and runs that.
 */
#include "base/clock.h"
#include "base/file.h"
#include "loader/load/load_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double index_every = 1; /* seconds between two writes of the indexes while payloads are placed */

/* ---- the state before, kept on disk ---------------------------------------- */

static int move_file(const char *from, const char *to, struct err *err)
{
    return rename(from, to) ? err_set(err, ERR_IO, "cannot rename '%s' to '%s': %s", from, to, strerror(errno)) : 0;
}

static int remove_if_there(const char *path, struct err *err)
{
    return unlink(path) && errno != ENOENT ? err_set(err, ERR_IO, "cannot remove '%s': %s", path, strerror(errno)) : 0;
}

/* Writes a receipt of what is placed in the tiers; it names no manifest. */
static int write_found(const struct load *l, struct err *err)
{
    struct receipt_made made = { .manifest_digest = "", .tiers = &l->manifest.tiers };
    size_t max = 1;

    for (int s = 0; s < l->n_stores; s++)
        max += (size_t)l->store[s].in.n;
    struct receipt_row *row = calloc(max, sizeof(*row));
    if (!row)
        return err_nomem(err);
    for (int s = 0; s < l->n_stores; s++) {
        for (int i = 0; i < l->store[s].in.n; i++) {
            struct entry *e = &l->store[s].in.at[i];
            if (e->gone || e->spare)
                continue;
            e->tier = s;
            row[made.n++] = (struct receipt_row){ e->id, e, OP_KEEP };
        }
    }
    made.row = row;
    int code = receipt_write(l->pending, &made, err);
    free(row);
    return code;
}

static int copy_receipt(const struct load *l, struct err *err)
{
    char checksum[XXH3_HEX];
    int64_t size;

    return tier_store_copy(l->receipt, l->pending, &size, checksum, err);
}

/* From here to the end of the load, `pending` says which state to return to. */
static int save_state_before(struct load *l, struct err *err)
{
    struct receipt r;
    bool matches;

    if (file_exists(l->pending))
        return 0; /* of a killed load: its state before is the one to return to */
    if (l->o.direction == LOAD_BACK)
        return move_file(l->before, l->pending, err);
    if (load_read_receipt(l, &r, err))
        return err->code;
    int code = load_matches_receipt(l, &r, &matches, err);
    if (!code)
        code = matches && *r.manifest_digest ? copy_receipt(l, err) : write_found(l, err);
    receipt_release(&r);
    return code;
}

/* ---- steps ------------------------------------------------------------------ */

static int write_indexes(struct load *l, struct err *err)
{
    for (int s = 0; s < l->n_stores; s++)
        if (l->store[s].tier && tier_store_flush(&l->store[s], err))
            return err->code;
    return 0;
}

/* Carries out a run of removals from step `i` on: the indexes forget the files, then the files go. *end: the first step
 * after the run. */
static int remove_run(struct load *l, int i, int *end, struct err *err)
{
    for (*end = i; *end < l->steps.n && l->steps.at[*end].kind == STEP_REMOVE; ++*end) {
        load_entry(l, l->steps.at[*end].file)->gone = true;
        l->store[l->file[l->steps.at[*end].file].store].changed = true;
    }
    if (write_indexes(l, err))
        return err->code;
    for (; i < *end; i++) {
        int file = l->steps.at[i].file;
        if (tier_store_unlink(&l->store[l->file[file].store], load_entry(l, file)->file, err))
            return err->code;
    }
    return 0;
}

static char *source_path(const struct load *l, const struct step *step)
{
    if (step->file < 0)
        return file_join(l->o.payloads, l->goal[step->goal].payload);
    return tier_store_path(&l->store[l->file[step->file].store], load_entry(l, step->file)->file);
}

static int place_payload(struct load *l, const struct step *step, struct err *err)
{
    const struct load_goal *g = &l->goal[step->goal];
    char *from = source_path(l, step);
    int code = from ? tier_store_put(&l->store[g->store], from, &g->want, err) : err_nomem(err);

    free(from);
    if (!code)
        l->written[g->store] += g->want.size;
    return code ? err_wrap(err, "context '%.80s'", g->want.id) : 0;
}

/* Copies a file to the payload folder: its tier needs the bytes before its new tier has them free. */
static int stage_payload(struct load *l, const struct step *step, struct err *err)
{
    char checksum[XXH3_HEX];
    int64_t size;

    if (!l->o.payloads)
        return err_set(err, ERR_FAIL,
                       "full tiers exchange contexts, and no payload folder is given to stage them (--payloads)");
    char *from = source_path(l, step), *to = file_join(l->o.payloads, l->goal[step->goal].payload);
    int code = from && to ? tier_store_copy(from, to, &size, checksum, err) : err_nomem(err);
    free(from);
    free(to);
    return code;
}

static int run_steps(struct load *l, struct err *err)
{
    double written = clock_now();
    int code = 0;

    if (!l->steps.n)
        return 0;
    load_report(l, LOAD_STEPS, 0, l->steps.n);
    for (int i = 0; i < l->steps.n && !code;) {
        const struct step *step = &l->steps.at[i];
        int end = i + 1;
        if (step->kind == STEP_REMOVE)
            code = remove_run(l, i, &end, err);
        else
            code = step->kind == STEP_STAGE ? stage_payload(l, step, err) : place_payload(l, step, err);
        if (!code && clock_now() - written > index_every) {
            code = write_indexes(l, err);
            written = clock_now();
        }
        i = end;
        load_report(l, LOAD_STEPS, i, l->steps.n);
    }
    return code;
}

/* ---- the state after --------------------------------------------------------- */

/* Marks an entry as placed or spare. The goal of a placed one becomes a copy of it, for the receipt. */
static int mark_entry(struct load *l, int store, struct entry *e, struct load_goal *g, struct err *err)
{
    bool *changed = &l->store[store].changed;
    bool placed = g && g->store == store && entry_same(e, &g->want) &&
                  (!*g->want.checksum || strcmp(g->want.checksum, e->checksum) == 0);

    if (!placed) {
        *changed = *changed || !e->spare;
        e->spare = true;
        l->spare[store] += e->bytes;
        return 0;
    }
    *changed = *changed || e->spare || e->bytes != g->want.bytes;
    e->spare = false;
    e->bytes = g->want.bytes;
    entry_release(&g->want);
    return entry_copy(&g->want, e, err);
}

static int mark_entries(struct load *l, struct err *err)
{
    struct map goals = { 0 };
    int code = load_map_goals(l, &goals, err);

    for (int s = 0; s < l->n_stores; s++) {
        for (int i = 0; i < l->store[s].in.n && !code; i++) {
            struct entry *e = &l->store[s].in.at[i];
            int at = map_find(&goals, e->id, strlen(e->id));
            if (!e->gone)
                code = mark_entry(l, s, e, at < 0 ? NULL : &l->goal[at], err);
        }
    }
    map_release(&goals);
    if (!code)
        code = write_indexes(l, err);
    for (int s = 0; s < l->n_stores && !code; s++)
        if (l->store[s].tier)
            code = tier_store_sweep(&l->store[s], err); /* files that are damaged or belong to no goal */
    return code;
}

/* Writes a row per context of the manifest, in its order, which is the order of the goals too. */
static int write_receipt(struct load *l, struct err *err)
{
    const struct manifest *m = &l->manifest;
    struct receipt_row *row = calloc((size_t)m->n + 1, sizeof(*row));
    struct map evicted = { 0 };
    struct load_goal *g = l->goal;

    if (!row)
        return err_nomem(err);
    int code = 0;
    for (int i = 0; i < l->evicted.n; i++)
        if (map_add(&evicted, l->evicted.at[i].id, strlen(l->evicted.at[i].id), NULL) < 0)
            code = err_nomem(err);
    for (int i = 0; i < m->n; i++) {
        const char *id = m->at[i].id;
        bool was = map_find(&evicted, id, strlen(id)) >= 0;
        row[i] = (struct receipt_row){ id, NULL, was ? OP_EVICT : OP_NONE };
        if (m->at[i].tier < 0)
            continue;
        g->want.tier = g->store;
        row[i] = (struct receipt_row){ id, &g->want, g->operation };
        g++;
    }
    struct receipt_made made = { m->digest, &m->tiers, row, m->n, l->o.args, l->o.n_args };
    if (!code)
        code = receipt_write(l->receipt, &made, err);
    map_release(&evicted);
    free(row);
    return code;
}

/* Counts the payloads that a rollback will need from the payload folder, and those it will find nowhere. */
static int count_lost(struct load *l, struct err *err)
{
    struct receipt r;
    struct map kept = { 0 };

    int code = receipt_read(&r, l->pending, err);
    if (code)
        return code;
    for (int s = 0; s < l->n_stores; s++)
        for (int i = 0; i < l->store[s].in.n; i++)
            if (!l->store[s].in.at[i].gone &&
                map_add(&kept, l->store[s].in.at[i].file, strlen(l->store[s].in.at[i].file), NULL) < 0)
                code = err_nomem(err);
    for (int i = 0; i < r.in.n; i++) {
        const struct entry *e = &r.in.at[i];
        if (load_store_of(l, &r.tiers.at[e->tier]) < 0 || map_find(&kept, e->file, strlen(e->file)) >= 0)
            continue;
        l->n_refetch++;
        l->n_lost += !load_is_packed(l, entry_payload(e), e->size);
    }
    map_release(&kept);
    receipt_release(&r);
    return code;
}

static int finish_load(struct load *l, struct err *err)
{
    bool first = !*l->past.manifest_digest && l->past.in.n == 0; /* there was no load before */

    if (mark_entries(l, err))
        return err->code;
    if (l->o.direction == LOAD_FORWARD)
        return write_receipt(l, err) || count_lost(l, err) ? err->code : move_file(l->pending, l->before, err);
    if (!first)
        return move_file(l->pending, l->receipt, err);
    return remove_if_there(l->receipt, err) ? err->code : remove_if_there(l->pending, err);
}

/* ---- running ------------------------------------------------------------------ */

static int run_and_finish(struct load *l, struct err *err)
{
    int code = run_steps(l, err);

    return code ? code : finish_load(l, err);
}

/* Undoes what a failed load did, by rolling back to `pending`. Takes over the manifest and the paths of *l. */
static int restore(struct load *l, struct err *err)
{
    struct load back = {
        .o = l->o, .manifest = l->manifest, .receipt = l->receipt, .pending = l->pending, .before = l->before
    };

    for (int s = 0; s < l->n_stores; s++)
        tier_store_close(&l->store[s]); /* the way back locks them again */
    l->manifest = (struct manifest){ 0 };
    l->receipt = l->pending = l->before = NULL;
    back.o.direction = LOAD_BACK;
    back.o.repair = false;
    int code = load_prepare(&back, err);
    if (!code)
        code = run_and_finish(&back, err);
    load_close(&back);
    return code;
}

int load_run(struct load *l, struct err *err)
{
    struct err why;

    if (l->nothing_to_do)
        return 0;
    if (save_state_before(l, err))
        return err->code;
    int code = run_and_finish(l, err);
    if (!code || l->o.direction == LOAD_BACK)
        return code;
    struct err first = *err;
    if (restore(l, &why))
        return err_set(err, code, "%.300s; the state before is not restored (%.120s): run evp-load again", first.msg,
                       why.msg);
    return err_set(err, code, "%.400s; the state before is restored", first.msg);
}
