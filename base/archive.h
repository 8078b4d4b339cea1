/* archive.h - the files inside an archive, read in place (libarchive), never unpacked to disk.
 *
 * Formats: zip, tar, 7-Zip and cpio, compressed with gzip, bzip2, xz, zstd or lz4. An archive is hostile until it has
 * been read to its end: when it fails, nothing that came from it may be used. It is refused as a whole when an entry
 *
 *     has a name that is absolute, has a component "..", or cannot be read,
 *     is a link, a device, a pipe or anything else than a file or a folder,
 *     is encrypted,
 *     is larger than ARCHIVE_MAX_ENTRY, by its header or when it is read,
 *     takes the archive above ARCHIVE_MAX_TOTAL or ARCHIVE_MAX_RATIO,
 *     is damaged (checksum, length) or cut.
 */
#ifndef EVP_ARCHIVE_H
#define EVP_ARCHIVE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An entry is held in memory whole. LongBench's files are 200 rows of at most some 100 KB: tens of megabytes each. */
#define ARCHIVE_MAX_ENTRY ((uint64_t)1 << 30)
#define ARCHIVE_MAX_TOTAL ((uint64_t)8 << 30)

/* Text shrinks 3 to 20 times, tables of repeated rows 100 times; a bomb of deflate 1000 times, of other methods more.
 */
enum { ARCHIVE_MAX_RATIO = 200 };

/* Contents of up to this many bytes may have any ratio: a short file of blanks does no harm. */
#define ARCHIVE_ANY_RATIO ((uint64_t)16 << 20)

/* An honest archive does not have more. */
enum { ARCHIVE_MAX_ENTRIES = 1 << 20 };

struct archive_source {
    const char *label; // for messages: "'data.zip'"
    const char *path;  // the file, or NULL: the n bytes
    const void *bytes;
    size_t n;
};

struct archive_visitor {
    bool (*wants)(void *arg, const char *name); // does it want the file? Otherwise the file is skipped
    int (*file)(void *arg, const char *name, const char *bytes, size_t n, struct err *err); // the bytes end in a NUL
    void *arg;
};

enum { ARCHIVE_NONE = 1 };

/* Visits every file in the order of the archive. ARCHIVE_NONE, without any visit: the source is not an archive of a
 * known kind. */
int archive_visit(const struct archive_source *source, const struct archive_visitor *visitor,
                  struct err *err) MUST_CHECK;

/* One compressed file (gzip, bzip2, xz, zstd, lz4) that is no archive: sets *out to its contents, of at most
 * ARCHIVE_MAX_ENTRY bytes and ARCHIVE_MAX_RATIO times its size. ARCHIVE_NONE, and *out untouched: the path is not that
 * of a compressed file. A pipe is not read. */
int archive_unpack(struct buf *out, const char *path, struct err *err) MUST_CHECK;

/* A file that may be compressed (gzip, bzip2, xz, zstd, lz4), read piece by piece from the beginning of `fd`, which is
 * borrowed. Nothing of it is kept, so it may be of any size. NULL: why is in *err. */
struct archive_stream;
struct archive_stream *archive_stream_open(const char *label, int fd, struct err *err);

/* Adds the next bytes to *to. 1: there were some; 0: the end. */
int archive_stream_read(struct archive_stream *s, struct buf *to, struct err *err) MUST_CHECK;
void archive_stream_close(struct archive_stream *s); // NULL is fine

#endif
