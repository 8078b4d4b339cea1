/* What everything uses: errors, buffers, numbers, text, JSON, rows. */
#include "base/buf.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/json.h"
#include "base/map.h"
#include "base/parse.h"
#include "base/rng.h"
#include "base/rows.h"
#include "base/utf8.h"

#include <criterion/criterion.h>
#include <math.h>
#include <unistd.h>

Test(err, wraps_in_front_and_keeps_the_code)
{
    struct err e;

    cr_assert_eq(err_set(&e, ERR_IO, "cannot open '%s'", "a"), ERR_IO);
    cr_assert_eq(err_wrap(&e, "layer %d", 3), ERR_IO);
    cr_assert_str_eq(e.msg, "layer 3: cannot open 'a'");
    cr_assert_eq(err_exit_status(ERR_FORMAT), 3);
    cr_assert_eq(err_exit_status(ERR_DEVICE), 5);
    cr_assert_eq(err_exit_status(ERR_LOST), 1);
    cr_assert_eq(err_exit_status(0), 0);
}

Test(parse, sizes)
{
    uint64_t v = 0;

    cr_assert(parse_size("200M", &v) && v == 200ull << 20);
    cr_assert(parse_size("0", &v) && v == 0);
    cr_assert(parse_size("1.5G", &v) && v == 3ull << 29);
    static const char *const two[] = { "2G", "2g", "2GB", "2gb", "2GiB", "2gib", "2.0GB" };
    for (size_t i = 0; i < sizeof(two) / sizeof(*two); i++)
        cr_assert(parse_size(two[i], &v) && v == 2ull << 30, "%s", two[i]);
    static const char *const bad[] = { "",    "M", "-1",    "1.5",         "1Mb/s", "1e9", "1B",
                                       "1iB", "B", "1MiBB", "9999999999T", "1 G",   "0x10" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_assert(!parse_size(bad[i], &v), "%s", bad[i]);
}

Test(parse, counts)
{
    int64_t v = 7;

    static const char *const good[] = { "2000", "2k", "2K", "0.002M", "2.0k" };
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        cr_assert(parse_count(good[i], &v) && v == 2000, "%s", good[i]);
    cr_assert(parse_count("-3", &v) && v == -3);
    static const char *const bad[] = { "", "k", "1.5", "2kk", "2 k", "1.0001k", "2e3k", "2G", "1e300M", "9999999999M" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_assert(!parse_count(bad[i], &v), "%s", bad[i]);
}

Test(parse, times)
{
    double v = 7;

    cr_assert(parse_time("72", 3600, &v) && v == 72);
    cr_assert(parse_time("3d", 3600, &v) && fabs(v - 72) < 1e-9);
    cr_assert(parse_time("90min", 3600, &v) && fabs(v - 1.5) < 1e-9);
    cr_assert(parse_time("500ms", 1, &v) && v == 0.5);
    static const char *const bad[] = { "", "d", "3 d", "3m", "3weeks", "3dd", "3dms" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_assert(!parse_time(bad[i], 1, &v), "%s", bad[i]);
}

Test(parse, fractions_may_be_percentages)
{
    double v = 7;

    cr_assert(parse_fraction("0.25", &v) && v == 0.25);
    cr_assert(parse_fraction("99%", &v) && v == 0.99);
    cr_assert(parse_fraction("-0.5%", &v) && v == -0.005);
    static const char *const bad[] = { "", "%", "5%%", "% 5", "5 %", "x%", "1e400%" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_assert(!parse_fraction(bad[i], &v), "%s", bad[i]);
}

Test(parse, lists)
{
    double at[5];

    cr_assert_eq(parse_list("3", at, 4), 1);
    cr_assert(at[0] == 3);
    cr_assert_eq(parse_list("1,0.5..0.7,-2", at, 5), 5);
    cr_assert_eq(parse_list(" 1, 2..3 ,4", at, 5), 4);
    cr_assert_eq(parse_list("0..3", at, 4), 4);
    cr_assert(at[0] == 0 && at[3] == 3);
    cr_assert_eq(parse_list("0..4", at, 4), -1, "five numbers");
    cr_assert_eq(parse_list("1,2,3,4,5", at, 4), -1);
    for (const char *const *bad = (const char *const[]){ "", "1,", ",1", "1,,2", "x", "1 2", "2..1", "1..2/0", NULL };
         *bad; bad++)
        cr_assert_eq(parse_list(*bad, at, 4), -1, "%s", *bad);
}

Test(parse, seconds)
{
    double s = 7;

    cr_assert(parse_seconds("2", &s) && s == 2);
    cr_assert(parse_seconds("1.5s", &s) && s == 1.5);
    cr_assert(parse_seconds("2ms", &s) && s == 0.002);
    cr_assert(parse_seconds("20us", &s) && s == 2e-5);
    cr_assert(parse_seconds("5ns", &s) && s == 5e-9);
    for (const char *const *bad = (const char *const[]){ "", "s", "ms", "1m", "1 ms", "1mss", "inf", NULL }; *bad;
         bad++)
        cr_assert(!parse_seconds(*bad, &s) && s == 5e-9, "%s", *bad);
}

Test(parse, ranges)
{
    static const struct {
        const char *text;
        int n; // numbers
        double last;
    } good[] = {
        { "0.1..0.9/0.4", 3, 0.9 }, { "0.1..0.9", 9, 0.9 }, { "2..4", 3, 4 },    { "0..1", 2, 1 },
        { "1..1", 1, 1 },           { "0.5..0.5", 1, 0.5 }, { "-1..1/1", 3, 1 }, { "0..0.95/0.3", 4, 0.9 },
    };
    static const char *const bad[] = { "",      "..",     "1",    "1..",   "..2",   "1..2/",
                                       "1../2", "1..2/x", "a..b", "1 ..2", "1....2" };
    struct range r;
    double v = -7;

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        int n = 0;
        cr_assert(parse_range(good[i].text, strlen(good[i].text), &r) && range_is_sound(&r, 16), "%s", good[i].text);
        while (range_number(&r, n, &v))
            n++;
        cr_assert(n == good[i].n && v == good[i].last, "%s: %d, %g", good[i].text, n, v);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_assert(!parse_range(bad[i], strlen(bad[i]), &r), "%s", bad[i]);
    cr_assert(parse_range("0..16", 5, &r) && range_is_sound(&r, 16) && !range_is_sound(&r, 15));
    cr_assert(parse_range("2..1", 4, &r) && !range_is_sound(&r, 16));
    cr_assert(parse_range("1..2/0", 6, &r) && !range_is_sound(&r, 16));
    cr_assert(parse_range("1..2/-1", 7, &r) && !range_is_sound(&r, 16));
}

Test(parse, numbers_are_decimal_and_whole)
{
    int64_t i;
    double d;

    cr_assert(parse_int("-12", &i) && i == -12);
    cr_assert(!parse_int(" 1", &i) && !parse_int("1x", &i) && !parse_int("99999999999999999999", &i));
    cr_assert(parse_real("1e-3", &d) && d == 1e-3);
    cr_assert(!parse_real("nan", &d) && !parse_real("inf", &d) && !parse_real("0x1p3", &d) && !parse_real("", &d));
}

Test(parse, reals_are_written_shortest)
{
    char t[TEXT_SHORT];

    cr_assert_str_eq(text_real(t, 0.3), "0.3");
    cr_assert_str_eq(text_real(t, 0.1 + 0.2), "0.30000000000000004");
    cr_assert_str_eq(text_real(t, (double)NAN), "null");
    cr_assert_str_eq(text_real(t, -0.0), "-0");
}

/* What the C library says: the fewest of 15 to 17 digits that read back. */
static void check_real(double v)
{
    char mine[TEXT_SHORT], theirs[TEXT_SHORT];

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(theirs, sizeof(theirs), "%.*g", digits, v);
        if (strtod(theirs, NULL) == v)
            break;
    }
    cr_assert_str_eq(text_real(mine, v), theirs, "'%s' for %a, not '%s'", mine, v, theirs);
}

Test(parse, reals_are_written_as_printf_does)
{
    struct rng r = rng_new(3);

    for (int e = -30; e < 60; e++) /* powers of two, and their neighbours */
        for (int side = -1; side <= 1; side++)
            check_real(ldexp(1 + side * 0x1p-52, e));
    for (int e = -8; e < 18; e++)
        for (int d = 1; d < 100; d++) { /* d * 10^e, and their neighbours */
            double v = d * pow(10, e);
            check_real(v);
            check_real(nextafter(v, 0));
            check_real(-nextafter(v, (double)INFINITY));
        }
    for (int i = 0; i < 100000; i++) {
        check_real(rng_unit(&r));
        check_real((double)(float)rng_unit(&r));
        check_real(round(rng_unit(&r) * 1e9) / 1e6);
        check_real(ldexp(rng_unit(&r), (int)rng_below(&r, 80) - 30));
    }
}

Test(parse, shards_share_every_row_out_once)
{
    struct shard s = { 1, 1 };

    cr_assert(shard_has(s, 0) && shard_has(s, 7));
    cr_assert(parse_shard("2/3", &s) && s.i == 2 && s.n == 3);
    cr_assert(!shard_has(s, 0) && shard_has(s, 1) && !shard_has(s, 2) && shard_has(s, 4));
    static const char *const bad[] = { "", "1", "/", "0/3", "4/3", "1/0", "-1/2", "1/2/3", "1/ 2", "a/2", "1/" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_assert(!parse_shard(bad[i], &s), "%s", bad[i]);
}

Test(utf8, refuses_what_is_not_well_formed)
{
    struct buf b = { 0 };

    cr_assert(utf8_valid("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10));
    static const char *const bad[] = { "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80", "\xff" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_assert(!utf8_valid(bad[i], strlen(bad[i])));
    utf8_clean(&b, "a\xe2\x82z\xff", 5); /* Python: b"a\xe2\x82z\xff".decode(errors="replace") == "a\ufffdz\ufffd" */
    cr_assert_str_eq(b.at, "a\xef\xbf\xbdz\xef\xbf\xbd");
    buf_release(&b);
}

Test(utf8, counts_characters_wherever_the_ascii_ends)
{
    char text[40] = "";

    for (size_t plain = 0; plain < 20; plain++) {
        memset(text, 'a', sizeof(text));
        memcpy(text + plain, "\xe2\x82\xac", 3);
        cr_assert(utf8_valid(text, plain + 10));
        cr_assert_eq(utf8_count(text, plain + 10), plain + 8);
        text[plain + 1] = 'b'; /* leaves two malformed bytes */
        cr_assert(!utf8_valid(text, plain + 10));
        cr_assert_eq(utf8_count(text, plain + 10), plain + 10);
    }
    cr_assert_eq(utf8_count(text, 0), 0);
    /* what follows the end is not looked at */
    cr_assert_eq(utf8_count("ab\xc3\xa9", 3), 3);
    cr_assert(!utf8_valid("ab\xc3\xa9", 3));
}

/* Keys that collide in one map are chosen in vain for the next. */
Test(map, has_a_seed_of_its_own)
{
    struct map a = { 0 }, b = { 0 };

    cr_assert(map_add(&a, "key", 3, NULL) == 0 && map_add(&b, "key", 3, NULL) == 0);
    cr_assert_neq(a.at[0].hash, b.at[0].hash);
    map_release(&a);
    map_release(&b);
}

/* Space changes nothing that can be seen, whenever it is made. */
Test(map, has_space_for_keys_that_will_come)
{
    struct map m = { 0 };

    for (int i = 0; i < 3000; i++) {
        char key[16];
        size_t n = (size_t)snprintf(key, sizeof(key), "k%d", i);
        if (i % 1000 == 0)
            cr_assert(map_reserve(&m, 1000 + i));
        cr_assert_eq(map_find(&m, key, n), MAP_ABSENT);
        cr_assert_eq(map_add(&m, key, n, NULL), i);
        if (i == 2000)
            cr_assert(map_reserve(&m, 1));
    }
    uint32_t n_slots = m.n_slots;
    cr_assert(map_reserve(&m, 3000) && m.n_slots == n_slots);
    cr_assert_eq(map_find(&m, "k0", 2), 0);
    cr_assert_eq(map_find(&m, "k2999", 5), 2999);
    map_release(&m);
}

Test(map, numbers_keys_in_order_of_arrival)
{
    struct map m = { 0 };
    char key[16];

    for (int i = 0; i < 5000; i++) {
        int n = snprintf(key, sizeof(key), "k%d", i);
        cr_assert_eq(map_add(&m, key, (size_t)n, NULL), i);
    }
    cr_assert_eq(map_find(&m, "k4711", 5), 4711);
    cr_assert_eq(map_find(&m, "nothing", 7), MAP_ABSENT);
    bool added = true;
    cr_assert_eq(map_add(&m, "k3", 2, &added), 3);
    cr_assert(!added);
    map_release(&m);
}

Test(rng, is_the_published_splitmix64)
{
    struct rng r = rng_new(1234567); /* the vector that Java's SplittableRandom and Rosetta Code give */

    cr_assert_eq(rng_next(&r), 6457827717110365317u);
    cr_assert_eq(rng_next(&r), 3203168211198807973u);
    for (int i = 0; i < 1000; i++)
        cr_assert(rng_below(&r, 7) < 7);
}

Test(json, reads_strictly)
{
    struct err e;
    struct json *v = json_parse("{\"a\":1,\"b\":\"x\",\"c\":[1,2],\"d\":1.5}", 33, &e);
    int64_t i;
    const char *s;

    cr_assert(v);
    cr_assert(!json_want_int(v, "a", &i, &e) && i == 1);
    cr_assert(!json_want_text(v, "b", &s, &e));
    cr_assert_eq(json_want_int(v, "d", &i, &e), ERR_FORMAT);
    cr_assert_str_eq(e.msg, "field 'd' is not a whole number");
    cr_assert_eq(json_want_int(v, "z", &i, &e), ERR_FORMAT);
    cr_assert_str_eq(e.msg, "field 'z' is missing");
    json_free(v);
    static const char *const bad[] = { "", "{", "{} {}", "\"a\\u0000b\"", "[1,]x" };
    for (size_t k = 0; k < sizeof(bad) / sizeof(*bad); k++)
        cr_assert(!json_parse(bad[k], strlen(bad[k]), &e), "%s", bad[k]);
    v = json_parse("\"\\\\u0000\"", 9, &e); /* an escaped backslash, no NUL */
    cr_assert(v);
    json_free(v);
}

Test(json, writes_what_it_reads)
{
    struct buf b = { 0 };
    struct json_out w = { .buf = &b };

    json_begin(&w, NULL, '{');
    json_put_text(&w, "a\n", "q\"\\\x01\xff");
    json_begin(&w, "l", '[');
    json_put_int(&w, NULL, -3);
    json_put_real(&w, NULL, (double)NAN);
    json_put_real(&w, NULL, 0.3);
    json_end(&w, ']');
    json_put_bool(&w, "t", true);
    json_end(&w, '}');
    cr_assert_str_eq(b.at, "{\"a\\n\":\"q\\\"\\\\\\u0001\xef\xbf\xbd\",\"l\":[-3,null,0.3],\"t\":true}");
    buf_release(&b);
}

/* How a string must hold one byte. */
static void escape(struct buf *out, char c)
{
    static const char from[] = "\"\\\n\t\r", to[] = "\"\\ntr";
    const char *at = strchr(from, c);

    if (at)
        buf_printf(out, "\\%c", to[at - from]);
    else if (c < 0x20 || c == 0x7f)
        buf_printf(out, "\\u%04x", c);
    else
        buf_addc(out, c);
}

/* Bytes are looked at eight at a time: each that is not plain, at every place, as a text and as a name. */
Test(json, escapes_every_byte_at_every_place)
{
    struct buf b = { 0 }, want = { 0 };

    for (int c = 1; c < 0x80; c++)
        for (size_t at = 0; at < 20; at++) {
            char text[] = "abcdefghijklmnopqrst";
            struct json_out w = { .buf = &b };
            text[at] = (char)c;
            buf_clear(&b);
            buf_clear(&want);
            json_put_text(&w, text, text);
            for (int k = 0; k < 2; k++) {
                buf_adds(&want, k ? ":\"" : "\"");
                for (size_t i = 0; text[i]; i++)
                    escape(&want, text[i]);
                buf_addc(&want, '"');
            }
            cr_assert_str_eq(b.at, want.at);
        }
    buf_clear(&b);
    json_put_text(&(struct json_out){ .buf = &b }, NULL, "12345678\xff");
    cr_assert_str_eq(b.at, "\"12345678\xef\xbf\xbd\"");
    buf_release(&b);
    buf_release(&want);
}

Test(buf, words_are_quoted_as_a_shell_reads_them)
{
    static const char *const word[][2] = { { "-o", "-o" },
                                           { "a/b=c@d,e", "a/b=c@d,e" },
                                           { "", "''" },
                                           { "two words", "'two words'" },
                                           { "it's", "'it'\\''s'" },
                                           { "$x*", "'$x*'" } };
    struct buf b = { 0 };

    for (size_t i = 0; i < sizeof(word) / sizeof(*word); i++) {
        buf_clear(&b);
        buf_add_word(&b, word[i][0]);
        cr_assert_str_eq(buf_str(&b), word[i][1]);
    }
    buf_release(&b);
}

Test(digest, tokens_are_little_endian_int32)
{
    struct err e;
    char hex[DIGEST_HEX];
    int32_t ids[] = { 1, -1 };

    /* hashlib.sha256(struct.pack("<ii", 1, -1)).hexdigest() */
    cr_assert(!digest_tokens(ids, 2, hex, &e));
    cr_assert_str_eq(hex, "b15348c8f462384c01e83b6d499c6faf3f96808f5aa07c6bab4b65b36b4445d4");
}

static void write_rows(const char *path, int n, bool finish)
{
    struct rows_out out;
    struct err e;
    struct rows_made made = { .kind = "contexts", .tool = "test" };

    cr_assert(!rows_create(&out, path, &made, &e));
    for (int i = 0; i < n; i++) {
        struct json_out w = rows_begin(&out);
        json_put_int(&w, "i", i);
        cr_assert(!rows_put(&out, &w, &e));
    }
    if (finish)
        cr_assert(!rows_finish(&out, &e), "%s", e.msg);
    else
        rows_abort(&out);
}

static int count_rows(const char *path, struct err *e)
{
    struct rows_in in;
    struct json *row;
    int n = 0, got;

    cr_assert(!rows_open(&in, path, "contexts", e), "%s", e->msg);
    while ((got = rows_next(&in, &row, e)) == 1) {
        json_free(row);
        n++;
    }
    rows_close(&in);
    return got < 0 ? got : n;
}

Test(rows, come_back_whole_or_not_at_all)
{
    char path[] = "/tmp/evp-rows-XXXXXX";
    struct err e;
    struct buf text = { 0 };

    close(mkstemp(path));
    write_rows(path, 3, true);
    cr_assert_eq(count_rows(path, &e), 3);
    cr_assert(freopen(path, "rb", stdin));
    cr_assert_eq(count_rows("-", &e), 3);
    write_rows(path, 5, false); /* given up: the old file stays */
    cr_assert_eq(count_rows(path, &e), 3);
    cr_assert(!file_read(&text, path, 1 << 20, &e));
    cr_assert(!file_write(path, text.at, text.n - 22, &e)); /* without its end line */
    cr_assert_eq(count_rows(path, &e), ERR_FORMAT);
    cr_assert(strstr(e.msg, "was cut: it has no end line after its 3 rows"), "%s", e.msg);
    buf_release(&text);
    unlink(path);
}

/* Adds a row that takes n bytes with its line's end. */
static void add_row(struct buf *text, size_t n)
{
    buf_adds(text, "{\"a\":\"");
    for (size_t i = sizeof("{\"a\":\"\"}"); i < n; i++)
        buf_addc(text, 'x');
    buf_adds(text, "\"}\n");
}

/* Reads rows of these lengths; the last one may lack its line's end. */
static void expect_rows(const struct buf *text, const size_t *length, size_t n)
{
    struct rows_bytes bytes = { "rows", text->at, text->n };
    char path[] = "/tmp/evp-rows-XXXXXX", got[DIGEST_HEX], want[DIGEST_HEX];
    struct rows_in in;
    struct json *row;
    struct err e;
    struct digest *d = digest_new(&e);

    close(mkstemp(path));
    cr_assert(!file_write(path, bytes.at, bytes.n, &e) && !rows_open_hashed(&in, path, "contexts", d, &e));
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(rows_next(&in, &row, &e), 1);
        cr_assert_eq(strlen(json_text(json_get(row, "a"))) + sizeof("{\"a\":\"\"}"), length[i]);
        json_free(row);
    }
    cr_assert_eq(rows_next(&in, &row, &e), 0);
    rows_close(&in);
    digest_end(d, got);
    cr_assert(!digest_sha256(bytes.at, bytes.n, want, &e));
    cr_assert_str_eq(got, want);
    unlink(path);
}

/* Lines are read in pieces of 4096 bytes and more: some end just before a piece does, with it, and after it. */
Test(rows, of_any_length_are_read_to_their_last_byte)
{
    static const size_t length[] = { 4095, 4096,  10,    4097,  8190,  8191, 8192, 8193,
                                     11,   16383, 16384, 16385, 70000, 4094, 12 };
    enum { N = sizeof(length) / sizeof(*length) };

    for (size_t first = 0; first < N; first++) {
        struct buf text = { 0 };
        for (size_t i = first; i < N; i++)
            add_row(&text, length[i]);
        expect_rows(&text, length + first, N - first);
        buf_release(&text);
        add_row(&text, length[first]);
        text.n--;
        expect_rows(&text, length + first, 1);
        buf_release(&text);
    }
}

/* A NUL ends neither a line nor what is digested of it. */
Test(rows, with_a_nul_are_refused)
{
    static const char *const line[] = { "{\"a\":1}", "{\"a\":1}\n", "\n" };

    for (size_t i = 0; i < 3; i++) {
        struct buf text = { 0 };
        struct rows_in in;
        struct err e;
        buf_adds(&text, line[i]);
        buf_add(&text, "\0\n{}\n", 5);
        const struct rows_bytes bytes = { "rows", text.at, text.n };
        int code = rows_open_bytes(&in, &bytes, "contexts", &e);
        struct json *row = NULL;
        if (!code && i == 1) {
            cr_assert_eq(rows_next(&in, &row, &e), 1);
            json_free(row);
        }
        if (!code) {
            code = rows_next(&in, &row, &e);
            rows_close(&in);
        }
        cr_assert_eq(code, ERR_FORMAT, "%zu", i);
        cr_assert(strstr(e.msg, i ? "rows line 2" : "rows line 1"), "%s", e.msg);
        buf_release(&text);
    }
}
