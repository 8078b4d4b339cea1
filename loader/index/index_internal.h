/* index_internal.h - the parts of an index file that its readers and its writer share; see docs/formats/index.md. */
#ifndef EVP_INDEX_INTERNAL_H
#define EVP_INDEX_INTERNAL_H

#include "loader/index/index.h"

#include <sys/stat.h>

/* The first block of a file begins with this. */
struct index_header {
    char magic[8];
    uint32_t version, n_name_spaces, n_configs;
    uint32_t n_parts;             // records of parts; of a delta: what is left of them in the base, too
    uint64_t n_records, n_filter; // n_filter: bytes, a power of two
    uint64_t generation;
    uint8_t store[INDEX_ID];
    uint64_t tables_checksum; // of the bytes of the tables, without those that fill the last block
    uint64_t base;            // of a delta: the checksum in the header of the base; 0: the file is no delta
    uint64_t n_gone;          // of a delta: records of the base that are gone
    uint64_t written;         // of a delta: records of all deltas that were written above the base
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
_Static_assert(sizeof(struct index_header) == 104, "the header has no holes");
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

/* The bits of the filter that a prefix sets: FILTER_PROBES numbers below 8 * n_filter. Those of parts are others, so
 * that parts, which a prompt may have at every border, cost nothing where contexts are looked for. */
enum { FILTER_PROBES = 4 };
static inline size_t index_filter_bit(const struct index_header *h, const struct index_key *key, int probe)
{
    uint32_t part;

    __builtin_memcpy(&part, key->prefix + 4 * probe, sizeof(part));
    part += 0x9e3779b9U * (uint32_t)(key->name_space[0] << 8 | key->name_space[1]);
    part += 0x85ebca6bU * index_is_part(key);
    return part & (8 * (size_t)h->n_filter - 1);
}

/* ---- one file ---------------------------------------------------------------- */

struct index_file {
    int fd;
    struct stat stat;
    struct index_header header;
    char *tables; // as in the file
    const struct index_text *name_space, *config;
    const uint8_t *filter;
    const struct index_key *fence; // (n_blocks) the first key of each block
    size_t n, n_blocks;            // records, blocks
};

/* "evp-base-0123456789abcdef": the name of a base. */
enum { INDEX_BASE_NAME = 32 };
void index_base_name(uint64_t base, char name[INDEX_BASE_NAME]);

/* Opens a file and checks its tables; *f is NULL when there is none. The caller closes *f, after an error too. */
int index_file_open(struct index_file **f, int folder, const char *name, struct err *err) MUST_CHECK;
void index_file_close(struct index_file *f); // NULL is fine

bool index_file_may_have(const struct index_file *f, const struct index_key *key);

/* Reads all of it: ERR_FORMAT when a block is damaged or out of order. */
int index_file_check(const struct index_file *f, struct err *err) MUST_CHECK;

static inline int64_t index_file_parts(const struct index_file *f)
{
    return f ? f->header.n_parts : 0;
}

int index_damaged(struct err *err, const char *what);

/* ---- records in order ---------------------------------------------------------- */

/* By key; of one key the newest first. */
int index_compare(const struct index_record *a, const struct index_record *b);

static inline bool index_gone(const struct index_record *r)
{
    return r->flags & INDEX_GONE;
}

/* Goes through the records of a file, whose blocks it reads and checks as they come, or of a list. */
struct index_cursor {
    const struct index_file *file;   // NULL: the records are in
    const struct index_record *list; // this
    size_t n, at;                    // the record that comes next
    size_t number;                   // of the block that was read; SIZE_MAX: none
    struct index_block block;
};

void index_cursor_file(struct index_cursor *c, const struct index_file *f); // NULL: it has no records
void index_cursor_list(struct index_cursor *c, const struct index_record *list, size_t n);

/* Makes the first record whose key is `key` or above the next one; of files only. */
int index_cursor_seek(struct index_cursor *c, const struct index_key *key, struct err *err) MUST_CHECK;

/* The next record, which stays it until `at` rises: 1 and *record, 0 when there is none, or an error. */
int index_cursor_peek(struct index_cursor *c, const struct index_record **record, struct err *err);

/* The next record of two cursors together, where what is above replaces or removes what is below. As above; goes on. */
int index_merge_next(struct index_cursor *above, struct index_cursor *below, struct index_record *record,
                     struct err *err);

#endif
