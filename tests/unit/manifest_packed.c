/* The packed rows of a large manifest: they say what the manifest says, or they are not used, or refused. */
#include "base/file.h"
#include "loader/formats/manifest.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char digest[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static char path[64], packed[80], other[80], other_packed[96]; // of this test's process
static const struct variant_info two_variants[] = { { "kivi:bits=2", 100, 0.25, (double)NAN },
                                                    { "keydiff:drop=0.5", 345, 0.1 + 0.2, 0.125 } };

static struct placement row_of(int i, char id[32], struct variants *variants)
{
    static const char *const pin[] = { NULL, "ssd", "recompute" };
    bool stored = i % 3 < 2;

    snprintf(id, 32, "context/%06d", i);
    *variants = (struct variants){ two_variants, 2, 1.5, 0.01 * (i % 7), 0.2, pin[i % 3], 0.125, 0.0625 };
    return (struct placement){ .id = id,
                               .token_digest = digest,
                               .config = stored ? "keydiff:drop=0.5" : "none",
                               .tier = stored ? 0 : -1,
                               .n_tokens = 1 + i,
                               .bytes = stored ? 345 : 0,
                               .kv_bytes = i % 5,
                               .quality = stored ? 0.1 + 0.2 : 1,
                               .quality_test = i % 4 ? 0.5 : (double)NAN,
                               .ttft_s = i % 6 ? 0.1 * i : (double)NAN,
                               .utility = -0.1 * i,
                               .frequency = i % 11,
                               .operation = stored ? OP_MOVE : OP_NONE,
                               .variants = i % 10 ? variants : NULL,
                               .quality_sd = i % 2 ? 0.25 : 0,
                               .unmeasured = i % 2 };
}

struct rows {
    int n_tokens; // added to each row's
};

static int put(const void *arg, struct manifest_piece *piece, int first, int n, struct err *err)
{
    const struct rows *rows = arg;
    struct variants variants;
    char id[32];

    for (int i = first; i < first + n; i++) {
        struct placement p = row_of(i, id, &variants);
        p.n_tokens += rows->n_tokens;
        if (manifest_put(piece, &p, err))
            return err->code;
    }
    return 0;
}

static void write_rows(const char *to, int n, double objective, int n_tokens)
{
    struct tier tier = { .name = "ssd",
                         .kind = TIER_FILE,
                         .uri = strdup("/var/tmp/evp"),
                         .capacity = 1000,
                         .read_bytes_per_s = 1e9,
                         .write_bytes_per_s = 1e8 };
    struct manifest m = {
        .alpha = 0.5, .solver = "test", .objective = objective, .tiers = { &tier, 1 }, .borrows = true
    };
    struct rows rows = { n_tokens };
    struct err err;

    cr_assert_eq(manifest_list_config(&m, "none", &err), 0);
    cr_assert_eq(manifest_list_config(&m, "keydiff:drop=0.5", &err), 0);
    cr_assert_eq(manifest_list_config(&m, "kivi:bits=2", &err), 0);
    cr_assert_eq(manifest_write_rows(&m, &(struct manifest_rows){ n, put, &rows }, to,
                                     (struct rows_made){ .tool = "test" }, &err),
                 0, "%s", err.msg);
    manifest_release(&m);
    free(tier.uri);
}

static void init(void)
{
    snprintf(path, sizeof(path), "/tmp/evp-packed-%d", (int)getpid());
    snprintf(packed, sizeof(packed), "%s.packed", path);
    snprintf(other, sizeof(other), "%s-other", path);
    snprintf(other_packed, sizeof(other_packed), "%s.packed", other);
}

static void release(void)
{
    unlink(path);
    unlink(packed);
    unlink(other);
}

enum { N = MANIFEST_PACKED_FROM + 77 };

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void expect_same(const struct placement *a, const struct placement *b)
{
    cr_assert_str_eq(a->id, b->id);
    cr_assert_str_eq(a->token_digest, b->token_digest);
    cr_assert_str_eq(a->config, b->config);
    cr_assert(a->payload ? b->payload && strcmp(a->payload, b->payload) == 0 : !b->payload);
    cr_assert(a->tier == b->tier && a->n_tokens == b->n_tokens && a->bytes == b->bytes && a->kv_bytes == b->kv_bytes);
    cr_assert(a->quality == b->quality && same(a->quality_test, b->quality_test) && same(a->ttft_s, b->ttft_s));
    cr_assert(a->utility == b->utility && a->frequency == b->frequency && a->operation == b->operation);
    cr_assert(a->quality_sd == b->quality_sd && a->unmeasured == b->unmeasured && !a->variants == !b->variants);
    if (!a->variants)
        return;
    const struct variants *x = a->variants, *y = b->variants;
    cr_assert(x->n == y->n && x->prefill_s == y->prefill_s && x->question_s == y->question_s);
    cr_assert(x->min_quality == y->min_quality && x->prefill_sd_s == y->prefill_sd_s);
    cr_assert(x->question_sd_s == y->question_sd_s && (x->pin ? y->pin && !strcmp(x->pin, y->pin) : !y->pin));
    for (int i = 0; i < x->n; i++) {
        cr_assert_str_eq(x->at[i].config, y->at[i].config);
        cr_assert(x->at[i].bytes == y->at[i].bytes && x->at[i].quality == y->at[i].quality);
        cr_assert(same(x->at[i].decompress_s, y->at[i].decompress_s));
    }
}

