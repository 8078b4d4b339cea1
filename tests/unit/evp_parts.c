/* Contexts that are found in part: after any changes, what evp_find() says is what a search through all contexts says,
 * and what evp_fetch() gives is a payload of the part.
 */
#include "base/file.h"
#include "base/rng.h"
#include "formats/manifest.h"
#include "formats/payload.h"
#include "loader/libevicpress/evicpress.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { G = 2, K = 4, CHUNK = DIGEST_CHUNK, T_MAX = 4 * CHUNK + 40, CONTEXTS = 12 };
enum { T_LONG = 1200 * CHUNK, PAYLOAD_MAX = T_LONG * 40 }; // whose parts are too many for an index without a base

static const char model[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static char dir[] = "/tmp/evp-unit-XXXXXX";
static char *manifest, *folder[2];

static void make_store(void)
{
    struct tier tier[2];
    struct manifest m = { .alpha = 1, .solver = "test", .tiers = { tier, 2 }, .borrows = true };
    struct placement p = {
        .id = "none", .token_digest = model, .config = "none", .tier = -1, .n_tokens = 1, .quality = 1
    };
    struct err err;

    cr_assert_not_null(mkdtemp(dir));
    manifest = file_join(dir, "m.jsonl");
    for (int t = 0; t < 2; t++) {
        folder[t] = file_join(dir, t ? "slow" : "fast");
        tier[t] = (struct tier){
            .kind = TIER_DRAM, .uri = folder[t], .capacity = INT64_MAX, .read_bytes_per_s = 1, .write_bytes_per_s = 1
        };
        memcpy(tier[t].name, t ? "slow" : "fast", 5);
    }
    memcpy(m.model_digest, model, sizeof(model));
    cr_assert_eq(manifest_add(&m, &p, &err), 0, "%s", err.msg);
    cr_assert_eq(manifest_write(&m, manifest, (struct rows_made){ .tool = "test" }, &err), 0, "%s", err.msg);
    manifest_release(&m);
}

static void remove_store(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    cr_assert_eq(system(command), 0);
    free(manifest);
    free(folder[0]);
    free(folder[1]);
}

TestSuite(evp_parts, .init = make_store, .fini = remove_store);

/* ---- contexts --------------------------------------------------------------- */

struct context {
    int n, tier;              // tier -1: not placed
    bool none, chunks, other; // other: of other tensors than parts can be cut of
    int32_t ids[T_LONG];
};

/* Few beginnings, so that contexts and prompts share some chunks and then part. */
static void make_ids(struct rng *r, int32_t *ids, int n)
{
    for (int at = 0; at < n; at += CHUNK) {
        int letter = (int)rng_below(r, 5) ? 0 : 1;
        for (int i = at; i < n && i < at + CHUNK; i++)
            ids[i] = 10 * i + letter;
    }
    if (n && rng_below(r, 2)) // and some part within a chunk
        ids[rng_below(r, (uint64_t)n)] += 5;
}

static int draw_length(struct rng *r)
{
    int n = (int)rng_below(r, 5) * CHUNK + (int)rng_below(r, 3) * 20;

    return n ? n : 7;
}

/* What a model would compute: it depends on the tokens up to the row alone. */
static char value_at(const int32_t *ids, int row, int i)
{
    return (char)(ids[row] * 31 + row + i);
}

/* The rows of the first n tokens of a tensor, head by head. */
static size_t make_rows(char *to, const int32_t *ids, int n, int tensor)
{
    char *at = to;

    for (int g = 0; g < G; g++)
        for (int row = 0; row < n; row++)
            for (int i = 0; i < 2 * K; i++)
                *at++ = value_at(ids, row, i + 64 * g + 128 * tensor);
    return (size_t)(at - to);
}

static size_t make_payload(char *to, const struct context *c)
{
    struct st_tensor tensor[3] = { payload_tokens(c->n),
                                   { .name = "layers.0.k", .type = ST_BF16, .n_dims = 3, .dim = { G, c->n, K } },
                                   { .name = "layers.0.v", .type = ST_BF16, .n_dims = 3, .dim = { G, c->n, K } } };
    static char rows[2][PAYLOAD_MAX];
    char digest[DIGEST_HEX], sum[3][XXH3_HEX], *text;
    for (int t = 1; t < 3 && c->other; t++)
        tensor[t] = (struct st_tensor){ tensor[t].name, ST_BF16, 2, { c->n, G * K }, NULL, 0, 0 };
    struct payload_made made = { c->none ? "none" : "knorm:drop=0.5",    model, digest, c->n, tensor, sum, 3,
                                 { "a test", "tiny", "{}", NULL, NULL }, NULL };
    size_t n, bytes = 0;
    struct file_out out = { .f = open_memstream(&text, &n) };
    struct err err;

    for (int t = 0; t < 2; t++) {
        bytes = make_rows(rows[t], c->ids, c->n, t);
        digest_xxh3_hex(rows[t], bytes, sum[1 + t]);
    }
    digest_xxh3_hex(c->ids, (size_t)c->n * sizeof(int32_t), sum[0]);
    cr_assert(!digest_tokens(c->ids, c->n, digest, &err) && !payload_write_header(&out, &made, &err));
    fwrite(c->ids, sizeof(int32_t), (size_t)c->n, out.f);
    for (int t = 0; t < 2; t++)
        fwrite(rows[t], 1, bytes, out.f);
    fclose(out.f);
    cr_assert_leq(n, PAYLOAD_MAX);
    memcpy(to, text, n);
    free(text);
    return n;
}

static void put(struct evp_store *store, int i, struct context *c)
{
    static char bytes[PAYLOAD_MAX];
    char id[16];
    struct evp_put_args p = { .id = id,
                              .tier = c->tier ? "slow" : "fast",
                              .payload = bytes,
                              .size = make_payload(bytes, c),
                              .chunks = c->chunks };
    struct evp_error error;

    snprintf(id, sizeof(id), "c%d", i);
    cr_assert_eq(evp_put(store, &p, &error), EVICPRESS_OK, "%s", error.text);
}

/* ---- searching through all -------------------------------------------------- */

static int common(const struct context *c, const int32_t *ids, int n)
{
    int i = 0;

    while (i < n && i < c->n && ids[i] == c->ids[i])
        i++;
    return i;
}

/* How many tokens shall be found. */
static int longest(const struct context *c, const int32_t *ids, int n)
{
    int best = 0;

    for (int i = 0; i < CONTEXTS; i++) {
        int same = c[i].tier < 0 ? 0 : common(&c[i], ids, n);
        int found = same == c[i].n ? same : c[i].chunks && c[i].none ? same / CHUNK * CHUNK : 0;
        best = found > best ? found : best;
    }
    return best;
}

/* A fetched part is a payload of the prompt's first tokens. */
static void check_part(struct evp_store *store, const struct evp_prefix *found, const int32_t *ids)
{
    static char bytes[PAYLOAD_MAX], rows[PAYLOAD_MAX];
    struct evp_error error;
    struct payload p;
    struct err err;
    char digest[DIGEST_HEX];
    int n = (int)found->n_tokens;

    cr_assert(strcmp(found->config, "none") == 0 && n % CHUNK == 0 && found->size <= PAYLOAD_MAX);
    cr_assert_eq(evp_fetch(store, found, bytes, found->size, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_eq(payload_parse(&p, bytes, found->size, &err), 0, "%s", err.msg);
    cr_assert_eq(payload_check_sums(&p, &err), 0, "%s", err.msg);
    cr_assert(!digest_tokens(ids, n, digest, &err) && strcmp(digest, found->token_digest) == 0);
    cr_assert(p.n_tokens == n && strcmp(p.token_digest, digest) == 0 && p.st.n == 3);
    for (int t = 0; t < 2; t++) {
        const struct st_tensor *tensor = &p.st.tensor[1 + t];
        cr_assert_eq(tensor->bytes, make_rows(rows, ids, n, t));
        cr_assert_arr_eq(tensor->at, rows, tensor->bytes);
    }
    payload_close(&p);
}

/* The same read as ranges of the whole context's tensors. */
static void check_ranges(struct evp_store *store, const struct evp_prefix *found, const int32_t *ids)
{
    static char bytes[PAYLOAD_MAX], rows[PAYLOAD_MAX];
    struct evp_payload *p;
    struct evp_error error;
    struct evp_range range = { .tensor = "layers.0.v" };
    int n = (int)found->n_tokens;
    size_t size = make_rows(rows, ids, n, 1);

    cr_assert_eq(evp_payload_open(&p, store, found, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_eq(evp_fetch_range(p, &range, bytes, size, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_arr_eq(bytes, rows, size);
    range.first_row = n;
    range.n_rows = 1;
    cr_assert_eq(evp_fetch_range(p, &range, bytes, size, &error), EVICPRESS_ARGUMENT, "a row that the prompt has not");
    range = (struct evp_range){ .tensor = "tokens" };
    cr_assert_eq(evp_fetch_range(p, &range, bytes, (size_t)n * sizeof(*ids), &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_arr_eq(bytes, ids, (size_t)n * sizeof(*ids));
    evp_payload_close(p);
}

static void check_prompts(struct evp_store *store, const struct context *c, struct rng *r)
{
    struct evp_prefix found;
    struct evp_error error;
    int32_t ids[T_MAX];

    for (int k = 0; k < 20; k++) {
        int n = draw_length(r);
        make_ids(r, ids, n);
        if (k % 4 == 0) // the beginning of a context
            memcpy(ids, c[k % CONTEXTS].ids, sizeof(ids));
        if (k % 5 == 0 && n > 100) // which parts from all others there
            ids[n - 100] = -1;
        int want = longest(c, ids, n), got = evp_find(store, ids, (size_t)n, &found, &error);
        cr_assert(got >= 0, "%s", error.text);
        cr_assert_eq(got ? found.n_tokens : 0, want, "%d tokens, not %d", got ? (int)found.n_tokens : 0, want);
        if (!got || *found.checksum)
            continue;
        check_part(store, &found, ids);
        check_ranges(store, &found, ids);
    }
}

static void change(struct evp_store *store, struct context *c, int i, struct rng *r)
{
    struct evp_error error;
    char id[16];

    snprintf(id, sizeof(id), "c%d", i);
    if (c->tier >= 0 && rng_below(r, 3) == 0) {
        c->tier = -1;
        cr_assert_eq(evp_remove(store, id, &error), EVICPRESS_OK, "%s", error.text);
    } else if (c->tier >= 0 && rng_below(r, 2)) {
        c->tier = !c->tier;
        cr_assert_eq(evp_move(store, id, c->tier ? "slow" : "fast", &error), EVICPRESS_OK, "%s", error.text);
    } else {
        c->tier = (int)rng_below(r, 2);
        c->none = rng_below(r, 4);
        c->chunks = rng_below(r, 3);
        c->n = draw_length(r);
        make_ids(r, c->ids, c->n);
        put(store, i, c);
    }
}

static struct evp_store *open_store(void)
{
    struct evp_store *store;
    struct evp_error error;

    cr_assert_eq(evp_open(&store, manifest, &error), EVICPRESS_OK, "%s", error.text);
    return store;
}

static struct context context[CONTEXTS];

static void change_often(struct evp_store *store, const char *seed, int n_steps)
{
    struct rng r = rng_named(1, seed);

    for (int i = 0; i < CONTEXTS; i++)
        context[i].tier = -1;
    for (int step = 0; step < n_steps; step++) {
        int i = (int)rng_below(&r, CONTEXTS);
        change(store, &context[i], i, &r);
        check_prompts(store, context, &r);
        if (step % 30 == 29) { // an index made again from the state says the same
            char *index = file_join(folder[step / 30 % 2], "evp-index");
            unlink(index);
            free(index);
            change(store, &context[i], i, &r);
            check_prompts(store, context, &r);
        }
    }
}

Test(evp_parts, what_is_found_is_what_all_contexts_say)
{
    struct evp_store *store = open_store();

    change_often(store, "parts", 150);
    evp_close(store);
}

/* The same while both tiers have the parts of a long context in the base of their index. */
Test(evp_parts, changes_above_a_base)
{
    static struct context c = { .n = T_LONG, .none = true, .chunks = true };
    struct evp_store *store = open_store();
    struct evp_prefix found;
    struct evp_error error;

    for (int i = 0; i < T_LONG; i++)
        c.ids[i] = -i;
    put(store, 1000, &c);
    c.tier = 1;
    c.ids[T_LONG - 1] = 1;
    put(store, 1001, &c);
    change_often(store, "base", 60);
    c.ids[T_LONG - 300] = 1;
    cr_assert_eq(evp_find(store, c.ids, T_LONG, &found, &error), 1);
    cr_assert_eq(found.n_tokens, T_LONG - 2 * CHUNK);
    cr_assert_str_eq(found.tier, "fast");
    check_part(store, &found, c.ids);
    cr_assert(!evp_remove(store, "c1000", &error) && evp_find(store, c.ids, T_LONG, &found, &error) == 1);
    cr_assert_str_eq(found.tier, "slow");
    cr_assert(!evp_remove(store, "c1001", &error) && evp_find(store, c.ids, T_LONG, &found, &error) == 0);
    evp_close(store);
}

/* The tiers tell of contexts, not of their parts; a payload that was made elsewhere, with other rows, has none. */
Test(evp_parts, are_no_contexts)
{
    static struct context c = { .n = 2 * CHUNK + 1, .none = true, .chunks = true };
    struct evp_store *store = open_store();
    struct evp_put_args p = { .id = "c0", .tier = "fast", .payload = "", .chunks = 2 };
    struct evp_prefix found;
    struct evp_tier tier;
    struct evp_error error;
    struct rng r = rng_named(2, "parts");

    cr_assert_eq(evp_put(store, &p, &error), EVICPRESS_ARGUMENT);
    make_ids(&r, c.ids, c.n);
    put(store, 0, &c);
    cr_assert_eq(evp_get_tier(store, 0, &tier, NULL), 1);
    cr_assert_eq(tier.n_placed, 1);
    cr_assert_eq(evp_find(store, c.ids, 2 * CHUNK, &found, &error), 1);
    c.other = true;
    put(store, 0, &c);
    cr_assert_eq(evp_find(store, c.ids, 2 * CHUNK, &found, &error), 0);
    evp_close(store);
}
