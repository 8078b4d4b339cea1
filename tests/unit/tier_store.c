/* A tier's folder: what its index may hold, at every limit; copies of sizes around the chunk; locking and sweeping. */
#include "base/file.h"
#include "loader/formats/manifest.h"
#include "loader/store/tier_store.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 }; // of tier_store.c

static char dir[] = "/tmp/evp-unit-XXXXXX", *folder;
static struct tier tier = { .name = "ssd", .kind = TIER_FILE, .capacity = INT64_MAX };

static void make_dir(void)
{
    cr_assert_not_null(mkdtemp(dir));
    folder = file_join(dir, "tier");
    tier.uri = folder;
}

static void remove_dir(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    cr_assert_eq(system(command), 0);
    free(folder);
}

TestSuite(tier_store, .init = make_dir, .fini = remove_dir);

/* ---- the index ---------------------------------------------------------- */

static const struct entry good = { .token_digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                                   .model_digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                                   .checksum = "0123456789abcdef",
                                   .n_tokens = 1,
                                   .bytes = 0,
                                   .size = 1 };

/* `file` NULL: a good name. */
static void add(struct tier_store *s, const struct entry *e, const char *id, const char *config, const char *file)
{
    struct entry copy = *e;
    struct err err;

    copy.id = strdup(id);
    copy.config = strdup(config);
    copy.file = strdup(file ? file : "evp-0123456789abcdef-a");
    cr_assert_eq(entries_add(&s->in, &copy, &err), 0);
    s->changed = true;
}

/* Writes the index of *s, which nothing checks, and reads it back. `says` NULL: it must be good. */
static void expect_index(struct tier_store *s, const char *says)
{
    struct entries in;
    struct err err;

    cr_assert_eq(tier_store_flush(s, &err), 0, "%s", err.msg);
    int code = tier_store_read_index(&in, folder, &err);
    if (says) {
        cr_assert_eq(code, ERR_FORMAT, "%s", says);
        cr_assert(strstr(err.msg, says), "'%s' is not in: %s", says, err.msg);
        cr_assert(!in.at && !in.n);
    } else {
        cr_assert_eq(code, 0, "%s", err.msg);
        cr_assert(in.n == s->in.n && strcmp(in.at[0].id, s->in.at[0].id) == 0 &&
                  strcmp(in.at[0].file, s->in.at[0].file) == 0 && in.at[0].n_tokens == s->in.at[0].n_tokens);
    }
    entries_release(&in);
    entries_release(&s->in);
}

static struct tier_store open_store(void)
{
    struct tier_store s;
    struct err err;

    cr_assert_eq(tier_store_open(&s, &tier, STORE_CHANGE, &err), 0, "%s", err.msg);
    return s;
}

static const char *letters(int n)
{
    static char text[2048];

    memset(text, 'x', (size_t)n);
    text[n] = '\0';
    return text;
}

Test(tier_store, index_has_texts_up_to_their_limits)
{
    static const struct {
        int min, max;
        const char *says;
    } limit[] = { { 1, MANIFEST_ID - 1, "field 'id' is empty or too long" },
                  { 1, MANIFEST_CONFIG - 1, "field 'config' is empty or too long" },
                  { 1, MANIFEST_PAYLOAD - 1, "field 'file' is" } };
    struct tier_store s = open_store();

    for (int k = 0; k < 3; k++) {
        int length[] = { limit[k].min - 1, limit[k].min, limit[k].max - 1, limit[k].max, limit[k].max + 1 };
        for (int i = 0; i < 5; i++) {
            char file[512];
            snprintf(file, sizeof(file), "evp-%s-%.400s", good.checksum, k == 2 ? letters(length[i]) : "a");
            add(&s, &good, k == 0 ? letters(length[i]) : "a", k == 1 ? letters(length[i]) : "none", file);
            expect_index(&s, i == 0 || i == 4 ? limit[k].says : NULL);
        }
    }
    tier_store_close(&s);
}

