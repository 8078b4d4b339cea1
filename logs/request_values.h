/* request_values.h - JSON values that go over many lines, or stand in a list, each as one line.
 *
 * A line that begins a value and does not end it, as pretty printers write them, waits for the lines after it. The
 * brackets and commas of a list around all values are left out. Every other line is given out as it is.
 */
#ifndef EVP_REQUEST_VALUES_H
#define EVP_REQUEST_VALUES_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>

struct request_values {
    int (*each)(void *arg, const char *line, size_t n, struct err *err);
    void *arg;
    /* zeroed */
    struct buf open; // the lines of a value so far
    int depth;       // of its brackets
};

int request_values_line(struct request_values *v, const char *line, size_t n, struct err *err) MUST_CHECK;
int request_values_end(struct request_values *v, struct err *err) MUST_CHECK; // a value without its end
void request_values_release(struct request_values *v);                        // zeroed is fine

#endif
