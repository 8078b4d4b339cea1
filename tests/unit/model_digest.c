/* The digest of a model: where it is remembered, until when, and that nothing about a note is ever an error. Time is
 * given, so that no test waits for a file to become old. */
#include "base/clock.h"
#include "base/file.h"
#include "engine/model/model_internal.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LATER = 60 }; // seconds: when the files of a test are old

/* A folder with a model file in it, and an empty cache. */
struct place {
    char dir[64], model[96], note[128], cache[96], digests[128];
};

static void copy_model(const struct place *p, int last_byte)
{
    struct buf b = { 0 };
    struct err err;

    cr_assert_eq(file_read(&b, "tests/data/tiny.gguf", 1 << 20, &err), 0, "run from the top folder: %s", err.msg);
    b.at[b.n - 1] = (char)last_byte;
    cr_assert_eq(file_write(p->model, b.at, b.n, &err), 0, "%s", err.msg);
    buf_release(&b);
}

static struct place make_place(void)
{
    struct place p = { .dir = "/tmp/digest.XXXXXX" };

    cr_assert_not_null(mkdtemp(p.dir));
    snprintf(p.model, sizeof(p.model), "%s/m.gguf", p.dir);
    snprintf(p.note, sizeof(p.note), "%s.evp-digest", p.model);
    snprintf(p.cache, sizeof(p.cache), "%s/cache", p.dir);
    snprintf(p.digests, sizeof(p.digests), "%s/evp/digests", p.cache);
    setenv("XDG_CACHE_HOME", p.cache, 1);
    copy_model(&p, 0);
    return p;
}

static void remove_place(const struct place *p)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", p->dir);
    cr_assert_eq(system(command), 0);
}

struct hex {
    char at[65];
};

/* The digest, asked for at this time. */
static struct hex digest_at(const struct place *p, time_t now)
{
    struct hex hex;
    struct err err;
    struct model *m = model_open(p->model, &err);

    cr_assert_not_null(m, "%s", err.msg);
    cr_assert_eq(model_digest_at(m, now, hex.at, &err), 0, "%s", err.msg);
    cr_assert_eq(strlen(hex.at), 64);
    model_close(m);
    return hex;
}

/* The digest when all files are old. */
static struct hex digest_later(const struct place *p)
{
    return digest_at(p, time(NULL) + LATER);
}

/* Sets a file's modification time to so many seconds from now. */
static void set_time(const char *path, int seconds)
{
    struct timespec t[2] = { { time(NULL) + seconds, 0 }, { time(NULL) + seconds, 0 } };

    cr_assert_eq(utimensat(AT_FDCWD, path, t, 0), 0);
}

/* Puts another digest into a note: a reader that gives it believed the note. */
static void forge(const char *note)
{
    struct buf text = { 0 };
    struct err err;

    cr_assert_eq(file_read(&text, note, 10000, &err), 0, "%s", err.msg);
    memset(text.at, 'f', 64);
    cr_assert_eq(file_write(note, text.at, text.n, &err), 0, "%s", err.msg);
    set_time(note, LATER);
    buf_release(&text);
}

static bool is_forged(struct hex hex)
{
    return strspn(hex.at, "f") == 64;
}

/* The only file in the cache; fails the test when there is none. */
static void cached_note(const struct place *p, char out[256])
{
    char command[192];

    snprintf(command, sizeof(command), "ls -d '%s'/*", p->digests);
    FILE *f = popen(command, "r");
    cr_assert(f && fgets(out, 256, f), "nothing in %s", p->digests);
    out[strcspn(out, "\n")] = '\0';
    cr_assert_null(fgets(command, sizeof(command), f), "more than one file in %s", p->digests);
    pclose(f);
}

/* The folder of the model cannot be written: a folder has the note's name. (Permissions do not stop root.) */
static void block_note(const struct place *p)
{
    cr_assert_eq(mkdir(p->note, 0777), 0);
}

/* ---- beside the model ------------------------------------------------------ */

