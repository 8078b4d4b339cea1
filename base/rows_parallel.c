/* rows_parallel.c - the rows of a stream, parsed by several threads.
 *
 * The stream is read in rounds of PIECES pieces, cut at line ends. While some threads parse one round, one takes over
 * what the round before has become, in the order of the stream, and reads the text of the round after; one adds the
 * text of the round to the digest.
 */
#include "base/rows_internal.h"

#include "base/array.h"
#include "base/parallel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 32, TEXT = 256 << 10 };

/* What has become of a piece. Lines are counted from its first one, which is 1. */
struct piece {
    const char *text; // of its round
    size_t n;
    void *made;
    struct {
        int64_t *at; // the line of each row
        size_t n, cap;
    } rows;
    int64_t n_line;   // lines that were read: to the end, the first bad one, or the end line
    struct err err;   // code 0: none
    bool ended;       // by the end line, which says that there are end_rows
    size_t after_end; // where the text goes on
    int64_t end_rows;
};

struct round {
    char *text;
    size_t n, cap;
    size_t fresh, whole; // the first `fresh` bytes were read with the round before; whole lines end after `whole`
    struct piece piece[PIECES];
    int n_pieces;
};

struct reading {
    struct rows_in *in;
    const struct rows_work *work;
    size_t text; // of a piece
    struct round *now, *other;
    struct err err;    // of the first bad line; code 0: none
    struct err unread; // of the stream: counts when all that could be read is taken
};

/* ---- a piece, in any thread ------------------------------------------------------------ */

/* Goes through one row; 1: it was the end line, and there are no more. */
static int make_row(const struct rows_work *work, struct piece *p, const struct json *row)
{
    if (rows_is_end(row)) {
        p->ended = !json_want_int(row, "rows", &p->end_rows, &p->err);
        return 1;
    }
    if (ARRAY_GROW(&p->rows, p->rows.n + 1))
        return err_nomem(&p->err);
    if (work->make(work->arg, p->made, row, &p->err))
        return p->err.code;
    p->rows.at[p->rows.n++] = p->n_line;
    return 0;
}

static void make_piece(const struct rows_work *work, struct piece *p)
{
    const char *at = p->text, *end = p->text + p->n;
    int stop = 0;

    while (at < end && !stop) {
        struct json *row;
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *next = newline ? newline + 1 : end;
        int got = rows_line(at, (size_t)(next - at), &row, &p->err);
        p->n_line++;
        at = next;
        if (got == 1) {
            stop = make_row(work, p, row);
            json_free(row);
        } else {
            stop = got;
        }
    }
    p->after_end = (size_t)(at - p->text);
}

/* ---- the rounds, one after the other ------------------------------------------------------- */

/* Text after the end line may be blank lines alone. */
static int check_rest(struct rows_in *in, const char *text, size_t n, struct err *err)
{
    for (const char *end = text + n, *next; text < end; text = next) {
        struct json *row;
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        next = newline ? newline + 1 : end;
        in->n_line++;
        int got = rows_line(text, (size_t)(next - text), &row, err);
        if (got)
            return got < 0 ? rows_wrap(in, err) : rows_after_end(in, row, err);
    }
    return 0;
}

static int take_piece(struct reading *r, struct piece *p)
{
    struct rows_in *in = r->in;
    int64_t before = in->n_line;

    if (in->ended)
        return check_rest(in, p->text, p->n, &r->err);
    for (size_t k = 0; k < p->rows.n; k++) {
        in->n_rows++;
        in->n_line = before + p->rows.at[k];
        if (r->work->take(r->work->arg, p->made, k, &r->err))
            return rows_wrap(in, &r->err);
    }
    in->n_line = before + p->n_line;
    if (p->err.code) {
        r->err = p->err;
        return rows_wrap(in, &r->err);
    }
    if (!p->ended)
        return 0;
    if (rows_note_end(in, p->end_rows, &r->err))
        return r->err.code;
    return check_rest(in, p->text + p->after_end, p->n - p->after_end, &r->err);
}

static void take_round(struct reading *r, struct round *round)
{
    for (int i = 0; i < round->n_pieces && !r->err.code; i++)
        (void)take_piece(r, &round->piece[i]);
}

/* Space for n more bytes of text. */
static int reserve(struct round *to, size_t n)
{
    struct {
        char *at;
        size_t cap;
    } text = { to->text, to->cap };
    int failed = ARRAY_GROW(&text, to->n + n);

    to->text = text.at;
    to->cap = text.cap;
    return failed;
}

