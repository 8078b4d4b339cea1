/* redis_keys.h - the keys of payloads on a Redis server, and queries about the server itself; for the medium `redis`.
 * docs/formats/index.md describes the keys.
 */
#ifndef EVP_REDIS_KEYS_H
#define EVP_REDIS_KEYS_H

#include "loader/redis/redis_server.h"
#include "loader/store/medium.h"

#include <pthread.h>

enum {
    SUM_BYTES = 8,
    BLOCK_BYTES = 65512,
    SEGMENT_BLOCKS = 16,
    SEGMENT_BYTES = SEGMENT_BLOCKS * BLOCK_BYTES,
    VALUE_BYTES = SEGMENT_BYTES + SEGMENT_BLOCKS * SUM_BYTES,
    KEY_BYTES = 128,
};

/* medium.own */
struct redis_medium {
    struct redis_server *server;
    char prefix[64]; // "evp:STORE:"
    pthread_mutex_t claiming;
    bool claimed;
};

/* blob.own: an open payload, which can outlive its medium. */
struct redis_object {
    struct redis_server *server;
    char base[KEY_BYTES - 24]; // the key without the number
    int slot;
    char *bytes; // of a payload of one segment: all of it, read when opened; otherwise NULL
};

static inline const struct redis_medium *redis_own(const struct medium *m)
{
    return m->own;
}

/* Sets the key of a payload, without the number of a segment; false: not an object's name. */
bool redis_keys_of(const struct medium *m, const char *file, struct redis_object *o);
void redis_key(const struct redis_object *o, int segment, char key[KEY_BYTES]);

/* Functions of the driver, as in struct medium_driver. Whatever changes values calls redis_claim() first: only its
 * first call asks the server. */
int redis_claim(const struct medium *m, struct err *err) MUST_CHECK;
int redis_each(const struct medium *m, medium_visit *each, void *arg, struct err *err) MUST_CHECK;
int redis_reach(const struct medium *m, struct err *err) MUST_CHECK;
int redis_space(const struct medium *m, uint64_t *number, int64_t *free_bytes, struct err *err) MUST_CHECK;

#endif
