/* plugin.h - shared objects of ours that are opened on demand: who never needs one needs none of its libraries.
 *
 * Such an object exports one name, of a struct that begins with a struct plugin_version; it is opened for good. It lies
 * beside the program or library that this code is in, or in ../lib/evp from there (PREFIX/lib/evp). The working folder
 * is never looked at, nor the environment.
 */
#ifndef EVP_PLUGIN_H
#define EVP_PLUGIN_H

#include "base/err.h"

#include <stdint.h>

/* Of the interface between an object and who opens it, which have to be equal. */
struct plugin_version {
    uint32_t abi;    // raised by hand
    uint32_t layout; // made of the sizes of what goes through it
};

struct plugin {
    const char *file;   // "evp-cuda.so"
    const char *symbol; // what it exports
    const char *what;   // "cuda backend", for sentences
    const char *get;    // how to get it, likewise
    const char *path;   // of the object, where the caller knows; NULL: it is looked for
    struct plugin_version version;
};

/* What the object exports, borrowed. NULL: ERR_DEVICE, with what is missing and how to get it. */
const void *plugin_open(const struct plugin *p, struct err *err);

#endif
