/* magic.h - what a file is, by its first and last bytes: for messages about a file that a tool cannot use.
 *
 *     'table.h5' is a table, not tiers
 *     'letter.docx' is a Word document; make a text of it: pandoc -t plain IN.docx -o OUT.txt
 */
#ifndef EVP_MAGIC_H
#define EVP_MAGIC_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct magic {
    const char *is;   // "is a table"
    const char *then; // what to do with it; NULL: nothing
    bool packed;      // an archive, or a compressed file
};

/* The kind of a whole file in memory; only its first and last 64 KiB are looked at. NULL: plain text or unknown. */
const struct magic *magic_of(const void *at, size_t n);

/* What a stream or JSON file with this "evp" holds: "a manifest"; the name itself if it is unknown. */
const char *magic_kind(const char *evp);

/* For readers of a format that have failed with ERR_FORMAT: replaces the message if the file is known to be something
 * else. `wanted`: "a table". A path that names no regular file is not opened. Returns err->code. */
int magic_refuse(struct err *err, const char *path, const char *wanted);

/* The same for bytes in memory; `label`: "standard input". */
struct magic_source {
    const char *label;
    const void *at;
    size_t n;
};
int magic_refuse_bytes(struct err *err, const struct magic_source *source, const char *wanted);

#endif
