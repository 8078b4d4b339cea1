/* A tier's folder: copies of sizes around the chunk; transactions, the index that follows from them, locking, sweeping,
 * and which folders are taken.
 */
#include "base/file.h"
#include "base/rng.h"
#include "formats/manifest.h"
#include "loader/store/folder.h"
#include "loader/store/state_internal.h"
#include "loader/store/tier_store.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 }; // of medium_file.c

static char dir[] = "/tmp/evp-unit-XXXXXX", *folder;
static struct tier tier = { .name = "ssd", .kind = TIER_FILE, .capacity = INT64_MAX };

static void make_dir(void)
{
    cr_assert_not_null(mkdtemp(dir));
    folder = file_join(dir, "tier");
    tier.uri = folder;
}

static void remove_dir(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    cr_assert_eq(system(command), 0);
    free(folder);
}

TestSuite(tier_store, .init = make_dir, .fini = remove_dir);

/* From here on the kernel says that it has no openat2(), as old ones and some sandboxes do. */
static void deny_openat2(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        cr_skip("this kernel takes no filter");
}

Test(tier_store, files_are_made_and_opened_without_openat2)
{
    struct err err;
    int fd = -1;

    cr_assert_eq(folder_open(&fd, folder, FOLDER_WRITE, geteuid(), &err), 0, "%s", err.msg);
    for (int denied = 0; denied < 2; denied++) {
        const char *name = denied ? "evp-payloads/01/old" : "evp-payloads/01/new";
        int at = folder_create_file(fd, name, &err);
        cr_assert(at >= 0, "%s", err.msg);
        cr_assert_eq(write(at, "x", 1), 1);
        close(at);
        at = folder_create_file(fd, name, &err); /* in place of what a killed load left */
        cr_assert(at >= 0 && folder_file_size(fd, name) == 0);
        close(at);
        at = folder_open_file(fd, name);
        cr_assert(at >= 0);
        close(at);
        cr_assert_eq(renameat(fd, "evp-payloads", fd, "away"), 0);
        cr_assert_eq(symlinkat("away", fd, "evp-payloads"), 0);
        cr_assert_eq(folder_open_file(fd, name), -1, "a link was followed");
        cr_assert(folder_create_file(fd, name, &err) < 0, "a link was followed");
        cr_assert_eq(unlinkat(fd, "evp-payloads", 0), 0);
        cr_assert_eq(renameat(fd, "away", fd, "evp-payloads"), 0);
        deny_openat2();
    }
    close(fd);
}

static struct tier_store open_as(const char *name_space)
{
    struct tier_store_options o = { .tier = &tier, .name_space = name_space, .use = STORE_CHANGE };
    struct tier_store s;
    struct err err;

    cr_assert_eq(tier_store_open(&s, &o, &err), 0, "%s", err.msg);
    cr_assert_eq(tier_store_tidy(&s, &err), 0, "%s", err.msg);
    if (!s.load.number)
        cr_assert_eq(state_put_load(s.state, name_space, &s.load, &err), 0, "%s", err.msg);
    return s;
}

static char *make_file(const char *name, size_t n)
{
    char *path = file_join(dir, name), *bytes = malloc(n + 1);
    struct err err;

    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 7 + (i >> 12));
    cr_assert_eq(file_write(path, bytes, n, &err), 0, "%s", err.msg);
    free(bytes);
    return path;
}

/* A payload of n bytes, copied into the store and not named yet. */
static struct entry copied(const struct tier_store *s, const char *id, size_t n)
{
    struct entry e = {
        .id = strdup(id), .config = strdup("none"), .payload = strdup(id), .n_tokens = 300, .bytes = (int64_t)n
    };
    char *path = make_file("payload", n);
    struct err err;
    int fd = open(path, O_RDONLY);
    struct blob from = blob_of_file(fd);

    cr_assert_eq(digest_sha256(id, strlen(id), e.token_digest, &err), 0);
    cr_assert_eq(blob_checksum(&from, &e.size, e.checksum, &err), 0);
    cr_assert(e.size == (int64_t)n);
    cr_assert_eq(entry_set_file(&e, s->name_space, &err), 0);
    cr_assert_eq(tier_store_put(s, &from, &e, &err), 0, "%s", err.msg);
    close(fd);
    free(path);
    return e;
}

static void add(struct tier_store *s, const char *id)
{
    struct entry e = copied(s, id, 1000);
    struct err err;

    cr_assert_eq(tier_store_add(s, &e, &err), 0, "%s", err.msg);
    cr_assert_eq(tier_store_commit(s, &err), 0, "%s", err.msg);
    cr_assert_eq(tier_store_publish(s, &err), 0, "%s", err.msg);
}

