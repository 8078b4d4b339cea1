/* pack_prune.c - what may be removed is decided by a file's name and type alone: a damaged payload is also one. */
#include "cmd/pack_prune.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int only_payloads(const struct dirent *d)
{
    return manifest_payload_made(d->d_name);
}

static int prune_file(int fd, const char *name, enum prune how, struct pruned *pruned, struct err *err)
{
    struct stat st;

    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
        return 0;
    if (how == PRUNE_REMOVE && unlinkat(fd, name, 0))
        return err_set(err, ERR_IO, "cannot remove '%s': %s", name, strerror(errno));
    if (how == PRUNE_LIST)
        printf("prune\t%lld\t-\t-\t%s\n", (long long)st.st_size, name);
    pruned->n++;
    pruned->bytes += st.st_size;
    return 0;
}

int prune_payloads(const char *dir, const struct manifest *m, enum prune how, struct pruned *pruned, struct err *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), code = 0;
    struct dirent **file = NULL;
    int n = fd < 0 ? -1 : scandirat(fd, ".", &file, only_payloads, alphasort);

    if (n < 0)
        code = errno == ENOENT ? 0 : err_set(err, ERR_IO, "cannot read folder '%s': %s", dir, strerror(errno));
    for (int i = 0; i < n; i++) {
        const char *name = file[i]->d_name;
        if (!code && map_find(&m->payloads, name, strlen(name)) < 0)
            code = prune_file(fd, name, how, pruned, err);
        free(file[i]);
    }
    free(file);
    if (fd >= 0)
        close(fd);
    return code;
}
