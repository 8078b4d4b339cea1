/* load_planned.h - what a manifest says, in about 100 bytes a context: digests in place of texts, under a number that
 * nobody else knows, so that nobody can choose texts whose digests are equal. Most contexts of most loads are in their
 * place already; what has to be done for the others is made from their rows, which are read again.
 *
 * Two ids or two payload names of a manifest have equal digests by chance once in ten million manifests of a million
 * rows. Such a manifest is refused, and taken the next time.
 */
#ifndef EVP_LOAD_PLANNED_H
#define EVP_LOAD_PLANNED_H

#include "base/err.h"
#include "loader/formats/manifest.h"
#include "loader/formats/stored.h"

#include <stdbool.h>
#include <stdint.h>

struct planned_context {
    uint64_t id, payload, variant; // digests: of the id; of the payload's name, 0: none; of what entry_same() compares
    int64_t bytes;
    int tier; // -1: recompute
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

struct planned {
    struct planned_context *at; // in the manifest's order
    int n, cap;
    struct planned_slots ids, payloads;
    uint64_t seed;
    int64_t bytes[TIER_MAX];                   // of all contexts of a tier
    int count[TIER_MAX], n_placed, n_in_place; // contexts of a tier, of all tiers, and of those the ones in place
    int64_t in_place_bytes[TIER_MAX];
};

int planned_init(struct planned *p, struct err *err) MUST_CHECK;
void planned_release(struct planned *p); // zeroed is fine

/* Adds a row that was checked. ERR_FORMAT: its id or its payload's name came before. */
int planned_add(struct planned *p, const struct manifest *m, const struct placement *row, struct err *err) MUST_CHECK;

/* No more rows come: gives back the memory that only planned_add() needs. */
void planned_end(struct planned *p);

/* NULL: there is no such context. */
struct planned_context *planned_find(const struct planned *p, const char *id);

/* The context whose payload an entry is, on any tier; NULL: none. */
struct planned_context *planned_of(const struct planned *p, const struct entry *e);

/* The payload of a context is in its place: its entry. */
void planned_settle(struct planned *p, struct planned_context *c, const struct entry *e);

#endif
