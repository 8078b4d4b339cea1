/* opt.h - one option table per tool.
 *
 * The table is the only place where an option is written down: parsing (by glibc's argp), --help, --usage and the man
 * page (scripts/manpage reads --help) are made from it, so they cannot disagree. The default of an option is what its
 * destination holds before opt_parse(); --help prints it from there. A default outside the option's own bounds is not
 * shown; a tool sees by such a value that the option was not given.
 *
 * Names are written out: "--tie" is no option where "--tiers" is. An option with a value is given once, unless it is a
 * list. A file that is written (OPT_OUT) is never one that the same command reads.
 *
 * An option means the same in every tool. Those that several tools have are written once, below (OPT_MODEL ...). A
 * letter belongs to one long name in all tools, and few options have one:
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
 *         OPT_HEAD("Choosing"),
 *         OPT_NUM(0, "limit", &cfg.limit, 1, INT_MAX, "take at most this many per dataset"),
 *         OPT_MANY('d', "dataset", &cfg.dataset, "NAME", "take only this dataset; may be repeated"),
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
    OPT_INT,   // int
    OPT_SIZE,  // uint64_t, as parse_size() reads it
    OPT_FLOAT, // double; with bounds inside 0 to 1 also 50%
    OPT_STR,   // const char *
    OPT_OUT,   // const char *, the name of a file (arg "FILE") or of a folder that is written
    OPT_LIST,  // struct opt_list: every value given, in order
    OPT_ENUM,  // int, index into the '|'-separated words of `arg`
    OPT_SHARE, // struct shard: I/N
};

/* Grows as values come; at[] points into argv. Lives as long as the process. */
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
    double min, max;  // numbers only; both 0 means no bounds
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
#define OPT_TEXT(c, n, p, a, h)                                                                                        \
    {                                                                                                                  \
        OPT_STR, c, n, _Generic((p), const char ** : (p)), a, h, 0, 0                                                  \
    }
#define OPT_WRITES(c, n, p, a, h)                                                                                      \
    {                                                                                                                  \
        OPT_OUT, c, n, _Generic((p), const char ** : (p)), a, h, 0, 0                                                  \
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

/* ---- options of several tools ---- */

#define OPT_MODEL(p)                                                                                                   \
    OPT_TEXT(                                                                                                          \
        'm', "model", p, "MODEL",                                                                                      \
        "a .gguf file, a model folder, or ORG/NAME of a snapshot in the Hugging Face cache; SmolLM2-135M-Instruct by " \
        "default; 'synthetic:llama-3.1-8b' has that shape "                                                            \
        "and random weights, for measuring speed")
#define OPT_NAMESPACE(p)                                                                                               \
    OPT_TEXT(                                                                                                          \
        0, "namespace", p, "NAME",                                                                                     \
        "the payloads of this name, apart from those of others in the same folders (default: the model's digest)")
#define OPT_CHAT(p)                                                                                                    \
    OPT_TEXT(                                                                                                          \
        0, "chat-template", p, "FILE",                                                                                 \
        "a text with {content}, where the message goes, instead of the model's own chat template; none: the message "  \
        "alone")
/* names: BACKEND_NAMES and BACKEND_DTYPES of kernels/backend.h, what this build has. Texts and not choices:
 * backend_open() refuses others with a status of their own. */
#define OPT_BACKEND(p, names) OPT_TEXT(0, "backend", p, names, "what computes")
#define OPT_DTYPE(p, names)   OPT_TEXT(0, "dtype", p, names, "type of the numbers; auto: the faster here")
#define OPT_MEMORY(p)         OPT_BYTES(0, "memory", p, "memory to use at most; 0: nine tenths of what is free")
#define OPT_THREADS(p)        OPT_NUM('j', "threads", p, 0, 4096, "number of threads; 0: one per core")
/* names: SERVING_GPUS of profiler/score/serving.h */
#define OPT_GPU(p, names)                                                                                              \
    OPT_TEXT(0, "gpu", p, names, "figures of this GPU, computed from its data sheet, instead of measured ones")
#define OPT_SEED(p) OPT_NUM('s', "seed", p, 0, INT_MAX, "seed of random choices")
#define OPT_SHARD(p)                                                                                                   \
    {                                                                                                                  \
        OPT_SHARE, 0, "shard",                                                                                         \
            _Generic((p), struct shard *                                                                               \
                     : (p)),                                                                                           \
            "I/N", "take only the I-th of N equal shares of the rows", 0, 0                                            \
    }
#define OPT_TIERS(p)     OPT_TEXT('t', "tiers", p, "FILE", "tiers.json: capacity, bandwidth and latency of each tier")
#define OPT_ALPHA_HELP   "seconds of TTFT that a quality of 1 is worth"
#define OPT_DRY_RUN(p)   OPT_BOOL('n', "dry-run", p, "say what there is to do, and stop")
#define OPT_OUTPUT(p, a) OPT_WRITES('o', "output", p, a, "write the result there, each file whole or not at all")

/* Options every tool has, last in its table: --summary (cmd/summary.h), -v, -q. opt_parse() opens the log with them. */
#define OPT_COMMON(p)                                                                                                  \
    OPT_HEAD("Messages"),                                                                                              \
        OPT_WRITES(0, "summary", &(p)->summary, "FILE", "write what is said at the end there, as JSON"),               \
        OPT_TALLY('v', "verbose", &(p)->verbose, "say more"),                                                          \
        OPT_TALLY('q', "quiet", &(p)->quiet, "say only warnings and errors")

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
    const char *about;    // one paragraph, after the options
    const char *examples; // one command a line, indented by two blanks
    const struct opt *opts;
    const struct opt_common *common; // where OPT_COMMON put its counts
};

enum { OPT_RUN = -1 };

/* Returns OPT_RUN and sets *first to the index of the first operand in argv (options are moved in front of operands),
 * or the status main() should return: 0 after --help, --usage or --version, 2 on misuse, which was said on stderr.
 * Opens the log. Hidden: --print-options writes the table for tests, one line per option: letter or -, long name, type,
 * argument, default and help, separated by tabs; scripts/completion makes the shells' completions of it. */
int opt_parse(const struct tool *tool, int argc, char **argv, int *first);

/* What every main() ends with: closes stdout and turns a write that failed there (a full disk, a closed pipe) into
 * status 1, unless `status` already tells of a failure. */
int opt_finish(int status);

/* Splits a list at commas: calls each(arg, piece, n) for every piece, empty ones too; stops at the first non-zero
 * result and returns it. */
int opt_split(const char *list, int (*each)(void *arg, const char *piece, size_t n), void *arg);

/* The release that this program is of, "0.3.0", whatever commit it was built from. */
const char *opt_release(void);

#endif
