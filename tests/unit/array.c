/* Arrays that grow: what is in them stays, where they end, and that a failure leaves them as they were. */
#include "base/array.h"

#include <criterion/criterion.h>
#include <stdlib.h>

struct point {
    int x, y;
};

struct ints {
    int *at;
    int n, cap;
};

Test(array, grows_as_elements_come_and_keeps_them)
{
    struct ints a = { 0 };

    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(ARRAY_PUSH(&a, 3 * i), 0);
        cr_assert(a.n == i + 1 && a.cap >= a.n && a.cap <= 2 * (i > 16 ? i : 16), "%d of %d", a.n, a.cap);
    }
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(a.at[i], 3 * i);
    free(a.at);
}

Test(array, takes_structs_with_commas_in_them)
{
    struct {
        struct point *at;
        size_t n, cap;
    } a = { 0 };

    cr_assert_eq(ARRAY_PUSH(&a, (struct point){ 1, 2 }), 0);
    cr_assert(a.n == 1 && a.at[0].x == 1 && a.at[0].y == 2);
    free(a.at);
}

Test(array, is_grown_at_once_and_never_shrinks)
{
    struct ints a = { 0 };

    cr_assert_eq(ARRAY_GROW(&a, 100), 0);
    cr_assert(a.n == 0 && a.cap == 100);
    int *at = a.at;
    cr_assert_eq(ARRAY_GROW(&a, 99), 0);
    cr_assert_eq(ARRAY_GROW(&a, 100), 0);
    cr_assert(a.cap == 100 && a.at == at);
    cr_assert_eq(ARRAY_GROW(&a, 101), 0);
    cr_assert_eq(a.cap, 200);
    free(a.at);
}

Test(array, ends_at_its_limit)
{
    char *at = NULL;

    cr_assert_eq(array_grow(&at, 1, 1, 0, 40), 16);
    cr_assert_eq(array_grow(&at, 1, 17, 16, 40), 32);
    cr_assert_eq(array_grow(&at, 1, 33, 32, 40), 40, "not twice as much, but the limit");
    cr_assert_eq(array_grow(&at, 1, 40, 32, 40), 40);
    char *before = at;
    cr_assert_eq(array_grow(&at, 1, 41, 40, 40), 40);
    cr_assert_eq(at, before);
    free(at);
}

Test(array, of_ints_ends_at_int_max)
{
    struct ints a = { 0 };

    cr_assert_eq(ARRAY_PUSH(&a, 7), 0);
    struct ints before = a;
    cr_assert_eq(ARRAY_GROW(&a, (size_t)INT_MAX + 1), -1);
    cr_assert(a.at == before.at && a.n == 1 && a.cap == before.cap && a.at[0] == 7);
    free(a.at);
}

Test(array, stays_as_it_was_when_its_bytes_would_overflow)
{
    struct {
        double *at;
        size_t n, cap;
    } a = { 0 };

    cr_assert_eq(ARRAY_PUSH(&a, 0.5), 0);
    cr_assert_eq(ARRAY_GROW(&a, SIZE_MAX / sizeof(double) + 1), -1);
    cr_assert_eq(ARRAY_GROW(&a, SIZE_MAX / sizeof(double)), -1, "no machine has this much");
    cr_assert(a.n == 1 && a.cap == 16 && a.at[0] == 0.5);
    cr_assert_eq(ARRAY_PUSH(&a, 1.5), 0);
    cr_assert(a.n == 2 && a.at[1] == 1.5);
    free(a.at);
}
