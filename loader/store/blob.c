/* blob.c - reads the bytes of an object, a file or memory. */
#include "loader/store/medium.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

struct blob blob_of_file(int fd)
{
    return (struct blob){ .fd = fd, .size = -1 };
}

struct blob blob_of_bytes(const void *bytes, size_t n)
{
    return (struct blob){ .fd = -1, .bytes = bytes, .size = (int64_t)n };
}

static ssize_t next_of_file(const struct blob *b, void *to, size_t n, uint64_t offset, struct err *err)
{
    ssize_t got;

    do
        got = pread(b->fd, to, n, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got < 0 ? err_set(err, errno == ESTALE ? ERR_STALE : ERR_IO, "cannot read: %s", strerror(errno)) : got;
}

ssize_t blob_next(const struct blob *b, void *to, size_t n, uint64_t offset, struct err *err)
{
    if (b->fd >= 0)
        return next_of_file(b, to, n, offset, err);
    uint64_t left = offset < (uint64_t)b->size ? (uint64_t)b->size - offset : 0;
    n = n < left ? n : (size_t)left;
    if (b->bytes)
        memcpy(to, b->bytes + offset, n);
    else if (n && b->driver->read(b, to, n, offset, err))
        return err->code;
    return (ssize_t)n;
}

int blob_read(const struct blob *b, void *to, size_t n, uint64_t offset, struct err *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = blob_next(b, (char *)to + done, n - done, offset + done, err);
        if (got < 0)
            return err->code;
        if (got == 0)
            return err_set(err, ERR_IO, "cannot read: the file was cut");
        done += (size_t)got;
    }
    return 0;
}

size_t blob_chunk(const struct blob *b)
{
    size_t chunk = b->driver ? b->driver->chunk : CHUNK;

    return b->size >= 0 && (uint64_t)b->size < chunk ? (size_t)b->size + !b->size : chunk;
}

/* The checksum of a small blob, read into the stack: allocating memory would take longer than the checksum. */
static int sum_small(const struct blob *b, char checksum[XXH3_HEX], struct err *err)
{
    char bytes[BLOB_SMALL];

    if (blob_read(b, bytes, (size_t)b->size, 0, err))
        return err->code;
    digest_xxh3_hex(bytes, (size_t)b->size, checksum);
    return 0;
}

static int sum_large(const struct blob *b, int64_t *size, char checksum[XXH3_HEX], struct err *err)
{
    struct checksum *sum = checksum_new(err);
    char *chunk = malloc(blob_chunk(b));
    int code = sum && chunk ? 0 : err_nomem(err);

    *size = 0;
    for (ssize_t n = 1; !code && n;) {
        n = blob_next(b, chunk, blob_chunk(b), (uint64_t)*size, err);
        if (n < 0) {
            code = err->code;
            break;
        }
        checksum_add(sum, chunk, (size_t)n);
        *size += n;
    }
    free(chunk);
    checksum_end(sum, checksum);
    return code;
}

int blob_checksum(const struct blob *b, int64_t *size, char checksum[XXH3_HEX], struct err *err)
{
    if (b->size < 0 || b->size > BLOB_SMALL)
        return sum_large(b, size, checksum, err);
    *size = b->size;
    return sum_small(b, checksum, err);
}

void blob_close(struct blob *b)
{
    if (b->driver && b->driver->release)
        b->driver->release(b);
    if (b->driver && b->fd >= 0)
        close(b->fd);
    *b = (struct blob){ .fd = -1 };
}
