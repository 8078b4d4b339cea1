/* redis_server.h - a Redis server, or the nodes of a cluster: connections to them, and requests run on whichever node
 * has their key.
 *
 * Redirections are followed: MOVED changes which node a slot is looked for on, ASK holds for one request. Nothing waits
 * for a lock, so several threads may use a server, and a process may fork at any moment: a connection that another
 * process opened is not used. A connection that waited and has been closed meanwhile is replaced by a new one, once;
 * so requests may run twice, and must mean the same then.
 */
#ifndef EVP_REDIS_SERVER_H
#define EVP_REDIS_SERVER_H

#include "loader/redis/redis_conn.h"

#include <stdint.h>

struct redis_server;

/* Connects to nothing yet. ERR_FORMAT: the uri is none. */
int redis_server_open(struct redis_server **s, const char *uri, struct err *err) MUST_CHECK;
struct redis_server *redis_server_share(struct redis_server *s); // one redis_server_close() more
void redis_server_close(struct redis_server *s);                 // NULL is fine

/* The slot of a key by the part between its braces. */
int redis_slot(const char *tag, size_t n);

struct redis_batch {
    int n;      // requests
    int window; // requests that are sent before the first of them is answered
    int node;   // that runs them all, from 0; -1: that of slot()
    void *arg;
    int (*slot)(void *arg, int i);

    /* Makes request i; its words live until the next call. */
    int (*make)(void *arg, int i, struct redis_command *command, struct err *err);

    /* Takes the reply to request i, one that says an error too: redis_refused() has its sentence. */
    int (*take)(void *arg, int i, const struct redisReply *reply, struct err *err);

    /* Takes the n bytes of a reply that is a string, by redis_conn_take(), instead of take(). NULL: that does. */
    int (*take_bytes)(void *arg, int i, struct redis_conn *c, size_t n, struct err *err);
};

/* Runs all requests of a batch, or fails. ERR_NET: a node cannot be reached, or does not do it. */
int redis_server_run(struct redis_server *s, const struct redis_batch *batch, struct err *err) MUST_CHECK;

/* Finds out which nodes there are: their number, or an error. 1 when it is no cluster. */
int redis_server_nodes(struct redis_server *s, struct err *err);

#endif
