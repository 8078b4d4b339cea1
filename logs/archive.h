/* archive.h - the files inside an archive, read in place (libarchive), never unpacked to disk.
 *
 * Formats: zip, tar, 7-Zip and cpio, compressed with gzip, bzip2, xz, zstd or lz4. An archive is hostile until it has
 * been read to its end: if reading fails, discard everything read from it. The whole archive is refused if an entry
 *
 *     has a name that is absolute, has a component "..", or cannot be read,
 *     is not a file or a folder (a link, a device, a pipe),
 *     is encrypted,
 *     is larger than ARCHIVE_MAX_ENTRY, by its header or when read,
 *     takes the archive above ARCHIVE_MAX_TOTAL or ARCHIVE_MAX_RATIO,
 *     is damaged (checksum, length) or truncated.
 */
#ifndef EVP_ARCHIVE_H
#define EVP_ARCHIVE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An entry is held in memory whole. LongBench's files have 200 rows of up to about 100 KB: tens of megabytes each. */
#define ARCHIVE_MAX_ENTRY ((uint64_t)1 << 30)
#define ARCHIVE_MAX_TOTAL ((uint64_t)8 << 30)

/* Text shrinks 3 to 20 times, tables of repeated rows 100 times, a deflate bomb 1000 times, other bombs more. */
enum { ARCHIVE_MAX_RATIO = 200 };

/* Contents of up to this many bytes may have any ratio: a short file of blanks does no harm. */
#define ARCHIVE_ANY_RATIO ((uint64_t)16 << 20)

/* More entries than any honest archive has. */
enum { ARCHIVE_MAX_ENTRIES = 1 << 20 };

struct archive_source {
    const char *label; // for messages: "'data.zip'"
    const char *path;  // the file, or NULL: the n bytes
    const void *bytes;
    size_t n;
};

struct archive_visitor {
    bool (*wants)(void *arg, const char *name);                                             // false: skip the file
    int (*file)(void *arg, const char *name, const char *bytes, size_t n, struct err *err); // a NUL follows the bytes
    void *arg;
};

enum { ARCHIVE_NONE = 1 };

/* Visits every file in the order of the archive. ARCHIVE_NONE, without a visit: not an archive of a known kind. */
int archive_visit(const struct archive_source *source, const struct archive_visitor *visitor,
                  struct err *err) MUST_CHECK;

/* Reads one compressed file (gzip, bzip2, xz, zstd, lz4), not an archive: sets *out to its contents, at most
 * ARCHIVE_MAX_ENTRY bytes and ARCHIVE_MAX_RATIO times its size. ARCHIVE_NONE, with *out untouched: not a compressed
 * file. A pipe is not read. */
int archive_unpack(struct buf *out, const char *path, struct err *err) MUST_CHECK;

/* Reads a file of any size, compressed (gzip, bzip2, xz, zstd, lz4) or not, block by block from the beginning of `fd`,
 * which is borrowed. NULL with *err on failure. */
struct archive_stream;
struct archive_stream *archive_stream_open(const char *label, int fd, struct err *err);

/* Takes the lines of a stream, which is UTF-8, or UTF-16 with a byte order mark. */
struct archive_lines {
    /* n bytes, no line end and no NUL among them, then a NUL; a code other than 0 ends the reading and is returned */
    int (*line)(void *arg, const char *line, size_t n, struct err *err);
    void (*read)(void *arg, int64_t bytes); // bytes read since the last call; may be NULL
    void *arg;
};

/* Gives out all lines, once: they end with LF, CR, both, or NULs; the last one may lack its end. ERR_FORMAT: one is
 * longer than 256 MiB. */
int archive_stream_lines(struct archive_stream *s, const struct archive_lines *to, struct err *err) MUST_CHECK;
bool archive_stream_unended(const struct archive_stream *s);  // does the line that is given out lack its end?
int64_t archive_stream_bytes(const struct archive_stream *s); // of the file, that were decoded; NULL: 0
void archive_stream_close(struct archive_stream *s);          // NULL is fine

#endif
