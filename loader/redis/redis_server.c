/* redis_server.c - nodes and slots, and batches of requests, which are pipelined, and repeated when a node redirects
 * them.
 */
#include "loader/redis/redis_server.h"

#include "base/clock.h"
#include "base/unconst.h"

#include <hiredis/hiredis.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NODES = 1024,
    IDLE = 64, // idle connections kept per node: the most threads that work at a time
    SLOTS = 16384,
    ROUNDS = 8, // limit of redirections per request
};
/* A node that cannot be reached is left alone for fifteen times as long as it took to find out, within these seconds:
 * one that drops packets costs a thread a sixteenth of its time, and one that restarts is found again at once. */
static const double rest_factor = 15, rest_min_s = 1, rest_max_s = 30;

struct redis_node {
    struct redis_address at;
    _Atomic(struct redis_conn *) idle[IDLE];
    _Atomic double dead_until;
};

struct redis_server {
    atomic_int users;
    _Atomic(struct redis_node *) node[NODES]; // the first ones are set; 0 is the uri's
    _Atomic uint16_t slot[SLOTS];             // its node's number
};

/* ---- opening -------------------------------------------------------------------------- */

int redis_server_open(struct redis_server **server, const char *uri, struct err *err)
{
    struct redis_server *s = calloc(1, sizeof(*s));
    struct redis_node *home = calloc(1, sizeof(*home));
    int code = s && home ? redis_address_parse(&home->at, uri, err) : err_nomem(err);

    *server = NULL;
    if (code) {
        free(s);
        free(home);
        return code;
    }
    s->users = 1;
    s->node[0] = home;
    *server = s;
    return 0;
}

struct redis_server *redis_server_share(struct redis_server *s)
{
    s->users++;
    return s;
}

void redis_server_close(struct redis_server *s)
{
    if (!s || --s->users)
        return;
    for (int i = 0; i < NODES && s->node[i]; i++) {
        struct redis_node *node = s->node[i];
        for (int k = 0; k < IDLE; k++)
            redis_conn_close(node->idle[k]);
        free(node);
    }
    free(s);
}

/* ---- connections ---------------------------------------------------------------------- */

static void rest(struct redis_node *node, double lost_s)
{
    double s = lost_s * rest_factor;

    node->dead_until = clock_now() + (s < rest_min_s ? rest_min_s : s > rest_max_s ? rest_max_s : s);
}

/* Takes an idle connection, or a new one. *waited: it was idle, so the node may have closed it. */
static int take_conn(struct redis_node *node, struct redis_conn **c, bool *waited, struct err *err)
{
    *waited = true;
    for (int i = 0; i < IDLE; i++) {
        *c = node->idle[i] ? atomic_exchange(&node->idle[i], NULL) : NULL;
        if (*c && redis_conn_is_usable(*c))
            return 0;
        redis_conn_close(*c);
    }
    double since = clock_now();
    *waited = false;
    if (since < node->dead_until)
        return err_set(err, ERR_NET, "redis at %s:%d could not be reached a moment ago", node->at.host, node->at.port);
    if (!redis_conn_open(c, &node->at, err))
        return 0;
    rest(node, clock_now() - since);
    return err->code;
}

static void give_conn(struct redis_node *node, struct redis_conn *c)
{
    for (int i = 0; i < IDLE && redis_conn_is_usable(c); i++) {
        struct redis_conn *none = NULL;
        if (atomic_compare_exchange_strong(&node->idle[i], &none, c))
            return;
    }
    redis_conn_close(c);
}

/* ---- nodes and slots -------------------------------------------------------------------- */

int redis_slot(const char *tag, size_t n)
{
    unsigned crc = 0; /* CRC-16/XMODEM */

    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned)(unsigned char)tag[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
    }
    return (int)(crc % SLOTS);
}

static bool same_node(const struct redis_node *node, const struct redis_address *at)
{
    return node->at.port == at->port && strcmp(node->at.host, at->host) == 0;
}

/* The number of a node, which is added if unknown. */
static int find_node(struct redis_server *s, const struct redis_address *at, struct err *err)
{
    struct redis_node *node = calloc(1, sizeof(*node));

    if (!node)
        return err_nomem(err);
    node->at = *at;
    node->at.database = 0; /* a cluster has only this one */
    node->at.tls = s->node[0]->at.tls;
    for (int i = 0; i < NODES; i++) {
        struct redis_node *none = NULL;
        if (!s->node[i] && atomic_compare_exchange_strong(&s->node[i], &none, node))
            return i;
        if (!same_node(s->node[i], at))
            continue;
        free(node);
        return i;
    }
    free(node);
    return err_set(err, ERR_NET, "the redis cluster of %s has more than %d nodes", s->node[0]->at.host, NODES);
}

