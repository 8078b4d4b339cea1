/* medium.h - the storage of a tier's payloads: bytes under keys. A driver hides the kind of storage.
 *
 *     struct medium m;
 *     struct blob payload;
 *
 *     if (medium_open(&m, &place, err) ...                            // place: the tier, its open folder, its store
 *     if (medium_get(&m, "evp-payloads/0f/0f1e...", size, &payload, err) == 0) ...
 *     if (blob_read(&payload, buffer, n, offset, err)) ...
 *     blob_close(&payload);
 *     medium_close(&m);
 *
 * A key is an object's name from object_file(): a digest of everything that distinguishes payloads, including namespace
 * and checksum. So a key never has two contents. A medium does not know which payloads are placed, and does not order
 * writes: state, index and lock of every tier are in a folder on this machine (tier_folder()), and
 * loader/store/tier_store.h defines the order of writes. A medium guarantees:
 *   - a payload that was put and flushed is read back unchanged, or not at all;
 *   - calls on different keys may run in several threads.
 *
 * The driver for files in folders is built in. Every other kind of tier has its driver in a shared object, evp-KIND.so,
 * opened for the first such tier (base/plugin.h), so that only its users need its libraries. If the object is missing,
 * the medium is unreachable.
 *
 * To add a medium (tests/plugins/lmcache.c is one, in memory):
 *   (1) loader/NAME/medium_NAME.c: the driver, with functions that fulfil the contracts below, and evp_medium, a struct
 *       medium_plugin;
 *   (2) Makefile: NAME in MEDIUM_NAMES builds evp-NAME.so from the files there and the files that they call in
 *       libevicpress's folders; MEDIUM_LIBS_NAME lists further libraries;
 *   (3) formats/tiers.h: TIER_NAME, and tier_is_remote(), so that it may have a `state`;
 *   (4) formats/tiers.c: the kind's name, and the scheme of its uris.
 * A new kind needs a new version of tiers.json and the manifest: docs/formats/tiers.md. tests/unit/medium.c runs the
 * same tests over every driver.
 */
#ifndef EVP_MEDIUM_H
#define EVP_MEDIUM_H

#include "base/err.h"
#include "base/plugin.h"
#include "formats/stored.h"
#include "formats/tiers.h"

#include <sys/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEDIUM_GONE = 1 }; // no such object

/* Where a tier's payloads are. Everything is borrowed. */
struct medium_place {
    const struct tier *tier;
    int folder;                // tier_folder(), opened (loader/store/folder.h)
    const uint8_t *store;      // (OBJECT_ID) the id of its state; NULL: no state yet, and no objects
    const struct medium *like; // an open medium of the same tier, to share its connections; NULL: none
};

struct medium {
    const struct medium_driver *driver; // NULL: not opened
    const char *uri;                    // of the tier, borrowed: for messages
    int folder;                         // borrowed
    void *own;                          // the driver's
};

/* Bytes to read: an object (independent of its medium), an open file, or memory. */
struct blob {
    const struct medium_driver *driver; // of an object; NULL: not an object
    void *own;                          // the driver's
    int fd;                             // -1: not a file
    const char *bytes;                  // in memory, borrowed; NULL: not in memory
    int64_t size;                       // of an object or memory; -1: an open file, to its end
};

struct medium_object {
    const char *key;
    int64_t size;
};

typedef int medium_visit(void *arg, const struct medium_object *object, struct err *err);

struct medium_driver {
    const char *name;
    size_t chunk;  // bytes to read at a time when reading a whole object
    bool verifies; // read() verifies its bytes by a checksum that covers the key

    int (*open)(struct medium *m, const struct medium_place *place, struct err *err); // NULL: nothing to do
    void (*close)(struct medium *m);                                                  // NULL: nothing to do

    /* Can it be reached now? Fails with the reason. NULL: always. */
    int (*reach)(const struct medium *m, struct err *err);

    /* A writer's reach(), under the folder's lock: fails also if another copy of the folder has changed the objects.
     * NULL: reach(). */
    int (*claim)(const struct medium *m, struct err *err);

    /* Stores all of `from` under a key; replaces existing bytes. After a failure nobody reads anything under the key.
     * The bytes are durable only after flush(). */
    int (*put)(const struct medium *m, const char *key, const struct blob *from, struct err *err);

