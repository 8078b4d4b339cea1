/* load_planned.h - what shall be placed of each context, and what is known of its payload: 150 bytes for each. It comes
 * from a manifest, which is read once, or of a rollback from the state before. Entries are made of it when something
 * has to be done for a context, or is written down.
 */
#ifndef EVP_LOAD_PLANNED_H
#define EVP_LOAD_PLANNED_H

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "loader/formats/manifest.h"
#include "loader/formats/stored.h"

#include <stdbool.h>
#include <stdint.h>

struct planned_context {
    uint8_t tokens[32]; // token digest
    uint64_t payload;   // digest of the payload's name; 0: none
    int64_t bytes;
    int32_t n_tokens, kind; // kind: a number of `kinds`
    int32_t goal;           // what a load has to do for it: a number; -1: nothing
    int16_t tier;           // -1: recompute
    bool in_place;

    /* Of its payload. */
    int64_t size; // 0: not known, nor the rest
    uint8_t checksum[8], object[OBJECT_ID];
};

struct planned_slots {
    int32_t *at; // (n) a context's number, or -1
    uint32_t n;  // a power of two
};

struct planned_names {
    char **at; // (n) by the contexts' numbers; those from n on are NULL, too
    int n, cap;
};

struct planned {
    struct planned_context *at; // in the manifest's order
    int n, cap;
    struct map ids;   // a context's number is that of its id
    struct map kinds; // a config, NUL, the digest of a model
    struct planned_slots payloads;
    struct planned_names own; // names of payloads that are not manifest_payload_name()'s; NULL: they are
    uint64_t seed;
    int64_t bytes[TIER_MAX];                   // of all contexts of a tier
    int count[TIER_MAX], n_placed, n_in_place; // contexts of a tier, of all tiers, and of those the ones in place
    int64_t in_place_bytes[TIER_MAX];
};

int planned_init(struct planned *p, struct err *err) MUST_CHECK;
void planned_release(struct planned *p); // zeroed is fine

/* Adds a row that was checked, of a manifest of a model. ERR_FORMAT: its id or its payload's name came before. */
int planned_add(struct planned *p, const char *model_digest, const struct placement *row, struct err *err) MUST_CHECK;

/* Adds what was placed in a tier, of a context that is not there yet. */
int planned_add_entry(struct planned *p, const struct entry *e, int tier, struct err *err) MUST_CHECK;

/* No more rows come: gives back the memory that only planned_add() needs. */
void planned_end(struct planned *p);

/* NULL: there is no such context. */
struct planned_context *planned_find(const struct planned *p, const char *id);

/* The context whose payload an entry is, on any tier; NULL: none. */
struct planned_context *planned_of(const struct planned *p, const struct entry *e);

/* Is an entry of a context in the variant and of the model that are wanted? */
bool planned_same(const struct planned *p, const struct planned_context *c, const struct entry *e);

/* What is known of the payload of context number i; prefix and marks are not. Texts are borrowed. planned_entry() adds
 * the name in the manifest, and the file once the size is known. Zeroed texts are fine, and those of the last entry are
 * overwritten; free with buf_release(&texts->payload). */
struct planned_texts {
    struct buf payload;
    char file[OBJECT_FILE];
};
struct entry planned_variant(const struct planned *p, int i);
int planned_entry(const struct planned *p, int i, struct planned_texts *texts, struct entry *e,
                  struct err *err) MUST_CHECK;

/* An entry is the payload of a context. ERR_FORMAT: its file is no object's. */
int planned_know(struct planned_context *c, const struct entry *e, struct err *err) MUST_CHECK;

/* That is in its place. */
void planned_settle(struct planned *p, struct planned_context *c);

#endif
