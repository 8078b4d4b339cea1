/* The limits of base/ that an input can reach: just below, at, and just above each. */
#include "base/digest.h"
#include "base/json.h"
#include "base/map.h"
#include "base/parse.h"
#include "base/rows.h"
#include "base/safetensors.h"
#include "base/utf8.h"

#include <criterion/criterion.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- numbers ------------------------------------------------------------ */

Test(limits, whole_numbers_have_64_bits)
{
    int64_t v = 1;

    cr_assert(parse_int("9223372036854775806", &v) && v == INT64_MAX - 1);
    cr_assert(parse_int("9223372036854775807", &v) && v == INT64_MAX);
    cr_assert(!parse_int("9223372036854775808", &v));
    cr_assert(parse_int("-9223372036854775807", &v) && v == -INT64_MAX);
    cr_assert(parse_int("-9223372036854775808", &v) && v == INT64_MIN);
    cr_assert(!parse_int("-9223372036854775809", &v));
    cr_assert_eq(v, INT64_MIN, "a refused number changes nothing");
}

Test(limits, reals_are_finite)
{
    double v = 1;

    cr_assert(parse_real("1.7976931348623157e308", &v) && v == DBL_MAX);
    cr_assert(parse_real("-1.7976931348623157e308", &v) && v == -DBL_MAX);
    cr_assert(!parse_real("1.7976931348623159e308", &v) && !parse_real("-1e309", &v));
    cr_assert_eq(v, -DBL_MAX);
}

Test(limits, sizes_are_below_2_to_63)
{
    uint64_t v = 1;

    cr_assert(parse_size("9223372036854775806", &v) && v == INT64_MAX - 1);
    cr_assert(parse_size("9223372036854775807", &v) && v == INT64_MAX);
    cr_assert(!parse_size("9223372036854775808", &v));
    cr_assert(parse_size("8388607T", &v) && v == 8388607ull << 40);
    cr_assert(!parse_size("8388608T", &v));
    cr_assert(parse_size("4194303.5T", &v) && v == (4194303ull << 40) + (1ull << 39));
    cr_assert(parse_size("4194304.0T", &v) && v == 1ull << 62);
    cr_assert(!parse_size("4194304.5T", &v), "fractions end at 2^62");
}

/* The text of a number may have TEXT_SHORT - 1 characters. */
Test(limits, texts_of_sizes_and_shares_are_short)
{
    static const char zeros[] = "0000000000000000000000000000000000000007";
    const char *end = zeros + sizeof(zeros) - 1;
    char share[64];
    uint64_t size = 0;
    struct shard shard;

    cr_assert(parse_size(end - (TEXT_SHORT - 2), &size) && size == 7);
    cr_assert(parse_size(end - (TEXT_SHORT - 1), &size) && size == 7);
    cr_assert(!parse_size(end - TEXT_SHORT, &size));
    for (int n = TEXT_SHORT - 2; n <= TEXT_SHORT; n++) {
        snprintf(share, sizeof(share), "%s/7", end - n);
        cr_assert_eq(parse_shard(share, &shard), n < TEXT_SHORT, "%d digits", n);
    }
}

Test(limits, whole_numbers_in_json_end_at_2_to_53)
{
    static const char *const good[] = { "9007199254740991", "9007199254740992", "-9007199254740992" };
    static const char *const bad[] = { "9007199254740994", "-9007199254740994", "1e300" };
    char text[64];
    struct err err;
    int64_t v;

    for (int i = 0; i < 6; i++) {
        int n = snprintf(text, sizeof(text), "{\"n\":%s}", i < 3 ? good[i] : bad[i - 3]);
        struct json *json = json_parse(text, (size_t)n, &err);
        cr_assert_eq(json_want_int(json, "n", &v, &err), i < 3 ? 0 : ERR_FORMAT, "%s", text);
        json_free(json);
    }
}

/* ---- depth, length ------------------------------------------------------ */

