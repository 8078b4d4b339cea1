/* index.h - the published index of a tier's folder: what is placed there, for readers that never wait for a writer.
 *
 *     DIR/evp-index      all that is placed; or a delta: what was added and removed since the base was written
 *     DIR/evp-base-X     the base, which is named by the checksum in its header, as the delta knows it
 *
 * Both are files of fixed-size records, sorted by key, and neither is ever changed: a writer puts another evp-index in
 * the place of the old one by a rename. So a reader always has a delta with its own base. A change costs writing the
 * delta; when the deltas together have cost more than a base does, base and delta are merged into another base.
 *
 * A reader keeps the small tables in front of the records (namespaces, configs, a filter, a fence per block) and reads
 * blocks with pread(), so the index may be of any size, and a process that forks or stops in the middle disturbs
 * nobody.
 *
 * Every part carries a checksum; that of a block covers its number, the store and the generation, so a block of another
 * place or another time is damage, too. Damage is ERR_FORMAT, never a wrong record. The index follows from the store's
 * state (loader/store/state.h): evp-load writes it again when it is damaged or old.
 *
 * docs/formats/index.md describes the bytes.
 */
#ifndef EVP_INDEX_H
#define EVP_INDEX_H

#include "base/digest.h"
#include "base/err.h"
#include "loader/formats/stored.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    INDEX_VERSION = 3,
    INDEX_VERSION_2 = 2, // is read, too
    INDEX_BLOCK = 4096,
    INDEX_RECORDS = 42, // in a block
    INDEX_TEXT = 128,   // bytes of a namespace or a config, with the NUL
    INDEX_TEXTS = 1 << 16,
    INDEX_SMALL = 1024,   // records up to which an index has no base
    INDEX_ID = OBJECT_ID, // bytes of a store's id, of an object's id, of a prefix
};

/* Compared byte by byte. A context's whole chunks are its first DIGEST_CHUNK tokens, the next ones, and so on. A part
 * of a context is some of its whole chunks, from the first on. */
struct index_key {
    uint8_t name_space[2];    // number in the table of namespaces, big-endian
    uint8_t prefix[INDEX_ID]; // the first bytes of the token digest of the whole chunks; zero when there is none
    uint8_t tail[2];          // number of tokens after the whole chunks, big-endian; DIGEST_CHUNK: the key of a part
    uint8_t digest[32];       // the token digest of the context or the part
};

/* Little-endian, as in the file. */
struct index_record {
    struct index_key key;
    uint32_t n_tokens;        // of the context or the part
    uint64_t size, checksum;  // of the payload's file; a part has struct index_whole in place of the checksum
    uint8_t object[INDEX_ID]; // says the file's name, object_file()
    uint16_t config;          // number in the table of configs
    uint16_t flags;           // INDEX_GONE
    uint32_t order;           // of records with one key, readers take that of the highest number
};

enum { INDEX_GONE = 1 }; // in a delta: the base's record with this key, order and object is no longer placed

/* What a part belongs to: a payload of so many tokens, whose header takes so many bytes of its file. */
struct index_whole {
    uint32_t n_tokens, header;
};

static inline bool index_is_part(const struct index_key *key)
{
    return key->tail[0];
}

/* ERR_FORMAT: the record of a part does not make sense. */
int index_whole_of(const struct index_record *part, struct index_whole *whole, struct err *err) MUST_CHECK;

/* The key of a context but for its namespace. `prefix` as above. */
void index_key_set(struct index_key *key, const uint8_t prefix[INDEX_ID], const char *token_digest, int64_t n_tokens);

/* The same of a part, whose token digest says all. */
void index_key_set_part(struct index_key *key, const uint8_t digest[32]);

/* Sets the prefix of n ids, which are little-endian. */
int index_prefix(const void *ids, int64_t n, uint8_t prefix[INDEX_ID], struct err *err) MUST_CHECK;

/* ---- writing ---- */

