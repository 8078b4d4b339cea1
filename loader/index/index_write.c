/* index_write.c - an index from records in memory, or from another index and changes: sorted, with fences, filter and
 * checksums, under its name only when it is flushed. And what names and keys are, which writer and reader share.
 *
 * All readers open evp-index first, so renaming it is the one moment at which anything changes. Before it there may be
 * a base that nothing names yet, after it one that nothing names any more: both are removed when a base is written.
 */
#include "loader/index/index_internal.h"

#include "loader/index/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char index_magic[8] = "EVPINDEX";

/* ---- names and keys --------------------------------------------------------- */

void index_key_set(struct index_key *key, const uint8_t prefix[INDEX_ID], const char *token_digest, int64_t n_tokens)
{
    memcpy(key->prefix, prefix, INDEX_ID);
    key->tail[0] = 0;
    key->tail[1] = (uint8_t)(n_tokens % DIGEST_CHUNK);
    digest_from_hex(token_digest, key->digest, sizeof(key->digest));
}

void index_key_set_part(struct index_key *key, const uint8_t digest[32])
{
    memcpy(key->prefix, digest, INDEX_ID);
    key->tail[0] = DIGEST_CHUNK >> 8;
    key->tail[1] = 0;
    memcpy(key->digest, digest, sizeof(key->digest));
}

int index_whole_of(const struct index_record *part, struct index_whole *whole, struct err *err)
{
    memcpy(whole, &part->checksum, sizeof(*whole));
    if (whole->n_tokens <= part->n_tokens || whole->header > part->size ||
        (part->size - whole->header) % whole->n_tokens)
        return index_damaged(err, "a part of a context");
    return 0;
}

int index_prefix(const void *ids, int64_t n, uint8_t prefix[INDEX_ID], struct err *err)
{
    char hex[DIGEST_HEX];

    memset(prefix, 0, INDEX_ID);
    if (n < DIGEST_CHUNK)
        return 0;
    if (digest_sha256(ids, (size_t)(n - n % DIGEST_CHUNK) * sizeof(int32_t), hex, err))
        return err->code;
    digest_from_hex(hex, prefix, INDEX_ID);
    return 0;
}

/* ---- records ------------------------------------------------------------------ */

static int compare_changes(const void *a, const void *b)
{
    const struct index_record *x = a, *y = b;
    int order = index_compare(x, y);

    return order ? order : index_gone(x) - index_gone(y);
}

/* Sorts, and keeps the first of equal records. */
static void sort_records(struct index_made *made)
{
    size_t n = 0;

    if (made->n) // without records there may be no array
        qsort(made->record, made->n, sizeof(*made->record), compare_changes);
    for (size_t i = 0; i < made->n; i++)
        if (!n || index_compare(&made->record[n - 1], &made->record[i]) != 0)
            made->record[n++] = made->record[i];
    made->n = n;
}

/* ---- one file ------------------------------------------------------------------- */

/* A file being written: the records of two cursors, or with a base those of `above` as they are. */
struct making {
    const struct index_made *made; // all but its records
    struct index_header header;
    struct index_cursor above, below;
    char *tables; // texts, filter, fences
    FILE *f;
};

static void set_header(struct making *m, size_t n)
{
    struct index_header *h = &m->header;

    *h = (struct index_header){ .version = INDEX_VERSION,
                                .n_name_spaces = (uint32_t)m->made->n_name_spaces,
                                .n_configs = (uint32_t)m->made->n_configs,
                                .n_records = n,
                                .n_filter = 64,
                                .generation = m->made->generation };
    memcpy(h->magic, index_magic, sizeof(h->magic));
    memcpy(h->store, m->made->store, sizeof(h->store));
    while (h->n_filter < n)
        h->n_filter *= 2;
}

static int next_record(struct making *m, struct index_record *r, struct err *err)
{
    const struct index_record *next;

    if (!m->header.base)
        return index_merge_next(&m->above, &m->below, r, err);
    int got = index_cursor_peek(&m->above, &next, err);
    if (got == 1) {
        *r = *next;
        m->above.at++;
    }
    return got;
}

static void add_to_filter(struct making *m, const struct index_key *key)
{
    char *filter = m->tables + ((size_t)m->header.n_name_spaces + m->header.n_configs) * INDEX_TEXT;

    for (int probe = 0; probe < FILTER_PROBES; probe++) {
        size_t bit = index_filter_bit(&m->header, key, probe);
        filter[bit / 8] = (char)(filter[bit / 8] | 1 << bit % 8);
    }
}

static int failed(struct err *err)
{
    return err_set(err, ERR_IO, "cannot write 'evp-index': %s", strerror(errno));
}

