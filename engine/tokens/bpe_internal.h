/* bpe_internal.h - the table of merges, for engine/tokens/bpe.c, which fills it, and engine/tokens/bpe_encode.c.
 *
 * A hash table with open addressing, from two ids to the id of their merge. Merging looks up every two neighbours.
 */
#ifndef EVP_BPE_INTERNAL_H
#define EVP_BPE_INTERNAL_H

#include "engine/tokens/bpe.h"

struct bpe_merge {
    int32_t left, right; // left < 0: a free slot
    int32_t id;
    uint32_t rank;
};

/* The merge of two tokens, or the free slot where it would be. */
static inline struct bpe_merge *bpe_slot(const struct bpe *b, int32_t left, int32_t right)
{
    uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15ull;
    uint32_t mask = b->n_slots - 1, at = (uint32_t)(hash >> 32) & mask;

    while (b->merge[at].left >= 0 && (b->merge[at].left != left || b->merge[at].right != right))
        at = (at + 1) & mask;
    return &b->merge[at];
}

static inline bool bpe_joined(const struct bpe *b, char first, char second)
{
    unsigned pair = (unsigned)(unsigned char)first << 8 | (unsigned char)second;

    return b->joined[pair / 64] >> pair % 64 & 1;
}

#endif