/* cJSON's own limit: a deeper text would use up the stack. */
Test(limits, json_is_at_most_1000_deep)
{
    static char text[2 * 1001];
    struct err err;

    for (size_t depth = 999; depth <= 1001; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        struct json *json = json_parse(text, 2 * depth, &err);
        cr_assert_eq(json != NULL, depth <= 1000, "%zu deep", depth);
        json_free(json);
    }
}

/* A line of NUL characters, which a sparse file has without a disk that holds them: what is wrong with it tells whether
 * its length was. */
Test(limits, a_row_has_at_most_256_mib)
{
    enum { MAX = 256 << 20 };
    char path[] = "/tmp/evp-long-XXXXXX";
    int fd = mkstemp(path);
    struct rows_in in;
    struct err err;

    for (int n = MAX - 1; n <= MAX + 1; n++) {
        cr_assert(ftruncate(fd, 0) == 0 && ftruncate(fd, n - 1) == 0 && pwrite(fd, "\n", 1, n - 1) == 1);
        cr_assert_eq(rows_open(&in, path, "contexts", &err), ERR_FORMAT);
        cr_assert(strstr(err.msg, n <= MAX ? "a NUL character" : "longer than 256 MiB"), "%d bytes: %s", n, err.msg);
    }
    close(fd);
    unlink(path);
    cr_assert_eq(rows_open(&in, "/dev/zero", "contexts", &err), ERR_FORMAT); /* which has no end at all */
    cr_assert(strstr(err.msg, "longer than 256 MiB"), "%s", err.msg);
}

Test(limits, a_message_is_cut_and_ends)
{
    char text[1024];
    struct err err;

    for (size_t n = sizeof(err.msg) - 2; n <= sizeof(err.msg); n++) {
        memset(text, 'a', n);
        text[n] = '\0';
        err_set(&err, ERR_IO, "%s", text);
        cr_assert_eq(strlen(err.msg), n < sizeof(err.msg) ? n : sizeof(err.msg) - 1);
        cr_assert_eq(err_wrap(&err, "b"), ERR_IO);
        cr_assert(strncmp(err.msg, "b: aaa", 6) == 0 && strlen(err.msg) == sizeof(err.msg) - 1);
        err_set(&err, ERR_IO, "why");
        cr_assert_eq(err_wrap(&err, "%s", text), ERR_IO);
        cr_assert_eq(strlen(err.msg), sizeof(err.msg) - 1, "no place for what it wraps");
    }
}

/* Keys are kept in blocks of 256 bytes at first and 1 MiB at most; a longer key has a block of its own. */
Test(limits, keys_of_a_map_fit_their_block)
{
    static const size_t length[] = { 254, 255, 256, (1 << 20) - 2, (1 << 20) - 1, 1 << 20, 3 << 20 };
    enum { N = sizeof(length) / sizeof(*length) };
    char *key = malloc(3 << 20);
    struct map m = { 0 };

    cr_assert_not_null(key);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < N; i++) {
            memset(key, 'a' + i, length[i]);
            cr_assert_eq(map_add(&m, key, length[i], NULL), i);
            cr_assert(m.at[i].key[length[i]] == '\0' && memcmp(m.at[i].key, key, length[i]) == 0);
        }
    free(key);
    map_release(&m);
}

/* Half of the slots are in use at most: 16, 32 ... keys are where the tables grow. */
Test(limits, a_map_finds_everything_after_it_has_grown)
{
    struct map m = { 0 };
    char key[16];

    for (int n = 0; n < 130; n++) {
        cr_assert_eq(map_add(&m, key, (size_t)snprintf(key, sizeof(key), "%d", n), NULL), n);
        for (int i = 0; i <= n; i++)
            cr_assert_eq(map_find(&m, key, (size_t)snprintf(key, sizeof(key), "%d", i)), i);
        cr_assert_eq(map_find(&m, "x", 1), MAP_ABSENT);
    }
    map_release(&m);
}

