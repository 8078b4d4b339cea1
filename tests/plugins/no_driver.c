/* no_driver.c - a shared object in the place of evp-cuda.so that never has a device, for tests of what the tools say.
 *
 * PLUGIN_ABI in the environment is the interface it claims to have; by default the one of this build.
 */
#include "kernels/cuda/cuda.h"

#include <stdlib.h>

extern struct cuda_plugin CUDA_PLUGIN_SYMBOL;

static struct backend *refuse(const struct backend_options *options, struct err *err)
{
    (void)options;
    err_set(err, ERR_DEVICE, "there is no NVIDIA driver");
    return NULL;
}

static int count(int *n, struct err *err)
{
    (void)n;
    return err_set(err, ERR_DEVICE, "there is no NVIDIA driver");
}

__attribute__((visibility("default"))) struct cuda_plugin CUDA_PLUGIN_SYMBOL = {
    CUDA_PLUGIN_ABI, CUDA_PLUGIN_LAYOUT, refuse, count, NULL, NULL
};

__attribute__((constructor)) static void claim(void)
{
    const char *abi = getenv("PLUGIN_ABI");

    if (abi)
        CUDA_PLUGIN_SYMBOL.abi = (uint32_t)strtoul(abi, NULL, 10);
}
