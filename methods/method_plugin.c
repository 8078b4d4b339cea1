/* method_plugin.c - opens users' shared objects, checks the struct that they export, and makes a method of it. */
#include "methods/method_plugin.h"

#include "base/opt.h"
#include "methods/registry.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PLUGIN_WINDOW = 4096 }; // as snapkv

/* ---- checks ------------------------------------------------------------- */

static bool is_word(const char *name)
{
    return name && *name >= 'a' && *name <= 'z' &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0' && strlen(name) < 32;
}

static int check_params(const struct evp_param *p, struct err *err)
{
    int n = 0;

    for (; p && p->name; p++, n++) {
        if (n + 1 == CONFIG_PARAMS)
            return err_set(err, ERR_USAGE, "more than %d parameters", CONFIG_PARAMS - 1);
        if (!is_word(p->name) || strcmp(p->name, "drop") == 0)
            return err_set(err, ERR_USAGE, "'%.40s' is no name for a parameter", p->name);
        if (!(p->min <= p->max) || !(p->otherwise >= p->min && p->otherwise <= p->max))
            return err_set(err, ERR_USAGE, "parameter '%s': its default is not between min and max", p->name);
    }
    return 0;
}

static int check(const struct evp_method *m, struct err *err)
{
    if (m->abi != EVP_METHOD_ABI)
        return err_set(err, ERR_USAGE, "its interface is %u, not %d; compile it with this version's evp_method.h",
                       m->abi, EVP_METHOD_ABI);
    if (m->size < sizeof(*m))
        return err_set(err, ERR_USAGE, "its struct evp_method has %u bytes, not %zu", m->size, sizeof(*m));
    if (!is_word(m->name) || strcmp(m->name, "none") == 0)
        return err_set(err, ERR_USAGE, "'%.40s' is no name for a method: lower case letters, digits and _",
                       m->name ? m->name : "");
    if (method_find(m->name, strlen(m->name)))
        return err_set(err, ERR_USAGE, "there is a method '%s' already", m->name);
    if (m->window < 0 || m->window > PLUGIN_WINDOW)
        return err_set(err, ERR_USAGE, "its window of %d is not from 0 to %d", m->window, PLUGIN_WINDOW);
    return m->score ? check_params(m->param, err) : err_set(err, ERR_USAGE, "it has no score()");
}

/* ---- adding ------------------------------------------------------------- */

static const char *text_or(const char *text, const char *otherwise)
{
    return text && *text ? text : otherwise;
}

static int add(const struct evp_method *given, struct err *err)
{
    struct added {
        struct method method;
        struct method_drop drop;
    } *added = calloc(1, sizeof(*added)); // for the life of the process

    if (!added)
        return err_nomem(err);
    struct method *m = &added->method;
    added->drop.scores.plugin = given;
    *m = (struct method){ .name = given->name,
                          .summary = text_or(given->summary, "a method of your own"),
                          .source = text_or(given->source, "a plug-in"),
                          .needs = (given->window ? NEED_WINDOW_Q : 0u) | (given->column_sums ? NEED_COLUMN_SUMS : 0u),
                          .window = given->window,
                          .param = { PARAM_DROP },
                          .drop = &added->drop };
    for (int i = 0; given->param && given->param[i].name; i++) {
        const struct evp_param *p = &given->param[i];
        m->param[i + 1] = (struct method_param){ .name = p->name,
                                                 .min = p->min,
                                                 .max = p->max,
                                                 .otherwise = p->otherwise,
                                                 .whole = p->whole != 0,
                                                 .budget = p->budget != 0,
                                                 .help = text_or(p->help, p->name) };
    }
    if (method_add(m))
        return 0;
    free(added);
    return err_set(err, ERR_USAGE, "there are more than %d methods", METHODS_MAX);
}

/* RTLD_GLOBAL: an interpreter inside the object finds its own symbols again when it loads modules. */
static int open_one(void *arg, const char *piece, size_t n)
{
    struct err *err = arg;
    char *path = n ? strndup(piece, n) : strdup("");
    void *object = path && strchr(path, '/') ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    int code = 0;

    if (!path)
        return err_nomem(err);
    if (!strchr(path, '/'))
        code = err_set(err, ERR_USAGE, "'%s' is not a path: write './%s'", path, path);
    else if (!object)
        code = err_set(err, ERR_USAGE, "cannot load it: %s", dlerror());
    const struct evp_method *m = object ? dlsym(object, "evp_method") : NULL;
    if (object && !m)
        code = err_set(err, ERR_USAGE, "it does not define evp_method");
    if (!code)
        code = check(m, err) ? err->code : add(m, err);
    if (code)
        err_wrap(err, "--plugin: '%s'", path);
    free(path);
    return code;
}

int method_plugins_open(const char *list, struct err *err)
{
    return list ? opt_split(list, open_one, err) : 0;
}

/* ---- scoring ------------------------------------------------------------ */

int method_plugin_score(const struct method *m, const struct evp_head *head, const double *value, float *score,
                        struct err *err)
{
    char why[EVP_METHOD_WHY] = "";

    for (int t = 0; t < head->n_tokens; t++) // what it does not write is seen
        score[t] = NAN;
    int code = m->drop->scores.plugin->score(head, value, score, why);
    why[sizeof(why) - 1] = '\0';
    return code ? err_set(err, ERR_FAIL, "it failed in head %d of layer %d: %s", head->head, head->layer,
                          *why ? why : "it does not say why")
                : 0;
}

/* ---- counts ------------------------------------------------------------- */

int method_plugin_keep(const struct kv_full *full, const struct config *config, struct err *err)
{
    const struct evp_method *plugin = config->drop ? config->drop->scores.plugin : NULL;

    for (int l = 0; plugin && plugin->keep && l < full->shape.n_layers; l++) {
        int n = plugin->keep(config->stage[METHOD_DROP].value, full->n_tokens, l, full->shape.n_layers);
        if (n < 1 || n > full->n_tokens)
            return err_set(err, ERR_FAIL, "%s keeps %d pairs in layer %d, not 1 to %d", config->name, n, l,
                           full->n_tokens);
    }
    return 0;
}
