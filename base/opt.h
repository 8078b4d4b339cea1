/* opt.h - one option table per tool.
 *
 * An option is written down once, in the table. Parsing (by glibc's argp), --help, --usage, the man page
 * (scripts/manpage reads --help) and the shells' completions are made from it, so they cannot disagree. An option's
 * default is the value of its destination before opt_parse(); --help prints it. A default outside the option's bounds
 * is not shown: it tells the tool that the option was not given.
 *
 * Numbers take units: --min-tokens 32k, --memory 4G, --half-life 3d, --min-quality 90%.
 *
 * Long names are not abbreviated: "--tie" does not stand for "--tiers". An option with a value is given once, unless it
 * is a list. A file that a command writes (OPT_OUT) must not be a file that the same command reads, and its folder must
 * exist. A tool without any argument, when standard input is a terminal, prints its usage.
 *
 * --help prints the options in groups, each under its heading (OPT_HEAD); a table begins with one. Where they fit, the
 * headings are Input, Choice, Model and device, Output; the last one is Common (OPT_COMMON).
 *
 * An option means the same in every tool. Options of several tools are written once, in cmd/options.h (OPT_MODEL ...).
 * A letter belongs to one long name in all tools, and few options have one:
 *
 *     -a access  -c configs  -d dataset  -j threads  -m model    -n dry-run  -o output
 *     -p payloads            -q quiet    -s seed     -t tiers    -v verbose
 *
 * To add a tool: (1) cmd/evp-x.c with a table and a main() like its neighbours (2) tests in tests/cli/x/ (3) its row in
 * README.md. The Makefile and cmd/evp find new tools by themselves.
 * To add an option: (1) its row in the tool's table; with a new letter also the list above and the one in
 * tests/cli/common/options.py (2) a test in tests/cli/x/.
 *
 *     static struct { int limit; struct opt_list dataset; } cfg = { .limit = 10 };
 *     static const struct opt opts[] = {
 *         OPT_HEAD("Choice"),
 *         OPT_NUM(0, "limit", &cfg.limit, 1, INT_MAX, "take only the first N contexts of each dataset"),
 *         OPT_MANY('d', "dataset", &cfg.dataset, "NAME", "take only this dataset; may be repeated"),
 *         OPT_COMMON(&cfg.common),
 *         OPT_DONE,
 *     };
 */
#ifndef EVP_OPT_H
#define EVP_OPT_H

#include "base/parse.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum opt_type {
    OPT_END,
    OPT_GROUP, // a heading: `help` is its text
    OPT_FLAG,  // bool, true when given
    OPT_COUNT, // int, +1 each time
    OPT_INT,   // int, as parse_count() reads it
    OPT_SIZE,  // uint64_t, as parse_size() reads it; a small one without a unit is warned about
    OPT_FLOAT, // double; with bounds inside 0 to 1 also 50%
    OPT_STR,   // const char *
    OPT_OUT,   // const char *, the name of a file (arg "FILE") or of a folder to be written
    OPT_LIST,  // struct opt_list: every value given, in the order given
    OPT_ENUM,  // int, index into the '|'-separated words of `arg`
    OPT_SHARE, // struct shard: I/N
    OPT_TIME,  // double, as parse_time() reads it, in SECONDS, HOURS or DAYS as `arg` says
    OPT_JOIN,  // const char *; given several times, the values are joined with commas
    OPT_DATE,  // const char *, "date:" and the value
};

/* at[] points into argv. Lives as long as the process. */
struct opt_list {
    const char **at;
    int n, cap;
};

struct opt {
    enum opt_type type;
    char ch;          // short name, 0 if none
    const char *name; // long name without dashes
    void *dst;
    const char *arg;  // placeholder in the help: FILE, N, cpu|cuda
    const char *help; // lower case, no full stop
    double min, max;  // numbers: both 0 means no bounds; OPT_OUT: min is 1 if '-' is standard output
};

/* _Generic makes a destination of the wrong type a compile error. */
#define OPT_HEAD(h)                                                                                                    \
    {                                                                                                                  \
        OPT_GROUP, 0, NULL, NULL, NULL, h, 0, 0                                                                        \
    }
#define OPT_BOOL(c, n, p, h)                                                                                           \
    {                                                                                                                  \
        OPT_FLAG, c, n, _Generic((p), bool * : (p)), NULL, h, 0, 0                                                     \
    }
#define OPT_TALLY(c, n, p, h)                                                                                          \
    {                                                                                                                  \
        OPT_COUNT, c, n, _Generic((p), int * : (p)), NULL, h, 0, 0                                                     \
    }
#define OPT_NUM(c, n, p, lo, hi, h)                                                                                    \
    {                                                                                                                  \
        OPT_INT, c, n, _Generic((p), int * : (p)), "N", h, lo, hi                                                      \
    }