    /* Makes the bytes of a key durable; NULL: of all keys. Durable bytes survive whatever the medium survives. */
    int (*flush)(const struct medium *m, const char *key, struct err *err);

    /* Opens an object of b->size bytes: 0, MEDIUM_GONE, or an error; ERR_FORMAT: it has another size. If objects are
     * files, sets b->fd, which blob_close() closes; otherwise b->own. */
    int (*get)(const struct medium *m, const char *key, struct blob *b, struct err *err);

    /* Reads n bytes at an offset of an object. NULL: objects are files. */
    int (*read)(const struct blob *b, void *to, size_t n, uint64_t offset, struct err *err);

    /* Frees b->own. NULL: not used. */
    void (*release)(struct blob *b);

    /* Makes the next read of an object come from the storage, not from a cache. NULL: every read does. */
    void (*drop)(const struct blob *b);

    /* Which of n objects exist with their sizes? Fails only if that cannot be determined. */
    int (*look)(const struct medium *m, const struct medium_object *object, int n, bool *there, struct err *err);

    /* Removes an object; a missing one is not an error. */
    int (*remove)(const struct medium *m, const struct medium_object *object, struct err *err);

    /* The free bytes, and a number that identifies the storage, because tiers may share one. NULL: the folder's
     * disk. */
    int (*space)(const struct medium *m, uint64_t *number, int64_t *free_bytes, struct err *err);

    /* Calls each(arg, object) for all objects of this store, including incomplete ones of a killed writer. Their sizes
     * are only for remove(). */
    int (*each)(const struct medium *m, medium_visit *each, void *arg, struct err *err);
};

/* Raise it when this file or one that it includes changes in a way that MEDIUM_VERSION does not show. */
enum { MEDIUM_ABI = 1 };

/* Computed from the sizes of the structs that cross the interface: another layout gives another number. */
#define MEDIUM_VERSION                                                                                                 \
    {                                                                                                                  \
        MEDIUM_ABI, (uint32_t)(sizeof(struct medium_driver) + 3 * sizeof(struct medium) + 5 * sizeof(struct blob) +    \
                               7 * sizeof(struct medium_place) + 11 * sizeof(struct medium_object) +                   \
                               13 * sizeof(struct tier) + 17 * sizeof(struct err))                                     \
    }

#define MEDIUM_SYMBOL evp_medium

/* The struct that evp-KIND.so exports. */
struct medium_plugin {
    struct plugin_version version; // MEDIUM_VERSION
    const struct medium_driver *driver;
};

extern __attribute__((visibility("default"))) const struct medium_plugin MEDIUM_SYMBOL;

/* ---- a medium ---- */

/* Succeeds even if the shared object is missing or wrong: then the medium is unreachable (ERR_DEVICE). */
int medium_open(struct medium *m, const struct medium_place *place, struct err *err) MUST_CHECK;
void medium_close(struct medium *m); // zeroed is fine

/* As in struct medium_driver. The caller closes *b after success. */
int medium_get(const struct medium *m, const char *key, int64_t size, struct blob *b, struct err *err) MUST_CHECK;

/* ---- bytes ---- */

struct blob blob_of_file(int fd);                       // borrowed; the whole file
struct blob blob_of_bytes(const void *bytes, size_t n); // borrowed

/* Reads n bytes at an offset, all or none. ERR_IO also if the bytes are cut; ERR_STALE: the object must be got
 * again. */
int blob_read(const struct blob *b, void *to, size_t n, uint64_t offset, struct err *err) MUST_CHECK;

/* Reads the next bytes at an offset, at most n: their number, 0 at the end, or an error. */
ssize_t blob_next(const struct blob *b, void *to, size_t n, uint64_t offset, struct err *err) MUST_CHECK;

/* Does every read verify a checksum that covers the object's key? */
static inline bool blob_verifies(const struct blob *b)
{
    return b->driver && b->driver->verifies;
}

enum { BLOB_SMALL = 1 << 15 }; // bytes: blobs up to this size are read at once, on the stack

/* Bytes to read at a time when reading the whole blob. */
size_t blob_chunk(const struct blob *b);

/* Size and checksum of the whole blob. */
int blob_checksum(const struct blob *b, int64_t *size, char checksum[XXH3_HEX], struct err *err) MUST_CHECK;

void blob_close(struct blob *b); // after medium_get(); zeroed is fine

#endif