static int write_block(struct making *m, size_t number, struct err *err)
{
    const struct index_header *h = &m->header;
    struct index_block block = { .number = number, .generation = h->generation };
    size_t left = (size_t)h->n_records - number * INDEX_RECORDS, n = left < INDEX_RECORDS ? left : INDEX_RECORDS;

    memcpy(block.store, h->store, sizeof(block.store));
    for (size_t i = 0; i < n; i++) {
        int got = next_record(m, &block.record[i], err);
        if (got != 1)
            return got ? got : index_damaged(err, "the number of its records");
        add_to_filter(m, &block.record[i].key);
        if (!h->base && index_is_part(&block.record[i].key) && ++m->header.n_parts == 0)
            return err_set(err, ERR_FAIL, "an index has less than 2^32 parts of contexts");
    }
    char *fence = m->tables + index_tables(h) - (index_blocks(h) - number) * sizeof(struct index_key);
    memcpy(fence, &block.record[0].key, sizeof(struct index_key));
    block.checksum = digest_xxh3(&block.number, sizeof(block) - offsetof(struct index_block, number));
    return fwrite(&block, sizeof(block), 1, m->f) == 1 ? 0 : failed(err);
}

/* Filter and fences follow from the records, so the blocks are written first. */
static int write_blocks(struct making *m, struct err *err)
{
    char *to = m->tables;
    struct index_record extra;

    for (int i = 0; i < m->made->n_name_spaces; i++, to += INDEX_TEXT)
        snprintf(to, INDEX_TEXT, "%s", m->made->name_space[i]);
    for (int i = 0; i < m->made->n_configs; i++, to += INDEX_TEXT)
        snprintf(to, INDEX_TEXT, "%s", m->made->config[i]);
    if (fseeko(m->f, (off_t)index_records_at(&m->header), SEEK_SET))
        return failed(err);
    for (size_t i = 0; i < index_blocks(&m->header); i++)
        if (write_block(m, i, err))
            return err->code;
    int got = next_record(m, &extra, err);
    return got == 1 ? index_damaged(err, "the number of its records") : got;
}

static int write_head(struct making *m, struct err *err)
{
    struct index_header *h = &m->header;
    char block[INDEX_BLOCK] = { 0 };
    size_t n = index_records_at(h) - INDEX_BLOCK;

    h->tables_checksum = digest_xxh3(m->tables, index_tables(h));
    h->checksum = digest_xxh3(h, offsetof(struct index_header, checksum));
    memcpy(block, h, sizeof(*h));
    bool done = !fseeko(m->f, 0, SEEK_SET) && fwrite(block, sizeof(block), 1, m->f) == 1 &&
                fwrite(m->tables, 1, n, m->f) == n && !fflush(m->f) && !fsync(fileno(m->f));
    return done ? 0 : failed(err);
}

static int write_open_file(struct making *m, struct err *err)
{
    m->tables = calloc(1, index_records_at(&m->header) - INDEX_BLOCK + 1);
    int code = !m->tables ? err_nomem(err) : write_blocks(m, err) || write_head(m, err) ? err->code : 0;
    free(m->tables);
    return code;
}

enum kind { THE_INDEX, A_BASE };

/* One writer holds the folder's lock, so the temporary name is free or left by a writer that was killed. */
static int write_file(int folder, struct making *m, enum kind kind, struct err *err)
{
    static const char temp[] = "evp-index.new";
    char name[INDEX_BASE_NAME] = "evp-index";
    int fd = openat(folder, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    m->f = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!m->f) {
        if (fd >= 0)
            close(fd);
        return err_set(err, ERR_IO, "cannot create '%s': %s", temp, strerror(errno));
    }
    int code = folder_adopt(folder, fd, err) ? err->code : write_open_file(m, err);
    fclose(m->f);
    if (kind == A_BASE)
        index_base_name(m->header.checksum, name);
    if (!code && (renameat(folder, temp, folder, name) || (fsync(folder) && errno != EINVAL)))
        code = err_set(err, ERR_IO, "cannot replace '%s': %s", name, strerror(errno));
    if (code)
        unlinkat(folder, temp, 0);
    return code;
}

/* ---- the index --------------------------------------------------------------------- */

struct bases {
    int folder;
    char keep[INDEX_BASE_NAME];
};

static int remove_base(void *arg, const char *file, struct err *err)
{
    const struct bases *b = arg;

    if (strncmp(file, "evp-base-", 9) != 0 || strlen(file) != strlen(b->keep) || strcmp(file, b->keep) == 0 ||
        !unlinkat(b->folder, file, 0) || errno == ENOENT)
        return 0;
    return err_set(err, ERR_IO, "cannot remove '%s': %s", file, strerror(errno));
}

/* Writes n records that the cursors have together: alone when they are few, else as a base and an empty delta. */
static int write_whole(int folder, struct making *m, size_t n, struct err *err)
{
    struct bases bases = { .folder = folder };
    uint64_t base = 0;

    set_header(m, n);
    if (write_file(folder, m, n > INDEX_SMALL ? A_BASE : THE_INDEX, err))
        return err->code;
    if (n > INDEX_SMALL) {
        const uint32_t n_parts = m->header.n_parts;
        base = m->header.checksum;
        index_cursor_list(&m->above, NULL, 0);
        set_header(m, 0);
        m->header.base = base;
        m->header.n_parts = n_parts;
        if (write_file(folder, m, THE_INDEX, err))
            return err->code;
    }
    index_base_name(base, bases.keep);
    return folder_each_file(folder, remove_base, &bases, err);
}

