/* evp_fetch.h - the file of a found prefix, opened. */
#ifndef EVP_EVP_FETCH_H
#define EVP_EVP_FETCH_H

#include "loader/libevicpress/evp_store.h"

enum { PREFIX_GONE = 1 };

struct prefix_file {
    struct blob blob; // needs neither store nor snapshot; its size is that of the payload's file
    char path[1024];  // for sentences; cut when it is longer. "": no tier says that it has it
};

/* Opens the payload of a prefix, in the tier where it is now: 0, PREFIX_GONE, or an error. The caller closes
 * f->blob. */
int prefix_open(struct evp_store *store, const struct evp_prefix *prefix, struct prefix_file *f, struct err *err);

/* Has evp_find() filled it, as far as one can see? EVICPRESS_OK, or EVICPRESS_ARGUMENT. */
int prefix_check(const struct evp_prefix *prefix, struct evp_error *error);

/* Writes a part of a context as a payload of its own into a buffer of prefix->size bytes. An evp_code. */
int part_fetch(struct evp_store *store, const struct evp_prefix *prefix, void *buffer, struct evp_error *error);

/* The sentence of PREFIX_GONE: EVICPRESS_GONE. */
int prefix_gone(const struct prefix_file *f, struct evp_error *error);

/* Reads n bytes at an offset. ERR_IO: it was cut, too. */
int read_at(const struct prefix_file *f, void *to, size_t n, uint64_t offset, struct err *err);

#endif
