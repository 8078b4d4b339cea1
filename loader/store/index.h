/* index.h - the published index of a tier's folder: the placed payloads, for readers that never wait for a writer.
 *
 *     DIR/evp-index      fixed-size records, sorted by key
 *
 * The file never changes: a writer replaces it by a rename. A reader reads the whole file when it opens it, and
 * compares its checksum: damage is ERR_FORMAT, never a wrong record. 50,000 contexts take 5 MB. Nothing is mapped, so a
 * process that forks or dies disturbs nobody. The index follows from the store's state (loader/store/state.h): evp-load
 * rewrites it if it is damaged or old.
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

/* Little-endian, as in the file. The names of the namespaces and configs follow, then the records. */
struct index_header {
    char magic[8];
    uint64_t checksum; // of all bytes after it in the file
    uint32_t version, n_name_spaces, n_configs, reserved;
    uint64_t n_records, generation;
    uint8_t store[INDEX_ID];
};

struct index_text {
    char at[INDEX_TEXT];
};

/* Compared byte by byte. The whole chunks of a context are its first DIGEST_CHUNK tokens, the next ones, and so on. A
 * part of a context is its first chunks, one or more. */
struct index_key {
    uint8_t name_space[2];    // number in the table of namespaces, big-endian
    uint8_t prefix[INDEX_ID]; // the first bytes of the token digest of the whole chunks; zero if there are none
    uint8_t tail[2];          // number of tokens after the whole chunks, big-endian; DIGEST_CHUNK: a part's key
    uint8_t digest[32];       // the token digest of the context or the part
};

struct index_record {
    struct index_key key;
    uint32_t n_tokens;        // of the context or the part
    uint64_t size, checksum;  // of the payload file; a part has struct index_whole instead of the checksum
    uint8_t object[INDEX_ID]; // gives the file's name, by object_file()
    uint16_t config;          // number in the table of configs
    uint16_t reserved;
    uint32_t order; // of records with equal keys, readers take the highest
};

/* The whole payload of a part: its number of tokens, and the bytes of its header. */
struct index_whole {
    uint32_t n_tokens, header;
};

static inline bool index_is_part(const struct index_key *key)
{
    return key->tail[0];
}

/* ERR_FORMAT: the record is inconsistent. */
int index_whole_of(const struct index_record *part, struct index_whole *whole, struct err *err) MUST_CHECK;

/* Sets the key of a context, without its namespace. `prefix` as above. */
void index_key_set(struct index_key *key, const uint8_t prefix[INDEX_ID], const char *token_digest, int64_t n_tokens);

/* The same for a part, from its token digest. */
void index_key_set_part(struct index_key *key, const uint8_t digest[32]);

/* Sets the namespace of a key, by its number. */
static inline void index_key_in(struct index_key *key, int name_space)
{
    key->name_space[0] = (uint8_t)(name_space >> 8);
    key->name_space[1] = (uint8_t)name_space;
}

/* Sets the prefix of n little-endian ids. */
int index_prefix(const void *ids, int64_t n, uint8_t prefix[INDEX_ID], struct err *err) MUST_CHECK;

/* ---- reading ---- */

/* Zeroed: the folder has no index, and nothing is placed. */
struct index {
    struct index_header *header; // the file in memory; NULL: none
    const struct index_text *name_space, *config;
    const struct index_record *record; // (n) sorted
    int n_name_spaces, n_configs;
    size_t n, n_parts; // n_parts: records of parts
    uint64_t bytes;    // of the payload files of contexts
};

/* Opens the index of an open folder. A missing index is not an error. ERR_FORMAT: it is damaged, or of another version.
 * Call index_close() in every case. */
int index_open(struct index *ix, int folder, struct err *err) MUST_CHECK;
void index_close(struct index *ix); // zeroed is fine

/* The id of the index's store; NULL: no index. */
const uint8_t *index_store(const struct index *ix);

/* Is the index of this store and generation? */
bool index_is_of(const struct index *ix, const uint8_t store[INDEX_ID], uint64_t generation);

/* The number of a namespace, or -1. */
int index_name_space(const struct index *ix, const char *name);

/* The first record of a key, or the one of an object; NULL if there is none. */
const struct index_record *index_seek(const struct index *ix, const struct index_key *key);
const struct index_record *index_seek_object(const struct index *ix, const struct index_key *key,
                                             const uint8_t object[INDEX_ID]);

/* The first record with a key at or above `key`, or the end of the records; the same within [low, high). */
const struct index_record *index_from(const struct index *ix, const struct index_key *key);
const struct index_record *index_from_in(const struct index_record *low, const struct index_record *high,
                                         const struct index_key *key);

/* ---- writing ---- */

struct index_made {
    uint8_t store[INDEX_ID];
    uint64_t generation;
    const char *const *name_space, *const *config; // texts shorter than INDEX_TEXT
    int n_name_spaces, n_configs;
    const struct index_record *record; // (n) sorted by index_compare(), without duplicates
    size_t n;
};

/* By key; equal keys newest first. */
int index_compare(const struct index_record *a, const struct index_record *b);

/* Replaces the index of an open folder; the new file is flushed before the rename. *ix becomes the new index, and the
 * caller closes it. The file's mode is 0600, or 0640 if the folder is shared with its group (folder_share() in
 * loader/store/folder.h). */
int index_write(struct index *ix, int folder, const struct index_made *made, struct err *err) MUST_CHECK;

/* ---- the longest placed prefix of a prompt, in several indexes at once ---- */

struct index_view {
    const struct index *index;
    int name_space; // number in the index; -1: absent
};

struct index_views {
    const struct index_view *at; // (n) for prefixes of equal length the first view counts
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

/* Finds the prefix: 1 and *hit, 0 if there is none, or an error. One pass over the ids, with one SHA-256. Of a part and
 * a context of equal length the context counts. hit->record.n_tokens is the number of ids that were hashed, whatever a
 * wrong record says. */
int index_find(const struct index_views *views, const struct index_prompt *prompt, struct index_hit *hit,
               struct err *err);

#endif
