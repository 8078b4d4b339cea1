/* evp_error.h - how the installed library reports a failure: it turns a struct err into a struct evp_error. */
#ifndef EVP_ERROR_H
#define EVP_ERROR_H

#include "base/err.h"
#include "loader/libevicpress/evicpress.h"

/* Fills *error, unless it is NULL, and returns `code`. */
int evp_error_set(struct evp_error *error, int code, const char *text);

/* From a struct err: ERR_FORMAT becomes `format`, which is EVICPRESS_DAMAGED for files and EVICPRESS_ARGUMENT for arguments. */
int evp_error_from(struct evp_error *error, const struct err *err, int format);

#endif
