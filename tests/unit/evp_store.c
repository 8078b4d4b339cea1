/* Stores of the installed library: what they say of tiers that they cannot read, and options of other headers. */
#include "base/file.h"
#include "formats/manifest.h"
#include "loader/libevicpress/evicpress.h"
#include "loader/store/index.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/evp-unit-XXXXXX";
static char *manifest;

/* Tiers that are there, missing, relative and of another kind; nothing is placed. */
static void make_manifest(void)
{
    static const char digest[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static char away[] = "/nosuch/folder", near[] = "folder", far[] = "redis://localhost";
    static struct tier tier[4] = { { .name = "here", .kind = TIER_FILE, .uri = dir },
                                   { .name = "away", .kind = TIER_DRAM, .uri = away },
                                   { .name = "near", .kind = TIER_FILE, .uri = near },
                                   { .name = "far", .kind = TIER_REDIS, .uri = far } };
    struct manifest m = { .alpha = 1, .solver = "test", .tiers = { tier, 4 }, .borrows = true };
    struct err err;

    cr_assert_not_null(mkdtemp(dir));
    manifest = file_join(dir, "m.jsonl");
    memcpy(m.model_digest, digest, sizeof(digest));
    for (int t = 0; t < 4; t++)
        tier[t].read_bytes_per_s = tier[t].write_bytes_per_s = 1;
    cr_assert_eq(
        manifest_add(
            &m, &(struct placement){ .id = "a", .token_digest = digest, .config = "none", .tier = -1, .n_tokens = 1 },
            &err),
        0, "%s", err.msg);
    cr_assert_eq(manifest_write(&m, manifest, (struct rows_made){ .tool = "test" }, &err), 0, "%s", err.msg);
    manifest_release(&m);
}

static void remove_files(void)
{
    unlink(manifest);
    rmdir(dir);
    free(manifest);
}

TestSuite(evp_store, .init = make_manifest, .fini = remove_files);

Test(evp_store, says_of_each_tier_why_it_holds_nothing)
{
    static const struct {
        const char *name;
        int code;
        const char *says;
    } want[] = { { "here", EVICPRESS_OK, "" },
                 { "away", EVICPRESS_GONE, "there is no folder '/nosuch/folder'" },
                 { "near", EVICPRESS_ARGUMENT, "'folder' is a relative path" },
                 { "far", EVICPRESS_UNKNOWN, "tiers of kind 'redis' are not served" } };
    struct evp_store *store;
    struct evp_tier tier;
    struct evp_error error;

    cr_assert_eq(evp_open(&store, manifest, &error), EVICPRESS_OK, "%s", error.text);
    for (size_t i = 0; i < 4; i++) {
        cr_assert_eq(evp_get_tier(store, i, &tier, &error), 1);
        cr_assert_str_eq(tier.name, want[i].name);
        cr_assert(tier.code == want[i].code && tier.n_placed == 0);
        cr_assert(strstr(tier.text, want[i].says), "%s", tier.text);
        cr_assert_eq(*tier.text == '\0', tier.code == EVICPRESS_OK);
    }
    cr_assert_eq(evp_get_tier(store, 4, &tier, &error), 0);
    evp_close(store);
}

Test(evp_store, takes_options_of_older_and_newer_headers)
{
    struct {
        struct evp_options known;
        size_t later;
    } newer = { { .size = sizeof(newer), .name_space = "tenant" }, 0 };
    struct evp_options none = { 0 }, older = { .size = sizeof(size_t) };
    struct evp_store *store;
    struct evp_error error;

    cr_assert_eq(evp_open_with(&store, manifest, &none, &error), EVICPRESS_ARGUMENT);
    cr_assert_eq(evp_open_with(&store, manifest, &older, &error), EVICPRESS_OK);
    evp_close(store);
    cr_assert_eq(evp_open_with(&store, manifest, &newer.known, &error), EVICPRESS_OK);
    evp_close(store);
    newer.later = 1;
    cr_assert_eq(evp_open_with(&store, manifest, &newer.known, &error), EVICPRESS_ARGUMENT);
    cr_assert(strstr(error.text, "an option is set"), "%s", error.text);
    cr_assert_null(store);
    cr_assert_eq(evp_open(&store, "-", &error), EVICPRESS_ARGUMENT, "standard input is the host's");
    cr_assert_str_eq(evp_version(), EVICPRESS_VERSION);
}

/* ---- tiers that are not what they should be --------------------------------------- */

/* An index of the first tier, as evp-load leaves it: empty, and whole. */
static void put_index(void)
{
    struct index_made made = { .generation = 1 };
    struct index written;
    struct err err;
    int folder = open(dir, O_RDONLY | O_DIRECTORY);

    cr_assert_eq(index_write(&written, folder, &made, &err), 0, "%s", err.msg);
    index_close(&written);
    close(folder);
}

static void damage_index(void)
{
    char *path = file_join(dir, "evp-index");
    FILE *f = fopen(path, "r+");

    cr_assert(f && fseek(f, 20, SEEK_SET) == 0 && fputc('x', f) == 'x' && fclose(f) == 0);
    free(path);
}

static void remove_index(void)
{
    char *path = file_join(dir, "evp-index");

    unlink(path);
    free(path);
}

static int code_of_first(struct evp_store *store, const char *says)
{
    struct evp_tier tier;
    struct evp_error error;

    cr_assert_eq(evp_get_tier(store, 0, &tier, &error), 1);
    cr_assert(strstr(tier.text, says), "%s", tier.text);
    return tier.code;
}

/* A damaged index costs its own tier, and the store sees when it is whole again; but what could be read is kept when it
 * is damaged later. */
Test(evp_store, opens_without_a_tier_whose_index_is_damaged)
{
    struct evp_store *store;
    struct evp_prefix found;
    struct evp_error error;
    int32_t token = 1;

    put_index();
    damage_index();
    cr_assert_eq(evp_open(&store, manifest, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_eq(code_of_first(store, "'evp-index' is damaged"), EVICPRESS_DAMAGED);
    cr_assert_eq(evp_find(store, &token, 1, &found, &error), 0, "%s", error.text);
    cr_assert_eq(evp_refresh(store, &error), 0, "nothing has changed: %s", error.text);
    remove_index();
    put_index();
    cr_assert_eq(evp_refresh(store, &error), 1, "%s", error.text);
    cr_assert_eq(code_of_first(store, ""), EVICPRESS_OK);
    cr_assert_eq(evp_refresh(store, &error), 0, "nothing has changed: %s", error.text);
    remove_index();
    put_index();
    damage_index();
    cr_assert_eq(evp_refresh(store, &error), 1, "%s", error.text);
    cr_assert_eq(code_of_first(store, "'evp-index' is damaged"), EVICPRESS_DAMAGED);
    evp_close(store);
    remove_index();
}

Test(evp_store, opens_without_a_tier_that_others_may_write)
{
    struct evp_store *store;
    struct evp_error error;

    put_index();
    cr_assert_eq(chmod(dir, 0777), 0);
    cr_assert_eq(evp_open(&store, manifest, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_eq(code_of_first(store, "chmod go-w"), EVICPRESS_IO);
    cr_assert_eq(chmod(dir, 0700), 0);
    evp_close(store);
    remove_index();
}

/* A tier that lacked a descriptor is read by the next refresh. */
Test(evp_store, does_not_take_a_full_table_of_descriptors_for_damage)
{
    struct rlimit old, few;
    struct evp_store *store;
    struct evp_error error;

    put_index();
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    for (few = old, few.rlim_cur = 4; few.rlim_cur < 12; few.rlim_cur++) {
        setrlimit(RLIMIT_NOFILE, &few);
        int opened = evp_open(&store, manifest, &error);
        setrlimit(RLIMIT_NOFILE, &old);
        cr_assert(opened == EVICPRESS_OK || opened == EVICPRESS_IO, "%s", error.text);
        if (opened != EVICPRESS_OK)
            continue;
        int code = code_of_first(store, "");
        cr_assert(code == EVICPRESS_OK || code == EVICPRESS_IO);
        cr_assert_eq(evp_refresh(store, &error), code != EVICPRESS_OK, "%s", error.text);
        cr_assert_eq(code_of_first(store, ""), EVICPRESS_OK);
        evp_close(store);
    }
    remove_index();
}
