/* backend.c - opens a backend by its name. */
#include "kernels/backend.h"

#include "kernels/cpu/cpu.h"
#include "kernels/reference/reference.h"

#include <string.h>

struct backend *backend_open(const char *name, int n_threads, struct err *err)
{
    if (strcmp(name, "cpu") == 0 || strcmp(name, "auto") == 0)
        return cpu_open(n_threads, err);
    if (strcmp(name, "reference") == 0)
        return reference_open(err);
    err_set(err, ERR_DEVICE, "no backend '%s' in this build; it has %s", name, BACKEND_NAMES);
    return NULL;
}
