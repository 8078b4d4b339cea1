/* config.c - reads a config stage by stage, checks it, and writes its canonical form. In lists, ranges are expanded as
 * text before each config is read.
 */
#include "methods/config.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/near.h"
#include "base/opt.h"
#include "base/parse.h"
#include "methods/method.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LIST_MAX = 4096 }; // configs of a list: a mistyped step cannot fill the memory

/* ---- one config -------------------------------------------------------- */

enum { NAMES_MAX = 64 };

/* Appends "; did you mean 'x'?" to the message when one of the names is near. */
static int suggest(const char *text, size_t n, const char *const *name, size_t n_names, struct err *err)
{
    const char *near = near_word(text, n, name, n_names);

    return near ? err_add(err, "; did you mean '%s'?", near) : err->code;
}

/* fp4, nf4, q8_0: what others write for a quantised cache. */
static bool is_number_type(const char *text, size_t n)
{
    size_t letters = strcspn(text, "0123456789:+,");

    return letters < n && text[letters] <= '9' && text[letters] >= '0' &&
           ((letters == 1 && *text == 'q') ||
            (letters == 2 && (strncasecmp(text, "fp", 2) == 0 || strncasecmp(text, "nf", 2) == 0)) ||
            (letters == 3 && strncasecmp(text, "int", 3) == 0));
}

static int unknown_method(const char *text, size_t n, struct err *err)
{
    const char *name[NAMES_MAX];
    size_t n_names = 0;
    struct buf names = { 0 }, packs = { 0 };
    char number[TEXT_SHORT] = "";
    double v;

    memcpy(number, text, n < sizeof(number) ? n : 0);
    if (parse_fraction(number, &v))
        return err_set(err, ERR_USAGE,
                       "'%s' is a number, not a method: several values are a range, drop=0.1..0.5/0.2, or several "
                       "configs, snapkv:drop=0.1,snapkv:drop=%s",
                       number, number);
    buf_adds(&names, "none");
    for (int i = 0; method_registry[i]; i++) {
        buf_printf(&names, ", %s", method_registry[i]->name);
        if (method_kind(method_registry[i]) == METHOD_QUANTISE)
            buf_printf(&packs, "%s%s", packs.n ? ", " : "", method_registry[i]->name);
        if (n_names < NAMES_MAX)
            name[n_names++] = method_registry[i]->name;
    }
    err_set(err, ERR_USAGE, "no method '%.*s'; there are %s", (int)n, text, buf_str(&names));
    int code = is_number_type(text, n) ? err_add(err, "; those that quantise: %s", buf_str(&packs))
                                       : suggest(text, n, name, n_names, err);
    buf_release(&names);
    buf_release(&packs);
    return code;
}

static bool is_name(const char *name, const char *text, size_t n)
{
    return name && strlen(name) == n && memcmp(name, text, n) == 0;
}

/* Says what to write instead. "ratio" is the share removed for some and the share kept for others. */
static int unknown_param(const struct method *m, const char *text, size_t n, struct err *err)
{
    const char *value = text + (n < strcspn(text, ":+,") && text[n] == '=' ? n + 1 : n);
    const char *name[CONFIG_PARAMS] = { NULL };
    struct buf names = { 0 };

    if (m->drop && n == 5 && strncasecmp("ratio", text, n) == 0) {
        int n_value = (int)strcspn(value, ":+,");
        return err_set(err, ERR_USAGE,
                       "'ratio' has several meanings; did you mean '%s:drop=%.*s', where drop is the share of KV pairs "
                       "removed (kvpress: compression_ratio)?",
                       m->name, n_value ? n_value : 3, n_value ? value : "0.5");
    }
    for (int i = 0; i < CONFIG_PARAMS && m->param[i].name; i++) {
        buf_printf(&names, "%s%s", i ? ", " : "", m->param[i].name);
        name[i] = m->param[i].name;
    }
    err_set(err, ERR_USAGE, "%s has no parameter '%.*s', only %s", m->name, (int)n, text, buf_str(&names));
    buf_release(&names);
    return suggest(text, n, name, CONFIG_PARAMS, err);
}

