/* pack_placed.c - a map with keys made of a context's token digest and a config. */
#include "cmd/pack_placed.h"

#include "base/buf.h"
#include "loader/store/tier_store.h"

#include <stdlib.h>
#include <string.h>

static void set_key(struct buf *key, const char *token_digest, const char *config)
{
    buf_clear(key);
    buf_printf(key, "%s%s", token_digest, config);
}

static int add_store(struct map *placed, const struct tier_store *store, struct err *err)
{
    struct buf key = { 0 };
    bool *there = calloc((size_t)store->in.n + 1, sizeof(*there));
    int code = there ? tier_store_look(store, there, err) : err_nomem(err);

    for (int i = 0; i < store->in.n && !code; i++) {
        const struct entry *e = &store->in.at[i];
        if (!there[i])
            continue;
        set_key(&key, e->token_digest, e->config);
        if (buf_failed(&key) || map_add(placed, buf_str(&key), key.n, NULL) == MAP_NOMEM)
            code = err_nomem(err);
    }
    buf_release(&key);
    free(there);
    return code;
}

int placed_read(struct map *placed, const char *tiers_path, const char *name_space, struct err *err)
{
    struct tiers tiers;
    int code = tiers_read(&tiers, tiers_path, err);

    for (int i = 0; !code && i < tiers.n; i++) {
        const struct tier *tier = &tiers.at[i];
        struct tier_store_options o = { .tier = tier, .name_space = name_space, .use = STORE_LOOK };
        struct tier_store store;
        if (!tier_folder(tier) || tier->read_only)
            continue;
        code = tier_store_open(&store, &o, err);
        if (code)
            break;
        code = add_store(placed, &store, err);
        tier_store_close(&store);
    }
    tiers_release(&tiers);
    return code;
}

bool placed_has(const struct map *placed, const char *token_digest, const char *config)
{
    struct buf key = { 0 };

    set_key(&key, token_digest, config);
    bool has = !buf_failed(&key) && map_find(placed, buf_str(&key), key.n) >= 0;
    buf_release(&key);
    return has;
}
