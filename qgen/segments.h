/* segments.h - a text cut into segments that questions can be asked about: sentences, lines, headings.
 *
 * The text may be prose (hard-wrapped or not), a dialogue, a list, code, or a script without blanks. A sentence ends at
 * . ! ? (or their CJK forms) by the rules of writing; a line end ends a segment unless the line looks wrapped; a
 * segment longer than MAX_SEGMENT is cut there, at a blank if there is one. There is only white space between
 * segments.
 */
#ifndef EVP_SEGMENTS_H
#define EVP_SEGMENTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { MAX_SEGMENT = 400 }; /* bytes; a long sentence has half as many */

struct segment {
    size_t at, n; // bytes of the text; no white space at either end, line ends inside where the text is wrapped
    bool heading; // a short line on its own that opens a section
};

struct segments {
    struct segment *at; // in the order of the text
    int n, cap;
};

/* Fills *out, which segments_release() empties. */
int segments_cut(struct segments *out, const char *text, size_t n, struct err *err) MUST_CHECK;
void segments_release(struct segments *out);

#endif
