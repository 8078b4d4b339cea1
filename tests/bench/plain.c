/* plain FOLDER SIZE N - writes N files of SIZE bytes into FOLDER, which has 256 sub-folders then, flushes them once,
 * and prints the seconds: what placing payloads cannot be faster than.
 */
#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(int failed, const char *what)
{
    if (!failed)
        return;
    perror(what);
    exit(1);
}

static void write_file(int folder, int i, const char *bytes, size_t size)
{
    char name[64];

    snprintf(name, sizeof(name), "%02x/%032x", (unsigned)i % 256, (unsigned)i);
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    must(fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd), name);
}

int main(int argc, char **argv)
{
    char name[8];

    if (argc != 4)
        return 2;
    size_t size = (size_t)strtoull(argv[2], NULL, 10);
    int n = (int)strtol(argv[3], NULL, 10);
    char *bytes = malloc(size);
    memset(bytes, 1, size);
    must(mkdir(argv[1], 0700), argv[1]);
    int folder = open(argv[1], O_RDONLY | O_DIRECTORY);
    must(folder < 0, argv[1]);
    double start = clock_now();
    for (unsigned i = 0; i < 256; i++) {
        snprintf(name, sizeof(name), "%02x", i);
        must(mkdirat(folder, name, 0700), name);
    }
    for (int i = 0; i < n; i++)
        write_file(folder, i, bytes, size);
    must(syncfs(folder), "flush");
    printf("%.3f\n", clock_now() - start);
    close(folder);
    free(bytes);
    return 0;
}
