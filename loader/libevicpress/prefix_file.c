/* prefix_file.c - finds the file of a prefix in its present tier, and reads ranges of it. */
#include "loader/libevicpress/prefix_file.h"

#include "base/clock.h"
#include "loader/libevicpress/evp_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ------------------------------------------------------------------- */

int prefix_check(const struct evp_prefix *prefix, struct evp_error *error)
{
    bool filled = memchr(prefix->token_digest, '\0', sizeof(prefix->token_digest)) &&
                  digest_is_hex(prefix->token_digest) && memchr(prefix->checksum, '\0', sizeof(prefix->checksum)) &&
                  memchr(prefix->config, '\0', sizeof(prefix->config)) && prefix->n_tokens > 0;

    return filled ? EVICPRESS_OK : evp_error_set(error, EVICPRESS_ARGUMENT, "prefix does not come from evp_find()");
}

/* The record in a tier for a found part: its whole payload's. */
static const struct index_record *seek_part(const struct index_view *v, const struct evp_prefix *prefix)
{
    const struct found found = prefix_found(prefix);
    struct index_key key;
    uint8_t digest[32];

    digest_from_hex(prefix->token_digest, digest, sizeof(digest));
    index_key_set_part(&key, digest);
    index_key_in(&key, v->name_space);
    const struct index_record *r = index_seek_object(v->index, &key, found.object);
    return r && r->size == found.size ? r : NULL;
}

/* The record of a prefix in a tier: the one found before, or one with the same bytes; NULL if there is none. */
static const struct index_record *seek_record(const struct index_view *v, const struct evp_prefix *prefix)
{
    const struct found found = prefix_found(prefix);
    struct index_key key;

    if (v->name_space < 0)
        return NULL;
    if (found.whole.n_tokens)
        return seek_part(v, prefix);
    index_key_set(&key, found.prefix, prefix->token_digest, prefix->n_tokens);
    index_key_in(&key, v->name_space);
    const struct index_record *r = index_seek(v->index, &key);
    return r && r->size == prefix->size && r->checksum == strtoull(prefix->checksum, NULL, 16) ? r : NULL;
}

static int open_in_tier(const struct snapshot *s, int tier, const struct evp_prefix *prefix, struct prefix_file *f,
                        struct err *err)
{
    const struct index_view view = { &s->view[tier]->index, s->name_space[tier] };
    const struct index_record *r = seek_record(&view, prefix);
    char file[OBJECT_FILE];

    if (!r)
        return PREFIX_GONE;
    object_file(r->object, file);
    memcpy(f->tier, s->header.tiers.at[tier].name, TIER_NAME);
    snprintf(f->path, sizeof(f->path), "%s/%s", s->header.tiers.at[tier].uri, file);
    int got = medium_get(&s->view[tier]->medium, file, (int64_t)r->size, &f->blob, err);
    return got == MEDIUM_GONE ? PREFIX_GONE : got;
}

int prefix_open(struct evp_store *store, const struct evp_prefix *prefix, struct prefix_file *f, struct err *err)
{
    struct snapshot *s = snapshot_take(store);
    int code = PREFIX_GONE;
    struct err why;

    f->blob = (struct blob){ .fd = -1 };
    *f->path = '\0';
    f->stats = store->stats;
    f->opened = clock_now();
    for (int t = 0; t < s->header.tiers.n && code; t++) {
        int got = open_in_tier(s, t, prefix, f, &why);
        if (got == PREFIX_GONE)
            continue;
        code = got; /* an unreadable tier does not hide the next ones */
        *err = why;
    }
    snapshot_give_back(store, s);
    return code;
}

bool prefix_renew(struct evp_store *store, int *code, struct evp_error *error)
{
    struct err err;

    if (*code != EVICPRESS_GONE)
        return false;
    if (snapshot_refresh(store, &err) >= 0)
        return true;
    *code = evp_error_from(error, &err, EVICPRESS_DAMAGED);
    return false;
}

/* ---- reading ------------------------------------------------------------------- */

int read_at(const struct prefix_file *f, void *to, size_t n, uint64_t offset, struct err *err)
{
    double start = f->opened > 0 ? f->opened : clock_now();

    if (blob_read(&f->blob, to, n, offset, err))
        return err_wrap(err, "'%s'", f->path);
    stats_read(f->stats, f->tier, n, clock_now() - start);
    return 0;
}

int prefix_gone(const struct prefix_file *f, struct evp_error *error)
{
    struct err err;

    if (!*f->path)
        return evp_error_set(error, EVICPRESS_GONE, "the prefix is no longer placed");
    err_set(&err, ERR_IO, "the prefix is no longer placed: '%s' is not there", f->path);
    return evp_error_set(error, EVICPRESS_GONE, err.msg);
}
