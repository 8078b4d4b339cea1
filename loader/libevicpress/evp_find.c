/* evp_find.c - the longest placed prefix of a prompt. */
#include "loader/libevicpress/evp_find.h"

#include "formats/payload_prefix.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(((struct evp_prefix *)0)->config) >= INDEX_TEXT, "a config fits");
_Static_assert(sizeof(((struct evp_prefix *)0)->tier) >= TIER_NAME, "a tier's name fits");

/* Describes a part. It has no checksum; its size follows from the whole payload's. */
static int describe_part(const struct index_record *r, struct found *found, struct evp_prefix *prefix, struct err *err)
{
    if (index_whole_of(r, &found->whole, err))
        return err->code;
    prefix->size = payload_part_bytes(r->size, found->whole.header, found->whole.n_tokens, r->n_tokens);
    *prefix->checksum = '\0';
    return 0;
}

static int describe(const struct snapshot *s, const struct index_hit *hit, struct evp_prefix *prefix, struct err *err)
{
    const struct index_record *r = &hit->record;
    struct found found = { .size = r->size };

    *prefix = (struct evp_prefix){ .n_tokens = r->n_tokens, .size = r->size };
    snprintf(prefix->config, sizeof(prefix->config), "%s", s->view[hit->view]->index.config[r->config].at);
    snprintf(prefix->tier, sizeof(prefix->tier), "%s", s->header.tiers.at[hit->view].name);
    digest_hex(r->key.digest, sizeof(r->key.digest), prefix->token_digest);
    snprintf(prefix->checksum, sizeof(prefix->checksum), "%016llx", (unsigned long long)r->checksum);
    memcpy(found.prefix, r->key.prefix, INDEX_ID);
    memcpy(found.object, r->object, INDEX_ID);
    int code = index_is_part(&r->key) ? describe_part(r, &found, prefix, err) : 0;
    memcpy(prefix->opaque, &found, sizeof(found));
    return code;
}

int evp_find(struct evp_store *store, const int32_t *tokens, size_t n, struct evp_prefix *prefix,
             struct evp_error *error)
{
    struct snapshot *s = snapshot_take(store);
    struct index_view view[TIER_MAX];
    struct index_hit hit;
    struct err err;

    for (int t = 0; t < s->header.tiers.n; t++)
        view[t] = (struct index_view){ &s->view[t]->index, s->name_space[t] };
    const struct index_views views = { view, s->header.tiers.n };
    int found = index_find(&views, &(struct index_prompt){ tokens, n }, &hit, &err);
    if (found == 1 && describe(s, &hit, prefix, &err))
        found = err.code;
    snapshot_give_back(store, s);
    return stats_find(store->stats, n, prefix, found < 0 ? evp_error_from(error, &err, EVICPRESS_DAMAGED) : found);
}

/* ---- all contexts --------------------------------------------------------------- */

/* Is the record of a tier listed already: as a newer one of its context, or in a faster tier? */
static bool is_listed(const struct snapshot *s, int tier, const struct index_record *r)
{
    const struct index *ix = &s->view[tier]->index;

    if (index_is_part(&r->key) || index_seek(ix, &r->key) != r)
        return true;
    for (int t = 0; t < tier; t++) {
        struct index_key key = r->key;
        index_key_in(&key, s->name_space[t]);
        if (s->name_space[t] >= 0 && index_seek(&s->view[t]->index, &key))
            return true;
    }
    return false;
}

int evp_list(struct evp_store *store, struct evp_prefix *prefix, size_t n, struct evp_error *error)
{
    struct snapshot *s = snapshot_take(store);
    int found = 0, code = 0;
    struct err err;

    for (int t = 0; t < s->header.tiers.n; t++) {
        const struct index *ix = &s->view[t]->index;
        struct index_key key = { .tail = { 0 } };
        index_key_in(&key, s->name_space[t]);
        const struct index_record *r = s->name_space[t] < 0 ? ix->record + ix->n : index_from(ix, &key);
        for (; !code && r < ix->record + ix->n && memcmp(r->key.name_space, key.name_space, 2) == 0; r++) {
            if (is_listed(s, t, r))
                continue;
            if ((size_t)found++ < n)
                code = describe(s, &(struct index_hit){ t, *r }, &prefix[found - 1], &err);
        }
    }
    snapshot_give_back(store, s);
    return stats_count(store->stats, "", 0, code ? evp_error_from(error, &err, EVICPRESS_DAMAGED) : found);
}
