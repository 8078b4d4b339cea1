/* cuda_load.c - finds the shared object with the cuda backend, or says what is missing.
 *
 * The object stays open until the process ends: CUDA's libraries do not survive being closed.
 */
#include "kernels/cuda/cuda.h"

#include "base/buf.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#define TEXT_OF(name)   #name
#define SYMBOL_OF(name) TEXT_OF(name)

/* The length of the running program's folder, without the last '/', at the start of path; 0 when /proc does not say. */
static size_t own_folder(char *path, size_t cap)
{
    ssize_t n = readlink("/proc/self/exe", path, cap - 1);

    while (n > 0 && path[n - 1] != '/')
        n--;
    return n > 0 ? (size_t)n - 1 : 0;
}

/* Both paths where the object may be. */
static int places(struct buf *beside, struct buf *installed, struct err *err)
{
    char program[4096];
    int n = (int)own_folder(program, sizeof(program));

    buf_printf(beside, "%.*s/" CUDA_PLUGIN_NAME, n, program);
    while (n > 0 && program[n - 1] != '/')
        n--;
    buf_printf(installed, "%.*slib/evp/" CUDA_PLUGIN_NAME, n, program);
    return buf_failed(beside) || buf_failed(installed) ? err_nomem(err) : 0;
}

static const struct cuda_plugin *check(void *object, const char *path, struct err *err)
{
    const struct cuda_plugin *plugin = dlsym(object, SYMBOL_OF(CUDA_PLUGIN_SYMBOL));

    if (!plugin)
        err_set(err, ERR_DEVICE, "'%s' has no cuda backend in it: it does not define " SYMBOL_OF(CUDA_PLUGIN_SYMBOL),
                path);
    else if (plugin->abi != CUDA_PLUGIN_ABI || plugin->layout != CUDA_PLUGIN_LAYOUT || !plugin->open)
        err_set(err, ERR_DEVICE,
                "'%s' is of another version of EvicPress: its interface is %u.%u, and this is %u.%u; install both from "
                "one build",
                path, plugin->abi, plugin->layout, (unsigned)CUDA_PLUGIN_ABI, CUDA_PLUGIN_LAYOUT);
    else
        return plugin;
    dlclose(object);
    return NULL;
}

static const struct cuda_plugin *load(const char *path, struct err *err)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (object)
        return check(object, path, err);
    const char *why = dlerror(); // begins with the name of the file that is wrong: this one, or a library it needs
    err_set(err, ERR_DEVICE, "cannot load the cuda backend '%s': %s%s", path, why ? why : "unknown reason",
            why && strncmp(why, path, strlen(path)) != 0
                ? "; install the libraries of the CUDA version that it was built with"
                : "");
    return NULL;
}

static const struct cuda_plugin *find(struct err *err)
{
    const char *named = getenv("EVP_CUDA_PLUGIN");
    struct buf beside = { 0 }, installed = { 0 };
    const struct cuda_plugin *found = NULL;

    if (named && *named)
        return load(named, err);
    if (places(&beside, &installed, err) == 0) {
        if (access(buf_str(&beside), F_OK) == 0)
            found = load(buf_str(&beside), err);
        else if (access(buf_str(&installed), F_OK) == 0)
            found = load(buf_str(&installed), err);
        else
            err_set(err, ERR_DEVICE,
                    "the cuda backend is not installed: neither '%s' nor '%s' exists; `make` builds it where CUDA's "
                    "nvcc is, and EVP_CUDA_PLUGIN may name one",
                    buf_str(&beside), buf_str(&installed));
    }
    buf_release(&beside);
    buf_release(&installed);
    return found;
}

static const struct cuda_plugin *the_plugin(struct err *err)
{
    static const struct cuda_plugin *plugin; // opened by the first call that finds one
    if (!plugin)
        plugin = find(err);
    return plugin;
}

struct backend *cuda_load(const struct backend_options *options, struct err *err)
{
    const struct cuda_plugin *plugin = the_plugin(err);
    return plugin ? plugin->open(options, err) : NULL;
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