static struct index open_index(void)
{
    struct index ix;
    struct err err;
    int fd = open(folder, O_RDONLY | O_DIRECTORY);

    cr_assert_eq(index_open(&ix, fd, &err), 0, "%s", err.msg);
    close(fd);
    return ix;
}

/* How many records the published index has for a namespace. */
static int published(const char *name_space)
{
    struct index ix = open_index();
    int n = 0, number = index_name_space(&ix, name_space);

    for (size_t i = 0; i < ix.n; i++)
        n += ix.record[i].key.name_space[0] << 8 | (ix.record[i].key.name_space[1] == number);
    index_close(&ix);
    return n;
}

Test(tier_store, copies_files_of_any_size)
{
    static const size_t size[] = { 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK };
    struct tier_store s = open_as("a");

    for (int i = 0; i < 5; i++) {
        struct entry e = copied(&s, "x", size[i]);
        struct err err;
        cr_assert_eq(tier_store_flush(&s, &err), 0, "%s", err.msg);
        cr_assert_eq(tier_store_read_back(&s, &e, &err), 0, "%s", err.msg);
        cr_assert(tier_store_has(&s, &e) && !tier_store_check(&s, &e, &err));
        for (int off = -1; off <= 1; off += 2) {
            e.size += off;
            cr_assert(!tier_store_has(&s, &e) && tier_store_check(&s, &e, &err) == ERR_FORMAT);
            e.size -= off;
        }
        e.checksum[15] = e.checksum[15] == '0' ? '1' : '0';
        cr_assert(tier_store_has(&s, &e) && tier_store_check(&s, &e, &err) == ERR_FORMAT);
        cr_assert_eq(tier_store_read_back(&s, &e, &err), ERR_FORMAT);
        cr_assert_eq(tier_store_remove(&s, &e, &err), 0);
        cr_assert(!tier_store_has(&s, &e) && tier_store_check(&s, &e, &err) == ERR_FORMAT);
        entry_release(&e);
    }
    tier_store_close(&s);
}

/* What is not committed is gone, and what is committed is published by the next writer. */
Test(tier_store, changes_are_transactions)
{
    struct tier_store s = open_as("a");
    struct err err;

    add(&s, "one");
    struct entry e = copied(&s, "two", 1000);
    cr_assert_eq(tier_store_add(&s, &e, &err), 0);
    tier_store_close(&s);
    s = open_as("a");
    cr_assert(s.in.n == 1 && published("a") == 1);
    e = copied(&s, "two", 1000);
    cr_assert_eq(tier_store_add(&s, &e, &err), 0);
    cr_assert_eq(tier_store_commit(&s, &err), 0);
    cr_assert_eq(published("a"), 1);
    tier_store_close(&s);
    s = open_as("a");
    cr_assert(s.in.n == 2 && published("a") == 2);
    cr_assert_eq(tier_store_forget(&s, 0, &err), 0);
    s.in.at[1].bytes = 7;
    cr_assert_eq(tier_store_update(&s, 1, &err), 0);
    cr_assert(!tier_store_commit(&s, &err) && !tier_store_publish(&s, &err));
    tier_store_close(&s);
    s = open_as("a");
    cr_assert(s.in.n == 1 && s.in.at[0].bytes == 7 && published("a") == 1);
    tier_store_close(&s);
}

static int count_payload(void *arg, const char *name_space, struct entry *e, struct err *err)
{
    (void)name_space;
    (void)e;
    (void)err;
    ++*(int *)arg;
    return 0;
}

/* What is committed after a look has begun is not part of it. */
Test(tier_store, a_look_sees_one_moment)
{
    struct tier_store s = open_as("a");
    struct tier_state *look;
    struct err err;
    int n = 0;

    add(&s, "one");
    cr_assert_eq(state_open(&look, folder, "", STATE_LOOK, &err), 0, "%s", err.msg);
    add(&s, "two");
    cr_assert_eq(state_each(look, count_payload, &n, &err), 0, "%s", err.msg);
    cr_assert_eq(n, 1);
    state_close(look);
    tier_store_close(&s);
}

/* How many records the published index has with a config. */
static int published_as(const char *config)
{
    struct index ix = open_index();
    int n = 0;

    for (size_t i = 0; i < ix.n; i++)
        n += strcmp(ix.config[ix.record[i].config].at, config) == 0;
    index_close(&ix);
    return n;
}

