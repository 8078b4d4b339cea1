/* index.h - the published index of a tier's folder: what is placed there, for readers that never wait for a writer.
 *
 *     DIR/evp-index      all that is placed: fixed-size records, sorted by key
 *
 * The file is never changed: a writer puts another one in its place by a rename. A reader reads it whole when it opens
 * it, and compares its checksum: damage is ERR_FORMAT, never a wrong record. 50,000 contexts take 5 MB. Nothing is
 * mapped, so a process that forks or stops in the middle disturbs nobody. The index follows from the store's state
 * (loader/store/state.h): evp-load writes it again when it is damaged or old.
 *
 * docs/formats/index.md describes the bytes.
 */
#ifndef EVP_INDEX_H
#define EVP_INDEX_H

#include "base/digest.h"
#include "base/err.h"
#include "formats/stored.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    INDEX_VERSION = 4,
    INDEX_TEXT = 128, // bytes of a namespace or a config, with the NUL
    INDEX_TEXTS = 1 << 16,
    INDEX_ID = OBJECT_ID, // bytes of a store's id, of an object's id, of a prefix
};

#define INDEX_MAGIC "EVPINDEX"

/* Little-endian, as in the file. The texts of the namespaces and of the configs follow it, then the records. */
struct index_header {
    char magic[8];
    uint64_t checksum; // of all that follows it in the file
    uint32_t version, n_name_spaces, n_configs, reserved;
    uint64_t n_records, generation;
    uint8_t store[INDEX_ID];
};

struct index_text {
    char at[INDEX_TEXT];
};

/* Compared byte by byte. A context's whole chunks are its first DIGEST_CHUNK tokens, the next ones, and so on. A part
 * of a context is some of its whole chunks, from the first on. */
struct index_key {
    uint8_t name_space[2];    // number in the table of namespaces, big-endian
    uint8_t prefix[INDEX_ID]; // the first bytes of the token digest of the whole chunks; zero when there is none
    uint8_t tail[2];          // number of tokens after the whole chunks, big-endian; DIGEST_CHUNK: the key of a part
    uint8_t digest[32];       // the token digest of the context or the part
};

struct index_record {
    struct index_key key;
    uint32_t n_tokens;        // of the context or the part
    uint64_t size, checksum;  // of the payload's file; a part has struct index_whole in place of the checksum
    uint8_t object[INDEX_ID]; // says the file's name, object_file()
    uint16_t config;          // number in the table of configs
    uint16_t reserved;
    uint32_t order; // of records with one key, readers take that of the highest number
};

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

/* Makes `key` one of a namespace by its number. */
static inline void index_key_in(struct index_key *key, int name_space)
{
    key->name_space[0] = (uint8_t)(name_space >> 8);
    key->name_space[1] = (uint8_t)name_space;
}

/* Sets the prefix of n ids, which are little-endian. */
int index_prefix(const void *ids, int64_t n, uint8_t prefix[INDEX_ID], struct err *err) MUST_CHECK;

/* ---- reading ---- */

/* Zeroed: of a folder that has none, and holds nothing. */
struct index {
    struct index_header *header; // the file in memory; NULL: there is none
    const struct index_text *name_space, *config;
    const struct index_record *record; // (n) sorted
    int n_name_spaces, n_configs;
    size_t n, n_parts; // n_parts: records of parts
};

/* Opens the index of an open folder. A folder without one is no error. ERR_FORMAT: it is damaged, or of another
 * version. Free with index_close() in every case. */
int index_open(struct index *ix, int folder, struct err *err) MUST_CHECK;
void index_close(struct index *ix); // zeroed is fine

/* The id of its store; NULL: there is no index. */
const uint8_t *index_store(const struct index *ix);

/* Is it of this store and generation? */
bool index_is_of(const struct index *ix, const uint8_t store[INDEX_ID], uint64_t generation);

/* The number of a namespace, or -1. */
int index_name_space(const struct index *ix, const char *name);

/* The first record of a key; NULL: there is none. index_seek_object(): that of an object. */
const struct index_record *index_seek(const struct index *ix, const struct index_key *key);
const struct index_record *index_seek_object(const struct index *ix, const struct index_key *key,
                                             const uint8_t object[INDEX_ID]);

/* The first record whose key is `key` or above; the end of the records when there is none. */
const struct index_record *index_from(const struct index *ix, const struct index_key *key);

/* ---- writing ---- */

struct index_made {
    uint8_t store[INDEX_ID];
    uint64_t generation;
    const char *const *name_space, *const *config; // texts shorter than INDEX_TEXT
    int n_name_spaces, n_configs;
    const struct index_record *record; // (n) as index_compare() orders them; no two are equal
    size_t n;
};

/* By key; of one key the newest first. */
int index_compare(const struct index_record *a, const struct index_record *b);

/* Replaces the index of an open folder, flushed before it gets its name; *ix becomes what was written, and the caller
 * closes it. Its mode is 0600, or that of what the folder's group may read (folder_share() in loader/store/folder.h).
 */
int index_write(struct index *ix, int folder, const struct index_made *made, struct err *err) MUST_CHECK;

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

#endif
