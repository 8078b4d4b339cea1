/* medium.h - where the payloads of a tier lie: bytes under keys. A driver hides what holds them.
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
 * A key is the name of an object as object_file() makes it, which is a digest of everything that tells one payload from
 * another, its namespace and its checksum too. So under one key there is only ever one content. A medium neither knows
 * what is placed nor keeps an order of writes: state, index and lock of every tier are in a folder on this machine
 * (tier_folder()), and loader/store/tier_store.h says in which order they are written. A medium promises instead:
 *   - what was put and flushed is read back as it was, or not at all;
 *   - of two calls on different keys in two threads neither harms the other.
 *
 * Files in folders are part of the program. Any other kind of tier has its driver in a shared object, evp-KIND.so, which
 * is opened for the first such tier (base/plugin.h): nobody else needs its libraries. One that is not there leaves a
 * medium that cannot be reached.
 *
 * To add a medium (tests/plugins/lmcache.c is one, in memory):
 *   (1) loader/NAME/medium_NAME.c: its driver, whose functions keep the contracts below, and evp_medium, a struct
 *       medium_plugin;
 *   (2) Makefile: NAME in MEDIUM_NAMES makes evp-NAME.so of the files there and of what they call in libevicpress's folders;
 *       libraries that it needs besides are MEDIUM_LIBS_NAME;
 *   (3) formats/tiers.h: TIER_NAME, and tier_is_remote(), so that it may have a `state`;
 *   (4) formats/tiers.c: what the kind is called, and which uris are its own.
 * A new kind is a new version of tiers.json and the manifest: docs/formats/tiers.md. tests/unit/medium.c runs the same
 * tests over every driver.
 */
#ifndef EVP_MEDIUM_H
#define EVP_MEDIUM_H

#include "base/err.h"
#include "base/plugin.h"
#include "formats/stored.h"
#include "formats/tiers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEDIUM_GONE = 1 }; // there is no such object

/* Where a tier's payloads are. All is borrowed. */
struct medium_place {
    const struct tier *tier;
    int folder;                // tier_folder(), opened (loader/store/folder.h)
    const uint8_t *store;      // (OBJECT_ID) the id of its state; NULL: it has none yet, and the medium nothing
    const struct medium *like; // of the same tier, whose connections can be shared; NULL: none
};

struct medium {
    const struct medium_driver *driver; // NULL: not opened
    const char *uri;                    // of the tier, borrowed: for sentences
    int folder;                         // borrowed
    void *own;                          // the driver's
};

/* Bytes to read: of an object, which needs its medium no longer, of any open file, or in memory. */
struct blob {
    const struct medium_driver *driver; // of an object; NULL: of none
    void *own;                          // the driver's
    int fd;                             // -1: it is no file
    const char *bytes;                  // in memory, borrowed; NULL: they are not
    int64_t size;                       // of an object, or in memory; of an open file -1: where it ends
};

struct medium_object {
    const char *key;
    int64_t size;
};

typedef int medium_visit(void *arg, const struct medium_object *object, struct err *err);

struct medium_driver {
    const char *name;
    size_t chunk;  // bytes of an object to read at a time, where all of it is read
    bool verifies; // read() compares what it gives out with a checksum that the key is part of

    int (*open)(struct medium *m, const struct medium_place *place, struct err *err); // NULL: nothing to do
    void (*close)(struct medium *m);                                                  // NULL: nothing to do

    /* Can it be reached now? Fails with the reason. NULL: it is here. */
    int (*reach)(const struct medium *m, struct err *err);

    /* Stores all of `from` under a key; what is there is replaced. After a failure nothing is under the key that
     * anybody reads. The bytes are safe after flush() only. */
    int (*put)(const struct medium *m, const char *key, const struct blob *from, struct err *err);

    /* Makes safe what was put under a key; NULL: all that was put. What is safe survives what the medium survives. */
    int (*flush)(const struct medium *m, const char *key, struct err *err);

