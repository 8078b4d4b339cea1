/* blob_payload.h - reads the header of a payload from a blob. */
#ifndef EVP_BLOB_PAYLOAD_H
#define EVP_BLOB_PAYLOAD_H

#include "formats/payload.h"
#include "loader/store/medium.h"

struct blob_payload {
    struct payload payload; // tensors have offsets, not data
    char *head;             // the first bytes; `payload` borrows from them
};

/* Reads only the header of a payload of `size` bytes. The caller closes *p, also after an error. */
int blob_payload_open(struct blob_payload *p, const struct blob *b, uint64_t size, struct err *err) MUST_CHECK;
void blob_payload_close(struct blob_payload *p); // zeroed is fine

#endif
