/* prefix_file.h - the file of a found prefix: opened in its present tier, and read. */
#ifndef EVP_PREFIX_FILE_H
#define EVP_PREFIX_FILE_H

#include "loader/libevicpress/evp_store.h"

enum { PREFIX_GONE = 1 };

struct prefix_file {
    struct blob blob; // independent of store and snapshot; the bytes of the payload file
    char path[1024];  // for messages, cut if longer; "": no tier lists the payload
    char tier[TIER_NAME];
    struct stats *stats; // of the store
    double opened;       // when opening began; 0: the time of opening is counted already
};

/* Opens the payload of a prefix in its tier, or in another that has it: 0, PREFIX_GONE, or an error. The caller closes
 * f->blob. */
int prefix_open(struct evp_store *store, const struct evp_prefix *prefix, struct prefix_file *f, struct err *err);

/* After EVICPRESS_GONE: reopens the indexes, because a writer may have moved the payload, and returns true: try once
 * more. false: the call has ended with *code. */
bool prefix_renew(struct evp_store *store, int *code, struct evp_error *error);

/* Does it look like a prefix from evp_find()? EVICPRESS_OK, or EVICPRESS_ARGUMENT. */
int prefix_check(const struct evp_prefix *prefix, struct evp_error *error);

/* Sets the message for PREFIX_GONE; returns EVICPRESS_GONE. */
int prefix_gone(const struct prefix_file *f, struct evp_error *error);

/* Reads n bytes at an offset, and counts it; the first read from the moment when opening began. ERR_IO also if the file
 * is cut; ERR_STALE: as blob_read(). */
int read_at(const struct prefix_file *f, void *to, size_t n, uint64_t offset, struct err *err);

#endif
