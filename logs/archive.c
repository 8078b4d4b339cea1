/* archive.c - one walk over the entries. An entry's header is checked before its contents are read, and its actual size
 * while they are read; a skipped entry counts with the size in its header.
 */
#include "logs/archive.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/utf8.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BLOCK = 1 << 16, MAX_SHOWN = 200 }; /* bytes; MAX_SHOWN: of a name in a message */

struct walk {
    struct archive *archive;
    const struct archive_source *source;
    const struct archive_visitor *visitor;
    uint64_t packed;   // bytes of the archive
    uint64_t produced; // bytes of its entries so far, read or skipped
    int n_entries;
    struct buf bytes; // of the current entry
};

/* ---- messages ------------------------------------------------------------- */

static int refuse(const struct walk *w, const char *name, const char *why, struct err *err)
{
    return err_set(err, ERR_FORMAT, "%s is refused: entry '%.*s' %s", w->source->label, MAX_SHOWN, name, why);
}

/* name NULL: the archive failed, not one entry. */
static int library_failure(const struct walk *w, const char *name, struct err *err)
{
    const char *why = archive_error_string(w->archive);

    if (!why)
        why = "unknown reason";
    int n = (int)strcspn(why, "\n"); /* some messages end in a line break */
    if (!name)
        return err_set(err, ERR_FORMAT, "%s is damaged or cut: %.*s", w->source->label, n, why);
    return err_set(err, ERR_FORMAT, "%s entry '%.*s' is damaged or cut: %.*s", w->source->label, MAX_SHOWN, name, n,
                   why);
}

/* ---- refusals ------------------------------------------------------------- */

/* Both kinds of slash count: archives come from every system. */
static bool leaves_folder(const char *name)
{
    bool drive = name[0] && name[1] == ':';

    if (drive || name[0] == '/' || name[0] == '\\')
        return true;
    for (const char *at = name;; at++) {
        size_t n = strcspn(at, "/\\");
        if (n == 2 && at[0] == '.' && at[1] == '.')
            return true;
        at += n;
        if (!*at)
            return false;
    }
}

static const char *entry_name(struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);

    return name ? name : archive_entry_pathname_utf8(entry);
}

/* May an entry of n bytes grow by `more`? */
static int check_size(struct walk *w, const char *name, uint64_t n, uint64_t more, struct err *err)
{
    if (more > ARCHIVE_MAX_ENTRY || n + more > ARCHIVE_MAX_ENTRY)
        return refuse(w, name, "is larger than 1 GiB", err);
    uint64_t total = w->produced + n + more;
    if (total > ARCHIVE_MAX_TOTAL)
        return refuse(w, name, "makes the contents larger than 8 GiB", err);
    if (total > ARCHIVE_ANY_RATIO && total / ARCHIVE_MAX_RATIO > w->packed)
        return refuse(w, name, "makes the contents larger than 200 times the archive", err);
    return 0;
}

static int check_entry(struct walk *w, struct archive_entry *entry, const char *name, struct err *err)
{
    mode_t type = archive_entry_filetype(entry);

    if (++w->n_entries > ARCHIVE_MAX_ENTRIES)
        return refuse(w, name, "exceeds the limit of 1048576 entries", err);
    if (leaves_folder(name))
        return refuse(w, name, "points outside the archive", err);
    if (archive_entry_hardlink(entry) || archive_entry_symlink(entry) || type == AE_IFLNK)
        return refuse(w, name, "is a link", err);
    if (type != AE_IFREG && type != AE_IFDIR)
        return refuse(w, name, "is neither a file nor a folder", err);
    if (archive_entry_is_encrypted(entry))
        return refuse(w, name, "is encrypted", err);
    if (!archive_entry_size_is_set(entry))
        return 0;
    if (archive_entry_size(entry) < 0)
        return refuse(w, name, "has a negative size", err);
    return check_size(w, name, 0, (uint64_t)archive_entry_size(entry), err);
}

/* ---- reading -------------------------------------------------------------- */

