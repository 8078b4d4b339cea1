/* The published index: every record found, and nothing else; damage anywhere; readers beside a writer.
 */
#include "base/rng.h"
#include "loader/store/index.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/evp-unit-XXXXXX";
static int folder;

static void make_dir(void)
{
    cr_assert_not_null(mkdtemp(dir));
    folder = open(dir, O_RDONLY | O_DIRECTORY);
    cr_assert_geq(folder, 0);
}

static void remove_dir(void)
{
    unlinkat(folder, "evp-index", 0);
    unlinkat(folder, "evp-index.new", 0);
    close(folder);
    rmdir(dir);
}

TestSuite(index, .init = make_dir, .fini = remove_dir);

static const char *const spaces[] = { "model", "tenant" }, *const configs[] = { "none", "kivi:bits=2", "x" };

/* Records with few different prefixes and tails, so that many are neighbours. */
static struct index_record make_record(struct rng *r, int i)
{
    struct index_record record = { .n_tokens = (uint32_t)i + 1, .size = (uint64_t)i, .config = (uint16_t)(i % 3) };

    record.key.name_space[1] = (uint8_t)(i % 2);
    record.key.prefix[0] = (uint8_t)rng_below(r, 9);
    record.key.prefix[15] = (uint8_t)rng_below(r, 3);
    record.key.tail[1] = (uint8_t)rng_below(r, 5);
    if (record.key.tail[1] == 4) { /* a part of a context */
        record.key.tail[0] = 1;
        record.key.tail[1] = 0;
    }
    for (int k = 0; k < 32; k++)
        record.key.digest[k] = (uint8_t)rng_below(r, 256);
    record.order = (uint32_t)i;
    return record;
}

static int by_order(const void *a, const void *b)
{
    return index_compare(a, b);
}

/* Sorts the records, and writes them. */
static int write_as(struct index_record *record, size_t n, uint64_t generation, struct err *err)
{
    struct index_made made = { .store = "a store's 16 by",
                               .generation = generation,
                               .name_space = spaces,
                               .n_name_spaces = 2,
                               .config = configs,
                               .n_configs = 3,
                               .record = record,
                               .n = n };
    struct index written;

    qsort(record, n, sizeof(*record), by_order);
    int code = index_write(&written, folder, &made, err);
    if (!code && (written.n != n || !index_is_of(&written, made.store, generation)))
        code = err_set(err, ERR_FAIL, "it is not what was written");
    index_close(&written);
    return code;
}

static void write_records(struct index_record *record, size_t n)
{
    struct err err;

    cr_assert_eq(write_as(record, n, 7, &err), 0, "%s", err.msg);
}

static struct index opened(void)
{
    struct index ix;
    struct err err;

    cr_assert_eq(index_open(&ix, folder, &err), 0, "%s", err.msg);
    return ix;
}

/* The keys of all records, and of the neighbour of each, are looked up. */
static void check_found(const struct index_record *record, size_t n)
{
    struct index ix = opened();
    struct index_key key;
    size_t n_parts = 0;

    for (size_t i = 0; i < n; i++)
        n_parts += index_is_part(&record[i].key);
    cr_assert(ix.n == n && ix.n_parts == n_parts);
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(memcmp(&ix.record[i], &record[i], sizeof(*record)), 0, "record %zu of %zu", i, n);
        cr_assert_eq(index_seek(&ix, &record[i].key), ix.record + i);
        cr_assert_eq(index_seek_object(&ix, &record[i].key, record[i].object), ix.record + i);
        key = record[i].key; /* the key after this one is that of the next record */
        for (int k = 31; k >= 0 && ++key.digest[k] == 0; k--)
            ;
        cr_assert_eq(index_from(&ix, &key), ix.record + i + 1);
        cr_assert(!index_seek(&ix, &key) || memcmp(&key, &record[i + 1].key, sizeof(key)) == 0);
    }
    memset(&key, 0, sizeof(key));
    cr_assert_eq(index_from(&ix, &key), ix.record);
    memset(&key, 255, sizeof(key));
    cr_assert(index_from(&ix, &key) == ix.record + n && !index_seek(&ix, &key));
    cr_assert(index_name_space(&ix, "tenant") == 1 && index_name_space(&ix, "nobody") == -1);
    index_close(&ix);
}

Test(index, finds_every_record_and_nothing_else)
{
    static const size_t count[] = { 0, 1, 2, 3, 85, 5000 };
    struct rng r = rng_new(5);

    for (int i = 0; i < 6; i++) {
        struct index_record *record = calloc(count[i] + 1, sizeof(*record));
        for (size_t k = 0; k < count[i]; k++)
            record[k] = make_record(&r, (int)k);
        write_records(record, count[i]);
        check_found(record, count[i]);
        free(record);
    }
}

/* Of many records of one key the newest is found; an object's is found, too. */
Test(index, finds_the_newest_record_of_a_key)
{
    enum { N = 200, SAME = 100 };
    struct rng r = rng_new(6);
    struct index_record record[N];

    for (int i = 0; i < N; i++) {
        record[i] = make_record(&r, i < SAME ? 0 : i);
        record[i].key = i < SAME ? record[0].key : record[i].key;
        record[i].order = (uint32_t)i * 17 % SAME;
        record[i].object[3] = (uint8_t)record[i].order;
    }
    const struct index_key key = record[0].key;
    write_records(record, N);
    struct index ix = opened();
    const struct index_record *newest = index_seek(&ix, &key);
    for (uint32_t i = 0; i < SAME; i++) {
        uint8_t object[INDEX_ID] = { 0 };
        object[3] = (uint8_t)i;
        cr_assert_eq(newest[i].order, SAME - 1 - i);
        cr_assert_eq(index_seek_object(&ix, &key, object)->order, i);
    }
    cr_assert_null(index_seek_object(&ix, &key, (uint8_t[INDEX_ID]){ 1 }));
    index_close(&ix);
}

