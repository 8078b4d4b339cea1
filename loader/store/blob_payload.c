/* blob_payload.c - reads enough bytes for most headers, then the rest of a longer one. */
#include "loader/store/blob_payload.h"

#include <stdlib.h>

enum { HEAD = 1 << 16 }; // bytes that hold most headers

int blob_payload_open(struct blob_payload *p, const struct blob *b, uint64_t size, struct err *err)
{
    size_t n = size < HEAD ? (size_t)size : HEAD;

    *p = (struct blob_payload){ .head = malloc(n < sizeof(uint64_t) ? sizeof(uint64_t) : n) };
    if (!p->head)
        return err_nomem(err);
    if (blob_read(b, p->head, n, 0, err))
        return err->code;
    uint64_t header = n < sizeof(uint64_t) ? 0 : safetensors_header_bytes(p->head);
    if (header > n && header <= size) {
        char *more = realloc(p->head, (size_t)header);
        if (!more)
            return err_nomem(err);
        p->head = more;
        n = (size_t)header;
        if (blob_read(b, p->head, n, 0, err))
            return err->code;
    }
    return payload_parse_header(&p->payload, p->head, n, size, err);
}

void blob_payload_close(struct blob_payload *p)
{
    payload_close(&p->payload);
    free(p->head);
    *p = (struct blob_payload){ 0 };
}
