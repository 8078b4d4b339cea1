/* tiers.json: what is let in, what is refused and in which words. */
#include "base/file.h"
#include "formats/redis_address.h"
#include "formats/tiers.h"

#include <criterion/criterion.h>
#include <stdlib.h>
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

/* Two tiers with what is given besides. */
#define TWO(a, b)  "[{\"name\":\"one\"" TIER_START a "},{\"name\":\"two\"" TIER_START b "}]"
#define TIER_START ",\"kind\":\"file\",\"uri\":\"/a\",\"read_bytes_per_s\":1,\"write_bytes_per_s\":1,\"latency_s\":0"

Test(tiers, share_no_state)
{
    static const char *const bad[][2] = { { ",\"state\":\"/b\"", ",\"state\":\"/b\"" }, { "", ",\"state\":\"/a\"" } };
    struct tiers t;
    struct err err;
    char text[1024];

    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), TWO("%s,\"capacity_bytes\":7", "%s,\"capacity_bytes\":7"), bad[i][0], bad[i][1]);
        cr_assert_eq(from_text(&t, text, &err), ERR_FORMAT);
        cr_assert_str_eq(err.msg, i ? "the 'state' of tier 'two' is also a folder of tier 'one'"
                                    : "the 'state' of tier 'one' is also a folder of tier 'two'");
    }
    cr_assert_eq(
        from_text(&t, TWO(",\"capacity_bytes\":7,\"state\":\"/a\"", ",\"capacity_bytes\":7,\"state\":\"/b\""), &err),
        ERR_FORMAT, "its own folder is the other's too");
    cr_assert_eq(
        from_text(&t, TWO(",\"capacity_bytes\":7,\"state\":\"/b\"", ",\"capacity_bytes\":7,\"state\":\"/c\""), &err),
        0);
    tiers_release(&t);
}

