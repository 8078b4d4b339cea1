/* The published index: every record found, and nothing else, at numbers of records around the blocks and after any
 * changes; damage anywhere; readers beside a writer.
 */
#include "base/rng.h"
#include "loader/index/folder.h"
#include "loader/index/index_internal.h"

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

static int remove_file(void *arg, const char *file, struct err *err)
{
    (void)arg;
    (void)err;
    unlinkat(folder, file, 0);
    return 0;
}

static void remove_dir(void)
{
    struct err err;

    cr_assert_eq(folder_each_file(folder, remove_file, NULL, &err), 0);
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

static struct index_made made_of(struct index_record *record, size_t n, uint64_t generation)
{
    return (struct index_made){ .store = "a store's 16 by",
                                .generation = generation,
                                .name_space = spaces,
                                .n_name_spaces = 2,
                                .config = configs,
                                .n_configs = 3,
                                .record = record,
                                .n = n };
}

static void write_records(struct index_record *record, size_t n)
{
    struct index_made made = made_of(record, n, 7);
    struct err err;

    cr_assert_eq(index_write(folder, &made, &err), 0, "%s", err.msg);
}

static struct index opened(void)
{
    struct index ix;
    struct err err;

    cr_assert_eq(index_open(&ix, folder, &err), 0, "%s", err.msg);
    cr_assert_eq(index_check(&ix, &err), 0, "%s", err.msg);
    return ix;
}

static void check_walk(const struct index *ix, const struct index_record *record, size_t n)
{
    struct index_record r;
    struct err err;
    struct index_walk *w = index_walk_new(ix, &err);

    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(index_walk_next(w, &r, &err), 1);
        cr_assert_eq(memcmp(&r, &record[i], sizeof(r)), 0, "record %zu of %zu", i, n);
    }
    cr_assert_eq(index_walk_next(w, &r, &err), 0);
    index_walk_free(w);
}

