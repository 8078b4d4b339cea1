/* nightly.c - nightly.json read strictly: known members, of the right type, within their bounds. */
#include "nightly/nightly.h"

#include "base/file.h"

#include <string.h>

enum { NIGHTLY_VERSION = 1, NIGHTLY_FILE_MAX = 1 << 20, DAYS_MAX = 36500, AS_LOGGED = -1 };

static const char *const members[] = { "evp",         "version",      "model",       "logs",    "tiers",  "state",
                                       "alpha",       "move_cost",    "budget_s",    "configs", "served", "metrics",
                                       "keep",        "false_alarms", "forget_days", "options", "hours",  "namespace",
                                       "pack_weight", "rate",         "gpus",        NULL };
static const char *const tools[] = { "model",    "evp-import", "evp-drift", "evp-profile", "evp-score",
                                     "evp-plan", "evp-pack",   "evp-load",  "evp-report",  NULL };

static int check_names(const struct json *object, const char *const *known, const char *what, struct err *err)
{
    for (const struct json *m = json_first(object); m; m = json_next(m)) {
        int i = 0;
        while (known[i] && strcmp(known[i], json_name(m)) != 0)
            i++;
        if (!known[i])
            return err_set(err, ERR_FORMAT, "%s has no '%.64s'", what, json_name(m));
    }
    return 0;
}

/* A list of texts, not empty if it is `needed`. */
static int check_texts(const struct json *list, const char *name, bool needed, struct err *err)
{
    if (!list && !needed)
        return 0;
    if (!json_is_array(list) || (needed && json_count(list) == 0))
        return err_set(err, ERR_FORMAT, "field '%s' is %s", name, list ? "not a list of texts" : "missing");
    for (const struct json *t = json_first(list); t; t = json_next(t))
        if (!json_is_text(t) || !*json_text(t))
            return err_set(err, ERR_FORMAT, "field '%s' holds something that is not a text", name);
    return 0;
}

static int check_options(const struct json *options, struct err *err)
{
    if (options && !json_is_object(options))
        return err_set(err, ERR_FORMAT, "field 'options' is not an object");
    if (check_names(options, tools, "field 'options'", err))
        return err->code;
    for (const struct json *o = json_first(options); o; o = json_next(o))
        if (check_texts(o, json_name(o), true, err))
            return err_wrap(err, "field 'options'");
    for (const struct json *w = json_first(json_get(options, "evp-profile")); w; w = json_next(w))
        if (strncmp(json_text(w), "--configs", 9) == 0) // not for what is profiled again, whose list names its configs
            return err_set(err, ERR_FORMAT,
                           "field 'options': --configs of evp-profile belongs into the field 'configs'");
    return 0;
}

static int may_count(const struct json *tree, const char *name, int64_t *out, struct err *err)
{
    if (json_may_int(tree, name, out, err))
        return err->code;
    return *out >= 0 && *out <= DAYS_MAX
               ? 0
               : err_set(err, ERR_FORMAT, "field '%s' is not between 0 and %d", name, DAYS_MAX);
}

static int may_real(const struct json *tree, const char *name, double max, double *out, struct err *err)
{
    if (json_may_real(tree, name, out, err))
        return err->code;
    return *out >= 0 && *out <= max ? 0 : err_set(err, ERR_FORMAT, "field '%s' is not between 0 and %g", name, max);
}

static int take(struct nightly *n, struct err *err)
{
    const struct json *t = n->tree;
    const char *kind;
    int64_t version;

    if (json_want_text(t, "evp", &kind, err) || json_want_int(t, "version", &version, err))
        return err->code;
    if (strcmp(kind, "nightly") != 0 || version != NIGHTLY_VERSION)
        return err_set(err, ERR_FORMAT, "is '%.32s' version %lld, not 'nightly' version %d", kind, (long long)version,
                       NIGHTLY_VERSION);
    if (check_names(t, members, "the configuration", err) || json_want_text(t, "model", &n->model, err) ||
        json_want_text(t, "tiers", &n->tiers, err) || json_may_text(t, "state", &n->state, err) ||
        json_may_text(t, "metrics", &n->metrics, err) || json_may_text(t, "configs", &n->configs, err) ||
        json_may_text(t, "namespace", &n->name_space, err) || may_real(t, "alpha", 1e9, &n->alpha, err) ||
        may_real(t, "move_cost", 1e9, &n->move_cost, err) || may_real(t, "pack_weight", 1e9, &n->pack_weight, err) ||
        may_count(t, "gpus", &n->gpus, err) || json_may_real(t, "rate", &n->rate, err) ||
        may_real(t, "budget_s", 1e9, &n->budget_s, err) || may_real(t, "hours", 1e4, &n->hours, err) ||
        may_real(t, "false_alarms", 0.5, &n->false_alarms, err) || may_count(t, "forget_days", &n->forget_days, err) ||
        may_count(t, "keep", &n->keep, err))
        return err->code;
    n->logs = json_get(t, "logs");
    n->served = json_get(t, "served");
    n->options = json_get(t, "options");
    if (check_texts(n->logs, "logs", true, err) || check_texts(n->served, "served", false, err) ||
        check_options(n->options, err))
        return err->code;
    if (!(n->false_alarms > 0))
        return err_set(err, ERR_FORMAT, "field 'false_alarms' is not above 0");
    if (n->rate > 1e9 || (n->rate < 0 && n->rate != AS_LOGGED))
        return err_set(err, ERR_FORMAT, "field 'rate' is not between 0 and 1e+09");
    if (n->gpus == 0)
        return err_set(err, ERR_FORMAT, "field 'gpus' is 0");
    if (!*n->model || !*n->tiers || !*n->state || !*n->metrics)
        return err_set(err, ERR_FORMAT, "one of the fields 'model', 'tiers', 'state', 'metrics' is empty");
    return 0;
}

int nightly_parse(struct nightly *n, const char *text, size_t bytes, struct err *err)
{
    *n = (struct nightly){ .tree = json_parse(text, bytes, err),
                           .state = ".",
                           .metrics = "nightly.prom",
                           .alpha = 1,
                           .move_cost = 0.5,
                           .pack_weight = 0.1,
                           .rate = AS_LOGGED,
                           .gpus = 1,
                           .budget_s = 3600,
                           .hours = 10,
                           .false_alarms = 0.01,
                           .forget_days = 30,
                           .keep = 30 };
    int code = n->tree ? take(n, err) : err->code;
    if (code)
        nightly_release(n);
    return code;
}

int nightly_read(struct nightly *n, const char *path, struct err *err)
{
    struct buf text = { 0 };

    *n = (struct nightly){ 0 };
    int code = file_read(&text, path, NIGHTLY_FILE_MAX, err);
    if (!code && nightly_parse(n, buf_str(&text), text.n, err))
        code = err_wrap(err, "'%s'", path);
    buf_release(&text);
    return code;
}

void nightly_release(struct nightly *n)
{
    json_free(n->tree);
    *n = (struct nightly){ 0 };
}