static void place(struct tier_store *s, const char *id, const char *config)
{
    struct entry e = copied(s, id, 1000);
    struct err err;

    free(e.config);
    e.config = strdup(config);
    e.n_tokens = 10 * DIGEST_CHUNK;
    cr_assert_eq(tier_store_add(s, &e, &err), 0, "%s", err.msg);
}

/* The index has the names of other namespaces and configs, and what could not be written once. */
Test(tier_store, publishes_after_a_failure)
{
    struct tier_store s = open_as("a");
    struct err err;

    add(&s, "one");
    tier_store_close(&s);
    s = open_as("b");
    place(&s, "two", "kivi:bits=2");
    place(&s, "three", "none");
    place(&s, "four", "kivi:bits=2");
    cr_assert(!tier_store_commit(&s, &err) && !tier_store_publish(&s, &err));
    cr_assert(published("a") == 1 && published("b") == 3);
    cr_assert(published_as("kivi:bits=2") == 2 && published_as("none") == 2);

    add(&s, "five");
    place(&s, "six", "kivi:bits=4");
    cr_assert_eq(tier_store_commit(&s, &err), 0);
    cr_assert_eq(mkdirat(s.folder, "evp-index.new", 0700), 0);
    cr_assert_eq(tier_store_publish(&s, &err), ERR_IO);
    cr_assert_eq(unlinkat(s.folder, "evp-index.new", AT_REMOVEDIR), 0);
    cr_assert(!tier_store_publish(&s, &err) && published("b") == 5 && published_as("kivi:bits=4") == 1);
    tier_store_close(&s);
    s = open_as("b");
    cr_assert(s.in.n == 5 && published("a") == 1 && published("b") == 5);
    tier_store_close(&s);
}

/* Gives a payload some parts, or none. */
static void change_parts(struct tier_store *s, int i, int n)
{
    static uint8_t digest[8][32];
    struct state_parts parts = { .header = 8, .n = n, .digest = digest };
    struct err err;

    for (int k = 0; k < n; k++)
        memset(digest[k], 8 * i + k, sizeof(digest[k]));
    cr_assert_eq(n ? tier_store_put_parts(s, i, &parts, &err) : tier_store_drop_parts(s, i, &err), 0, "%s", err.msg);
}

/* Changes some payloads and publishes that: one more, fewer, unseen, seen again, with parts. */
static void change_some(struct tier_store *s, struct rng *r, int step)
{
    char id[32];
    struct err err;

    for (int k = 0; k < 1 + step % 3; k++) {
        int i = s->in.n ? (int)rng_below(r, (uint64_t)s->in.n) : 0, what = (int)rng_below(r, 4);
        struct entry *e = s->in.n ? &s->in.at[i] : NULL;
        snprintf(id, sizeof(id), "%d/%d", step, k);
        if (!e || !e->row || what < 2) {
            place(s, id, "none");
        } else if (what == 2) {
            cr_assert_eq(tier_store_forget(s, i, &err), 0, "%s", err.msg);
        } else {
            change_parts(s, i, (int)rng_below(r, 9));
        }
    }
    cr_assert(!tier_store_commit(s, &err) && !tier_store_publish(s, &err), "%s", err.msg);
}

/* After any changes the index is what would be made from all rows. */
Test(tier_store, publishes_what_has_changed)
{
    struct tier_store s = open_as("a");
    struct rng r = rng_new(21);

    for (int step = 0; step < 150; step++) {
        change_some(&s, &r, step);
        if (step % 5)
            continue;
        struct index changed = open_index();
        cr_assert_eq(unlinkat(s.folder, "evp-index", 0), 0);
        tier_store_close(&s);
        s = open_as("a");
        struct index made = open_index();
        cr_assert_eq(made.n, changed.n, "step %d: %zu records, not %zu", step, changed.n, made.n);
        cr_assert(!made.n || memcmp(made.record, changed.record, made.n * sizeof(*made.record)) == 0, "step %d", step);
        index_close(&made);
        index_close(&changed);
    }
    cr_assert_gt(s.in.n, 20);
    tier_store_close(&s);
}

/* Contexts with the same tokens have one object, which stays while one of them has it. Asking for them reads no table.
 */
