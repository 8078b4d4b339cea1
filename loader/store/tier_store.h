/* tier_store.h - a folder that is a storage tier.
 *
 *     DIR/evp-index                 JSON Lines, kind "index": an entry (loader/formats/stored.h) per payload; replaced
 * whole DIR/evp-0123456789abcdef-...  the payloads; a name is never used for another content DIR/evp-lock held by the
 * evp-load at work
 *
 * Readers read the index, then the files it names. A file is complete, flushed and read back before an index names it,
 * and it goes only after an index without it is in place; so at every moment, after a crash too, what an index names is
 * whole. A reader with an old index may find a file gone and reads the index again.
 *
 * A tier whose index was damaged or lost is empty to everybody: remove what is left of evp-index, and the next load
 * places everything anew.
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
    struct entries in;       // what lies there, spare ones too
    bool changed;            // the index on disk is older than `in`
    int lock;                // -1: none
};

/* STORE_CHANGE makes the folder when its parent exists, locks it, and removes what an interrupted load left behind.
 * STORE_LOOK changes nothing. ERR_IO: the folder or its parent is gone, or another evp-load holds the lock. */
int tier_store_open(struct tier_store *s, const struct tier *tier, enum tier_store_use use, struct err *err) MUST_CHECK;
void tier_store_close(struct tier_store *s); // zeroed is fine; the index is not written here

/* The index of a tier's folder. A folder without one is an empty tier. ERR_FORMAT: it is damaged. */
int tier_store_read_index(struct entries *in, const char *dir, struct err *err) MUST_CHECK;
int tier_store_parse_index(struct entries *in, struct rows_in *rows, struct err *err) MUST_CHECK; // of an opened stream

/* Copies the file `from` into the tier under e->file and reads it back. ERR_FORMAT when `from` does not have the size
 * and checksum of *e, ERR_IO when the tier does not give back what was written; nothing is left then. The entry is
 * copied into s->in; the index on disk is not touched. */
int tier_store_put(struct tier_store *s, const char *from, const struct entry *e, struct err *err) MUST_CHECK;

/* Writes the index, without the entries that are gone, when it changed. */
int tier_store_flush(struct tier_store *s, struct err *err) MUST_CHECK;

/* Deletes what the index does not name: the rest of a load that was killed, and files whose entries are gone. */
int tier_store_sweep(struct tier_store *s, struct err *err) MUST_CHECK;

/* Deletes a file that the index on disk no longer names. */
int tier_store_unlink(struct tier_store *s, const char *file, struct err *err) MUST_CHECK;

/* The path of a payload, allocated; NULL without memory. */
char *tier_store_path(const struct tier_store *s, const char *file);

/* Is the file of an entry there with its size; with STORE_CONTENT it is read, and its checksum compared too. */
enum tier_store_check { STORE_SIZE, STORE_CONTENT };
bool tier_store_has(const struct tier_store *s, const struct entry *e, enum tier_store_check check);

/* The disk that the folder is on, or will be, and the bytes free there. */
int tier_store_disk(const struct tier_store *s, uint64_t *device, int64_t *room, struct err *err) MUST_CHECK;

/* Copies a whole file; the copy appears complete and flushed. *size and checksum are those of what was read. */
int tier_store_copy(const char *from, const char *to, int64_t *size, char checksum[XXH3_HEX],
                    struct err *err) MUST_CHECK;

/* Size and checksum of a file. */
int tier_store_checksum(const char *path, int64_t *size, char checksum[XXH3_HEX], struct err *err) MUST_CHECK;

#endif
