/* archive.h - the files inside an archive, read where they lie (libarchive), never unpacked to disk.
 *
 * zip, tar, 7-Zip and cpio, compressed with gzip, bzip2, xz, zstd or lz4. An archive is hostile until it was read to
 * its end, so what was taken from one that fails must not be used. It is refused as a whole when an entry
 *
 *     has a name that is absolute or has a component "..", or none that can be read,
 *     is a link, a device, a pipe or anything else than a file or a folder,
 *     is encrypted,
 *     says that it is, or turns out, larger than ARCHIVE_ENTRY_LIMIT, or takes the archive above ARCHIVE_TOTAL_LIMIT or
 *     ARCHIVE_RATIO_LIMIT,
 *     is damaged (checksum, length) or cut.
 */
#ifndef EVP_ARCHIVE_H
#define EVP_ARCHIVE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An entry is held in memory whole. LongBench's files are 200 rows of at most some 100 KB: tens of megabytes each. */
#define ARCHIVE_ENTRY_LIMIT ((uint64_t)1 << 30)
#define ARCHIVE_TOTAL_LIMIT ((uint64_t)8 << 30)

/* Text shrinks 3 to 20 times, tables of repeated rows 100 times, deflate's bombs 1000 times and the others' more. */
enum { ARCHIVE_RATIO_LIMIT = 200 };

/* Below it the ratio does not count: a short file of blanks is no bomb. */
#define ARCHIVE_RATIO_FREE ((uint64_t)16 << 20)

/* More would only be there to waste time. */
enum { ARCHIVE_ENTRIES_LIMIT = 1 << 20 };

struct archive_source {
    const char *label; // for messages: "'data.zip'"
    const char *path;  // the file, or NULL: the n bytes
    const void *bytes;
    size_t n;
};

struct archive_visitor {
    bool (*wants)(void *arg, const char *name); // of an entry that is a file; false: it is not read
    int (*file)(void *arg, const char *name, const char *bytes, size_t n, struct err *err); // the bytes end in a NUL
    void *arg;
};

enum { ARCHIVE_NONE = 1 };

/* Every file in order of the archive. ARCHIVE_NONE, and no call: the source is no archive known here. */
int archive_visit(const struct archive_source *source, const struct archive_visitor *visitor,
                  struct err *err) MUST_CHECK;

#endif
