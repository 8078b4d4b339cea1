/* Every medium keeps the same contract: what was put is read back, whole and in parts, and what is not there is told
 * from what cannot be reached.
 */
#include "base/file.h"
#include "loader/store/folder.h"
#include "loader/store/medium.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/evp-unit-XXXXXX";
static const char one[] = "evp-payloads/01/01010101010101010101010101010101";
static const char two[] = "evp-payloads/01/0101010101010101010101010101ffff";

static struct medium open_file_medium(void)
{
    static struct tier tier = { .name = "ssd", .kind = TIER_FILE };
    struct medium m;
    struct err err;
    int folder;

    cr_assert_not_null(mkdtemp(dir));
    tier.uri = dir;
    cr_assert_eq(folder_open(&folder, dir, FOLDER_WRITE, geteuid(), &err), 0, "%s", err.msg);
    cr_assert_eq(medium_open(&m, &(struct medium_place){ .tier = &tier, .folder = folder }, &err), 0, "%s", err.msg);
    return m;
}

static void remove_dir(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    cr_assert_eq(system(command), 0);
}

static char *noise(size_t n)
{
    char *bytes = malloc(n + 1);

    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 7 + (i >> 12));
    return bytes;
}

static void check_ranges(const struct medium *m, const char *bytes, size_t n)
{
    const uint64_t at[] = { 0, n / 3, n / 2, n - 1 };
    char *read = malloc(n + 1);
    struct blob b;
    struct err err;

    cr_assert_eq(medium_get(m, one, (int64_t)n, &b, &err), 0, "%s", err.msg);
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        size_t left = n - (size_t)at[i];
        cr_assert_eq(blob_read(&b, read, left, at[i], &err), 0, "%s", err.msg);
        cr_assert_eq(memcmp(read, bytes + at[i], left), 0);
        cr_assert_eq(blob_read(&b, read, 1, at[i], &err), 0, "%s", err.msg);
        cr_assert_eq(*read, bytes[at[i]]);
    }
    cr_assert_eq(blob_read(&b, read, n + 1, 0, &err), ERR_IO, "it ends");
    blob_close(&b);
    free(read);
}

static int count(void *arg, const struct medium_object *object, struct err *err)
{
    (void)err;
    *(int *)arg += strcmp(object->key, one) == 0 ? 1 : 100;
    return 0;
}

static void check_size(const struct medium *m, size_t n)
{
    const struct medium_object object[] = { { one, (int64_t)n }, { two, 1 }, { one, (int64_t)n + 1 } };
    char *bytes = noise(n), sum[XXH3_HEX], want[XXH3_HEX];
    struct blob from = blob_of_bytes(bytes, n), b;
    bool there[3];
    int found = 0;
    int64_t size;
    struct err err;

    cr_assert_eq(m->driver->put(m, one, &from, &err), 0, "%s", err.msg);
    cr_assert_eq(m->driver->put(m, one, &from, &err), 0, "%s", err.msg); /* what a killed writer has left */
    cr_assert_eq(m->driver->flush(m, one, &err), 0, "%s", err.msg);
    cr_assert_eq(m->driver->flush(m, NULL, &err), 0, "%s", err.msg);
    cr_assert_eq(m->driver->look(m, object, 3, there, &err), 0, "%s", err.msg);
    cr_assert(there[0] && !there[1] && !there[2]);
    cr_assert_neq(medium_get(m, one, (int64_t)n + 1, &b, &err), 0); /* it has another size */
    check_ranges(m, bytes, n);
    cr_assert_eq(medium_get(m, one, (int64_t)n, &b, &err), 0, "%s", err.msg);
    cr_assert_eq(blob_checksum(&b, &size, sum, &err), 0, "%s", err.msg);
    blob_close(&b);
    digest_xxh3_hex(bytes, n, want);
    cr_assert_eq(size, (int64_t)n);
    cr_assert_str_eq(sum, want);
    cr_assert_eq(m->driver->each(m, count, &found, &err), 0, "%s", err.msg);
    cr_assert_eq(found, 1);
    cr_assert_eq(m->driver->remove(m, object, &err), 0, "%s", err.msg);
    cr_assert_eq(m->driver->remove(m, object, &err), 0, "%s", err.msg);
    cr_assert_eq(m->driver->look(m, object, 1, there, &err), 0, "%s", err.msg);
    cr_assert(!there[0]);
    cr_assert_eq(medium_get(m, one, (int64_t)n, &b, &err), MEDIUM_GONE);
    free(bytes);
}