int index_write(int folder, struct index_made *made, struct err *err)
{
    struct making m = { .made = made };

    sort_records(made);
    index_cursor_list(&m.above, made->record, made->n);
    index_cursor_file(&m.below, NULL);
    return write_whole(folder, &m, made->n, err);
}

/* ---- changes ------------------------------------------------------------------------- */

/* What is above a base: records that it lacks, and some of its own that are gone. */
struct delta {
    struct index_record *at; // (n)
    size_t n, n_gone;
    int64_t more_parts; // than the base has
};

/* 1: a file has the record; 0: it has not. Records are asked for in their order: of one key, the cursor goes on. */
static int has_record(struct index_cursor *file, const struct index_record *r, struct err *err)
{
    const struct index_record *next;
    int got = index_cursor_peek(file, &next, err);

    if (got < 0 ||
        ((!got || memcmp(&next->key, &r->key, sizeof(r->key)) != 0) && index_cursor_seek(file, &r->key, err)))
        return err->code;
    while ((got = index_cursor_peek(file, &next, err)) == 1) {
        int order = index_compare(next, r);
        if (order >= 0)
            return order == 0;
        file->at++;
    }
    return got;
}

/* Puts the changes over what the old delta has, `above`. What the base says already is left out. */
static int make_delta(struct delta *d, struct index_cursor *above, struct index_cursor *changes,
                      struct index_cursor *base, struct err *err)
{
    const struct index_record *a, *c;

    for (;;) {
        int got_a = index_cursor_peek(above, &a, err), got_c = index_cursor_peek(changes, &c, err);
        if (got_a < 0 || (!got_a && !got_c))
            return got_a;
        int order = !got_c ? 1 : !got_a ? -1 : index_compare(c, a);
        const struct index_record r = order <= 0 ? *c : *a;
        changes->at += order <= 0;
        above->at += order >= 0;
        int has = order <= 0 ? has_record(base, &r, err) : index_gone(&r);
        if (has < 0)
            return has;
        if (has == index_gone(&r)) {
            d->at[d->n++] = r;
            d->n_gone += (size_t)has;
            d->more_parts += index_is_part(&r.key) ? 1 - 2 * has : 0;
        }
    }
}

static int collect_delta(struct delta *d, const struct index *old, const struct index_made *changes, struct err *err)
{
    struct index_cursor above, change, base;
    size_t n = old->base ? old->top->n : 0;

    *d = (struct delta){ .at = malloc((n + changes->n + 1) * sizeof(*d->at)) };
    if (!d->at)
        return err_nomem(err);
    index_cursor_file(&above, old->base ? old->top : NULL);
    index_cursor_file(&base, old->base ? old->base : old->top);
    index_cursor_list(&change, changes->record, changes->n);
    return make_delta(d, &above, &change, &base, err);
}

/* Deltas are cheap while they are few: after those that together have cost what writing the base costs, a few times
 * over because it is read and flushed, too, they are merged. So n changes cost each about the square root of n. And a
 * delta is in memory while it is made: it has at most a part of its base. */
enum { MERGE_AFTER = 4, DELTA_PART = 4 };

static int write_delta(int folder, struct making *m, const struct index *old, const struct delta *d, struct err *err)
{
    const struct index_file *base = old->base ? old->base : old->top;
    size_t n_base = base ? base->n : 0, n = n_base + d->n - 2 * d->n_gone;
    uint64_t written = old->base ? old->top->header.written + d->n : 0;

    int64_t n_parts = index_file_parts(base) + d->more_parts;

    if (d->n_gone > n_base || n_parts < 0)
        return index_damaged(err, "the records that are gone");
    index_cursor_list(&m->above, d->at, d->n);
    index_cursor_file(&m->below, base);
    if (!old->base || n <= INDEX_SMALL || written > MERGE_AFTER * n_base || d->n > n_base / DELTA_PART)
        return write_whole(folder, m, n, err);
    set_header(m, d->n);
    m->header.base = base->header.checksum;
    m->header.n_gone = d->n_gone;
    m->header.n_parts = (uint32_t)n_parts;
    m->header.written = written;
    return write_file(folder, m, THE_INDEX, err);
}

int index_change(int folder, const struct index *old, struct index_made *changes, struct err *err)
{
    struct making m = { .made = changes };
    struct delta d;

    sort_records(changes);
    int code = collect_delta(&d, old, changes, err);
    if (!code)
        code = write_delta(folder, &m, old, &d, err);
    free(d.at);
    return code;
}