/* The target node of "MOVED 3999 10.0.0.1:6381" or "ASK ..."; without a host, the host of node `from`. */
static int follow(struct redis_server *s, int from, const char *text, int *slot, struct err *err)
{
    const char *number = strchr(text, ' '), *where = number ? strchr(number + 1, ' ') : NULL;
    struct redis_address at = { 0 };
    char bracketed[REDIS_HOST + 16];
    long v = number ? strtol(number, NULL, 10) : -1;

    if (where && *++where == ':')
        snprintf(bracketed, sizeof(bracketed), "%s%s", s->node[from]->at.host, where);
    else if (where) /* an IPv6 address comes without brackets: everything before the last colon */
        snprintf(bracketed, sizeof(bracketed), strchr(where, ':') != strrchr(where, ':') ? "[%.*s]%s" : "%.*s%s",
                 (int)(strrchr(where, ':') ? strrchr(where, ':') - where : 0), where,
                 strrchr(where, ':') ? strrchr(where, ':') : "");
    if (!where || v < 0 || v >= SLOTS || !redis_address_host(&at, bracketed, strlen(bracketed)))
        return err_set(err, ERR_NET, "redis at %s:%d redirects to a malformed address", s->node[from]->at.host,
                       s->node[from]->at.port);
    *slot = (int)v;
    return find_node(s, &at, err);
}

/* ---- batches ----------------------------------------------------------------------------- */

struct run {
    struct redis_server *server;
    const struct redis_batch *batch;
    bool *done; // (n)
    int *asked; // (n) the node that ASK named for the next try, or -1
    int *list;  // (n) the requests to one node
    int n_list;
};

static int node_of(const struct run *r, int i)
{
    const struct redis_batch *b = r->batch;

    if (r->asked[i] >= 0)
        return r->asked[i];
    return b->node >= 0 ? b->node : r->server->slot[b->slot(b->arg, i)];
}

static int send_request(struct run *r, struct redis_conn *c, int i, struct err *err)
{
    struct redis_command command = { 0 }, asking = { 0 };

    redis_command_add(&asking, "ASKING");
    if ((r->asked[i] >= 0 && redis_conn_send(c, &asking, err)) || r->batch->make(r->batch->arg, i, &command, err))
        return err->code;
    return redis_conn_send(c, &command, err);
}

/* Handles the reply of request i: done, or redirected. */
static int take_reply(struct run *r, int node, int i, const struct redisReply *reply, struct err *err)
{
    bool error = reply->type == REDIS_REPLY_ERROR;
    bool moved = error && strncmp(reply->str, "MOVED ", 6) == 0, ask = error && strncmp(reply->str, "ASK ", 4) == 0;
    int slot;

    r->asked[i] = -1;
    if (moved || ask) {
        int to = follow(r->server, node, reply->str, &slot, err);
        if (to < 0)
            return to;
        if (moved)
            r->server->slot[slot] = (uint16_t)to;
        else
            r->asked[i] = to;
        return 0;
    }
    r->done[i] = true;
    int code = r->batch->take(r->batch->arg, i, reply, err);
    const struct redis_address *at = &r->server->node[node]->at;
    return code ? err_wrap(err, "redis at %s:%d", at->host, at->port) : 0;
}

static int take_bytes(const struct redis_bytes *b, struct redis_conn *c, size_t n, struct err *err)
{
    const struct redis_batch *batch = b->arg;

    return batch->take_bytes(batch->arg, b->i, c, n, err);
}

static int receive(struct run *r, struct redis_conn *c, int node, int i, struct err *err)
{
    const struct redis_bytes bytes = { .take = take_bytes, .arg = unconst(r->batch), .i = i };
    struct redisReply *reply;

    if (r->asked[i] >= 0) { /* the reply to ASKING comes first */
        if (redis_conn_reply(c, NULL, &reply, err))
            return err->code;
        redis_reply_free(reply);
    }
    if (redis_conn_reply(c, r->batch->take_bytes ? &bytes : NULL, &reply, err))
        return err->code;
    if (!reply) { /* a string, already taken */
        r->asked[i] = -1;
        r->done[i] = true;
        return 0;
    }
    int code = take_reply(r, node, i, reply, err);
    redis_reply_free(reply);
    return code;
}

/* Runs the requests of the list on one connection. After a failure, replies may be left on it. */
static int run_list(struct run *r, struct redis_conn *c, int node, struct err *err)
{
    for (int sent = 0, answered = 0; answered < r->n_list; answered++) {
        for (; sent < r->n_list && sent - answered < r->batch->window; sent++)
            if (send_request(r, c, r->list[sent], err))
                return err->code;
        if (receive(r, c, node, r->list[answered], err))
            return err->code;
    }
    return 0;
}

