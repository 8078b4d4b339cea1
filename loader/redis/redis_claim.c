/* redis_claim.c - detects that the folder `state` of a store was copied.
 *
 * Only this folder knows which payloads a store has. If two copies of it, on two hosts or one from a backup, changed
 * the store, each would remove the payloads of the other. So a writer first puts a new claim, a time and a random
 * number, into evp-claim in the folder, and then under evp:STORE:claim on the server. Before that, the server's claim
 * is
 *
 *     the folder's own    nobody else has changed the store since;
 *     an earlier one      the last writer was killed between the two, or the server has returned to a copy of its own;
 *     missing             the server has lost it, as it may lose payloads;
 *     any other           another copy of the folder has claimed the store later: refused.
 */
#include "loader/redis/redis_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { TIME = 16, CLAIM = 2 * TIME }; // hex digits: of the nanoseconds since 1970, and with the random number

struct claim {
    char key[KEY_BYTES];
    char own[CLAIM + 1], next[CLAIM + 1], held[CLAIM + 1]; // in the folder, its successor, on the server; "": none
    bool full;                                             // the server has no memory for a claim
};

/* ---- the folder's ---------------------------------------------------------------------- */

static int make_next(struct claim *c, struct err *err)
{
    char digits[TIME + 1] = "";
    uint64_t random, now;
    struct timespec ts;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return err_set(err, ERR_IO, "no random bytes: %s", strerror(errno));
    clock_gettime(CLOCK_REALTIME, &ts);
    now = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
    memcpy(digits, c->own, TIME);
    uint64_t own = strtoull(digits, NULL, 16);
    snprintf(c->next, sizeof(c->next), "%016" PRIx64 "%016" PRIx64, now > own ? now : own + 1, random);
    return 0;
}

/* One sector, so a crash leaves the old claim or the new one. */
static int write_next(const struct medium *m, int fd, struct claim *c, struct err *err)
{
    if (make_next(c, err))
        return err->code;
    return pwrite(fd, c->next, CLAIM, 0) == CLAIM && !fsync(fd) && !fsync(m->folder)
               ? 0
               : err_set(err, ERR_IO, "'%s': cannot write 'evp-claim': %s", m->uri, strerror(errno));
}

/* ---- the server's ------------------------------------------------------------------------ */

static int slot_of_claim(void *arg, int i)
{
    const struct claim *c = arg;

    (void)i;
    return redis_slot(c->key, strlen(c->key));
}

static int make_ask(void *arg, int i, struct redis_command *command, struct err *err)
{
    struct claim *c = arg;

    (void)i;
    (void)err;
    redis_command_add(command, *c->next ? "GETSET" : "GET");
    redis_command_add(command, c->key);
    if (*c->next)
        redis_command_add(command, c->next);
    return 0;
}

/* Removing must be possible on a full server, which refuses to replace a value. */
static int take_held(void *arg, int i, const struct redisReply *reply, struct err *err)
{
    struct claim *c = arg;

    (void)i;
    c->full = reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "OOM ", 4) == 0;
    if (c->full)
        return 0;
    if (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_NIL)
        return redis_refused(reply, err);
    snprintf(c->held, sizeof(c->held), "%s", reply->type == REDIS_REPLY_STRING ? reply->str : "");
    return 0;
}

static int refuse(const struct medium *m, const struct claim *c, struct err *err)
{
    return err_set(err, ERR_FAIL,
                   "its payloads were last changed with another copy of its 'state': use that copy, or, to go on with "
                   "this one, run 'redis-cli -c -u %s del %s' first",
                   m->uri, c->key);
}

/* Gets the server's claim; puts c->next in its place if there is one. */
static int ask(const struct medium *m, struct claim *c, struct err *err)
{
    const struct redis_batch batch = {
        .n = 1, .window = 1, .node = -1, .arg = c, .slot = slot_of_claim, .make = make_ask, .take = take_held
    };

    return redis_server_run(redis_own(m)->server, &batch, err);
}

/* Between the two commands another copy may have claimed the store. */
static int exchange(const struct medium *m, int fd, struct claim *c, struct err *err)
{
    char before[CLAIM + 1];

    if (ask(m, c, err))
        return err->code;
    if (strncmp(c->held, c->own, TIME) >= 0 && strcmp(c->held, c->own) != 0)
        return refuse(m, c, err);
    memcpy(before, c->held, sizeof(before));
    if (write_next(m, fd, c, err) || ask(m, c, err))
        return err->code;
    return strcmp(c->held, before) == 0 || strcmp(c->held, c->next) == 0 ? 0 : refuse(m, c, err);
}

static int claim(const struct medium *m, bool *claimed, struct err *err)
{
    int fd = openat(m->folder, "evp-claim", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct claim c = { 0 };

    if (fd < 0)
        return err_set(err, ERR_IO, "'%s': cannot open 'evp-claim': %s", m->uri, strerror(errno));
    snprintf(c.key, sizeof(c.key), "%sclaim", redis_own(m)->prefix);
    if (pread(fd, c.own, CLAIM, 0) != CLAIM)
        c.own[0] = '\0';
    int code = exchange(m, fd, &c, err);
    close(fd);
    *claimed = !code && !c.full;
    return code;
}

int redis_claim(const struct medium *m, struct err *err)
{
    struct redis_medium *r = m->own;

    if (m->folder < 0)
        return 0;
    pthread_mutex_lock(&r->claiming);
    int code = r->claimed ? 0 : claim(m, &r->claimed, err);
    pthread_mutex_unlock(&r->claiming);
    return code;
}
