/* segments.h - a text cut into what questions can be asked about: sentences, lines, headings.
 *
 * The text may be prose (hard-wrapped or not), a dialogue, a list, code, or a script without blanks. A sentence ends at
 * . ! ? (or their CJK forms) as writing goes; a line end ends a piece unless the line looks wrapped; whatever is still
 * longer than PIECE_MOST is cut there, at a blank where there is one. Nothing but white space lies between pieces.
 */
#ifndef EVP_SEGMENTS_H
#define EVP_SEGMENTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { PIECE_MOST = 400 }; /* bytes: twice a long sentence */

struct piece {
    size_t at, n; // bytes of the text; no white space at either end, line ends inside where the text is wrapped
    bool heading; // a short line on its own, that opens a section
};

struct pieces {
    struct piece *at; // in the order of the text
    int n, room;
};

int pieces_cut(struct pieces *p, const char *text, size_t n, struct err *err) MUST_CHECK;
void pieces_release(struct pieces *p);

#endif
