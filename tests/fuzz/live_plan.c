/* live_plan.c - any bytes as the manifest of a live plan, which then is used: refused with a sentence, or no tier ever
 * exceeds its capacity, whatever sizes, times and frequencies the manifest claims. */
#include "formats/manifest.h"
#include "loader/libevicpress/evicpress_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_tiers(struct evp_plan *plan)
{
    struct evp_plan_state state;

    if (evp_plan_status(plan, &state, NULL))
        abort();
    for (size_t t = 0; t < state.n_tiers; t++)
        if (state.tier[t].free_bytes < 0 || state.tier[t].free_bytes > state.tier[t].capacity)
            abort();
}

/* Contexts of the manifest, and others that get what is typical of their lengths. */
static void use_plan(struct evp_plan *plan, const struct manifest *m)
{
    static const char digest[] = "00000000000000000000000000000000000000000000000000000000000000ff";
    char other[16];

    for (int k = 0; k < 40; k++) {
        struct evp_use use = { .id = other, .token_digest = digest, .n_tokens = 1 + (k % 5) * 4000 };
        snprintf(other, sizeof(other), "other/%d", k % 7);
        if (m->n && k % 2)
            use.id = m->at[k % m->n].id;
        if (evp_plan_used(plan, &use, NULL, NULL) == EVICPRESS_MEMORY)
            return;
        check_tiers(plan);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct rows_bytes bytes = { "input", (const char *)data, n };
    struct evp_plan *plan;
    struct manifest m;
    struct err err;
    char path[32];
    int fd;

    if (manifest_read_bytes(&m, &bytes, &err))
        return 0;
    fd = memfd_create("manifest", 0);
    if (fd < 0 || write(fd, data, n) != (ssize_t)n)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (!evp_plan_open(&plan, path, NULL))
        use_plan(plan, &m);
    else
        plan = NULL;
    evp_plan_close(plan);
    close(fd);
    manifest_release(&m);
    return 0;
}
