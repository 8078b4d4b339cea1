/* Bytes as a table: HDF5 files through the child process that reads them, images (what the child hands over, and what a
 * child that libhdf5 led astray could) straight into the parent's checks. */
#include "profiler/table/table_column.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void fuzz_file(const uint8_t *data, size_t n)
{
    struct table t;
    struct err err;
    char path[32];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (write(fd, data, n) == (ssize_t)n) {
        if (!table_read(&t, path, TABLE_ALL, &err))
            table_release(&t);
        if (!table_read(&t, path, TABLE_PLAN, &err))
            table_release(&t);
    }
    close(fd);
}

static void fuzz_image(const uint8_t *data, size_t n, enum table_want want)
{
    struct table t;
    struct err err;
    void *map = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    memcpy(map, data, n);
    if (!table_from_image(&t, map, n, want, &err))
        table_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n >= 4 && memcmp(data, "\x89HDF", 4) == 0) {
        fuzz_file(data, n);
    } else if (n > 0) {
        fuzz_image(data, n, TABLE_ALL);
        fuzz_image(data, n, TABLE_PLAN);
    }
    return 0;
}
