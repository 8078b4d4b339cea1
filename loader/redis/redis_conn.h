/* redis_conn.h - one connection to a Redis server: sends commands and reads replies, each within a time limit. hiredis
 * parses the wire format; the socket is ours, because a library must not die of SIGPIPE or wait forever.
 *
 * User and password come from the environment or from a file, and go only to the server:
 *     EVP_REDIS_AUTH_FILE    a file that nobody else may read, with lines HOST:PORT USER PASSWORD; HOST:PORT may be *
 *     EVP_REDIS_USER, EVP_REDIS_PASSWORD    without that file, for every server; USER may be missing
 * EVP_REDIS_TIMEOUT: seconds within which a whole answer must have come, 0.1 to 3600; 10 if not set.
 */
#ifndef EVP_REDIS_CONN_H
#define EVP_REDIS_CONN_H

#include "base/err.h"
#include "formats/redis_address.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct redisReply; // hiredis

struct redis_conn;

enum { REDIS_WORDS = 8 };

struct redis_command {
    int n;
    const char *word[REDIS_WORDS];
    size_t size[REDIS_WORDS];
};

void redis_command_add(struct redis_command *c, const char *word); // borrowed, NUL-terminated
void redis_command_add_bytes(struct redis_command *c, const void *bytes, size_t n);

/* Connects and logs in. ERR_NET: the server cannot be reached, does not answer, or refuses. */
int redis_conn_open(struct redis_conn **c, const struct redis_address *at, struct err *err) MUST_CHECK;
void redis_conn_close(struct redis_conn *c); // NULL is fine

/* Was it opened by this process, without a failure since? Only then may it be used again. */
bool redis_conn_is_usable(const struct redis_conn *c);

bool redis_conn_is_late(const struct redis_conn *c); // did it fail because an answer did not come in time?
double redis_conn_timeout(void);                     // EVP_REDIS_TIMEOUT

/* Sends a command, or buffers it until a reply is read. ERR_NET: the connection is broken, or the server does not
 * receive. */
int redis_conn_send(struct redis_conn *c, const struct redis_command *command, struct err *err) MUST_CHECK;

/* A callback that takes the n bytes of a reply by redis_conn_take(). The rest is skipped. */
struct redis_bytes {
    int (*take)(const struct redis_bytes *b, struct redis_conn *c, size_t n, struct err *err);
    void *arg;
    int i;
};

/* Receives the next bytes of that reply directly into n buffers, which must not be larger than the rest of the reply.
 * Changes the list of buffers. */
int redis_conn_take(struct redis_conn *c, struct iovec *place, int n, struct err *err) MUST_CHECK;

/* Reads the next reply, to be freed with redis_reply_free(); an error from the server is a reply too. If `bytes` is not
 * NULL, it takes a reply that is a string, and *reply is NULL. After a failure the connection cannot be used again. */
int redis_conn_reply(struct redis_conn *c, const struct redis_bytes *bytes, struct redisReply **reply,
                     struct err *err) MUST_CHECK;
void redis_reply_free(struct redisReply *reply);

/* Sets the message for an error reply or an unexpected one: ERR_NET. */
int redis_refused(const struct redisReply *reply, struct err *err);

/* Sends a command and reads its reply. */
int redis_conn_ask(struct redis_conn *c, const struct redis_command *command, struct redisReply **reply,
                   struct err *err) MUST_CHECK;

#endif
