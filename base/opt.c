/* opt.c - hands the table of base/opt.h to argp: values, how --help shows them, names, argp's table, opt_parse(). argp
 * walks over the command line; this file decides which names and values are valid.
 */
#include "base/opt.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/near.h"
#include "base/opt_internal.h"
#include "base/parse.h"
#include "base/unconst.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef BUILD_VERSION
#define BUILD_VERSION   "unknown"
#define RELEASE_VERSION "unknown"
#endif

/* argp keys of rows without a short name, above any character. */
enum { KEY = 0x1000, KEY_PRINT = 0x8000, KEY_USAGE, ARG_MAX_SHOWN = 100 };

/* What to print instead of running. */
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

/* "10" may be meant as 10 GiB. */
static void warn_size(const struct opt *o, const char *s)
{
    uint64_t bytes = *(uint64_t *)o->dst;

    if (bytes && bytes < 1 << 20 && strspn(s, "0123456789") == strlen(s))
        log_warn("'--%s=%s' is in bytes; sizes take K, M, G or T", o->name, s);
}

static double time_unit(const struct opt *o)
{
    return *o->arg == 'D' ? 86400 : *o->arg == 'H' ? 3600 : 1;
}

static bool set_value(const struct opt *o, const char *s)
{
    int64_t whole;
    double real;
    char *text;

    switch (o->type) {
    case OPT_INT:
        if (!parse_count(s, &whole) || whole < INT_MIN || whole > INT_MAX || !in_bounds(o, (double)whole))
            return false;
        *(int *)o->dst = (int)whole;
        return true;
    case OPT_FLOAT:
        if (!(o->min >= 0 && o->max > 0 && o->max <= 1 ? parse_fraction(s, &real) : parse_real(s, &real)) ||
            !in_bounds(o, real))
            return false;
        *(double *)o->dst = real;
        return true;
    case OPT_ENUM:
        if (pick(o->arg, s) < 0)
            return false;
        *(int *)o->dst = pick(o->arg, s);
        return true;
    case OPT_SIZE:
        if (!parse_size(s, o->dst))
            return false;
        warn_size(o, s);
        return true;
    case OPT_TIME:
        if (!parse_time(s, time_unit(o), &real) || !in_bounds(o, real))
            return false;
        *(double *)o->dst = real;
        return true;
    case OPT_STR:
    case OPT_JOIN:
    case OPT_OUT: *(const char **)o->dst = s; return true;
    case OPT_DATE:
        if (asprintf(&text, "date:%s", s) < 0)
            return false;
        *(const char **)o->dst = text; // as long as the process
        return true;
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
    case OPT_TIME:
        if (in_bounds(o, *(double *)o->dst))
            buf_adds(out, text_real(text, *(double *)o->dst));
        break;
    case OPT_SIZE: {
        uint64_t v = *(uint64_t *)o->dst;
        int unit = 0;
        for (; v && v % 1024 == 0 && unit < 4; unit++)
            v /= 1024;
        if (*(uint64_t *)o->dst != UINT64_MAX && v)
            buf_printf(out, "%llu%.*s", (unsigned long long)v, unit > 0, &"KMGT"[unit > 0 ? unit - 1 : 0]);
        break;
    }
    case OPT_STR:
    case OPT_OUT:
    case OPT_JOIN:
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

/* A long list of names is in the text, where it can be wrapped. */
static bool is_long(const struct opt *o)
{
    return o->arg && strlen(o->arg) > ARG_MAX_SHOWN;
}

/* "help text [default]" for argp, which wraps it. */
static char *help_text(const struct opt *o)
{
    struct buf text = { 0 }, def = { 0 };

    buf_adds(&text, o->help);
    for (const char *name = is_long(o) ? o->arg : ""; *name; name += strcspn(name, "|") + (strchr(name, '|') != NULL))
        buf_printf(&text, "%s%.*s", name == o->arg ? "; NAME is " : ", ", (int)strcspn(name, "|"), name);
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
    static const char *const type[] = { "end",    "group", "flag", "count", "int",  "size", "float", "text",
                                        "output", "list",  "enum", "shard", "time", "list", "date" };

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

/* ---- reading a command line --------------------------------------------- */

enum { OPTIONS_MAX = 64 };

struct parse {
    const struct tool *tool;
    int first;
    enum answer answer;
    bool given[OPTIONS_MAX]; // by row of the table
};

static int count_options(const struct tool *t)
{
    int n = 0;

    while (t->opts[n].type != OPT_END)
        n++;
    return n;
}

/* The row of an argp key, or -1. */
static int by_key(const struct tool *t, int key)
{
    for (int i = 0; t->opts[i].type != OPT_END; i++)
        if (key == KEY + i || (t->opts[i].ch && key == t->opts[i].ch))
            return i;
    return -1;
}

static bool takes_value(const struct opt *o)
{
    return o->type != OPT_FLAG && o->type != OPT_COUNT && o->type != OPT_GROUP;
}

/* ---- names -------------------------------------------------------------- */

/* Rows of every tool, in addition to its table, in its last group: Common. */
static const struct argp_option rows_of_all[] = {
    { "help", 'h', NULL, 0, "print this help", 0 },
    { NULL, '?', NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 0 },
    { "usage", KEY_USAGE, NULL, 0, "print the options without their meaning", 0 },
    { "version", 'V', NULL, 0, "print the version", 0 },
    { "print-options", KEY_PRINT, NULL, OPTION_HIDDEN, NULL, 0 },
    { 0 },
};
enum { N_ALL = sizeof(rows_of_all) / sizeof(*rows_of_all) }; // with the row that ends the table

/* Lists every long name that a command line may use. Returns how many. */
static size_t long_names(const struct tool *t, const char *name[OPTIONS_MAX + N_ALL])
{
    size_t n = 0;

    for (const struct opt *o = t->opts; o->type != OPT_END; o++)
        if (o->name)
            name[n++] = o->name;
    for (const struct argp_option *all = rows_of_all; all->key; all++)
        if (all->name)
            name[n++] = all->name;
    return n;
}

static bool is_word(const char *text, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(word, text, n) == 0;
}

static const struct opt *by_name(const struct tool *t, const char *text, size_t n)
{
    for (const struct opt *o = t->opts; o->type != OPT_END; o++)
        if (o->name && is_word(text, n, o->name))
            return o;
    return NULL;
}

/* Refuses an abbreviated long option: getopt would accept "--tie" for "--tiers", until an option "--tie" is added. */
static void check_name(struct argp_state *state, const struct tool *t, const char *text, size_t n)
{
    const char *name[OPTIONS_MAX + N_ALL];
    size_t n_names = long_names(t, name);

    for (size_t i = 0; i < n_names; i++)
        if (is_word(text, n, name[i]))
            return;
    const char *near = near_word(text, n, name, n_names);
    if (by_name(t, "configs", 7) && (is_word(text, n, "drop") || is_word(text, n, "bits")))
        argp_error(state, "'--%.*s' is not an option; write -c METHOD:%.*s=...", (int)n, text, (int)n, text);
    argp_error(state, "'--%.*s' is not an option%s%s%s", (int)n, text, near ? "; did you mean '--" : "",
               near ? near : "", near ? "'?" : "");
}

/* Of letters like "-qvo": is the next word the value of the last one? */
static bool wants_next(const struct tool *t, const char *letters)
{
    for (; *letters; letters++) {
        int row = by_key(t, (unsigned char)*letters);
        if (row >= 0 && takes_value(&t->opts[row]))
            return !letters[1];
    }
    return false;
}

/* Walks over the command line as getopt is about to. */
static void check_names(struct argp_state *state, const struct tool *t)
{
    bool operands_end = getenv("POSIXLY_CORRECT") != NULL;

    for (int i = 1; i < state->argc; i++) {
        const char *word = state->argv[i];
        bool operand = word[0] != '-' || !word[1];
        if (strcmp(word, "--") == 0 || (operand && operands_end))
            return;
        if (operand)
            continue;
        if (word[1] != '-') {
            i += wants_next(t, word + 1);
            continue;
        }
        size_t n = strcspn(word + 2, "=");
        check_name(state, t, word + 2, n);
        const struct opt *o = by_name(t, word + 2, n);
        i += o && takes_value(o) && !word[2 + n];
    }
}

/* ---- argp -------------------------------------------------------------- */

/* The number that 90 or 0,9 stands for where 0 to 1 is wanted. */
static bool meant(const struct opt *o, const char *value, char out[TEXT_SHORT])
{
    double v;

    if (o->type != OPT_FLOAT || o->max > 1 || strlen(value) + 2 > TEXT_SHORT)
        return false;
    snprintf(out, TEXT_SHORT, "%s", value);
    char *comma = strchr(out, ',');
    if (comma)
        *comma = '.';
    else
        snprintf(out, TEXT_SHORT, "%s%%", value);
    return parse_fraction(out, &v) && v >= 0.02 && in_bounds(o, v);
}

static void refuse_value(struct argp_state *state, const struct opt *o, const char *value)
{
    char text[TEXT_SHORT];

    if (o->type == OPT_ENUM)
        argp_error(state, "'--%s=%s' is not one of %s", o->name, value, o->arg);
    else if (o->type == OPT_SIZE)
        argp_error(state, "'--%s=%s' is not a size (a number, then K, M, G or T)", o->name, value);
    else if (o->type == OPT_SHARE)
        argp_error(state, "'--%s=%s' is not I/N with I from 1 to N", o->name, value);
    else if (o->type == OPT_TIME)
        argp_error(state, "'--%s=%s' is not a time from %.10g to %.10g %s (3, or 500ms, 20s, 5min, 3h, 2d)", o->name,
                   value, o->min, o->max,
                   *o->arg == 'D'   ? "days"
                   : *o->arg == 'H' ? "hours"
                                    : "seconds");
    else if (meant(o, value, text))
        argp_error(state, "'--%s=%s' is not a number from %.10g to %.10g; did you mean %s?", o->name, value, o->min,
                   o->max, text);
    else if (o->min == 0 && o->max == 0)
        argp_error(state, "'--%s=%s' is not a number", o->name, value);
    else if (o->max >= INT_MAX)
        argp_error(state, "'--%s=%s' is not a number from %.10g up", o->name, value, o->min);
    else
        argp_error(state, "'--%s=%s' is not a number from %.10g to %.10g", o->name, value, o->min, o->max);
}

/* "a,b"; lives as long as the process, as argv does. */
static const char *join(const char *a, const char *b)
{
    struct buf both = { 0 };

    buf_printf(&both, "%s,%s", a, b);
    return buf_failed(&both) ? b : buf_take(&both);
}

static void take_option(struct argp_state *state, struct parse *p, int row, const char *value)
{
    const struct opt *o = &p->tool->opts[row];

    if (p->given[row] && takes_value(o) && o->type != OPT_LIST && o->type != OPT_JOIN)
        argp_error(state, "'--%s' is given twice", o->name);
    if (p->given[row] && o->type == OPT_JOIN)
        value = join(*(const char **)o->dst, value);
    p->given[row] = true;
    if (!set_value(o, value))
        refuse_value(state, o, value);
}

/* Names operand n, and the tool that makes such a file. */
static void refuse_missing(const struct argp_state *state, const struct tool *t, int n)
{
    static const char *const makers[][2] = { { "CONTEXTS", "evp-import" },
                                             { "QUESTIONS", "evp-qgen" },
                                             { "PROFILE", "evp-profile" },
                                             { "TABLE", "evp-score" },
                                             { "MANIFEST", "evp-plan" } };
    const char *word = t->operands, *maker = NULL;

    for (; n > 0; n--)
        word += strcspn(word, " ") + 1;
    int length = (int)strcspn(word, " .");
    for (size_t i = 0; i < sizeof(makers) / sizeof(*makers); i++)
        if (strncmp(makers[i][0], word, (size_t)length) == 0)
            maker = makers[i][1];
    argp_error(state, "%.*s%s%s%s is missing", length, word, maker ? ", from " : "", maker ? maker : "",
               maker ? "," : "");
}

static void check_operands(const struct argp_state *state, const struct parse *p)
{
    int n = state->argc - p->first;

    if (p->answer || (p->tool->alone && *p->tool->alone))
        return;
    if (state->argc == 1 && p->tool->min_operands == 0 && isatty(STDIN_FILENO))
        argp_state_help(state, stderr, ARGP_HELP_STD_USAGE);
    if (n < p->tool->min_operands)
        refuse_missing(state, p->tool, n);
    if (p->tool->max_operands >= 0 && n > p->tool->max_operands)
        argp_error(state, "unexpected operand '%s'", state->argv[p->first + p->tool->max_operands]);
}

static error_t on_key(int key, char *arg, struct argp_state *state)
{
    struct parse *p = state->input;
    int row = by_key(p->tool, key);

    if (row >= 0) {
        take_option(state, p, row, arg);
        return 0;
    }
    switch (key) {
    case ARGP_KEY_INIT:
        state->name = unconst(p->tool->name); /* argp sets it later, and its messages begin with it */
        check_names(state, p->tool);
        return 0;
    case KEY_PRINT: p->answer = ANSWER_TABLE; return 0;
    case 'V': p->answer = ANSWER_VERSION; return 0;
    case 'h':
    case '?': argp_state_help(state, stdout, ARGP_HELP_STD_HELP); return 0;
    case KEY_USAGE: argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK); return 0;
    case ARGP_KEY_ARGS: p->first = state->next; return 0; /* argp need not visit the operands */
    case ARGP_KEY_NO_ARGS: p->first = state->argc; return 0;
    case ARGP_KEY_END: check_operands(state, p); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* argp's table: the tool's rows, then those of every tool. A heading begins a group, the rows after it join it. The
 * last group is -1, where argp puts --help and --version. */
static struct argp_option *argp_table(const struct tool *t)
{
    int n = count_options(t), last = 0;
    struct argp_option *table = n <= OPTIONS_MAX ? calloc((size_t)n + N_ALL, sizeof(*table)) : NULL;

    if (!table)
        return NULL;
    for (int i = 0; i < n; i++) {
        const struct opt *o = &t->opts[i];
        last = o->type == OPT_GROUP ? i : last;
        table[i] = (struct argp_option){
            .name = o->name,
            .key = o->type == OPT_GROUP ? 0
                   : o->ch              ? o->ch
                                        : KEY + i,
            .arg = is_long(o)       ? "NAME"
                   : takes_value(o) ? o->arg
                                    : NULL,
            .doc = help_text(o),
        };
    }
    table[last].group = -1;
    memcpy(table + n, rows_of_all, sizeof(rows_of_all));
    return table;
}

/* Leaves out argp's note that a long option's argument is also its letter's. */
static char *filter_help(int key, const char *text, void *input)
{
    (void)input;
    return key == ARGP_KEY_HELP_DUP_ARGS_NOTE ? NULL : unconst(text);
}

static char *document(const struct tool *t)
{
    struct buf b = { 0 };

    buf_printf(&b, "%s - %s\v%s\n", t->name, t->summary, t->about);
    buf_adds(&b, "\nNumbers take units: 32k, 4G, 90%, 500ms, 20s, 5min, 3h, 2d.\n");
    if (t->examples)
        buf_printf(&b, "\nExamples:\n%s", t->examples);
    buf_adds(&b, "\nExit status:\n");
#define X(status, text) buf_printf(&b, "  %d  %s\n", status, text);
    EXIT_LIST(X)
#undef X
    return buf_take(&b);
}

/* Files that are opened must not become descriptor 0, 1 or 2, which children and messages use. What takes the place of
 * a closed one can be neither read nor written, not even through /dev/stdin or /dev/stdout: no data are lost unseen. */
static void fill_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open(fd == STDIN_FILENO ? "/" : "/dev/full", O_PATH);
}

int opt_parse(const struct tool *t, int argc, char **argv, int *first)
{
    struct argp_option *table = argp_table(t);
    char *doc = document(t);
    struct argp argp = {
        .options = table, .parser = on_key, .args_doc = t->operands, .doc = doc, .help_filter = filter_help
    };
    struct parse p = { .tool = t, .first = argc };
    struct err err;

    fill_standard();
    file_map_guard();
    if (!table || !doc)
        return err_exit_status(ERR_NOMEM);
    argp_err_exit_status = err_exit_status(ERR_USAGE);
    log_open(t->name, LOG_INFO);
    if (argc > 0)
        argv[0] = unconst(t->name); /* argp's messages begin with it */
    if (argp_parse(&argp, argc, argv, ARGP_NO_HELP, NULL, &p))
        return err_exit_status(ERR_USAGE);
    for (int i = 0; t->opts[i].type != OPT_END; i++)
        free(unconst(table[i].doc));
    free(table);
    free(doc);
    if (p.answer) {
        if (p.answer == ANSWER_TABLE)
            print_table(t);
        else
            printf("%s (EvicPress) %s\n", t->name, BUILD_VERSION);
        return opt_finish(0);
    }
    int level = LOG_INFO + (t->common ? t->common->verbose - t->common->quiet : 0);
    log_open(t->name, level < LOG_WARN ? LOG_WARN : level > LOG_DEBUG ? LOG_DEBUG : (enum log_level)level);
    *first = p.first;
    struct opt_operands operands = { argv + p.first, argc - p.first };
    if (t->of_users)
        opt_keep_private(&operands);
    return opt_check_paths(t, &operands, &err) ? log_failure(&err) : OPT_RUN;
}

int opt_finish(int status)
{
    bool failed = ferror(stdout) != 0;

    log_end();
    if (fclose(stdout) || failed) {
        if (status == 0)
            log_error("cannot write standard output: %s", strerror(errno));
        return status ? status : 1;
    }
    return status;
}

int opt_split(const char *list, int (*each)(void *arg, const char *item, size_t n), void *arg)
{
    for (;;) {
        list += strspn(list, " \t");
        size_t n = strcspn(list, ","), end = n;
        while (end && strchr(" \t", list[end - 1]))
            end--;
        int result = each(arg, list, end);
        if (result || !list[n])
            return result;
        list += n + 1;
    }
}

const char *opt_release(void)
{
    return RELEASE_VERSION;
}
