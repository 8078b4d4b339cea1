/* redis.c - any bytes as what a Redis server answers: everything that the medium asks of a server ends, with what was
 * asked for or a sentence, and takes no step outside of what came.
 *
 * The first byte says which functions are called, bit by bit. Then come the connections in the order in which they are
 * made, each as its length (3 bytes, little-endian) and what the server says there before it closes; one that has no
 * bytes left cannot be made. The program has the function of hiredis that connects, so nothing leaves it, wherever a
 * reply redirects to.
 *
 * EVP_FUZZ_RECORD=PORT of a real server on 127.0.0.1 makes an input: with it, the program asks that server what the
 * first byte of its input says, and prints that byte and what the server answers.
 */
#include "base/buf.h"
#include "loader/store/medium.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { CONNECTIONS = 64, HEAD = 3, SIZE = 70000, OBJECTS = 3, SEND_BYTES = 1 << 20 };

static struct {
    const uint8_t *at; // what is left of the input
    size_t n;
    int peer[CONNECTIONS], n_peers; // the servers' ends, which read nothing
} wire;

/* ---- connections ------------------------------------------------------------------- */

/* Says what the server of the next connection has to say. false: there is none. */
static bool speak(int fd)
{
    if (wire.n < HEAD || wire.n_peers == CONNECTIONS)
        return false;
    size_t n = (size_t)wire.at[0] + ((size_t)wire.at[1] << 8) + ((size_t)wire.at[2] << 16);
    n = n < wire.n - HEAD ? n : wire.n - HEAD;
    if (n && send(fd, wire.at + HEAD, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        abort();
    wire.at += HEAD + n;
    wire.n -= HEAD + n;
    shutdown(fd, SHUT_WR);
    wire.peer[wire.n_peers++] = fd;
    return true;
}

/* Bytes between the program and a real server, which a thread carries and writes down. */
struct relay {
    pthread_t thread;
    int ours, server;
    struct buf said;
};

static struct relay relay[CONNECTIONS];
static int n_relays;

/* Carries what has come on; false: it has ended. */
static bool carry(int from, int to, struct buf *said)
{
    static _Thread_local char bytes[1 << 16];
    ssize_t n = recv(from, bytes, sizeof(bytes), 0);

    if (said && n > 0)
        buf_add(said, bytes, (size_t)n);
    return n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static void *relay_bytes(void *arg)
{
    struct relay *r = arg;
    struct pollfd p[2] = { { .fd = r->ours, .events = POLLIN }, { .fd = r->server, .events = POLLIN } };

    while (poll(p, 2, -1) > 0)
        if ((p[0].revents && !carry(r->ours, r->server, NULL)) ||
            (p[1].revents && !carry(r->server, r->ours, &r->said)))
            break;
    close(r->ours);
    close(r->server);
    return NULL;
}

static bool record(int fd, int port)
{
    struct relay *r = &relay[n_relays++];
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *r = (struct relay){ .ours = fd, .server = socket(AF_INET, SOCK_STREAM, 0) };
    if (connect(r->server, (const struct sockaddr *)&at, sizeof(at)) ||
        pthread_create(&r->thread, NULL, relay_bytes, r))
        abort();
    return true;
}

static void print_recorded(uint8_t what)
{
    putchar(what);
    for (int i = 0; i < n_relays; i++) {
        struct relay *r = &relay[i];
        pthread_join(r->thread, NULL);
        for (int k = 0; k < HEAD; k++)
            putchar((int)(r->said.n >> 8 * k & 0xff));
        fwrite(buf_str(&r->said), 1, r->said.n, stdout);
        buf_release(&r->said);
    }
    n_relays = 0;
}

/* In place of hiredis's. */
redisContext *redisConnectWithTimeout(const char *ip, int port, const struct timeval tv)
{
    const char *real = getenv("EVP_FUZZ_RECORD");
    int pair[2], capacity = SEND_BYTES;

    (void)ip;
    (void)port;
    (void)tv;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        abort();
    for (int i = 0; i < 2; i++)
        setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &capacity, sizeof(capacity));
    redisContext *c = redisConnectFd(pair[0]);
    if (real ? record(pair[1], (int)strtol(real, NULL, 10)) : speak(pair[1]))
        return c;
    close(pair[1]);
    c->err = REDIS_ERR_IO;
    return c;
}

/* ---- what is asked ------------------------------------------------------------------- */

static int see(void *arg, const struct medium_object *object, struct err *err)
{
    uint8_t id[OBJECT_ID];

    (void)arg;
    (void)err;
    if (!object_parse(object->key, id) || object->size <= 0)
        abort();
    return 0;
}

static void read_some(const struct medium *m, const char *key)
{
    static char bytes[SIZE];
    struct blob b;
    struct err err;
    size_t n = 1000;

    if (medium_get(m, key, SIZE, &b, &err))
        return;
    if (!blob_read(&b, bytes, SIZE, 0, &err) && !blob_read(&b, bytes, n, SIZE - n, &err))
        (void)!blob_read(&b, bytes, n, 100, &err);
    blob_close(&b);
}

static void ask(const struct medium *m, int what)
{
    static char bytes[SIZE];
    static const char *const key[OBJECTS] = { "evp-payloads/01/01010101010101010101010101010101",
                                              "evp-payloads/02/02010101010101010101010101010101",
                                              "evp-payloads/03/03010101010101010101010101010101" };
    const struct medium_object object[OBJECTS] = { { key[0], SIZE }, { key[1], 1 }, { key[2], 3000000 } };
    const struct blob from = blob_of_bytes(bytes, SIZE);
    bool there[OBJECTS];
    uint64_t number;
    int64_t free_bytes;
    struct err err;
    const struct medium_driver *d = m->driver;

    if (what & 1)
        (void)!d->reach(m, &err);
    if (what & 128)
        (void)!d->claim(m, &err);
    if (what & 2)
        (void)!d->put(m, key[0], &from, &err);
    if (what & 4)
        read_some(m, key[0]);
    if (what & 8)
        (void)!d->look(m, object, OBJECTS, there, &err);
    if (what & 16 && !d->space(m, &number, &free_bytes, &err) && free_bytes < 0)
        abort();
    if (what & 32)
        (void)!d->each(m, see, NULL, &err);
    if (what & 64)
        (void)!d->remove(m, &object[2], &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static char uri[] = "redis://127.0.0.1:6379/2";
    static const uint8_t store[OBJECT_ID] = { 1, 2, 3 };
    const struct tier tier = { .kind = TIER_REDIS, .uri = uri };
    const struct medium_place place = { .tier = &tier, .folder = -1, .store = store };
    struct medium m = { .driver = MEDIUM_SYMBOL.driver, .uri = uri, .folder = -1 };
    char folder[] = "/dev/shm/evp-fuzz-XXXXXX"; // for the claim, which only a medium with a folder makes
    struct err err;

    if (n == 0)
        return 0;
    setenv("EVP_REDIS_TIMEOUT", "0.1", 1);
    wire.at = data + 1;
    wire.n = n - 1;
    if (data[0] & 128)
        m.folder = mkdtemp(folder) ? open(folder, O_RDONLY | O_DIRECTORY) : -1;
    if (m.driver->open(&m, &place, &err))
        abort();
    ask(&m, data[0]);
    if (m.folder >= 0) {
        unlinkat(m.folder, "evp-claim", 0);
        close(m.folder);
        rmdir(folder);
    }
    medium_close(&m);
    for (int i = 0; i < wire.n_peers; i++)
        close(wire.peer[i]);
    wire.n_peers = 0;
    if (n_relays)
        print_recorded(data[0]);
    return 0;
}
