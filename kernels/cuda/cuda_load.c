/* cuda_load.c - opens the shared object with the cuda backend. */
#include "kernels/cuda/cuda.h"

#include "base/plugin.h"

#include <stdlib.h>

#define TEXT_OF(name)   #name
#define SYMBOL_OF(name) TEXT_OF(name)

static const struct cuda_plugin *the_plugin(struct err *err)
{
    static const struct cuda_plugin *plugin; // opened by the first call that finds one
    const char *named = getenv("EVP_CUDA_PLUGIN");
    const struct plugin cuda = { .file = CUDA_PLUGIN_NAME,
                                 .symbol = SYMBOL_OF(CUDA_PLUGIN_SYMBOL),
                                 .what = "cuda backend",
                                 .get = "`make` builds it where CUDA's nvcc is, and EVP_CUDA_PLUGIN may name one",
                                 .path = named && *named ? named : NULL,
                                 .version = { CUDA_PLUGIN_ABI, CUDA_PLUGIN_LAYOUT } };

    if (!plugin)
        plugin = plugin_open(&cuda, err);
    return plugin;
}

struct backend *cuda_load(const struct backend_options *options, struct err *err)
{
    const struct cuda_plugin *plugin = the_plugin(err);
    return plugin ? plugin->open(options, err) : NULL;
}

int cuda_devices(int *n, struct err *err)
{
    const struct cuda_plugin *plugin = the_plugin(err);
    return plugin ? plugin->devices(n, err) : err->code;
}

int cuda_upload_rate(struct backend *be, double *bytes_per_s, struct err *err)
{
    const struct cuda_plugin *plugin = the_plugin(err);
    return plugin ? plugin->upload_rate(be, bytes_per_s, err) : err->code;
}

int cuda_product_choice(struct backend *be, const struct weight *w, enum dtype result, struct cuda_choice *choice,
                        struct err *err)
{
    const struct cuda_plugin *plugin = the_plugin(err);

    if (!plugin)
        return err->code;
    plugin->choice(be, w, result, choice);
    return 0;
}
