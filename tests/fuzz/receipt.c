/* receipt.c - any bytes as a receipt: refused with a sentence, or no entry names a file elsewhere. */
#include "formats/receipt.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct entries *in, int n_tiers)
{
    for (int i = 0; i < in->n; i++) {
        const struct entry *e = &in->at[i];
        if (!entry_file_safe(e->file) || strstr(e->file, "..") || e->file[0] == '/' || e->size < 1 || e->bytes < 0 ||
            e->tier < 0 || e->tier >= n_tiers)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct rows_bytes bytes = { "input", (const char *)data, n };
    struct rows_in in;
    struct receipt r;
    struct err err;

    if (!rows_open_bytes(&in, &bytes, "receipt", &err)) {
        if (!receipt_parse(&r, &in, &err)) {
            check(&r.in, r.tiers.n);
            receipt_release(&r);
        }
        rows_close(&in);
    }
    return 0;
}