Test(tier_store, index_has_numbers_within_their_limits)
{
    static const struct {
        int64_t n_tokens, bytes, size;
        const char *says; // NULL: good
    } row[] = { { 0, 0, 1, "field 'n_tokens' is out of range" },
                { 1, 0, 1, NULL },
                { INT32_MAX, 0, 1, NULL },
                { INT32_MAX + 1LL, 0, 1, "field 'n_tokens' is out of range" },
                { 1, -1, 1, "field 'bytes' is out of range" },
                { 1, 1, 0, "field 'size' is out of range" },
                { 1, 1LL << 53, 1LL << 53, NULL },
                { 1, (1LL << 53) + 2, 1, "field 'bytes'" },
                { 1, 1, (1LL << 53) + 2, "field 'size'" } };
    struct tier_store s = open_store();

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct entry e = good;
        e.n_tokens = row[i].n_tokens;
        e.bytes = row[i].bytes;
        e.size = row[i].size;
        add(&s, &e, "a", "none", NULL);
        expect_index(&s, row[i].says);
    }
    tier_store_close(&s);
}

Test(tier_store, index_names_payloads_only)
{
    static const char *const bad[] = { "evp-0123456789abcde-a",
                                       "evp-0123456789abcdef0-a",
                                       "evp-0123456789ABCDEF-a",
                                       "evp-0123456789abcdef-",
                                       "evp-0123456789abcdef-.a",
                                       "evp-0123456789abcdef-a/b",
                                       "evp-0123456789abcdefa",
                                       "evq-0123456789abcdef-a",
                                       "evp-index",
                                       "" };
    struct tier_store s = open_store();

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        add(&s, &good, "a", "none", bad[i]);
        expect_index(&s, "field 'file' is");
    }
    add(&s, &good, "a", "none", "evp-1123456789abcdef-a");
    expect_index(&s, "does not carry the checksum 0123456789abcdef");
    add(&s, &good, "a", "none", NULL);
    add(&s, &good, "b", "none", "evp-0123456789abcdef-b");
    expect_index(&s, NULL);
    add(&s, &good, "a", "none", NULL);
    add(&s, &good, "b", "none", NULL);
    expect_index(&s, "file 'evp-0123456789abcdef-a' comes twice");
    tier_store_close(&s);
}

/* ---- files -------------------------------------------------------------- */

static char *make_file(const char *name, size_t n)
{
    char *path = file_join(dir, name), *bytes = malloc(n + 1);
    struct err err;

    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 7 + (i >> 12));
    cr_assert_eq(file_write(path, bytes, n, &err), 0, "%s", err.msg);
    free(bytes);
    return path;
}

Test(tier_store, copies_files_of_any_size)
{
    static const size_t size[] = { 0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK };
    char *to = file_join(dir, "to");

    for (int i = 0; i < 6; i++) {
        char *from = make_file("from", size[i]), sum[XXH3_HEX], want[XXH3_HEX];
        struct buf a = { 0 }, b = { 0 };
        struct err err;
        int64_t n;
        cr_assert_eq(tier_store_copy(from, to, &n, sum, &err), 0, "%s", err.msg);
        cr_assert(file_read(&a, from, SIZE_MAX / 4, &err) == 0 && file_read(&b, to, SIZE_MAX / 4, &err) == 0);
        digest_xxh3_hex(a.at, a.n, want);
        cr_assert(n == (int64_t)size[i] && a.n == size[i] && b.n == a.n && (!a.n || memcmp(a.at, b.at, a.n) == 0));
        cr_assert_str_eq(sum, want);
        cr_assert(tier_store_checksum(to, &n, sum, &err) == 0 && n == (int64_t)size[i]);
        cr_assert_str_eq(sum, want);
        buf_release(&a);
        buf_release(&b);
        free(from);
    }
    free(to);
}

