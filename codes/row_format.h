/* row_format.h - how a payload holds keys and values that are quantised row by row (codes/quant_row.h): the tensors of
 * a layer beside `k` and `v`, which have no rows then. */
#ifndef EVP_ROW_FORMAT_H
#define EVP_ROW_FORMAT_H

#include "codes/quant_row.h"
#include "base/safetensors.h"

struct row_tensor {
    const char *name[2]; // of keys, of values
    enum st_type type;
    int columns; // of a row, or of a head; 0: there is no such tensor
};

struct row_format {
    struct row_tensor codes, scales; // of each row
    struct row_tensor head;          // of a head: what its rows share
};

struct row_format row_format_of(const struct quant_row *row);

/* Values may have another format than keys. */
struct quant_pair {
    struct quant_row side[2]; // of keys, of values; without a rotation
    bool rotated;             // rows of QUANT_LLOYD need one, codes/quant_rotation.h
};

/* The formats in a config, as payloads name it; false: its quantiser, if it has one, has none, or rows cannot have so
 * many columns. */
bool row_format_parse(struct quant_pair *pair, const char *config, int columns);

#endif
