/* medium.c - opens the medium of a tier: files in its folder, or the driver in a shared object. */
#include "loader/store/medium.h"

#include "loader/store/medium_drivers.h"

#include <stdatomic.h>
#include <stdio.h>

#define TEXT_OF(name)   #name
#define SYMBOL_OF(name) TEXT_OF(name)

/* The driver in evp-KIND.so, opened for the first tier of its kind. Threads that open it at the same time get the same
 * one without a lock, so a process may fork meanwhile. */
static const struct medium_driver *driver_of(enum tier_kind kind, struct err *err)
{
    static _Atomic(const struct medium_driver *) opened[TIER_KINDS];
    char file[64], what[64];
    const struct plugin plugin = { .file = file,
                                   .symbol = SYMBOL_OF(MEDIUM_SYMBOL),
                                   .what = what,
                                   .get = "`make` builds it, and `make install-lib` installs it",
                                   .version = MEDIUM_VERSION };

    if (opened[kind])
        return opened[kind];
    snprintf(file, sizeof(file), "evp-%s.so", tier_kind_name(kind));
    snprintf(what, sizeof(what), "%s medium", tier_kind_name(kind));
    const struct medium_plugin *found = plugin_open(&plugin, err);
    if (found)
        opened[kind] = found->driver;
    return opened[kind];
}

int medium_open(struct medium *m, const struct medium_place *place, struct err *err)
{
    const struct tier *t = place->tier;
    struct err why;

    *m = (struct medium){ .driver = &medium_file, .uri = t->uri, .folder = place->folder };
    if (!tier_is_folder(t))
        m->driver = driver_of(t->kind, &why);
    if (!m->driver)
        return medium_open_absent(m, &why, err);
    int code = m->driver->open ? m->driver->open(m, place, err) : 0;
    if (code)
        *m = (struct medium){ 0 };
    return code;
}

void medium_close(struct medium *m)
{
    if (m->driver && m->driver->close)
        m->driver->close(m);
    *m = (struct medium){ 0 };
}

int medium_get(const struct medium *m, const char *key, int64_t size, struct blob *b, struct err *err)
{
    *b = (struct blob){ .driver = m->driver, .fd = -1, .size = size };
    int code = m->driver->get(m, key, b, err);
    if (code)
        *b = (struct blob){ .fd = -1 };
    return code;
}
