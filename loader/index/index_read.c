/* index_read.c - an index opened and searched. The tables are read once and checked; blocks are read one by one, each
 * checked as it comes. Nothing is mapped: a file that shrinks under a reader is an error, not a signal.
 */
#include "loader/index/index_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- opening ------------------------------------------------------------------ */

static int damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_FORMAT, "'evp-index' is damaged (%s): evp-load writes it again", what);
}

static int read_at(const struct index *ix, void *to, size_t n, size_t at, struct err *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(ix->fd, (char *)to + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set(err, ERR_IO, "cannot read 'evp-index': %s", strerror(errno));
        if (got == 0)
            return damaged(err, "it was cut");
        done += (size_t)got;
    }
    return 0;
}

static int check_header(const struct index *ix, struct err *err)
{
    const struct index_header *h = ix->header;

    if (h->magic[0] == '{')
        return err_set(err, ERR_FORMAT,
                       "'evp-index' is of version 1, of an earlier release: remove the folder's evp-* "
                       "files and run evp-load with the payload folder");
    if (memcmp(h->magic, index_magic, sizeof(h->magic)) != 0)
        return damaged(err, "it does not begin as an index does");
    if (h->version != INDEX_VERSION)
        return err_set(err, ERR_FORMAT, "'evp-index' is of version %u, this program reads %d", h->version,
                       INDEX_VERSION);
    if (h->checksum != digest_xxh3(h, offsetof(struct index_header, checksum)))
        return damaged(err, "its header");
    if (h->n_records > (uint64_t)ix->stat.st_size / sizeof(struct index_record) ||
        h->n_filter > (uint64_t)ix->stat.st_size || h->n_filter < 64 || (h->n_filter & (h->n_filter - 1)) ||
        h->n_name_spaces > INDEX_TEXTS || h->n_configs > INDEX_TEXTS ||
        index_records_at(h) + index_blocks(h) * INDEX_BLOCK != (size_t)ix->stat.st_size)
        return damaged(err, "its size");
    return 0;
}

static int check_texts(const struct index *ix, struct err *err)
{
    const char *text = ix->tables;

    for (uint32_t i = 0; i < ix->header->n_name_spaces + ix->header->n_configs; i++, text += INDEX_TEXT)
        if (strnlen(text, INDEX_TEXT) == INDEX_TEXT)
            return damaged(err, "a text");
    return 0;
}

static int read_tables(struct index *ix, struct err *err)
{
    const struct index_header *h = ix->header;
    size_t n = index_tables(h);

    ix->tables = malloc(n + 1);
    if (!ix->tables)
        return err_nomem(err);
    if (read_at(ix, ix->tables, n, INDEX_BLOCK, err))
        return err->code;
    if (digest_xxh3(ix->tables, n) != h->tables_checksum)
        return damaged(err, "its tables");
    ix->n = (size_t)h->n_records;
    ix->n_blocks = index_blocks(h);
    ix->name_space = (const struct index_text *)(const void *)ix->tables;
    ix->config = ix->name_space + h->n_name_spaces;
    ix->filter = (const uint8_t *)(ix->config + h->n_configs);
    ix->fence = (const struct index_key *)(const void *)(ix->filter + h->n_filter);
    return check_texts(ix, err);
}

int index_open(struct index *ix, int folder, struct err *err)
{
    *ix = (struct index){ .fd = openat(folder, "evp-index", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK) };
    if (ix->fd < 0)
        return errno == ENOENT ? 0 : err_set(err, ERR_IO, "cannot open 'evp-index': %s", strerror(errno));
    if (fstat(ix->fd, &ix->stat))
        return err_set(err, ERR_IO, "cannot look at 'evp-index': %s", strerror(errno));
    if (!S_ISREG(ix->stat.st_mode))
        return err_set(err, ERR_FORMAT, "'evp-index' is not a file");
    ix->header = calloc(1, sizeof(*ix->header));
    if (!ix->header)
        return err_nomem(err);
    if (read_at(ix, ix->header, sizeof(*ix->header), 0, err) || check_header(ix, err))
        return err->code;
    return read_tables(ix, err);
}