static int read_entry(struct walk *w, const char *name, struct err *err)
{
    buf_clear(&w->bytes);
    for (;;) {
        char *to = buf_reserve(&w->bytes, READ_BLOCK);
        if (!to)
            return err_nomem(err);
        la_ssize_t n = archive_read_data(w->archive, to, READ_BLOCK);
        if (n < 0)
            return library_failure(w, name, err);
        if (n == 0)
            break;
        if (check_size(w, name, w->bytes.n, (uint64_t)n, err))
            return err->code;
        w->bytes.n += (size_t)n;
    }
    w->bytes.at[w->bytes.n] = '\0';
    w->produced += w->bytes.n;
    return w->visitor->file(w->visitor->arg, name, w->bytes.at, w->bytes.n, err);
}

static int visit_entry(struct walk *w, struct archive_entry *entry, struct err *err)
{
    const char *name = entry_name(entry);

    if (!name)
        return refuse(w, "?", "has a name that cannot be read", err);
    if (check_entry(w, entry, name, err))
        return err->code;
    if (archive_entry_filetype(entry) == AE_IFREG && w->visitor->wants(w->visitor->arg, name))
        return read_entry(w, name, err);
    if (archive_entry_size_is_set(entry))
        w->produced += (uint64_t)archive_entry_size(entry);
    return archive_read_data_skip(w->archive) == ARCHIVE_OK ? 0 : library_failure(w, name, err);
}

static int walk_entries(struct walk *w, struct err *err)
{
    struct archive_entry *entry;

    for (;;) {
        int got = archive_read_next_header(w->archive, &entry);
        if (got == ARCHIVE_EOF)
            return 0;
        if (got != ARCHIVE_OK && got != ARCHIVE_WARN) /* a warning is about a name's character set */
            return library_failure(w, NULL, err);
        if (visit_entry(w, entry, err))
            return err->code;
    }
}

/* Only the filters built into libarchive: the others run programs. The zip reader begins with the directory at the end
 * of the file, so it rejects a truncated zip. */
static void support_filters(struct archive *a)
{
    archive_read_support_filter_gzip(a);
    archive_read_support_filter_bzip2(a);
    archive_read_support_filter_xz(a);
    archive_read_support_filter_zstd(a);
    archive_read_support_filter_lz4(a);
}

static void support(struct archive *a)
{
    archive_read_support_format_zip_seekable(a);
    archive_read_support_format_tar(a);
    archive_read_support_format_7zip(a);
    archive_read_support_format_cpio(a);
    support_filters(a);
}

static int open_source(struct walk *w, struct err *err)
{
    const struct archive_source *s = w->source;

    w->packed = s->n;
    if (s->path && file_size(s->path, &w->packed, err))
        return err->code;
    w->archive = archive_read_new();
    if (!w->archive)
        return err_nomem(err);
    support(w->archive);
    int got = s->path ? archive_read_open_filename(w->archive, s->path, READ_BLOCK)
                      : archive_read_open_memory(w->archive, s->bytes, s->n);
    if (got == ARCHIVE_OK)
        return 0;
    int why = archive_errno(w->archive);
    if (why == EILSEQ) /* libarchive's code for an unknown format */
        return ARCHIVE_NONE;
    if (why <= 0)
        return library_failure(w, NULL, err);
    return err_set(err, ERR_IO, "cannot open %s: %s", s->label, strerror(why));
}

int archive_visit(const struct archive_source *source, const struct archive_visitor *visitor, struct err *err)
{
    struct walk w = { .source = source, .visitor = visitor };
    int code = open_source(&w, err);

    if (!code)
        code = walk_entries(&w, err);
    if (w.archive)
        archive_read_free(w.archive);
    buf_release(&w.bytes);
    return code;
}

/* ---- one compressed file ---------------------------------------------------- */

static int keep_bytes(void *arg, const char *name, const char *bytes, size_t n, struct err *err)
{
    struct buf *out = arg;

    (void)name;
    buf_add(out, bytes, n);
    return buf_failed(out) ? err_nomem(err) : 0;
}

