/* pack_placed.c - a map with keys made of a context's token digest and a config. */
#include "cmd/pack_placed.h"

#include "base/buf.h"
#include "base/log.h"
#include "loader/store/tier_store.h"

#include <stdlib.h>
#include <string.h>

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

static int add_tier(struct map *payloads, const struct tier *tier, const char *name_space, struct err *err)
{
    const struct tier_store_options o = { .tier = tier, .name_space = name_space, .use = STORE_LOOK };
    struct tier_store store;

    if (tier_store_open(&store, &o, err))
        return err->code;
    int code = add_store(payloads, &store, err);
    tier_store_close(&store);
    return code;
}

int placed_read(struct placed *placed, const char *tiers_path, const char *name_space, struct err *err)
{
    if (tiers_read(&placed->tiers, tiers_path, err))
        return err->code;
    for (int i = 0; i < placed->tiers.n; i++) {
        const struct tier *tier = &placed->tiers.at[i];
        int code = tier_folder(tier) && !tier->read_only ? add_tier(&placed->payloads, tier, name_space, err) : 0;
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
