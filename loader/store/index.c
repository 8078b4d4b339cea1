/* index.c - the index of a folder: keys, opening, searching and writing. */
#include "loader/store/index.h"

#include "loader/store/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(struct index_key) == 52 && sizeof(struct index_record) == 96, "records have no holes");
_Static_assert(sizeof(struct index_header) == 64, "the header has no holes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little-endian");

static int damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_FORMAT, "'evp-index' is damaged (%s); the next evp-load writes it again", what);
}

/* ---- keys ------------------------------------------------------------------------ */

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
        return damaged(err, "a part of a context");
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

int index_compare(const struct index_record *a, const struct index_record *b)
{
    int order = memcmp(&a->key, &b->key, sizeof(a->key));

    if (!order)
        order = (a->order < b->order) - (a->order > b->order);
    return order ? order : memcmp(a->object, b->object, sizeof(a->object));
}

/* ---- opening ---------------------------------------------------------------------- */

static int check_header(const struct index_header *h, size_t size, struct err *err)
{
    const size_t after_checksum = offsetof(struct index_header, version);

    if (size < sizeof(*h) || memcmp(h->magic, INDEX_MAGIC, sizeof(h->magic)) != 0)
        return damaged(err, "it does not begin like an index");
    if (h->version != INDEX_VERSION)
        return err_set(err, ERR_FORMAT, "'evp-index' is of version %u; this program reads version %d", h->version,
                       INDEX_VERSION);
    if (h->n_name_spaces > INDEX_TEXTS || h->n_configs > INDEX_TEXTS ||
        h->n_records > size / sizeof(struct index_record) ||
        size != sizeof(*h) + ((size_t)h->n_name_spaces + h->n_configs) * INDEX_TEXT +
                    (size_t)h->n_records * sizeof(struct index_record))
        return damaged(err, "its size");
    return h->checksum == digest_xxh3((const char *)h + after_checksum, size - after_checksum)
               ? 0
               : damaged(err, "its checksum");
}

static int check_content(struct index *ix, struct err *err)
{
    for (int i = 0; i < ix->n_name_spaces + ix->n_configs; i++) /* the configs follow the namespaces */
        if (strnlen(ix->name_space[i].at, INDEX_TEXT) == INDEX_TEXT)
            return damaged(err, "a text");
    for (size_t i = 0; i < ix->n; i++) {
        if (ix->record[i].config >= ix->n_configs)
            return damaged(err, "a record");
        if (i && index_compare(&ix->record[i - 1], &ix->record[i]) >= 0)
            return damaged(err, "the order of its records");
        ix->n_parts += index_is_part(&ix->record[i].key);
        ix->bytes += index_is_part(&ix->record[i].key) ? 0 : ix->record[i].size;
    }
    return 0;
}

/* Makes *ix an index of these bytes, which it then owns. */
static int take_bytes(struct index *ix, void *bytes, size_t size, struct err *err)
{
    const struct index_header *h = ix->header = bytes;

    if (check_header(h, size, err))
        return err->code;
    ix->name_space = (const struct index_text *)(const void *)(h + 1);
    ix->config = ix->name_space + h->n_name_spaces;
    ix->record = (const struct index_record *)(const void *)(ix->config + h->n_configs);
    ix->n_name_spaces = (int)h->n_name_spaces;
    ix->n_configs = (int)h->n_configs;
    ix->n = (size_t)h->n_records;
    return check_content(ix, err);
}

static int unreadable(struct err *err, const char *what)
{
    return err_set(err, errno == ESTALE ? ERR_STALE : ERR_IO, "cannot %s 'evp-index': %s", what, strerror(errno));
}

static int read_bytes(int fd, char *to, size_t n, struct err *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(fd, to + done, n - done, (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return unreadable(err, "read");
        if (got == 0)
            return damaged(err, "it was cut");
        done += (size_t)got;
    }
    return 0;
}

static int read_file(struct index *ix, int fd, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st))
        return unreadable(err, "look at");
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_FORMAT, "'evp-index' is not a file");
    char *bytes = malloc((size_t)st.st_size + 1);
    if (!bytes)
        return err_nomem(err);
    if (!read_bytes(fd, bytes, (size_t)st.st_size, err))
        return take_bytes(ix, bytes, (size_t)st.st_size, err);
    free(bytes);
    return err->code;
}

