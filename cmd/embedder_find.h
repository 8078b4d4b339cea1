/* embedder_find.h - opens the embedder of --embedder, or the one that `evp models` fetches. */
#ifndef EVP_EMBEDDER_FIND_H
#define EVP_EMBEDDER_FIND_H

#include "embed/embed.h"

/* given: the value of --embedder, or NULL. NULL: *err says why. embedder_close() closes. */
struct embedder *embedder_find(const char *given, struct backend *backend, struct err *err);

#endif
