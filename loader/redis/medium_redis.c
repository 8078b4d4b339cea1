/* medium_redis.c - the medium `redis`: payloads as values of a Redis server or cluster.
 *
 * A payload is cut into segments, each the value of one key, all on one node:
 *
 *     evp:STORE:{OBJECT}:NUMBER    STORE: the id of the tier's state, which separates stores on one server;
 *                                  OBJECT: the payload's id (formats/stored.h), both 32 hex digits
 *
 * A value is a sequence of blocks: 8 bytes of checksum, little-endian, then up to 65,512 bytes of the payload. The
 * checksum is XXH3-64 of these bytes, seeded with the XXH3-64 of the key and the number of the block. So reading a
 * range reads only the blocks that it touches, verifies each of them, and detects a value under a wrong key. 16 blocks
 * make a segment: a little less than 1 MiB, which fits an allocation of the server.
 *
 * A missing value is distinguished from a damaged one. Whether values survive a restart depends on the server's
 * settings (`save`, `appendonly` and `maxmemory-policy`): flush() does nothing, and the next load puts lost payloads
 * again.
 */

#include "base/array.h"
#include "loader/redis/redis_keys.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    WINDOW_VALUES = 8, // segments in flight
    READ_BLOCKS = 4,   // blocks of a segment per request
    READ_BYTES = READ_BLOCKS * BLOCK_BYTES,
    WINDOW_READS = 2, // one is sent while the other is received; with more, replies fall out of the server's CPU cache
    WINDOW_SMALL = 1024,
};

static uint64_t block_sum(const char *key, int block, const void *bytes, size_t n)
{
    char name[KEY_BYTES + 16];

    snprintf(name, sizeof(name), "%s#%d", key, block);
    return digest_xxh3_seeded(bytes, n, digest_xxh3(name, strlen(name)));
}

/* The number of segments of a payload, the payload's bytes in a segment, and the length of its value. */
static int n_segments(int64_t size)
{
    return (int)((size + SEGMENT_BYTES - 1) / SEGMENT_BYTES);
}

static size_t segment_bytes(int64_t size, int segment)
{
    int64_t left = size - (int64_t)segment * SEGMENT_BYTES;

    return left < SEGMENT_BYTES ? (size_t)left : SEGMENT_BYTES;
}

static size_t value_bytes(size_t n)
{
    return n + (n + BLOCK_BYTES - 1) / BLOCK_BYTES * SUM_BYTES;
}

static int check_size(const struct medium *m, int64_t size, struct err *err)
{
    return size <= (int64_t)READ_BYTES * INT32_MAX ? 0 : err_set(err, ERR_FAIL, "'%s': a payload is too large", m->uri);
}

/* ---- a payload's requests ------------------------------------------------------------------ */

/* The data of a batch over the segments of one payload. */
struct segment_work {
    const struct redis_object *object;
    int64_t size;            // of the payload
    const struct blob *from; // to put
    char *to;                // to read: n bytes from `offset`
    size_t n;
    uint64_t offset;
    char key[KEY_BYTES], number[2][24];
    char *value; // to put: VALUE_BYTES; to read: BLOCK_BYTES, or NULL
    bool *gone;  // set if a value is missing or has another size; NULL: that is an error
};

static int slot_of_object(void *arg, int i)
{
    const struct segment_work *w = arg;

    (void)i;
    return w->object->slot;
}

/* ERR_NET unless the reply is +OK. */
static int take_ok(void *arg, int i, const struct redisReply *reply, struct err *err)
{
    (void)arg;
    (void)i;
    return reply->type == REDIS_REPLY_STATUS ? 0 : redis_refused(reply, err);
}

/* ---- putting ------------------------------------------------------------------------------- */

static int make_set(void *arg, int i, struct redis_command *command, struct err *err)
{
    struct segment_work *w = arg;
    size_t n = segment_bytes(w->size, i), at = 0;
    uint64_t offset = (uint64_t)i * SEGMENT_BYTES;

    redis_key(w->object, i, w->key);
    for (int block = 0; (size_t)block * BLOCK_BYTES < n; block++) {
        size_t left = n - (size_t)block * BLOCK_BYTES, take = left < BLOCK_BYTES ? left : BLOCK_BYTES;
        if (blob_read(w->from, w->value + at + SUM_BYTES, take, offset + (uint64_t)block * BLOCK_BYTES, err))
            return err->code;
        uint64_t sum = block_sum(w->key, block, w->value + at + SUM_BYTES, take);
        memcpy(w->value + at, &sum, SUM_BYTES);
        at += SUM_BYTES + take;
    }
    redis_command_add(command, "SET");
    redis_command_add(command, w->key);
    redis_command_add_bytes(command, w->value, at);
    return 0;
}

