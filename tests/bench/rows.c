/* rows FOLDER - rows of placed payloads as an engine keeps them, beside read() of the payload's file and memcpy() of as
 * many bytes: from FOLDER/tier, of 4 layers of 8 heads of 128 columns, 8,192 tokens (128 MiB as bf16), with checksums
 * compared, in one thread and, layer by layer, in two. On a disk every read begins without the page cache. The fastest
 * of 7, each into memory that the processor's cache does not have, like most of an engine's; in a file system in
 * memory by the time of the processor, because other programs may use it too. */
#include "formats/manifest.h"
#include "formats/payload.h"
#include "loader/libevicpress/evicpress.h"
#include "loader/store/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum {
    LAYERS = 4,
    HEADS = 8,
    COLUMNS = 128,
    TOKENS = 8192,
    REPEATS = 7,
    TENSORS = 8,
    THREADS_MAX = LAYERS,
    ALL = 1 + LAYERS * TENSORS
};
static const char model[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static const size_t whole = (size_t)LAYERS * 2 * HEADS * TOKENS * COLUMNS * 2; // bytes of all rows as bf16

static void must(int failed, const char *why)
{
    if (!failed)
        return;
    fprintf(stderr, "rows: %s\n", why);
    exit(1);
}

/* Seconds: of this thread where no disk is waited for. */
static clockid_t the_clock = CLOCK_THREAD_CPUTIME_ID;

static int n_threads = 1; // that share the layers

static double now(void)
{
    struct timespec t;

    clock_gettime(the_clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- payloads ----------------------------------------------------------------------- */

struct made_tensor {
    char name[48];
    char sum[XXH3_HEX], heads[HEADS * (XXH3_HEX - 1) + 1];
};

static void fill(char *to, size_t n, const struct st_tensor *t)
{
    uint32_t x = 1;

    for (size_t i = 0; i + 2 <= n; i += 2) {
        uint16_t number;
        x = x * 1664525 + 1013904223;
        number = (uint16_t)(t->type == ST_I32 ? x >> 16 : 0x3c00 + (x >> 25)); /* codes, or numbers near 1 */
        memcpy(to + i, &number, sizeof(number));
    }
}

static int list_layer(struct st_tensor *t, int bits)
{
    const int64_t full = bits ? 32 : TOKENS, q = TOKENS - 32, word = bits ? 32 / bits : 1;
    const struct st_tensor all[TENSORS] = {
        { .name = "k", .type = ST_BF16, .dim = { HEADS, bits ? 0 : full, COLUMNS } },
        { .name = "v", .type = ST_BF16, .dim = { HEADS, full, COLUMNS } },
        { .name = "k_codes", .type = ST_I32, .dim = { HEADS, COLUMNS, TOKENS / word } },
        { .name = "k_scales", .type = ST_F16, .dim = { HEADS, COLUMNS, TOKENS / 32 } },
        { .name = "k_zeros", .type = ST_F16, .dim = { HEADS, COLUMNS, TOKENS / 32 } },
        { .name = "v_codes", .type = ST_I32, .dim = { HEADS, q, COLUMNS / word } },
        { .name = "v_scales", .type = ST_F16, .dim = { HEADS, q, COLUMNS / 32 } },
        { .name = "v_zeros", .type = ST_F16, .dim = { HEADS, q, COLUMNS / 32 } },
    };
    int n = bits ? TENSORS : 2;

    for (int i = 0; i < n; i++) {
        t[i] = all[i];
        t[i].n_dims = 3;
        t[i].bytes = (uint64_t)(t[i].dim[0] * t[i].dim[1] * t[i].dim[2]) * (t[i].type == ST_I32 ? 4 : 2);
    }
    return n;
}

/* Puts a payload of `none` or kivi; its first token is `id`. */
static void put(struct evp_store *store, const char *config, int bits, int32_t id)
{
    static struct made_tensor made[ALL];
    static char sum[ALL][XXH3_HEX];
    static int32_t ids[TOKENS];
    struct st_tensor tensor[ALL] = { payload_tokens(TOKENS) };
    char *heads[ALL] = { NULL }, digest[DIGEST_HEX], *text = NULL, *bytes = malloc(whole);
    struct payload_made payload = { .config = config,
                                    .model_digest = model,
                                    .token_digest = digest,
                                    .n_tokens = TOKENS,
                                    .tensor = tensor,
                                    .checksum = sum,
                                    .n = 1,
                                    .head_checksum = heads };
    size_t size = 0, at = 0;
    struct evp_error error;
    struct err err;

    ids[0] = id;
    digest_xxh3_hex(ids, sizeof(ids), sum[0]);
    must(!bytes || digest_tokens(ids, TOKENS, digest, &err), "no memory");
    for (int l = 0; l < LAYERS; l++) {
        int n = list_layer(&tensor[payload.n], bits);
        for (int i = 0; i < n; i++, payload.n++) {
            struct made_tensor *m = &made[payload.n];
            struct st_tensor *t = &tensor[payload.n];
            size_t head = (size_t)t->bytes / HEADS;
            snprintf(m->name, sizeof(m->name), "layers.%d.%s", l, t->name);
            t->name = m->name;
            fill(bytes + at, (size_t)t->bytes, t);
            digest_xxh3_hex(bytes + at, (size_t)t->bytes, sum[payload.n]);
            for (int g = 0; g < HEADS; g++)
                digest_xxh3_hex(bytes + at + (size_t)g * head, head, m->heads + g * (XXH3_HEX - 1));
            heads[payload.n] = m->heads;
            at += (size_t)t->bytes;
        }
    }
    struct file_out out = { .f = open_memstream(&text, &size) };
    must(!out.f || payload_write_header(&out, &payload, &err), "no header");
    fwrite(ids, sizeof(ids), 1, out.f);
    fwrite(bytes, at, 1, out.f);
    fclose(out.f);
    const struct evp_put_args args = { .id = config, .tier = "tier", .payload = text, .size = size };
    must(evp_put(store, &args, &error), error.text);
    free(text);
    free(bytes);
}

/* ---- what is measured --------------------------------------------------------------- */

/* The fastest: other work on the machine only ever makes it slower. */
static double least(const double *seconds)
{
    double x = seconds[0];

    for (int i = 1; i < REPEATS; i++)
        x = seconds[i] < x ? seconds[i] : x;
    return x;
}

/* Layers first, first + step and so on of an open payload, for one thread; `seconds` says how long it took. */
struct share {
    struct evp_payload *payload;
    struct evp_rows rows;
    char *to;
    int first, step;
    double seconds;
};

static void *fetch_share(void *arg)
{
    struct share *s = arg;
    size_t bytes = (size_t)HEADS * TOKENS * COLUMNS * (s->rows.type == EVICPRESS_F32 ? 4 : 2);
    struct evp_rows rows = s->rows;
    struct evp_error error;
    double start = now();

    for (rows.layer = s->first; rows.layer < LAYERS; rows.layer += s->step)
        for (rows.side = 0; rows.side < 2; rows.side++)
            must(evp_fetch_rows(s->payload, &rows, s->to + (size_t)(2 * rows.layer + rows.side) * bytes, bytes, &error),
                 error.text);
    s->seconds = now() - start;
    return NULL;
}

/* All rows of a payload: an engine's way, [rows][heads][columns], or dense. Returns the seconds, of the thread that
 * takes longest. */
static double fetch(struct evp_store *store, const struct evp_prefix *found, struct evp_rows rows, char *to)
{
    struct share share[THREADS_MAX] = { { 0 } };
    pthread_t thread[THREADS_MAX];
    struct evp_error error;
    double start = now(), most = 0;

    must(evp_payload_open(&share[0].payload, store, found, &error), error.text);
    double opened = now() - start;
    for (int i = 0; i < n_threads; i++) {
        share[i] = (struct share){ share[0].payload, rows, to, i, n_threads, 0 };
        if (n_threads > 1)
            must(pthread_create(&thread[i], NULL, fetch_share, &share[i]), "no thread");
        else
            fetch_share(&share[i]);
    }
    for (int i = 0; i < n_threads; i++) {
        if (n_threads > 1)
            pthread_join(thread[i], NULL);
        most = share[i].seconds > most ? share[i].seconds : most;
    }
    evp_payload_close(share[0].payload);
    return opened + most;
}

/* Drops the payload's file from the page cache. In a memory file system it stays. */
static void drop(struct evp_store *store, const struct evp_prefix *found)
{
    struct evp_payload *payload;
    struct evp_location file;
    struct evp_error error;

    must(evp_payload_open(&payload, store, found, &error) || evp_locate(payload, NULL, &file, &error), error.text);
    posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED);
    evp_payload_close(payload);
}

/* Reads the payload's file, a MiB at a time. Returns the seconds per byte. */
static double read_file(struct evp_store *store, const struct evp_prefix *found, char *to)
{
    struct evp_payload *payload;
    struct evp_location file;
    struct evp_error error;
    ssize_t n = 1;

    drop(store, found);
    must(evp_payload_open(&payload, store, found, &error) || evp_locate(payload, NULL, &file, &error), error.text);
    double start = now();
    for (uint64_t at = 0; at < file.size && n > 0; at += (uint64_t)n)
        n = pread(file.fd, to + at, 1 << 20, (off_t)at);
    double seconds = now() - start;
    evp_payload_close(payload);
    return seconds / (double)file.size;
}

static void compare(struct evp_store *store, int32_t id, const char *what, struct evp_rows rows)
{
    static int32_t ids[TOKENS];
    double fetched[REPEATS], copied[REPEATS], read[REPEATS];
    size_t n = whole * (rows.type == EVICPRESS_F32 ? 2 : 1);
    char *from = malloc(n), *all = aligned_alloc(64, REPEATS * n + (2 << 20)); // as tensors are
    struct evp_prefix found;
    struct evp_error error;

    ids[0] = id;
    must(!from || !all || evp_find(store, ids, TOKENS, &found, &error) != 1, "not found");
    memset(from, 1, n);
    memset(all, 2, REPEATS * n);
    for (int i = 0; i < REPEATS; i++) {
        read[i] = read_file(store, &found, all + (size_t)((i + 4) % REPEATS) * n);
        drop(store, &found);
        fetched[i] = fetch(store, &found, rows, all + (size_t)i * n);
        char *to = all + (size_t)((i + 2) % REPEATS) * n;
        double start = now();
        memcpy(to, from, n);
        copied[i] = now() - start;
        from[i] ^= to[n - 1]; /* so that no copy is left out */
    }
    double a = (double)n / least(fetched), b = (double)n / least(copied), c = 1 / least(read);
    printf("%-12s %-28s %6.2f GB/s, read() of the file %6.2f, memcpy() %6.2f: ratios %.2f, %.2f\n", found.config, what,
           a / 1e9, c / 1e9, b / 1e9, a * (double)found.size / (double)n / c, a / b);
    free(from);
    free(all);
}

int main(int argc, char **argv)
{
    const struct evp_rows dense = { .type = EVICPRESS_BF16 }, f16 = { .type = EVICPRESS_F16 };
    const struct evp_rows f32 = { .type = EVICPRESS_F32 }, trust = { .verify = EVICPRESS_TRUST };
    const struct evp_rows paged = { .head_stride = COLUMNS, .row_stride = (int64_t)HEADS * COLUMNS };
    struct evp_store *store;
    struct evp_error error;
    struct folder disk;
    struct err err;

    must(argc != 2, "usage: rows FOLDER");
    char *folder = file_join(argv[1], "tier"), *manifest = file_join(argv[1], "m.jsonl");
    struct tier tier = { .name = "tier",
                         .kind = TIER_DRAM,
                         .uri = folder,
                         .capacity = INT64_MAX,
                         .read_bytes_per_s = 1,
                         .write_bytes_per_s = 1 };
    struct manifest m = { .alpha = 1, .solver = "test", .tiers = { &tier, 1 }, .borrows = true };
    struct placement p = {
        .id = "none", .token_digest = model, .config = "none", .tier = -1, .n_tokens = 1, .quality = 1
    };
    memcpy(m.model_digest, model, DIGEST_HEX);
    must(manifest_add(&m, &p, &err) || manifest_write(&m, manifest, (struct rows_made){ .tool = "test" }, &err),
         err.msg);
    mkdir(folder, 0700);
    must(evp_open(&store, manifest, &error) || probe_look(&disk, folder, &err), error.text);
    the_clock = disk.in_memory ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    put(store, "none", 0, 1);
    put(store, "kivi:bits=4", 4, 2);
    put(store, "kivi:bits=2", 2, 3);
    compare(store, 1, "bf16, dense", dense);
    compare(store, 1, "bf16, dense, trusted", trust);
    compare(store, 1, "bf16, [rows][heads][columns]", paged);
    compare(store, 1, "f16, dense", f16);
    compare(store, 1, "f32, dense", f32);
    for (int32_t id = 2; id < 4; id++) {
        compare(store, id, "bf16, dense", dense);
        compare(store, id, "bf16, [rows][heads][columns]", paged);
        compare(store, id, "f32, dense", f32);
    }
    n_threads = 2;
    compare(store, 1, "bf16, paged, two threads", paged);
    compare(store, 2, "bf16, paged, two threads", paged);
    evp_close(store);
    manifest_release(&m);
    return 0;
}
