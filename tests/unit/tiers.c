/* tiers.json: what is let in, what is refused and in which words. */
#include "base/file.h"
#include "loader/formats/tiers.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#define DRAM                                                                                                           \
    "{\"name\":\"dram\",\"kind\":\"dram\",\"uri\":\"/dev/shm/evp\",\"capacity_bytes\":1000,"                           \
    "\"read_bytes_per_s\":8e9,\"write_bytes_per_s\":4e9,\"latency_s\":2e-05}"
#define FAR                                                                                                            \
    "{\"name\":\"far\",\"kind\":\"redis\",\"uri\":\"redis://a:1\",\"capacity_bytes\":null,"                            \
    "\"read_bytes_per_s\":1e8,\"write_bytes_per_s\":1e8,\"latency_s\":0}"

/* What follows a name. */
#define TIER_REST                                                                                                      \
    ",\"kind\":\"file\",\"uri\":\"/a\",\"capacity_bytes\":1,\"read_bytes_per_s\":1,\"write_bytes_per_s\":1,"           \
    "\"latency_s\":0}"

static int from_text(struct tiers *t, const char *text, struct err *err)
{
    struct json *v = json_parse(text, strlen(text), err);

    cr_assert(v, "%s", text);
    int code = tiers_from_json(t, v, err);
    json_free(v);
    return code;
}

Test(tiers, come_back_as_they_were_written)
{
    struct tiers t;
    struct err err;
    struct buf out = { 0 };

    cr_assert_eq(from_text(&t, "[" DRAM "," FAR "]", &err), 0);
    cr_assert_eq(t.n, 2);
    cr_assert_eq(t.at[0].kind, TIER_DRAM);
    cr_assert_eq(t.at[0].capacity, 1000);
    cr_assert_eq(t.at[1].capacity, INT64_MAX);
    cr_assert_eq(tiers_find(&t, "far"), 1);
    cr_assert_eq(tiers_find(&t, "recompute"), -1);
    tiers_write(&t, &out);
    cr_assert_str_eq(buf_str(&out),
                     "{\"evp\":\"tiers\",\"version\":1,\"tiers\":["
                     "{\"name\":\"dram\",\"kind\":\"dram\",\"uri\":\"/dev/shm/evp\",\"capacity_bytes\":1000,"
                     "\"read_bytes_per_s\":8000000000,\"write_bytes_per_s\":4000000000,\"latency_s\":2e-05},"
                     "{\"name\":\"far\",\"kind\":\"redis\",\"uri\":\"redis://a:1\",\"capacity_bytes\":null,"
                     "\"read_bytes_per_s\":100000000,\"write_bytes_per_s\":100000000,\"latency_s\":0}]}");
    buf_release(&out);
    tiers_release(&t);
}

#define TIER(name, kind, uri, capacity, read, write, latency)                                                          \
    "[{\"name\":" name ",\"kind\":" kind ",\"uri\":" uri ",\"capacity_bytes\":" capacity ",\"read_bytes_per_s\":" read \
    ",\"write_bytes_per_s\":" write ",\"latency_s\":" latency "}]"

