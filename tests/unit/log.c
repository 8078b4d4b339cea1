/* What a tool says on stderr: on a terminal, and elsewhere. stderr is a file here, and EVP_TTY pretends. */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/utf8.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/evp-log-XXXXXX";

static void listen(const char *tty, enum log_level level)
{
    close(mkstemp(path));
    cr_assert(freopen(path, "w", stderr));
    setenv("EVP_TTY", tty, 1);
    log_open("evp-test", level);
}

/* What was said since listen(), until the next call. */
static char *heard(void)
{
    static struct buf text;
    struct err e;

    fflush(stderr);
    buf_clear(&text);
    cr_assert(!file_read(&text, path, 1 << 20, &e));
    unlink(path);
    return text.at;
}

Test(log, levels_and_prefixes)
{
    struct err e;

    listen("0", LOG_INFO);
    log_debug("not this");
    log_info("read %d contexts", 3);
    log_warn("odd");
    err_set(&e, ERR_FORMAT, "'x' is cut");
    cr_assert_eq(log_failure(&e), 3);
    cr_assert_str_eq(heard(), "evp-test: read 3 contexts\nevp-test: warning: odd\nevp-test: error: 'x' is cut\n");
}

Test(log, quiet_leaves_warnings)
{
    listen("1", LOG_WARN);
    progress_begin("contexts", 2);
    progress_add(2);
    progress_end();
    log_info("not this");
    log_warn("this");
    cr_assert_str_eq(heard(), "evp-test: warning: this\n");
}

Test(log, control_characters_stay_away_from_the_terminal)
{
    listen("1", LOG_INFO);
    log_error("entry '%s'", "a\033[2Jb\rc");
    cr_assert_str_eq(heard(), "evp-test: error: entry 'a?[2Jb?c'\n");
}

Test(log, long_sentences_are_whole)
{
    char long_name[3000];

    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    listen("0", LOG_INFO);
    log_info("%s", long_name);
    cr_assert_eq(strlen(heard()), strlen("evp-test: \n") + sizeof(long_name) - 1);
}

Test(log, the_caller_knows_how_long_the_rest_takes)
{
    listen("0", LOG_INFO);
    progress_begin("tokens", 4);
    progress_left(7200.5);
    usleep(10 * 1000);
    progress_add(1);
    progress_end();
    cr_assert(strstr(heard(), "1/4 tokens, ") != NULL);
    listen("0", LOG_INFO);
    progress_begin("tokens", 4);
    progress_left(7200.5);
    progress_end();
    char *said = heard();
    cr_assert(strstr(said, ", 2 h 00 min left"), "%s", said);
    listen("0", LOG_INFO);
    progress_begin("tokens", 4); // the next one is not bound to it
    usleep(10 * 1000);
    progress_add(2);
    progress_end();
    said = heard();
    cr_assert(!strstr(said, " h "), "%s", said);
}

Test(log, a_bar_on_a_terminal)
{
    listen("1", LOG_INFO);
    progress_begin("contexts", 4);
    usleep(110 * 1000); /* pictures are at least 0.1 s apart */
    progress_add(2);
    log_info("between");
    usleep(110 * 1000);
    progress_note("qasper/1");
    progress_add(2);
    progress_end();
    char *text = heard();
    cr_assert_eq(strncmp(text, "[############            ] 2/4 contexts, ", 41), 0, "%s", text);
    cr_assert(strstr(text, " left"), "%s", text);
    cr_assert(strstr(text, "\r\033[Kevp-test: between\n["), "a message takes the bar's place, then it comes back");
    cr_assert(strstr(text, "  qasper/1"), "%s", text);
    char *last = strstr(text, "\r\033[Kevp-test: 4/4 contexts, ");
    cr_assert(last && last[strlen(last) - 1] == '\n', "the last state stays: %s", text);
    cr_assert(!strchr(last, '[') || strchr(last, '[') == last + 2, "%s", last);
}

Test(log, a_bar_never_wraps)
{
    listen("1", LOG_INFO);
    progress_begin("contexts", 4);
    usleep(110 * 1000);
    progress_add(9); /* more than there should be */
    for (int i = 0; i < 2; i++) {
        usleep(110 * 1000);
        progress_note(
            "%s\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9%s",
            i ? "x" : "",
            "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
    }
    char *text = heard();
    for (char *line = strtok_r(text, "\r", &text); line; line = strtok_r(NULL, "\r", &text)) {
        line += strncmp(line, "\033[K", 3) == 0 ? 3 : 0;
        cr_assert_leq(strlen(line), 79, "%s", line);
        cr_assert(utf8_valid(line, strlen(line)), "%s", line);
        cr_assert_eq(strncmp(line, "[########################] 9/4", 30), 0, "%s", line);
    }
}

Test(log, plain_lines_elsewhere)
{
    listen("0", LOG_INFO);
    progress_begin("tokens", 0);
    usleep(110 * 1000);
    progress_add(70); /* lines are seconds apart: not yet */
    progress_end();
    char *text = heard();
    cr_assert_eq(strncmp(text, "evp-test: 70 tokens, ", 21), 0, "%s", text);
    cr_assert_eq(strchr(text, '\n'), text + strlen(text) - 1, "one line: %s", text);
    cr_assert(!strchr(text, '\r') && !strchr(text, '\033'));
}

Test(clock, the_time_of_day_can_be_given)
{
    static const char *const wrong[] = { "", "-1", "yesterday", "1e999", "5 " };

    setenv("SOURCE_DATE_EPOCH", "0", 1);
    cr_assert_eq(clock_utc(), 0);
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
    cr_assert_eq(clock_utc(), 1.7e9);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        setenv("SOURCE_DATE_EPOCH", wrong[i], 1);
        cr_assert_gt(clock_utc(), 1.7e9, "'%s'", wrong[i]);
    }
}

/* A thread that computes for a moment has run; nobody says that it waited longer than it exists. */
Test(clock, waiting_is_counted_where_linux_counts)
{
    struct clock_wait before = clock_wait();
    double start = clock_now();

    while (clock_now() < start + 0.05)
        ;
    struct clock_wait now = clock_wait();
    double both = now.ran + now.waited - before.ran - before.waited;
    cr_assert(now.ran >= before.ran && now.waited >= before.waited);
    cr_assert(both < clock_now() - start + 0.1, "%g", both);
    cr_assert(now.ran == 0 || both > 0);
    cr_assert_not(clock_is_busy((struct clock_wait){ now.ran - 1, now.waited }));
    cr_assert(now.ran == 0 || clock_is_busy((struct clock_wait){ now.ran, now.waited - 1 }));
}
