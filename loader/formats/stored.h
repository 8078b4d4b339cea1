/* stored.h - one payload that is stored in a tier, as the tier's index and the receipt write it down.
 *
 *     {"id":"qasper/12","token_digest":"...","n_tokens":4012,"config":"keydiff:drop=0.5","model_digest":"...",
 *      "bytes":5242880,"file":"evp-0123456789abcdef-qasper_12-....safetensors","size":5243904,
 *      "checksum":"0123456789abcdef"}
 *
 * A file's name begins with its checksum (XXH3-64 of the whole file), so one name never means two contents: a reader
 * that took the name from an index gets that payload or finds it gone.
 */
#ifndef EVP_STORED_H
#define EVP_STORED_H

#include "base/digest.h"
#include "base/err.h"
#include "base/json.h"
#include "loader/formats/operation.h"

#include <stdbool.h>
#include <stdint.h>

struct entry {
    char *id, *config, *file;
    char token_digest[DIGEST_HEX], model_digest[DIGEST_HEX]; // model_digest "": not known
    char checksum[XXH3_HEX];
    int64_t n_tokens;
    int64_t bytes; // as the table counts them: what a tier's capacity is compared with
    int64_t size;  // of the file
    bool spare;    // kept for a rollback only; readers do not see it
    bool gone;     // left out of the next index; the entry stays, so that numbers do not change while a load is at work
    int tier;      // index into the tiers of the index's or receipt's reader
};

struct entries {
    struct entry *at;
    int n, cap;
};

/* Checks everything, above all that `file` is the name of a payload and not a path. *e is empty after a failure. */
int entry_from_json(struct entry *e, const struct json *row, struct err *err) MUST_CHECK;
void entry_to_json(const struct entry *e, struct json_out *w); // members only
int entry_copy(struct entry *to, const struct entry *from, struct err *err) MUST_CHECK;
void entry_release(struct entry *e);

/* Sets e->file: the name that a payload has in a tier, from e->checksum. */
int entry_set_file(struct entry *e, const char *payload, struct err *err) MUST_CHECK;
bool entry_file_safe(const char *file);           // "evp-" 16 hex digits "-" a payload name
const char *entry_payload(const struct entry *e); // the payload's own name, within e->file

/* The entry as operation_between() compares it: in a tier, or NULL when only cached_same() is asked. */
struct cached entry_cached(const struct entry *e, const struct tier *tier);

/* The same context in the same variant of the same model: equal entries have equal payloads. */
bool entry_same(const struct entry *a, const struct entry *b);

/* Takes *e over, also when it fails. */
int entries_add(struct entries *list, struct entry *e, struct err *err) MUST_CHECK;
void entries_release(struct entries *list);

#endif
