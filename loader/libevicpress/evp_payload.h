/* evp_payload.h - an open payload, for the files that read it. */
#ifndef EVP_EVP_PAYLOAD_H
#define EVP_EVP_PAYLOAD_H

#include "base/safetensors.h"
#include "loader/libevicpress/prefix_file.h"
#include "loader/store/blob_payload.h"

#include <stdatomic.h>

/* A tensor's checksums: of its heads, or of the whole tensor. */
struct units {
    const char *heads, *tensor; // hex; NULL: none
    uint64_t n, first;          // how many; number of the first one in `whole`
};

struct evp_payload {
    struct prefix_file file;
    uint64_t size;
    uid_t owner; // of a file
    struct blob_payload head;
    int64_t part; // tokens of a part of a context; 0: the whole context
    struct json *sums, *head_sums;
    struct units *unit;      // (st.n)
    atomic_bool *whole;      // one for each checksum: the bytes have passed it
    float *_Atomic rotation; // of turboquant's rows; NULL: not made yet
};

static inline const struct payload *payload_of(const struct evp_payload *p)
{
    return &p->head.payload;
}

/* Reads the header of p->file and compares it with what was found. The caller closes *p, also after an error. */
int payload_begin(struct evp_payload *p, const struct evp_prefix *prefix, struct err *err);

struct bytes_range {
    uint64_t first, n;
};

/* Bytes of a tensor to read. verify: enum evp_verify; with EVICPRESS_VERIFY what their checksums cover is read too, and
 * compared, unless it was before. */
struct extent {
    const struct st_tensor *tensor;
    struct bytes_range range;
    int verify;
};

int payload_read(struct evp_payload *p, const struct extent *extent, char *to, struct err *err);

/* The same for bytes that go elsewhere: calls visit(arg, at, bytes, n), at counted from the tensor's first byte, in
 * order, with a multiple of `row` bytes each time. Bytes are visited before they are compared. */
struct visitor {
    void (*visit)(void *arg, uint64_t at, const char *bytes, size_t n);
    void *arg;
    size_t row; // range and checksums begin and end at multiples of it
};
int payload_visit(struct evp_payload *p, const struct extent *extent, const struct visitor *to, struct err *err);

/* Writes a part of a context as a payload of its own into a buffer of prefix->size bytes. An evp_code. */
int part_fetch(struct evp_store *store, const struct evp_prefix *prefix, void *buffer, struct evp_error *error);

#endif
