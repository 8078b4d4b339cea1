/* row_format.h - how a payload holds keys and values that are quantised row by row (base/quant_row.h): the tensors of a
 * layer beside `k` and `v`, which have no rows then. */
#ifndef EVP_ROW_FORMAT_H
#define EVP_ROW_FORMAT_H

#include "base/quant_row.h"
#include "base/safetensors.h"

struct row_tensor {
    const char *name[2]; // of keys, of values
    enum st_type type;
    int columns; // of a row, or of a head; 0: there is no such tensor
};

struct row_format {
    struct quant_row row;
    struct row_tensor codes, scales; // of each row
    struct row_tensor head;          // of a head: what its rows share
};

struct row_format row_format_of(struct quant_row row);

/* The format in a config, as payloads name it; false: it has none of those that pack row by row, or the rows cannot have
 * so many columns. */
bool row_format_parse(struct row_format *format, const char *config, int columns);

#endif
