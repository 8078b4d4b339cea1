/* evp_find.h - what a found prefix says of its payload beside what it shows: how the library finds it again. */
#ifndef EVP_EVP_FIND_H
#define EVP_EVP_FIND_H

#include "loader/libevp/evp_store.h"

/* What evp_prefix.opaque holds. */
struct found {
    uint8_t prefix[INDEX_ID], object[INDEX_ID];
};

_Static_assert(sizeof(struct found) <= sizeof(((struct evp_prefix *)0)->opaque), "what was found fits");

#endif
