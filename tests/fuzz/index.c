/* index.c - any bytes as the published index of a folder: refused with a sentence, or searched without a step outside
 * of it. The header's and the blocks' checksums are put right first, so that what they guard is reached, too.
 */
#include "loader/index/index_internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int folder = -1;

static void put_right(uint8_t *bytes, size_t n)
{
    struct index_header h;
    struct index_block block;

    if (n < INDEX_BLOCK)
        return;
    memcpy(&h, bytes, sizeof(h));
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
    h.checksum = digest_xxh3(&h, offsetof(struct index_header, checksum));
    memcpy(bytes, &h, sizeof(h));
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
        if (!index_check(&ix, &err) && ix.n && index_at(&ix, ix.n - 1, &r, &err))
            abort();
        index_name_space(&ix, "name");
    }
    index_close(&ix);
}

static void write_index(const uint8_t *bytes, size_t n)
{
    int fd = openat(folder, "evp-index", O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        abort();
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char dir[] = "/tmp/evp-fuzz-XXXXXX";
    uint8_t *copy = malloc(n + 1);

    folder = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY) : -1;
    if (folder < 0 || !copy)
        abort();
    memcpy(copy, data, n);
    write_index(copy, n);
    search(data, n);
    put_right(copy, n);
    write_index(copy, n);
    search(data, n);
    free(copy);
    unlinkat(folder, "evp-index", 0);
    close(folder);
    if (rmdir(dir))
        abort();
    return 0;
}
