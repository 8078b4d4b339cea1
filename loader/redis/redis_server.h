/* redis_server.h - a Redis server, or the nodes of a cluster: keeps connections to them, and sends each request to the
 * node that has its key.
 *
 * Redirections are followed: MOVED changes the node of a slot, ASK holds for one request. There are no locks, so
 * several threads may use a server, and a process may fork at any moment: connections of another process are not used.
 * If an idle connection turns out to be closed, it is replaced once and its requests are sent again, so requests must
 * be idempotent.
 */
#ifndef EVP_REDIS_SERVER_H
#define EVP_REDIS_SERVER_H

#include "loader/redis/redis_conn.h"

#include <stdint.h>

struct redis_server;

/* Does not connect yet. ERR_FORMAT: the uri is malformed. */
int redis_server_open(struct redis_server **s, const char *uri, struct err *err) MUST_CHECK;
struct redis_server *redis_server_share(struct redis_server *s); // needs its own redis_server_close()
void redis_server_close(struct redis_server *s);                 // NULL is fine

/* The slot of a key, from the text between its braces. */
int redis_slot(const char *tag, size_t n);

struct redis_batch {
    int n;      // requests
    int window; // requests in flight
    int node;   // runs all requests, from 0; -1: the node of slot()
    void *arg;
    int (*slot)(void *arg, int i);

    /* Makes request i; its words must live until the next call. */
    int (*make)(void *arg, int i, struct redis_command *command, struct err *err);

    /* Takes the reply to request i, which may be an error: redis_refused() makes its message. */
    int (*take)(void *arg, int i, const struct redisReply *reply, struct err *err);

    /* Takes the n bytes of a string reply, by redis_conn_take(), instead of take(). NULL: use take(). */
    int (*take_bytes)(void *arg, int i, struct redis_conn *c, size_t n, struct err *err);
};

/* Runs all requests of a batch, or fails. ERR_NET: a node cannot be reached, or fails. */
int redis_server_run(struct redis_server *s, const struct redis_batch *batch, struct err *err) MUST_CHECK;

/* Finds the nodes: their number, or an error; 1 if it is not a cluster. */
int redis_server_nodes(struct redis_server *s, struct err *err);

#endif
