/* evp_error.c - what each code means, and errors handed to the caller. */
#include "loader/libevicpress/evp_error.h"

#include <stdio.h>

const char *evp_version(void)
{
    return EVICPRESS_VERSION;
}

const char *evp_message(int code)
{
    switch (code) {
    case EVICPRESS_OK: return "success";
    case EVICPRESS_MEMORY: return "out of memory";
    case EVICPRESS_IO: return "a file cannot be opened, read or written";
    case EVICPRESS_DAMAGED: return "a file is not what it says it is";
    case EVICPRESS_GONE: return "the prefix is no longer placed";
    case EVICPRESS_SMALL: return "the buffer is smaller than the payload";
    case EVICPRESS_ARGUMENT: return "an argument is out of range";
    case EVICPRESS_UNKNOWN: return "the plan has no such context";
    case EVICPRESS_FULL: return "a tier has too few free bytes";
    case EVICPRESS_BUSY: return "another process is changing a tier";
    case EVICPRESS_EXISTS: return "the plan has that context already";
    default: return code > 0 ? "success" : "unknown code";
    }
}

/* Sentences quote ids and paths: control characters become '?', as in what the tools say. */
int evp_error_set(struct evp_error *error, int code, const char *text)
{
    if (error) {
        error->code = code;
        snprintf(error->text, sizeof(error->text), "%s", text);
        for (char *c = error->text; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f)
                *c = '?';
    }
    return code;
}

int evp_error_from(struct evp_error *error, const struct err *err, int format)
{
    int code = err->code == ERR_NOMEM ? EVICPRESS_MEMORY : err->code == ERR_FORMAT ? format : EVICPRESS_IO;

    return evp_error_set(error, code, err->msg);
}
