/* plugin.h - opens our shared objects on demand, so that their libraries are needed only where they are used.
 *
 * Such an object exports one struct that begins with a struct plugin_version; once opened, it stays open. It is in the
 * folder of the program or library that contains this code, or in ../lib/evp from there (PREFIX/lib/evp). The working
 * folder and the environment are never searched.
 */
#ifndef EVP_PLUGIN_H
#define EVP_PLUGIN_H

#include "base/err.h"

#include <stdint.h>

/* The version of the interface; that of the object and of the opener must be equal. */
struct plugin_version {
    uint32_t abi;    // raised by hand
    uint32_t layout; // computed from the sizes of the structs that cross it
};

struct plugin {
    const char *file;   // "evp-cuda.so"
    const char *symbol; // the name of the exported struct
    const char *what;   // "cuda backend", for messages
    const char *get;    // how to get it, for messages
    const char *path;   // of the object; NULL: search for it
    struct plugin_version version;
};

/* Returns the exported struct, borrowed. NULL: ERR_DEVICE says what is missing and how to get it. */
const void *plugin_open(const struct plugin *p, struct err *err);

#endif
