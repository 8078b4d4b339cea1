/* redis_conn.h - one connection to a Redis server: commands sent, replies read, each in a limited time. The wire format
 * is hiredis's; the socket is ours, because a library must not die of SIGPIPE and must not wait for ever.
 *
 * User and password come from the environment or from a file, and go to the server alone:
 *     EVP_REDIS_AUTH_FILE    a file that nobody else may read, with lines HOST:PORT USER PASSWORD; HOST:PORT may be *
 *     EVP_REDIS_USER, EVP_REDIS_PASSWORD    without that file, for every server; USER may be missing
 * EVP_REDIS_TIMEOUT is how many seconds a server may take to answer, 0.1 to 3600; 10 when it is not set.
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

void redis_command_add(struct redis_command *c, const char *word); // borrowed, ended by NUL
void redis_command_add_bytes(struct redis_command *c, const void *bytes, size_t n);

/* Connects and logs in. ERR_NET: the server cannot be reached, does not answer, or refuses. */
int redis_conn_open(struct redis_conn **c, const struct redis_address *at, struct err *err) MUST_CHECK;
void redis_conn_close(struct redis_conn *c); // NULL is fine

/* Was it opened by this process, and has nothing failed on it? Only then it may be used again. */
bool redis_conn_is_usable(const struct redis_conn *c);

/* Sends a command, at the latest when a reply is waited for. ERR_NET: the connection is gone, or the server takes
 * nothing. */
int redis_conn_send(struct redis_conn *c, const struct redis_command *command, struct err *err) MUST_CHECK;

/* Takes the n bytes of a reply by redis_conn_take(). What it leaves is skipped. */
struct redis_bytes {
    int (*take)(const struct redis_bytes *b, struct redis_conn *c, size_t n, struct err *err);
    void *arg;
    int i;
};

/* Receives the next bytes of that reply, no more than it has left, into n places in a row, where they stay: on their
 * way nothing else holds them. Changes the list of places. */
int redis_conn_take(struct redis_conn *c, struct iovec *place, int n, struct err *err) MUST_CHECK;

/* Reads the next reply, which redis_reply_free() frees; one that says an error is a reply, too. A string goes to
 * `bytes`, if that is not NULL, and *reply is NULL then. A connection is of no use after an error, whoever met it. */
int redis_conn_reply(struct redis_conn *c, const struct redis_bytes *bytes, struct redisReply **reply,
                     struct err *err) MUST_CHECK;
void redis_reply_free(struct redisReply *reply);

/* The sentence for a reply that says an error, or that is not what was asked for: ERR_NET. */
int redis_refused(const struct redisReply *reply, struct err *err);

/* send and reply. */
int redis_conn_ask(struct redis_conn *c, const struct redis_command *command, struct redisReply **reply,
                   struct err *err) MUST_CHECK;

#endif
