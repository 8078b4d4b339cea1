/* waiting.c - starts the tool again, with threads that spin briefly and then sleep. */
#include "cmd/waiting.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

void wait_briefly(char **argv)
{
    char path[PATH_MAX]; // a process started as /proc/self/exe is called 'exe'

    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT"))
        return;
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
    if (n <= 0 || (size_t)n == sizeof(path) || setenv("GOMP_SPINCOUNT", "1000", 0) != 0)
        return;
    path[n] = '\0';
    execv(path, argv);
}