/* The number of a word among the parameter's, or NAN. */
static double word_number(const struct method_param *p, const char *text)
{
    for (int i = 0; p->words[i]; i++)
        if (strcmp(p->words[i], text) == 0)
            return i;
    return (double)NAN;
}

static bool allowed(const struct method_param *p, double v)
{
    if (v < p->min || v > p->max || (p->whole && v != floor(v)))
        return false;
    for (const double *only = p->only; only && !isnan(*only); only++)
        if (v == *only)
            return true;
    return !p->only;
}

static int refuse_value(const struct method *m, const struct method_param *p, const char *value, struct err *err)
{
    struct buf right = { 0 };
    char number[TEXT_SHORT];
    double v;

    if (p->words) {
        for (int i = 0; p->words[i]; i++)
            buf_printf(&right, "%s%s", i ? " or " : "", p->words[i]);
    } else if (p->only) {
        for (int i = 0; !isnan(p->only[i]); i++)
            buf_printf(&right, "%s%s", i ? " or " : "", text_real(number, p->only[i]));
    } else {
        buf_printf(&right, "a %snumber from %s", p->whole ? "whole " : "", text_real(number, p->min));
        buf_printf(&right, " to %s", text_real(number, p->max));
    }
    err_set(err, ERR_USAGE, "%s: %s must be %s, not '%s'", m->name, p->name, buf_str(&right), value);
    buf_release(&right);
    bool percent = p->max <= 1 && parse_real(value, &v) && v >= 2 && v < 100;
    return percent ? err_add(err, "; did you mean %s%%?", value) : err->code;
}

/* Reads a number or a word. */
static bool read_value(const struct method_param *p, const char *text, double *v)
{
    if (p->words) {
        *v = word_number(p, text);
        return !isnan(*v);
    }
    return (p->max <= 1 ? parse_fraction(text, v) : parse_real(text, v)) && allowed(p, *v);
}

/* The index of the parameter with that name; without a name (n 0) of the parameter without a default; CONFIG_PARAMS:
 * none. */
static int find_param(const struct method *m, const char *name, size_t n)
{
    for (int i = 0; i < CONFIG_PARAMS && m->param[i].name; i++)
        if (n == 0 ? isnan(m->param[i].otherwise)
                   : is_name(m->param[i].name, name, n) || is_name(m->param[i].alias, name, n))
            return i;
    return CONFIG_PARAMS;
}

/* Reads "name=value", or "value" alone for the parameter without a default: snapkv:0.5. */
static int read_param(struct config_stage *stage, const char *text, size_t n, struct err *err)
{
    const struct method *m = stage->method;
    const char *equals = memchr(text, '=', n);
    bool bare = !equals && n > 0 && (*text == '.' || (*text >= '0' && *text <= '9'));
    size_t n_name = bare ? 0 : equals ? (size_t)(equals - text) : n;
    size_t n_value = bare ? n : equals ? n - n_name - 1 : 0;
    char value[TEXT_SHORT];
    int i = n_name || bare ? find_param(m, text, n_name) : CONFIG_PARAMS;

    if (i == CONFIG_PARAMS)
        return unknown_param(m, text, bare ? n : n_name, err);
    if (!isnan(stage->value[i]))
        return err_set(err, ERR_USAGE, "%s: %s is given twice", m->name, m->param[i].name);
    if (n_value >= sizeof(value))
        return err_set(err, ERR_USAGE, "%s: the value of %s is too long", m->name, m->param[i].name);
    memcpy(value, text + n - n_value, n_value);
    value[n_value] = '\0';
    if (!read_value(&m->param[i], value, &stage->value[i]))
        return refuse_value(m, &m->param[i], value, err);
    return 0;
}

