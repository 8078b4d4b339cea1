/* Files that appear whole or not at all, and buffers. */
#include "base/buf.h"
#include "base/file.h"
#include "base/parallel.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char dir[] = "/tmp/evp-file-XXXXXX";

static char *in_dir(const char *name)
{
    if (strchr(dir, 'X') && !file_is_dir(dir))
        cr_assert(mkdtemp(dir));
    return file_join(dir, name);
}

static int n_files(void)
{
    DIR *d = opendir(dir);
    int n = 0;

    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void check_content(const char *path, const char *want)
{
    struct buf text = { 0 };
    struct err e;

    cr_assert(!file_read(&text, path, 1 << 20, &e), "%s", e.msg);
    cr_assert_str_eq(buf_str(&text), want);
    buf_release(&text);
}

static void clean_up(void)
{
    DIR *d = opendir(dir);

    for (struct dirent *e; d && (e = readdir(d));) {
        char *path = file_join(dir, e->d_name);
        if (e->d_name[0] != '.' && unlink(path))
            rmdir(path);
        free(path);
    }
    if (d)
        closedir(d);
    rmdir(dir);
}

Test(file, appears_at_its_commit, .fini = clean_up)
{
    char *path = in_dir("a");
    struct file_out out;
    struct err e;

    cr_assert(!file_write(path, "old", 3, &e));
    cr_assert(!file_create(&out, path, &e));
    fputs("new", out.f);
    fflush(out.f);
    check_content(path, "old");
    cr_assert(!file_commit(&out, &e), "%s", e.msg);
    check_content(path, "new");
    cr_assert_eq(n_files(), 1);
    struct stat st;
    mode_t mask = umask(0);
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(st.st_mode & 0777, 0666 & ~mask, "as any other program's files");
    free(path);
}

Test(file, given_up_leaves_the_old_one, .fini = clean_up)
{
    char *path = in_dir("a");
    struct file_out out, none = { 0 };
    struct err e;

    cr_assert(!file_write(path, "old", 3, &e));
    cr_assert(!file_create(&out, path, &e));
    fputs("new", out.f);
    file_abort(&out);
    file_abort(&none);
    check_content(path, "old");
    cr_assert_eq(n_files(), 1);
    free(path);
}

/* A limit on the size of files stands for a full disk: the write fails in the same place. */
Test(file, a_write_that_fails_leaves_the_old_one, .fini = clean_up)
{
    char *path = in_dir("a"), *big = calloc(1, 1 << 20);
    struct rlimit limit = { .rlim_cur = 1 << 16, .rlim_max = RLIM_INFINITY };
    struct err e;

    cr_assert(!file_write(path, "old", 3, &e));
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int code = file_write(path, big, 1 << 20, &e);
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    cr_assert_eq(code, ERR_IO);
    cr_assert_eq(strncmp(e.msg, "cannot write '", 14), 0, "%s", e.msg);
    cr_assert(strstr(e.msg, "File too large"), "%s", e.msg);
    check_content(path, "old");
    cr_assert_eq(n_files(), 1, "no temporary file stays");
    free(path);
    free(big);
}

Test(file, a_device_is_written_to_and_not_replaced, .fini = clean_up)
{
    char *pipe_path = in_dir("pipe"), got[4] = "";
    struct stat st;
    struct err e;

    cr_assert_eq(mkfifo(pipe_path, 0600), 0);
    int reader = open(pipe_path, O_RDONLY | O_NONBLOCK);
    cr_assert(!file_write(pipe_path, "new", 3, &e), "%s", e.msg);
    cr_assert_eq(read(reader, got, 3), 3);
    cr_assert_str_eq(got, "new");
    close(reader);
    cr_assert(stat(pipe_path, &st) == 0 && S_ISFIFO(st.st_mode));
    cr_assert_eq(n_files(), 1);
    cr_assert_eq(file_write("/dev/full", "new", 3, &e), ERR_IO);
    cr_assert_str_eq(e.msg, "cannot write '/dev/full': No space left on device");
    struct file_out out;
    cr_assert(!file_create(&out, "/dev/full", &e));
    file_abort(&out);
    cr_assert(stat("/dev/full", &st) == 0 && S_ISCHR(st.st_mode));
    free(pipe_path);
}

Test(file, cannot_be_made_where_there_is_no_folder, .fini = clean_up)
{
    char *path = in_dir("no/such/folder");
    struct file_out out;
    struct err e;

    cr_assert_eq(file_create(&out, path, &e), ERR_IO);
    cr_assert(strstr(e.msg, "No such file or directory"), "%s", e.msg);
    free(path);
}

Test(file, reading_has_a_limit, .fini = clean_up)
{
    char *path = in_dir("a");
    struct buf text = { 0 };
    struct err e;

    buf_adds(&text, "before ");
    cr_assert(!file_write(path, "12345", 5, &e));
    cr_assert(!file_read(&text, path, 5, &e));
    cr_assert_str_eq(text.at, "before 12345");
    cr_assert_eq(file_read(&text, path, 4, &e), ERR_FORMAT);
    cr_assert_eq(file_read(&text, dir, 4, &e), ERR_IO);
    buf_release(&text);
    free(path);
}

Test(file, is_mapped, .fini = clean_up)
{
    char *path = in_dir("a");
    struct file_map map;
    struct err e;

    cr_assert(!file_write(path, "12345", 5, &e));
    cr_assert(!file_map(&map, path, &e));
    file_map_forget(&map);
    cr_assert(map.n == 5 && memcmp(map.at, "12345", 5) == 0, "small ones are read");
    file_unmap(&map);
    char *large = calloc(1, 1 << 20);
    large[(1 << 20) - 1] = 'x';
    cr_assert(!file_write(path, large, 1 << 20, &e));
    cr_assert(!file_map(&map, path, &e));
    file_map_forget(&map);
    cr_assert(map.n == 1 << 20 && memcmp(map.at, large, 1 << 20) == 0);
    file_unmap(&map);
    free(large);
    cr_assert(!file_write(path, "", 0, &e));
    cr_assert(!file_map(&map, path, &e));
    cr_assert(map.n == 0 && !map.at);
    file_unmap(&map);
    cr_assert_eq(file_map(&map, dir, &e), ERR_IO);
    free(path);
}

static void touch(void *arg, int i)
{
    const struct file_map *map = arg;
    static atomic_int sum;

    sum += ((const volatile char *)map->at)[map->n - 1 - (size_t)i];
}

/* Cuts a mapped file, and reads what it had with several threads; what they say goes to fd. */
static void read_what_was_cut(const char *path, int fd)
{
    struct file_map map;
    struct err e;

    dup2(fd, STDERR_FILENO);
    file_map_guard();
    if (file_map(&map, path, &e) || truncate(path, 10))
        _exit(100);
    parallel_do(4, 64, touch, &map);
    _exit(101);
}

Test(file, that_is_cut_while_it_is_mapped_ends_the_process_with_one_sentence, .fini = clean_up)
{
    char *path = in_dir("model"), *bytes = calloc(1, 1 << 20), said[8192], want[8192];
    struct err e;
    int status, ends[2];

    for (int round = 0; round < 20; round++) {
        cr_assert(!file_write(path, bytes, 1 << 20, &e) && !pipe(ends));
        pid_t child = fork();
        if (child == 0)
            read_what_was_cut(path, ends[1]);
        close(ends[1]);
        ssize_t n = read(ends[0], said, sizeof(said) - 1);
        said[n] = '\0';
        snprintf(want, sizeof(want), "%s: error: '%s' became shorter while it was read, or its disk failed\n",
                 program_invocation_short_name, path);
        cr_assert(n > 0);
        cr_assert_str_eq(said, want);
        cr_assert_eq(read(ends[0], said, 1), 0);
        cr_assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
        close(ends[0]);
    }
    free(bytes);
    free(path);
}

Test(file, folders_are_made_with_those_above, .fini = clean_up)
{
    char *path = in_dir("b/c"), *above = in_dir("b"), *file = in_dir("f"), *below = in_dir("f/g");
    struct err e;

    cr_assert(!file_mkdir(path, &e));
    cr_assert(!file_mkdir(path, &e), "again is no error");
    cr_assert(file_is_dir(path));
    cr_assert(!file_write(file, "", 0, &e));
    cr_assert_eq(file_mkdir(below, &e), ERR_IO);
    cr_assert_eq(file_mkdir(file, &e), ERR_IO);
    rmdir(path);
    rmdir(above);
    free(path);
    free(above);
    free(file);
    free(below);
}

Test(file, the_models_folder_follows_the_environment)
{
    static const char *const want[] = { "/m", "/x/evp/models", "/h/.cache/evp/models" };
    static const char *const name[] = { "EVP_MODELS", "XDG_CACHE_HOME", "HOME" };
    static const char *const value[] = { "/m", "/x", "/h" };

    for (int i = 0; i < 3; i++)
        setenv(name[i], value[i], 1);
    for (int i = 0; i < 3; i++) {
        char *dir_now = file_models_dir();
        cr_assert_str_eq(dir_now, want[i]);
        free(dir_now);
        unsetenv(name[i]);
    }
}

/* ---- buf ------------------------------------------------------------------ */

Test(buf, a_failure_sticks)
{
    struct buf b = { 0 };

    buf_adds(&b, "a");
    cr_assert(!buf_reserve(&b, SIZE_MAX - 1));
    buf_adds(&b, "b");
    cr_assert(buf_failed(&b));
    cr_assert_str_eq(buf_str(&b), "a");
    cr_assert(!buf_take(&b), "what failed is not handed out");
    cr_assert(!b.at && !b.failed);
}

Test(buf, empty_is_a_text_too)
{
    struct buf b = { 0 };

    cr_assert_str_eq(buf_str(&b), "");
    char *taken = buf_take(&b);
    cr_assert_str_eq(taken, "");
    free(taken);
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, "%d,", i);
    cr_assert_eq(b.n, 10 * 2 + 90 * 3 + 900 * 4);
    cr_assert_eq(b.at[b.n], '\0');
    buf_clear(&b);
    cr_assert_str_eq(buf_str(&b), "");
    buf_release(&b);
}

