/* payload_rows.c - any bytes as an open payload whose rows are read: refused with a sentence, or every call stays
 * within the bytes and the buffer. Checksums are not compared, so that damage gets as far as the shapes.
 */
#include "loader/libevicpress/evp_payload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* What evp_find() would have found. */
static bool describe(struct evp_prefix *prefix, const uint8_t *data, size_t n)
{
    struct payload p;
    struct err err;

    if (payload_parse(&p, data, n, &err))
        return false;
    *prefix = (struct evp_prefix){ .n_tokens = p.n_tokens, .size = n };
    snprintf(prefix->config, sizeof(prefix->config), "%s", p.config);
    snprintf(prefix->token_digest, sizeof(prefix->token_digest), "%s", p.token_digest);
    payload_close(&p);
    return true;
}

static void read_rows(struct evp_payload *p, int64_t layer)
{
    static char buffer[BUFFER + 1];
    int64_t kept[1 << 12];

    if (evp_kept(p, layer, kept, sizeof(kept) / sizeof(*kept), NULL))
        return;
    for (int i = 0; i < 16; i++) {
        int64_t n = kept[0], half = n / 2;
        struct evp_rows rows = { .layer = layer,
                                 .side = i & 1,
                                 .type = i >> 2,
                                 .verify = EVICPRESS_TRUST,
                                 .pairs = i >> 1 & 1,
                                 .first_row = i & 2 ? half : 0,
                                 .n_rows = i & 2 ? n - half : n,
                                 .n = 1,
                                 .column_stride = i & 4 ? n : 0,
                                 .row_stride = i & 4 ? 1 : 0 };
        buffer[BUFFER] = 77;
        int code = evp_fetch_rows(p, &rows, buffer, BUFFER, NULL);
        if (buffer[BUFFER] != 77 || code > 0)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct evp_payload *p = calloc(1, sizeof(*p));
    struct evp_prefix prefix;
    struct evp_shape shape;
    struct err err;

    p->file = (struct prefix_file){ .blob = blob_of_bytes(data, n), .path = "input", .stats = stats_new() };
    if (describe(&prefix, data, n) && !payload_begin(p, &prefix, &err) && !evp_payload_shape(p, &shape, NULL))
        for (int64_t layer = 0; layer < 3; layer++)
            read_rows(p, layer);
    evp_payload_close(p);
    return 0;
}