/* Fills in defaults; ERR_USAGE when a parameter without one was not given. */
static int fill_defaults(struct config_stage *stage, struct err *err)
{
    const struct method *m = stage->method;

    for (int i = 0; i < CONFIG_PARAMS && m->param[i].name; i++) {
        if (isnan(stage->value[i]))
            stage->value[i] = m->param[i].otherwise;
        if (isnan(stage->value[i]))
            return err_set(err, ERR_USAGE, "%s needs %s, the %s: %s:%s=...", m->name, m->param[i].name,
                           m->param[i].help, m->name, m->param[i].name);
    }
    return m->check && m->check(stage->value, 0, err) ? err_wrap(err, "%s", m->name) : 0;
}

static int read_stage(struct config_stage *stage, const char *text, size_t n, struct err *err)
{
    size_t n_name = 0;

    while (n_name < n && text[n_name] != ':')
        n_name++;
    *stage = (struct config_stage){ .method = method_find(text, n_name) };
    if (!stage->method)
        return unknown_method(text, n_name, err);
    for (int i = 0; i < CONFIG_PARAMS; i++)
        stage->value[i] = (double)NAN;
    for (size_t at = n_name; at < n;) {
        size_t end = ++at;
        while (end < n && text[end] != ':')
            end++;
        if (read_param(stage, text + at, end - at, err))
            return err->code;
        at = end;
    }
    return fill_defaults(stage, err);
}

/* Puts each stage where its kind says, and notes what follows from the methods. */
static void resolve(struct config *c, const struct config_stage *stage, int n)
{
    for (int i = 0; i < n; i++) {
        const struct method *m = stage[i].method;
        c->stage[method_kind(m)] = stage[i];
        c->budget = m->budget ? m->budget : c->budget;
        c->drop = m->drop ? m->drop : c->drop;
        c->merge = m->merge ? m->merge : c->merge;
        c->pack = m->pack ? m->pack : c->pack;
        c->packer = m->pack ? method_kind(m) : c->packer;
    }
    c->knows_rows = !(c->budget && c->budget->most) && !(c->drop && c->drop->stored);
    c->ragged = !c->knows_rows || (c->budget && c->budget->floor) || (c->drop && c->drop->share);
}

/* A chain has stages of ascending kind, at most one of each; a budget or a merge only with a dropping method. */
static int check_chain(const struct config *c, const struct config_stage *stage, int n, struct err *err)
{
    static const char *const kind[] = { [METHOD_BUDGET] = "budgets",
                                        [METHOD_DROP] = "dropping methods",
                                        [METHOD_MERGE] = "merging methods",
                                        [METHOD_QUANTISE] = "quantisers" };
    static const char *const what[] = { [METHOD_BUDGET] = "works with the scores of a dropping method",
                                        [METHOD_DROP] = "drops tokens",
                                        [METHOD_MERGE] = "merges dropped tokens into others",
                                        [METHOD_QUANTISE] = "packs what is kept" };

    for (int i = 1; i < n; i++) {
        const struct method *first = stage[i - 1].method, *second = stage[i].method;
        enum method_kind before = method_kind(first), after = method_kind(second);
        if (before == after)
            return err_set(err, ERR_USAGE, "%s and %s are both %s; a chain has one of each kind", first->name,
                           second->name, kind[after]);
        if (before > after)
            return err_set(err, ERR_USAGE, "%s %s, so it comes before %s in a chain", second->name, what[after],
                           first->name);
    }
    for (int i = 0; i < n && n > 1; i++) {
        const struct method *m = stage[i].method;
        if (m->drop && (m->pack || m->drop->stored))
            return err_set(err, ERR_USAGE, "%s %s, so nothing stands beside it in a chain", m->name,
                           m->pack ? "drops and packs by itself" : "keeps all tokens");
    }
    const char *budget = c->budget ? c->stage[METHOD_BUDGET].method->name : NULL;
    if (budget && !c->drop)
        return err_set(err, ERR_USAGE, "%s %s, which must follow: %s+snapkv:drop=0.5", budget, what[METHOD_BUDGET],
                       budget);
    if (c->merge && !c->drop)
        return err_set(err, ERR_USAGE, "%s %s, so a dropping method must come before it: snapkv:drop=0.5+%s",
                       c->stage[METHOD_MERGE].method->name, what[METHOD_MERGE], c->stage[METHOD_MERGE].method->name);
    if (budget && c->drop->share)
        return err_set(err, ERR_USAGE, "%s shares its budget among heads by itself, so %s cannot precede it",
                       c->stage[METHOD_DROP].method->name, budget);
    return 0;
}

