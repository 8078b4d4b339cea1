/* redis_keys.h - what payloads are called on a Redis server, for the files of the medium `redis`; and what it asks of
 * the server besides payloads. docs/formats/index.md has the keys.
 */
#ifndef EVP_REDIS_KEYS_H
#define EVP_REDIS_KEYS_H

#include "loader/redis/redis_server.h"
#include "loader/store/medium.h"

enum {
    SUM_BYTES = 8,
    BLOCK_BYTES = 65512,
    PIECE_BLOCKS = 16, // of a piece
    PIECE_BYTES = PIECE_BLOCKS * BLOCK_BYTES,
    VALUE_BYTES = PIECE_BYTES + PIECE_BLOCKS * SUM_BYTES,
    KEY_BYTES = 128,
};

/* What a medium has. */
struct redis_medium {
    struct redis_server *server;
    char prefix[64]; // "evp:STORE:"
};

/* What an open payload has, so that it can outlive its medium. */
struct redis_object {
    struct redis_server *server;
    char base[KEY_BYTES - 24]; // the key without the number
    int slot;
    char *bytes; // of a payload of one piece: all of it, read when it was opened; else NULL
};

static inline const struct redis_medium *redis_own(const struct medium *m)
{
    return m->own;
}

/* The key of a payload without the number of a piece; false: it is no name of an object. */
bool redis_keys_of(const struct medium *m, const char *file, struct redis_object *o);
void redis_key(const struct redis_object *o, int piece, char key[KEY_BYTES]);

/* Functions of the driver, as in struct medium_driver. */
int redis_each(const struct medium *m, medium_visit *each, void *arg, struct err *err) MUST_CHECK;
int redis_reach(const struct medium *m, struct err *err) MUST_CHECK;
int redis_space(const struct medium *m, uint64_t *number, int64_t *free_bytes, struct err *err) MUST_CHECK;

#endif
