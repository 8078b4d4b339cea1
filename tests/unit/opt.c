/* The option table: what it takes, and how it refuses. */
#include "cmd/options.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    bool flag;
    int number, pick;
    uint64_t size;
    double real;
    const char *text;
    struct opt_list many;
    struct shard shard;
    struct opt_common common;
} cfg = { .number = 3, .size = 64 << 20, .pick = 1, .shard = { 1, 1 } };

static const struct opt opts[] = {
    OPT_HEAD("All kinds"),
    OPT_BOOL('f', "flag", &cfg.flag, "a flag"),
    OPT_NUM('n', "number", &cfg.number, 1, 9, "a number"),
    OPT_BYTES(0, "size", &cfg.size, "a size"),
    OPT_REAL('r', "real", &cfg.real, 0, 1, "a real"),
    OPT_TEXT('t', "text", &cfg.text, "WORD", "a text"),
    OPT_MANY('m', "many", &cfg.many, "WORD", "several"),
    OPT_PICK(0, "pick", &cfg.pick, "one|two|three", "a choice"),
    OPT_SHARD(&cfg.shard),
    OPT_COMMON(&cfg.common),
    OPT_DONE,
};

static const struct tool tool = {
    .name = "evp-test",
    .summary = "be tested",
    .operands = "FILE...",
    .min_operands = 1,
    .max_operands = 2,
    .about = "About.",
    .opts = opts,
    .common = &cfg.common,
};

enum { MAX_ARGS = 24 };

/* Splits a command line at blanks; misuse ends the process with status 2, as in a tool. */
static int parse(const char *line, char *argv[MAX_ARGS], int *first)
{
    static char copy[256];
    char *rest = copy;
    int argc = 0;

    cr_assert_lt(snprintf(copy, sizeof(copy), "%s", line), (int)sizeof(copy));
    for (char *word; argc < MAX_ARGS - 1 && (word = strtok_r(rest, " ", &rest));)
        argv[argc++] = word;
    argv[argc] = NULL;
    cr_assert(freopen("/dev/null", "w", stderr));
    return opt_parse(&tool, argc, argv, first);
}

Test(opt, takes_every_kind)
{
    char *argv[MAX_ARGS];
    int first;

    cr_assert_eq(
        parse("x a --number=7 --size 1.5G -r 0.25 b -t word -m 1 --many=2 --pick three --shard 2/3 -fvv", argv, &first),
        OPT_RUN);
    cr_assert(cfg.flag && cfg.number == 7 && cfg.size == 3ull << 29 && cfg.real == 0.25 && cfg.pick == 2);
    cr_assert_str_eq(cfg.text, "word");
    cr_assert(cfg.many.n == 2 && strcmp(cfg.many.at[1], "2") == 0);
    cr_assert_eq(cfg.common.verbose, 2);
    cr_assert(cfg.shard.i == 2 && cfg.shard.n == 3);
    cr_assert_str_eq(argv[first], "a");
    cr_assert_str_eq(argv[first + 1], "b");
}

Test(opt, takes_percentages_and_repeated_flags)
{
    char *argv[MAX_ARGS];
    int first;

    cr_assert_eq(parse("x a -r 12.5% --size=2GiB -f --flag -t --numbe", argv, &first), OPT_RUN);
    cr_assert(cfg.real == 0.125 && cfg.size == 2ull << 30 && cfg.flag);
    cr_assert_str_eq(cfg.text, "--numbe"); // a value, not a name
}

Test(opt, what_follows_two_dashes_is_an_operand)
{
    char *argv[MAX_ARGS];
    int first;

    cr_assert_eq(parse("x -f -- -n", argv, &first), OPT_RUN);
    cr_assert_str_eq(argv[first], "-n");
}

#define REFUSED(name, line)                                                                                            \
    Test(opt, name, .exit_code = 2)                                                                                    \
    {                                                                                                                  \
        char *argv[MAX_ARGS];                                                                                          \
        int first;                                                                                                     \
        exit(parse(line, argv, &first) == OPT_RUN ? 0 : 99);                                                           \
    }
REFUSED(refuses_an_unknown_option, "x a --nothing")
REFUSED(refuses_a_number_with_letters, "x a --number=3x")
REFUSED(refuses_a_number_below_its_bounds, "x a --number=0")
REFUSED(refuses_a_number_above_its_bounds, "x a --number=10")
REFUSED(refuses_a_number_that_overflows, "x a --number=99999999999999999999")
REFUSED(refuses_a_fraction_for_a_number, "x a --number=1.5")
REFUSED(refuses_a_size_with_another_unit, "x a --size=3Mbit")
REFUSED(refuses_a_share_above_all, "x a --real=101%")
REFUSED(refuses_a_shortened_name, "x a --numbe=3")
REFUSED(refuses_an_option_given_twice, "x a --number=3 -n 3")
REFUSED(refuses_a_text_given_twice, "x a -t a --text b")
REFUSED(refuses_a_negative_size, "x a --size=-1")
REFUSED(refuses_a_real_out_of_bounds, "x a --real=1.01")
REFUSED(refuses_nan, "x a --real=nan")
REFUSED(refuses_a_choice_that_is_none, "x a --pick=on")
REFUSED(refuses_an_empty_choice, "x a --pick=")
REFUSED(refuses_a_share_of_none, "x a --shard=0/1")
REFUSED(refuses_a_share_beyond_the_last, "x a --shard=4/3")
REFUSED(refuses_a_missing_value, "x a --text")
REFUSED(refuses_a_value_for_a_flag, "x a --flag=1")
REFUSED(refuses_too_few_operands, "x")
REFUSED(refuses_too_many_operands, "x a b c")
#undef REFUSED

static int join(void *arg, const char *piece, size_t n)
{
    char *out = arg;
    size_t at = strlen(out);

    snprintf(out + at, 64 - at, "<%.*s>", (int)n, piece);
    return n == 4 ? -7 : 0;
}

Test(opt, splits_at_commas_until_it_is_told_to_stop)
{
    char out[64] = "";

    cr_assert_eq(opt_split("a,,bc", join, out), 0);
    cr_assert_str_eq(out, "<a><><bc>");
    out[0] = '\0';
    cr_assert_eq(opt_split("a,stop,b", join, out), -7);
    cr_assert_str_eq(out, "<a><stop>");
}
