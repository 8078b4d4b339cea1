/* embedder_find.c - where the embedder is. */
#include "cmd/embedder_find.h"

#include "base/file.h"

#include <stdlib.h>

struct embedder *embedder_find(const char *given, struct backend *backend, struct err *err)
{
    if (given)
        return embedder_open(given, backend, err);
    char *models = file_models_dir(), *dir = models ? file_join(models, "all-MiniLM-L6-v2") : NULL;
    struct embedder *e = NULL;
    if (!dir)
        err_nomem(err);
    else if (!file_is_dir(dir))
        err_set(err, ERR_IO, "'%s' has no embedder: `evp models` fetches it, or name its folder with --embedder", dir);
    else
        e = embedder_open(dir, backend, err);
    free(models);
    free(dir);
    return e;
}
