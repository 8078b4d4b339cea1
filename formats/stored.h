/* stored.h - a payload stored in a tier, as in the store's state and the receipt.
 *
 *     {"id":"qasper/12","token_digest":"...","n_tokens":4012,"config":"keydiff:drop=0.5","model_digest":"...",
 *      "bytes":5242880,"file":"evp-payloads/0f/0f1e...","size":5243904,"checksum":"0123456789abcdef"}
 *
 * A file is named by its object's id, a digest of everything that distinguishes payloads, including the checksum. So a
 * name never has two contents: a reader that took the name from an index gets that payload or finds it gone. Contexts
 * with the same tokens have one object: docs/formats/index.md.
 */
#ifndef EVP_STORED_H
#define EVP_STORED_H

#include "base/digest.h"
#include "base/err.h"
#include "base/json.h"
#include "formats/operation.h"

#include <stdbool.h>
#include <stdint.h>

enum { OBJECT_ID = 16, OBJECT_FILE = 64 }; // bytes of an id; of a file's name with the NUL

/* "evp-payloads/0f/0f1e...": the name of an object's file in a tier's folder, and back; false: not such a name. */
void object_file(const uint8_t id[OBJECT_ID], char file[OBJECT_FILE]);
bool object_parse(const char *file, uint8_t id[OBJECT_ID]);

struct entry {
    char *id, *config, *file;
    char *payload;                                           // its name in the manifest; NULL: not known
    char token_digest[DIGEST_HEX], model_digest[DIGEST_HEX]; // model_digest "": not known
    char checksum[XXH3_HEX];
    uint8_t prefix[OBJECT_ID]; // digest of its tokens' whole chunks (loader/store/index.h)
    int64_t n_tokens;
    int64_t bytes; // as the table counts them; a tier's capacity limits their sum
    int64_t size;  // of the file
    int tier;      // index into the reader's tiers
    int64_t row;   // in a store's state (loader/store/state.h); 0: in none
};

struct entries {
    struct entry *at;
    int n, cap;
};

/* Checks everything; `file` must be an object's name, never another path. *e is empty after a failure. */
int entry_from_json(struct entry *e, const struct json *row, struct err *err) MUST_CHECK;
int entry_check(const struct entry *e, struct err *err) MUST_CHECK;      // the same checks
int entry_check_want(const struct entry *e, struct err *err) MUST_CHECK; // without file, size and checksum
void entry_to_json(const struct entry *e, struct json_out *w);           // members only
int entry_copy(struct entry *to, const struct entry *from, struct err *err) MUST_CHECK;
void entry_release(struct entry *e);

/* The id of an entry's object, from all its fields except the context. `name_space` is the store's. entry_set_file()
 * sets e->file from the id. */
int entry_object(const struct entry *e, const char *name_space, uint8_t id[OBJECT_ID], struct err *err) MUST_CHECK;
int entry_set_file(struct entry *e, const char *name_space, struct err *err) MUST_CHECK;

/* Is this an object's name? */
bool entry_file_safe(const char *file);

/* The entry as operation_between() compares it; tier may be NULL for cached_same(). */
struct cached entry_cached(const struct entry *e, const struct tier *tier);

/* The same context in the same variant of the same model: equal entries have equal payloads. */
bool entry_same(const struct entry *a, const struct entry *b);

/* Takes *e over, also when it fails. */
int entries_add(struct entries *list, struct entry *e, struct err *err) MUST_CHECK;
void entries_release(struct entries *list);

#endif