#define OPT_BYTES(c, n, p, h)                                                                                          \
    {                                                                                                                  \
        OPT_SIZE, c, n, _Generic((p), uint64_t * : (p)), "SIZE", h, 0, 0                                               \
    }
#define OPT_REAL(c, n, p, lo, hi, h)                                                                                   \
    {                                                                                                                  \
        OPT_FLOAT, c, n, _Generic((p), double * : (p)), "X", h, lo, hi                                                 \
    }
/* unit: "SECONDS", "HOURS" or "DAYS" */
#define OPT_PERIOD(c, n, p, unit, lo, hi, h)                                                                           \
    {                                                                                                                  \
        OPT_TIME, c, n, _Generic((p), double * : (p)), unit, h, lo, hi                                                 \
    }
#define OPT_WORDS(c, n, p, h)                                                                                          \
    {                                                                                                                  \
        OPT_JOIN, c, n, _Generic((p), const char ** : (p)), "LIST", h, 0, 0                                            \
    }
#define OPT_TEXT(c, n, p, a, h)                                                                                        \
    {                                                                                                                  \
        OPT_STR, c, n, _Generic((p), const char ** : (p)), a, h, 0, 0                                                  \
    }
#define OPT_DATED(n, p, h)                                                                                             \
    {                                                                                                                  \
        OPT_DATE, 0, n, _Generic((p), const char ** : (p)), "TEXT", h, 0, 0                                            \
    }
#define OPT_WRITES(c, n, p, a, h) OPT_WRITTEN(c, n, p, a, h, 0)
/* standard: 1 if '-' is standard output */
#define OPT_WRITTEN(c, n, p, a, h, standard)                                                                           \
    {                                                                                                                  \
        OPT_OUT, c, n, _Generic((p), const char ** : (p)), a, h, standard, 0                                           \
    }
#define OPT_MANY(c, n, p, a, h)                                                                                        \
    {                                                                                                                  \
        OPT_LIST, c, n, _Generic((p), struct opt_list * : (p)), a, h, 0, 0                                             \
    }
#define OPT_PICK(c, n, p, a, h)                                                                                        \
    {                                                                                                                  \
        OPT_ENUM, c, n, _Generic((p), int * : (p)), a, h, 0, 0                                                         \
    }
#define OPT_DONE                                                                                                       \
    {                                                                                                                  \
        OPT_END, 0, NULL, NULL, NULL, NULL, 0, 0                                                                       \
    }

/* Options of every tool, last in its table: --summary (cmd/summary.h), -v, -q. opt_parse() opens the log with them and
 * adds --help, --usage and --version. */
#define OPT_COMMON(p)                                                                                                  \
    OPT_HEAD("Common"),                                                                                                \
        OPT_WRITES(0, "summary", &(p)->summary, "FILE", "write the figures of the last messages there, as JSON"),      \
        OPT_TALLY('v', "verbose", &(p)->verbose, "print more messages"),                                               \
        OPT_TALLY('q', "quiet", &(p)->quiet, "print only warnings and errors")

struct opt_common {
    const char *summary;
    int verbose, quiet;
};

struct tool {
    const char *name;     // evp-plan
    const char *summary;  // one line, for NAME and the first line of --help
    const char *operands; // after the options in the synopsis: "[FILE]"
    int min_operands;
    int max_operands;     // negative: any number
    bool of_users;        // writes texts of users: its files are as private as the most private operand, at most 0640
    const bool *alone;    // set by an option that needs no operands; NULL: there is none
    const char *about;    // after the options: short paragraphs, a blank line between them
    const char *examples; // one command a line, indented by two blanks
    const struct opt *opts;
    const struct opt_common *common; // destination of OPT_COMMON
};

enum { OPT_RUN = -1 };

/* Opens the log. Returns OPT_RUN and sets *first to the index of the first operand in argv (options are moved in front
 * of operands), or the status that main() should return: 0 after --help, --usage or --version, 2 on misuse, after a
 * message. The hidden option --print-options prints the table for tests and scripts/completion, a line per option:
 * letter or -, long name, type, argument, default and help, separated by tabs. */
int opt_parse(const struct tool *tool, int argc, char **argv, int *first);

/* Every main() ends with it: closes stdout and returns 1 instead of status 0 when a write there failed (a full disk, a
 * closed pipe). */
int opt_finish(int status);

/* Splits a list at commas: calls each(arg, item, n) for every item without the blanks around it, empty ones too; stops
 * at the first non-zero result and returns it. */
int opt_split(const char *list, int (*each)(void *arg, const char *item, size_t n), void *arg);

/* This program's release, "0.3.0", the same for all commits that lead to it. */
const char *opt_release(void);

#endif