static int size_of(const struct blob *b, int64_t *size, struct err *err)
{
    struct stat st;

    *size = b->size;
    if (*size >= 0)
        return 0;
    if (fstat(b->fd, &st))
        return err_set(err, ERR_IO, "cannot read a payload");
    *size = st.st_size;
    return 0;
}

static int put_value(const struct medium *m, const char *file, const struct blob *from, struct err *err)
{
    struct redis_object object = { 0 };
    struct segment_work w = { .object = &object, .from = from };

    if (!redis_keys_of(m, file, &object))
        return err_set(err, ERR_FORMAT, "'%.100s' is not the name of a stored payload", file);
    if (redis_claim(m, err) || size_of(from, &w.size, err) || check_size(m, w.size, err))
        return err->code;
    w.value = malloc(VALUE_BYTES);
    if (!w.value)
        return err_nomem(err);
    const struct redis_batch batch = { .n = n_segments(w.size),
                                       .window = WINDOW_VALUES,
                                       .node = -1,
                                       .arg = &w,
                                       .slot = slot_of_object,
                                       .make = make_set,
                                       .take = take_ok };
    int code = redis_server_run(object.server, &batch, err);
    free(w.value);
    return code;
}

static int flush_nothing(const struct medium *m, const char *key, struct err *err)
{
    (void)m;
    (void)key;
    (void)err;
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Blocks of a segment that a range touches: [first, last], READ_BLOCKS or fewer. */
struct span {
    int segment;
    size_t first, last, n; // n: bytes of the payload in the segment
};

static struct span span_of(const struct segment_work *w, int i)
{
    uint64_t read = w->offset / READ_BYTES + (uint64_t)i, begin = read * READ_BYTES, end = w->offset + w->n;
    int segment = (int)(begin / SEGMENT_BYTES);
    uint64_t at = (uint64_t)segment * SEGMENT_BYTES, from = w->offset > begin ? w->offset : begin;
    uint64_t to = end < begin + READ_BYTES ? end : begin + READ_BYTES;

    return (struct span){ segment, (size_t)(from - at) / BLOCK_BYTES, (size_t)(to - 1 - at) / BLOCK_BYTES,
                          segment_bytes(w->size, segment) };
}

static int make_getrange(void *arg, int i, struct redis_command *command, struct err *err)
{
    struct segment_work *w = arg;
    struct span s = span_of(w, i);

    (void)err;
    redis_key(w->object, s.segment, w->key);
    snprintf(w->number[0], sizeof(w->number[0]), "%zu", s.first * (SUM_BYTES + BLOCK_BYTES));
    snprintf(w->number[1], sizeof(w->number[1]), "%zu", (s.last + 1) * (SUM_BYTES + BLOCK_BYTES) - 1);
    redis_command_add(command, "GETRANGE");
    redis_command_add(command, w->key);
    redis_command_add(command, w->number[0]);
    redis_command_add(command, w->number[1]);
    return 0;
}

/* Receives a block of the payload: directly into the buffer, or into w->value if the range covers only some of it. */
static int take_block(struct segment_work *w, struct redis_conn *c, uint64_t number, struct err *err)
{
    uint64_t offset = number * BLOCK_BYTES, left = (uint64_t)w->size - offset;
    uint64_t end = w->offset + w->n, from = offset > w->offset ? offset : w->offset;
    size_t n = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
    bool whole = offset >= w->offset && offset + n <= end;

    if (!whole && !w->value)
        w->value = malloc(BLOCK_BYTES);
    if (!whole && !w->value)
        return err_nomem(err);
    char *at = whole ? w->to + (offset - w->offset) : w->value;
    uint64_t sum;
    struct iovec place[] = { { &sum, SUM_BYTES }, { at, n } };
    if (redis_conn_take(c, place, 2, err))
        return err->code;
    if (sum != block_sum(w->key, (int)(number % SEGMENT_BLOCKS), at, n))
        return err_set(err, ERR_FORMAT, "'%s' is damaged: its checksum differs", w->key);
    if (!whole)
        memcpy(w->to + (from - w->offset), at + (from - offset),
               (size_t)((offset + n < end ? offset + n : end) - from));
    return 0;
}

static int take_blocks(void *arg, int i, struct redis_conn *c, size_t n_bytes, struct err *err)
{
    struct segment_work *w = arg;
    struct span s = span_of(w, i);
    size_t begin = s.first * BLOCK_BYTES, end = (s.last + 1) * BLOCK_BYTES < s.n ? (s.last + 1) * BLOCK_BYTES : s.n;

    redis_key(w->object, s.segment, w->key);
    if (w->gone && n_bytes != value_bytes(end - begin)) {
        *w->gone = true;
        return 0;
    }
    if (n_bytes == 0)
        return err_set(err, ERR_IO, "redis has lost '%s'", w->key);
    if (n_bytes != value_bytes(end - begin))
        return err_set(err, ERR_FORMAT, "'%s' is damaged: its size differs", w->key);
    for (size_t block = s.first; block <= s.last; block++)
        if (take_block(w, c, (uint64_t)s.segment * SEGMENT_BLOCKS + block, err))
            return err->code;
    return 0;
}

/* Refuses a reply that is not a string. */
static int take_refusal(void *arg, int i, const struct redisReply *reply, struct err *err)
{
    (void)arg;
    (void)i;
    return redis_refused(reply, err);
}

static int read_object(const struct redis_object *o, struct segment_work *w, struct err *err)
{
    uint64_t first = w->offset / READ_BYTES, last = (w->offset + w->n - 1) / READ_BYTES;
    const struct redis_batch batch = { .n = (int)(last - first) + 1,
                                       .window = WINDOW_READS,
                                       .node = -1,
                                       .arg = w,
                                       .slot = slot_of_object,
                                       .make = make_getrange,
                                       .take = take_refusal,
                                       .take_bytes = take_blocks };

    int code = redis_server_run(o->server, &batch, err);
    free(w->value);
    return code;
}

static int read_value(const struct blob *b, void *to, size_t n, uint64_t offset, struct err *err)
{
    const struct redis_object *o = b->own;
    struct segment_work w = { .object = o, .size = b->size, .to = to, .n = n, .offset = offset };

    if (!o->bytes)
        return read_object(o, &w, err);
    memcpy(to, o->bytes + offset, n);
    return 0;
}

static void release_value(struct blob *b)
{
    struct redis_object *o = b->own;

    redis_server_close(o->server);
    free(o->bytes);
    free(o);
}

/* ---- looking and removing --------------------------------------------------------------------- */

/* A segment of one of several payloads. */
struct segment {
    int object, number;
};

struct look_work {
    const struct medium *m;
    const struct medium_object *object;
    bool *there;
    struct segment *at;
    size_t n, cap;
    struct redis_object o;
    char key[KEY_BYTES];
};

static int slot_of_segment(void *arg, int i)
{
    struct look_work *w = arg;

    return redis_keys_of(w->m, w->object[w->at[i].object].key, &w->o) ? w->o.slot : 0;
}

static int make_for_segment(struct look_work *w, const char *what, int i, struct redis_command *command)
{
    redis_keys_of(w->m, w->object[w->at[i].object].key, &w->o);
    redis_key(&w->o, w->at[i].number, w->key);
    redis_command_add(command, what);
    redis_command_add(command, w->key);
    return 0;
}

static int make_strlen(void *arg, int i, struct redis_command *command, struct err *err)
{
    (void)err;
    return make_for_segment(arg, "STRLEN", i, command);
}

static int make_unlink(void *arg, int i, struct redis_command *command, struct err *err)
{
    (void)err;
    return make_for_segment(arg, "UNLINK", i, command);
}

static int take_length(void *arg, int i, const struct redisReply *reply, struct err *err)
{
    struct look_work *w = arg;
    const struct segment *p = &w->at[i];

    if (reply->type != REDIS_REPLY_INTEGER)
        return redis_refused(reply, err);
    if (reply->integer != (long long)value_bytes(segment_bytes(w->object[p->object].size, p->number)))
        w->there[p->object] = false;
    return 0;
}

static int take_number(void *arg, int i, const struct redisReply *reply, struct err *err)
{
    (void)arg;
    (void)i;
    return reply->type == REDIS_REPLY_INTEGER ? 0 : redis_refused(reply, err);
}

/* Lists all segments of n payloads. */
static int list_segments(struct look_work *w, int n, struct err *err)
{
    for (int i = 0; i < n; i++) {
        if (check_size(w->m, w->object[i].size, err))
            return err->code;
        for (int k = 0; k < n_segments(w->object[i].size); k++)
            if (w->n == INT32_MAX || ARRAY_PUSH(w, (struct segment){ i, k }))
                return err_nomem(err);
    }
    return 0;
}

static int run_segments(struct look_work *w, int n, struct redis_batch *batch, struct err *err)
{
    int code = list_segments(w, n, err);

    batch->n = (int)w->n;
    batch->window = WINDOW_SMALL;
    batch->node = -1;
    batch->arg = w;
    batch->slot = slot_of_segment;
    if (!code)
        code = redis_server_run(redis_own(w->m)->server, batch, err);
    free(w->at);
    return code;
}

static int look_at_values(const struct medium *m, const struct medium_object *object, int n, bool *there,
                          struct err *err)
{
    struct look_work w = { .m = m, .object = object, .there = there };
    struct redis_batch batch = { .make = make_strlen, .take = take_length };

    for (int i = 0; i < n; i++) {
        uint8_t id[OBJECT_ID];
        there[i] = object_parse(object[i].key, id);
    }
    return run_segments(&w, n, &batch, err);
}

static int remove_value(const struct medium *m, const struct medium_object *object, struct err *err)
{
    struct look_work w = { .m = m, .object = object };
    struct redis_batch batch = { .make = make_unlink, .take = take_number };

    return redis_claim(m, err) ? err->code : run_segments(&w, 1, &batch, err);
}

/* Reads a payload of one segment at once, which saves a request for its existence. */
static int open_object(const struct medium *m, const struct medium_object *object, struct redis_object *o, bool *there,
                       struct err *err)
{
    struct segment_work w = { .object = o, .size = object->size, .n = (size_t)object->size };
    bool gone = false;

    if (object->size > SEGMENT_BYTES)
        return look_at_values(m, object, 1, there, err);
    o->bytes = malloc(w.n + 1);
    if (!o->bytes)
        return err_nomem(err);
    w.to = o->bytes;
    w.gone = &gone;
    int code = read_object(o, &w, err);
    *there = !gone;
    return code;
}

static int get_value(const struct medium *m, const char *file, struct blob *b, struct err *err)
{
    const struct medium_object object = { file, b->size };
    struct redis_object *o = calloc(1, sizeof(*o));
    bool there = false;

    if (!o)
        return err_nomem(err);
    int code = redis_keys_of(m, file, o) ? open_object(m, &object, o, &there, err) : 0;
    if (!code && there) {
        redis_server_share(o->server);
        b->own = o;
        return 0;
    }
    free(o->bytes);
    free(o);
    if (code == ERR_FORMAT)
        return err_wrap(err, "'%s/%s'", m->uri, file);
    return code ? code : MEDIUM_GONE;
}

/* ---- the server ---------------------------------------------------------------------------------- */

static int open_server(struct medium *m, const struct medium_place *place, struct err *err)
{
    struct redis_medium *r = calloc(1, sizeof(*r));
    const struct medium *like = place->like;
    char hex[2 * OBJECT_ID + 1] = "";
    int code = 0;

    if (!r)
        return err_nomem(err);
    if (like && like->driver == m->driver && strcmp(like->uri, m->uri) == 0)
        r->server = redis_server_share(redis_own(like)->server);
    else
        code = redis_server_open(&r->server, m->uri, err);
    if (code) {
        free(r);
        return code;
    }
    if (place->store)
        digest_hex(place->store, OBJECT_ID, hex);
    snprintf(r->prefix, sizeof(r->prefix), "evp:%s:", hex);
    pthread_mutex_init(&r->claiming, NULL);
    m->own = r;
    return 0;
}

static void close_server(struct medium *m)
{
    struct redis_medium *r = m->own;

    redis_server_close(r->server);
    pthread_mutex_destroy(&r->claiming);
    free(r);
}

static const struct medium_driver medium_redis = {
    .name = "redis",
    .chunk = (size_t)WINDOW_VALUES * SEGMENT_BYTES,
    .verifies = true,
    .open = open_server,
    .close = close_server,
    .reach = redis_reach,
    .claim = redis_claim,
    .put = put_value,
    .flush = flush_nothing,
    .get = get_value,
    .read = read_value,
    .release = release_value,
    .look = look_at_values,
    .remove = remove_value,
    .each = redis_each,
    .space = redis_space,
};

const struct medium_plugin MEDIUM_SYMBOL = { MEDIUM_VERSION, &medium_redis };