Test(model_digest, is_remembered_until_the_file_changes)
{
    struct place p = make_place();
    struct hex first = digest_later(&p);

    forge(p.note);
    cr_assert(is_forged(digest_later(&p))); /* what is remembered is believed ... */
    set_time(p.model, 5);
    cr_assert_str_eq(digest_later(&p).at, first.at); /* ... until the file is another one */
    cr_assert(!file_exists(p.digests));
    remove_place(&p);
}

/* Another file of the same size, with the time of the first: the note is not younger than the change. */
Test(model_digest, a_note_does_not_outlive_a_change_that_hides)
{
    struct place p = make_place();
    struct stat st;

    set_time(p.model, -100);
    cr_assert_eq(stat(p.model, &st), 0);
    struct hex first = digest_later(&p);
    cr_assert(file_exists(p.note));
    copy_model(&p, 1);
    struct timespec same[2] = { st.st_atim, st.st_mtim };
    cr_assert_eq(utimensat(AT_FDCWD, p.model, same, 0), 0);
    cr_assert_str_neq(digest_later(&p).at, first.at);
    remove_place(&p);
}

/* A file that changed a moment ago may change again within the same tick of its clock. */
Test(model_digest, a_file_is_remembered_two_seconds_after_its_change)
{
    struct place p = make_place();
    struct stat st;

    set_time(p.model, LATER);
    cr_assert_eq(stat(p.model, &st), 0);
    digest_at(&p, st.st_mtim.tv_sec + 2);
    cr_assert(!file_exists(p.note) && !file_exists(p.digests));
    digest_at(&p, st.st_mtim.tv_sec + 3);
    cr_assert(file_exists(p.note));
    remove_place(&p);
}

/* ---- in the cache ---------------------------------------------------------- */

Test(model_digest, is_remembered_in_the_cache_where_the_folder_cannot_be_written)
{
    struct place p = make_place();
    char note[256];

    block_note(&p);
    struct hex first = digest_later(&p);
    cached_note(&p, note);
    forge(note);
    cr_assert(is_forged(digest_later(&p)));
    set_time(p.model, 5); /* another time */
    cr_assert_str_eq(digest_later(&p).at, first.at);
    remove_place(&p);
}

Test(model_digest, the_cache_does_not_outlive_a_change_that_hides)
{
    struct place p = make_place();
    struct stat st;
    char note[256];

    block_note(&p);
    set_time(p.model, -100);
    cr_assert_eq(stat(p.model, &st), 0);
    digest_later(&p);
    cached_note(&p, note);
    forge(note);
    cr_assert(is_forged(digest_later(&p)));
    const struct stat old = st;
    const struct timespec same[2] = { st.st_atim, st.st_mtim };
    int fd = open(p.model, O_WRONLY); /* the same inode, size and time ... */
    cr_assert(fd >= 0 && pwrite(fd, "\1", 1, st.st_size - 1) == 1);
    close(fd);
    do { /* ... at another tick of the clock */
        cr_assert_eq(utimensat(AT_FDCWD, p.model, same, 0), 0);
        cr_assert_eq(stat(p.model, &st), 0);
    } while (st.st_ctim.tv_sec == old.st_ctim.tv_sec && st.st_ctim.tv_nsec == old.st_ctim.tv_nsec);
    cr_assert(!is_forged(digest_later(&p)));
    remove_place(&p);
}

/* Models of the same name are told apart, and so are copies. */
Test(model_digest, each_model_has_a_note_of_its_own_in_the_cache)
{
    struct place a = make_place(), b = make_place();
    char note[256];

    setenv("XDG_CACHE_HOME", a.cache, 1);
    block_note(&a);
    block_note(&b);
    digest_later(&a);
    cached_note(&a, note);
    forge(note);
    cr_assert(!is_forged(digest_later(&b)));
    cr_assert(is_forged(digest_later(&a)));
    remove_place(&a);
    remove_place(&b);
}

Test(model_digest, home_is_the_place_without_xdg_cache_home)
{
    struct place p = make_place();

    block_note(&p);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", p.cache, 1);
    digest_later(&p);
    snprintf(p.digests, sizeof(p.digests), "%s/.cache/evp/digests", p.cache);
    cr_assert(file_exists(p.digests));
    remove_place(&p);
}