/* The keys of all records, and of the neighbour of each, are looked up. */
static void check_found(const struct index_record *record, size_t n)
{
    struct index ix = opened();
    struct index_record r;
    struct index_key key;
    struct err err;

    size_t n_parts = 0;
    for (size_t i = 0; i < n; i++)
        n_parts += index_is_part(&record[i].key);
    cr_assert(ix.n == n && ix.n_parts == n_parts);
    check_walk(&ix, record, n);
    for (size_t i = 0; i < n; i++) {
        cr_assert(index_may_have(&ix, &record[i].key));
        cr_assert_eq(index_seek(&ix, &record[i].key, &r, &err), 1);
        cr_assert_eq(memcmp(&r, &record[i], sizeof(r)), 0, "record %zu of %zu", i, n);
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
    static const size_t count[] = { 0, 1, 2, 41, 42, 43, 84, 85, INDEX_SMALL, 5000 };
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

/* More records of one key than a block has: the newest is found, and after it has gone the next one. */
Test(index, finds_the_newest_record_of_a_key)
{
    enum { N = 200 };
    struct rng r = rng_new(6);
    struct index_record record[N], got, gone;
    struct err err;

    for (uint32_t i = 0; i < N; i++) {
        record[i] = make_record(&r, i < 100 ? 0 : (int)i);
        record[i].key = i < 100 ? record[0].key : record[i].key;
        record[i].order = i * 17 % 100;
    }
    gone = record[0];
    write_records(record, N);
    for (int left = 99; left >= 0; left--) {
        struct index ix = opened();
        cr_assert(index_seek(&ix, &gone.key, &got, &err) == 1 && got.order == (uint32_t)left);
        cr_assert_eq(ix.n, (size_t)left + 101);
        gone.order = (uint32_t)left;
        gone.flags = INDEX_GONE;
        struct index_made change = made_of(&gone, 1, 8);
        cr_assert_eq(index_change(folder, &ix, &change, &err), 0, "%s", err.msg);
        index_close(&ix);
    }
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
            cr_assert(found < 0 || (found == 1 && memcmp(&got, &record[i], sizeof(got)) == 0) || !good);
        }
        bool in_hole =
            (at >= (ssize_t)sizeof(struct index_header) && at < 4096) || bytes[at] == 0; /* bytes that mean nothing */
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

/* ---- changes ------------------------------------------------------------------------- */

/* What an index should have, in order. */
struct model {
    struct index_record at[20000];
    size_t n;
};

static int by_order(const void *a, const void *b)
{
    return index_compare(a, b);
}

/* Adds and removes up to `n` records of a model and of the folder's index. */
static void change(struct model *m, struct rng *r, size_t n, uint64_t generation)
{
    struct index_record changes[3000];
    size_t before = m->n, n_changes = 0;
    struct index ix = opened();
    struct err err;

    for (size_t i = 0; i < n; i++) {
        bool remove = before && rng_below(r, 3) == 0;
        size_t k = remove ? rng_below(r, before) : m->n;
        if (remove && (m->at[k].flags & INDEX_GONE))
            continue;
        if (remove)
            m->at[k].flags = INDEX_GONE;
        else
            m->at[m->n++] = make_record(r, (int)rng_below(r, 1 << 20));
        changes[n_changes++] = m->at[k];
    }
    struct index_made made = made_of(changes, n_changes, generation);
    cr_assert_eq(index_change(folder, &ix, &made, &err), 0, "%s", err.msg);
    index_close(&ix);
    n_changes = m->n;
    m->n = 0;
    for (size_t i = 0; i < n_changes; i++)
        if (!index_gone(&m->at[i]))
            m->at[m->n++] = m->at[i];
    qsort(m->at, m->n, sizeof(*m->at), by_order);
}

static int count_bases(void *arg, const char *file, struct err *err)
{
    int *n = arg;

    (void)err;
    *n += strncmp(file, "evp-base-", 9) == 0;
    return 0;
}

Test(index, is_what_was_changed)
{
    static struct model m;
    static const size_t size[] = { 0, 1, 1, 5, 300, 1, 2000, 1, 1, 30, 0, 1500, 1, 500, 1, 2, 2500 };
    struct rng r = rng_new(9);
    struct err err;

    write_records(m.at, 0);
    for (int i = 0; i < 170; i++) {
        int bases = 0;
        change(&m, &r, m.n > 3000 && size[i % 17] > 1000 ? 1 : size[i % 17], (uint64_t)i);
        if (i % 10 == 0 || i < 20)
            check_found(m.at, m.n);
        cr_assert(!folder_each_file(folder, count_bases, &bases, &err) && bases == (m.n > INDEX_SMALL));
    }
}

/* A record that comes and goes, removal of what is not there, and the same change twice. */
Test(index, changes_twice_over_count_once)
{
    static struct index_record record[3000];
    struct rng r = rng_new(10);
    struct err err;

    for (int i = 0; i < 3000; i++)
        record[i] = make_record(&r, i);
    qsort(record, 3000, sizeof(*record), by_order);
    write_records(record, 2990);
    for (int round = 0; round < 6; round++) {
        struct index_record some[] = { record[5], record[2995], record[2995], record[2999], record[7] };
        bool away = round % 2;
        some[0].flags = away ? 0 : INDEX_GONE;
        some[1].flags = INDEX_GONE; /* wins over the same record gone */
        some[2].flags = 0;
        some[3].flags = INDEX_GONE;
        struct index ix = opened();
        struct index_made made = made_of(some, 5, 8);
        cr_assert_eq(index_change(folder, &ix, &made, &err), 0, "%s", err.msg);
        index_close(&ix);
        ix = opened();
        cr_assert(ix.base && ix.n == (away ? 2991 : 2990) && ix.top->n == (away ? 1 : 2));
        index_close(&ix);
    }
}

/* The file of a delta stays small, and deltas together cost less than a few times their base. */
Test(index, a_change_costs_what_has_changed)
{
    enum { N = 100000 };
    struct index_record *record = calloc(N, sizeof(*record));
    struct rng r = rng_new(11);
    struct err err;
    int merged = 0;
    uint64_t base = 0;

    for (int i = 0; i < N; i++)
        record[i] = make_record(&r, i);
    write_records(record, N);
    for (int i = 0; i < 2000; i++) {
        struct index_record one = make_record(&r, N + i);
        struct index_made made = made_of(&one, 1, 8);
        struct index ix;
        cr_assert_eq(index_open(&ix, folder, &err), 0, "%s", err.msg);
        cr_assert_lt(ix.top->stat.st_size, 200000);
        cr_assert_eq(ix.n, (size_t)(N + i));
        merged += base && ix.top->header.base != base;
        base = ix.top->header.base;
        cr_assert_eq(index_change(folder, &ix, &made, &err), 0, "%s", err.msg);
        index_close(&ix);
    }
    cr_assert_eq(merged, 2); /* after the square root of 8 * N of them */
    free(record);
}

/* Of many changes at once no delta is kept: writing one takes the memory of its records. */
Test(index, a_large_delta_is_merged)
{
    enum { N = 4000, MORE = 600 };
    struct index_record *record = calloc(N + 2 * MORE, sizeof(*record));
    struct rng r = rng_new(13);
    struct err err;

    for (int i = 0; i < N + 2 * MORE; i++)
        record[i] = make_record(&r, i);
    write_records(record, N);
    for (int i = 1; i <= 2; i++) {
        struct index ix = opened();
        struct index_made made = made_of(record + N + (i - 1) * MORE, MORE, 8);
        cr_assert_eq(index_change(folder, &ix, &made, &err), 0, "%s", err.msg);
        index_close(&ix);
        ix = opened();
        cr_assert(ix.n == (size_t)(N + i * MORE) && ix.top->n == (i == 1 ? MORE : 0));
        index_close(&ix);
    }
    free(record);
}

/* Damage of a delta, of its base, and of what ties them to each other. */
Test(index, a_delta_without_its_base_is_an_error)
{
    static struct index_record record[2000];
    char name[INDEX_BASE_NAME];
    struct rng r = rng_new(12);
    struct index ix;
    struct err err;
    uint8_t byte;

    for (int i = 0; i < 2000; i++)
        record[i] = make_record(&r, i);
    write_records(record, 2000);
    ix = opened();
    struct index_made made = made_of(record, 1, 8);
    record[0].flags = INDEX_GONE;
    cr_assert_eq(index_change(folder, &ix, &made, &err), 0, "%s", err.msg);
    index_close(&ix);
    ix = opened();
    index_base_name(ix.top->header.base, name);
    cr_assert_eq(ix.n, 1999);
    const struct index_header h = ix.base->header;
    index_close(&ix);
    int fd = openat(folder, name, O_RDWR);
    for (off_t at = 0; at < 60000; at += 997) {
        cr_assert(pread(fd, &byte, 1, at) == 1);
        byte ^= 16;
        cr_assert(pwrite(fd, &byte, 1, at) == 1);
        bool good = !index_open(&ix, folder, &err) && !index_check(&ix, &err);
        bool in_hole = (at >= (off_t)sizeof(h) && at < INDEX_BLOCK) ||
                       (at >= (off_t)(INDEX_BLOCK + index_tables(&h)) && at < (off_t)index_records_at(&h));
        cr_assert(!good || in_hole, "byte %lld", (long long)at);
        index_close(&ix);
        byte ^= 16;
        cr_assert(pwrite(fd, &byte, 1, at) == 1);
    }
    close(fd);
    cr_assert_eq(renameat(folder, name, folder, "away"), 0);
    cr_assert_eq(index_open(&ix, folder, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "its base is missing"), "%s", err.msg);
    index_close(&ix);
    cr_assert_eq(linkat(folder, "evp-index", folder, name, 0), 0);
    cr_assert_eq(index_open(&ix, folder, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "its base is another one"), "%s", err.msg);
    index_close(&ix);
}

/* A writer that adds as many records as it removes, and merges often, until it is killed. */
static void change_for_ever(struct model *m, struct rng *r)
{
    struct err err;

    for (uint64_t g = 2;; g++) {
        struct index_record pair[600];
        struct index ix;
        if (index_open(&ix, folder, &err))
            _exit(1);
        for (int i = 0; i < 600; i++) {
            pair[i] = i % 2 ? make_record(r, (int)g * 1000 + i) : m->at[i];
            pair[i].flags = i % 2 ? 0 : INDEX_GONE;
        }
        for (int i = 0; i < 600; i += 2)
            m->at[i] = pair[i + 1];
        struct index_made made = made_of(pair, 600, g);
        if (index_change(folder, &ix, &made, &err))
            _exit(1);
        index_close(&ix);
    }
}

/* A writer merges again and again, and is killed; whoever opens the index meanwhile has all of one moment. */
Test(index, readers_see_one_moment, .timeout = 60)
{
    static struct model m;
    struct rng r = rng_new(13);
    struct err err;

    write_records(m.at, 0);
    change(&m, &r, 2500, 1);
    size_t n = m.n;
    for (int kill_after = 1; kill_after <= 64; kill_after *= 2) {
        pid_t child = fork();
        if (child == 0)
            change_for_ever(&m, &r);
        for (int i = 0; i < 20 * kill_after; i++) {
            struct index ix = opened();
            cr_assert_eq(ix.n, n);
            index_close(&ix);
        }
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        struct index ix = opened(); /* the next writer */
        struct index_made made = made_of(m.at, 0, 9);
        cr_assert_eq(index_change(folder, &ix, &made, &err), 0, "%s", err.msg);
        index_close(&ix);
        write_records(m.at, m.n);
        int bases = 0;
        cr_assert(!folder_each_file(folder, count_bases, &bases, &err) && bases == 1);
    }
}

/* Version 2 had no bases and no orders. */
Test(index, version_2_is_read)
{
    struct rng r = rng_new(14);
    struct index_record record[100];
    struct index_header h;

    for (int i = 0; i < 100; i++) {
        record[i] = make_record(&r, i);
        record[i].order = 0;
    }
    write_records(record, 100);
    int fd = openat(folder, "evp-index", O_RDWR);
    cr_assert_eq(pread(fd, &h, sizeof(h), 0), sizeof(h));
    h.version = INDEX_VERSION_2;
    h.base = digest_xxh3(&h, offsetof(struct index_header, base));
    h.n_gone = h.written = h.checksum = 0;
    cr_assert_eq(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
    close(fd);
    check_found(record, 100);
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
