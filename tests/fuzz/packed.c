/* packed.c - any bytes as the packed rows of a manifest, as the rows of one piece and as a whole file: refused with a
 * sentence, or every placement is one that the loader may trust. The first byte says how many rows the piece has. */
#include "loader/formats/manifest_packed.h"
#include "tests/fuzz/placement.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char text[] =
    "{\"evp\":\"manifest\",\"version\":2,\"tool\":\"fuzz\",\"args\":[],\"from\":[],\"alpha\":1,\"tiers\":[{\"name\":"
    "\"ssd\",\"kind\":\"file\",\"uri\":\"/tmp/x\",\"capacity_bytes\":1000,\"read_bytes_per_s\":1,\"write_bytes_per_s\":"
    "1,\"latency_s\":0}],\"solver\":\"fuzz\",\"objective\":0,\"configs\":[\"none\",\"kivi:bits=2\"]}\n"
    "{\"id\":\"a\",\"token_digest\":\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",\"n_tokens\":"
    "1,\"config\":\"none\",\"tier\":\"recompute\",\"bytes\":0,\"quality\":1,\"utility\":0,\"frequency\":0,"
    "\"operation\":\"none\"}\n{\"end\":true,\"rows\":1}\n";

static int check(void *arg, const struct manifest *m, const struct placement *p, struct err *err)
{
    (void)arg;
    (void)err;
    expect_placement(m, p);
    return 0;
}

static void read_piece(const struct manifest *m, const uint8_t *data, size_t n)
{
    struct manifest_part part = { 0 };
    struct err err;

    if (n && !packed_rows(&part, m, &(struct packed_bytes){ (const char *)data + 1, n - 1, data[0] }, &err) &&
        part.rows.n != data[0])
        abort();
    for (size_t i = 0; i < part.rows.n; i++)
        expect_placement(m, &part.rows.at[i]);
    manifest_part_release(&part);
}

static void read_file(struct manifest *m, const uint8_t *data, size_t n)
{
    struct rows_bytes bytes = { "input", text, sizeof(text) - 1 };
    struct manifest_reading r = { .m = m, .visit = check };
    struct packed_in in = { .f = n ? fmemopen((void *)(uintptr_t)data, n, "rb") : NULL };
    struct rows_in rows;
    struct err err;

    if (in.f && !rows_open_bytes(&rows, &bytes, "manifest", &err)) {
        if (!packed_read(&in, &rows, &r, &err))
            abort(); /* the trailer has no checksum of the manifest */
        rows_close(&rows);
    }
    packed_close(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct rows_bytes bytes = { "input", text, sizeof(text) - 1 };
    struct manifest m;
    struct err err;

    if (manifest_read_bytes(&m, &bytes, &err))
        abort();
    read_piece(&m, data, n);
    read_file(&m, data, n);
    manifest_release(&m);
    return 0;
}
