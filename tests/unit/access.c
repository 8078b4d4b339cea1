/* Access logs and rules: what each row does to the contexts it names, and rows that are refused. */
#include "base/file.h"
#include "logs/access.h"
#include "formats/rules.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/access.XXXXXX";
static struct map ids;

static void set_up(void)
{
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    close(fd);
    cr_assert_eq(map_add(&ids, "a", 1, NULL), 0);
    cr_assert_eq(map_add(&ids, "b", 1, NULL), 1);
}

static void tear_down(void)
{
    unlink(path);
    map_release(&ids);
}

TestSuite(access, .init = set_up, .fini = tear_down);
TestSuite(rules, .init = set_up, .fini = tear_down);

static void write_rows(const char *text)
{
    struct err err;

    cr_assert_eq(file_write(path, text, strlen(text), &err), 0, "%s", err.msg);
}

Test(access, counts_add_up_and_unknown_contexts_are_counted)
{
    double frequency[2] = { 0, 0.5 };
    struct access_log log;
    struct err err;

    write_rows("{\"context\":\"a\"}\n{\"context\":\"a\",\"count\":40}\n{\"context\":\"c\",\"count\":7}\n{\"context\":"
               "\"a\",\"count\":0.25}\n"
               "{\"context\":\"b\",\"count\":0}\n");
    cr_assert_eq(access_read(&log, path, &ids, frequency, &err), 0, "%s", err.msg);
    cr_assert(frequency[0] == 41.25 && frequency[1] == 0.5);
    cr_assert(log.rows == 5 && log.unknown == 1);
}

Test(access, rows_that_are_refused)
{
    static const char *const row[][2] = {
        { "{\"context\":\"a\",\"count\":-1}", "line 1: field 'count' is negative" },
        { "{\"context\":\"c\",\"count\":-1}", "line 1: field 'count' is negative" },
        { "{\"context\":\"a\",\"count\":-0.001}", "line 1: field 'count' is negative" },
        { "{\"context\":\"a\",\"count\":1.001e15}", "line 1: field 'count' is above 1e15" },
        { "{\"context\":\"a\",\"count\":\"1\"}", "field 'count'" },
        { "{\"count\":1}", "field 'context' is missing" },
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        double frequency[2] = { 0 };
        struct access_log log;
        struct err err;
        write_rows(row[i][0]);
        cr_assert_eq(access_read(&log, path, &ids, frequency, &err), ERR_FORMAT, "%s", row[i][0]);
        cr_assert(strstr(err.msg, row[i][1]), "%s", err.msg);
    }
}

Test(rules, later_members_override_earlier_ones)
{
    struct rule rule[2] = { { .min_quality = 0.25 }, { .tier = "ssd" } };
    int64_t unknown;
    struct err err;

    write_rows("{\"context\":\"a\",\"tier\":\"dram\"}\n{\"context\":\"a\",\"min_quality\":0.5}\n"
               "{\"context\":\"b\",\"min_quality\":1}\n{\"context\":\"b\",\"min_quality\":0}\n{\"context\":\"c\"}\n");
    cr_assert_eq(rules_read(rule, path, &ids, &unknown, &err), 0, "%s", err.msg);
    cr_assert(rule[0].min_quality == 0.5 && rule[1].min_quality == 0);
    cr_assert_str_eq(rule[0].tier, "dram");
    cr_assert_str_eq(rule[1].tier, "ssd");
    cr_assert_eq(unknown, 1);
}

#define TIER_31 "a23456789b123456789c123456789d1"

Test(rules, bounds)
{
    static const struct {
        const char *row, *says; // NULL: it is taken
    } row[] = {
        { "{\"context\":\"a\",\"min_quality\":0}", NULL },
        { "{\"context\":\"a\",\"min_quality\":-1e-9}", "field 'min_quality' is not between 0 and 1" },
        { "{\"context\":\"a\",\"min_quality\":1}", NULL },
        { "{\"context\":\"a\",\"min_quality\":1.0000001}", "field 'min_quality' is not between 0 and 1" },
        { "{\"context\":\"a\",\"tier\":\"" TIER_31 "\"}", NULL },
        { "{\"context\":\"a\",\"tier\":\"" TIER_31 "2\"}", "field 'tier' is longer than 31 bytes" },
        { "{\"context\":\"c\",\"tier\":\"" TIER_31 "2\"}", "field 'tier' is longer than 31 bytes" },
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct rule rule[2] = { 0 };
        int64_t unknown;
        struct err err;
        write_rows(row[i].row);
        cr_assert_eq(rules_read(rule, path, &ids, &unknown, &err), row[i].says ? ERR_FORMAT : 0, "%s", row[i].row);
        cr_assert(!row[i].says || strstr(err.msg, row[i].says), "%s", err.msg);
    }
}