struct index_made {
    uint8_t store[INDEX_ID];
    uint64_t generation;
    const char *const *name_space, *const *config; // texts shorter than INDEX_TEXT
    int n_name_spaces, n_configs;
    struct index_record *record; // (n) is sorted; of equal ones a record that is not INDEX_GONE stays
    size_t n;
};

/* Replaces the index of an open folder; each file is flushed before it gets its name. Their mode is 0600, or that of
 * what the folder's group may read (folder_share() in loader/index/folder.h). */
int index_write(int folder, struct index_made *made, struct err *err) MUST_CHECK;

/* The same with all that `old` has, which is the folder's, but for the changes: records that are INDEX_GONE or not. The
 * namespaces and configs are those of `old` and others after them. ERR_FORMAT: `old` is damaged. */
struct index;
int index_change(int folder, const struct index *old, struct index_made *changes, struct err *err) MUST_CHECK;

/* ---- reading ---- */

struct index_file; // index_internal.h
struct index_text {
    char at[INDEX_TEXT];
};

/* Zeroed: of a folder that has none, and holds nothing. */
struct index {
    struct index_file *top, *base; // base NULL: the top is all of it
    const struct index_text *name_space, *config;
    int n_name_spaces, n_configs;
    size_t n;       // records
    size_t n_parts; // of them those of parts
};

/* Opens the index of an open folder and checks its tables. A folder without one is no error. ERR_FORMAT: it is damaged,
 * or of another version. Free with index_close() in every case. */
int index_open(struct index *ix, int folder, struct err *err) MUST_CHECK;
void index_close(struct index *ix); // zeroed is fine

/* The id of its store; NULL: there is no index. */
const uint8_t *index_store(const struct index *ix);

/* Is it of this store and generation? */
bool index_is_of(const struct index *ix, const uint8_t store[INDEX_ID], uint64_t generation);

/* The number of a namespace, or -1. */
int index_name_space(const struct index *ix, const char *name);

/* May the index have contexts whose namespace and prefix are those of a key, or parts for the key of a part? false is
 * sure. */
bool index_may_have(const struct index *ix, const struct index_key *key);

/* The first record whose key is `key` or above: 1 and *record, 0 when there is none, or an error. */
int index_seek(const struct index *ix, const struct index_key *key, struct index_record *record, struct err *err);

/* The record of `key` that is of an object: 1 and *record, 0 when there is none, or an error. */
int index_seek_object(const struct index *ix, const struct index_key *key, const uint8_t object[INDEX_ID],
                      struct index_record *record, struct err *err);

/* Goes through all records in order; *record as above. The index stays open meanwhile. */
struct index_walk;
struct index_walk *index_walk_new(const struct index *ix, struct err *err);
int index_walk_next(struct index_walk *w, struct index_record *record, struct err *err);
void index_walk_free(struct index_walk *w);

/* ---- the longest placed prefix of a prompt, in several indexes at once ---- */

struct index_view {
    const struct index *index;
    int name_space; // number in the index; -1: it has nothing of the namespace
};

struct index_views {
    const struct index_view *at; // (n) the first ones count where prefixes are of one length
    int n;
};

struct index_prompt {
    const int32_t *id; // (n)
    size_t n;
};

struct index_hit {
    int view;
    struct index_record record;
};

/* Finds it: 1 and *hit, 0 when there is none, or an error. One pass over the ids, with one SHA-256. Of parts and
 * contexts of one length the context counts. */
int index_find(const struct index_views *views, const struct index_prompt *prompt, struct index_hit *hit,
               struct err *err);

/* Makes `key` one of a namespace by its number. */
static inline void index_key_in(struct index_key *key, int name_space)
{
    key->name_space[0] = (uint8_t)(name_space >> 8);
    key->name_space[1] = (uint8_t)name_space;
}

/* ---- checking ---- */

/* Reads all of it: ERR_FORMAT when a block is damaged or out of order. */
int index_check(const struct index *ix, struct err *err) MUST_CHECK;

#endif
