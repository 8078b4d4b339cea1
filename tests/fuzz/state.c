/* state.c - any bytes as the state of a store: refused with a sentence, or every payload in it passes the checks of an
 * entry.
 */
#include "base/file.h"
#include "loader/store/state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int check(void *arg, const char *name_space, struct entry *e, struct err *err)
{
    struct state_parts parts;
    bool named;

    (void)!state_is_named(arg, e->file, &named, err);
    if (state_get_parts(arg, e, &parts, err) == 1 && (int64_t)parts.n * DIGEST_CHUNK >= e->n_tokens)
        abort();
    state_parts_release(&parts);
    if (!name_space || entry_check(e, err) || strstr(e->file, "..") || e->file[0] == '/')
        abort();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char dir[] = "/tmp/evp-fuzz-XXXXXX", path[64];
    struct state_load load;
    struct tier_state *s;
    struct err err;

    if (!mkdtemp(dir))
        abort();
    snprintf(path, sizeof(path), "%s/evp-state", dir);
    if (file_write(path, data, n, &err))
        abort();
    if (!state_open(&s, dir, "", STATE_CHANGE, &err)) {
        if (!state_each(s, check, s, &err) && !state_get_load(s, "name", &load, &err) &&
            state_put_load(s, "name", &load, &err) == 0)
            (void)!state_commit(s, &err);
        state_close(s);
    }
    for (const char *const *end = (const char *const[]){ "", "-wal", "-shm", "-journal", NULL }; *end; end++) {
        snprintf(path, sizeof(path), "%s/evp-state%s", dir, *end);
        unlink(path);
    }
    if (rmdir(dir))
        abort();
    return 0;
}