    /* Opens an object that shall have b->size bytes: 0, MEDIUM_GONE, or an error; ERR_FORMAT: it has another size. A
     * driver whose objects are files sets b->fd, which blob_close() closes; another one sets b->own. */
    int (*get)(const struct medium *m, const char *key, struct blob *b, struct err *err);

    /* Reads n bytes at an offset of an object. NULL: they are files. */
    int (*read)(const struct blob *b, void *to, size_t n, uint64_t offset, struct err *err);

    /* Frees b->own. NULL: it has none. */
    void (*release)(struct blob *b);

    /* The next read of an object comes from where it is kept, not from a cache. NULL: it does so. */
    void (*drop)(const struct blob *b);

    /* Which of n objects are there, with their sizes? Fails only when that cannot be found out. */
    int (*look)(const struct medium *m, const struct medium_object *object, int n, bool *there, struct err *err);

    /* Removes an object; one that is not there is no error. */
    int (*remove)(const struct medium *m, const struct medium_object *object, struct err *err);

    /* What it can take before it is full, and a number that tells it from others: two tiers may be in one. NULL: what
     * the folder's disk has. */
    int (*space)(const struct medium *m, uint64_t *number, int64_t *free_bytes, struct err *err);

    /* Calls each(arg, object) for all objects of this store, and for those that a killed writer has put in part. Their
     * sizes are what remove() needs to know, and nothing else. */
    int (*each)(const struct medium *m, medium_visit *each, void *arg, struct err *err);
};

/* Raised when this file or one that it includes changes in a way that MEDIUM_VERSION does not show. */
enum { MEDIUM_ABI = 1 };

/* Sizes of what goes through the interface: another layout, another number. */
#define MEDIUM_VERSION                                                                                                 \
    {                                                                                                                  \
        MEDIUM_ABI, (uint32_t)(sizeof(struct medium_driver) + 3 * sizeof(struct medium) + 5 * sizeof(struct blob) +    \
                               7 * sizeof(struct medium_place) + 11 * sizeof(struct medium_object) +                   \
                               13 * sizeof(struct tier) + 17 * sizeof(struct err))                                     \
    }

#define MEDIUM_SYMBOL evp_medium

/* What evp-KIND.so exports. */
struct medium_plugin {
    struct plugin_version version; // MEDIUM_VERSION
    const struct medium_driver *driver;
};

extern __attribute__((visibility("default"))) const struct medium_plugin MEDIUM_SYMBOL;

/* ---- a medium ---- */

/* A tier whose shared object is missing or wrong is opened, too: it cannot be reached (ERR_DEVICE). */
int medium_open(struct medium *m, const struct medium_place *place, struct err *err) MUST_CHECK;
void medium_close(struct medium *m); // zeroed is fine

/* As in struct medium_driver. The caller closes *b after success. */
int medium_get(const struct medium *m, const char *key, int64_t size, struct blob *b, struct err *err) MUST_CHECK;

/* ---- bytes ---- */

struct blob blob_of_file(int fd);                       // borrowed; from its beginning to its end
struct blob blob_of_bytes(const void *bytes, size_t n); // borrowed

/* Reads n bytes at an offset, whole or not at all. ERR_IO: it is cut, too. */
int blob_read(const struct blob *b, void *to, size_t n, uint64_t offset, struct err *err) MUST_CHECK;

/* Reads the next bytes at an offset, at most n: their number, 0 at the end, or an error. */
ssize_t blob_next(const struct blob *b, void *to, size_t n, uint64_t offset, struct err *err) MUST_CHECK;

/* Is every read compared with a checksum that the object's key is part of? */
static inline bool blob_verifies(const struct blob *b)
{
    return b->driver && b->driver->verifies;
}

enum { BLOB_SMALL = 1 << 15 }; // bytes that are read at once, on the stack

/* How many bytes to read at a time, where all of it is read. */
size_t blob_chunk(const struct blob *b);

/* Size and checksum, from the beginning. */
int blob_checksum(const struct blob *b, int64_t *size, char checksum[XXH3_HEX], struct err *err) MUST_CHECK;

void blob_close(struct blob *b); // of medium_get(); zeroed is fine

#endif
