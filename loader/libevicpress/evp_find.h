/* evp_find.h - the private data of a found prefix, by which the library finds the payload again. */
#ifndef EVP_EVP_FIND_H
#define EVP_EVP_FIND_H

#include "loader/libevicpress/evp_store.h"

#include <string.h>

/* The content of evp_prefix.opaque. */
struct found {
    uint8_t prefix[INDEX_ID], object[INDEX_ID];
    uint64_t size;            // of the payload's file
    struct index_whole whole; // for a part of a context; n_tokens 0: not a part
};

static inline struct found prefix_found(const struct evp_prefix *prefix)
{
    struct found found;

    memcpy(&found, prefix->opaque, sizeof(found));
    return found;
}

_Static_assert(sizeof(struct found) <= sizeof(((struct evp_prefix *)0)->opaque), "struct found fits");

#endif