Test(tier_store, shares_objects)
{
    struct tier_store s = open_as("a");
    struct err err;
    bool shares;

    for (int i = 0; i < 50; i++)
        add(&s, (char[]){ (char)('0' + i), 0 });
    struct entry e = copied(&s, "1", 1000);
    e.id[0] = 'x';
    cr_assert_str_eq(e.file, s.in.at[1].file);
    cr_assert(!tier_store_shares(&s, &e, &shares, &err) && shares);
    cr_assert(!tier_store_add(&s, &e, &err) && !tier_store_commit(&s, &err));
    for (int i = 0; i < 2; i++) {
        const struct entry *one = &s.in.at[i ? 50 : 1];
        cr_assert(!tier_store_forget(&s, i ? 50 : 1, &err) && !tier_store_remove(&s, one, &err));
        cr_assert(!tier_store_shares(&s, one, &shares, &err) && shares == !i);
        cr_assert_eq(tier_store_check(&s, one, &err), i ? ERR_FORMAT : 0);
    }
    cr_assert_eq(sqlite3_stmt_status(s.state->statement[IS_NAMED], SQLITE_STMTSTATUS_FULLSCAN_STEP, 0), 0);
    tier_store_close(&s);
}

static int add_before(void *arg, const char *name_space, struct entry *e, struct err *err)
{
    (void)name_space;
    cr_assert(e->row == 0 && !e->file && e->n_tokens == 300 && e->bytes == 1000);
    return entries_add(arg, e, err);
}

/* The placement before the load in force stays what it was, whatever changes, until it is kept anew or forgotten. */
Test(tier_store, keeps_the_placement_before)
{
    struct tier_store s = open_as("a");
    struct entries before[3] = { 0 };
    struct err err;

    add(&s, "one");
    add(&s, "two");
    cr_assert_eq(state_keep_before(s.state, s.load.number, &err), 0);
    cr_assert(!tier_store_forget(&s, 0, &err) && !tier_store_commit(&s, &err));
    tier_store_close(&s);
    s = open_as("a");
    cr_assert_eq(s.in.n, 1);
    cr_assert_eq(state_each_before(s.state, s.load.number, add_before, &before[0], &err), 0, "%s", err.msg);
    cr_assert(before[0].n == 2 && strcmp(before[0].at[0].id, "one") == 0 && strcmp(before[0].at[1].id, "two") == 0);
    cr_assert_eq(state_keep_before(s.state, s.load.number, &err), 0);
    cr_assert_eq(state_each_before(s.state, s.load.number, add_before, &before[1], &err), 0);
    cr_assert(before[1].n == 1 && strcmp(before[1].at[0].id, "two") == 0);
    cr_assert_eq(state_forget_before(s.state, s.load.number, &err), 0);
    cr_assert(!state_each_before(s.state, s.load.number, add_before, &before[2], &err) && before[2].n == 0);
    for (int i = 0; i < 3; i++)
        entries_release(&before[i]);
    tier_store_close(&s);
}

Test(tier_store, namespaces_do_not_see_each_other)
{
    struct tier_store s = open_as("a");

    add(&s, "one");
    tier_store_close(&s);
    s = open_as("b");
    cr_assert(s.in.n == 0 && s.other_bytes == 1000);
    add(&s, "one");
    add(&s, "two");
    tier_store_close(&s);
    s = open_as("a");
    cr_assert(s.in.n == 1 && s.other_bytes == 2000);
    cr_assert(published("a") == 1 && published("b") == 2 && published("c") == 0);
    tier_store_close(&s);
}

/* A store for one context has its payloads alone, and leaves the index of all as it shall be. */
Test(tier_store, opens_for_one_context)
{
    struct tier_store_options o = { .tier = &tier, .name_space = "a", .context = "two", .use = STORE_CHANGE };
    struct tier_store s = open_as("b");
    struct err err;

    add(&s, "two");
    tier_store_close(&s);
    s = open_as("a");
    static const char *const id[] = { "one", "two", "three", "four" };
    for (int i = 0; i < 4; i++)
        add(&s, id[i]);
    tier_store_close(&s);
    cr_assert_eq(tier_store_open(&s, &o, &err), 0, "%s", err.msg);
    cr_assert(s.in.n == 1 && strcmp(s.in.at[0].id, "two") == 0 && s.own_bytes == 4000 && s.other_bytes == 1000);
    cr_assert(!tier_store_forget(&s, 0, &err) && !tier_store_commit(&s, &err) && !tier_store_publish(&s, &err));
    tier_store_close(&s);
    s = open_as("a");
    cr_assert(s.in.n == 3 && published("a") == 3 && published("b") == 1);
    tier_store_close(&s);
}

