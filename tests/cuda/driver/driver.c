/* driver.c - runs the kernels' and the engine's tests in one process: driver PATTERN...
 *
 * PATTERN is a shell pattern of suite/name; * alone is all. DRIVER_WITHOUT, a pattern too, leaves tests out; with
 * DRIVER_TIMES each test's processor time is printed. The first test that fails ends the process with status 1,
 * after "FAIL suite/name" and why. Tests run in the order of their names. Where EVP_TEST_BACKEND leaves out what a test
 * is about, the test skips it.
 */
#include <criterion/criterion.h>

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct driver_test *tests, *running;
static jmp_buf skipped;

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
    exit(1);
}

_Noreturn void driver_skip(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "skipped %s/%s: ", running->suite, running->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    longjmp(skipped, 1);
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

int main(int argc, char **argv)
{
    int n_passed = 0, n_skipped = 0;

    (void)argc;
    for (running = tests; running; running = running->next) {
        if (!is_wanted(running, argv + 1))
            continue;
        clock_t begin = clock();
        if (setjmp(skipped)) {
            n_skipped++;
            continue;
        }
        running->run();
        n_passed++;
        if (getenv("DRIVER_TIMES"))
            fprintf(stderr, "%6.2f s %s/%s\n", (double)(clock() - begin) / CLOCKS_PER_SEC, running->suite,
                    running->name);
    }
    printf("%d passed, 0 failed, %d skipped\n", n_passed, n_skipped);
    return n_passed == 0;
}
