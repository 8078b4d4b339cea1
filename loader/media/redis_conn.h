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
#include "loader/formats/redis_address.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

/* Takes the bytes of a reply where they lie, once for each. */
struct redis_bytes {
    int (*take)(struct redis_bytes *b, const char *bytes, size_t n, struct err *err);
    void *arg;
    int i;
    bool taken; // set when it was called; the reply has no bytes then
    int code;   // what it returned
};

/* Reads the next reply, which redis_reply_free() frees; one that says an error is a reply, too. A string goes to
 * `bytes`, if that is not NULL. */
int redis_conn_reply(struct redis_conn *c, struct redis_bytes *bytes, struct redisReply **reply,
                     struct err *err) MUST_CHECK;
void redis_reply_free(struct redisReply *reply);

/* The sentence for a reply that says an error, or that is not what was asked for: ERR_NET. */
int redis_refused(const struct redisReply *reply, struct err *err);

/* send and reply. */
int redis_conn_ask(struct redis_conn *c, const struct redis_command *command, struct redisReply **reply,
                   struct err *err) MUST_CHECK;

#endif