Test(tiers, refuse_what_cannot_be_planned_with)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        { "{}", "field 'tiers' is not an array" },
        { "[]", "field 'tiers' holds 0 tiers, not 1 to 16" },
        { "[3]", "a tier is not an object" },
        { "[" DRAM "," DRAM "]", "tier 'dram' comes twice" },
        { TIER("\"recompute\"", "\"file\"", "\"/a\"", "1", "1", "1", "1"),
          "a tier may not be named 'recompute': that is the name for contexts that are not stored" },
        { TIER("\"a b\"", "\"file\"", "\"/a\"", "1", "1", "1", "1"),
          "tier name 'a b' is not 1 to 31 letters, digits, - and _" },
        { TIER("\"\"", "\"file\"", "\"/a\"", "1", "1", "1", "1"), "tier name '' is not 1 to 31 letters*" },
        { TIER("\"0123456789012345678901234567890x\"", "\"file\"", "\"/a\"", "1", "1", "1", "1"), "tier name*" },
        { TIER("7", "\"file\"", "\"/a\"", "1", "1", "1", "1"), "field 'name' is not a string" },
        { TIER("\"a\"", "\"tape\"", "\"/a\"", "1", "1", "1", "1"),
          "tier 'a': kind 'tape' is none of gpu, dram, file, redis, lmcache" },
        { TIER("\"a\"", "\"file\"", "\"\"", "1", "1", "1", "1"), "tier 'a': field 'uri' is empty" },
        { TIER("\"a\"", "\"file\"", "\"redis://b\"", "1", "1", "1", "1"),
          "tier 'a': uri 'redis://b' is not the path of a folder" },
        { TIER("\"a\"", "\"redis\"", "\"/a\"", "1", "1", "1", "1"), "tier 'a': uri '/a' does not begin with redis://" },
        { TIER("\"a\"", "\"file\"", "\"/a\"", "-1", "1", "1", "1"), "tier 'a': the capacity is negative" },
        { TIER("\"a\"", "\"file\"", "\"/a\"", "1.5", "1", "1", "1"),
          "tier 'a': field 'capacity_bytes' is not a whole number" },
        { TIER("\"a\"", "\"file\"", "\"/a\"", "1e300", "1", "1", "1"),
          "tier 'a': field 'capacity_bytes' is not a whole number" },
        { TIER("\"a\"", "\"file\"", "\"/a\"", "\"2G\"", "1", "1", "1"),
          "tier 'a': field 'capacity_bytes' is not a number" },
        { TIER("\"a\"", "\"file\"", "\"/a\"", "1", "0", "1", "1"), "tier 'a': the read bandwidth is not above 0" },
        { TIER("\"a\"", "\"file\"", "\"/a\"", "1", "null", "1", "1"),
          "tier 'a': field 'read_bytes_per_s' is not a number" },
        { TIER("\"a\"", "\"file\"", "\"/a\"", "1", "1e999", "1", "1"),
          "tier 'a': field 'read_bytes_per_s' is not a number" },
        { TIER("\"a\"", "\"file\"", "\"/a\"", "1", "1", "-4", "1"), "tier 'a': the write bandwidth is not above 0" },
        { TIER("\"a\"", "\"file\"", "\"/a\"", "1", "1", "1", "-1"), "tier 'a': the latency is negative" },
        { "[{\"name\":\"a\",\"kind\":\"file\",\"uri\":\"/a\",\"read_bytes_per_s\":1,\"write_bytes_per_s\":1,"
          "\"latency_s\":0}]",
          "tier 'a': field 'capacity_bytes' is missing" },
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct tiers t;
        struct err err;
        size_t n = strcspn(bad[i].says, "*"); // what comes before a star is enough
        cr_assert_eq(from_text(&t, bad[i].text, &err), ERR_FORMAT, "%s", bad[i].text);
        cr_assert(strncmp(err.msg, bad[i].says, n) == 0 && (bad[i].says[n] || !err.msg[n]), "%s", err.msg);
        cr_assert(!t.at && !t.n);
    }
}

Test(tiers, a_file_must_say_what_it_is)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        { "[" DRAM "]", "is not a list of tiers: no \"evp\":\"tiers\"" },
        { "{\"evp\":\"contexts\",\"version\":1,\"tiers\":[" DRAM "]}", "is not a list of tiers: no \"evp\":\"tiers\"" },
        { "{\"evp\":\"tiers\",\"tiers\":[" DRAM "]}", "field 'version' is missing" },
        { "{\"evp\":\"tiers\",\"version\":2,\"tiers\":[" DRAM "]}", "is of version 2, this program reads 1" },
        { "{\"evp\":\"tiers\",\"version\":1}", "field 'tiers' is missing" },
    };
    char path[] = "/tmp/evp-tiers-test.XXXXXX";
    struct tiers t;
    struct err err;

    close(mkstemp(path));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_assert_eq(file_write(path, bad[i].text, strlen(bad[i].text), &err), 0);
        cr_assert_eq(tiers_read(&t, path, &err), ERR_FORMAT, "%s", bad[i].text);
        cr_assert(strstr(err.msg, bad[i].says) && strstr(err.msg, path), "%s", err.msg);
    }
    static const char good[] = "{\"evp\":\"tiers\",\"version\":1,\"tiers\":[" DRAM "]}";
    cr_assert_eq(file_write(path, good, strlen(good) - 1, &err), 0); // truncated
    cr_assert_eq(tiers_read(&t, path, &err), ERR_FORMAT);
    cr_assert_eq(file_write(path, good, strlen(good), &err), 0);
    cr_assert_eq(tiers_read(&t, path, &err), 0, "%s", err.msg);
    cr_assert_eq(t.n, 1);
    tiers_release(&t);
    unlink(path);
    cr_assert_eq(tiers_read(&t, path, &err), ERR_IO);
}