/* From a file, and from another object. */
static void check_sources_of(const struct medium *m, size_t n)
{
    char *bytes = noise(n), *read = malloc(n);
    char path[64];
    struct blob b, from;
    struct err err;

    snprintf(path, sizeof(path), "%s.source", dir);
    cr_assert_eq(file_write(path, bytes, n, &err), 0, "%s", err.msg);
    int fd = open(path, O_RDONLY);
    from = blob_of_file(fd);
    cr_assert_eq(m->driver->put(m, one, &from, &err), 0, "%s", err.msg);
    cr_assert_eq(medium_get(m, one, (int64_t)n, &from, &err), 0, "%s", err.msg);
    cr_assert_eq(m->driver->put(m, two, &from, &err), 0, "%s", err.msg);
    blob_close(&from);
    cr_assert_eq(medium_get(m, two, (int64_t)n, &b, &err), 0, "%s", err.msg);
    cr_assert_eq(blob_read(&b, read, n, 0, &err), 0, "%s", err.msg);
    cr_assert_eq(memcmp(read, bytes, n), 0);
    blob_close(&b);
    close(fd);
    unlink(path);
    free(bytes);
    free(read);
}

static void check_sources(const struct medium *m)
{
    const size_t size[] = { 1, BLOB_SMALL - 1, BLOB_SMALL, BLOB_SMALL + 1, 3 << 20 };

    for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++)
        check_sources_of(m, size[i]);
}

static void check_medium(const struct medium *m)
{
    static const size_t size[] = { 1, 65511, 65512, 65513, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 9 << 20 };

    for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++)
        check_size(m, size[i]);
    check_sources(m);
}

Test(medium, file)
{
    struct medium m = open_file_medium();
    int folder = m.folder;

    check_medium(&m);
    medium_close(&m);
    close(folder);
    remove_dir();
}

/* ---- redis --------------------------------------------------------------------------------- */

static pid_t server;
static char uri[64];

/* A port that nobody has at the moment. */
static int find_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    cr_assert(fd >= 0 && bind(fd, (struct sockaddr *)&at, n) == 0 && getsockname(fd, (struct sockaddr *)&at, &n) == 0);
    close(fd);
    return ntohs(at.sin_port);
}

static void start_redis(void)
{
    char port[16];

    snprintf(port, sizeof(port), "%d", find_port());
    snprintf(uri, sizeof(uri), "redis://127.0.0.1:%s", port);
    server = fork();
    if (server)
        return;
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execlp("redis-server", "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", "/tmp", NULL);
    _exit(127);
}

static void stop_redis(void)
{
    if (server <= 0)
        return;
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    server = 0;
}

static struct medium open_redis(const uint8_t store[OBJECT_ID], const struct medium *like)
{
    static struct tier tier = { .name = "far", .kind = TIER_REDIS };
    const struct medium_place place = { .tier = &tier, .folder = -1, .store = store, .like = like };
    struct medium m;
    struct err err;

    tier.uri = uri;
    cr_assert_eq(medium_open(&m, &place, &err), 0, "%s", err.msg);
    return m;
}

