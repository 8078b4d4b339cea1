/* Opening a backend; its memory ops; what every op that has nothing to do must bear. */
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Test(backend, is_opened_by_name)
{
    struct err err = { 0 };

    struct backend *be = backend_open(&(struct backend_options){ 0 }, &err);
    cr_assert(be, "%s", err.msg);
    be->close(be);
    be = backend_open(&(struct backend_options){ .name = "cpu", .dtype = "f32", .n_threads = 0 }, &err);
    cr_assert(be, "%s", err.msg);
    cr_assert_str_eq(be->name, "cpu");
#if defined(__x86_64__)
    cr_assert_eq(strncmp(be->kind, "cpu-", 4), 0, "'%s'", be->kind);
#else
    cr_assert_str_eq(be->kind, "cpu"); // as docs/formats/table.md has it
#endif
    cr_assert_eq(be->dtype, DTYPE_F32);
    cr_assert_gt(be->pass_rows, 0);
    struct device_memory m = be->memory(be);
    cr_assert(m.free > 0 && m.free <= m.total);
    be->close(be);
    be = backend_open(&(struct backend_options){ .name = "reference", .dtype = "bf16", .n_threads = 1 }, &err);
    cr_assert(be && be->dtype == DTYPE_BF16);
    cr_assert_str_eq(be->kind, "reference");
    be->close(be);
    be = backend_open(&(struct backend_options){ .name = "auto", .dtype = "auto", .n_threads = 1 }, &err);
    cr_assert(be && (be->dtype == DTYPE_F32 || be->dtype == DTYPE_BF16));
    be->close(be);
}

Test(backend, refuses_what_it_does_not_know)
{
    static const char *const names[] = { "gpu", "tpu", "", "CPU" }, *const dtypes[] = { "f16", "", "F32", "fp32" };
    struct err err = { 0 };

    for (int i = 0; i < 4; i++) {
        cr_assert_null(
            backend_open(&(struct backend_options){ .name = names[i], .dtype = "f32", .n_threads = 0 }, &err));
        cr_assert(err.code == ERR_DEVICE && strstr(err.msg, "cpu|reference"), "%s", err.msg);
        cr_assert_null(
            backend_open(&(struct backend_options){ .name = "auto", .dtype = dtypes[i], .n_threads = 0 }, &err));
        cr_assert(err.code == ERR_USAGE && strstr(err.msg, "auto|f32|bf16"), "%s", err.msg);
    }
}

static void say_missing(const char *name, const char *why)
{
    fprintf(stderr, "kernels: '%s' is not tested: %s\n", name, why);
}

Test(backend, says_what_the_tests_leave_out)
{
    each_missing(say_missing);
}

/* Bytes there and back; rows copied; no bytes at all. */
static void check_memory(const struct pair *p)
{
    struct backend *be = p->got;
    struct err err = { 0 };
    char host[64], back[64] = { 0 };

    for (int i = 0; i < 64; i++)
        host[i] = (char)i;
    char *at = bytes_from(be, host, 64), *to = be->alloc(be, 64, &err);
    cr_assert(to && (uintptr_t)at % 64 == 0 && (uintptr_t)to % 64 == 0);
    memset(host, 0x55, sizeof(host)); // write has read it
    be->repeat(be, to, 16, 4, host, 16);
    be->copy(be, to + 3, at + 5, 7);
    be->repeat(be, to + 20, 10, 3, "xyz", 2);
    be->repeat(be, to, 1, 0, host, 64);
    be->copy(be, to, at, 0);
    be->write(be, to, host, 0);
    cr_assert_eq(be->read(be, back, to, 64, &err), 0);
    for (int i = 0; i < 64; i++) {
        bool pair = i >= 20 && i < 50 && i % 10 < 2;
        cr_assert_eq(back[i], i >= 3 && i < 10 ? i + 2 : pair ? "xy"[i % 10] : 0x55, "%s: byte %d", p->name, i);
    }
    be->free(be, at);
    be->free(be, to);
    be->free(be, NULL);
    be->weight_free(be, NULL);
}

Test(backend, memory)
{
    each_pair(check_memory);
}

/* Rows of every length, one byte too, at addresses that only this length puts out of line. */
static void check_repeated(const struct pair *p)
{
    enum { LONGEST = 40, ROWS = 3 };
    struct backend *be = p->got;
    char row[LONGEST], back[ROWS * LONGEST];
    struct err err = { 0 };

    for (int i = 0; i < LONGEST; i++)
        row[i] = (char)(i + 1);
    char *to = be->alloc(be, sizeof(back), &err);
    for (size_t n = 1; n <= LONGEST; n++) {
        be->repeat(be, to, n, ROWS, row, n);
        cr_assert_eq(be->read(be, back, to, ROWS * n, &err), 0);
        for (size_t i = 0; i < ROWS * n; i++)
            cr_assert_eq(back[i], row[i % n], "%s: byte %zu of rows of %zu", p->name, i, n);
    }
    be->free(be, to);
}