/* Does a file begin like one of the supported compressed files? */
static bool is_compressed(const char *path)
{
    static const struct {
        const char *bytes;
        size_t n;
    } magic[] = { { "\x1f\x8b", 2 },
                  { "BZh", 3 },
                  { "\xfd"
                    "7zXZ",
                    5 },
                  { "\x28\xb5\x2f\xfd", 4 },
                  { "\x04\x22\x4d\x18", 4 } };
    struct stat info;
    char start[8];
    bool found = false;

    if (stat(path, &info) || !S_ISREG(info.st_mode))
        return false;
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(start, 1, sizeof(start), f) : 0;
    for (size_t k = 0; k < sizeof(magic) / sizeof(*magic); k++)
        found |= n >= magic[k].n && memcmp(start, magic[k].bytes, magic[k].n) == 0;
    if (f)
        fclose(f);
    return found;
}

/* Opens a raw archive and reads its only entry. */
static int unpack(struct walk *w, struct err *err)
{
    struct archive_entry *entry;
    int got = archive_read_open_filename(w->archive, w->source->path, READ_BLOCK);

    got = got == ARCHIVE_OK ? archive_read_next_header(w->archive, &entry) : got;
    if (got == ARCHIVE_EOF)
        return 0;
    if (got != ARCHIVE_OK)
        return library_failure(w, NULL, err);
    return read_entry(w, "its contents", err);
}

int archive_unpack(struct buf *out, const char *path, struct err *err)
{
    struct buf label = { 0 };
    uint64_t packed;

    if (!is_compressed(path))
        return ARCHIVE_NONE;
    if (file_size(path, &packed, err))
        return err->code;
    buf_printf(&label, "'%s'", path);
    const struct archive_source source = { .label = buf_str(&label), .path = path };
    const struct archive_visitor visitor = { .file = keep_bytes, .arg = out };
    struct walk w = { .source = &source, .visitor = &visitor, .packed = packed };
    w.archive = archive_read_new();
    int code = w.archive && !buf_failed(&label) ? 0 : err_nomem(err);
    if (!code) {
        archive_read_support_format_raw(w.archive);
        archive_read_support_format_empty(w.archive);
        support_filters(w.archive);
        code = unpack(&w, err);
    }
    if (w.archive)
        archive_read_free(w.archive);
    buf_release(&w.bytes);
    buf_release(&label);
    return code;
}

/* ---- a compressed file, block by block -------------------------------------------------- */

enum { STREAM_BLOCK = 1 << 20, MAX_LINE = 256 << 20 };

struct archive_stream {
    struct archive *archive;
    const char *label;
    bool empty, unended;
    bool began, after_return; // something was read; the last line ended with CR, and LF may follow
    enum utf16_order utf16;
    struct buf raw;  // UTF-16 that is not decoded yet
    int64_t n_lines; // given out
};

static int stream_failure(const struct archive_stream *s, struct err *err)
{
    const struct archive_source source = { .label = s->label };
    const struct walk w = { .archive = s->archive, .source = &source };

    return library_failure(&w, NULL, err);
}

struct archive_stream *archive_stream_open(const char *label, int fd, struct err *err)
{
    struct archive_stream *s = calloc(1, sizeof(*s));
    struct archive_entry *entry;

    if (!s || lseek(fd, 0, SEEK_SET) < 0) {
        err_set(err, s ? ERR_IO : ERR_NOMEM, "cannot read %s: %s", label, strerror(s ? errno : ENOMEM));
        free(s);
        return NULL;
    }
    *s = (struct archive_stream){ .archive = archive_read_new(), .label = label };
    if (!s->archive) {
        free(s);
        err_nomem(err);
        return NULL;
    }
    support_filters(s->archive);
    archive_read_support_format_raw(s->archive);
    archive_read_support_format_empty(s->archive);
    int got = archive_read_open_fd(s->archive, fd, STREAM_BLOCK);
    if (got == ARCHIVE_OK)
        got = archive_read_next_header(s->archive, &entry);
    s->empty = got == ARCHIVE_EOF;
    if (got == ARCHIVE_OK || s->empty)
        return s;
    stream_failure(s, err);
    archive_stream_close(s);
    return NULL;
}