Test(medium, redis, .init = start_redis, .fini = stop_redis)
{
    static const uint8_t store[OBJECT_ID] = { 1 }, other[OBJECT_ID] = { 2 };
    struct medium m = open_redis(store, NULL);
    struct err err;
    int tries = 0;

    while (m.driver->reach(&m, &err) && tries++ < 20) { /* it is not tried again at once */
        if (waitpid(server, NULL, WNOHANG) == server) {
            server = 0;
            cr_skip_test("there is no redis-server");
        }
        usleep(200000);
    }
    cr_assert(tries < 20, "%s", err.msg);
    check_medium(&m);
    /* Another store on the server sees nothing of it; what is open needs no medium. */
    const size_t n = 2000000; // of two pieces: it is read when it is asked for
    char *bytes = noise(n);
    struct blob from = blob_of_bytes(bytes, n), b;
    struct medium o = open_redis(other, &m);
    int found = 0;
    cr_assert_eq(m.driver->put(&m, one, &from, &err), 0, "%s", err.msg);
    cr_assert_eq(medium_get(&m, one, (int64_t)n, &b, &err), 0, "%s", err.msg);
    medium_close(&m);
    cr_assert_eq(o.driver->each(&o, count, &found, &err), 0, "%s", err.msg);
    cr_assert_eq(found, 0);
    cr_assert_eq(blob_read(&b, bytes, 100, n - 100, &err), 0, "%s", err.msg);
    medium_close(&o);
    stop_redis();
    cr_assert_eq(blob_read(&b, bytes, 100, n - 100, &err), ERR_NET);
    blob_close(&b);
    free(bytes);
}

/* ---- shared objects -------------------------------------------------------------------------- */

static struct medium open_kind(enum tier_kind kind)
{
    static char nowhere[] = "memory://";
    static struct tier tier = { .name = "x", .uri = nowhere };
    struct medium m;
    struct err err;

    tier.kind = kind;
    cr_assert_eq(medium_open(&m, &(struct medium_place){ .tier = &tier, .folder = -1 }, &err), 0, "%s", err.msg);
    return m;
}

/* One that nothing but its file's name tells of (tests/plugins/lmcache.c). */
Test(medium, of_a_shared_object)
{
    struct medium m = open_kind(TIER_LMCACHE);

    cr_assert_str_eq(m.driver->name, "memory");
    check_medium(&m);
    medium_close(&m);
}

static void *open_in_thread(void *arg)
{
    struct medium m = open_kind(TIER_LMCACHE);

    *(const struct medium_driver **)arg = m.driver;
    medium_close(&m);
    return NULL;
}

Test(medium, of_a_shared_object_that_threads_open)
{
    const struct medium_driver *got[8];
    pthread_t thread[8];

    for (int i = 0; i < 8; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, open_in_thread, &got[i]), 0);
    for (int i = 0; i < 8; i++)
        cr_assert_eq(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 8; i++)
        cr_assert(got[i] && got[i] == got[0] && got[i]->read);
}

/* Whatever is asked of one whose object is missing says so. */
Test(medium, of_a_shared_object_that_is_missing)
{
    const struct medium_object object = { one, 1 };
    struct medium m = open_kind(TIER_GPU);
    struct blob from = blob_of_bytes("x", 1), b;
    struct err err[8];
    int64_t bytes;
    uint64_t number;
    bool there;
    int found = 0;

    const int code[] = { m.driver->reach(&m, &err[0]),
                         m.driver->put(&m, one, &from, &err[1]),
                         m.driver->flush(&m, NULL, &err[2]),
                         medium_get(&m, one, 1, &b, &err[3]),
                         m.driver->look(&m, &object, 1, &there, &err[4]),
                         m.driver->remove(&m, &object, &err[5]),
                         m.driver->space(&m, &number, &bytes, &err[6]),
                         m.driver->each(&m, count, &found, &err[7]) };
    for (size_t i = 0; i < sizeof(code) / sizeof(*code); i++) {
        cr_expect_eq(code[i], ERR_DEVICE);
        cr_expect(strstr(err[i].msg, "the gpu medium is not installed: neither '/"), "%s", err[i].msg);
        cr_expect(strstr(err[i].msg, "/lib/evp/evp-gpu.so' exists"), "%s", err[i].msg);
    }
    medium_close(&m);
}
