/* config_name.c - a walk over `method:name=value+method:...`. */
#include "codes/config_name.h"

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

bool config_name_value(char value[CONFIG_VALUE], const char *name, const char *method, const char *param)
{
    size_t n_method = strlen(method), n_param = strlen(param);

    while (strncmp(name, method, n_method) != 0 || (name[n_method] && !strchr(":+", name[n_method]))) {
        name = strchr(name, '+');
        if (!name)
            return false;
        name++;
    }
    value[0] = '\0';
    for (const char *at = name + n_method; *at == ':'; at += strcspn(at, ":+")) {
        at++;
        size_t n = strcspn(at, ":+");
        if (n > n_param && strncmp(at, param, n_param) == 0 && at[n_param] == '=' && n - n_param <= CONFIG_VALUE) {
            memcpy(value, at + n_param + 1, n - n_param - 1);
            value[n - n_param - 1] = '\0';
        }
    }
    return true;
}
