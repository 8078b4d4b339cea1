/* The table of base/opt.h handed to argp: values, what --help shows of them, argp's own table, and opt_parse(), in this
 * order. argp decides how a command line is read; what a value may be is decided here.
 */
#include "base/opt.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/unconst.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef EVP_VERSION
#define EVP_VERSION "unknown"
#endif

enum { KEY = 0x1000, KEY_PRINT = 0x8000 }; /* argp keys of table rows without a short name; above any character */

/* Instead of running: argp answers --help and --usage itself. */
enum answer { ANSWER_NONE, ANSWER_TABLE, ANSWER_VERSION };

/* ---- values ------------------------------------------------------------ */

static bool in_bounds(const struct opt *o, double v)
{
    return (o->min == 0 && o->max == 0) || (v >= o->min && v <= o->max);
}

static int pick(const char *words, const char *s)
{
    size_t n = strlen(s);

    for (int i = 0; *words; i++) {
        size_t w = strcspn(words, "|");
        if (w == n && memcmp(words, s, n) == 0)
            return i;
        words += w + (words[w] == '|');
    }
    return -1;
}

static bool set_value(const struct opt *o, const char *s)
{
    int64_t whole;
    double real;

    switch (o->type) {
    case OPT_INT:
        if (!parse_int(s, &whole) || whole < INT_MIN || whole > INT_MAX || !in_bounds(o, (double)whole))
            return false;
        *(int *)o->dst = (int)whole;
        return true;
    case OPT_FLOAT:
        if (!parse_real(s, &real) || !in_bounds(o, real))
            return false;
        *(double *)o->dst = real;
        return true;
    case OPT_ENUM:
        if (pick(o->arg, s) < 0)
            return false;
        *(int *)o->dst = pick(o->arg, s);
        return true;
    case OPT_SIZE: return parse_size(s, o->dst);
    case OPT_STR: *(const char **)o->dst = s; return true;
    case OPT_LIST: return ARRAY_PUSH((struct opt_list *)o->dst, s) == 0;
    case OPT_FLAG: *(bool *)o->dst = true; return true;
    case OPT_COUNT: ++*(int *)o->dst; return true;
    case OPT_SHARE: return parse_shard(s, o->dst);
    case OPT_GROUP:
    case OPT_END: break;
    }
    return false;
}

/* ---- the table, shown -------------------------------------------------- */

static void default_text(const struct opt *o, struct buf *out)
{
    char text[TEXT_SHORT];

    switch (o->type) {
    case OPT_INT:
        if (in_bounds(o, *(int *)o->dst))
            buf_printf(out, "%d", *(int *)o->dst);
        break;
    case OPT_FLOAT:
        if (in_bounds(o, *(double *)o->dst))
            buf_adds(out, text_real(text, *(double *)o->dst));
        break;
    case OPT_SIZE: {
        uint64_t v = *(uint64_t *)o->dst;
        int unit = 0;
        for (; v && v % 1024 == 0 && unit < 4; unit++)
            v /= 1024;
        if (v)
            buf_printf(out, "%llu%.*s", (unsigned long long)v, unit > 0, &"KMGT"[unit > 0 ? unit - 1 : 0]);
        break;
    }
    case OPT_STR:
        if (*(const char **)o->dst)
            buf_adds(out, *(const char **)o->dst);
        break;
    case OPT_ENUM: {
        const char *w = o->arg;
        for (int i = *(int *)o->dst; i > 0; i--)
            w += strcspn(w, "|") + 1;
        buf_add(out, w, strcspn(w, "|"));
        break;
    }
    case OPT_SHARE: {
        const struct shard *shard = o->dst;
        buf_printf(out, "%lld/%lld", (long long)shard->i, (long long)shard->n);
        break;
    }
    default: break;
    }
}

/* "help text [default]" for argp, which wraps it. */
static char *help_text(const struct opt *o)
{
    struct buf text = { 0 }, def = { 0 };

    buf_adds(&text, o->help);
    if (o->type == OPT_ENUM || (o->type != OPT_GROUP && o->dst)) {
        default_text(o, &def);
        if (def.n)
            buf_printf(&text, " [%s]", def.at);
    }
    buf_release(&def);
    return buf_take(&text);
}

static void print_table(const struct tool *t)
{
    static const char *const type[] = { "end",   "group", "flag", "count", "int",  "size",
                                        "float", "text",  "list", "enum",  "shard" };

    for (const struct opt *o = t->opts; o->type != OPT_END; o++) {
        struct buf def = { 0 };
        if (o->type == OPT_GROUP)
            continue;
        default_text(o, &def);
        printf("%c\t%s\t%s\t%s\t%s\t%s\n", o->ch ? o->ch : '-', o->name, type[o->type], o->arg ? o->arg : "",
               buf_str(&def), o->help);
        buf_release(&def);
    }
}

/* ---- argp -------------------------------------------------------------- */

struct parse {
    const struct tool *tool;
    char **argv;
    int first;
    enum answer answer;
};

static const struct opt *by_key(const struct tool *t, int key)
{
    for (int i = 0; t->opts[i].type != OPT_END; i++)
        if (key == KEY + i || (t->opts[i].ch && key == t->opts[i].ch))
            return &t->opts[i];
    return NULL;
}

