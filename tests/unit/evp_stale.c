/* Readers on a network file system, where another host's changes make open files stale. The C library's functions are
 * replaced here for all tests of this program; they differ only while a test says so.
 */
#include "tests/unit/put_world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t pread(int fd, void *to, size_t n, off_t offset);
int fstat(int fd, struct stat *st);

static atomic_int stale_reads, stale_looks; // the next ones fail
static atomic_bool removed_are_stale;       // an NFS server has no open files

/* false: with errno. */
static bool counts_down(atomic_int *calls)
{
    if (*calls <= 0)
        return false;
    --*calls;
    errno = ESTALE;
    return true;
}

int fstat(int fd, struct stat *st)
{
    return counts_down(&stale_looks) ? -1 : fstatat(fd, "", st, AT_EMPTY_PATH);
}

ssize_t pread(int fd, void *to, size_t n, off_t offset)
{
    struct stat st;

    if (removed_are_stale && !fstat(fd, &st) && st.st_nlink == 0) {
        errno = ESTALE;
        return -1;
    }
    return counts_down(&stale_reads) ? -1 : syscall(SYS_pread64, fd, to, n, offset);
}

TestSuite(evp_stale, .init = make_store, .fini = remove_store);

Test(evp_stale, payloads_are_fetched_again)
{
    struct evp_store *store = open_store();
    struct evp_payload *payload;
    struct evp_error error;
    char bytes[PAYLOAD_MAX], want[PAYLOAD_MAX];

    make_payload(want, model, 1);
    cr_assert_eq(put(store, "a", "fast", 1, &error), EVICPRESS_OK, "%s", error.text);
    struct evp_prefix found = find(store, 1);
    for (int look = 0; look < 2; look++) {
        atomic_int *stale = look ? &stale_looks : &stale_reads;
        *stale = 1;
        cr_assert_eq(evp_fetch(store, &found, bytes, sizeof(bytes), &error), EVICPRESS_OK, "%s", error.text);
        cr_assert_arr_eq(bytes, want, found.size);
        *stale = 1;
        cr_assert_eq(evp_payload_open(&payload, store, &found, &error), EVICPRESS_OK, "%s", error.text);
        evp_payload_close(payload);
        *stale = 100;
        cr_assert_eq(evp_fetch(store, &found, bytes, sizeof(bytes), &error), EVICPRESS_GONE);
        cr_assert_eq(evp_payload_open(&payload, store, &found, &error), EVICPRESS_GONE);
        cr_assert_null(payload);
        *stale = 0;
    }
    evp_close(store);
}

Test(evp_stale, open_payloads_are_opened_again)
{
    struct evp_store *store = open_store();
    struct evp_range keys = { .tensor = "layers.0.k" };
    struct evp_location before, after;
    struct evp_payload *payload;
    struct evp_error error;
    char bytes[TENSOR];

    cr_assert_eq(put(store, "a", "fast", 1, &error), EVICPRESS_OK, "%s", error.text);
    struct evp_prefix found = find(store, 1);
    cr_assert_eq(evp_payload_open(&payload, store, &found, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_eq(evp_locate(payload, NULL, &before, &error), EVICPRESS_OK);
    stale_reads = 1;
    cr_assert_eq(evp_fetch_range(payload, &keys, bytes, TENSOR, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_eq(bytes[5], 6);
    cr_assert(!evp_locate(payload, NULL, &after, &error) && before.fd == after.fd);
    cr_assert_eq(evp_remove(store, "a", &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_eq(evp_fetch_range(payload, &keys, bytes, TENSOR, &error), EVICPRESS_OK, "this host has it open");
    removed_are_stale = true;
    cr_assert_eq(evp_fetch_range(payload, &keys, bytes, TENSOR, &error), EVICPRESS_GONE);
    cr_assert(strstr(error.text, "Stale file handle"), "%s", error.text);
    removed_are_stale = false;
    evp_payload_close(payload);
    evp_close(store);
}

Test(evp_stale, indexes_are_read_again)
{
    struct evp_store *store = open_store(), *other = open_store();
    struct evp_error error;
    struct evp_tier fast;

    for (int i = 1; i <= 2; i++) {
        cr_assert_eq(put(other, "a", "fast", i, &error), EVICPRESS_OK, "%s", error.text);
        stale_reads = 1;
        cr_assert_eq(evp_refresh(store, &error), 1, "%s", error.text);
        cr_assert_str_eq(where(store, i), "fast");
    }
    cr_assert_eq(put(other, "a", "fast", 3, &error), EVICPRESS_OK, "%s", error.text);
    stale_reads = 2;
    cr_assert_eq(evp_refresh(store, &error), 1, "%s", error.text);
    cr_assert(evp_get_tier(store, 0, &fast, &error) == 1 && fast.code == EVICPRESS_IO);
    cr_assert_str_eq(where(store, 2), "fast");
    cr_assert_eq(evp_refresh(store, &error), 1, "it tries again: %s", error.text);
    cr_assert_str_eq(where(store, 3), "fast");
    evp_close(store);
    evp_close(other);
}
