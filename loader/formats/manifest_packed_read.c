/* manifest_packed_read.c - the packed rows of a manifest, in rounds of pieces: while several threads make rows of one
 * round, one takes over those of the round before and reads the round after, and one reads as much of the manifest
 * itself, for its digest. */
#include "loader/formats/manifest_packed.h"

#include "base/array.h"
#include "base/parallel.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PIECES = 32, PIECE_MAX = 256 << 20, TEXT = 64 << 10 }; // bytes of a piece; of the manifest at a time

/* ---- opening --------------------------------------------------------------------- */

static bool read_trailer(struct packed_trailer *t, FILE *f)
{
    return !fseek(f, -(long)sizeof(*t), SEEK_END) && fread(t, sizeof(*t), 1, f) == 1 && !fseek(f, 0, SEEK_SET) &&
           memcmp(t->magic, PACKED_MAGIC, sizeof(t->magic)) == 0 && t->order == PACKED_ORDER &&
           t->checksum == digest_xxh3(t, offsetof(struct packed_trailer, checksum));
}

/* Whoever wrote the manifest wrote the packed rows: nobody else can put others beside it. */
static bool same_owner(FILE *a, FILE *b)
{
    struct stat x, y;

    return !fstat(fileno(a), &x) && !fstat(fileno(b), &y) && x.st_uid == y.st_uid && S_ISREG(y.st_mode);
}

bool packed_open(struct packed_in *in, const struct rows_in *manifest, const char *path)
{
    struct buf name = { 0 };
    struct packed_of of;

    buf_printf(&name, "%s.packed", path);
    *in = (struct packed_in){ .f = buf_failed(&name) ? NULL : fopen(buf_str(&name), "rbe") };
    buf_release(&name);
    if (!in->f)
        return false;
    if (same_owner(manifest->f, in->f) && read_trailer(&in->trailer, in->f) && packed_file(fileno(manifest->f), &of) &&
        memcmp(&of, &in->trailer.of, sizeof(of)) == 0)
        return true;
    packed_close(in);
    return false;
}

void packed_close(struct packed_in *in)
{
    if (in->f)
        fclose(in->f);
    *in = (struct packed_in){ 0 };
}

/* ---- rounds ------------------------------------------------------------------------ */

struct piece {
    struct packed_piece head;
    struct buf bytes;
    struct manifest_part part;
    struct err err; // code 0: none
};

struct round {
    struct piece piece[PIECES];
    int n;
    size_t n_bytes;
};

struct reading {
    struct packed_in *in;
    struct rows_in *manifest;
    struct checksum *checksum; // of the manifest
    struct manifest_reading *rows;
    struct round *now, *other;
    bool all; // pieces are read
    struct err err, unread;
};

static int damaged(const struct reading *r, struct err *err)
{
    return err_set(err, ERR_FORMAT,
                   "the packed rows of %s are damaged, or not its: remove the file that ends in "
                   "'.packed'",
                   r->manifest->path);
}

static bool read_piece(const struct reading *r, struct piece *p)
{
    buf_clear(&p->bytes);
    manifest_part_clear(&p->part);
    p->err.code = 0;
    if (fread(&p->head, sizeof(p->head), 1, r->in->f) != 1 || p->head.n_bytes > PIECE_MAX)
        return false;
    char *to = buf_reserve(&p->bytes, p->head.n_bytes);
    if (!to || fread(to, 1, p->head.n_bytes, r->in->f) != p->head.n_bytes)
        return false;
    p->bytes.n = p->head.n_bytes;
    return true;
}

/* Reads the next pieces into a round. */
static void fill(struct reading *r, struct round *to)
{
    to->n = 0;
    to->n_bytes = 0;
    while (!r->all && to->n < PIECES) {
        struct piece *p = &to->piece[to->n];
        bool good = read_piece(r, p);
        r->all = !good || p->head.n_rows == 0;
        if (!good)
            damaged(r, &r->unread);
        to->n += !r->all;
        to->n_bytes += p->bytes.n;
    }
}

