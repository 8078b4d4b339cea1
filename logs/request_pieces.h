/* request_pieces.h - lines that a container runtime or a journal cut into pieces, joined again.
 *
 * CRI's runtimes write "TIME stderr P piece" and at the end "TIME stderr F rest"; Docker's entries have a `log` without
 * a line end, or `partial_message`; Fluent Bit's `logtag`; journald's _LINE_BREAK. Pieces of several streams may be
 * mixed.
 */
#ifndef EVP_REQUEST_PIECES_H
#define EVP_REQUEST_PIECES_H

#include "base/buf.h"
#include "base/json.h"

#include <stddef.h>
#include <stdint.h>

enum { PIECE_STREAMS = 16 };

/* The pieces of each stream so far; zeroed before the first line of a log. */
struct request_pieces {
    struct {
        uint64_t key; // of the stream
        struct buf text;
    } open[PIECE_STREAMS];
    int n_open;
    struct buf whole; // the last line that was joined
    bool ends;        // Docker's entries of this log end with a line end
};

enum request_piece {
    PIECE_ALONE,
    PIECE_KEPT,
    PIECE_WHOLE,
    PIECE_LOST
}; // *text is a line; kept; joined; too long, or no memory

/* A line of text, and the text of a row. PIECE_WHOLE: *text is the joined line, valid until the next call. A stream
 * begins anew when it has more than 256 MiB, or there are too many; then the pieces that are lost are in *text. */
enum request_piece request_piece_line(struct request_pieces *p, const char **text);
enum request_piece request_piece_row(struct request_pieces *p, const struct json *row, const char **text);

/* Gives out the pieces of a line that never ended; NULL: there are no more. */
const char *request_piece_left(struct request_pieces *p);

void request_pieces_release(struct request_pieces *p); // zeroed is fine

#endif