/* ---- nothing about a note is an error -------------------------------------- */

Test(model_digest, no_place_for_a_note_is_no_error)
{
    struct place p = make_place();

    block_note(&p);
    setenv("XDG_CACHE_HOME", p.model, 1); /* a file where a folder must be */
    digest_later(&p);
    setenv("XDG_CACHE_HOME", "relative", 1);
    digest_later(&p);
    cr_assert(!file_exists("relative"));
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    digest_later(&p);
    remove_place(&p);
}

Test(model_digest, a_full_disk_is_no_error)
{
    struct place p = make_place();
    struct rlimit none = { 0, RLIM_INFINITY };

    block_note(&p);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
    digest_later(&p);
    cr_assert_eq(rmdir(p.digests), 0, "it is not empty");
    remove_place(&p);
}

/* A pipe of the note's name is neither read nor written, which would wait for its other end. */
Test(model_digest, a_pipe_is_no_note)
{
    struct place p = make_place();

    cr_assert_eq(mkfifo(p.note, 0666), 0);
    digest_later(&p);
    cr_assert(file_exists(p.digests));
    remove_place(&p);
}

Test(model_digest, two_at_once_write_one_whole_note)
{
    struct place p = make_place();
    char note[256];
    pid_t child[4];

    block_note(&p);
    for (int i = 0; i < 4; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            struct err err;
            char hex[65];
            struct model *m = model_open(p.model, &err);
            _exit(!m || model_digest_at(m, time(NULL) + LATER, hex, &err) ? 1 : 0);
        }
    }
    for (int i = 0; i < 4; i++) {
        int status;
        cr_assert(waitpid(child[i], &status, 0) == child[i] && status == 0);
    }
    cached_note(&p, note);
    forge(note);
    cr_assert(is_forged(digest_later(&p)));
    remove_place(&p);
}

/* ---- beside the caller's work ---------------------------------------------- */

static struct model_digesting *begin(const struct model *m)
{
    struct err err;
    struct model_digesting *d = model_digest_begin(m, &err);

    cr_assert_not_null(d, "%s", err.msg);
    return d;
}

Test(model_digest, beside_the_caller_it_is_the_same)
{
    struct place p = make_place();
    struct hex want = digest_later(&p);
    struct err err;

    unlink(p.note);
    struct model *m = model_open(p.model, &err);
    struct model_digesting *d = begin(m);
    for (int again = 0; again < 2; again++) {
        cr_assert_eq(model_digest_wait(d, &err), 0, "%s", err.msg);
        cr_assert_str_eq(model_digest_hex(d), want.at);
    }
    model_digest_free(d);
    model_digest_free(NULL);
    cr_assert_eq(unlink(p.model), 0); // the caller has it mapped, the digest opens it
    d = begin(m);
    cr_assert_eq(model_digest_wait(d, &err), ERR_IO);
    cr_assert_eq(model_digest_wait(d, &err), ERR_IO, "it is forgotten");
    cr_assert_not_null(strstr(err.msg, p.model), "%s", err.msg);
    model_digest_free(d);
    model_close(m);
    remove_place(&p);
}

/* The file has 64 GiB, nearly all of it a hole: half a minute of SHA-256. */
Test(model_digest, nobody_waits_for_what_nobody_wants)
{
    if (getenv("EVP_TEST_EMULATED"))
        cr_skip_test("it is about speed, and the processor is emulated");
    struct place p = make_place();
    struct err err;

    cr_assert_eq(truncate(p.model, (off_t)64 << 30), 0);
    struct model *m = model_open(p.model, &err);
    cr_assert_not_null(m, "%s", err.msg);
    double start = clock_now();
    model_digest_free(begin(m));
    cr_assert_lt(clock_now() - start, 5);
    cr_assert(!file_exists(p.note) && !file_exists(p.digests), "half a digest is noted");
    model_close(m);
    remove_place(&p);
}