Test(tier_store, opens_once_and_sweeps_only_payloads_without_a_name)
{
    struct tier_store_options o = { .tier = &tier, .name_space = "a", .use = STORE_CHANGE };
    struct tier_store s = open_as("a"), second;
    struct err err;

    cr_assert_eq(tier_store_open(&second, &o, &err), ERR_IO);
    cr_assert(strstr(err.msg, "another evp-load is running"), "%s", err.msg);
    o.use = STORE_LOOK;
    cr_assert_eq(tier_store_open(&second, &o, &err), 0, "%s", err.msg);
    tier_store_close(&second);
    add(&s, "one");
    struct entry lost = copied(&s, "lost", 1000);
    static const char *const foreign[] = { "notes", "evp-notes", "evp-payloads/notes", "evp-payloads/0f/notes" };
    for (int i = 0; i < 4; i++) {
        char *path = file_join(folder, foreign[i]), *parent = strdup(path);
        *strrchr(parent, '/') = '\0';
        cr_assert_eq(file_mkdir(parent, &err), 0);
        cr_assert_eq(file_write(path, "x", 1, &err), 0);
        free(parent);
        free(path);
    }
    tier_store_close(&s);
    s = open_as("a");
    cr_assert(tier_store_has(&s, &lost), "no writer was killed: nothing to sweep");
    cr_assert(!state_set_swept(s.state, false, &err) && !tier_store_commit(&s, &err));
    tier_store_close(&s);
    s = open_as("a");
    cr_assert(!tier_store_has(&s, &lost) && !tier_store_check(&s, &s.in.at[0], &err));
    for (int i = 0; i < 4; i++) {
        char *path = file_join(folder, foreign[i]);
        cr_assert(file_exists(path), "%s", path);
        free(path);
    }
    entry_release(&lost);
    tier_store_close(&s);
}

Test(tier_store, needs_the_parent_of_its_folder)
{
    struct tier_store_options o = { .tier = &tier, .name_space = "a", .use = STORE_CHANGE };
    struct tier_store s;
    struct err err;
    char uri[256];

    snprintf(uri, sizeof(uri), "%s/absent/tier", dir);
    tier.uri = uri;
    cr_assert_eq(tier_store_open(&s, &o, &err), ERR_IO);
    o.use = STORE_LOOK;
    cr_assert_eq(tier_store_open(&s, &o, &err), ERR_IO);
    snprintf(uri, sizeof(uri), "%s/new///", dir);
    cr_assert_eq(tier_store_open(&s, &o, &err), 0, "%s", err.msg);
    cr_assert(!file_is_dir(uri) && s.in.n == 0);
    tier_store_close(&s);
    o.use = STORE_CHANGE;
    cr_assert_eq(tier_store_open(&s, &o, &err), 0, "%s", err.msg);
    cr_assert(file_is_dir(uri));
    tier_store_close(&s);
    tier.kind = TIER_REDIS;
    cr_assert_eq(tier_store_open(&s, &o, &err), ERR_FAIL);
    tier.kind = TIER_FILE;
}

static bool always(int fd)
{
    return fd >= 0;
}

static bool all_but_state(int fd)
{
    struct stat a, b;

    return !fstat(fd, &a) && (stat(tier.state, &b) || a.st_ino != b.st_ino);
}

/* On a network file system the state is elsewhere, and belongs to one tier. */
Test(tier_store, keeps_its_state_on_a_local_disk)
{
    struct tier_store_options o = { .tier = &tier, .name_space = "a", .use = STORE_CHANGE };
    bool (*is_remote)(int fd) = folder_is_remote;
    char *state = file_join(dir, "state"), *file = file_join(state, "evp-state"), *other = file_join(dir, "other");
    struct tier_store s;
    struct err err;

    folder_is_remote = always;
    cr_assert_eq(tier_store_open(&s, &o, &err), ERR_FAIL);
    cr_assert(strstr(err.msg, "give the tier a 'state'"), "%s", err.msg);
    tier.state = state;
    cr_assert_eq(tier_store_open(&s, &o, &err), ERR_FAIL);
    cr_assert(strstr(err.msg, "it needs a local disk"), "%s", err.msg);
    folder_is_remote = all_but_state;
    s = open_as("a");
    add(&s, "one");
    cr_assert(file_exists(file) && published("a") == 1);
    tier_store_close(&s);
    tier.uri = other;
    cr_assert_eq(tier_store_open(&s, &o, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "is the state of the tier at"), "%s", err.msg);
    folder_is_remote = is_remote;
    tier.state = NULL;
    free(state);
    free(file);
    free(other);
}
