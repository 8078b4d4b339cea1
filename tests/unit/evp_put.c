/* Stores of the installed library that are changed by it: payloads put, moved, removed and read in parts; what is
 * refused; processes that fork meanwhile.
 */
#include "tests/unit/put_world.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(evp_put, .init = make_store, .fini = remove_store);

/* ---- changes ------------------------------------------------------------------ */

Test(evp_put, puts_moves_and_removes)
{
    struct evp_store *store = open_store();
    struct evp_error error;
    char bytes[PAYLOAD_MAX], want[PAYLOAD_MAX];

    cr_assert_eq(put(store, "a", "fast", 1, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_str_eq(where(store, 1), "fast");
    struct evp_prefix found = find(store, 1);
    cr_assert(found.n_tokens == T && found.size == make_payload(want, model, 1));
    cr_assert_eq(evp_fetch(store, &found, bytes, sizeof(bytes), &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_arr_eq(bytes, want, found.size);
    cr_assert_eq(evp_move(store, "a", "slow", &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_str_eq(where(store, 1), "slow");
    cr_assert_eq(evp_fetch(store, &found, bytes, sizeof(bytes), &error), EVICPRESS_OK,
                 "what was found is elsewhere now");
    cr_assert_eq(evp_move(store, "a", "slow", &error), EVICPRESS_OK, "it is there: nothing to do");
    cr_assert_eq(put(store, "a", "slow", 1, &error), EVICPRESS_OK, "the same again");
    cr_assert_eq(put(store, "a", "fast", 2, &error), EVICPRESS_OK, "other tokens under the same id");
    cr_assert_str_eq(where(store, 1), "");
    cr_assert_str_eq(where(store, 2), "fast");
    cr_assert_eq(evp_remove(store, "a", &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_str_eq(where(store, 2), "");
    cr_assert_eq(evp_fetch(store, &found, bytes, sizeof(bytes), &error), EVICPRESS_GONE);
    cr_assert(evp_remove(store, "a", &error) == EVICPRESS_UNKNOWN &&
              evp_move(store, "a", "fast", &error) == EVICPRESS_UNKNOWN);
    evp_close(store);
}

/* Two payloads fit the fast tier, and what is replaced or moved away counts no longer. */
Test(evp_put, keeps_to_the_capacity)
{
    struct evp_store *store = open_store();
    struct evp_error error;

    cr_assert(!put(store, "a", "fast", 1, &error) && !put(store, "b", "fast", 2, &error), "%s", error.text);
    cr_assert_eq(put(store, "c", "fast", 3, &error), EVICPRESS_FULL);
    cr_assert(strstr(error.text, "tier 'fast' lacks 256 bytes for context 'c', which takes 256"), "%s", error.text);
    cr_assert_eq(put(store, "b", "fast", 4, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert(!put(store, "c", "slow", 3, &error) && evp_move(store, "c", "fast", &error) == EVICPRESS_FULL);
    cr_assert_str_eq(where(store, 3), "slow");
    cr_assert_eq(evp_remove(store, "a", &error), EVICPRESS_OK);
    cr_assert_eq(evp_move(store, "c", "fast", &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_str_eq(where(store, 3), "fast");
    evp_close(store);
    memcpy(tier[0].pool, "disk", 5); /* now both tiers share what the fast one has */
    memcpy(tier[1].pool, "disk", 5);
    tier[1].capacity = tier[0].capacity;
    write_manifest();
    store = open_store();
    cr_assert_eq(put(store, "d", "slow", 5, &error), EVICPRESS_FULL);
    cr_assert_eq(evp_move(store, "c", "slow", &error), EVICPRESS_OK, "%s", error.text);
    evp_close(store);
}

Test(evp_put, refuses_what_is_not_what_it_says)
{
    static const char other[] = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
    struct evp_store *store = open_store();
    struct evp_error error;
    char bytes[PAYLOAD_MAX];
    struct evp_put_args p = { .id = "a", .tier = "fast", .payload = bytes, .size = make_payload(bytes, other, 1) };

    cr_assert_eq(evp_put(store, &p, &error), EVICPRESS_ARGUMENT);
    cr_assert(strstr(error.text, "another model"), "%s", error.text);
    p.size = make_payload(bytes, model, 1);
    bytes[p.size - 1] ^= 1;
    cr_assert_eq(evp_put(store, &p, &error), EVICPRESS_ARGUMENT);
    cr_assert(strstr(error.text, "damaged"), "%s", error.text);
    bytes[p.size - 1] ^= 1;
    p.size--;
    cr_assert_eq(evp_put(store, &p, &error), EVICPRESS_ARGUMENT);
    p.size++;
    p.id = "a\n";
    cr_assert_eq(evp_put(store, &p, &error), EVICPRESS_ARGUMENT, "%s", error.text);
    cr_assert(strstr(error.text, "'a?'"), "%s", error.text);
    p.id = "a";
    p.tier = "far";
    cr_assert_eq(evp_put(store, &p, &error), EVICPRESS_ARGUMENT);
    p.tier = "nowhere";
    cr_assert_eq(evp_put(store, &p, &error), EVICPRESS_UNKNOWN);
    p.tier = "fast";
    p.reserved[6] = 1;
    cr_assert_eq(evp_put(store, &p, NULL), EVICPRESS_ARGUMENT);
    cr_assert(!file_is_dir(folder[0]), "nothing was made");
    evp_close(store);
}

/* ---- parts ------------------------------------------------------------------------- */

static struct evp_payload *open_payload(struct evp_store *store, int seed)
{
    struct evp_prefix found = find(store, seed);
    struct evp_payload *payload;
    struct evp_error error;

    cr_assert_eq(evp_payload_open(&payload, store, &found, &error), EVICPRESS_OK, "%s", error.text);
    return payload;
}

Test(evp_put, tells_where_tensors_lie)
{
    struct evp_store *store = open_store();
    struct evp_location l, whole, third;
    struct evp_error error;
    char bytes[TENSOR];

    cr_assert_eq(put(store, "a", "fast", 1, NULL), EVICPRESS_OK);
    struct evp_payload *payload = open_payload(store, 1);
    cr_assert_eq(evp_remove(store, "a", NULL), EVICPRESS_OK, "what is open stays readable");
    cr_assert(!evp_locate(payload, "layers.0.v", &l, &error) && !evp_locate(payload, NULL, &whole, &error));
    cr_assert(l.n_dims == 3 && l.dim[0] == G && l.dim[1] == ROWS && l.dim[2] == K && l.size == TENSOR);
    cr_assert_str_eq(l.type, "BF16");
    cr_assert(whole.offset == 0 && whole.size == l.offset + l.size && whole.n_dims == 0);
    cr_assert_eq(pread(l.fd, bytes, TENSOR, (off_t)l.offset), TENSOR);
    for (int i = 0; i < TENSOR; i++)
        cr_assert_eq(bytes[i], (char)(i * 3 + 1));
    cr_assert_eq(evp_locate(payload, "layers.1.v", &l, &error), EVICPRESS_UNKNOWN);
    cr_assert(evp_locate_at(payload, 2, &third, &error) == 1 && evp_locate_at(payload, 3, &l, &error) == 0);
    cr_assert_str_eq(third.name, "layers.0.v");
    evp_payload_close(payload);
    evp_close(store);
}

Test(evp_put, reads_any_range_of_a_tensor)
{
    struct evp_store *store = open_store();
    struct evp_error error;
    char got[TENSOR];
    enum { ROW = K * 2, HEAD = ROWS * ROW };

    cr_assert_eq(put(store, "a", "fast", 1, NULL), EVICPRESS_OK);
    struct evp_payload *payload = open_payload(store, 1);
    for (int first = 0; first < G; first++)
        for (int end = first + 1; end <= G; end++)
            for (int row = 0; row < ROWS; row++)
                for (int last = row + 1; last <= ROWS; last++) {
                    struct evp_range r = { "layers.0.k", first, end - first, row, last - row, EVICPRESS_VERIFY, { 0 } };
                    size_t one = (size_t)(last - row) * ROW, n = (size_t)(end - first) * one;
                    cr_assert_eq(evp_fetch_range(payload, &r, got, n, &error), EVICPRESS_OK, "%s", error.text);
                    for (size_t i = 0; i < n; i++)
                        cr_assert_eq(got[i], (char)((first + (int)(i / one)) * HEAD + row * ROW + (int)(i % one) + 1));
                    cr_assert_eq(evp_fetch_range(payload, &r, got, n - 1, &error), EVICPRESS_SMALL);
                }
    struct evp_range all = { .tensor = "layers.0.k" };
    cr_assert_eq(evp_fetch_range(payload, &all, got, TENSOR, &error), EVICPRESS_OK);
    static const struct evp_range bad[] = {
        { .tensor = "layers.0.k", .first = -1 },       { .tensor = "layers.0.k", .first = G + 1 },
        { .tensor = "layers.0.k", .n = G + 1 },        { .tensor = "layers.0.k", .first = 1, .n = INT64_MAX },
        { .tensor = "layers.0.k", .n = INT64_MIN },    { .tensor = "layers.0.k", .first_row = ROWS, .n_rows = 1 },
        { .tensor = "layers.0.k", .reserved = { 1 } }, { .tensor = "layers.0.k", .verify = 2 },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_assert_eq(evp_fetch_range(payload, &bad[i], got, TENSOR, &error), EVICPRESS_ARGUMENT, "%zu", i);
    cr_assert_eq(evp_fetch_range(payload, &(struct evp_range){ .tensor = NULL }, got, TENSOR, &error),
                 EVICPRESS_UNKNOWN);
    evp_payload_close(payload);
    evp_close(store);
}

/* A damaged tensor is told from its neighbour, in parts of it too, unless the caller trusts the disk. */
Test(evp_put, verifies_each_tensor)
{
    struct evp_store *store = open_store();
    struct evp_range part = { .tensor = "layers.0.v", .first = 1, .n = 1 }, all = { .tensor = "layers.0.v" },
                     other = { .tensor = "layers.0.k" };
    struct evp_location l;
    struct evp_error error;
    char got[PAYLOAD_MAX], name[64];

    cr_assert_eq(put(store, "a", "fast", 1, NULL), EVICPRESS_OK);
    struct evp_payload *payload = open_payload(store, 1);
    cr_assert_eq(evp_locate(payload, "layers.0.v", &l, NULL), EVICPRESS_OK);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", l.fd);
    int fd = open(name, O_RDWR);
    cr_assert(fd >= 0 && pwrite(fd, "!", 1, (off_t)l.offset) == 1); /* of head 0 */
    cr_assert_eq(evp_fetch_range(payload, &part, got, sizeof(got), &error), EVICPRESS_DAMAGED);
    cr_assert(strstr(error.text, "tensor 'layers.0.v' has checksum"), "%s", error.text);
    cr_assert_eq(evp_fetch_range(payload, &all, got, sizeof(got), &error), EVICPRESS_DAMAGED);
    cr_assert_eq(evp_fetch_range(payload, &other, got, sizeof(got), &error), EVICPRESS_OK, "%s", error.text);
    part.verify = all.verify = EVICPRESS_TRUST;
    cr_assert(!evp_fetch_range(payload, &part, got, sizeof(got), &error) &&
              !evp_fetch_range(payload, &all, got, sizeof(got), &error));
    cr_assert_eq(ftruncate(fd, (off_t)l.offset + 1), 0);
    cr_assert_eq(evp_fetch_range(payload, &all, got, sizeof(got), &error), EVICPRESS_IO,
                 "a file that shrinks is no signal");
    evp_payload_close(payload);
    struct evp_prefix found = find(store, 1);
    cr_assert_eq(evp_payload_open(&payload, store, &found, &error), EVICPRESS_DAMAGED);
    cr_assert_null(payload);
    close(fd);
    evp_close(store);
}

Test(evp_put, fetches_without_verifying_when_told)
{
    struct evp_options trust = { .size = sizeof(trust), .verify = EVICPRESS_TRUST },
                       bad = { .size = sizeof(bad), .verify = 7 };
    struct evp_store *store = open_store(), *trusting;
    struct evp_error error;
    struct evp_location l;
    char got[PAYLOAD_MAX], name[64];

    cr_assert_eq(put(store, "a", "fast", 1, NULL), EVICPRESS_OK);
    struct evp_payload *payload = open_payload(store, 1);
    cr_assert_eq(evp_locate(payload, "layers.0.v", &l, NULL), EVICPRESS_OK);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", l.fd);
    int fd = open(name, O_RDWR);
    cr_assert(fd >= 0 && pwrite(fd, "!", 1, (off_t)l.offset) == 1);
    struct evp_prefix found = find(store, 1);
    cr_assert_eq(evp_fetch(store, &found, got, sizeof(got), &error), EVICPRESS_DAMAGED);
    cr_assert_eq(evp_open_with(&trusting, manifest, &trust, &error), EVICPRESS_OK);
    cr_assert_eq(evp_fetch(trusting, &found, got, sizeof(got), &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_eq(got[l.offset], '!');
    evp_close(trusting);
    cr_assert_eq(evp_open_with(&trusting, manifest, &bad, &error), EVICPRESS_ARGUMENT);
    bad = (struct evp_options){ .size = sizeof(bad), .wait_s = -1 };
    cr_assert_eq(evp_open_with(&trusting, manifest, &bad, &error), EVICPRESS_ARGUMENT);
    evp_payload_close(payload);
    close(fd);
    evp_close(store);
}

/* ---- forks --------------------------------------------------------------------------- */

static atomic_bool stop;

/* Finds, fetches, and makes other threads refresh. */
static void *read_on(void *arg)
{
    struct evp_store *store = arg;
    char bytes[PAYLOAD_MAX];

    while (!stop) {
        struct evp_prefix found = find(store, 1);
        (void)!evp_fetch(store, &found, bytes, sizeof(bytes), NULL);
        (void)!evp_refresh(store, NULL);
    }
    return NULL;
}

static void *write_on(void *arg)
{
    for (int i = 2; !stop; i++)
        (void)!put(arg, "b", "slow", i, NULL);
    return NULL;
}

/* What a child does with the store that its parent opened. Returns its exit status. */
static int use_in_child(struct evp_store *store)
{
    char bytes[PAYLOAD_MAX];
    struct evp_prefix found = find(store, 1);
    struct evp_error error;

    alarm(30); /* a lock that nobody gives back would end here */
    int code = evp_fetch(store, &found, bytes, sizeof(bytes), &error) || evp_refresh(store, &error) < 0;
    if (!code) {
        struct evp_put_args p = { .id = "c", .tier = "slow", .payload = bytes, .size = found.size };
        int done = evp_put(store, &p, &error);
        code = done != EVICPRESS_OK && (done != EVICPRESS_IO || !strstr(error.text, "was forked while another thread"));
    }
    if (code)
        fprintf(stderr, "child: %s\n", error.text);
    evp_close(store);
    return code;
}

Test(evp_put, goes_on_in_forked_processes, .timeout = 120)
{
    enum { FORKS = 60, THREADS = 4 };
    struct evp_store *store = open_store();
    struct evp_error error;
    pthread_t thread[THREADS];
    int status, failed = 0;

#ifdef __SANITIZE_ADDRESS__
    cr_skip_test("the address sanitizer's malloc() may hang in the child of a process with threads");
#endif
    cr_assert_eq(put(store, "a", "fast", 1, &error), EVICPRESS_OK, "%s", error.text);
    stop = false;
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, i ? read_on : write_on, store), 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(use_in_child(store));
        cr_assert(child > 0 && waitpid(child, &status, 0) == child);
        failed += status != 0;
    }
    stop = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    cr_assert_eq(failed, 0, "%d of %d children", failed, FORKS);
    evp_close(store);
}

/* Forks children that live until `alive` is closed while another thread writes, and dies. */
static void die_with_children(const int alive[2])
{
    enum { CHILDREN = 4, MS = 1000 };
    struct evp_store *store = open_store();
    pthread_t thread;
    char byte;

    stop = false;
    cr_assert_eq(pthread_create(&thread, NULL, write_on, store), 0);
    usleep(20 * MS);
    for (int i = 0; i < CHILDREN; i++) {
        if (fork() == 0) {
            close(alive[1]);
            _exit(read(alive[0], &byte, 1) != 0);
        }
        usleep(MS);
    }
    raise(SIGKILL);
}

Test(evp_put, leaves_no_lock_to_children_of_a_killed_process, .timeout = 120)
{
    enum { ROUNDS = 8 };
    const struct evp_options o = { .size = sizeof(o), .wait_s = 1 };
    struct evp_store *store;
    int alive[2], status, busy = 0;

#ifdef __SANITIZE_ADDRESS__
    cr_skip_test("the address sanitizer's malloc() may hang in the child of a process with threads");
#endif
    cr_assert_eq(pipe(alive), 0);
    for (int i = 0; i < ROUNDS; i++) {
        pid_t killed = fork();
        if (killed == 0)
            die_with_children(alive);
        cr_assert(killed > 0 && waitpid(killed, &status, 0) == killed);
        cr_assert_eq(evp_open_with(&store, manifest, &o, NULL), EVICPRESS_OK);
        busy += put(store, "c", "slow", 9, NULL) == EVICPRESS_BUSY;
        evp_close(store);
    }
    close(alive[1]);
    close(alive[0]);
    cr_assert_eq(busy, 0, "%d of %d times", busy, ROUNDS);
}
