/* pack_placed.c - a map with keys made of a context's token digest and a config. */
#include "cmd/pack_placed.h"

#include "base/buf.h"
#include "base/log.h"
#include "loader/store/folder.h"
#include "loader/store/tier_store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void set_key(struct buf *key, const char *token_digest, const char *config)
{
    buf_clear(key);
    buf_printf(key, "%s%s", token_digest, config);
}

static int add_store(struct map *payloads, const struct tier_store *store, struct err *err)
{
    struct buf key = { 0 };
    bool *there = calloc((size_t)store->in.n + 1, sizeof(*there));
    int code = there ? tier_store_look(store, there, err) : err_nomem(err);

    for (int i = 0; i < store->in.n && !code; i++) {
        const struct entry *e = &store->in.at[i];
        if (!there[i])
            continue;
        set_key(&key, e->token_digest, e->config);
        if (buf_failed(&key) || map_add(payloads, buf_str(&key), key.n, NULL) == MAP_NOMEM)
            code = err_nomem(err);
    }
    buf_release(&key);
    free(there);
    return code;
}

/* Opens a store and its index: the index first, so that no writer can make it newer than the state. */
static int open_store(struct tier_store *store, const struct tier_store_options *o, struct err *err)
{
    struct index index = { 0 };
    struct err why;
    int fd;

    if (folder_open(&fd, tier_folder(o->tier), FOLDER_READ, geteuid(), err))
        return err_wrap(err, "tier '%s'", o->tier->name);
    if (fd >= 0 && index_open(&index, fd, &why))
        index_close(&index);
    if (fd >= 0)
        close(fd);
    int code = tier_store_open(store, o, err);
    if (code)
        index_close(&index);
    else
        store->index = index;
    return code;
}

/* A folder of kind `file` where the manifest keeps payloads is not empty, unless its disk is not mounted. */
static int check_mounted(const struct tier *tier, const struct manifest *m, struct err *err)
{
    int n = 0;

    for (int i = 0; i < m->n && tier->kind == TIER_FILE; i++)
        n += m->at[i].operation == OP_KEEP && tier_same_place(&m->tiers.at[m->at[i].tier], tier);
    return n ? err_set(err, ERR_FAIL,
                       "'%s' is empty, but the plan keeps %d payload%s there: is its disk mounted? If it may be empty, "
                       "run evp-load --new",
                       tier->uri, n, n == 1 ? "" : "s")
             : 0;
}

/* A state that is not there, or older than the index, may lack payloads that the tier holds: nothing is made twice. */
static int check_state(const struct tier_store *store, const struct manifest *m, struct err *err)
{
    bool lost = !store->state || tier_store_is_older(store->state, &store->index);

    if (lost && store->folder >= 0 && tier_store_refuse_lost(store, err))
        return err->code;
    return store->state ? 0 : check_mounted(store->tier, m, err);
}

static int add_tier(struct map *payloads, const struct tier_store_options *o, const struct manifest *m, struct err *err)
{
    struct tier_store store;

    if (open_store(&store, o, err))
        return err->code;
    int code = check_state(&store, m, err) ? err_wrap(err, "tier '%s'", o->tier->name) : 0;
    if (!code)
        code = add_store(payloads, &store, err);
    tier_store_close(&store);
    return code;
}

int placed_read(struct placed *placed, const char *tiers_path, const char *name_space, const struct manifest *m,
                struct err *err)
{
    if (tiers_read(&placed->tiers, tiers_path, err))
        return err->code;
    for (int i = 0; i < placed->tiers.n; i++) {
        const struct tier_store_options o = { .tier = &placed->tiers.at[i],
                                              .name_space = name_space,
                                              .use = STORE_LOOK };
        int code = tier_folder(o.tier) && !o.tier->read_only ? add_tier(&placed->payloads, &o, m, err) : 0;
        if (code == ERR_NOMEM)
            return code;
        placed->away[i] = code;
        placed->n_away += code != 0;
        if (code)
            log_warn("%s; contexts that the manifest places there are left out", err->msg);
    }
    return 0;
}

void placed_release(struct placed *placed)
{
    map_release(&placed->payloads);
    tiers_release(&placed->tiers);
}

bool placed_has(const struct placed *placed, const char *token_digest, const char *config)
{
    struct buf key = { 0 };

    set_key(&key, token_digest, config);
    bool has = !buf_failed(&key) && map_find(&placed->payloads, buf_str(&key), key.n) >= 0;
    buf_release(&key);
    return has;
}

bool placed_is_away(const struct placed *placed, const struct tier *tier)
{
    for (int i = 0; i < placed->tiers.n; i++)
        if (placed->away[i] && tier_same_place(&placed->tiers.at[i], tier))
            return true;
    return false;
}
