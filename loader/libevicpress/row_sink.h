/* row_sink.h - rows of keys or values in a caller's buffer, and the decoding of quantisers' codes. Arithmetic only. */
#ifndef EVP_ROW_SINK_H
#define EVP_ROW_SINK_H

#include "codes/quant_row.h"

#include <stddef.h>
#include <stdint.h>

enum { ROW_COLUMNS = 1 << 10 }; // the most columns of a row

/* The rows of one head in the buffer. */
struct row_sink {
    char *to;                          // row 0
    int type;                          // enum evp_type
    int64_t row_stride, column_stride; // in numbers
    int columns;                       // at most ROW_COLUMNS
    const uint16_t *source;            // (columns) which of the row's columns each one gets; NULL: its own
};

size_t row_type_bytes(int type); // of enum evp_type; 0: no such type

/* Writes n rows (n, columns) from row `first` on. */
void row_sink_bf16(const struct row_sink *sink, int64_t first, int64_t n, const uint16_t *x);

/* Call it after the last rows: until then other threads may not see all of them. */
void row_sink_end(void);

/* Codes of a head in groups: kivi's keys have one line of codes, scales and zeros for each column, of which there are a
 * multiple of 8, values one for each row, as int4's and int8's keys. */
struct row_codes {
    int bits, group;
    int64_t n_rows;
    const uint32_t *codes; // (columns, n_rows * bits / 32), or (n_rows, columns * bits / 32)
    const uint16_t *scales, *zeros;
};

/* Decodes [skip, skip + n) of the rows and writes them from row `first` of the sink on: code * scale + zero, in f32. */
struct row_span {
    int64_t skip, n, first;
};
void row_sink_keys(const struct row_sink *sink, const struct row_codes *c, const struct row_span *span);
void row_sink_values(const struct row_sink *sink, const struct row_codes *c, const struct row_span *span);

/* The same of cachegen's symbols. */
struct row_symbols {
    const uint8_t *symbol; // (n_rows, columns)
    const uint16_t *max;   // (n_rows) bf16
    int steps;
};
void row_sink_symbols(const struct row_sink *sink, const struct row_symbols *s, const struct row_span *span);

/* The same of rows that are quantised one by one; at: of row 0. */
void row_sink_rows(const struct row_sink *sink, const struct quant_row *q, const struct quant_at *at,
                   const struct row_span *span);

#endif
