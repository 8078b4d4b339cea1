/* index_file.c - one file of an index, opened and searched. The tables are read once and checked; blocks are read one
 * by one, each checked as it comes. Nothing is mapped: a file that shrinks under a reader is an error, not a signal.
 */
#include "loader/index/index_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- opening ------------------------------------------------------------------ */

void index_base_name(uint64_t base, char name[INDEX_BASE_NAME])
{
    snprintf(name, INDEX_BASE_NAME, "evp-base-%016llx", (unsigned long long)base);
}

int index_damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_FORMAT, "'evp-index' is damaged (%s): evp-load writes it again", what);
}

static int read_at(const struct index_file *f, void *to, size_t n, size_t at, struct err *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(f->fd, (char *)to + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set(err, ERR_IO, "cannot read 'evp-index': %s", strerror(errno));
        if (got == 0)
            return index_damaged(err, "it was cut");
        done += (size_t)got;
    }
    return 0;
}

/* In version 2, without deltas, the header ended where `base` is now. */
static bool header_is_whole(struct index_header *h)
{
    if (h->version != INDEX_VERSION_2)
        return h->checksum == digest_xxh3(h, offsetof(struct index_header, checksum));
    h->checksum = h->base;
    h->base = h->n_gone = h->written = 0;
    return h->checksum == digest_xxh3(h, offsetof(struct index_header, base));
}

static int check_header(struct index_file *f, struct err *err)
{
    struct index_header *h = &f->header;

    if (h->magic[0] == '{')
        return err_set(err, ERR_FORMAT,
                       "'evp-index' is of version 1, of an earlier release: remove the folder's evp-* "
                       "files and run evp-load with the payload folder");
    if (memcmp(h->magic, index_magic, sizeof(h->magic)) != 0)
        return index_damaged(err, "it does not begin as an index does");
    if (h->version != INDEX_VERSION && h->version != INDEX_VERSION_2)
        return err_set(err, ERR_FORMAT, "'evp-index' is of version %u, this program reads %d and %d", h->version,
                       INDEX_VERSION_2, INDEX_VERSION);
    if (!header_is_whole(h))
        return index_damaged(err, "its header");
    if (h->n_records > (uint64_t)f->stat.st_size / sizeof(struct index_record) ||
        h->n_filter > (uint64_t)f->stat.st_size || h->n_filter < 64 || (h->n_filter & (h->n_filter - 1)) ||
        h->n_name_spaces > INDEX_TEXTS || h->n_configs > INDEX_TEXTS ||
        index_records_at(h) + index_blocks(h) * INDEX_BLOCK != (size_t)f->stat.st_size)
        return index_damaged(err, "its size");
    return 0;
}

static int check_texts(const struct index_file *f, struct err *err)
{
    const char *text = f->tables;

    for (uint32_t i = 0; i < f->header.n_name_spaces + f->header.n_configs; i++, text += INDEX_TEXT)
        if (strnlen(text, INDEX_TEXT) == INDEX_TEXT)
            return index_damaged(err, "a text");
    return 0;
}

static int read_tables(struct index_file *f, struct err *err)
{
    const struct index_header *h = &f->header;
    size_t n = index_tables(h);

    f->tables = malloc(n + 1);
    if (!f->tables)
        return err_nomem(err);
    if (read_at(f, f->tables, n, INDEX_BLOCK, err))
        return err->code;
    if (digest_xxh3(f->tables, n) != h->tables_checksum)
        return index_damaged(err, "its tables");
    f->n = (size_t)h->n_records;
    f->n_blocks = index_blocks(h);
    f->name_space = (const struct index_text *)(const void *)f->tables;
    f->config = f->name_space + h->n_name_spaces;
    f->filter = (const uint8_t *)(f->config + h->n_configs);
    f->fence = (const struct index_key *)(const void *)(f->filter + h->n_filter);
    return check_texts(f, err);
}

int index_file_open(struct index_file **file, int folder, const char *name, struct err *err)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    *file = NULL;
    if (fd < 0)
        return errno == ENOENT ? 0 : err_set(err, ERR_IO, "cannot open '%s': %s", name, strerror(errno));
    struct index_file *f = *file = calloc(1, sizeof(*f));
    if (!f) {
        close(fd);
        return err_nomem(err);
    }
    f->fd = fd;
    if (fstat(fd, &f->stat))
        return err_set(err, ERR_IO, "cannot look at '%s': %s", name, strerror(errno));
    if (!S_ISREG(f->stat.st_mode))
        return err_set(err, ERR_FORMAT, "'%s' is not a file", name);
    if (read_at(f, &f->header, sizeof(f->header), 0, err) || check_header(f, err))
        return err->code;
    return read_tables(f, err);
}

void index_file_close(struct index_file *f)
{
    if (!f)
        return;
    close(f->fd);
    free(f->tables);
    free(f);
}

