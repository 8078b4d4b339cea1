/* folder.h - a tier's folder, opened so that nobody else can have prepared it: everything in it is then opened relative
 * to it, without following links.
 *
 * A writer's folder belongs to the user and nobody else may write there; it is made with mode 0700. Where its group may
 * read it (folder_share()), so it may all that is made in it later. A reader's folder belongs to the user, to root, or
 * to the owner of the manifest that names it. Folders on network file systems have no locks that can be relied on, so a
 * writer keeps its state elsewhere: see docs/formats/tiers.md, `state`.
 */
#ifndef EVP_FOLDER_H
#define EVP_FOLDER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum folder_use {
    FOLDER_READ,  // as it is
    FOLDER_WRITE, // made when its parent exists
};

/* Opens a folder: *fd, or -1 when a reader's folder does not exist although its parent does. ERR_IO: the parent is
 * gone, or the folder cannot be opened. ERR_FAIL: it belongs to somebody else, or others may write there. `also`:
 * another user whose folder a reader takes. */
int folder_open(int *fd, const char *path, enum folder_use use, uid_t also, struct err *err) MUST_CHECK;

/* Is it on a network file system? A test puts another function here. */
extern bool (*folder_is_remote)(int fd);

/* Opens a folder with all that is in it to a group: 0750 and 0640. What is open to it already stays as it is. */
int folder_share(int fd, gid_t group, struct err *err) MUST_CHECK;

/* Gives what was made in a folder, `at`, to the folder's group if that may read the folder. */
int folder_adopt(int fd, int at, struct err *err) MUST_CHECK;

/* Opens a file of a folder for reading: a descriptor, or -1 with errno; ELOOP for a link. */
int folder_open_file(int fd, const char *file);

/* The size of a file of a folder, without opening it: -1 when there is none, or when it is no regular file. */
int64_t folder_file_size(int fd, const char *file);

/* Opens a new file of a folder, with the sub-folders in its name: a descriptor, or an error. */
int folder_create_file(int fd, const char *file, struct err *err);

/* The disk that the folder is on, or will be, and its free bytes. */
int folder_disk(const char *path, uint64_t *device, int64_t *free_bytes, struct err *err) MUST_CHECK;

/* Calls each(arg, file) for every file of the payloads' sub-folders, by its name relative to the folder. */
typedef int folder_visit(void *arg, const char *file, struct err *err);
int folder_each_payload(int fd, folder_visit *each, void *arg, struct err *err) MUST_CHECK;

#endif
