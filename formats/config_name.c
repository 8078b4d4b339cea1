/* config_name.c - a walk over `method:name=value+method:...`. */
#include "formats/config_name.h"

#include <stdbool.h>
#include <string.h>

/* The end of a word that starts with a lower-case letter, or NULL. */
static const char *word_end(const char *at)
{
    static const char *const rest = "abcdefghijklmnopqrstuvwxyz0123456789_";

    return *at >= 'a' && *at <= 'z' ? at + strspn(at, rest) : NULL;
}

/* The end of "method:name=value:...", or NULL. */
static const char *stage_end(const char *at)
{
    at = word_end(at);
    while (at && *at == ':') {
        const char *equals = word_end(at + 1);
        if (!equals || *equals != '=')
            return NULL;
        at = equals + 1 + strcspn(equals + 1, ":+");
        if (at == equals + 1)
            return NULL;
    }
    return at;
}

int config_name_check(const char *name, struct err *err)
{
    const char *at = stage_end(name);

    while (at && *at == '+')
        at = stage_end(at + 1);
    return at && !*at
               ? 0
               : err_set(err, ERR_FORMAT, "'%.80s' is not the name of a config, METHOD:NAME=VALUE+METHOD...", name);
}