static int open_once(struct index *ix, int folder, struct err *err)
{
    int fd = openat(folder, "evp-index", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    *ix = (struct index){ 0 };
    if (fd < 0)
        return errno == ENOENT ? 0 : unreadable(err, "open");
    int code = read_file(ix, fd, err);
    close(fd);
    if (code)
        index_close(ix);
    return code;
}

/* On a network file system a writer on another host may replace the file while it is read. */
int index_open(struct index *ix, int folder, struct err *err)
{
    int code = open_once(ix, folder, err);

    if (code == ERR_STALE)
        code = open_once(ix, folder, err);
    return code == ERR_STALE ? (err->code = ERR_IO) : code;
}

void index_close(struct index *ix)
{
    free(ix->header);
    *ix = (struct index){ 0 };
}

const uint8_t *index_store(const struct index *ix)
{
    return ix->header ? ix->header->store : NULL;
}

bool index_is_of(const struct index *ix, const uint8_t store[INDEX_ID], uint64_t generation)
{
    return ix->header && memcmp(ix->header->store, store, INDEX_ID) == 0 && ix->header->generation == generation;
}

/* ---- searching -------------------------------------------------------------------- */

int index_name_space(const struct index *ix, const char *name)
{
    for (int i = 0; i < ix->n_name_spaces; i++)
        if (strcmp(ix->name_space[i].at, name) == 0)
            return i;
    return -1;
}

const struct index_record *index_from_in(const struct index_record *low, const struct index_record *high,
                                         const struct index_key *key)
{
    while (low < high) {
        const struct index_record *middle = low + (high - low) / 2;
        if (memcmp(&middle->key, key, sizeof(*key)) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct index_record *index_from(const struct index *ix, const struct index_key *key)
{
    return index_from_in(ix->record, ix->record + ix->n, key);
}

const struct index_record *index_seek(const struct index *ix, const struct index_key *key)
{
    const struct index_record *r = index_from(ix, key);

    return r < ix->record + ix->n && memcmp(&r->key, key, sizeof(*key)) == 0 ? r : NULL;
}

const struct index_record *index_seek_object(const struct index *ix, const struct index_key *key,
                                             const uint8_t object[INDEX_ID])
{
    const struct index_record *r = index_seek(ix, key), *end = ix->record + ix->n;

    for (; r && r < end && memcmp(&r->key, key, sizeof(*key)) == 0; r++)
        if (memcmp(r->object, object, INDEX_ID) == 0)
            return r;
    return NULL;
}

/* ---- writing ---------------------------------------------------------------------- */

/* The content of the file, of `size` bytes; NULL without memory. */
static char *make_bytes(const struct index_made *made, size_t size)
{
    const size_t after_checksum = offsetof(struct index_header, version);
    struct index_header h = { .magic = { 0 },
                              .version = INDEX_VERSION,
                              .n_name_spaces = (uint32_t)made->n_name_spaces,
                              .n_configs = (uint32_t)made->n_configs,
                              .n_records = made->n,
                              .generation = made->generation };
    char *bytes = calloc(1, size), *to = bytes + sizeof(h);

    if (!bytes)
        return NULL;
    memcpy(h.magic, INDEX_MAGIC, sizeof(h.magic));
    memcpy(h.store, made->store, sizeof(h.store));
    for (int i = 0; i < made->n_name_spaces; i++, to += INDEX_TEXT)
        snprintf(to, INDEX_TEXT, "%s", made->name_space[i]);
    for (int i = 0; i < made->n_configs; i++, to += INDEX_TEXT)
        snprintf(to, INDEX_TEXT, "%s", made->config[i]);
    if (made->n)
        memcpy(to, made->record, made->n * sizeof(*made->record));
    memcpy(bytes, &h, sizeof(h));
    h.checksum = digest_xxh3(bytes + after_checksum, size - after_checksum);
    memcpy(bytes, &h, sizeof(h));
    return bytes;
}

static int write_bytes(int folder, int fd, const char *bytes, size_t n, struct err *err)
{
    if (folder_adopt(folder, fd, err))
        return err->code;
    for (size_t done = 0; done < n;) {
        ssize_t put = write(fd, bytes + done, n - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return err_set(err, ERR_IO, "cannot write 'evp-index': %s", strerror(errno));
        done += (size_t)put;
    }
    return fsync(fd) ? err_set(err, ERR_IO, "cannot flush 'evp-index': %s", strerror(errno)) : 0;
}

/* The writer holds the folder's lock, so the temporary name is free or left by a killed writer. */
static int write_file(int folder, const char *bytes, size_t n, struct err *err)
{
    static const char temp[] = "evp-index.new";
    int fd = openat(folder, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_set(err, ERR_IO, "cannot create '%s': %s", temp, strerror(errno));
    int code = write_bytes(folder, fd, bytes, n, err);
    if (close(fd) && !code)
        code = err_set(err, ERR_IO, "cannot write 'evp-index': %s", strerror(errno));
    if (!code && (renameat(folder, temp, folder, "evp-index") || (fsync(folder) && errno != EINVAL)))
        code = err_set(err, ERR_IO, "cannot replace 'evp-index': %s", strerror(errno));
    if (code)
        unlinkat(folder, temp, 0);
    return code;
}

int index_write(struct index *ix, int folder, const struct index_made *made, struct err *err)
{
    const size_t n_texts = (size_t)made->n_name_spaces + (size_t)made->n_configs;
    const size_t size = sizeof(*ix->header) + n_texts * INDEX_TEXT + made->n * sizeof(*made->record);
    char *bytes = make_bytes(made, size);

    *ix = (struct index){ 0 };
    if (!bytes)
        return err_nomem(err);
    if (!take_bytes(ix, bytes, size, err) && !write_file(folder, bytes, size, err))
        return 0;
    index_close(ix);
    return err->code;
}
