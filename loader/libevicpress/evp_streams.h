/* evp_streams.h - rows that cachegen coded (methods/cachegen.c), for evp_fetch_rows(). */
#ifndef EVP_EVP_STREAMS_H
#define EVP_EVP_STREAMS_H

#include "base/buf.h"
#include "codes/cachegen_codes.h"
#include "loader/libevicpress/evp_payload.h"
#include "loader/libevicpress/row_sink.h"

/* The keys or the values of one head of a layer. */
struct coded_head {
    struct evp_payload *p;
    int64_t layer, columns, heads, head; // heads of the layer; number of this one
    int64_t place;                       // of the layer among those with streams
    const int32_t *n;                    // (heads) tokens that each head keeps
    int side, verify;                    // enum evp_side, evp_verify
    enum cachegen_cdf cdf;
    struct buf *sizes; // of the layer's streams on this side; filled by the first call, for all heads
    const struct row_sink *sink;
};

/* Decodes rows [skip, skip + n) of the head and writes them from row `first` of the sink on. ERR_FORMAT: the tensors
 * are not those of the config, or damaged. */
int streams_read(const struct coded_head *h, const struct row_span *rows, struct err *err);

#endif
