/* backend.c - opens a backend by its name. */
#include "kernels/backend.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cuda/cuda.h"
#include "kernels/reference/reference.h"

#include <stdio.h>
#include <string.h>

int backend_check(const char *name, const char *dtype, struct err *err)
{
    if (strcmp(name, "auto") != 0 && strcmp(name, "cuda") != 0 && strcmp(name, "cpu") != 0 &&
        strcmp(name, "reference") != 0)
        return err_set(err, ERR_DEVICE, "no backend '%s' in this build; it has %s", name, BACKEND_NAMES);
    if (strcmp(dtype, "auto") == 0 || strcmp(dtype, "f32") == 0 || strcmp(dtype, "bf16") == 0 ||
        strcmp(dtype, "fastest") == 0)
        return 0;
    return err_set(err, ERR_USAGE, "dtype '%s' is not one of %s", dtype, BACKEND_DTYPES);
}

/* cuda where there is a device; otherwise cpu, with the reason. Only ERR_DEVICE leads to cpu: a device without memory
 * is an error. */
static struct backend *open_best(const struct backend_options *options, struct err *err)
{
    static char instead[sizeof(err->msg)];
    struct err why;
    struct backend *be = cuda_load(options, &why);

    if (be)
        return be;
    if (why.code != ERR_DEVICE) {
        *err = why;
        return NULL;
    }
    be = cpu_open(options, err);
    snprintf(instead, sizeof(instead), "%s", why.msg);
    if (be)
        be->instead = instead;
    return be;
}

struct backend *backend_open(const struct backend_options *options, struct err *err)
{
    const char *name = options->name ? options->name : "auto", *dtype = options->dtype ? options->dtype : "f32";

    if (backend_check(name, dtype, err))
        return NULL;
    if (strcmp(name, "auto") == 0)
        return open_best(options, err);
    if (strcmp(name, "cuda") == 0)
        return cuda_load(options, err);
    if (strcmp(name, "cpu") == 0)
        return cpu_open(options, err);
    return reference_open(strcmp(dtype, "bf16") == 0 ? DTYPE_BF16 : DTYPE_F32, err);
}