static void make(const struct reading *r, struct piece *p)
{
    const struct packed_bytes rows = { p->bytes.at, p->bytes.n, p->head.n_rows };
    bool whole = digest_xxh3(rows.at, rows.n) == p->head.checksum;

    if ((!whole || packed_rows(&p->part, r->rows->m, &rows, &p->err)) && p->err.code != ERR_NOMEM)
        damaged(r, &p->err);
}

static void take(struct reading *r, struct round *round)
{
    for (int i = 0; i < round->n && !r->err.code; i++) {
        struct piece *p = &round->piece[i];
        r->err = p->err;
        for (size_t k = 0; k < p->part.rows.n && !r->err.code; k++)
            if (manifest_take_part(r->rows, &p->part, k, &r->err))
                err_wrap(&r->err, "%s row %lld", r->manifest->path, (long long)r->rows->n);
    }
}

/* Adds the next bytes of the manifest, up to n, to its digest and checksum; says whether there are more. */
static bool pass_text(struct reading *r, size_t n)
{
    char text[TEXT];
    size_t got = 1;

    for (; n > 0 && got > 0; n -= got) {
        got = fread(text, 1, n < sizeof(text) ? n : sizeof(text), r->manifest->f);
        checksum_add(r->checksum, text, got);
        if (r->manifest->digest)
            digest_add(r->manifest->digest, text, got);
    }
    return got > 0;
}

enum { TASK_TAKE, TASK_TEXT, TASKS };

static void step(void *arg, int i)
{
    struct reading *r = arg;

    if (i >= TASKS) {
        make(r, &r->now->piece[i - TASKS]);
    } else if (i == TASK_TEXT) {
        pass_text(r, 2 * r->now->n_bytes); /* a row as text takes less than twice what it takes packed */
    } else {
        take(r, r->other);
        fill(r, r->other);
    }
}

static int read_rounds(struct reading *r, struct err *err)
{
    char checksum[XXH3_HEX];

    checksum_add(r->checksum, r->manifest->line, strlen(r->manifest->line));
    for (fill(r, r->now); !r->err.code && (r->now->n || r->other->n);) {
        struct round *now = r->now;
        parallel_do(parallel_threads(), TASKS + now->n, step, r);
        r->now = r->other;
        r->other = now;
    }
    if (!r->err.code)
        r->err = r->unread;
    while (!r->err.code && pass_text(r, SIZE_MAX))
        ;
    if (!r->err.code && ferror(r->manifest->f))
        err_set(&r->err, ERR_IO, "cannot read %s: %s", r->manifest->path, strerror(errno));
    checksum_end(r->checksum, checksum);
    if (!r->err.code &&
        (memcmp(checksum, r->in->trailer.manifest, sizeof(checksum)) != 0 || r->rows->n != r->in->trailer.n_rows))
        damaged(r, &r->err);
    *err = r->err.code ? r->err : *err;
    return r->err.code;
}

/* Space for all rows, which is only a matter of speed: the trailer may say what it likes, and a row as text takes more
 * than packed_row. */
static void reserve(struct manifest *m, const struct packed_trailer *t)
{
    int64_t max = t->of.n_bytes / (int64_t)sizeof(struct packed_row), n = t->n_rows < max ? t->n_rows : max;

    if (n > 0 && n <= INT_MAX && map_reserve(&m->ids, (int)n) && map_reserve(&m->payloads, (int)n))
        (void)ARRAY_GROW(m, n);
}

int packed_read(struct packed_in *in, struct rows_in *manifest, struct manifest_reading *rows, struct err *err)
{
    struct round *round = calloc(2, sizeof(*round));
    struct reading r = { .in = in, .manifest = manifest, .rows = rows, .now = round, .other = round + 1 };

    if (!round)
        return err_nomem(err);
    if (!rows->visit)
        reserve(rows->m, &in->trailer);
    r.checksum = checksum_new(err);
    int code = r.checksum ? read_rounds(&r, err) : err->code;
    for (int i = 0; i < 2 * PIECES; i++) {
        buf_release(&round[i / PIECES].piece[i % PIECES].bytes);
        manifest_part_release(&round[i / PIECES].piece[i % PIECES].part);
    }
    free(round);
    return code;
}