/* Appends up to n bytes of the stream; says whether it may go on after them. */
static bool append(struct reading *r, struct round *to, size_t n)
{
    struct rows_in *in = r->in;

    if (reserve(to, n)) {
        err_nomem(&r->unread);
        return false;
    }
    errno = 0;
    size_t got = fread(to->text + to->n, 1, n, in->f);
    if (got < n && ferror(in->f))
        err_set(&r->unread, ERR_IO, "cannot read %s: %s", in->path, strerror(errno));
    to->n += got;
    return got == n;
}

/* Cuts the whole lines of a round into pieces. */
static void cut(struct reading *r, struct round *round)
{
    size_t at = 0;

    for (round->n_pieces = 0; at < round->whole; round->n_pieces++) {
        struct piece *p = &round->piece[round->n_pieces];
        size_t n = round->whole - at;
        if (n > r->text && round->n_pieces < PIECES - 1) {
            const char *from = round->text + at, *newline = memchr(from + r->text - 1, '\n', n - r->text + 1);
            n = newline ? (size_t)(newline - from) + 1 : n;
        }
        r->work->clear(p->made);
        p->text = round->text + at;
        p->n = n;
        p->rows.n = 0;
        p->n_line = 0;
        p->err.code = 0;
        p->ended = false;
        at += n;
    }
}

/* Reads the round after one. A line that is too long is not read to its end: it is refused anyway. */
static void fill(struct reading *r, struct round *to, const struct round *before)
{
    size_t tail = before->n - before->whole, old;
    const char *newline;
    bool more;

    to->n = to->whole = 0;
    to->n_pieces = 0;
    if (r->unread.code)
        return;
    if (reserve(to, tail + 1)) {
        err_nomem(&r->unread);
        return;
    }
    if (tail > 0)
        memcpy(to->text, before->text + before->whole, tail);
    to->n = to->fresh = tail;
    do {
        old = to->n;
        more = append(r, to, PIECES * r->text);
        newline = memrchr(to->text + old, '\n', to->n - old);
    } while (more && !newline && to->n <= ROWS_LINE_MAX);
    to->whole = newline && (more || r->unread.code) ? (size_t)(newline + 1 - to->text) : to->n;
    cut(r, to);
}

/* What is done of each round, and then one piece after the other. */
enum { TASK_TAKE, TASK_DIGEST, TASKS };

static void step(void *arg, int i)
{
    struct reading *r = arg;

    if (i >= TASKS) {
        make_piece(r->work, &r->now->piece[i - TASKS]);
    } else if (i == TASK_DIGEST && r->in->digest) {
        digest_add(r->in->digest, r->now->text + r->now->fresh, r->now->n - r->now->fresh);
    } else if (i == TASK_TAKE) {
        take_round(r, r->other);
        if (!r->err.code)
            fill(r, r->other, r->now);
    }
}

static void read_rounds(struct reading *r)
{
    int n_threads = r->work->n_threads ? r->work->n_threads : parallel_threads();

    fill(r, r->now, r->other);
    while (!r->err.code && (r->now->n_pieces > 0 || r->other->n_pieces > 0)) {
        struct round *now = r->now;
        parallel_do(now->n_pieces > 1 ? n_threads : 1, TASKS + now->n_pieces, step, r);
        r->now = r->other;
        r->other = now;
    }
}

static int round_init(struct round *round, const struct rows_work *work)
{
    char *made = calloc(PIECES, work->size);

    for (int i = 0; i < PIECES && made; i++)
        round->piece[i].made = made + (size_t)i * work->size;
    return made ? 0 : -1;
}

static void round_release(struct round *round, const struct rows_work *work)
{
    for (int i = 0; i < PIECES && round->piece[0].made; i++)
        work->release(round->piece[i].made);
    for (int i = 0; i < PIECES; i++)
        free(round->piece[i].rows.at);
    free(round->piece[0].made);
    free(round->text);
}

int rows_share(struct rows_in *in, const struct rows_work *work, struct err *err)
{
    struct round *round = calloc(2, sizeof(*round));
    struct reading r = { in, work, work->text ? work->text : TEXT, round, round + 1, { 0 }, { 0 } };

    if (!round)
        return err_nomem(err);
    if (round_init(&round[0], work) || round_init(&round[1], work))
        err_nomem(&r.err);
    else
        read_rounds(&r);
    for (int i = 0; i < 2; i++)
        round_release(&round[i], work);
    free(round);
    if (!r.err.code && !r.unread.code)
        return rows_check_ended(in, err);
    *err = r.err.code ? r.err : r.unread;
    return err->code;
}
