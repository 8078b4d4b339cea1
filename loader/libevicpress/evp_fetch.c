/* evp_fetch.c - reads the payload of a found prefix whole. */
#include "loader/libevicpress/evp_find.h"
#include "loader/libevicpress/evp_payload.h"

#include <string.h>

static int read_whole(const struct prefix_file *f, const struct evp_prefix *prefix, int verify, void *buffer,
                      struct err *err)
{
    char checksum[XXH3_HEX];
    int code = read_at(f, buffer, (size_t)prefix->size, 0, err);

    if (code || verify == EVICPRESS_TRUST)
        return code;
    digest_xxh3_hex(buffer, (size_t)prefix->size, checksum);
    return strcmp(checksum, prefix->checksum) == 0
               ? 0
               : err_set(err, ERR_FORMAT, "'%s' has checksum %s, not %.16s: it is damaged", f->path, checksum,
                         prefix->checksum);
}

static int fetch(struct evp_store *store, const struct evp_prefix *prefix, void *buffer, struct evp_error *error)
{
    struct prefix_file f;
    struct err err;

    if (prefix_found(prefix).whole.n_tokens)
        return part_fetch(store, prefix, buffer, error);
    int code = prefix_open(store, prefix, &f, &err);
    if (code == PREFIX_GONE)
        return prefix_gone(&f, error);
    if (!code) {
        code = read_whole(&f, prefix, store->verify, buffer, &err);
        blob_close(&f.blob);
    }
    return code ? evp_error_from(error, &err, EVICPRESS_DAMAGED) : EVICPRESS_OK;
}

int evp_fetch(struct evp_store *store, const struct evp_prefix *prefix, void *buffer, size_t size,
              struct evp_error *error)
{
    int code = prefix_check(prefix, error);
    if (!code && size < prefix->size)
        code = evp_error_set(error, EVICPRESS_SMALL, "the buffer is smaller than the payload");
    if (!code)
        code = fetch(store, prefix, buffer, error);
    if (prefix_renew(store, &code, error))
        code = fetch(store, prefix, buffer, error);
    return stats_count(store->stats, "", 0, code);
}
