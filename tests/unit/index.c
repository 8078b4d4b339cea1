/* The published index: every record found, and nothing else, at numbers of records around the blocks; damage anywhere.
 */
#include "base/rng.h"
#include "loader/index/index.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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
    for (int k = 0; k < 32; k++)
        record.key.digest[k] = (uint8_t)rng_below(r, 256);
    record.order = (uint32_t)i;
    return record;
}

static void write_records(struct index_record *record, size_t n)
{
    struct index_made made = { .store = "a store's 16 by",
                               .generation = 7,
                               .name_space = spaces,
                               .n_name_spaces = 2,
                               .config = configs,
                               .n_configs = 3,
                               .record = record,
                               .n = n };
    struct err err;

    cr_assert_eq(index_write(folder, &made, &err), 0, "%s", err.msg);
}

static void check_found(const struct index_record *record, size_t n)
{
    struct index ix;
    struct index_record r;
    struct index_key key;
    struct err err;

    cr_assert_eq(index_open(&ix, folder, &err), 0, "%s", err.msg);
    cr_assert(ix.n == n && index_check(&ix, &err) == 0, "%s", err.msg);
    for (size_t i = 0; i < n; i++) {
        cr_assert(index_may_have(&ix, &record[i].key));
        cr_assert_eq(index_seek(&ix, &record[i].key, &r, &err), 1);
        cr_assert_eq(memcmp(&r, &record[i], offsetof(struct index_record, order)), 0, "record %zu of %zu", i, n);
        key = record[i].key; /* the key after this one is that of the next record */
        for (int k = 31; k >= 0 && ++key.digest[k] == 0; k--)
            ;
        int got = index_seek(&ix, &key, &r, &err);
        cr_assert_eq(got, i + 1 < n);
        cr_assert(!got || memcmp(&r.key, &record[i + 1].key, sizeof(key)) == 0);
    }
    memset(&key, 0, sizeof(key));
    cr_assert_eq(index_seek(&ix, &key, &r, &err), n > 0);
    cr_assert(n == 0 || memcmp(&r.key, &record[0].key, sizeof(key)) == 0);
    memset(&key, 255, sizeof(key));
    cr_assert_eq(index_seek(&ix, &key, &r, &err), 0);
    cr_assert(index_name_space(&ix, "tenant") == 1 && index_name_space(&ix, "nobody") == -1);
    index_close(&ix);
}

Test(index, finds_every_record_and_nothing_else)
{
    static const size_t count[] = { 0, 1, 2, 41, 42, 43, 84, 85, 1000, 5000 };
    struct rng r = rng_new(5);

    for (int i = 0; i < 10; i++) {
        struct index_record *record = calloc(count[i] + 1, sizeof(*record));
        for (size_t k = 0; k < count[i]; k++)
            record[k] = make_record(&r, (int)k);
        write_records(record, count[i]);
        check_found(record, count[i]); /* index_write() has sorted them */
        free(record);
    }
}

Test(index, keeps_the_newest_record_of_a_key)
{
    struct rng r = rng_new(6);
    struct index_record record[3];
    struct index ix;
    struct index_record got;
    struct err err;

    record[0] = record[1] = record[2] = make_record(&r, 0);
    for (uint32_t i = 0; i < 3; i++) {
        record[i].size = i;
        record[i].order = i == 1 ? 9 : i;
    }
    write_records(record, 3);
    cr_assert_eq(index_open(&ix, folder, &err), 0);
    cr_assert(ix.n == 1 && index_at(&ix, 0, &got, &err) == 0 && got.size == 1 && got.order == 0);
    index_close(&ix);
}

/* What a filter lets through without need costs a read: few of the prefixes that the index lacks. */
Test(index, its_filter_is_sharp)
{
    struct rng r = rng_new(7);
    struct index_record *record = calloc(3000, sizeof(*record));
    struct index ix;
    struct err err;
    int through = 0;

    for (int i = 0; i < 3000; i++) {
        record[i] = make_record(&r, i);
        for (int k = 0; k < INDEX_ID; k++)
            record[i].key.prefix[k] = (uint8_t)rng_below(&r, 256);
    }
    write_records(record, 3000);
    cr_assert_eq(index_open(&ix, folder, &err), 0);
    for (int i = 0; i < 10000; i++) {
        struct index_key key = record[0].key;
        for (int k = 0; k < INDEX_ID; k++)
            key.prefix[k] = (uint8_t)rng_below(&r, 256);
        through += index_may_have(&ix, &key);
    }
    cr_assert_lt(through, 500);
    index_close(&ix);
    free(record);
}

/* One bit flipped anywhere, or the file cut anywhere, is an error; never another record. */
Test(index, damage_is_an_error)
{
    enum { N = 100 };
    struct rng r = rng_new(8);
    struct index_record record[N], got;
    struct index ix;
    struct err err;
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
        bool good = !index_open(&ix, folder, &err) && !index_check(&ix, &err);
        for (int i = 0; ix.n == N && i < N; i += 9) { /* a search finds what was there, or fails */
            int found = index_seek(&ix, &record[i].key, &got, &err);
            cr_assert(found < 0 ||
                      (found == 1 && memcmp(&got, &record[i], offsetof(struct index_record, order)) == 0) || !good);
        }
        bool in_hole = (at >= 80 && at < 4096) || bytes[at] == 0; /* bytes that mean nothing */
        cr_assert(!good || in_hole, "byte %zd", at);
        index_close(&ix);
        cr_assert_eq(pwrite(fd, &bytes[at], 1, at), 1);
    }
    for (ssize_t cut = n - 1; cut >= 0; cut -= 1 + (ssize_t)rng_below(&r, 99)) {
        cr_assert_eq(ftruncate(fd, cut), 0);
        cr_assert_eq(index_open(&ix, folder, &err), ERR_FORMAT, "cut at %zd", cut);
        index_close(&ix);
    }
    close(fd);
}

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