static void write_value(struct buf *out, const struct method_param *p, double v)
{
    char number[TEXT_SHORT];

    buf_printf(out, ":%s=%s", p->name, p->words ? p->words[(int)v] : text_real(number, v));
}

static int write_name(struct config *c, struct err *err)
{
    struct buf name = { 0 };

    for (int kind = 0; kind < METHOD_KINDS; kind++) {
        const struct config_stage *stage = &c->stage[kind];
        if (stage->method)
            buf_printf(&name, "%s%s", name.n ? "+" : "", stage->method->name);
        for (int i = 0; stage->method && i < CONFIG_PARAMS && stage->method->param[i].name; i++)
            if (stage->value[i] != stage->method->param[i].otherwise)
                write_value(&name, &stage->method->param[i], stage->value[i]);
    }
    if (name.n == 0)
        buf_adds(&name, "none");
    if (buf_failed(&name)) {
        buf_release(&name);
        return err_nomem(err);
    }
    snprintf(c->name, sizeof(c->name), "%s", name.at);
    int code =
        name.n < sizeof(c->name) ? 0 : err_set(err, ERR_USAGE, "its name has more than %d characters", CONFIG_NAME - 1);
    buf_release(&name);
    return code;
}

static int read_chain(struct config *c, const char *text, struct err *err)
{
    struct config_stage stage[METHOD_KINDS];
    int n_stages = 0;

    *c = (struct config){ 0 };
    for (const char *at = text; strcasecmp(text, "none") != 0; at++) {
        size_t n = strcspn(at, "+");
        if (n_stages == METHOD_KINDS)
            return err_set(err, ERR_USAGE, "a chain has at most %d methods", METHOD_KINDS);
        if (read_stage(&stage[n_stages++], at, n, err))
            return err->code;
        at += n;
        if (!*at)
            break;
    }
    resolve(c, stage, n_stages);
    return check_chain(c, stage, n_stages, err) ? err->code : write_name(c, err);
}

int config_parse(struct config *out, const char *text, struct err *err)
{
    if (read_chain(out, text, err))
        return err_wrap(err, "config '%s'", text);
    return 0;
}

/* ---- lists ------------------------------------------------------------- */

const struct config_named config_named[] = {
    { "default", "keydiff:drop=0.1..0.9/0.4,snapkv:drop=0.1..0.9/0.4,kivi:bits=4,kivi:bits=2" },
    /* EvicPress, AdaptCache, ARKV with the shares that it evicts at 2048, 1024 and 512 tokens, and a benchmark of
     * SnapKV, CaM and TurboQuant as those it compares them with. */
    { "papers", "keydiff:drop=0.1..0.9/0.2,knorm:drop=0.1..0.9/0.2,snapkv:drop=0.1..0.9/0.2,kvzip:drop=0.1..0.9/0.2,"
                "streamingllm:drop=0.5..0.9/0.2,kivi:bits=4,kivi:bits=2,"
                "impress:load=0.05,impress:load=0.25,impress:load=0.25:reorder=yes,"
                "arkv:drop=0.66,arkv:drop=0.795,arkv:drop=0.878,fp8,"
                "snapkv:drop=0.75:window=32:kernel=7,snapkv:drop=0.75:window=32:kernel=7+cam,"
                "turboquant:bits=4:rotation=qr:norm=f32,turboquant:bits=3:rotation=qr:outliers=32:norm=f32" },
    { "all", "papers,pyramidkv:drop=0.5,tova:drop=0.5,h2o:drop=0.5,h2o:drop=0.5:recent=half,lagkv:drop=0.5,"
             "random:drop=0.5,cur:drop=0.5,expected_attention:drop=0.5,kvzap:drop=0.5,keydiff:drop=0.5:block=128,"
             "adakv+snapkv:drop=0.5,criticalkv+snapkv:drop=0.5,chunkkv+snapkv:drop=0.5,snapkv:drop=0.5+merge_cos,"
             "cachegen,int8,int4,nvfp4,turboquant:bits=4,turboquant:bits=3,snapkv:drop=0.5+kivi:bits=4" },
    { NULL, NULL },
};

