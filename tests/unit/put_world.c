/* put_world.c - makes the store, the payloads and the calls. */
#include "tests/unit/put_world.h"

#include "formats/manifest.h"
#include "formats/payload.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char model[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
char dir[] = "/tmp/evp-unit-XXXXXX", *manifest, *folder[2];
struct tier tier[3];

void write_manifest(void)
{
    struct manifest m = { .alpha = 1, .solver = "test", .tiers = { tier, 3 }, .borrows = true };
    struct placement p = {
        .id = "none", .token_digest = model, .config = "none", .tier = -1, .n_tokens = 1, .quality = 1
    };
    struct err err;

    memcpy(m.model_digest, model, DIGEST_HEX);
    cr_assert_eq(manifest_add(&m, &p, &err), 0, "%s", err.msg);
    cr_assert_eq(manifest_write(&m, manifest, (struct rows_made){ .tool = "test" }, &err), 0, "%s", err.msg);
    manifest_release(&m);
}

void make_store(void)
{
    static char far[] = "redis://localhost";

    cr_assert_not_null(mkdtemp(dir));
    manifest = file_join(dir, "m.jsonl");
    folder[0] = file_join(dir, "fast");
    folder[1] = file_join(dir, "slow");
    for (int t = 0; t < 3; t++)
        tier[t] = (struct tier){ .kind = TIER_DRAM,
                                 .uri = t < 2 ? folder[t] : far,
                                 .capacity = t ? INT64_MAX : 4 * TENSOR,
                                 .read_bytes_per_s = 1,
                                 .write_bytes_per_s = 1 };
    tier[2].kind = TIER_REDIS;
    memcpy(tier[0].name, "fast", 5);
    memcpy(tier[1].name, "slow", 5);
    memcpy(tier[2].name, "far", 4);
    write_manifest();
}

void remove_store(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    cr_assert_eq(system(command), 0);
    free(manifest);
    free(folder[0]);
    free(folder[1]);
}

void make_ids(int32_t *ids, int seed)
{
    for (int i = 0; i < T; i++)
        ids[i] = 100000 * seed + i;
}

size_t make_payload(char *to, const char *of_model, int seed)
{
    struct st_tensor tensor[3] = { payload_tokens(T),
                                   { .name = "layers.0.k", .type = ST_BF16, .n_dims = 3, .dim = { G, ROWS, K } },
                                   { .name = "layers.0.v", .type = ST_BF16, .n_dims = 3, .dim = { G, ROWS, K } } };
    char digest[DIGEST_HEX], sum[3][XXH3_HEX], bytes[2][TENSOR];
    struct payload_made made = { "none", of_model, digest, T, tensor, sum, 3, { 0 }, NULL };
    char *path = file_join(dir, "payload");
    struct file_out out;
    struct buf whole = { 0 };
    struct err err;
    int32_t ids[T];

    make_ids(ids, seed);
    for (int i = 0; i < TENSOR; i++) {
        bytes[0][i] = (char)(i + seed);
        bytes[1][i] = (char)(i * 3 + seed);
    }
    digest_xxh3_hex(ids, sizeof(ids), sum[0]);
    digest_xxh3_hex(bytes[0], TENSOR, sum[1]);
    digest_xxh3_hex(bytes[1], TENSOR, sum[2]);
    cr_assert(!digest_tokens(ids, T, digest, &err) && !file_create(&out, path, &err) &&
              !payload_write_header(&out, &made, &err));
    fwrite(ids, 1, sizeof(ids), out.f);
    fwrite(bytes, 1, sizeof(bytes), out.f);
    cr_assert(!file_commit(&out, &err) && !file_read(&whole, path, PAYLOAD_MAX, &err), "%s", err.msg);
    memcpy(to, whole.at, whole.n);
    size_t n = whole.n;
    buf_release(&whole);
    unlink(path);
    free(path);
    return n;
}

int put(struct evp_store *store, const char *id, const char *to, int seed, struct evp_error *error)
{
    static _Thread_local char bytes[PAYLOAD_MAX];
    struct evp_put_args p = { .id = id, .tier = to, .payload = bytes, .size = make_payload(bytes, model, seed) };

    return evp_put(store, &p, error);
}

struct evp_store *open_store(void)
{
    struct evp_options o = { .size = sizeof(o), .wait_s = 20 };
    struct evp_store *store;
    struct evp_error error;

    cr_assert_eq(evp_open_with(&store, manifest, &o, &error), EVICPRESS_OK, "%s", error.text);
    return store;
}

const char *where(struct evp_store *store, int seed)
{
    static struct evp_prefix found;
    struct evp_error error;
    int32_t ids[T];

    make_ids(ids, seed);
    int hit = evp_find(store, ids, T, &found, &error);
    cr_assert(hit >= 0, "%s", error.text);
    return hit ? found.tier : "";
}

struct evp_prefix find(struct evp_store *store, int seed)
{
    struct evp_prefix found;
    int32_t ids[T];

    make_ids(ids, seed);
    cr_assert_eq(evp_find(store, ids, T, &found, NULL), 1);
    return found;
}
