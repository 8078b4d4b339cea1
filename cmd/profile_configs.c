/* profile_configs.c - reads lists of configs, and compares them with the model. */
#include "cmd/profile_configs.h"

#include "base/log.h"
#include "variants/sizes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int profile_configs_of_list(struct profile_configs *c, const char *list, struct err *err)
{
    *c = (struct profile_configs){ .list = list };
    return config_list(&c->at, &c->n, list, err) ? err_wrap(err, "--configs") : 0;
}

static int cells_wrong(const struct profile_configs *c, struct err *err)
{
    err_wrap(err, "'%s'", c->cells);
    if (err->code == ERR_USAGE)
        err->code = ERR_FORMAT;
    return err->code;
}

int profile_configs_of_cells(struct profile_configs *c, const struct cells *cells, const char *path, struct err *err)
{
    char *names = cells_configs(cells);

    *c = (struct profile_configs){ .cells = path };
    int code = names ? config_list(&c->at, &c->n, names, err) : err_nomem(err);
    free(names);
    if (code)
        return cells_wrong(c, err);
    for (int v = 0; v < cells->configs.n; v++)
        if (v >= c->n || strcmp(cells->configs.at[v].key, c->at[v].name) != 0)
            return err_set(err, ERR_FORMAT, "'%s': config '%s' is not spelt as evp-profile spells it", path,
                           cells->configs.at[v].key);
    return 0;
}

void profile_configs_release(struct profile_configs *c)
{
    free(c->at);
    *c = (struct profile_configs){ 0 };
}

struct kv_shape profile_configs_shape(const struct model_config *m)
{
    return model_kv_shape(m, DTYPE_F32);
}

int profile_configs_check(struct profile_configs *c, const struct model_config *m, struct err *err)
{
    const struct kv_shape shape = profile_configs_shape(m);
    int n = 0;

    for (int v = 0; v < c->n; v++) {
        if (!config_check(&c->at[v], &shape, err) && !kvzap_check_config(&c->at[v], &shape, err))
            c->at[n++] = c->at[v];
        else if (c->list && config_is_named(c->list))
            log_warn("%s; left out of the %s configs", err->msg, c->list);
        else
            return c->cells ? cells_wrong(c, err) : err_wrap(err, "--configs");
    }
    c->n = n;
    return 0;
}

int profile_fit_new(struct kvzap_fit **fit, const struct profile_configs *c, const struct model *model,
                    const char *devices, struct err *err)
{
    const struct kv_shape shape = profile_configs_shape(model_config(model));
    bool repeats = false;

    for (int v = 0; v < c->n; v++)
        repeats = repeats || (c->at[v].drop && c->at[v].stage[METHOD_DROP].method->needs & NEED_REPEAT);
    if (!repeats || devices || shape.n_layers == 0)
        return err_set(err, ERR_USAGE,
                       "--fit-kvzap needs kvzip among the configs, one device, and layers without a window");
    *fit = kvzap_fit_new(&shape, err);
    return *fit ? 0 : err->code;
}

int profile_configs_print(struct err *err)
{
    struct config *config;
    int n;

    for (const struct config_named *named = config_named; named->name; named++) {
        if (config_list(&config, &n, named->name, err))
            return err->code;
        for (int v = 0; v < n; v++)
            printf("%s\t%s\n", named->name, config[v].name);
        free(config);
    }
    return 0;
}