bool config_is_named(const char *list)
{
    const struct config_named *named = config_named;

    while (named->name && strcmp(named->name, list) != 0)
        named++;
    return named->name;
}

struct list {
    struct config *at;
    int n, cap;
    struct err *err;
};

static int add_config(struct list *list, const struct config *c)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->at[i].name, c->name) == 0)
            return 0;
    if (list->n == LIST_MAX)
        return err_set(list->err, ERR_USAGE, "more than %d configs", LIST_MAX);
    return ARRAY_PUSH(list, *c) ? err_nomem(list->err) : 0;
}

/* A range, and its position in the text. */
struct found_range {
    struct range range;
    size_t at, n;
};

/* Finds the first range. Returns 1; 0 when there is none; or an error. */
static int find_range(struct found_range *r, const char *text, struct err *err)
{
    const char *dots = strstr(text, "..");

    if (!dots)
        return 0;
    const char *begin = dots, *end = dots + strcspn(dots, ":+");
    while (begin > text && !strchr("=:+", begin[-1]))
        begin--;
    r->at = (size_t)(begin - text);
    r->n = (size_t)(end - begin);
    if (!parse_range(begin, r->n, &r->range))
        return err_set(err, ERR_USAGE, "'%.*s' is not a range from..to/step", (int)r->n, begin);
    if (!range_is_sound(&r->range, LIST_MAX))
        return err_set(err, ERR_USAGE, "the range '%.*s' must go up, in at most %d steps", (int)r->n, begin, LIST_MAX);
    return 1;
}

/* Adds the config; if a value is a range, the config with each number of the range. Several ranges nest. */
static int expand(struct list *list, const char *text)
{
    struct found_range r = { 0 };
    struct config c;
    char number[TEXT_SHORT];
    int found = find_range(&r, text, list->err), code = 0;
    double v;

    if (found < 0)
        return err_wrap(list->err, "config '%s'", text);
    if (found == 0)
        return config_parse(&c, text, list->err) ? list->err->code : add_config(list, &c);
    for (int i = 0; !code && range_number(&r.range, i, &v); i++) {
        struct buf one = { 0 };
        buf_printf(&one, "%.*s%s%s", (int)r.at, text, text_real(number, v), text + r.at + r.n);
        code = buf_failed(&one) ? err_nomem(list->err) : expand(list, one.at);
        buf_release(&one);
    }
    return code;
}

static int add_piece(void *arg, const char *piece, size_t n)
{
    struct list *list = arg;

    for (const struct config_named *named = config_named; named->name; named++)
        if (is_name(named->name, piece, n))
            return opt_split(named->list, add_piece, list);
    char *text = strndup(piece, n);
    int code = text ? expand(list, text) : err_nomem(list->err);

    free(text);
    return code;
}

int config_list(struct config **out, int *n, const char *text, struct err *err)
{
    struct list list = { .err = err };
    struct config none;
    int code = config_parse(&none, "none", err);

    if (!code)
        code = add_config(&list, &none);
    if (!code)
        code = opt_split(text, add_piece, &list);
    if (code) {
        free(list.at);
        return code;
    }
    *out = list.at;
    *n = list.n;
    return 0;
}
