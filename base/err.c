/* err.c - messages have a fixed size, so that reporting an error needs no memory; longer ones are cut. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
    va_list ap;

    err->code = code;
    va_start(ap, fmt);
    vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    return code;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    char old[sizeof(err->msg)];
    va_list ap;

    memcpy(old, err->msg, sizeof(old));
    va_start(ap, fmt);
    int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(err->msg)) {
        size_t left = sizeof(err->msg) - (size_t)n;
        snprintf(err->msg + n, left, ": %.*s", (int)left, old);
    }
    return err->code;
}

int err_add(struct err *err, const char *fmt, ...)
{
    size_t used = strlen(err->msg);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err->msg + used, sizeof(err->msg) - used, fmt, ap);
    va_end(ap);
    return err->code;
}

int err_nomem(struct err *err)
{
    return err_set(err, ERR_NOMEM, "out of memory");
}

int err_exit_status(int code)
{
    switch (code) {
#define X(name, value, status)                                                                                         \
    case name: return (status);
        ERR_LIST(X)
#undef X
    default: return code == 0 ? 0 : 1;
    }
}
