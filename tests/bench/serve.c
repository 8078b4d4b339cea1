/* serve.c - what libevicpress costs in a serving process, with as many contexts placed as asked for.
 *
 *     serve FOLDER N [PARTS]
 *
 * Makes a tier in FOLDER, on tmpfs or a disk, whose index and state name N payloads that are not there, and one that
 * is. Prints the time and the memory of evp_open(), the time of evp_find() with a prompt of 131,072 tokens, and of
 * evp_put() and evp_remove() of payloads of 1, 8 and 64 MiB beside a plain write and fsync of their bytes. Medians; the
 * index is in the page cache. With PARTS, every context has so many parts in the index, and the first one
 * all of the prompt's.
 */
#include "base/clock.h"
#include "base/rng.h"
#include "formats/manifest.h"
#include "formats/payload.h"
#include "loader/libevicpress/evicpress.h"
#include "loader/store/index.h"
#include "loader/store/tier_store.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROMPT = 1 << 17, REPEATS = 15, SIZE = 64 << 20 };

static const char model[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static char name[] = "tier";

static void must(int failed, const char *why)
{
    if (!failed)
        return;
    fprintf(stderr, "serve: %s\n", why);
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(double *seconds, int n)
{
    qsort(seconds, (size_t)n, sizeof(*seconds), by_size);
    return seconds[n / 2];
}

/* Bytes of memory that are the process's own. */
static double own_memory(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = 0, shared = 0;

    must(!f || fscanf(f, "%*d %ld %ld", &pages, &shared) != 2, "no /proc");
    fclose(f);
    return (double)(pages - shared) * (double)sysconf(_SC_PAGESIZE);
}

/* ---- what is placed -------------------------------------------------------------- */

static void write_manifest(const char *path, struct tier *tier)
{
    struct manifest m = { .alpha = 1, .solver = "bench", .tiers = { tier, 1 }, .borrows = true };
    struct placement p = {
        .id = "a", .token_digest = model, .config = "none", .tier = -1, .n_tokens = 1, .quality = 1
    };
    struct err err;

    memcpy(m.model_digest, model, sizeof(model));
    must(manifest_add(&m, &p, &err) || manifest_write(&m, path, (struct rows_made){ .tool = "bench" }, &err), err.msg);
    manifest_release(&m);
}

static void random_hex(struct rng *r, char *hex, int n)
{
    for (int i = 0; i < n; i++)
        hex[i] = "0123456789abcdef"[rng_below(r, 16)];
    hex[n] = '\0';
}

/* A payload of random tokens; every hundredth is a prefix of the prompt instead. */
static struct entry make_entry(struct rng *r, int i, const int32_t *prompt)
{
    char id[24];
    struct entry e = { .config = strdup(i % 2 ? "none" : "kivi:bits=2"),
                       .n_tokens = 1 + (int64_t)rng_below(r, PROMPT),
                       .bytes = 1000,
                       .size = 1000 };
    struct err err;

    snprintf(id, sizeof(id), "context/%d", i);
    e.id = strdup(id);
    e.payload = strdup(id);
    random_hex(r, e.token_digest, DIGEST_HEX - 1);
    random_hex(r, e.checksum, XXH3_HEX - 1);
    for (int k = 0; k < OBJECT_ID; k++)
        e.prefix[k] = (uint8_t)rng_below(r, 256);
    if (i % 100 == 0 && i < 10000)
        must(digest_tokens(prompt, (int)e.n_tokens, e.token_digest, &err) ||
                 index_prefix(prompt, e.n_tokens, e.prefix, &err),
             "no digest");
    must(entry_set_file(&e, model, &err), err.msg);
    return e;
}

/* A context of as many tokens as the prompt, with a size that is a whole number of bytes for each. */
static struct entry make_whole(struct entry e, int i)
{
    struct rng r = rng_new((uint64_t)i);

    random_hex(&r, e.token_digest, DIGEST_HEX - 1);
    e.n_tokens = PROMPT;
    e.size = 100 + PROMPT;
    return e;
}

/* Parts of random digests; of the first context those of the prompt. */
static void add_parts(struct tier_store *s, int i, int n, const int32_t *prompt)
{
    static uint8_t digest[PROMPT / DIGEST_CHUNK][32];
    struct rng r = rng_new((uint64_t)i);
    struct state_parts parts = { .header = 100, .n = i ? n : PROMPT / DIGEST_CHUNK - 1, .digest = digest };
    char hex[DIGEST_HEX];
    struct err err;

    for (int k = 0; k < parts.n; k++) {
        random_hex(&r, hex, DIGEST_HEX - 1);
        must(!i && digest_tokens(prompt, (k + 1) * DIGEST_CHUNK, hex, &err), "no digest");
        digest_from_hex(hex, digest[k], sizeof(digest[k]));
    }
    must(tier_store_put_parts(s, i, &parts, &err), err.msg);
}

static void fill(const struct tier *tier, int n, int n_parts, const int32_t *prompt)
{
    struct tier_store_options o = { .tier = tier, .name_space = model, .use = STORE_CHANGE };
    struct rng r = rng_new(1);
    struct tier_store s;
    struct err err;

    must(tier_store_open(&s, &o, &err), err.msg);
    must(state_put_load(s.state, model, &s.load, &err), err.msg);
    for (int i = 0; i < n; i++) {
        struct entry e = make_entry(&r, i, prompt);
        if (n_parts) /* whatever was drawn, it has room for its parts, and no context ends in the prompt */
            e = make_whole(e, i);
        must(tier_store_add(&s, &e, &err), err.msg);
        if (n_parts)
            add_parts(&s, i, n_parts, prompt);
    }
    must(tier_store_commit(&s, &err) || tier_store_publish(&s, &err), err.msg);
    tier_store_close(&s);
}

/* ---- what is measured --------------------------------------------------------------- */

static struct evp_store *time_open(const char *manifest)
{
    double seconds[REPEATS];
    struct evp_store *store = NULL;
    struct evp_error error;

    malloc_trim(0); /* so that what is opened does not lie in what was freed before */
    double before = own_memory();
    for (int i = 0; i < REPEATS; i++) {
        evp_close(store);
        double start = clock_now();
        must(evp_open(&store, manifest, &error), error.text);
        seconds[i] = clock_now() - start;
    }
    printf("evp_open: %.2f ms, %.2f MB of memory\n", 1e3 * median(seconds, REPEATS), (own_memory() - before) / 1e6);
    return store;
}

static void time_find(struct evp_store *store, const int32_t *prompt)
{
    double seconds[REPEATS];
    struct evp_prefix found = { 0 };
    struct evp_error error;

    for (int i = 0; i < REPEATS; i++) {
        double start = clock_now();
        must(evp_find(store, prompt, PROMPT, &found, &error) < 0, error.text);
        seconds[i] = clock_now() - start;
    }
    printf("evp_find of %d tokens: %.3f ms, %lld of them are placed\n", PROMPT, 1e3 * median(seconds, REPEATS),
           (long long)found.n_tokens);
}

/* A payload of one token with n bytes and a little; returns how many. */
static size_t make_payload(char *to, const char *path, int32_t id, size_t n)
{
    struct st_tensor tensor[2] = { payload_tokens(1),
                                   { .name = "layers.0.k", .type = ST_U8, .n_dims = 1, .dim = { (int64_t)n } } };
    char digest[DIGEST_HEX], sum[2][XXH3_HEX];
    struct payload_made made = { "none", model, digest, 1, tensor, sum, 2, { 0 }, NULL };
    static char bytes[SIZE];
    struct file_out out;
    struct buf whole = { 0 };
    struct err err;

    digest_xxh3_hex(&id, sizeof(id), sum[0]);
    digest_xxh3_hex(bytes, n, sum[1]);
    must(digest_tokens(&id, 1, digest, &err) || file_create(&out, path, &err) ||
             payload_write_header(&out, &made, &err),
         "no payload");
    fwrite(&id, sizeof(id), 1, out.f);
    fwrite(bytes, n, 1, out.f);
    must(file_commit(&out, &err) || file_read(&whole, path, 2 * SIZE, &err), err.msg);
    memcpy(to, whole.at, whole.n);
    size_t size = whole.n;
    buf_release(&whole);
    return size;
}

static double write_once(const char *path, const char *bytes, size_t n)
{
    double start = clock_now();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    must(fd < 0 || write(fd, bytes, n) != (ssize_t)n || fsync(fd), "cannot write");
    close(fd);
    return clock_now() - start;
}

static void time_changes(struct evp_store *store, const char *path, size_t n)
{
    static char bytes[SIZE + SIZE / 8];
    struct evp_put_args put = { .id = "put", .tier = name, .payload = bytes, .size = make_payload(bytes, path, 7, n) };
    double puts[REPEATS], removals[REPEATS], writes[REPEATS];
    struct evp_error error;

    for (int i = 0; i < REPEATS; i++) {
        writes[i] = write_once(path, bytes, put.size);
        double start = clock_now();
        must(evp_put(store, &put, &error), error.text);
        puts[i] = clock_now() - start;
        start = clock_now();
        must(evp_remove(store, "put", &error), error.text);
        removals[i] = clock_now() - start;
    }
    printf("evp_put of %zu MiB: %.1f ms, evp_remove: %.1f ms; write and fsync: %.1f ms\n", n >> 20,
           1e3 * median(puts, REPEATS), 1e3 * median(removals, REPEATS), 1e3 * median(writes, REPEATS));
}

int main(int argc, char **argv)
{
    int32_t *prompt = malloc(PROMPT * sizeof(*prompt));

    must(argc < 3 || argc > 4 || !prompt, "usage: serve FOLDER N [PARTS]");
    int n = (int)strtol(argv[2], NULL, 10);
    char *folder = file_join(argv[1], name), *manifest = file_join(argv[1], "m.jsonl"),
         *payload = file_join(argv[1], "payload");
    struct tier tier = { .name = "tier",
                         .kind = TIER_FILE,
                         .uri = folder,
                         .capacity = INT64_MAX,
                         .read_bytes_per_s = 1,
                         .write_bytes_per_s = 1 };

    for (int i = 0; i < PROMPT; i++)
        prompt[i] = i;
    write_manifest(manifest, &tier);
    fill(&tier, n, argc > 3 ? (int)strtol(argv[3], NULL, 10) : 0, prompt);
    printf("%d contexts are placed\n", n);
    struct evp_store *store = time_open(manifest);
    time_find(store, prompt);
    for (size_t size = 1 << 20; size <= SIZE; size *= 8)
        time_changes(store, payload, size);
    time_find(store, prompt);
    evp_close(store);
    free(folder);
    free(manifest);
    free(payload);
    free(prompt);
    return 0;
}
