/* folder.h - opens a tier's folder safely: nobody else could have prepared it, and everything in it is opened relative
 * to it, without following links.
 *
 * A link in place of a folder is followed only if root or the user made it. A writer's folder must belong to the user,
 * and nobody else may write to it; it is created with mode 0700. If its group may read it (folder_share()), the group
 * may also read everything created in it later. A reader's folder must belong to the user, to root, or to the owner of
 * the manifest that names it. Locks on network file systems are unreliable, so for a folder there a writer keeps its
 * state elsewhere: `state` in docs/formats/tiers.md.
 */
#ifndef EVP_FOLDER_H
#define EVP_FOLDER_H

#include "base/err.h"
#include "formats/tiers.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum folder_use {
    FOLDER_READ,
    FOLDER_WRITE, // create the folder if its parent exists
};

/* Opens a folder: *fd, or -1 if a reader's folder does not exist but its parent does. ERR_IO: the parent is missing, or
 * the folder cannot be opened. ERR_FAIL: it belongs to another user, or others may write to it. `also`: another user
 * whom a reader trusts. */
int folder_open(int *fd, const char *path, enum folder_use use, uid_t also, struct err *err) MUST_CHECK;

/* Sorts the numbers of tiers with existing folders into the order in which every writer locks them, whatever order its
 * manifest lists them in, so that two writers cannot wait for each other: by disk and inode. Returns how many there
 * are. A writer makes folders before, and locks no others: one made later would have another place for the next. */
int folder_order(const struct tiers *tiers, int order[TIER_MAX]);

/* Is nothing of a store in the folder, or is there no folder? */
bool folder_is_blank(const char *path);

/* Is it on a network file system? Tests replace this function. */
extern bool (*folder_is_remote)(int fd);

/* Opens a folder and its content to a group: modes 0750 and 0640. Skips what is already open to the group. ERR_FAIL: it
 * has other files than a tier's. */
int folder_share(int fd, gid_t group, struct err *err) MUST_CHECK;

/* Opens `at`, a new file or folder in a folder, to the folder's group if the group may read the folder. */
int folder_adopt(int fd, int at, struct err *err) MUST_CHECK;

/* Opens a file of a folder for reading: a descriptor, or -1 with errno; ELOOP for a link. */
int folder_open_file(int fd, const char *file);

/* The size of a file of a folder, without opening it; -1 if it is missing or not a regular file. */
int64_t folder_file_size(int fd, const char *file);

/* Creates a file of a folder, with the sub-folders in its name: a descriptor, or an error. */
int folder_create_file(int fd, const char *file, struct err *err);

/* The disk that the folder is on, or will be, and its free bytes. */
int folder_disk(const char *path, uint64_t *device, int64_t *free_bytes, struct err *err) MUST_CHECK;

/* Calls each(arg, file) for every file in the payloads' sub-folders; names are relative to the folder. */
typedef int folder_visit(void *arg, const char *file, struct err *err);
int folder_each_payload(int fd, folder_visit *each, void *arg, struct err *err) MUST_CHECK;

#endif