Test(limits, code_points_end_at_10ffff)
{
    uint32_t point;

    cr_assert(utf8_decode("\xf4\x8f\xbf\xbf", 4, &point) == 4 && point == 0x10ffff);
    cr_assert_eq(utf8_decode("\xf4\x90\x80\x80", 4, &point), 0);
    cr_assert(utf8_decode("\xed\x9f\xbf", 3, &point) == 3 && point == 0xd7ff);
    cr_assert_eq(utf8_decode("\xed\xa0\x80", 3, &point), 0);
    cr_assert_eq(utf8_decode("\xed\xbf\xbf", 3, &point), 0);
    cr_assert(utf8_decode("\xee\x80\x80", 3, &point) == 3 && point == 0xe000);
}

/* ---- digests ------------------------------------------------------------ */

Test(limits, a_digest_has_64_lower_case_digits)
{
    char hex[DIGEST_HEX + 1];

    memset(hex, 'f', sizeof(hex));
    for (size_t n = DIGEST_HEX - 2; n <= DIGEST_HEX; n++) {
        hex[n] = '\0';
        cr_assert_eq(digest_is_hex(hex), n == DIGEST_HEX - 1, "%zu digits", n);
        hex[n] = 'f';
    }
    hex[DIGEST_HEX - 1] = '\0';
    for (int c = 1; c < 256; c++) { /* '/', ':', '`', 'g' and the capitals are beside the digits */
        hex[63] = (char)c;
        cr_assert_eq(digest_is_hex(hex), strchr("0123456789abcdef", c) != NULL, "character %d", c);
    }
}

Test(limits, files_are_digested_wherever_a_piece_ends)
{
    enum { PIECE = 1 << 16 };
    static char bytes[PIECE + 1];
    char path[] = "/tmp/evp-digest-XXXXXX", want[DIGEST_HEX], got[DIGEST_HEX];
    struct err err;

    close(mkstemp(path));
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * i >> 3);
    for (size_t n = PIECE - 1; n <= PIECE + 1; n++) {
        cr_assert(!file_write(path, bytes, n, &err) && !digest_file(path, got, &err));
        cr_assert(!digest_sha256(bytes, n, want, &err));
        cr_assert_str_eq(got, want);
    }
    unlink(path);
}

/* ---- safetensors -------------------------------------------------------- */

static int open_header(uint64_t header, size_t n, const char **why)
{
    static char file[64];
    static struct err err;
    struct safetensors st;

    memcpy(file, &header, sizeof(header));
    *why = err.msg;
    err.msg[0] = '\0';
    return safetensors_parse(&st, file, n, &err);
}

Test(limits, a_safetensors_header_has_at_most_100_mb)
{
    const char *why;

    cr_assert(open_header(0, 7, &why) == ERR_FORMAT && strstr(why, "too short"), "%s", why);
    cr_assert(open_header(0, 8, &why) == ERR_FORMAT && strstr(why, "empty where JSON"), "%s", why);
    for (uint64_t n = 99999999; n <= 100000001; n++)
        cr_assert(open_header(n, 64, &why) == ERR_FORMAT &&
                      strstr(why, n <= 100000000 ? "truncated" : "not a safetensors file"),
                  "%s", why);
    cr_assert(open_header(57, 64, &why) == ERR_FORMAT && strstr(why, "truncated"), "%s", why);
    cr_assert(open_header(56, 64, &why) == ERR_FORMAT && strstr(why, "NUL"), "%s", why);
}

Test(limits, a_tensor_has_at_most_8_dimensions)
{
    char file[128];
    struct safetensors st;
    struct err err;

    for (int dims = ST_DIMS - 1; dims <= ST_DIMS + 1; dims++) {
        int n =
            snprintf(file + 8, sizeof(file) - 8, "{\"a\":{\"dtype\":\"U8\",\"shape\":[%.*s],\"data_offsets\":[0,1]}}",
                     2 * dims - 1, "1,1,1,1,1,1,1,1,1,1");
        uint64_t length = (uint64_t)n;
        memcpy(file, &length, sizeof(length));
        int code = safetensors_parse(&st, file, 8 + (size_t)n + 1, &err);
        cr_assert_eq(code, dims <= ST_DIMS ? 0 : ERR_FORMAT, "%d: %s", dims, err.msg);
        if (!code)
            safetensors_close(&st);
    }
}
