/* blob_payload.h - the header of a payload, wherever its bytes are. */
#ifndef EVP_BLOB_PAYLOAD_H
#define EVP_BLOB_PAYLOAD_H

#include "formats/payload.h"
#include "loader/store/medium.h"

struct blob_payload {
    struct payload payload; // tensors have offsets alone
    char *head;             // the first bytes, which `payload` borrows
};

/* Reads the header of a payload of `size` bytes and nothing else. The caller closes *p, after an error too. */
int blob_payload_open(struct blob_payload *p, const struct blob *b, uint64_t size, struct err *err) MUST_CHECK;
void blob_payload_close(struct blob_payload *p); // zeroed is fine

#endif
