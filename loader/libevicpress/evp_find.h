/* evp_find.h - what a found prefix says of its payload beside what it shows: how the library finds it again. */
#ifndef EVP_EVP_FIND_H
#define EVP_EVP_FIND_H

#include "loader/libevicpress/evp_store.h"

#include <string.h>

/* What evp_prefix.opaque holds. */
struct found {
    uint8_t prefix[INDEX_ID], object[INDEX_ID];
    uint64_t size;            // of the payload's file
    struct index_whole whole; // of a part of a context; n_tokens 0: it is none
};

static inline struct found prefix_found(const struct evp_prefix *prefix)
{
    struct found found;

    memcpy(&found, prefix->opaque, sizeof(found));
    return found;
}

_Static_assert(sizeof(struct found) <= sizeof(((struct evp_prefix *)0)->opaque), "what was found fits");

#endif
