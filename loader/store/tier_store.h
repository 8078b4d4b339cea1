/* tier_store.h - a folder that is a storage tier.
 *
 *     DIR/evp-index                   JSON Lines, kind "index": an entry (loader/formats/stored.h) per payload
 *     DIR/evp-0123456789abcdef-...    the payloads; a name is never used for another content
 *     DIR/evp-lock                    held by the evp-load that is at work
 *
 * Crash invariant: whatever an index names is complete, at every moment and after a crash. It holds because of the
 * order of writes. A payload is copied, flushed and read back before an index names it; the index is replaced whole, by
 * a rename; a payload is deleted only after an index without it is in place. What a killed load left is therefore only
 * a file that no index names, and the next one sweeps it.
 *
 * A reader reads the index, then the files it names. With an old index it may find a file gone; it reads the index
 * again.
 *
 * A damaged index is refused. The cure is to remove evp-index: the tier is then empty, and the next load places
 * everything again.
 *
 * Only folders on this machine (kinds dram and file) are served.
 */
#ifndef EVP_TIER_STORE_H
#define EVP_TIER_STORE_H

#include "base/err.h"
#include "base/rows.h"
#include "loader/formats/stored.h"
#include "loader/formats/tiers.h"

#include <stdbool.h>
#include <stdint.h>

enum tier_store_use { STORE_LOOK, STORE_CHANGE };

struct tier_store {
    const struct tier *tier; // borrowed; its uri is the folder
    struct entries in;       // the payloads in the folder, spares included
    bool changed;            // the index on disk is older than `in`
    int lock;                // -1: none
};

/* STORE_CHANGE makes the folder when its parent exists, locks it, and sweeps it. STORE_LOOK changes nothing. ERR_IO:
 * the parent is gone, or another evp-load holds the lock. ERR_FAIL: the tier is not a folder. */
int tier_store_open(struct tier_store *s, const struct tier *tier, enum tier_store_use use, struct err *err) MUST_CHECK;
void tier_store_close(struct tier_store *s); // zeroed is fine; the index is not written here

/* The path of the index of a tier's folder, allocated; NULL without memory. */
char *tier_store_index_path(const char *dir);

/* Reads the index of a tier's folder. A folder without one is an empty tier. ERR_FORMAT: it is damaged. */
int tier_store_read_index(struct entries *in, const char *dir, struct err *err) MUST_CHECK;
int tier_store_parse_index(struct entries *in, struct rows_in *rows, struct err *err) MUST_CHECK; // of an opened stream

/* Copies the file `from` into the tier under e->file, reads it back, and adds a copy of the entry to s->in. The index
 * on disk stays as it is. ERR_FORMAT: `from` does not have the size and checksum of *e. ERR_IO: the tier does not give
 * back what was written. After a failure the copy is removed. */
int tier_store_put(struct tier_store *s, const char *from, const struct entry *e, struct err *err) MUST_CHECK;

/* Writes the index without the entries that are gone, if it changed. */
int tier_store_flush(struct tier_store *s, struct err *err) MUST_CHECK;

/* Deletes payloads and temporary files that s->in does not have: what a killed load left, and files whose entries are
 * gone. */
int tier_store_sweep(struct tier_store *s, struct err *err) MUST_CHECK;

/* Deletes a file that the index on disk no longer names. */
int tier_store_unlink(struct tier_store *s, const char *file, struct err *err) MUST_CHECK;

/* The path of a payload, allocated; NULL without memory. */
char *tier_store_path(const struct tier_store *s, const char *file);

/* Is the file of an entry there, with its size? STORE_CONTENT also reads it and compares its checksum. */
enum tier_store_check { STORE_SIZE, STORE_CONTENT };
bool tier_store_has(const struct tier_store *s, const struct entry *e, enum tier_store_check check);

/* The disk that the folder is on, or will be, and its free bytes. */
int tier_store_disk(const struct tier_store *s, uint64_t *device, int64_t *free_bytes, struct err *err) MUST_CHECK;

/* Copies a whole file; the copy appears complete and flushed. *size and checksum are those of the bytes read. */
int tier_store_copy(const char *from, const char *to, int64_t *size, char checksum[XXH3_HEX],
                    struct err *err) MUST_CHECK;

/* Size and checksum of a file. */
int tier_store_checksum(const char *path, int64_t *size, char checksum[XXH3_HEX], struct err *err) MUST_CHECK;

#endif
