/* redis_keys.c - makes and reads keys, and queries a server about itself. */
#include "loader/redis/redis_keys.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool redis_keys_of(const struct medium *m, const char *file, struct redis_object *o)
{
    char hex[2 * OBJECT_ID + 1];
    uint8_t id[OBJECT_ID];

    if (!object_parse(file, id))
        return false;
    digest_hex(id, OBJECT_ID, hex);
    o->server = redis_own(m)->server;
    o->slot = redis_slot(hex, 2 * OBJECT_ID);
    snprintf(o->base, sizeof(o->base), "%s{%s}:", redis_own(m)->prefix, hex);
    return true;
}

void redis_key(const struct redis_object *o, int segment, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "%s%d", o->base, segment);
}

/* ---- all payloads ------------------------------------------------------------------------------ */

/* The payloads whose keys a scan has found. */
struct scan {
    const struct medium *m;
    struct map seen; // names of objects
    struct {
        int *at; // the highest segment number
        int n, cap;
    } last;
    char cursor[32], pattern[80];
    double until; // a server's cursor may never return to 0
};

static int make_scan(void *arg, int i, struct redis_command *command, struct err *err)
{
    struct scan *s = arg;

    (void)i;
    (void)err;
    redis_command_add(command, "SCAN");
    redis_command_add(command, s->cursor);
    redis_command_add(command, "MATCH");
    redis_command_add(command, s->pattern);
    redis_command_add(command, "COUNT");
    redis_command_add(command, "1000");
    return 0;
}

/* Adds evp:STORE:{OBJECT}:NUMBER; ignores other keys. */
static int add_key(struct scan *s, const char *key, struct err *err)
{
    size_t n = strlen(redis_own(s->m)->prefix), hex = (size_t)2 * OBJECT_ID;
    char file[OBJECT_FILE], again[KEY_BYTES];
    struct redis_object o;
    uint8_t id[OBJECT_ID];
    bool added;

    if (strlen(key) < n + hex + 4 || strlen(key) >= KEY_BYTES)
        return 0;
    digest_from_hex(key + n + 1, id, OBJECT_ID);
    object_file(id, file);
    int number = (int)strtol(key + n + hex + 3, NULL, 10);
    redis_keys_of(s->m, file, &o);
    redis_key(&o, number, again);
    if (strcmp(again, key) != 0 || number < 0)
        return 0;
    int i = map_add(&s->seen, file, strlen(file), &added);
    if (i < 0 || (added && ARRAY_PUSH(&s->last, number)))
        return err_nomem(err);
    s->last.at[i] = number > s->last.at[i] ? number : s->last.at[i];
    return 0;
}

static int take_scan(void *arg, int i, const struct redisReply *reply, struct err *err)
{
    struct scan *s = arg;

    (void)i;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_ARRAY)
        return redis_refused(reply, err);
    snprintf(s->cursor, sizeof(s->cursor), "%s", reply->element[0]->str);
    for (size_t k = 0; k < reply->element[1]->elements; k++) {
        const struct redisReply *key = reply->element[1]->element[k];
        if (key->type == REDIS_REPLY_STRING && add_key(s, key->str, err))
            return err->code;
    }
    return 0;
}

enum { SCAN_REPLIES = 30 }; // the time limits of so many replies are the time limit of a scan

static int scan_node(struct scan *s, int node, struct err *err)
{
    const struct redis_batch batch = {
        .n = 1, .window = 1, .node = node, .arg = s, .make = make_scan, .take = take_scan
    };

    snprintf(s->cursor, sizeof(s->cursor), "0");
    do {
        if (clock_now() >= s->until)
            return err_set(err, ERR_NET, "'%s': listing its keys takes longer than %g s", s->m->uri,
                           redis_conn_timeout() * SCAN_REPLIES);
        if (redis_server_run(redis_own(s->m)->server, &batch, err))
            return err->code;
    } while (strcmp(s->cursor, "0") != 0);
    return 0;
}

int redis_each(const struct medium *m, medium_visit *each, void *arg, struct err *err)
{
    struct scan s = { .m = m, .until = clock_now() + redis_conn_timeout() * SCAN_REPLIES };
    int nodes = redis_server_nodes(redis_own(m)->server, err), code = nodes < 0 ? nodes : 0;

    snprintf(s.pattern, sizeof(s.pattern), "%s*", redis_own(m)->prefix);
    for (int node = 0; !code && node < nodes; node++)
        code = scan_node(&s, node, err);
    for (int i = 0; !code && i < s.seen.n; i++) {
        const struct medium_object object = { s.seen.at[i].key, ((int64_t)s.last.at[i] + 1) * SEGMENT_BYTES };
        code = each(arg, &object, err);
    }
    map_release(&s.seen);
    free(s.last.at);
    return code;
}

/* ---- the server ------------------------------------------------------------------------------------ */

/* ERR_NET unless the reply is a status, such as +OK. */
static int take_status(void *arg, int i, const struct redisReply *reply, struct err *err)
{
    (void)arg;
    (void)i;
    return reply->type == REDIS_REPLY_STATUS ? 0 : redis_refused(reply, err);
}

static int make_ping(void *arg, int i, struct redis_command *command, struct err *err)
{
    (void)arg;
    (void)i;
    (void)err;
    redis_command_add(command, "PING");
    return 0;
}

int redis_reach(const struct medium *m, struct err *err)
{
    const struct redis_batch ping = { .n = 1, .window = 1, .make = make_ping, .take = take_status };

    return redis_server_run(redis_own(m)->server, &ping, err);
}

static int make_info(void *arg, int i, struct redis_command *command, struct err *err)
{
    (void)arg;
    (void)i;
    (void)err;
    redis_command_add(command, "INFO");
    redis_command_add(command, "memory");
    return 0;
}

/* The number in the line "NAME:123" of INFO; 0 if it is absent. */
static int64_t info_number(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? (int64_t)strtoll(at + strlen(name), NULL, 10) : 0;
}

/* A server that does not report a limit counts as unlimited. */
static int take_info(void *arg, int i, const struct redisReply *reply, struct err *err)
{
    int64_t *free_bytes = arg;

    (void)i;
    (void)err;
    if (reply->type != REDIS_REPLY_STRING)
        return 0;
    int64_t limit = info_number(reply->str, "\nmaxmemory:"), used = info_number(reply->str, "\nused_memory:");
    if (limit > 0)
        *free_bytes = limit > used ? limit - used : 0;
    return 0;
}

/* The free bytes of a single server; for a cluster they are not known before its nodes are. */
int redis_space(const struct medium *m, uint64_t *device, int64_t *free_bytes, struct err *err)
{
    const struct redis_batch info = { .n = 1, .window = 1, .arg = free_bytes, .make = make_info, .take = take_info };
    int nodes = redis_server_nodes(redis_own(m)->server, err);

    *device = digest_xxh3(m->uri, strlen(m->uri));
    *free_bytes = INT64_MAX;
    if (nodes != 1)
        return nodes < 0 ? nodes : 0;
    return redis_server_run(redis_own(m)->server, &info, err);
}
