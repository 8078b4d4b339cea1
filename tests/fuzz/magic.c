/* magic.c - any bytes as a file that a reader has refused: its kind, if known, and a message that is never empty. */
#include "base/magic.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct magic_source source = { "'input'", data, n };
    const struct magic *m = magic_of(data, n);
    struct err err;

    if (m && (strncmp(m->is, "is ", 3) != 0 || (m->packed && !m->then)))
        abort();
    err_set(&err, ERR_FORMAT, "refused");
    if (magic_refuse_bytes(&err, &source, "a table") != ERR_FORMAT || !*err.msg)
        abort();
    err_set(&err, ERR_IO, "cannot read");
    if (magic_refuse_bytes(&err, &source, "a table") != ERR_IO || strcmp(err.msg, "cannot read") != 0)
        abort();
    return 0;
}
