/* evp_error.c - the meaning of each code, and errors for the caller. */
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
    case EVICPRESS_IO: return "cannot open, read or write a file, or reach a server";
    case EVICPRESS_DAMAGED: return "a manifest, an index or a payload is malformed or damaged";
    case EVICPRESS_GONE: return "the prefix is no longer placed";
    case EVICPRESS_SMALL: return "the buffer is smaller than the payload";
    case EVICPRESS_ARGUMENT: return "an argument is out of range";
    case EVICPRESS_UNKNOWN: return "no such context, tier or tensor";
    case EVICPRESS_FULL: return "a tier has too few free bytes";
    case EVICPRESS_BUSY: return "another thread or process is changing a tier";
    case EVICPRESS_EXISTS: return "the plan has that context already";
    default: return code > 0 ? "success" : "unknown code";
    }
}

/* Messages quote ids and paths: control characters become '?', as in the tools' messages. */
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
    int code = err->code == ERR_NOMEM    ? EVICPRESS_MEMORY
               : err->code == ERR_FORMAT ? format
               : err->code == ERR_STALE  ? EVICPRESS_GONE
                                         : EVICPRESS_IO;

    return evp_error_set(error, code, err->msg);
}