static void expect_damage(const char *what, long at)
{
    struct index ix;
    struct err err;

    cr_assert_eq(index_open(&ix, folder, &err), ERR_FORMAT, "%s %ld", what, at);
    index_close(&ix);
}

/* One bit flipped anywhere, or the file cut anywhere, is an error. */
Test(index, damage_is_an_error)
{
    enum { N = 100 };
    struct rng r = rng_new(8);
    struct index_record record[N];
    static uint8_t bytes[1 << 16];

    for (int i = 0; i < N; i++)
        record[i] = make_record(&r, i);
    write_records(record, N);
    int fd = openat(folder, "evp-index", O_RDWR);
    ssize_t n = read(fd, bytes, sizeof(bytes));
    cr_assert_gt(n, 0);
    for (ssize_t at = 0; at < n; at += 1 + (ssize_t)rng_below(&r, 7)) {
        uint8_t flipped = (uint8_t)(bytes[at] ^ 1U << rng_below(&r, 8));
        cr_assert_eq(pwrite(fd, &flipped, 1, at), 1);
        expect_damage("byte", at);
        cr_assert_eq(pwrite(fd, &bytes[at], 1, at), 1);
    }
    cr_assert_eq(pwrite(fd, "x", 1, n), 1);
    expect_damage("longer by", 1);
    for (ssize_t cut = n - 1; cut >= 0; cut -= 1 + (ssize_t)rng_below(&r, 99)) {
        cr_assert_eq(ftruncate(fd, cut), 0);
        expect_damage("cut at", cut);
    }
    close(fd);
}

/* Bytes whose checksum is right, and which no writer writes. */
Test(index, lies_are_an_error)
{
    static uint8_t bytes[1 << 14];
    struct index_record record[3];
    struct rng r = rng_new(9);

    for (int i = 0; i < 3; i++)
        record[i] = make_record(&r, i);
    write_records(record, 3);
    int fd = openat(folder, "evp-index", O_RDWR);
    ssize_t n = read(fd, bytes, sizeof(bytes));
    for (int lie = 0; lie < 6; lie++) {
        static uint8_t copy[sizeof(bytes)];
        memcpy(copy, bytes, sizeof(bytes));
        struct index_header h;
        struct index_record *last = (struct index_record *)(void *)(copy + n) - 1;
        memcpy(&h, copy, sizeof(h));
        h.version += lie == 0;
        h.n_records += lie == 1;
        h.n_configs = lie == 2 ? UINT32_MAX : h.n_configs;
        if (lie == 3)
            last->config = 3;
        else if (lie == 4)
            last[0] = last[-1];
        else if (lie == 5)
            memset(copy + sizeof(h), 'x', INDEX_TEXT);
        memcpy(copy, &h, sizeof(h));
        h.checksum = digest_xxh3(copy + offsetof(struct index_header, version),
                                 (size_t)n - offsetof(struct index_header, version));
        memcpy(copy, &h, sizeof(h));
        cr_assert_eq(pwrite(fd, copy, (size_t)n, 0), n);
        expect_damage("lie", lie);
    }
    close(fd);
}

/* A writer replaces the index again and again, and is killed; whoever opens it meanwhile has all of one moment. */
Test(index, readers_see_one_moment, .timeout = 60)
{
    enum { N = 2000 };
    static struct index_record record[N];
    struct rng r = rng_new(13);
    struct err err;

    for (int i = 0; i < N; i++)
        record[i] = make_record(&r, i);
    write_records(record, N);
    for (int kill_after = 1; kill_after <= 64; kill_after *= 2) {
        pid_t child = fork();
        for (uint64_t g = 8; child == 0; g++) {
            record[g % N] = make_record(&r, (int)g + N);
            if (write_as(record, N, g, &err))
                _exit(1);
        }
        for (int i = 0; i < 20 * kill_after; i++) {
            struct index ix = opened();
            cr_assert_eq(ix.n, N);
            index_close(&ix);
        }
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        write_records(record, N); /* the next writer */
        check_found(record, N);
    }
}

/* ---- keys ---------------------------------------------------------------------------- */

/* A context's prefix covers its whole chunks: n tokens less the rest of a division by 256. */
Test(index, prefixes_end_at_chunks)
{
    static int32_t ids[600];
    char hex[DIGEST_HEX];
    uint8_t prefix[INDEX_ID], want[INDEX_ID], none[INDEX_ID] = { 0 };
    struct err err;

    for (int i = 0; i < 600; i++)
        ids[i] = i * 31;
    for (int n = 1; n <= 600; n++) {
        cr_assert_eq(index_prefix(ids, n, prefix, &err), 0);
        cr_assert_eq(digest_tokens(ids, n / 256 * 256, hex, &err), 0);
        digest_from_hex(hex, want, INDEX_ID);
        cr_assert_eq(memcmp(prefix, n < 256 ? none : want, INDEX_ID), 0, "%d tokens", n);
    }
}
