/* kivi_codes.c - reads kivi's parameters from the text of a config. */
#include "formats/kivi_codes.h"

#include <stdlib.h>
#include <string.h>

/* The value of a parameter in [at, end), or `otherwise`. */
static int param(const char *at, const char *end, const char *name, int otherwise)
{
    size_t n = strlen(name);

    for (; at < end; at++)
        if ((*at == ':' || *at == ',') && strncmp(at + 1, name, n) == 0 && at[1 + n] == '=')
            return (int)strtol(at + 2 + n, NULL, 10);
    return otherwise;
}

bool kivi_codes_parse(struct kivi_codes *kivi, const char *config)
{
    static const char name[] = "kivi:";
    const char *at = config;

    while (at && strncmp(at, name, sizeof(name) - 1) != 0) {
        at = strchr(at, '+');
        at = at ? at + 1 : NULL;
    }
    if (!at)
        return false;
    const char *end = at + strcspn(at, "+");
    *kivi =
        (struct kivi_codes){ param(at, end, "bits", 0), param(at, end, "group", 32), param(at, end, "residual", 32) };
    return (kivi->bits == 2 || kivi->bits == 4) && kivi->group > 0 && kivi->group % 32 == 0 && kivi->residual > 0 &&
           kivi->residual % kivi->group == 0;
}