/* Reads the next block behind *to: 1, or 0 at the end. */
static int read_bytes(struct archive_stream *s, struct buf *to, struct err *err)
{
    char *at = buf_reserve(to, STREAM_BLOCK);

    if (!at)
        return err_nomem(err);
    la_ssize_t n = s->empty ? 0 : archive_read_data(s->archive, at, STREAM_BLOCK);
    if (n < 0)
        return stream_failure(s, err);
    to->n += (size_t)n;
    at[n] = '\0';
    return n > 0;
}

/* The same as UTF-8, whatever the byte order mark says. */
static int read_block(struct archive_stream *s, struct buf *to, struct err *err)
{
    if (s->began && s->utf16 == UTF16_NONE)
        return read_bytes(s, to, err);
    int got = read_bytes(s, &s->raw, err);
    if (got <= 0)
        return got;
    if (!s->began && file_check_pointer(s->raw.at, s->raw.n, err))
        return err_wrap(err, "%s", s->label);
    if (!s->began)
        s->utf16 = utf16_order(s->raw.at, s->raw.n);
    s->began = true;
    if (s->utf16 == UTF16_NONE)
        buf_add(to, s->raw.at, s->raw.n);
    size_t used = s->utf16 == UTF16_NONE ? s->raw.n : utf16_decode(to, s->raw.at, s->raw.n, s->utf16);
    s->raw.n -= used;
    memmove(s->raw.at, s->raw.at + used, s->raw.n);
    return buf_failed(to) ? err_nomem(err) : 1;
}

static const char *skip_mark(const char *at, const char *end)
{
    return end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0 ? at + 3 : at;
}

/* Takes whole lines off the front of the text: they end with LF, CR or both, or at NULs, as a log has where it was
 * emptied while it was written. */
static int take_lines(struct archive_stream *s, const struct archive_lines *to, struct buf *text, bool at_end,
                      struct err *err)
{
    char *at = text->at, *end = at + text->n, *feed = NULL;

    for (;;) {
        while (at < end && (*at == '\0' || (s->after_return && *at == '\n')))
            s->after_return &= *at++ != '\n';
        if (at < end && (!feed || feed < at)) {
            feed = memchr(at, '\n', (size_t)(end - at));
            feed = feed ? feed : end;
            *feed = '\0';
        }
        char *stop = strchrnul(at, '\r');
        s->unended = stop == end;
        if (at == end || (s->unended && !at_end))
            break;
        s->after_return = *stop == '\r' && stop + 1 == end;
        *stop = '\0';
        const char *line = skip_mark(at, stop);
        int code = to->line(to->arg, line, (size_t)(stop - line), err);
        if (code)
            return code;
        s->n_lines++;
        at = stop < end ? stop + 1 : end;
    }
    text->n = (size_t)(end - at);
    memmove(text->at, at, text->n);
    if (text->n > MAX_LINE)
        return err_set(err, ERR_FORMAT, "%s line %lld is longer than 256 MiB", s->label, (long long)s->n_lines + 1);
    return 0;
}

int archive_stream_lines(struct archive_stream *s, const struct archive_lines *to, struct err *err)
{
    struct buf text = { 0 };
    int got = 1, code = 0;

    while (got > 0 && !code) {
        size_t before = text.n;
        got = read_block(s, &text, err);
        if (got < 0 || (got == 0 && text.n == 0))
            break;
        if (text.n == 0)
            continue;
        if (to->read)
            to->read(to->arg, (int64_t)(text.n - before));
        code = take_lines(s, to, &text, got == 0, err);
    }
    buf_release(&text);
    return got < 0 ? got : code;
}

bool archive_stream_unended(const struct archive_stream *s)
{
    return s->unended;
}

int64_t archive_stream_bytes(const struct archive_stream *s)
{
    return s ? archive_filter_bytes(s->archive, -1) : 0;
}

void archive_stream_close(struct archive_stream *s)
{
    if (s) {
        archive_read_free(s->archive);
        buf_release(&s->raw);
    }
    free(s);
}
