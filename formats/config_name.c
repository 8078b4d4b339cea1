/* config_name.c - the names of methods and their parameters, and a walk over `method:name=value+method:...`. */
#include "formats/config_name.h"

#include <stdbool.h>
#include <string.h>

enum { PARAMS_MAX = 5, VALUE_MAX = 32 };

static const struct {
    const char *method, *param[PARAMS_MAX];
} known[] = {
    { "knorm", { "drop" } },
    { "keydiff", { "drop" } },
    { "snapkv", { "drop", "window", "kernel" } },
    { "pyramidkv", { "drop", "window", "kernel", "beta" } },
    { "tova", { "drop", "heads" } },
    { "h2o", { "drop" } },
    { "streamingllm", { "drop", "n_sink" } },
    { "adakv", { "safeguard" } },
    { "kivi", { "bits", "group", "residual" } },
};

static bool is_text(const char *text, const char *at, size_t n)
{
    return text && strlen(text) == n && memcmp(text, at, n) == 0;
}

static int find_method(const char *at, size_t n)
{
    int count = sizeof(known) / sizeof(*known);

    for (int k = 0; k < count; k++)
        if (is_text(known[k].method, at, n))
            return k;
    return -1;
}

/* "name=value" */
static int check_param(int method, const char *at, size_t n, struct err *err)
{
    const char *equals = memchr(at, '=', n);
    size_t n_name = equals ? (size_t)(equals - at) : n, n_value = equals ? n - n_name - 1 : 0;
    bool found = false;

    for (int k = 0; k < PARAMS_MAX; k++)
        found |= is_text(known[method].param[k], at, n_name);
    if (!found)
        return err_set(err, ERR_FORMAT, "%s has no parameter '%.*s'", known[method].method, (int)n_name, at);
    if (n_value == 0 || n_value >= VALUE_MAX)
        return err_set(err, ERR_FORMAT, "%s: parameter '%.*s' has no value", known[method].method, (int)n_name, at);
    return 0;
}

/* "method:name=value:..." */
static int check_stage(const char *at, size_t n, struct err *err)
{
    const char *end = at + n, *colon = memchr(at, ':', n);
    size_t n_name = colon ? (size_t)(colon - at) : n;
    int method = find_method(at, n_name);

    if (method < 0)
        return err_set(err, ERR_FORMAT, "no method '%.*s'", (int)(n_name < 40 ? n_name : 40), at);
    while (colon) {
        const char *from = colon + 1;
        colon = memchr(from, ':', (size_t)(end - from));
        if (check_param(method, from, (size_t)((colon ? colon : end) - from), err))
            return err->code;
    }
    return 0;
}

int config_name_check(const char *name, struct err *err)
{
    const char *plus;

    if (strcmp(name, "none") == 0)
        return 0;
    for (; (plus = strchr(name, '+')); name = plus + 1)
        if (check_stage(name, (size_t)(plus - name), err))
            return err->code;
    return check_stage(name, strlen(name), err);
}