void index_close(struct index *ix)
{
    if (ix->fd >= 0)
        close(ix->fd);
    free(ix->header);
    free(ix->tables);
    *ix = (struct index){ .fd = -1 };
}

bool index_is_of(const struct index *ix, const uint8_t store[INDEX_ID], uint64_t generation)
{
    return ix->header && memcmp(ix->header->store, store, INDEX_ID) == 0 && ix->header->generation == generation;
}

/* ---- searching ------------------------------------------------------------------ */

int index_name_space(const struct index *ix, const char *name)
{
    for (uint32_t i = 0; ix->header && i < ix->header->n_name_spaces; i++)
        if (strcmp(ix->name_space[i].at, name) == 0)
            return (int)i;
    return -1;
}

bool index_may_have(const struct index *ix, const struct index_key *key)
{
    for (int probe = 0; ix->header && probe < FILTER_PROBES; probe++) {
        size_t bit = index_filter_bit(ix->header, key, probe);
        if (!(ix->filter[bit / 8] >> bit % 8 & 1))
            return false;
    }
    return ix->n > 0;
}

static bool key_below(const struct index_key *a, const struct index_key *b)
{
    return memcmp(a, b, sizeof(*a)) < 0;
}

static size_t records_in(const struct index *ix, size_t block)
{
    size_t left = ix->n - block * INDEX_RECORDS;

    return left < INDEX_RECORDS ? left : INDEX_RECORDS;
}

static int read_block(const struct index *ix, size_t number, struct index_block *block, struct err *err)
{
    const struct index_header *h = ix->header;

    if (read_at(ix, block, sizeof(*block), index_records_at(h) + number * INDEX_BLOCK, err))
        return err->code;
    if (block->checksum != digest_xxh3(&block->number, sizeof(*block) - offsetof(struct index_block, number)) ||
        block->number != number || block->generation != h->generation ||
        memcmp(block->store, h->store, sizeof(h->store)) != 0)
        return damaged(err, "a block");
    for (size_t i = 0; i < records_in(ix, number); i++)
        if (block->record[i].config >= h->n_configs)
            return damaged(err, "a config");
    return 0;
}

/* The last block whose first key is not above `key`; 0 when all are. */
static size_t block_of(const struct index *ix, const struct index_key *key)
{
    size_t low = 0, high = ix->n_blocks;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (key_below(key, &ix->fence[middle]))
            high = middle;
        else
            low = middle;
    }
    return low;
}

int index_seek(const struct index *ix, const struct index_key *key, struct index_record *record, struct err *err)
{
    struct index_block block;

    if (!ix->n)
        return 0;
    size_t number = block_of(ix, key), low = 0, high = records_in(ix, number);
    if (read_block(ix, number, &block, err))
        return err->code;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (key_below(&block.record[middle].key, key))
            low = middle + 1;
        else
            high = middle;
    }
    if (low < records_in(ix, number)) {
        *record = block.record[low];
        return 1;
    }
    if (number + 1 == ix->n_blocks)
        return 0;
    if (read_block(ix, number + 1, &block, err))
        return err->code;
    *record = block.record[0];
    return 1;
}

int index_at(const struct index *ix, size_t i, struct index_record *record, struct err *err)
{
    struct index_block block;

    if (read_block(ix, i / INDEX_RECORDS, &block, err))
        return err->code;
    *record = block.record[i % INDEX_RECORDS];
    return 0;
}

int index_check(const struct index *ix, struct err *err)
{
    struct index_block block;
    struct index_key last = { { 0 }, { 0 }, { 0 }, { 0 } };

    for (size_t b = 0; b < ix->n_blocks; b++) {
        if (read_block(ix, b, &block, err))
            return err->code;
        if (memcmp(&block.record[0].key, &ix->fence[b], sizeof(last)) != 0)
            return damaged(err, "a fence");
        for (size_t i = 0; i < records_in(ix, b); i++) {
            if (b + i && !key_below(&last, &block.record[i].key))
                return damaged(err, "the order of its records");
            last = block.record[i].key;
        }
    }
    return 0;
}