static void refuse_value(struct argp_state *state, const struct opt *o, const char *value)
{
    if (o->type == OPT_ENUM)
        argp_error(state, "'--%s=%s': not one of %s", o->name, value, o->arg);
    else if (o->type == OPT_SIZE)
        argp_error(state, "'--%s=%s': not a size (digits, then K, M, G or T)", o->name, value);
    else if (o->type == OPT_SHARE)
        argp_error(state, "'--%s=%s': not I/N with I from 1 to N", o->name, value);
    else if (o->min == 0 && o->max == 0)
        argp_error(state, "'--%s=%s': not a number", o->name, value);
    else if (o->max >= INT_MAX)
        argp_error(state, "'--%s=%s': not a number from %.10g up", o->name, value, o->min);
    else
        argp_error(state, "'--%s=%s': not a number from %.10g to %.10g", o->name, value, o->min, o->max);
}

static error_t on_key(int key, char *arg, struct argp_state *state)
{
    struct parse *p = state->input;
    const struct opt *o = by_key(p->tool, key);

    if (o) {
        if (!set_value(o, arg))
            refuse_value(state, o, arg);
        return 0;
    }
    switch (key) {
    case KEY_PRINT: p->answer = ANSWER_TABLE; return 0;
    case 'V': p->answer = ANSWER_VERSION; return 0;
    case ARGP_KEY_ARGS: p->first = state->next; return 0; /* the rest are operands, which argp need not visit */
    case ARGP_KEY_NO_ARGS: p->first = state->argc; return 0;
    case ARGP_KEY_END: {
        int n = state->argc - p->first;
        if (p->answer)
            return 0;
        if (n < p->tool->min_operands)
            argp_error(state, "%s is missing", p->tool->min_operands == 1 ? "an operand" : "one of the operands");
        if (p->tool->max_operands >= 0 && n > p->tool->max_operands)
            argp_error(state, "unexpected operand '%s'", state->argv[p->first + p->tool->max_operands]);
        return 0;
    }
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* argp's table from ours, with three rows added: two that every tool has, and the end. Group -1 is where argp puts its
 * own --help. */
static struct argp_option *argp_table(const struct tool *t)
{
    int n = 0, group = 0;

    while (t->opts[n].type != OPT_END)
        n++;
    struct argp_option *table = calloc((size_t)n + 3, sizeof(*table));
    if (!table)
        return NULL;
    for (int i = 0; i < n; i++) {
        const struct opt *o = &t->opts[i];
        group += o->type == OPT_GROUP;
        table[i] = (struct argp_option){
            .name = o->name,
            .key = o->type == OPT_GROUP ? 0
                   : o->ch              ? o->ch
                                        : KEY + i,
            .arg = o->type == OPT_FLAG || o->type == OPT_COUNT || o->type == OPT_GROUP ? NULL : o->arg,
            .doc = help_text(o),
            .group = group,
        };
    }
    table[n] = (struct argp_option){ .name = "print-options", .key = KEY_PRINT, .flags = OPTION_HIDDEN };
    table[n + 1] = (struct argp_option){ .name = "version", .key = 'V', .doc = "Print program version", .group = -1 };
    return table;
}

static char *document(const struct tool *t)
{
    struct buf b = { 0 };

    buf_printf(&b, "%s - %s\v%s\n", t->name, t->summary, t->about);
    if (t->examples)
        buf_printf(&b, "\nExamples:\n%s", t->examples);
    buf_adds(&b, "\nExit status:\n");
#define X(status, text) buf_printf(&b, "  %d  %s\n", status, text);
    EXIT_LIST(X)
#undef X
    return buf_take(&b);
}

int opt_parse(const struct tool *t, int argc, char **argv, int *first)
{
    struct argp_option *table = argp_table(t);
    char *doc = document(t);
    struct argp argp = { .options = table, .parser = on_key, .args_doc = t->operands, .doc = doc };
    struct parse p = { .tool = t, .argv = argv, .first = argc };

    if (!table || !doc)
        return err_exit_status(ERR_NOMEM);
    argp_err_exit_status = err_exit_status(ERR_USAGE);
    log_open(t->name, LOG_INFO);
    if (argc > 0)
        argv[0] = unconst(t->name); /* argp's messages begin with it */
    if (argp_parse(&argp, argc, argv, 0, NULL, &p))
        return err_exit_status(ERR_USAGE);
    for (int i = 0; t->opts[i].type != OPT_END; i++)
        free(unconst(table[i].doc));
    free(table);
    free(doc);
    if (p.answer) {
        if (p.answer == ANSWER_TABLE)
            print_table(t);
        else
            printf("%s (EvicPress) %s\n", t->name, EVP_VERSION);
        return opt_finish(0);
    }
    int level = LOG_INFO + (t->common ? t->common->verbose - t->common->quiet : 0);
    log_open(t->name, level < LOG_WARN ? LOG_WARN : level > LOG_DEBUG ? LOG_DEBUG : (enum log_level)level);
    *first = p.first;
    return OPT_RUN;
}

int opt_finish(int status)
{
    bool failed = ferror(stdout) != 0;

    if (fclose(stdout) || failed) {
        if (status == 0)
            log_error("cannot write standard output: %s", strerror(errno));
        return status ? status : 1;
    }
    return status;
}

int opt_split(const char *list, int (*each)(void *arg, const char *piece, size_t n), void *arg)
{
    for (;;) {
        size_t n = strcspn(list, ",");
        int result = each(arg, list, n);
        if (result || !list[n])
            return result;
        list += n + 1;
    }
}