/* One below, at and above: names of 31 bytes, 16 tiers, a file of a mebibyte, capacities that a number says exactly. */
Test(tiers, at_their_limits)
{
    struct tiers t;
    struct err err;
    struct buf text = { 0 };

    for (int n = TIER_NAME - 2; n <= TIER_NAME; n++) {
        buf_clear(&text);
        buf_printf(&text, "[{\"name\":\"%0*d\"" TIER_REST "]", n, 0);
        cr_assert_eq(from_text(&t, buf_str(&text), &err), n < TIER_NAME ? 0 : ERR_FORMAT, "a name of %d", n);
        tiers_release(&t);
    }
    for (int n = TIER_MAX - 1; n <= TIER_MAX + 1; n++) {
        buf_clear(&text);
        for (int i = 0; i < n; i++)
            buf_printf(&text, "%c{\"name\":\"t%d\"" TIER_REST, i ? ',' : '[', i);
        buf_adds(&text, "]");
        cr_assert_eq(from_text(&t, buf_str(&text), &err), n <= TIER_MAX ? 0 : ERR_FORMAT, "%d tiers", n);
        cr_assert_eq(t.n, n <= TIER_MAX ? n : 0);
        tiers_release(&t);
    }
    static const struct {
        const char *capacity;
        int code;
    } at[] = { { "-1", ERR_FORMAT },
               { "0", 0 },
               { "9007199254740991", 0 },
               { "9007199254740992", 0 },
               { "9007199254740994", ERR_FORMAT } };
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        buf_clear(&text);
        buf_printf(&text,
                   "[{\"name\":\"a\",\"kind\":\"file\",\"uri\":\"/a\",\"capacity_bytes\":%s,"
                   "\"read_bytes_per_s\":1,\"write_bytes_per_s\":1,\"latency_s\":0}]",
                   at[i].capacity);
        cr_assert_eq(from_text(&t, buf_str(&text), &err), at[i].code, "%s", at[i].capacity);
        tiers_release(&t);
    }
    buf_release(&text);
}

Test(tiers, of_a_file_that_is_too_large)
{
    static const char good[] = "{\"evp\":\"tiers\",\"version\":1,\"tiers\":[" DRAM "]}";
    char path[] = "/tmp/evp-tiers-test.XXXXXX";
    struct buf text = { 0 };
    struct tiers t;
    struct err err;

    close(mkstemp(path));
    for (size_t n = (1 << 20) - 1; n <= (1 << 20) + 1; n++) {
        buf_clear(&text);
        buf_printf(&text, "%s%*s", good, (int)(n - strlen(good)), "");
        cr_assert_eq(file_write(path, text.at, text.n, &err), 0);
        cr_assert_eq(tiers_read(&t, path, &err) == 0, n <= 1 << 20, "%zu bytes: %s", n, err.msg);
        tiers_release(&t);
    }
    buf_release(&text);
    unlink(path);
}

Test(tiers, folders_and_places)
{
    char one[] = "/a", same[] = "/a", other[] = "/b";
    struct tier a = { .name = "x", .kind = TIER_FILE, .uri = one, .latency_s = 0.5, .read_bytes_per_s = 100 }, b = a;

    cr_assert(tier_is_folder(&a));
    for (int kind = TIER_GPU; kind <= TIER_LMCACHE; kind++) {
        b.kind = (enum tier_kind)kind;
        cr_assert_eq(tier_is_folder(&b), kind == TIER_DRAM || kind == TIER_FILE);
        cr_assert_eq(tier_same_place(&a, &b), kind == TIER_FILE);
    }
    b = a;
    b.name[0] = 'y';
    b.uri = same;
    cr_assert(tier_same_place(&a, &b));
    b.uri = other;
    cr_assert_not(tier_same_place(&a, &b));
    cr_assert_eq(tier_read_s(&a, 250), 3);
    cr_assert_eq(tier_read_s(&a, 0), 0.5);
}