Test(backend, repeats_rows_of_any_length)
{
    each_pair(check_repeated);
}

/* Reads n bytes at once; byte i is i / piece + 1. */
static void check_read(struct backend *be, const char *at, char *host, size_t n, size_t piece)
{
    struct err err = { 0 };

    memset(host, 0, n + 1);
    cr_assert_eq(be->read(be, host, at, n, &err), 0, "%s", err.msg);
    for (size_t i = 0; i < n; i += i + 997 < n ? 997 : 1)
        cr_assert_eq(host[i], (char)(i / piece + 1), "%s: byte %zu of %zu", be->name, i, n);
    cr_assert_eq(host[n], 0, "%s: byte %zu was not to be read", be->name, n);
}

/* More bytes written one after the other, and read at once, than a backend has on their way at a time; the host's
 * memory is used again at once. */
static void check_much(const struct pair *p)
{
    enum { PIECE = 3 << 20, PIECES = 9, ALL = PIECE * PIECES };
    static const size_t reads[] = { 1, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 8 << 20, ALL - 5, ALL };
    struct backend *be = p->got;
    struct err err = { 0 };
    char *host = malloc(ALL + 1), *at = be->alloc(be, ALL, &err);

    cr_assert(at && host, "%s", err.msg);
    for (int i = 0; i < PIECES; i++) {
        memset(host, i + 1, PIECE);
        be->write(be, at + (size_t)i * PIECE, host, PIECE);
    }
    for (int i = 0; i < PIECES; i++) {
        cr_assert_eq(be->read(be, host, at + (size_t)i * PIECE, PIECE, &err), 0);
        for (size_t j = 0; j < PIECE; j += 997)
            cr_assert_eq(host[j], i + 1, "%s: byte %zu of piece %d", p->name, j, i);
    }
    for (size_t i = 0; i < sizeof(reads) / sizeof(*reads); i++)
        check_read(be, at, host, reads[i], PIECE);
    be->free(be, at);
    free(host);
}

Test(backend, much_is_written_and_read_in_order)
{
    each_pair(check_much);
}

/* An allocation of nothing is an address all the same, and one of its own. */
static void check_nothing(const struct pair *p)
{
    struct backend *be = p->got;
    struct err err = { 0 };
    void *a = be->alloc(be, 0, &err), *b = be->alloc(be, 0, &err);

    cr_assert(a && b && a != b, "%s", p->name);
    be->free(be, a);
    be->free(be, b);
    cr_assert_null(be->alloc(be, SIZE_MAX / 2, &err));
    cr_assert_eq(err.code, ERR_NOMEM, "%s", p->name);
    must_sync(be); // an alloc that fails says so itself
}

Test(backend, alloc_of_nothing_is_an_address)
{
    each_pair(check_nothing);
}

static void check_clock(const struct pair *p)
{
    struct backend *be = p->got;
    double first = be->clock(be), second = be->clock(be);

    cr_assert_leq(first, second, "%s", p->name);
}

Test(backend, clock_goes_forward)
{
    each_pair(check_clock);
}

/* More spans than a backend keeps; the copies between them do not count. The other hand has one. */
static void check_stopwatch(const struct pair *p)
{
    enum { N = 1 << 16, SPANS = 150 };
    struct backend *be = p->got;
    float *from = numbers(be, "from", N), *to = space(be, N);

    cr_assert_eq(be->watched(be, 0), 0, "%s", p->name);
    double begin = be->clock(be);
    for (int i = 0; i < SPANS; i++) {
        be->watch_start(be);
        be->copy(be, to, from, N * sizeof(*to));
        be->watch_stop(be, 0);
        for (int j = 0; j < 9; j++)
            be->copy(be, to, from, N * sizeof(*to));
    }
    cr_assert_eq(be->watched(be, 1), 0, "%s", p->name);
    double watched = be->watched(be, 0), all = be->clock(be) - begin;
    cr_assert(watched > 0 && watched < 0.7 * all, "%s: %g of %g s", p->name, watched, all);
    be->watch_start(be);
    be->copy(be, to, from, N * sizeof(*to));
    be->watch_stop(be, 1);
    cr_assert_eq(be->watched(be, 0), 0, "%s", p->name);
    cr_assert_gt(be->watched(be, 1), 0, "%s", p->name);
    cr_assert_eq(be->watched(be, 1), 0, "%s", p->name);
    must_sync(be);
    be->free(be, from);
    be->free(be, to);
}

Test(backend, stopwatch_adds_up_spans)
{
    each_pair(check_stopwatch);
}