bool index_file_may_have(const struct index_file *f, const struct index_key *key)
{
    for (int probe = 0; probe < FILTER_PROBES; probe++) {
        size_t bit = index_filter_bit(&f->header, key, probe);
        if (!(f->filter[bit / 8] >> bit % 8 & 1))
            return false;
    }
    return f->n > 0;
}

/* ---- blocks ---------------------------------------------------------------------- */

static bool key_below(const struct index_key *a, const struct index_key *b)
{
    return memcmp(a, b, sizeof(*a)) < 0;
}

static size_t records_in(const struct index_file *f, size_t block)
{
    size_t left = f->n - block * INDEX_RECORDS;

    return left < INDEX_RECORDS ? left : INDEX_RECORDS;
}

static int read_block(const struct index_file *f, size_t number, struct index_block *block, struct err *err)
{
    const struct index_header *h = &f->header;

    if (read_at(f, block, sizeof(*block), index_records_at(h) + number * INDEX_BLOCK, err))
        return err->code;
    if (block->checksum != digest_xxh3(&block->number, sizeof(*block) - offsetof(struct index_block, number)) ||
        block->number != number || block->generation != h->generation ||
        memcmp(block->store, h->store, sizeof(h->store)) != 0)
        return index_damaged(err, "a block");
    for (size_t i = 0; i < records_in(f, number); i++)
        if (block->record[i].config >= h->n_configs || (index_gone(&block->record[i]) && !h->base))
            return index_damaged(err, "a record");
    return 0;
}

/* The last block whose first key is below `key`, so that the first record with that key is in it or begins the next
 * one; 0 when there is none. */
static size_t block_of(const struct index_file *f, const struct index_key *key)
{
    size_t low = 0, high = f->n_blocks;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (key_below(&f->fence[middle], key))
            low = middle;
        else
            high = middle;
    }
    return low;
}

int index_file_check(const struct index_file *f, struct err *err)
{
    struct index_block block;
    struct index_record last = { .n_tokens = 0 };

    for (size_t b = 0; b < f->n_blocks; b++) {
        if (read_block(f, b, &block, err))
            return err->code;
        if (memcmp(&block.record[0].key, &f->fence[b], sizeof(last.key)) != 0)
            return index_damaged(err, "a fence");
        for (size_t i = 0; i < records_in(f, b); i++) {
            if (b + i && index_compare(&last, &block.record[i]) >= 0)
                return index_damaged(err, "the order of its records");
            last = block.record[i];
        }
    }
    return 0;
}

/* ---- records in order -------------------------------------------------------------- */

int index_compare(const struct index_record *a, const struct index_record *b)
{
    int order = memcmp(&a->key, &b->key, sizeof(a->key));

    if (!order)
        order = (a->order < b->order) - (a->order > b->order);
    return order ? order : memcmp(a->object, b->object, sizeof(a->object));
}

void index_cursor_file(struct index_cursor *c, const struct index_file *f)
{
    c->file = f;
    c->list = NULL;
    c->n = f ? f->n : 0;
    c->at = 0;
    c->number = SIZE_MAX;
}

void index_cursor_list(struct index_cursor *c, const struct index_record *list, size_t n)
{
    c->file = NULL;
    c->list = list;
    c->n = n;
    c->at = 0;
}

static int load_block(struct index_cursor *c, size_t number, struct err *err)
{
    if (c->number == number)
        return 0;
    c->number = SIZE_MAX;
    if (read_block(c->file, number, &c->block, err))
        return err->code;
    c->number = number;
    return 0;
}

int index_cursor_seek(struct index_cursor *c, const struct index_key *key, struct err *err)
{
    if (c->n == 0)
        return 0;
    size_t number = block_of(c->file, key), low = 0, high = records_in(c->file, number);
    if (load_block(c, number, err))
        return err->code;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (key_below(&c->block.record[middle].key, key))
            low = middle + 1;
        else
            high = middle;
    }
    c->at = number * INDEX_RECORDS + low;
    return 0;
}

int index_cursor_peek(struct index_cursor *c, const struct index_record **record, struct err *err)
{
    if (c->at >= c->n)
        return 0;
    if (c->file && load_block(c, c->at / INDEX_RECORDS, err))
        return err->code;
    *record = c->file ? &c->block.record[c->at % INDEX_RECORDS] : &c->list[c->at];
    return 1;
}

int index_merge_next(struct index_cursor *above, struct index_cursor *below, struct index_record *record,
                     struct err *err)
{
    const struct index_record *a, *b;

    for (;;) {
        int got_a = index_cursor_peek(above, &a, err), got_b = index_cursor_peek(below, &b, err);
        if (got_a < 0 || got_b < 0)
            return err->code;
        if (!got_a && !got_b)
            return 0;
        int order = !got_a ? 1 : !got_b ? -1 : index_compare(a, b);
        above->at += order <= 0;
        below->at += order >= 0;
        if (order > 0 || !index_gone(a)) {
            *record = order > 0 ? *b : *a;
            return 1;
        }
    }
}
