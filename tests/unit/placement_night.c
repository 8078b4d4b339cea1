/* Files are made with mkstemp() once per test and written as the test goes; every step asserts that it succeeds. */
#include "tests/unit/placement_night.h"

#include "base/file.h"

#include <criterion/criterion.h>
#include <unistd.h>

char tiers_path[] = "/tmp/evp-placement-XXXXXX", extra_path[] = "/tmp/evp-placement-XXXXXX";
char manifest_path[] = "/tmp/evp-placement-XXXXXX", next_path[] = "/tmp/evp-placement-XXXXXX";

void night_write(const char *path, const char *text)
{
    struct err err;

    cr_assert_eq(file_write(path, text, strlen(text), &err), 0, "%s", err.msg);
}

void night_tiers(int64_t dram, int64_t ssd)
{
    struct buf text = { 0 };

    buf_printf(&text,
               "{\"evp\":\"tiers\",\"version\":1,\"tiers\":["
               "{\"name\":\"dram\",\"kind\":\"dram\",\"uri\":\"/dev/shm/x\",\"capacity_bytes\":%lld,"
               "\"read_bytes_per_s\":1e9,\"write_bytes_per_s\":1e9,\"latency_s\":0.001},"
               "{\"name\":\"ssd\",\"kind\":\"file\",\"uri\":\"/tmp/x\",\"capacity_bytes\":%lld,"
               "\"read_bytes_per_s\":1e8,\"write_bytes_per_s\":1e8,\"latency_s\":0.01}]}",
               (long long)dram, (long long)ssd);
    night_write(tiers_path, buf_str(&text));
    buf_release(&text);
}

void night_open(void)
{
    close(mkstemp(tiers_path));
    close(mkstemp(extra_path));
    close(mkstemp(manifest_path));
    close(mkstemp(next_path));
    night_tiers(DRAM_FREE, SSD_FREE);
}

void night_close(void)
{
    unlink(tiers_path);
    unlink(extra_path);
    unlink(manifest_path);
    unlink(next_path);
}

struct placement_files night_files(void)
{
    return (struct placement_files){ .table = "tests/data/table.h5", .tiers = tiers_path };
}

void night_read(struct placement_input *in, const struct placement_files *f)
{
    struct err err;

    *in = (struct placement_input){ .alpha = 2, .max_move = INT64_MAX };
    cr_assert_eq(placement_input_read(in, f, &err), 0, "%s", err.msg);
}

void night_read_rules(struct placement_input *in, const char *rules)
{
    struct placement_files f = night_files();

    night_write(extra_path, rules);
    f.rules = extra_path;
    night_read(in, &f);
}

void night_solve(struct placement_plan *p, struct placement_input *in)
{
    struct err err;

    cr_assert_eq(placement_solve(p, in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err), 0, "%s", err.msg);
}

void night_manifest(const struct placement_plan *p, const char *path)
{
    struct manifest m;
    struct err err;

    cr_assert_eq(placement_manifest(&m, p, &err), 0, "%s", err.msg);
    cr_assert_eq(placement_write(&m, p, path, (struct rows_made){ .tool = "test" }, &err), 0, "%s", err.msg);
    manifest_release(&m);
}
