/* plugin.c - finds and opens one of our shared objects, and compares versions before anything of it is used. */
#include "base/plugin.h"

#include "base/buf.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char here[] = "a byte of the program or library that this code is in";

/* Does a line of /proc/self/maps, FROM-TO ..., contain the address of `here`? */
static bool has_here(const char *line)
{
    char *end;
    uintptr_t from = strtoull(line, &end, 16), to = *end == '-' ? strtoull(end + 1, NULL, 16) : 0;

    return from <= (uintptr_t)here && (uintptr_t)here < to;
}

/* Adds the folder of the program or library, with its final '/'. The path comes from the kernel: the name used to open
 * it may be relative to an earlier working folder. */
static int own_folder(struct buf *folder, struct err *err)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char *line = NULL;
    size_t cap = 0;

    if (!maps)
        return err_set(err, ERR_DEVICE, "cannot read '/proc/self/maps': %s", strerror(errno));
    while (folder->n == 0 && getline(&line, &cap, maps) > 0) {
        const char *path = has_here(line) ? strchr(line, '/') : NULL;
        if (path)
            buf_add(folder, path, (size_t)(strrchr(path, '/') + 1 - path));
    }
    free(line);
    fclose(maps);
    if (buf_failed(folder))
        return err_nomem(err);
    return folder->n ? 0 : err_set(err, ERR_DEVICE, "'/proc/self/maps' does not name this program");
}

/* The two paths where the object may be. */
static int places(const char *file, struct buf *beside, struct buf *installed, struct err *err)
{
    if (own_folder(beside, err))
        return err->code;
    size_t n = beside->n - 1;
    while (n > 0 && beside->at[n - 1] != '/')
        n--;
    buf_printf(installed, "%.*slib/evp/%s", (int)n, buf_str(beside), file);
    buf_adds(beside, file);
    return buf_failed(beside) || buf_failed(installed) ? err_nomem(err) : 0;
}

static const void *check(const struct plugin *p, void *object, const char *path, struct err *err)
{
    const void *exported = dlsym(object, p->symbol);
    struct plugin_version has;

    if (!exported) {
        err_set(err, ERR_DEVICE, "'%s' is not a %s: it does not define %s", path, p->what, p->symbol);
        return NULL;
    }
    memcpy(&has, exported, sizeof(has));
    if (has.abi == p->version.abi && has.layout == p->version.layout)
        return exported;
    err_set(err, ERR_DEVICE,
            "'%s' is of another version of EvicPress: its interface is %u.%u, not %u.%u; install both from one build",
            path, has.abi, has.layout, p->version.abi, p->version.layout);
    return NULL;
}

/* The object stays open until the process ends, even a wrong one: not every library survives dlclose(). */
static const void *load(const struct plugin *p, const char *path, struct err *err)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (object)
        return check(p, object, path, err);
    const char *why = dlerror(); // begins with the name of the bad file: this one, or a library it needs
    err_set(err, ERR_DEVICE, "cannot load the %s '%s': %s%s", p->what, path, why ? why : "unknown reason",
            why && strncmp(why, path, strlen(path)) != 0 ? "; install the libraries that it was built with" : "");
    return NULL;
}

const void *plugin_open(const struct plugin *p, struct err *err)
{
    struct buf beside = { 0 }, installed = { 0 };
    const void *found = NULL;

    if (p->path)
        return load(p, p->path, err);
    if (places(p->file, &beside, &installed, err) == 0) {
        if (access(buf_str(&beside), F_OK) == 0)
            found = load(p, buf_str(&beside), err);
        else if (access(buf_str(&installed), F_OK) == 0)
            found = load(p, buf_str(&installed), err);
        else
            err_set(err, ERR_DEVICE, "the %s is not installed: neither '%s' nor '%s' exists; %s", p->what,
                    buf_str(&beside), buf_str(&installed), p->get);
    }
    buf_release(&beside);
    buf_release(&installed);
    return found;
}
