/* load_planned.h - what a manifest says of each context, and what a load found in its place: 150 bytes for each. A
 * manifest is read once, and its rows are made again from this when something has to be done for them, or is written
 * down.
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
    int32_t n_tokens, config; // config: a number of `configs`
    int16_t tier;             // -1: recompute
    bool in_place;

    /* Of the payload in its place. */
    uint64_t checksum;
    int64_t size;
    uint8_t object[OBJECT_ID];
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
    struct map ids, configs; // a context's number is that of its id
    struct planned_slots payloads;
    struct planned_names own; // names of payloads that are not manifest_payload_name()'s; NULL: they are
    uint64_t seed;
    int64_t bytes[TIER_MAX];                   // of all contexts of a tier
    int count[TIER_MAX], n_placed, n_in_place; // contexts of a tier, of all tiers, and of those the ones in place
    int64_t in_place_bytes[TIER_MAX];
};

int planned_init(struct planned *p, struct err *err) MUST_CHECK;
void planned_release(struct planned *p); // zeroed is fine

/* Adds a row that was checked. ERR_FORMAT: its id or its payload's name came before. */
int planned_add(struct planned *p, const struct placement *row, struct err *err) MUST_CHECK;

/* No more rows come: gives back the memory that only planned_add() needs. */
void planned_end(struct planned *p);

/* NULL: there is no such context. */
struct planned_context *planned_find(const struct planned *p, const char *id);

/* The context whose payload an entry is, on any tier, by a manifest of a model; NULL: none. */
struct planned_context *planned_of(const struct planned *p, const char *model_digest, const struct entry *e);

/* The row of context number i: id, token_digest, n_tokens, config, payload, bytes and tier. Zeroed texts are fine, and
 * those of the last row are overwritten; free with buf_release(&texts->payload). */
struct planned_texts {
    char token_digest[DIGEST_HEX];
    struct buf payload;
};
int planned_row(const struct planned *p, int i, struct planned_texts *texts, struct placement *row,
                struct err *err) MUST_CHECK;

/* The payload of a context is in its place: its entry. */
void planned_settle(struct planned *p, struct planned_context *c, const struct entry *e);

#endif
