/* evp_error.h - how the installed library reports failures: as a struct evp_error, made from a struct err. */
#ifndef EVP_ERROR_H
#define EVP_ERROR_H

#include "base/err.h"
#include "loader/libevicpress/evicpress.h"

/* Fills *error, unless it is NULL, and returns `code`. */
int evp_error_set(struct evp_error *error, int code, const char *text);

/* From a struct err. ERR_STALE becomes EVICPRESS_GONE, ERR_FORMAT `format`: EVICPRESS_DAMAGED for files,
 * EVICPRESS_ARGUMENT for arguments. */
int evp_error_from(struct evp_error *error, const struct err *err, int format);

#endif