static void create_and_be_killed(const char *path)
{
    struct file_out out;
    struct err e;

    if (file_create(&out, path, &e) == 0)
        fputs("half", out.f);
    fflush(out.f);
    raise(SIGKILL);
}

/* A process that is killed leaves nothing: what was there before, or no file at all. */
Test(file, is_nameless_until_its_commit, .fini = clean_up)
{
    char *path = in_dir("killed");
    struct err e;
    int status, fd = open(dir, O_TMPFILE | O_WRONLY, 0600);

    if (fd < 0)
        cr_skip_test("this file system has no files without names");
    close(fd);
    for (int old = 0; old <= 1; old++) {
        pid_t child = fork();
        if (child == 0)
            create_and_be_killed(path);
        cr_assert(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        cr_assert_eq(n_files(), old);
        cr_assert(!file_write(path, "old", 3, &e), "%s", e.msg);
        check_content(path, "old");
    }
    free(path);
}

static void make_old(const char *path)
{
    struct timespec hour_ago[2] = { { .tv_sec = time(NULL) - 3600 }, { .tv_sec = time(NULL) - 3600 } };
    struct err e;

    cr_assert(!file_write(path, "half", 4, &e), "%s", e.msg);
    cr_assert_eq(utimensat(AT_FDCWD, path, hour_ago, 0), 0);
}

/* What is old and nobody writes goes; what is young, locked, or called otherwise stays. */
Test(file, sweeps_what_killed_processes_left, .fini = clean_up)
{
    static const char *const name[] = { "a.safetensors.tmp.AbC-_1", "b.safetensors.tmp.AbCdEf", "c.safetensors",
                                        "d.jsonl.tmp.AbCdEf",       "e.safetensors.tmp.AbCdE",  "g.tmp.AbCdEf" };
    char *path[7], *young = in_dir("f.safetensors.tmp.AbCdEf");
    struct err e;

    for (int i = 0; i < 6; i++)
        make_old(path[i] = in_dir(name[i]));
    cr_assert(!file_write(young, "", 0, &e));
    int fd = open(path[1], O_RDONLY);
    cr_assert_eq(flock(fd, LOCK_EX), 0);
    file_sweep(dir, ".safetensors");
    for (int i = 0; i < 6; i++)
        cr_assert_eq(file_exists(path[i]), i != 0, "%s", name[i]);
    cr_assert(file_exists(young));
    close(fd);
    file_sweep(dir, ".safetensors");
    cr_assert(!file_exists(path[1]));
    file_sweep("/nosuch/folder", ".safetensors");
    for (int i = 0; i < 6; i++)
        free(path[i]);
    free(young);
}
