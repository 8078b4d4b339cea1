/* load.c - what evp-load costs where everything is in its place already.
 *
 *     load FOLDER N
 *
 * Makes a tier in FOLDER, on tmpfs or a disk, with N payloads that have their size but no blocks, and the manifest that
 * placed them. Prints the time of planning that load again, in a process of its own, and the memory that it took at
 * most, per placement.
 */
#include "base/clock.h"
#include "base/rng.h"
#include "formats/manifest.h"
#include "loader/load/load.h"
#include "loader/store/folder.h"
#include "loader/store/tier_store.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 1000 };

static const char model[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static void must(int failed, const char *why)
{
    if (!failed)
        return;
    fprintf(stderr, "load: %s\n", why);
    exit(1);
}

/* Both are made of the same context: a row of the manifest, and an entry of the state. */
static void make_texts(struct rng *r, int i, char id[32], char digest[DIGEST_HEX])
{
    snprintf(id, 32, "context/%08d", i);
    for (int k = 0; k < DIGEST_HEX - 1; k++)
        digest[k] = "0123456789abcdef"[rng_below(r, 16)];
    digest[DIGEST_HEX - 1] = '\0';
}

static void write_manifest(const char *path, struct tier *tier, int n)
{
    struct manifest m = { .alpha = 1, .solver = "bench", .tiers = { tier, 1 }, .borrows = true };
    char id[32], digest[DIGEST_HEX];
    struct rng r = rng_new(1);
    struct err err;

    memcpy(m.model_digest, model, sizeof(model));
    for (int i = 0; i < n; i++) {
        make_texts(&r, i, id, digest);
        char *payload = manifest_payload_name(id, digest, "none");
        struct placement p = { .id = id,
                               .token_digest = digest,
                               .config = "none",
                               .payload = payload,
                               .n_tokens = 3000,
                               .bytes = SIZE,
                               .quality = 1,
                               .quality_test = (double)NAN,
                               .ttft_s = 0.01,
                               .frequency = 1,
                               .operation = OP_INSERT };
        must(manifest_add(&m, &p, &err), err.msg);
        free(payload);
    }
    must(manifest_write(&m, path, (struct rows_made){ .tool = "bench" }, &err), err.msg);
    manifest_release(&m);
}

static struct entry make_entry(struct rng *r, int i)
{
    char id[32];
    struct entry e = {
        .config = strdup("none"), .checksum = "0123456789abcdef", .n_tokens = 3000, .bytes = SIZE, .size = SIZE
    };
    struct err err;

    make_texts(r, i, id, e.token_digest);
    memcpy(e.model_digest, model, sizeof(model));
    memcpy(e.prefix, e.token_digest, sizeof(e.prefix));
    e.id = strdup(id);
    e.payload = manifest_payload_name(id, e.token_digest, "none");
    must(entry_set_file(&e, model, &err), err.msg);
    return e;
}

/* Places all payloads as a load of the manifest does that has ended. */
static void fill(const struct tier *tier, const char *manifest, int n)
{
    struct tier_store_options o = { .tier = tier, .name_space = model, .use = STORE_CHANGE };
    struct rng r = rng_new(1);
    struct manifest m;
    struct tier_store s;
    struct err err;

    must(manifest_read(&m, manifest, &err) || tier_store_open(&s, &o, &err), err.msg);
    memcpy(s.load.manifest, m.digest, sizeof(s.load.manifest));
    must(state_put_load(s.state, model, &s.load, &err), err.msg);
    for (int i = 0; i < n; i++) {
        struct entry e = make_entry(&r, i);
        int fd = folder_create_file(s.folder, e.file, &err);
        must(fd < 0 || ftruncate(fd, SIZE), "cannot make a file");
        close(fd);
        must(tier_store_add(&s, &e, &err), err.msg);
    }
    must(tier_store_commit(&s, &err) || tier_store_publish(&s, &err), err.msg);
    tier_store_close(&s);
    manifest_release(&m);
}

static void warn(const char *fmt, ...)
{
    (void)fmt;
}

static void plan(const char *manifest, int n)
{
    struct load_options o = { .manifest = manifest, .jobs = 1, .warn = warn };
    struct rusage before, after;
    struct load *l;
    struct err err;

    getrusage(RUSAGE_SELF, &before);
    double start = clock_now();
    must(load_open(&l, &o, &err), err.msg);
    double seconds = clock_now() - start;
    getrusage(RUSAGE_SELF, &after);
    must(!load_report(l)->nothing_to_do, "there is something to do");
    double cpu = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                 1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
                 (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                 1e-6 * (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
    printf("a load of %d placements with nothing to do: %.2f s, %.2f s of CPU, %.0f bytes of memory for each\n", n,
           seconds, cpu, 1024.0 * (double)(after.ru_maxrss - before.ru_maxrss) / n);
    load_close(l);
}

/* Each in a process of its own, so that memory that one had does not hide what the next one takes. */
static void apart(void (*step)(char **argv), char **argv)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        step(argv);
        fflush(stdout);
        _exit(0);
    }
    must(child < 0 || waitpid(child, &status, 0) != child || status, "a step failed");
}

static void make(char **argv)
{
    char *folder = file_join(argv[1], "tier"), *manifest = file_join(argv[1], "m.jsonl");
    char name[] = "tier";
    struct tier tier = {
        .kind = TIER_FILE, .uri = folder, .capacity = INT64_MAX, .read_bytes_per_s = 1, .write_bytes_per_s = 1
    };
    int n = (int)strtol(argv[2], NULL, 10);

    memcpy(tier.name, name, sizeof(name));
    write_manifest(manifest, &tier, n);
    fill(&tier, manifest, n);
    free(folder);
    free(manifest);
}

static void measure(char **argv)
{
    char *manifest = file_join(argv[1], "m.jsonl");

    plan(manifest, (int)strtol(argv[2], NULL, 10));
    free(manifest);
}

int main(int argc, char **argv)
{
    must(argc != 3, "usage: load FOLDER N");
    apart(make, argv);
    apart(measure, argv);
    return 0;
}
