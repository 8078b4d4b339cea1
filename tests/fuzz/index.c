/* index.c - any bytes as the published index of a folder: refused with a sentence, or searched without a step outside
 * of it. The checksum is put right, too, so that what it guards is reached.
 */
#include "loader/store/index.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A prompt of the input's first bytes: a hit never says more ids than there are. */
static void find(const struct index *ix, const uint8_t *data, size_t n)
{
    struct index_view view[2] = { { ix, 0 }, { ix, 1 } };
    struct index_hit hit;
    int32_t ids[600];
    struct err err;

    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
        ids[i] = i < n ? data[i] : 0;
    for (size_t prompt = 0; prompt <= sizeof(ids) / sizeof(*ids); prompt += 100)
        if (index_find(&(struct index_views){ view, 2 }, &(struct index_prompt){ ids, prompt }, &hit, &err) == 1 &&
            hit.record.n_tokens > prompt)
            abort();
}

static void search(int folder, const uint8_t *data, size_t n)
{
    struct index ix;
    struct index_key key = { .tail = { 0 } };
    struct err err;

    if (!index_open(&ix, folder, &err)) {
        memcpy(&key, data, n < sizeof(key) ? n : sizeof(key));
        const struct index_record *r = index_from(&ix, &key);
        if (ix.header && r < ix.record + ix.n && strnlen(ix.config[r->config].at, INDEX_TEXT) == INDEX_TEXT)
            abort();
        for (size_t i = 0; i < ix.n; i++)
            if (!index_seek_object(&ix, &ix.record[i].key, ix.record[i].object))
                abort();
        index_name_space(&ix, "name");
        find(&ix, data, n);
    }
    index_close(&ix);
}

static void put_right(uint8_t *bytes, size_t n)
{
    const size_t after_checksum = offsetof(struct index_header, version);
    uint64_t checksum;

    if (n < sizeof(struct index_header))
        return;
    checksum = digest_xxh3(bytes + after_checksum, n - after_checksum);
    memcpy(bytes + offsetof(struct index_header, checksum), &checksum, sizeof(checksum));
}

static void write_bytes(int folder, const uint8_t *bytes, size_t n)
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
    int folder = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY) : -1;

    if (folder < 0 || !copy)
        abort();
    if (n)
        memcpy(copy, data, n);
    write_bytes(folder, copy, n);
    search(folder, data, n);
    put_right(copy, n);
    write_bytes(folder, copy, n);
    search(folder, data, n);
    free(copy);
    unlinkat(folder, "evp-index", 0);
    close(folder);
    if (rmdir(dir))
        abort();
    return 0;
}
