/* driver.c - runs the kernels' and the engine's tests in one process: driver [--list] PATTERN...
 *
 * PATTERN is a shell pattern of suite/name; * alone is all. DRIVER_WITHOUT, a pattern too, leaves tests out; with
 * DRIVER_TIMES each test's processor time is printed. --list prints names and runs nothing. A test that fails prints
 * "FAIL suite/name" and why, the next one runs unless DRIVER_STOP is set, and the status is 1. Tests run in the order
 * of their names. Where EVP_TEST_BACKEND leaves out what a test is about, the test skips it.
 */
#include <criterion/criterion.h>

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum verdict { PASSED, SKIPPED, FAILED, VERDICTS };

static struct driver_test *tests, *running;
static jmp_buf ended;

static int order(const struct driver_test *a, const struct driver_test *b)
{
    int by_suite = strcmp(a->suite, b->suite);

    return by_suite ? by_suite : strcmp(a->name, b->name);
}

void driver_add(struct driver_test *test)
{
    struct driver_test **at = &tests;

    while (*at && order(*at, test) < 0)
        at = &(*at)->next;
    test->next = *at;
    *at = test;
}

_Noreturn void driver_fail(const char *file, int line, const char *what, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "FAIL %s/%s: %s:%d: %s: ", running->suite, running->name, file, line, what);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    longjmp(ended, FAILED);
}

_Noreturn void driver_skip(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "skipped %s/%s: ", running->suite, running->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    longjmp(ended, SKIPPED);
}

static int is_wanted(const struct driver_test *test, char **patterns)
{
    const char *without = getenv("DRIVER_WITHOUT");
    char name[256];

    snprintf(name, sizeof(name), "%s/%s", test->suite, test->name);
    if (without && fnmatch(without, name, FNM_EXTMATCH) == 0)
        return 0;
    for (; *patterns; patterns++)
        if (fnmatch(*patterns, name, FNM_EXTMATCH) == 0)
            return 1;
    return 0;
}

static enum verdict run_test(void)
{
    clock_t begin = clock();

    switch (setjmp(ended)) {
    case SKIPPED: return SKIPPED;
    case FAILED: return FAILED;
    }
    running->run();
    if (getenv("DRIVER_TIMES"))
        fprintf(stderr, "%6.2f s %s/%s\n", (double)(clock() - begin) / CLOCKS_PER_SEC, running->suite, running->name);
    return PASSED;
}

int main(int argc, char **argv)
{
    int n[VERDICTS] = { 0 };
    int list = argc > 1 && strcmp(argv[1], "--list") == 0;

    for (running = tests; running && !(n[FAILED] && getenv("DRIVER_STOP")); running = running->next) {
        if (!is_wanted(running, argv + 1 + list))
            continue;
        if (list)
            printf("%s/%s\n", running->suite, running->name);
        else
            n[run_test()]++;
    }
    if (!list)
        printf("%d passed, %d failed, %d skipped\n", n[PASSED], n[FAILED], n[SKIPPED]);
    return !list && (n[FAILED] > 0 || n[PASSED] == 0);
}
