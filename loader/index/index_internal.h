/* index_internal.h - the parts of an index file that its reader and its writer share; see docs/formats/index.md. */
#ifndef EVP_INDEX_INTERNAL_H
#define EVP_INDEX_INTERNAL_H

#include "loader/index/index.h"

/* The first block of the file begins with this. */
struct index_header {
    char magic[8];
    uint32_t version, n_name_spaces, n_configs, reserved;
    uint64_t n_records, n_filter; // n_filter: bytes, a power of two
    uint64_t generation;
    uint8_t store[INDEX_ID];
    uint64_t tables_checksum; // of the bytes of the tables, without those that fill the last block
    uint64_t checksum;        // of the header before it
};

struct index_block {
    uint64_t checksum; // of the rest of the block
    uint64_t number, generation;
    uint8_t store[INDEX_ID];
    uint8_t reserved[24]; // zero
    struct index_record record[INDEX_RECORDS];
};

_Static_assert(sizeof(struct index_key) == 52 && sizeof(struct index_record) == 96, "records have no holes");
_Static_assert(sizeof(struct index_block) == INDEX_BLOCK, "a block is a page");
_Static_assert(sizeof(struct index_header) == 80, "the header has no holes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little-endian");

extern const char index_magic[8];

/* Sizes that follow from a header whose counts were checked. */
static inline size_t index_blocks(const struct index_header *h)
{
    return ((size_t)h->n_records + INDEX_RECORDS - 1) / INDEX_RECORDS;
}

static inline size_t index_tables(const struct index_header *h)
{
    return ((size_t)h->n_name_spaces + h->n_configs) * INDEX_TEXT + (size_t)h->n_filter +
           index_blocks(h) * sizeof(struct index_key);
}

/* Where the first block of records begins. */
static inline size_t index_records_at(const struct index_header *h)
{
    return INDEX_BLOCK + (index_tables(h) + INDEX_BLOCK - 1) / INDEX_BLOCK * INDEX_BLOCK;
}

/* The bits of the filter that a prefix sets: FILTER_PROBES numbers below 8 * n_filter. */
enum { FILTER_PROBES = 4 };
static inline size_t index_filter_bit(const struct index_header *h, const struct index_key *key, int probe)
{
    uint32_t part;

    __builtin_memcpy(&part, key->prefix + 4 * probe, sizeof(part));
    part += 0x9e3779b9U * (uint32_t)(key->name_space[0] << 8 | key->name_space[1]);
    return part & (8 * (size_t)h->n_filter - 1);
}

#endif
