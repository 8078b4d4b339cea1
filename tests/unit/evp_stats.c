/* What a store counts: a scripted sequence with exact numbers, threads, forked processes;
 * and the metrics file.
 */
#include "base/file.h"
#include "formats/manifest.h"
#include "formats/payload.h"
#include "loader/libevicpress/evp_metrics.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { T = 300, BYTES = 1000, PAYLOAD_MAX = 1 << 14 };

static const char model[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static char dir[] = "/tmp/evp-unit-XXXXXX";
static char *manifest, *folder[2];

/* A manifest of the first n of two tiers, fast and slow. */
static void write_manifest(int n)
{
    struct tier tier[2] = { { .name = "fast", .uri = folder[0] }, { .name = "slow", .uri = folder[1] } };
    struct manifest m = { .alpha = 1, .solver = "test", .tiers = { tier, n }, .borrows = true };
    struct placement p = {
        .id = "none", .token_digest = model, .config = "none", .tier = -1, .n_tokens = 1, .quality = 1
    };
    struct err err;

    for (int t = 0; t < 2; t++) {
        tier[t].kind = TIER_DRAM;
        tier[t].capacity = INT64_MAX;
        tier[t].read_bytes_per_s = tier[t].write_bytes_per_s = 1;
    }
    memcpy(m.model_digest, model, sizeof(model));
    cr_assert_eq(manifest_add(&m, &p, &err), 0, "%s", err.msg);
    cr_assert_eq(manifest_write(&m, manifest, (struct rows_made){ .tool = "test" }, &err), 0, "%s", err.msg);
    manifest_release(&m);
}

static void make_store(void)
{
    cr_assert_not_null(mkdtemp(dir));
    manifest = file_join(dir, "m.jsonl");
    folder[0] = file_join(dir, "fast");
    folder[1] = file_join(dir, "slow");
    write_manifest(2);
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

TestSuite(evp_stats, .init = make_store, .fini = remove_store);

static struct evp_store *open_store(void)
{
    struct evp_store *store;
    struct evp_error error;

    cr_assert_eq(evp_open(&store, manifest, &error), EVICPRESS_OK, "%s", error.text);
    return store;
}

/* A payload with tokens seed, seed + 1, ... and one tensor. Returns its size. */
static size_t make_payload(char *to, const char *config, int seed)
{
    struct st_tensor tensor[2] = { payload_tokens(T),
                                   { .name = "layers.0.k", .type = ST_U8, .n_dims = 1, .dim = { BYTES } } };
    char digest[DIGEST_HEX], sum[2][XXH3_HEX], bytes[BYTES] = { 0 }, *path = file_join(dir, "payload");
    struct payload_made made = { config, model, digest, T, tensor, sum, 2, { 0 }, NULL };
    struct file_out out;
    struct buf whole = { 0 };
    struct err err;
    int32_t ids[T];

    for (int i = 0; i < T; i++)
        ids[i] = seed + i;
    digest_xxh3_hex(ids, sizeof(ids), sum[0]);
    digest_xxh3_hex(bytes, BYTES, sum[1]);
    cr_assert(!digest_tokens(ids, T, digest, &err) && !file_create(&out, path, &err) &&
              !payload_write_header(&out, &made, &err));
    fwrite(ids, 1, sizeof(ids), out.f);
    fwrite(bytes, 1, BYTES, out.f);
    cr_assert(!file_commit(&out, &err) && !file_read(&whole, path, PAYLOAD_MAX, &err), "%s", err.msg);
    memcpy(to, whole.at, whole.n);
    size_t n = whole.n;
    buf_release(&whole);
    unlink(path);
    free(path);
    return n;
}

/* Puts a payload of a config; returns its size. */
static size_t put(struct evp_store *store, const char *id, const char *tier, const char *config, int seed)
{
    char bytes[PAYLOAD_MAX];
    struct evp_put_args p = { .id = id, .tier = tier, .payload = bytes, .size = make_payload(bytes, config, seed) };
    struct evp_error error;

    cr_assert_eq(evp_put(store, &p, &error), EVICPRESS_OK, "%s", error.text);
    return p.size;
}

/* Finds with n tokens. */
static int find(struct evp_store *store, int seed, int n, struct evp_prefix *found)
{
    int32_t ids[T + 100];

    for (int i = 0; i < n; i++)
        ids[i] = seed + i;
    return evp_find(store, ids, (size_t)n, found, NULL);
}

static struct evp_counters stats(struct evp_store *store, const char *tier, const char *config)
{
    struct evp_counters s;

    for (size_t i = 0; evp_stats(store, i, &s, NULL) == 1; i++)
        if (strcmp(s.tier, tier) == 0 && strcmp(s.config, config) == 0)
            return s;
    return (struct evp_counters){ 0 };
}

/* Compares all members; of times, whether there are any. */
#define ASSERT_STATS(got, ...)                                                                                         \
    do {                                                                                                               \
        struct evp_counters want = __VA_ARGS__, have = (got);                                                          \
        cr_assert((have.read_s > 0) == (want.reads > 0) && (have.read_byte_s > 0) == (want.reads > 0));                \
        have.read_s = have.read_byte_s = 0;                                                                            \
        cr_assert_arr_eq(&have, &want, sizeof(want));                                                                  \
    } while (0)

/* ---- counting ----------------------------------------------------------------- */

Test(evp_stats, counts_a_scripted_sequence)
{
    struct evp_store *store = open_store();
    struct evp_prefix found, of_b;
    char bytes[PAYLOAD_MAX];

    cr_assert_eq(find(store, 1, T, &found), 0); // nothing is there
    uint64_t a = put(store, "a", "fast", "none", 1), b = put(store, "b", "fast", "kivi:bits=2", 2);
    cr_assert(find(store, 1, T + 100, &found) == 1 && find(store, 2, T, &of_b) == 1 &&
              find(store, 2, T - 1, &of_b) == 0);
    cr_assert_eq(find(store, 2, T, &of_b), 1);
    cr_assert_eq(evp_fetch(store, &of_b, bytes, 10, NULL), EVICPRESS_SMALL);
    cr_assert(!evp_fetch(store, &of_b, bytes, sizeof(bytes), NULL) &&
              !evp_fetch(store, &found, bytes, sizeof(bytes), NULL));
    cr_assert_eq(evp_move(store, "a", "slow", NULL), EVICPRESS_OK);
    cr_assert(find(store, 1, T, &found) == 1 && !evp_fetch(store, &found, bytes, sizeof(bytes), NULL));
    put(store, "b", "fast", "none", 2); // replaces the other config
    cr_assert_eq(evp_fetch(store, &of_b, bytes, sizeof(bytes), NULL), EVICPRESS_GONE);
    cr_assert_eq(evp_remove(store, "b", NULL), EVICPRESS_OK);
    cr_assert(evp_remove(store, "b", NULL) == EVICPRESS_UNKNOWN &&
              evp_move(store, "a", "none", NULL) == EVICPRESS_UNKNOWN);
    cr_assert_eq(evp_put(store, &(struct evp_put_args){ .id = "a" }, NULL), EVICPRESS_ARGUMENT);

    double squares = 2 * (double)a * (double)a + (double)b * (double)b;
    ASSERT_STATS(stats(store, "", ""), { .finds = 6,
                                         .tokens_asked = 6 * T + 99,
                                         .hits = 4,
                                         .tokens_hit = 4 * T,
                                         .reads = 3,
                                         .read_bytes = 2 * a + b,
                                         .read_square_bytes = squares,
                                         .puts = 3,
                                         .moves = 1,
                                         .evictions = 3,
                                         .removes = 1,
                                         .n_placed = 1,
                                         .placed_bytes = a,
                                         .errors = { [4] = 1, [5] = 1, [6] = 1, [7] = 2 } });
    ASSERT_STATS(stats(store, "fast", ""), { .tier = "fast",
                                             .hits = 3,
                                             .tokens_hit = 3 * T,
                                             .reads = 2,
                                             .read_bytes = a + b,
                                             .read_square_bytes = squares - (double)a * (double)a,
                                             .puts = 3,
                                             .evictions = 3 });
    ASSERT_STATS(stats(store, "slow", ""), { .tier = "slow",
                                             .hits = 1,
                                             .tokens_hit = T,
                                             .reads = 1,
                                             .read_bytes = a,
                                             .read_square_bytes = (double)a * (double)a,
                                             .moves = 1,
                                             .n_placed = 1,
                                             .placed_bytes = a });
    ASSERT_STATS(stats(store, "fast", "kivi:bits=2"),
                 { .tier = "fast", .config = "kivi:bits=2", .hits = 2, .tokens_hit = 2 * T });
    ASSERT_STATS(stats(store, "fast", "none"), { .tier = "fast", .config = "none", .hits = 1, .tokens_hit = T });
    ASSERT_STATS(stats(store, "slow", "none"), { .tier = "slow", .config = "none", .hits = 1, .tokens_hit = T });
    struct evp_counters none;
    cr_assert(evp_stats(store, 5, &none, NULL) == 1 && evp_stats(store, 6, &none, NULL) == 0);
    evp_close(store);
}

/* The header, a range, and a range that is less than what its checksum covers. The payload outlives its store. */
Test(evp_stats, counts_ranges_of_an_open_payload)
{
    struct evp_store *store = open_store();
    struct evp_payload *payload;
    struct evp_prefix found;
    struct evp_location at;
    char bytes[BYTES];
    struct evp_range range = { .tensor = "layers.0.k", .first = 1, .n = 10 };

    put(store, "a", "slow", "none", 1);
    cr_assert(find(store, 1, T, &found) == 1 && !evp_payload_open(&payload, store, &found, NULL) &&
              !evp_locate(payload, "tokens", &at, NULL));
    cr_assert_eq(evp_fetch_range(payload, &range, bytes, 9, NULL), EVICPRESS_SMALL);
    cr_assert(!evp_fetch_range(payload, &range, bytes, 10, NULL) && !evp_fetch_range(payload, &range, bytes, 10, NULL));
    double header = (double)at.offset;
    ASSERT_STATS(stats(store, "slow", ""), { .tier = "slow",
                                             .hits = 1,
                                             .tokens_hit = T,
                                             .reads = 3,
                                             .read_bytes = at.offset + BYTES + 10,
                                             .read_square_bytes = header * header + BYTES * BYTES + 100,
                                             .puts = 1,
                                             .n_placed = 1,
                                             .placed_bytes = found.size });
    cr_assert_eq(stats(store, "", "").errors[5], 1);
    evp_close(store);
    cr_assert_eq(evp_fetch_range(payload, &range, bytes, 10, NULL), EVICPRESS_OK);
    evp_payload_close(payload);
}

Test(evp_stats, keeps_a_tier_s_counts_when_the_manifest_changes)
{
    struct evp_store *store = open_store();
    struct evp_prefix found;

    put(store, "a", "slow", "none", 1);
    cr_assert_eq(find(store, 1, T, &found), 1);
    cr_assert_eq(stats(store, "slow", "").n_placed, 1);
    write_manifest(1);
    cr_assert_eq(evp_refresh(store, NULL), 1);
    cr_assert_eq(find(store, 1, T, &found), 0);
    cr_assert(stats(store, "slow", "").n_placed == 0 && stats(store, "slow", "").hits == 1);
    write_manifest(2);
    cr_assert(evp_refresh(store, NULL) == 1 && find(store, 1, T, &found) == 1);
    cr_assert(stats(store, "slow", "").n_placed == 1 && stats(store, "slow", "").hits == 2);
    evp_close(store);
}

enum { THREADS = 8, ROUNDS = 500 };

static void *hammer(void *arg)
{
    struct evp_store *store = arg;
    struct evp_prefix found;
    char bytes[PAYLOAD_MAX];

    for (int i = 0; i < ROUNDS; i++) {
        cr_assert_eq(find(store, 1 + i % 3, T, &found), i % 3 < 2);
        if (i % 3 < 2)
            cr_assert_eq(evp_fetch(store, &found, bytes, i % 5 ? sizeof(bytes) : 1, NULL),
                         i % 5 ? EVICPRESS_OK : EVICPRESS_SMALL);
    }
    return NULL;
}

Test(evp_stats, adds_up_over_threads)
{
    struct evp_store *store = open_store();
    pthread_t thread[THREADS];
    uint64_t hits = 0, small = 0;

    uint64_t size = put(store, "a", "fast", "none", 1);
    put(store, "b", "slow", "none", 2);
    for (int i = 0; i < ROUNDS; i++) {
        hits += i % 3 < 2 ? THREADS : 0;
        small += i % 3 < 2 && i % 5 == 0 ? THREADS : 0;
    }
    for (int t = 0; t < THREADS; t++)
        cr_assert_eq(pthread_create(&thread[t], NULL, hammer, store), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(thread[t], NULL);
    struct evp_counters all = stats(store, "", ""), fast = stats(store, "fast", ""),
                        slow = stats(store, "slow", "none");
    cr_assert(all.finds == THREADS * ROUNDS && all.tokens_asked == all.finds * T && all.hits == hits &&
              all.tokens_hit == hits * T && all.errors[5] == small && all.reads == hits - small &&
              all.read_bytes == all.reads * size);
    cr_assert(fast.hits + slow.hits == hits && fast.hits == (ROUNDS + 2) / 3 * THREADS);
    evp_close(store);
}

Test(evp_stats, begins_at_0_in_a_forked_process)
{
    struct evp_store *store = open_store();
    struct evp_prefix found;
    int status;

    put(store, "a", "fast", "none", 1);
    cr_assert_eq(find(store, 1, T, &found), 1);
    pid_t child = fork();
    if (child == 0) {
        find(store, 1, T, &found);
        struct evp_counters all = stats(store, "", "");
        _exit(all.finds == 1 && all.hits == 1 && all.puts == 0 && all.n_placed == 1 ? 0 : 1);
    }
    cr_assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert(stats(store, "", "").finds == 1 && stats(store, "", "").puts == 1);
    evp_close(store);
}

/* ---- the file ----------------------------------------------------------------- */

/* What is read back is what was counted; of two files the sum, but not of what is placed. */
Test(evp_stats, writes_what_is_read_back)
{
    struct evp_store *store = open_store();
    struct metrics one = { 0 }, both = { 0 };
    struct evp_counters s;
    struct err err;
    char *file = file_join(dir, "a \"b\\.prom"), *other = file_join(dir, "c.prom");

    put(store, "a", "fast", "kivi:bits=4", 1);
    put(store, "b", "slow", "none", 2);
    hammer(store);
    cr_assert(!evp_write_metrics(store, file, NULL) && !evp_write_metrics(store, other, NULL));
    cr_assert_eq(metrics_read(&one, file, &err), 0, "%s", err.msg);
    cr_assert_eq(metrics_read(&both, dir, &err), 0, "%s", err.msg);
    for (size_t i = 0; evp_stats(store, i, &s, NULL) == 1; i++) {
        struct evp_counters read = metrics_total(&one, s.tier, s.config);
        cr_assert_arr_eq(&read, &s, sizeof(s), "record %zu", i);
        read = metrics_total(&both, s.tier, s.config);
        cr_assert(read.hits == 2 * s.hits && read.errors[5] == 2 * s.errors[5] && read.n_placed == s.n_placed &&
                  read.placed_bytes == s.placed_bytes && fabs(read.read_s - 2 * s.read_s) <= 1e-9 * s.read_s);
    }
    cr_assert_eq(both.n, one.n);
    metrics_release(&one);
    metrics_release(&both);
    cr_assert_eq(evp_write_metrics(store, "/nowhere/x.prom", NULL), EVICPRESS_IO);
    cr_assert_eq(evp_write_metrics(store, NULL, NULL), EVICPRESS_ARGUMENT);
    evp_close(store);
    free(file);
    free(other);
}