/* A payload whose size or checksum is not that of its entry is refused, and nothing of it stays. */
Test(tier_store, puts_what_the_entry_says)
{
    struct tier_store s = open_store();
    char *from = make_file("a", 1000);
    struct entry e = good;
    struct err err;

    e.id = (char[]){ "a" };
    e.config = (char[]){ "none" };
    cr_assert_eq(tier_store_checksum(from, &e.size, e.checksum, &err), 0);
    e.file = NULL;
    cr_assert_eq(entry_set_file(&e, "a", &err), 0);
    char *path = tier_store_path(&s, e.file);
    for (int off = -1; off <= 1; off += 2) {
        e.size = 1000 + off;
        cr_assert_eq(tier_store_put(&s, from, &e, &err), ERR_FORMAT);
        cr_assert(!file_exists(path) && s.in.n == 0);
    }
    e.size = 1000;
    cr_assert_eq(tier_store_put(&s, from, &e, &err), 0, "%s", err.msg);
    cr_assert(s.in.n == 1 && tier_store_has(&s, &e, STORE_SIZE) && tier_store_has(&s, &e, STORE_CONTENT));
    e.size = 999;
    cr_assert(!tier_store_has(&s, &e, STORE_SIZE));
    e.size = 1001;
    cr_assert(!tier_store_has(&s, &e, STORE_SIZE));
    e.size = 1000;
    e.checksum[15] = e.checksum[15] == '0' ? '1' : '0';
    cr_assert(tier_store_has(&s, &e, STORE_SIZE) && !tier_store_has(&s, &e, STORE_CONTENT));
    cr_assert_eq(tier_store_put(&s, from, &e, &err), ERR_FORMAT);
    free(path);
    free(e.file);
    free(from);
    tier_store_close(&s);
}

Test(tier_store, opens_once_and_sweeps_its_own_names_only)
{
    static const char *const own[] = { "evp-0123456789abcdef-gone", "evp-index.tmp.AbCdEf",
                                       "evp-0123456789abcdef-a.tmp.AbCdEf" };
    static const char *const foreign[] = { "notes", "evp-notes", "evp-0123456789abcde-a", "tmp.AbCdEf", "evp-index" };
    struct tier_store s = open_store(), second;
    char *path;
    struct err err;

    cr_assert_eq(tier_store_open(&second, &tier, STORE_CHANGE, &err), ERR_IO);
    cr_assert(strstr(err.msg, "another evp-load is at work"), "%s", err.msg);
    cr_assert_eq(tier_store_open(&second, &tier, STORE_LOOK, &err), 0, "%s", err.msg);
    tier_store_close(&second);
    add(&s, &good, "a", "none", NULL);
    cr_assert_eq(tier_store_flush(&s, &err), 0);
    tier_store_close(&s);
    for (int i = 0; i < 3; i++) {
        path = file_join(folder, own[i]);
        cr_assert_eq(file_write(path, "x", 1, &err), 0);
        free(path);
    }
    for (int i = 0; i < 4; i++) {
        path = file_join(folder, foreign[i]);
        cr_assert_eq(file_write(path, "x", 1, &err), 0);
        free(path);
    }
    path = file_join(folder, "evp-0123456789abcdef-a");
    cr_assert_eq(file_write(path, "x", 1, &err), 0);
    s = open_store();
    cr_assert(file_exists(path) && s.in.n == 1);
    free(path);
    for (int i = 0; i < 8; i++) {
        path = file_join(folder, i < 3 ? own[i] : foreign[i - 3]);
        cr_assert_eq(file_exists(path), i >= 3, "%s", path);
        free(path);
    }
    tier_store_close(&s);
}

Test(tier_store, needs_the_parent_of_its_folder)
{
    struct tier_store s;
    struct err err;
    char uri[256];

    snprintf(uri, sizeof(uri), "%s/absent/tier", dir);
    tier.uri = uri;
    cr_assert_eq(tier_store_open(&s, &tier, STORE_CHANGE, &err), ERR_IO);
    cr_assert_eq(tier_store_open(&s, &tier, STORE_LOOK, &err), ERR_IO);
    snprintf(uri, sizeof(uri), "%s/new///", dir);
    cr_assert_eq(tier_store_open(&s, &tier, STORE_LOOK, &err), 0, "%s", err.msg);
    cr_assert(!file_is_dir(uri) && s.in.n == 0);
    tier_store_close(&s);
    cr_assert_eq(tier_store_open(&s, &tier, STORE_CHANGE, &err), 0, "%s", err.msg);
    cr_assert(file_is_dir(uri));
    tier_store_close(&s);
    tier.kind = TIER_REDIS;
    cr_assert_eq(tier_store_open(&s, &tier, STORE_CHANGE, &err), ERR_FAIL);
    tier.kind = TIER_FILE;
}
