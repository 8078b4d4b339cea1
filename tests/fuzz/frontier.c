/* frontier.c - any bytes as a frontier: refused with a sentence, or as many numbers as columns times lines. */
#include "formats/frontier.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct frontier f;
    struct err err;
    volatile double sum = 0;

    if (frontier_parse(&f, (const char *)data, n, &err))
        return 0;
    if (f.n_columns < FRONTIER_HITS || f.n_columns > FRONTIER_COLUMNS)
        abort();
    for (int i = 0; i < f.n; i++)
        for (int k = 0; k < f.n_columns; k++)
            sum += frontier_cell(&f, i, k) + (f.column[k][0] == '\0');
    frontier_release(&f);
    return 0;
}
