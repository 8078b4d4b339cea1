/* index.c - any bytes as the published index of a folder, and what follows them as its base: refused with a sentence,
 * or searched without a step outside of it. The headers' and the blocks' checksums are put right first, and the name of
 * the base, so that what they guard is reached, too.
 */
#include "loader/index/folder.h"
#include "loader/index/index_internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int folder = -1;

/* The bytes of the file that the header at `bytes` tells of; all n of them when it tells none. */
static size_t file_size(const uint8_t *bytes, size_t n)
{
    struct index_header h;

    if (n < INDEX_BLOCK)
        return n;
    memcpy(&h, bytes, sizeof(h));
    if (h.n_records >= 1 << 20 || h.n_filter >= 1 << 20 || h.n_name_spaces >= 1 << 16 || h.n_configs >= 1 << 16)
        return n;
    size_t size = index_records_at(&h) + index_blocks(&h) * INDEX_BLOCK;
    return size < n ? size : n;
}

/* Puts right a file of n bytes whose base is `base`; returns what is to be called its checksum. */
static uint64_t put_right(uint8_t *bytes, size_t n, uint64_t base)
{
    struct index_header h;
    struct index_block block;

    if (n < INDEX_BLOCK)
        return 0;
    memcpy(&h, bytes, sizeof(h));
    bool old = h.version == INDEX_VERSION_2;
    if (h.n_records < 1 << 20 && h.n_filter < 1 << 20 && h.n_name_spaces < 1 << 16 && h.n_configs < 1 << 16) {
        size_t tables = index_tables(&h), at = index_records_at(&h);
        if (INDEX_BLOCK + tables <= n)
            h.tables_checksum = digest_xxh3(bytes + INDEX_BLOCK, tables);
        for (; at + INDEX_BLOCK <= n; at += INDEX_BLOCK) {
            memcpy(&block, bytes + at, sizeof(block));
            block.checksum = digest_xxh3(&block.number, sizeof(block) - offsetof(struct index_block, number));
            memcpy(bytes + at, &block, sizeof(block));
        }
    }
    if (old)
        h.base = digest_xxh3(&h, offsetof(struct index_header, base));
    else {
        h.base = base;
        h.checksum = digest_xxh3(&h, offsetof(struct index_header, checksum));
    }
    memcpy(bytes, &h, sizeof(h));
    return old ? h.base : h.checksum;
}

static void search(const uint8_t *data, size_t n)
{
    struct index ix;
    struct index_key key;
    struct index_record r;
    struct err err;

    if (!index_open(&ix, folder, &err)) {
        memset(&key, 0, sizeof(key));
        memcpy(&key, data, n < sizeof(key) ? n : sizeof(key));
        index_may_have(&ix, &key);
        if (index_seek(&ix, &key, &r, &err) == 1 && ix.config[r.config].at[INDEX_TEXT - 1])
            abort();
        struct index_walk *w = index_walk_new(&ix, &err);
        size_t walked = 0;
        while (w && index_walk_next(w, &r, &err) == 1)
            walked++;
        if (!index_check(&ix, &err) && walked != ix.n)
            abort();
        index_walk_free(w);
        index_name_space(&ix, "name");
    }
    index_close(&ix);
}

/* What a writer makes of it: an index that is whole, or a sentence. */
static void change(void)
{
    struct index ix;
    struct index_record r = { .n_tokens = 1, .size = 1, .order = 1 };
    struct err err;

    if (!index_open(&ix, folder, &err) && ix.n_name_spaces && ix.n_configs) {
        const char **text = calloc((size_t)ix.n_name_spaces + (size_t)ix.n_configs, sizeof(*text));
        struct index_made made = { .generation = 1,
                                   .name_space = text,
                                   .config = text + ix.n_name_spaces,
                                   .n_name_spaces = ix.n_name_spaces,
                                   .n_configs = ix.n_configs,
                                   .record = &r,
                                   .n = 1 };
        for (int i = 0; i < ix.n_name_spaces + ix.n_configs; i++)
            text[i] = ix.name_space[i].at;
        memcpy(made.store, ix.top->header.store, sizeof(made.store));
        bool good = !index_check(&ix, &err);
        if (index_change(folder, &ix, &made, &err) && good)
            abort();
        free(text);
        index_close(&ix);
        if (good && (index_open(&ix, folder, &err) || index_check(&ix, &err)))
            abort();
    }
    index_close(&ix);
}

static void write_bytes(const char *name, const uint8_t *bytes, size_t n)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        abort();
    close(fd);
}

static int remove_file(void *arg, const char *file, struct err *err)
{
    (void)arg;
    (void)err;
    unlinkat(folder, file, 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char dir[] = "/tmp/evp-fuzz-XXXXXX", name[INDEX_BASE_NAME];
    uint8_t *copy = malloc(n + 1);
    struct err err;

    folder = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY) : -1;
    if (folder < 0 || !copy)
        abort();
    memcpy(copy, data, n);
    write_bytes("evp-index", copy, n);
    search(data, n);
    size_t top = file_size(copy, n);
    uint64_t base = top < n ? put_right(copy + top, n - top, 0) : 0;
    put_right(copy, top, base);
    write_bytes("evp-index", copy, top);
    if (base) {
        index_base_name(base, name);
        write_bytes(name, copy + top, n - top);
    }
    search(data, n);
    change();
    free(copy);
    if (folder_each_file(folder, remove_file, NULL, &err))
        abort();
    close(folder);
    if (rmdir(dir))
        abort();
    return 0;
}
