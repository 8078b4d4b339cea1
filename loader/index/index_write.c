/* index_write.c - an index from records in memory: sorted, with fences, filter and checksums, under its name only when
 * it is flushed. And what names and keys are, which writer and reader share.
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

static int compare_records(const void *a, const void *b)
{
    const struct index_record *x = a, *y = b;
    int order = memcmp(&x->key, &y->key, sizeof(x->key));

    return order ? order : (x->order < y->order) - (x->order > y->order);
}

/* Sorts, and keeps the first of each key, which has the highest order. */
static void sort_records(struct index_made *made)
{
    size_t n = 0;

    qsort(made->record, made->n, sizeof(*made->record), compare_records);
    for (size_t i = 0; i < made->n; i++) {
        if (n && memcmp(&made->record[n - 1].key, &made->record[i].key, sizeof(struct index_key)) == 0)
            continue;
        made->record[n] = made->record[i];
        made->record[n++].order = 0;
    }
    made->n = n;
}

/* ---- the file ------------------------------------------------------------------ */

static struct index_header header_of(const struct index_made *made)
{
    struct index_header h = { .version = INDEX_VERSION,
                              .n_name_spaces = (uint32_t)made->n_name_spaces,
                              .n_configs = (uint32_t)made->n_configs,
                              .n_records = made->n,
                              .n_filter = 64,
                              .generation = made->generation };

    memcpy(h.magic, index_magic, sizeof(h.magic));
    memcpy(h.store, made->store, sizeof(h.store));
    while (h.n_filter < made->n)
        h.n_filter *= 2;
    return h;
}

/* Namespaces, configs, filter and fences, as many bytes as the blocks that they take; NULL without memory. */
static char *make_tables(const struct index_header *h, const struct index_made *made)
{
    char *tables = calloc(1, index_records_at(h) - INDEX_BLOCK + 1), *to = tables;

    if (!tables)
        return NULL;
    for (int i = 0; i < made->n_name_spaces; i++, to += INDEX_TEXT)
        snprintf(to, INDEX_TEXT, "%s", made->name_space[i]);
    for (int i = 0; i < made->n_configs; i++, to += INDEX_TEXT)
        snprintf(to, INDEX_TEXT, "%s", made->config[i]);
    for (size_t i = 0; i < made->n; i++) {
        for (int probe = 0; probe < FILTER_PROBES; probe++) {
            size_t bit = index_filter_bit(h, &made->record[i].key, probe);
            to[bit / 8] = (char)(to[bit / 8] | 1 << bit % 8);
        }
    }
    to += h->n_filter;
    for (size_t i = 0; i < made->n; i += INDEX_RECORDS, to += sizeof(struct index_key))
        memcpy(to, &made->record[i].key, sizeof(struct index_key));
    return tables;
}

static bool write_header(FILE *f, struct index_header *h, const char *tables)
{
    char block[INDEX_BLOCK] = { 0 };

    h->tables_checksum = digest_xxh3(tables, index_tables(h));
    h->checksum = digest_xxh3(h, offsetof(struct index_header, checksum));
    memcpy(block, h, sizeof(*h));
    return fwrite(block, 1, sizeof(block), f) == sizeof(block);
}

static bool write_block(FILE *f, const struct index_header *h, const struct index_made *made, size_t number)
{
    struct index_block block = { .number = number, .generation = h->generation };
    size_t first = number * INDEX_RECORDS, n = made->n - first < INDEX_RECORDS ? made->n - first : INDEX_RECORDS;

    memcpy(block.store, h->store, sizeof(block.store));
    memcpy(block.record, made->record + first, n * sizeof(*block.record));
    block.checksum = digest_xxh3(&block.number, sizeof(block) - offsetof(struct index_block, number));
    return fwrite(&block, sizeof(block), 1, f) == 1;
}

static int write_file(FILE *f, struct index_made *made, struct err *err)
{
    struct index_header h = header_of(made);
    char *tables = make_tables(&h, made);

    if (!tables)
        return err_nomem(err);
    size_t n = index_records_at(&h) - INDEX_BLOCK;
    bool done = write_header(f, &h, tables) && fwrite(tables, 1, n, f) == n;
    for (size_t i = 0; i < index_blocks(&h) && done; i++)
        done = write_block(f, &h, made, i);
    free(tables);
    done = done && !fflush(f) && !fsync(fileno(f));
    return done ? 0 : err_set(err, ERR_IO, "cannot write 'evp-index': %s", strerror(errno));
}

/* One writer holds the folder's lock, so the temporary name is free or left by a writer that was killed. */
int index_write(int folder, struct index_made *made, struct err *err)
{
    static const char temp[] = "evp-index.new";
    int fd = openat(folder, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");

    if (!f) {
        if (fd >= 0)
            close(fd);
        return err_set(err, ERR_IO, "cannot create '%s': %s", temp, strerror(errno));
    }
    sort_records(made);
    int code = folder_adopt(folder, fd, err) ? err->code : write_file(f, made, err);
    fclose(f);
    if (!code && (renameat(folder, temp, folder, "evp-index") || (fsync(folder) && errno != EINVAL)))
        code = err_set(err, ERR_IO, "cannot replace 'evp-index': %s", strerror(errno));
    if (code)
        unlinkat(folder, temp, 0);
    return code;
}