Test(manifest_packed, says_what_the_manifest_says, .init = init, .fini = release)
{
    struct manifest fast, slow;
    struct err err;

    write_rows(path, N, 1, 0);
    cr_assert(file_exists(packed));
    cr_assert_eq(manifest_read(&fast, path, &err), 0, "%s", err.msg);
    unlink(packed);
    cr_assert_eq(manifest_read(&slow, path, &err), 0, "%s", err.msg);
    cr_assert(fast.n == N && slow.n == N);
    cr_assert_str_eq(fast.digest, slow.digest);
    for (int i = 0; i < N; i++)
        expect_same(&fast.at[i], &slow.at[i]);
    manifest_release(&fast);
    manifest_release(&slow);
}

static int count(void *arg, const struct manifest *m, const struct placement *row, struct err *err)
{
    int *n = arg;

    (void)m;
    ++*n;
    return row->n_tokens == *n ? 0 : err_set(err, ERR_FORMAT, "%d is not %d", (int)row->n_tokens, *n);
}

Test(manifest_packed, is_visited_in_order, .init = init, .fini = release)
{
    struct manifest m;
    struct err err;
    int n = 0;

    write_rows(path, N, 1, 0);
    cr_assert_eq(manifest_each(&m, path, count, &n, &err), 0, "%s", err.msg);
    cr_assert_eq(n, N);
    manifest_release(&m);
}

Test(manifest_packed, is_not_made_of_few_rows, .init = init, .fini = release)
{
    write_rows(path, MANIFEST_PACKED_FROM - 1, 1, 0);
    cr_assert(!file_exists(packed));
}

/* Gives the manifest's first row the tokens that read_more() looks for, in place. */
static void set_tokens(const char *manifest)
{
    static const char from[] = "\"n_tokens\":1,";
    char text[4096] = "";
    FILE *f = fopen(manifest, "r+");

    cr_assert(f && fread(text, 1, sizeof(text) - 1, f) > 0);
    const char *at = strstr(text, from);
    cr_assert(at && !fseek(f, at - text + (long)strlen(from) - 2, SEEK_SET) && fputc('2', f) == '2' && !fclose(f));
}

/* Reads the manifest; says whether its rows have one token more than those of row_of(). */
static bool read_more(void)
{
    struct manifest m;
    struct err err;

    cr_assert_eq(manifest_read(&m, path, &err), 0, "%s", err.msg);
    bool more = m.at[0].n_tokens == 2;
    manifest_release(&m);
    return more;
}

/* As when a writer is killed between the two files, or one of them is copied: also where the headers are the same. */
Test(manifest_packed, of_another_manifest_is_not_used, .init = init, .fini = release)
{
    for (int objective = 1; objective <= 2; objective++) {
        write_rows(other, N, objective, 0);
        write_rows(path, N, 1, 1);
        cr_assert_eq(rename(other_packed, packed), 0);
        cr_assert(read_more());
    }
}

Test(manifest_packed, of_a_manifest_before_an_edit_is_not_used, .init = init, .fini = release)
{
    write_rows(path, N, 1, 0);
    set_tokens(path);
    cr_assert(read_more());
}

Test(manifest_packed, that_was_cut_is_not_used, .init = init, .fini = release)
{
    uint64_t size;
    struct err err;

    write_rows(path, N, 1, 1);
    cr_assert_eq(file_size(packed, &size, &err), 0);
    cr_assert_eq(truncate(packed, (off_t)size - 1), 0);
    cr_assert(read_more());
    cr_assert_eq(truncate(packed, 5), 0);
    cr_assert(read_more());
}

static void expect_refused(void)
{
    struct manifest m;
    struct err err;

    cr_assert_eq(manifest_read(&m, path, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "are damaged, or not its: remove the file that ends in '.packed'"), "%s", err.msg);
}

Test(manifest_packed, of_a_manifest_that_was_damaged_is_refused, .init = init, .fini = release)
{
    struct stat st;

    write_rows(path, N, 1, 0);
    cr_assert_eq(stat(path, &st), 0);
    set_tokens(path);
    cr_assert_eq(utimensat(AT_FDCWD, path, (struct timespec[]){ st.st_atim, st.st_mtim }, 0), 0);
    expect_refused();
}

/* Adds one to the byte at an offset. */
static void damage(long at)
{
    FILE *f = fopen(packed, "r+");

    cr_assert(f && !fseek(f, at, SEEK_SET));
    int c = fgetc(f);
    cr_assert(!fseek(f, at, SEEK_SET));
    cr_assert_neq(fputc((c + 1) & 255, f), EOF);
    fclose(f);
}

Test(manifest_packed, that_is_damaged_is_refused, .init = init, .fini = release)
{
    const long of_head[] = { 0, 4, 7, 8 }; // of the first piece: rows, bytes, checksum

    for (int i = 0; i < 4; i++) {
        write_rows(path, N, 1, 0);
        damage(of_head[i]);
        expect_refused();
    }
    write_rows(path, N, 1, 0);
    damage(N * 200L);
    expect_refused();
}