Test(tiers, share_a_pool)
{
    struct tiers t;
    struct err err;
    struct buf out = { 0 };
    int first[2];

    cr_assert_eq(
        from_text(&t, TWO(",\"capacity_bytes\":7,\"pool\":\"p\"", ",\"capacity_bytes\":7,\"pool\":\"p\""), &err), 0);
    tiers_pools(&t, first);
    cr_assert(first[0] == 0 && first[1] == 0);
    tiers_write(&t, &out);
    cr_assert(strstr(buf_str(&out), "\"latency_s\":0,\"pool\":\"p\"}"), "%s", buf_str(&out));
    tiers_release(&t);
    buf_release(&out);
    cr_assert_eq(
        from_text(&t, TWO(",\"capacity_bytes\":7,\"pool\":\"p\"", ",\"capacity_bytes\":7,\"pool\":\"q\""), &err), 0);
    tiers_pools(&t, first);
    cr_assert(first[0] == 0 && first[1] == 1);
    tiers_release(&t);
    cr_assert_eq(
        from_text(&t, TWO(",\"capacity_bytes\":7,\"pool\":\"p\"", ",\"capacity_bytes\":null,\"pool\":\"p\""), &err),
        ERR_FORMAT);
    cr_assert_str_eq(err.msg, "tiers 'one' and 'two' give pool 'p' different capacities");
    cr_assert_eq(from_text(&t, TWO(",\"pool\":\"a b\"", ""), &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "tier 'one': pool 'a b' is not 1 to 31 letters, digits, - and _");
    cr_assert_eq(from_text(&t, TWO(",\"pool\":7", ""), &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "tier 'one': field 'pool' is not a string");
}

Test(tiers, hold_some_configs)
{
    struct tiers t;
    struct err err;
    struct buf out = { 0 };

    cr_assert_eq(from_text(&t,
                           TWO(",\"capacity_bytes\":null,\"configs\":[\"none\",\"snapkv\",\"kivi:bits=4\"]",
                               ",\"capacity_bytes\":null"),
                           &err),
                 0);
    cr_assert(tier_allows(&t.at[0], "none") && tier_allows(&t.at[0], "snapkv:drop=0.5") &&
              tier_allows(&t.at[0], "snapkv:drop=0.5+kivi:bits=2") && tier_allows(&t.at[0], "kivi:bits=4"));
    cr_assert(!tier_allows(&t.at[0], "kivi:bits=2") && !tier_allows(&t.at[0], "snap") &&
              !tier_allows(&t.at[0], "nonesuch"));
    cr_assert(tier_allows(&t.at[1], "anything"));
    tiers_write(&t, &out);
    cr_assert(strstr(buf_str(&out), "\"configs\":[\"none\",\"snapkv\",\"kivi:bits=4\"]}"), "%s", buf_str(&out));
    tiers_release(&t);
    buf_release(&out);
    cr_assert_eq(from_text(&t, TWO(",\"capacity_bytes\":null,\"configs\":[]", ""), &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "tier 'one': field 'configs' is not an array of one or more names");
    cr_assert_eq(from_text(&t, TWO(",\"capacity_bytes\":null,\"configs\":[1]", ""), &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "tier 'one': field 'configs' has an entry that is not a text");
    cr_assert_eq(from_text(&t, TWO(",\"capacity_bytes\":null,\"configs\":[\"\"]", ",\"capacity_bytes\":null"), &err),
                 ERR_FORMAT);
    cr_assert_str_eq(err.msg, "tier 'one': a config is not 1 to 127 bytes");
}

/* A folder of another host needs no write bandwidth. */
#define READ_ONLY(kind, uri, rest)                                                                                     \
    "[{\"name\":\"a\",\"kind\":\"" kind "\",\"uri\":\"" uri "\"," rest ",\"capacity_bytes\":null,"                     \
    "\"read_bytes_per_s\":1,\"latency_s\":0}]"

Test(tiers, are_filled_by_another_host)
{
    struct tiers t;
    struct err err;
    struct buf out = { 0 };

    cr_assert_eq(from_text(&t, READ_ONLY("file", "/a", "\"access\":\"read\""), &err), 0, "%s", err.msg);
    cr_assert(t.at[0].read_only && t.at[0].write_bytes_per_s == 0);
    tiers_write(&t, &out);
    cr_assert_str_eq(buf_str(&out),
                     "{\"evp\":\"tiers\",\"version\":1,\"tiers\":["
                     "{\"name\":\"a\",\"kind\":\"file\",\"uri\":\"/a\",\"access\":\"read\",\"capacity_bytes\":null,"
                     "\"read_bytes_per_s\":1,\"latency_s\":0}]}");
    tiers_release(&t);
    buf_release(&out);
    cr_assert_eq(from_text(&t, READ_ONLY("file", "/a", "\"access\":\"read\",\"write_bytes_per_s\":-1"), &err),
                 ERR_FORMAT);
    cr_assert_str_eq(err.msg, "tier 'a': the write bandwidth is not above 0");
    cr_assert_eq(from_text(&t, READ_ONLY("file", "/a", "\"note\":1"), &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "tier 'a': field 'write_bytes_per_s' is missing");
    cr_assert_eq(from_text(&t, READ_ONLY("file", "/a", "\"access\":\"write\""), &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "tier 'a': access 'write' is not read");
    cr_assert_eq(from_text(&t, READ_ONLY("redis", "redis://b", "\"access\":\"read\""), &err), 0);
    tiers_release(&t);
    cr_assert_eq(from_text(&t, READ_ONLY("lmcache", "b", "\"access\":\"read\""), &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "tier 'a': field 'access' is for kinds dram, file and redis, not 'lmcache'");
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
        { "[]", "field 'tiers' holds 0 tiers, not 1 to 64" },
        { "[3]", "a tier is not an object" },
        { "[" DRAM "," DRAM "]", "tier 'dram' comes twice" },
        { TIER("\"recompute\"", "\"file\"", "\"/a\"", "1", "1", "1", "1"),
          "a tier cannot be named 'recompute', the name for contexts that are not stored" },
        { TIER("\"a b\"", "\"file\"", "\"/a\"", "1", "1", "1", "1"),
          "tier name 'a b' is not 1 to 31 letters, digits, - and _" },
        { TIER("\"\"", "\"file\"", "\"/a\"", "1", "1", "1", "1"), "tier name '' is not 1 to 31 letters*" },
        { TIER("\"0123456789012345678901234567890x\"", "\"file\"", "\"/a\"", "1", "1", "1", "1"), "tier name*" },
        { TIER("7", "\"file\"", "\"/a\"", "1", "1", "1", "1"), "field 'name' is not a string" },
        { TIER("\"a\"", "\"tape\"", "\"/a\"", "1", "1", "1", "1"),
          "tier 'a': kind 'tape' is not one of gpu, dram, file, redis, lmcache" },
        { TIER("\"a\"", "\"file\"", "\"\"", "1", "1", "1", "1"), "tier 'a': field 'uri' is empty" },
        { TIER("\"a\"", "\"file\"", "\"redis://b\"", "1", "1", "1", "1"),
          "tier 'a': uri 'redis://b' is not the path of a folder" },
        { TIER("\"a\"", "\"redis\"", "\"/a\"", "1", "1", "1", "1"),
          "tier 'a': uri '/a' does not begin with redis://*" },
        { TIER("\"a\"", "\"redis\"", "\"redis://u:secret@b\"", "1", "1", "1", "1"),
          "tier 'a': the uri has a user or password, which*" },
        { TIER("\"a\"", "\"redis\"", "\"redis://\"", "1", "1", "1", "1"),
          "tier 'a': uri 'redis://' is not redis://HOST*" },
        { TIER("\"a\"", "\"redis\"", "\"redis://b:0\"", "1", "1", "1", "1"), "tier 'a': uri 'redis://b:0' is not*" },
        { TIER("\"a\"", "\"redis\"", "\"redis://b:65536\"", "1", "1", "1", "1"), "tier 'a': uri*is not*" },
        { TIER("\"a\"", "\"redis\"", "\"redis://b:1/x\"", "1", "1", "1", "1"), "tier 'a': uri*is not*" },
        { TIER("\"a\"", "\"redis\"", "\"redis://b c\"", "1", "1", "1", "1"), "tier 'a': uri*is not*" },
        { TIER("\"a\"", "\"redis\"", "\"redis://[::1\"", "1", "1", "1", "1"), "tier 'a': uri*is not*" },
        { TIER("\"a\"", "\"redis\"", "\"rediss://b:\"", "1", "1", "1", "1"),
          "tier 'a': uri 'rediss://b:' is not rediss://HOST*" },
        { TIER("\"a\"", "\"redis\"", "\"redisss://b\"", "1", "1", "1", "1"), "tier 'a': uri*does not begin with*" },
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
        { "[" DRAM "]", "not a list of tiers: \"evp\":\"tiers\" is missing" },
        { "{\"evp\":\"contexts\",\"version\":1,\"tiers\":[" DRAM "]}", "holds contexts, not tiers" },
        { "{\"evp\":\"tiers\",\"tiers\":[" DRAM "]}", "field 'version' is missing" },
        { "{\"evp\":\"tiers\",\"version\":2,\"tiers\":[" DRAM "]}", "is of version 2; this program reads version 1" },
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
    a.device_bytes_per_s = 50; // the slower way counts
    cr_assert_eq(tier_read_s(&a, 250), 5.5);
    a.device_bytes_per_s = 200;
    cr_assert_eq(tier_read_s(&a, 250), 3);
}

/* Between two measurements in proportion, beyond the last one no more; each read has its part of both ways. */
Test(tiers, several_reads_share_what_they_reach_together)
{
    static const struct {
        int reads;
        double together, device, spread;
    } at[] = { { 1, 100, 0, 0.1 },   { 2, 150, 0, 0.2 }, { 3, 200, 0, 0.3 },   { 4, 250, 0, 0.4 },  { 8, 350, 0, 0.6 },
               { 100, 350, 0, 0.6 }, { 1, 60, 60, 0.1 }, { 3, 180, 180, 0.3 }, { 3, 200, 300, 0.3 } };
    char uri[] = "/a";

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        struct tier t = { .name = "x",
                          .kind = TIER_FILE,
                          .uri = uri,
                          .latency_s = 0.5,
                          .read_bytes_per_s = 100,
                          .read_spread = 0.1,
                          .device_bytes_per_s = at[i].device };
        struct err err;
        cr_assert_eq(tier_add_load(&t, &(struct tier_load){ 2, 150, 0.2 }, &err), 0);
        cr_assert_eq(tier_add_load(&t, &(struct tier_load){ 4, 250, 0.4 }, &err), 0);
        cr_assert_eq(tier_add_load(&t, &(struct tier_load){ 6, 350, 0.6 }, &err), 0);
        tier_set_reads(&t, at[i].reads);
        double read_s = tier_read_s(&t, 1000), each = at[i].together / at[i].reads;
        cr_assert_float_eq(read_s, 0.5 + 1000 / each, 1e-9, "%zu", i);
        cr_assert_float_eq(tier_read_sd_s(&t, read_s), at[i].spread * read_s, 1e-9, "%zu", i);
        free(t.load);
    }
    struct tier alone = { .name = "x", .read_bytes_per_s = 100 };
    tier_set_reads(&alone, 4);
    cr_assert_eq(tier_read_s(&alone, 100), 4, "without a measurement, one's bandwidth is that of all");
}

Test(tiers, measurements_with_several_reads_come_back)
{
    static const char text[] =
        "[{\"name\":\"a\",\"kind\":\"file\",\"uri\":\"/a\",\"capacity_bytes\":1,\"read_bytes_per_s\":4,"
        "\"write_bytes_per_s\":1,\"latency_s\":0,\"read_spread\":0.25,"
        "\"parallel\":[{\"reads\":4,\"bytes_per_s\":8,\"spread\":0.5},{\"reads\":4096,\"bytes_per_s\":9}],"
        "\"parallel_reads\":4}]";
    struct tiers t;
    struct err err;
    struct buf out = { 0 };

    cr_assert_eq(from_text(&t, text, &err), 0, "%s", err.msg);
    cr_assert(t.at[0].n_loads == 2 && t.at[0].load[1].reads == 4096 && t.at[0].parallel_reads == 4);
    cr_assert_eq(tier_read_s(t.at, 8), 4);
    cr_assert_eq(tier_read_sd_s(t.at, 4), 2);
    tiers_write(&t, &out);
    cr_assert(strstr(buf_str(&out), text), "%s", out.at);
    buf_release(&out);
    tiers_release(&t);
}

Test(tiers, refuses_measurements_that_are_none)
{
    static const struct {
        const char *json, *says; // NULL: taken
    } list[] = {
        { "\"read_spread\":0", NULL },
        { "\"read_spread\":1000", NULL },
        { "\"read_spread\":1001", "the spread of reads is not 0 to 1000" },
        { "\"read_spread\":-0.1", "the spread of reads is not 0 to 1000" },
        { "\"parallel\":null,\"parallel_reads\":null", NULL },
        { "\"parallel\":[]", NULL },
        { "\"parallel\":{}", "field 'parallel' is not an array" },
        { "\"parallel\":[1]", "field 'parallel' has a member that is not an object" },
        { "\"parallel\":[{\"bytes_per_s\":1}]", "reads" },
        { "\"parallel\":[{\"reads\":2}]", "bytes_per_s" },
        { "\"parallel\":[{\"reads\":1,\"bytes_per_s\":1}]", "reads is 1, not 2 to 4096" },
        { "\"parallel\":[{\"reads\":2,\"bytes_per_s\":1}]", NULL },
        { "\"parallel\":[{\"reads\":4097,\"bytes_per_s\":1}]", "reads is 4097, not 2 to 4096" },
        { "\"parallel\":[{\"reads\":-9007199254740993,\"bytes_per_s\":1}]", "reads" },
        { "\"parallel\":[{\"reads\":2,\"bytes_per_s\":0}]", "the bandwidth of 2 reads is not above 0" },
        { "\"parallel\":[{\"reads\":2,\"bytes_per_s\":1,\"spread\":-1}]", "the spread of 2 reads is not 0 to 1000" },
        { "\"parallel\":[{\"reads\":3,\"bytes_per_s\":1},{\"reads\":3,\"bytes_per_s\":1}]", "reads is 3, not 4" },
        { "\"parallel_reads\":4096", NULL },
        { "\"parallel_reads\":0", "field 'parallel_reads' is not 1 to 4096" },
        { "\"parallel_reads\":4097", "field 'parallel_reads' is not 1 to 4096" },
        { "\"parallel_reads\":\"2\"", "parallel_reads" },
        { "\"parallel\":[{\"reads\":2,\"bytes_per_s\":1e-300}],\"parallel_reads\":2",
          "latency and bandwidth are out of range" },
        { "\"device_bytes_per_s\":1e-300", "latency and bandwidth are out of range" },
    };

    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
        struct buf text = { 0 };
        struct tiers t;
        struct err err;
        buf_printf(&text, "[{\"name\":\"a\",%s" TIER_REST "]", list[i].json);
        int code = from_text(&t, buf_str(&text), &err);
        cr_assert_eq(code, list[i].says ? ERR_FORMAT : 0, "%s: %s", list[i].json, code ? err.msg : "taken");
        if (code)
            cr_assert(strstr(err.msg, list[i].says), "%s: %s", list[i].json, err.msg);
        tiers_release(&t);
        buf_release(&text);
    }
}

/* Written where it is known; 0 and nothing are the same. */
Test(tiers, bandwidth_to_a_device)
{
    static const struct {
        const char *json;
        double value; // below 0: refused
    } list[] = { { ",\"device_bytes_per_s\":25600000000", 25.6e9 },
                 { "", 0 },
                 { ",\"device_bytes_per_s\":0", 0 },
                 { ",\"device_bytes_per_s\":-1", -1 } };

    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
        struct buf text = { 0 }, out = { 0 };
        struct tiers t;
        struct err err;
        buf_printf(&text,
                   "[{\"name\":\"a\",\"kind\":\"file\",\"uri\":\"/a\",\"capacity_bytes\":1,\"read_bytes_per_s\":1,"
                   "\"write_bytes_per_s\":1,\"latency_s\":0%s}]",
                   list[i].json);
        int code = from_text(&t, buf_str(&text), &err);
        cr_assert_eq(code, list[i].value < 0 ? ERR_FORMAT : 0, "%s", list[i].json);
        if (!code) {
            cr_assert_eq(t.at[0].device_bytes_per_s, list[i].value);
            tiers_write(&t, &out);
            cr_assert_eq(strstr(buf_str(&out), "device_bytes_per_s\":25600000000") != NULL, i == 0, "%s", out.at);
        }
        tiers_release(&t);
        buf_release(&text);
        buf_release(&out);
    }
}

Test(tiers, say_where_redis_is)
{
    static const struct {
        const char *uri, *host;
        int port, database;
        bool tls;
    } good[] = {
        { "redis://b", "b", 6379, 0, false },
        { "redis://b/", "b", 6379, 0, false },
        { "redis://10.0.0.1:1/15", "10.0.0.1", 1, 15, false },
        { "redis://[::1]:65535", "::1", 65535, 0, false },
        { "redis://[fe80::2]", "fe80::2", 6379, 0, false },
        { "rediss://b:1/2", "b", 1, 2, true },
    };
    struct redis_address a;
    struct err err;

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        cr_assert_eq(redis_address_parse(&a, good[i].uri, &err), 0, "%s", err.msg);
        cr_assert_str_eq(a.host, good[i].host);
        cr_assert(a.port == good[i].port && a.database == good[i].database && a.tls == good[i].tls);
    }
    cr_assert_eq(redis_address_parse(&a, "redis://u:secret@b", &err), ERR_FORMAT);
    cr_assert_null(strstr(err.msg, "secret"), "a sentence does not repeat a password");
}
