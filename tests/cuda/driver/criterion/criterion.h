/* criterion.h - as much of Criterion as the kernels' and the engine's tests use, without a process per test.
 *
 * The thread and address sanitizers do not bear Criterion's own processes. Found in place of the real one by the tests
 * that tests/cuda/rules.mk compiles; tests/cuda/driver/driver.c runs them. Options of a test are not looked at.
 */
#ifndef EVP_DRIVER_CRITERION_H
#define EVP_DRIVER_CRITERION_H

#include <math.h>
#include <string.h>

struct driver_test {
    const char *suite, *name;
    void (*run)(void);
    struct driver_test *next;
};

void driver_add(struct driver_test *test);
_Noreturn void driver_fail(const char *file, int line, const char *what, const char *format, ...);
_Noreturn void driver_skip(const char *format, ...);

#define Test(suite_, name_, ...)                                                                                       \
    static void suite_##_##name_##_test(void);                                                                         \
    static struct driver_test suite_##_##name_##_entry = { #suite_, #name_, suite_##_##name_##_test, 0 };              \
    __attribute__((constructor)) static void suite_##_##name_##_add(void)                                              \
    {                                                                                                                  \
        driver_add(&suite_##_##name_##_entry);                                                                         \
    }                                                                                                                  \
    static void suite_##_##name_##_test(void)

#define cr_assert(holds, ...)                                                                                          \
    do {                                                                                                               \
        if (!(holds))                                                                                                  \
            driver_fail(__FILE__, __LINE__, #holds, "" __VA_ARGS__);                                                   \
    } while (0)
#define cr_assert_fail(...)                driver_fail(__FILE__, __LINE__, "it fails", "" __VA_ARGS__)
#define cr_assert_eq(a, b, ...)            cr_assert((a) == (b), ##__VA_ARGS__)
#define cr_assert_neq(a, b, ...)           cr_assert((a) != (b), ##__VA_ARGS__)
#define cr_assert_lt(a, b, ...)            cr_assert((a) < (b), ##__VA_ARGS__)
#define cr_assert_leq(a, b, ...)           cr_assert((a) <= (b), ##__VA_ARGS__)
#define cr_assert_gt(a, b, ...)            cr_assert((a) > (b), ##__VA_ARGS__)
#define cr_assert_geq(a, b, ...)           cr_assert((a) >= (b), ##__VA_ARGS__)
#define cr_assert_null(a, ...)             cr_assert((a) == NULL, ##__VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)        cr_assert(strcmp((a), (b)) == 0, ##__VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...)     cr_assert(memcmp((a), (b), (n)) == 0, ##__VA_ARGS__)
#define cr_assert_float_eq(a, b, far, ...) cr_assert(fabs((double)(a) - (double)(b)) <= (far), ##__VA_ARGS__)
#define cr_skip(...)                       driver_skip(__VA_ARGS__)
#define cr_skip_test(...)                  driver_skip("" __VA_ARGS__)

#endif
