/* host_memory.c - how much memory this process may still take, from /proc and the files of its control groups.
 *
 * A limit is a pair of numbers: allowed and used. Over all limits, total is the least allowed and free the least left.
 * Each file is lines of a name and a number, or a single number.
 */
#include "kernels/host.h"

#include "base/buf.h"
#include "base/file.h"

#include <string.h>

static const uint64_t NONE = UINT64_MAX; // for "max", "unlimited" and everything else that is not a number

enum { MAX_TEXT = 1 << 20 }; // the longest file is memory.stat: some kilobytes

/* The contents of root/folder/name; empty when the file cannot be read. */
static struct buf text_of(const char *root, const char *folder, const char *name)
{
    struct buf path = { 0 }, text = { 0 };
    struct err err;

    buf_printf(&path, "%s/%s/%s", root, folder, name);
    if (buf_failed(&path) || file_read(&text, buf_str(&path), MAX_TEXT, &err))
        buf_clear(&text);
    buf_release(&path);
    return text;
}

/* The number at the start of s, after blanks. */
static uint64_t number_at(const char *s)
{
    uint64_t v = 0;

    s += strspn(s, " \t");
    size_t n = strspn(s, "0123456789");
    if (n == 0 || !strchr(" \t\n", s[n])) // strchr finds '\0' too
        return NONE;
    for (size_t i = 0; i < n; i++) {
        uint64_t digit = (uint64_t)(s[i] - '0');
        if (v > (NONE - digit) / 10)
            return NONE;
        v = 10 * v + digit;
    }
    return v;
}

/* The number after `name` on the first line that begins with `name` and a blank or ':'. */
static uint64_t number_of(const struct buf *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *line = buf_str(text); line; line = strchr(line, '\n'), line += line != NULL)
        if (strncmp(line, name, n) == 0 && line[n] && strchr(" \t:", line[n]))
            return number_at(line + n + 1);
    return NONE;
}

static uint64_t bytes_of(uint64_t kib)
{
    return kib > NONE >> 10 ? NONE : kib << 10;
}

static void take_limit(struct device_memory *m, uint64_t allowed, uint64_t used)
{
    if (allowed == NONE)
        return;
    if (used == NONE)
        used = 0;
    uint64_t left = used < allowed ? allowed - used : 0;
    if (allowed < m->total)
        m->total = allowed;
    if (left < m->free)
        m->free = left;
}

/* ---- control groups ----------------------------------------------------- */

/* The files of one version. A group's used memory includes file pages not touched for long, which the kernel reclaims
 * first: `inactive` is their line in memory.stat. */
struct group_files {
    const char *mount, *limit, *used, *inactive;
};
static const struct group_files version_1 = { "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                              "total_inactive_file" },
                                version_2 = { "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file" };

static uint64_t only_number(const char *root, const char *folder, const char *name)
{
    struct buf text = text_of(root, folder, name);
    uint64_t v = number_at(buf_str(&text));

    buf_release(&text);
    return v;
}

static void take_group(struct device_memory *m, const char *root, const char *folder, const struct group_files *files)
{
    uint64_t allowed = only_number(root, folder, files->limit), used = only_number(root, folder, files->used);

    if (allowed != NONE && used != NONE) {
        struct buf stat = text_of(root, folder, "memory.stat");
        uint64_t inactive = number_of(&stat, files->inactive);
        if (inactive != NONE)
            used -= inactive < used ? inactive : used;
        buf_release(&stat);
    }
    take_limit(m, allowed, used);
}

/* The limits of a group and of all groups above it. A container may see its group's path on the host, but only its own
 * group's files, as the root: the missing groups in between set no limit. */
static void take_groups(struct device_memory *m, const char *root, const char *path, const struct group_files *files)
{
    struct buf folder = { 0 };
    size_t top = strlen(files->mount);

    buf_printf(&folder, "%s%.*s", files->mount, (int)strcspn(path, "\n"), path);
    while (!buf_failed(&folder)) {
        take_group(m, root, buf_str(&folder), files);
        if (folder.n <= top)
            break;
        while (folder.n > top && folder.at[--folder.n] != '/')
            ;
        folder.at[folder.n] = '\0';
    }
    buf_release(&folder);
}

/* Is "memory" one of the controllers "a,b,c"? */
static bool has_memory(const char *controllers, size_t n)
{
    static const char name[] = "memory";
    enum { LENGTH = sizeof(name) - 1 };

    for (size_t at = 0; at < n; at += strcspn(controllers + at, ",:") + 1)
        if (strcspn(controllers + at, ",:") == LENGTH && memcmp(controllers + at, name, LENGTH) == 0)
            return true;
    return false;
}

/* Lines of /proc/self/cgroup: "0::PATH" for version 2, "N:CONTROLLERS:PATH" for version 1. */
static void take_all_groups(struct device_memory *m, const char *root)
{
    struct buf groups = text_of(root, "proc/self", "cgroup");

    for (const char *line = buf_str(&groups); line; line = strchr(line, '\n'), line += line != NULL) {
        const char *controllers = line + strcspn(line, ":\n");
        if (*controllers++ != ':')
            continue;
        size_t n = strcspn(controllers, ":\n");
        if (controllers[n] != ':' || controllers[n + 1] != '/')
            continue;
        if (n == 0)
            take_groups(m, root, controllers + n + 1, &version_2);
        else if (has_memory(controllers, n))
            take_groups(m, root, controllers + n + 1, &version_1);
    }
    buf_release(&groups);
}

/* ---- all limits --------------------------------------------------------- */

struct device_memory host_memory(const char *root)
{
    struct buf info = text_of(root, "proc", "meminfo"), limits = text_of(root, "proc/self", "limits"),
               status = text_of(root, "proc/self", "status");
    struct device_memory m = { 0 };
    uint64_t total = bytes_of(number_of(&info, "MemTotal")), available = bytes_of(number_of(&info, "MemAvailable"));

    if (total != NONE) {
        m = (struct device_memory){ total, available < total ? available : total };
        take_limit(&m, number_of(&limits, "Max address space"), bytes_of(number_of(&status, "VmSize")));
        take_limit(&m, number_of(&limits, "Max data size"), bytes_of(number_of(&status, "VmData")));
        take_all_groups(&m, root);
    }
    buf_release(&info);
    buf_release(&limits);
    buf_release(&status);
    return m;
}
