/* evp_store.h - a store of the installed library, which evp_find.c, prefix_file.c, evp_fetch.c and evp_put.c share with
 * evp_store.c.
 *
 * A store has a snapshot of the folders and their indexes. A snapshot never changes; evp_refresh() replaces it. Every
 * call counts as a user of its snapshot, and the last user of an old snapshot closes it. So the lock is held only to
 * take and give back a snapshot, never while reading a file. While one thread refreshes, the others continue with their
 * snapshots.
 */
#ifndef EVP_EVP_STORE_H
#define EVP_EVP_STORE_H

#include "formats/manifest.h"
#include "loader/libevicpress/evicpress.h"
#include "loader/libevicpress/evp_error.h"
#include "loader/libevicpress/evp_fork.h"
#include "loader/libevicpress/evp_stats.h"
#include "loader/store/index.h"
#include "loader/store/medium.h"
#include "loader/store/tier_store.h"

#include <stdatomic.h>
#include <time.h>

/* Identifies the file that was read; its replacement has another inode. */
struct stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec time;
};

/* A tier as it was read. A view never changes; snapshots share it while the tier is unchanged or unreadable. */
struct view {
    atomic_int users;
    int folder; // descriptor; -1: none
    struct index index;
    struct medium medium;
    char *uri; // medium.uri
};

struct snapshot {
    int users; // under the store's lock
    struct manifest header;
    struct stamp manifest, seen[TIER_MAX]; // seen: of the indexes
    struct view *view[TIER_MAX];           // one for each tier of the header
    int name_space[TIER_MAX];              // its number in the index; -1: absent
    struct evp_error why[TIER_MAX];        // why a tier cannot be read; .code EVICPRESS_OK: readable
};

struct evp_store {
    struct fork_safe fork;       // its lock protects `now`, the users of every snapshot, and `left_out`
    pthread_mutex_t refreshing;  // held by the thread that refreshes
    pthread_mutex_t writing;     // held by the thread that changes the tiers
    struct tier_store *changing; // (TIER_MAX) the tiers being changed, with their locks; NULL: no thread uses SQLite
    struct snapshot *now;
    struct stats *stats;          // shared with its open payloads
    char left_out[TIER_MAX][256]; // why the last change left out a tier of the manifest; "": it did not
    char *path, *name_space;      // name_space NULL: the manifest's model
    double wait_s;
    int verify; // enum evp_verify
};

/* This process was forked while another thread was changing a tier: SQLite may keep that thread's locks. */
extern atomic_bool store_cut_short;

struct snapshot *snapshot_take(struct evp_store *store);
void snapshot_give_back(struct evp_store *store, struct snapshot *s);

/* Borrowed from the store or the snapshot. */
const char *snapshot_name_space(const struct evp_store *store, const struct snapshot *s);

/* Like evp_refresh(), but waits for a thread that is refreshing. */
int snapshot_refresh(struct evp_store *store, struct err *err);

#endif