static void list_requests(struct run *r, int node)
{
    r->n_list = 0;
    for (int i = 0; i < r->batch->n; i++)
        if (!r->done[i] && node_of(r, i) == node)
            r->list[r->n_list++] = i;
}

static int run_node(struct run *r, int node, struct err *err)
{
    struct redis_node *n = r->server->node[node];
    struct redis_conn *c;
    bool waited = true;
    int code = 0;

    do {
        list_requests(r, node);
        if (!r->n_list)
            return 0;
        code = take_conn(n, &c, &waited, err);
        if (code)
            return code;
        code = run_list(r, c, node, err);
        if (!code) {
            give_conn(n, c);
            return 0;
        }
        waited = waited && !redis_conn_is_usable(c) && !redis_conn_is_late(c);
        if (redis_conn_is_late(c))
            rest(n, redis_conn_timeout());
        redis_conn_close(c);
    } while (waited);
    return code;
}

static bool all_done(const struct run *r)
{
    for (int i = 0; i < r->batch->n; i++)
        if (!r->done[i])
            return false;
    return true;
}

static int run_rounds(struct run *r, struct err *err)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int node = 0; node < NODES && r->server->node[node]; node++)
            if (run_node(r, node, err))
                return err->code;
        if (all_done(r))
            return 0;
    }
    return err_set(err, ERR_NET, "the redis cluster of %s redirects in a circle", r->server->node[0]->at.host);
}

int redis_server_run(struct redis_server *s, const struct redis_batch *batch, struct err *err)
{
    size_t n = (size_t)batch->n;
    struct run r = { .server = s,
                     .batch = batch,
                     .done = calloc(n + 1, sizeof(*r.done)),
                     .asked = malloc((n + 1) * sizeof(*r.asked)),
                     .list = malloc((n + 1) * sizeof(*r.list)) };
    int code = r.done && r.asked && r.list ? 0 : err_nomem(err);

    for (size_t i = 0; !code && i < n; i++)
        r.asked[i] = -1;
    if (!code)
        code = run_rounds(&r, err);
    free(r.done);
    free(r.asked);
    free(r.list);
    return code;
}

/* ---- all nodes ---------------------------------------------------------------------------- */

static int make_slots(void *arg, int i, struct redis_command *command, struct err *err)
{
    (void)arg;
    (void)i;
    (void)err;
    redis_command_add(command, "CLUSTER");
    redis_command_add(command, "SLOTS");
    return 0;
}

/* Reads one range of slots, with its node: [first, last, [host, port, ...], ...]. */
static int take_range(struct redis_server *s, const struct redisReply *range, struct err *err)
{
    const struct redisReply *node = range->elements >= 3 ? range->element[2] : NULL;
    struct redis_address at = { 0 };

    if (!node || node->elements < 2 || node->element[1]->type != REDIS_REPLY_INTEGER ||
        range->element[0]->type != REDIS_REPLY_INTEGER || range->element[1]->type != REDIS_REPLY_INTEGER)
        return err_set(err, ERR_NET, "the redis cluster of %s sends a malformed list of slots", s->node[0]->at.host);
    bool named = node->element[0]->type == REDIS_REPLY_STRING && node->element[0]->len > 0;
    const char *host = named ? node->element[0]->str : s->node[0]->at.host;
    char text[REDIS_HOST + 32];
    snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:%lld" : "%s:%lld", host, node->element[1]->integer);
    if (!redis_address_host(&at, text, strlen(text)))
        return err_set(err, ERR_NET, "the redis cluster of %s names a node without an address", s->node[0]->at.host);
    int number = find_node(s, &at, err);
    long long first = range->element[0]->integer, last = range->element[1]->integer;
    for (long long slot = first < 0 ? 0 : first; number >= 0 && slot <= last && slot < SLOTS; slot++)
        s->slot[slot] = (uint16_t)number;
    return number < 0 ? number : 0;
}

/* A server outside a cluster answers with an error. */
static int take_slots(void *arg, int i, const struct redisReply *reply, struct err *err)
{
    (void)i;
    for (size_t k = 0; reply->type == REDIS_REPLY_ARRAY && k < reply->elements; k++)
        if (take_range(arg, reply->element[k], err))
            return err->code;
    return 0;
}

int redis_server_nodes(struct redis_server *s, struct err *err)
{
    const struct redis_batch slots = {
        .n = 1, .window = 1, .node = 0, .arg = s, .make = make_slots, .take = take_slots
    };
    int n = 0;

    if (redis_server_run(s, &slots, err))
        return err->code;
    while (n < NODES && s->node[n])
        n++;
    return n;
}
