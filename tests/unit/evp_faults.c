/* Stores of the installed library whose tiers fail: one that cannot be read, changed or locked, one that another
 * process or another host fills.
 */
#include "tests/unit/put_world.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(evp_faults, .init = make_store, .fini = remove_store);

/* A tier that cannot be read costs the others nothing, and a store that has read it goes on with what it knows. */
Test(evp_faults, serves_the_other_tiers_when_one_fails)
{
    struct evp_store *store = open_store(), *late;
    struct evp_tier fast;
    struct evp_error error;
    char bytes[PAYLOAD_MAX], *away = file_join(dir, "away");

    cr_assert(!put(store, "a", "fast", 1, &error) && !put(store, "b", "slow", 2, &error), "%s", error.text);
    cr_assert(rename(folder[0], away) == 0 && symlink(folder[0], folder[0]) == 0); /* ELOOP in place of EIO */
    cr_assert_eq(evp_refresh(store, &error), 1, "%s", error.text);
    cr_assert(evp_get_tier(store, 0, &fast, &error) == 1 && fast.code == EVICPRESS_IO && fast.n_placed == 1);
    cr_assert(strstr(fast.text, "symbolic links"), "%s", fast.text);
    cr_assert_eq(evp_refresh(store, &error), 0, "it still fails: %s", error.text);
    cr_assert_str_eq(where(store, 1), "fast");
    struct evp_prefix found = find(store, 1);
    cr_assert_eq(evp_fetch(store, &found, bytes, sizeof(bytes), &error), EVICPRESS_OK, "%s", error.text);
    late = open_store();
    cr_assert_str_eq(where(late, 1), "");
    cr_assert_str_eq(where(late, 2), "slow");
    cr_assert_eq(put(late, "c", "slow", 3, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_str_eq(where(late, 3), "slow");
    cr_assert_eq(evp_refresh(store, &error), 1, "%s", error.text);
    cr_assert_str_eq(where(store, 3), "slow");
    cr_assert(unlink(folder[0]) == 0 && rename(away, folder[0]) == 0);
    cr_assert_eq(evp_refresh(late, &error), 1, "%s", error.text);
    cr_assert_str_eq(where(late, 1), "fast");
    cr_assert(evp_refresh(store, &error) == 1 && evp_get_tier(store, 0, &fast, &error) == 1 && !fast.code);
    evp_close(store);
    evp_close(late);
    free(away);
}

/* Ways in which a tier's folder cannot be changed, and back. */
static void make_foreign(char *f)
{
    cr_assert_eq(chmod(f, 0777), 0);
}

static void make_ours(char *f)
{
    cr_assert_eq(chmod(f, 0700), 0);
}

static void make_unlockable(char *f)
{
    char *lock = file_join(f, "evp-lock");

    cr_assert(unlink(lock) == 0 && mkdir(lock, 0700) == 0);
    free(lock);
}

static void make_lockable(char *f)
{
    char *lock = file_join(f, "evp-lock");

    cr_assert_eq(rmdir(lock), 0);
    free(lock);
}

static void exchange(const char *f, const char *a, const char *b)
{
    char *from = file_join(f, a), *to = file_join(f, b);

    cr_assert_eq(rename(from, to), 0);
    free(from);
    free(to);
}

static void make_damaged(char *f)
{
    struct err err;
    char *state = file_join(f, "evp-state");

    exchange(f, "evp-state", "kept");
    cr_assert_eq(
        file_write(state, "no database of ours, and longer than SQLite's header would be: it has 100 bytes", 79, &err),
        0);
    free(state);
}

static void make_whole(char *f)
{
    exchange(f, "kept", "evp-state");
}

static void make_unreadable(char *f)
{
    char *away = file_join(dir, "away");

    cr_assert(rename(f, away) == 0 && symlink(f, f) == 0); /* ELOOP in place of EIO */
    free(away);
}

static void make_readable(char *f)
{
    char *away = file_join(dir, "away");

    cr_assert(unlink(f) == 0 && rename(away, f) == 0);
    free(away);
}

/* A tier that cannot be changed costs only the calls that need it; what should have left it leaves with the next. */
Test(evp_faults, changes_the_other_tiers_when_one_fails)
{
    static const struct {
        void (*harm)(char *), (*heal)(char *);
        const char *says;
    } fault[] = { { make_foreign, make_ours, "other users may write to folder" },
                  { make_unlockable, make_lockable, "cannot lock folder" },
                  { make_damaged, make_whole, "evp-state" },
                  { make_unreadable, make_readable, "symbolic links" } };
    struct evp_store *store = open_store();
    struct evp_tier fast;
    struct evp_error error;

    for (size_t i = 0; i < sizeof(fault) / sizeof(*fault); i++) {
        cr_assert(!put(store, "a", "fast", 1, &error) && !put(store, "b", "slow", 2, &error), "%s", error.text);
        fault[i].harm(folder[0]);
        cr_assert_eq(put(store, "c", "slow", 3, &error), EVICPRESS_OK, "%zu: %s", i, error.text);
        cr_assert_eq(put(store, "a", "slow", 4, &error), EVICPRESS_OK, "%zu: %s", i, error.text);
        cr_assert_str_eq(where(store, 4), "slow");
        cr_assert_eq(evp_remove(store, "b", &error), EVICPRESS_OK, "%zu: %s", i, error.text);
        cr_assert(evp_get_tier(store, 0, &fast, &error) == 1 && strstr(fast.text, fault[i].says), "%zu: %s", i,
                  fast.text);
        int code = put(store, "d", "fast", 5, &error);
        cr_assert((code == EVICPRESS_IO || code == EVICPRESS_DAMAGED) && strstr(error.text, fault[i].says), "%zu: %s",
                  i, error.text);
        cr_assert_eq(evp_move(store, "c", "fast", &error), code);
        cr_assert_eq(evp_move(store, "unknown", "slow", &error), EVICPRESS_IO, "it may be on the other tier");
        cr_assert(strstr(error.text, fault[i].says), "%s", error.text);
        fault[i].heal(folder[0]);
        cr_assert_eq(evp_move(store, "unknown", "slow", &error), EVICPRESS_UNKNOWN, "%s", error.text);
        cr_assert_str_eq(where(store, 1), "fast");
        cr_assert_eq(put(store, "a", "slow", 4, &error), EVICPRESS_OK, "%zu: %s", i, error.text);
        cr_assert(evp_get_tier(store, 0, &fast, &error) == 1 && !fast.code && !*fast.text, "%s", fast.text);
        cr_assert_str_eq(where(store, 1), "");
        cr_assert(!evp_remove(store, "a", &error) && !evp_remove(store, "c", &error), "%zu: %s", i, error.text);
    }
    evp_close(store);
}

/* Puts a payload 100 times; returns how often that failed. Runs in a child too, which must not use Criterion. */
static int put_many(struct evp_store *store, const char *id, const void *payload, size_t size)
{
    int failed = 0;

    for (int i = 0; i < 100; i++) {
        struct evp_put_args p = { .id = id, .tier = i % 2 ? "fast" : "slow", .payload = payload, .size = size };
        failed += evp_put(store, &p, NULL) != EVICPRESS_OK;
    }
    return failed;
}

/* Two processes whose manifests list the tiers in other orders do not wait for each other. */
Test(evp_faults, locks_folders_in_one_order, .timeout = 300)
{
    struct tier first = tier[0];
    char bytes[PAYLOAD_MAX];
    size_t size = make_payload(bytes, model, 1);
    int status;

    tier[0].capacity = INT64_MAX;
    write_manifest();
    struct evp_store *store = open_store();
    tier[0] = tier[1];
    tier[1] = first;
    tier[1].capacity = INT64_MAX;
    free(manifest);
    manifest = file_join(dir, "other.jsonl");
    write_manifest();
    struct evp_store *other = open_store();
    pid_t child = fork();
    if (child == 0)
        _exit(put_many(store, "a", bytes, size));
    int failed = put_many(other, "b", bytes, size);
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    cr_assert(failed == 0 && status == 0, "%d, %d", failed, status);
    evp_close(store);
    evp_close(other);
}

/* A folder that another host fills is read, and nothing else. */
Test(evp_faults, leaves_alone_what_another_host_fills)
{
    struct evp_store *store = open_store();
    struct evp_error error;

    cr_assert(!put(store, "a", "slow", 1, &error) && !put(store, "b", "slow", 2, &error), "%s", error.text);
    evp_close(store);
    tier[1].read_only = true;
    write_manifest();
    store = open_store();
    cr_assert_str_eq(where(store, 1), "slow");
    cr_assert_eq(put(store, "c", "slow", 3, &error), EVICPRESS_ARGUMENT);
    cr_assert_str_eq(error.text, "tier 'slow' is filled by another host: this one only reads it");
    cr_assert_eq(evp_move(store, "a", "slow", &error), EVICPRESS_ARGUMENT);
    cr_assert_eq(evp_move(store, "a", "fast", &error), EVICPRESS_UNKNOWN, "its payload is not ours to move");
    cr_assert_eq(evp_remove(store, "a", &error), EVICPRESS_UNKNOWN);
    cr_assert_eq(put(store, "a", "fast", 1, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_str_eq(where(store, 1), "fast");
    cr_assert_eq(evp_remove(store, "a", &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_str_eq(where(store, 1), "slow");
    cr_assert_str_eq(where(store, 2), "slow");
    evp_close(store);
}

/* A thread that removes a context. Returns NULL, or its argument if a tier was busy. */
static void *remove_in_thread(void *arg)
{
    return evp_remove(arg, "b", NULL) == EVICPRESS_BUSY ? arg : NULL;
}

/* A store's threads wait in all no longer than it says, also for one that waits itself. */
Test(evp_faults, threads_wait_no_longer_than_told)
{
    enum { THREADS = 6 };
    const struct evp_options o = { .size = sizeof(o), .wait_s = 0.3 };
    struct evp_store *store;
    pthread_t thread[THREADS];
    char *path = file_join(folder[0], "evp-lock");
    int busy = 0;

    cr_assert_eq(evp_open_with(&store, manifest, &o, NULL), EVICPRESS_OK);
    cr_assert_eq(put(store, "a", "fast", 1, NULL), EVICPRESS_OK);
    int lock = open(path, O_RDWR);
    cr_assert(lock >= 0 && flock(lock, LOCK_EX) == 0);
    double start = clock_now();
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, remove_in_thread, store), 0);
    for (int i = 0; i < THREADS; i++) {
        void *was_busy;
        pthread_join(thread[i], &was_busy);
        busy += was_busy != NULL;
    }
    double took = clock_now() - start;
    cr_assert_eq(busy, THREADS);
    cr_assert(took > 0.25 && took < 1.2, "%g s", took); /* one after another: 1.8 s */
    close(lock);
    cr_assert_null(remove_in_thread(store));
    evp_close(store);
    free(path);
}

/* Another process that writes is waited for as long as the store says. */
Test(evp_faults, says_that_a_tier_is_busy)
{
    struct evp_store *store;
    struct evp_error error;
    char *path = file_join(folder[0], "evp-lock");

    cr_assert_eq(evp_open(&store, manifest, &error), EVICPRESS_OK);
    cr_assert_eq(put(store, "a", "fast", 1, &error), EVICPRESS_OK, "%s", error.text);
    int lock = open(path, O_RDWR);
    cr_assert(lock >= 0 && flock(lock, LOCK_EX) == 0);
    cr_assert_eq(put(store, "b", "fast", 2, &error), EVICPRESS_BUSY);
    cr_assert_str_eq(error.text, "tier 'fast': another process is changing it");
    cr_assert_str_eq(where(store, 1), "fast");
    close(lock);
    cr_assert_eq(put(store, "b", "fast", 2, &error), EVICPRESS_OK, "%s", error.text);
    evp_close(store);
    free(path);
}
