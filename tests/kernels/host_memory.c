/* What this process may still take, from made-up files of /proc and of control groups. */
#include "base/file.h"
#include "kernels/host.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char root[64];

static void set(const char *path, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes a file below the root; the folders that it is in are made. */
static void set(const char *path, const char *fmt, ...)
{
    struct err err = { 0 };
    struct buf full = { 0 };
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    buf_printf(&full, "%s/%s", root, path);
    char *slash = strrchr(full.at, '/');
    *slash = '\0';
    cr_assert_eq(file_mkdir(full.at, &err), 0, "%s", err.msg);
    *slash = '/';
    cr_assert_eq(file_write(full.at, text, strlen(text), &err), 0, "%s", err.msg);
    buf_release(&full);
}

static void make_root(void)
{
    snprintf(root, sizeof(root), "/tmp/evp-host-XXXXXX");
    cr_assert(mkdtemp(root));
    set("proc/meminfo", "MemTotal:       1000 kB\nMemFree:  5 kB\nMemAvailable:    800 kB\n");
}

static void remove_root(void)
{
    char command[96];
    snprintf(command, sizeof(command), "rm -r %s", root);
    cr_assert_eq(system(command), 0);
}

static void expect(size_t total, size_t free_bytes)
{
    struct device_memory m = host_memory(root);
    cr_assert(m.total == total && m.free == free_bytes, "%zu of %zu, not %zu of %zu", m.free, m.total, free_bytes,
              total);
}

TestSuite(host_memory, .init = make_root, .fini = remove_root);

Test(host_memory, without_limits_it_is_the_kernels_word)
{
    expect(1000 << 10, 800 << 10);
    set("proc/meminfo", "MemTotal: 1000 kB\n");
    expect(1000 << 10, 1000 << 10);
    set("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 1001 kB\n"); // never more than there is
    expect(1000 << 10, 1000 << 10);
    set("proc/meminfo", "MemTotal: 36028797018963968 kB\n"); // beyond 2^64 bytes
    expect(0, 0);
    set("proc/meminfo", "MemAvailable: 10 kB\n");
    expect(0, 0);
    set("proc/meminfo", "%s", "");
    expect(0, 0);
}

Test(host_memory, of_a_group_is_its_limit_less_what_it_uses)
{
    set("proc/self/cgroup", "0::/job\n");
    set("sys/fs/cgroup/job/memory.max", "500000\n");
    expect(500000, 500000); // nothing says what is used
    set("sys/fs/cgroup/job/memory.current", "200000\n");
    expect(500000, 300000);
    set("sys/fs/cgroup/job/memory.stat", "anon 5\ninactive_file 50000\nactive_file 7\n");
    expect(500000, 350000);
    set("sys/fs/cgroup/job/memory.stat", "total_inactive_file 50000\ninactive_filex 9\n"); // other lines
    expect(500000, 300000);
    set("sys/fs/cgroup/job/memory.stat", "inactive_file 900000\n"); // more than is used
    expect(500000, 500000);
    set("sys/fs/cgroup/job/memory.stat", "%s", "");
    set("sys/fs/cgroup/job/memory.current", "499999\n");
    expect(500000, 1);
    set("sys/fs/cgroup/job/memory.current", "500000\n");
    expect(500000, 0);
    set("sys/fs/cgroup/job/memory.current", "500001\n");
    expect(500000, 0);
}

Test(host_memory, has_no_limit_where_a_file_says_none)
{
    static const char *const none[] = { "max\n",
                                        "9223372036854771712\n",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "99999999999999999999999999999999\n",
                                        "",
                                        "\n",
                                        "-5\n",
                                        "0x10\n",
                                        "12a\n",
                                        "1.5\n" };

    set("proc/self/cgroup", "0::/job\n");
    set("sys/fs/cgroup/job/memory.current", "200000\n");
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        set("sys/fs/cgroup/job/memory.max", "%s", none[i]);
        expect(1000 << 10, 800 << 10);
    }
    set("sys/fs/cgroup/job/memory.max", "0");
    expect(0, 0);
    set("sys/fs/cgroup/job/memory.max", " 7 \n");
    expect(7, 0);
}

Test(host_memory, of_nested_groups_is_the_smallest)
{
    set("proc/self/cgroup", "0::/a/b/c\n");
    set("sys/fs/cgroup/a/b/c/memory.max", "max\n");
    set("sys/fs/cgroup/a/b/memory.max", "700000\n");
    set("sys/fs/cgroup/a/b/memory.current", "100000\n");
    expect(700000, 600000);
    set("sys/fs/cgroup/a/memory.max", "800000\n");
    set("sys/fs/cgroup/a/memory.current", "790000\n"); // by others
    expect(700000, 10000);
    set("sys/fs/cgroup/memory.max", "5000\n"); // a container whose own group is the root
    expect(5000, 5000);
    set("proc/self/cgroup", "0::/\n");
    expect(5000, 5000);
    set("proc/self/cgroup", "0::/somewhere/on/the/host\n");
    expect(5000, 5000);
}

Test(host_memory, of_version_1_is_in_files_of_other_names)
{
    set("proc/self/cgroup", "9:cpu,cpuacct:/x\n4:hugetlb,memory,pids:/job/step\n2:memoryx:/y\n0::/\n");
    set("sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", "9223372036854771712\n");
    set("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "400000\n");
    set("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "300000\n");
    set("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 20000\n");
    set("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1\n");
    set("sys/fs/cgroup/memory/y/memory.limit_in_bytes", "1\n");
    expect(400000, 120000);
}

Test(host_memory, malformed_groups_set_no_limit)
{
    static const char *const lines[] = { "",    "0", "0:", "0::", "0::job\n", ":::\n", "memory\n", "0:memory\n/job\n",
                                         "\n\n" };

    set("sys/fs/cgroup/job/memory.max", "5\n");
    set("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5\n");
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        set("proc/self/cgroup", "%s", lines[i]);
        expect(1000 << 10, 800 << 10);
    }
    set("proc/self/cgroup", "\nx\n0::/job"); // without a line's end
    expect(5, 5);
}

Test(host_memory, counts_the_limits_of_the_process)
{
    set("proc/self/status", "VmPeak:\t 900 kB\nVmSize:\t 100 kB\nVmData:\t 10 kB\n");
    set("proc/self/limits", "Limit      Soft Limit   Hard Limit  Units\n"
                            "Max data size             unlimited            unlimited            bytes     \n"
                            "Max address space         unlimited            unlimited            bytes     \n");
    expect(1000 << 10, 800 << 10);
    set("proc/self/limits", "Max data size             unlimited            unlimited            bytes     \n"
                            "Max address space         204800               unlimited            bytes     \n");
    expect(200 << 10, 100 << 10);
    set("proc/self/limits", "Max data size             20480                204800               bytes     \n"
                            "Max address space         204800               unlimited            bytes     \n");
    expect(20 << 10, 10 << 10);
}

Test(host_memory, of_this_machine)
{
    struct device_memory m = host_memory("");
    cr_assert(m.total > 0 && m.free > 0 && m.free <= m.total, "%zu of %zu", m.free, m.total);
}
