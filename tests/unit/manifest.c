/* Manifests: what one may say, that what is written reads back the same, and what takes one plan to the next. */
#include "base/file.h"
#include "formats/manifest.h"
#include "tests/unit/lie.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static const char digest_a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char digest_b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

static struct tiers two_tiers(void)
{
    struct tiers t = { .at = calloc(2, sizeof(struct tier)), .n = 2 };
    static const char *const name[] = { "dram", "ssd" }, *const uri[] = { "/dev/shm/evp", "/var/tmp/evp" };

    for (int i = 0; i < 2; i++) {
        t.at[i] = (struct tier){ .kind = i ? TIER_FILE : TIER_DRAM,
                                 .uri = strdup(uri[i]),
                                 .capacity = 1000 << i,
                                 .read_bytes_per_s = 1e9,
                                 .write_bytes_per_s = 1e8,
                                 .latency_s = 1e-4 };
        memcpy(t.at[i].name, name[i], strlen(name[i]) + 1);
    }
    return t;
}

static const struct variant_info two_variants[] = { { "kivi:bits=2", 100, 0.25, (double)NAN },
                                                    { "keydiff:drop=0.5", 345, 0.1 + 0.2, 0.125 } };
static const struct variants variants = {
    two_variants, 2, 1.5, 0.01, 0.2, "ssd", 0.125, 0.0625, { 1, 2.5, 0, 4, 5, 6 }
};

static struct placement stored(const char *id)
{
    return (struct placement){ .id = id,
                               .token_digest = digest_a,
                               .config = "keydiff:drop=0.5",
                               .payload = id,
                               .tier = 1,
                               .n_tokens = 12,
                               .bytes = 345,
                               .quality = 0.1 + 0.2,
                               .quality_test = 0.25,
                               .ttft_s = 0.125,
                               .utility = -0.5,
                               .frequency = 3,
                               .operation = OP_INSERT };
}

static struct placement recomputed(const char *id)
{
    return (struct placement){ .id = id,
                               .token_digest = digest_b,
                               .config = "none",
                               .tier = -1,
                               .n_tokens = 9,
                               .quality = 1,
                               .quality_test = (double)NAN,
                               .ttft_s = 2,
                               .operation = OP_EVICT };
}

static void write_two(const char *path)
{
    struct manifest m = { .alpha = 0.5, .solver = "evicpress", .objective = 1.5, .upper_bound = 2, .gap = 0.25 };
    struct placement a = stored("a"), b = recomputed("b/\xc3\xa4 \"");
    struct err err;

    m.tiers = two_tiers();
    m.min_quality = 0.125;
    m.uses = 9;
    m.uses_weight[1] = 0.75;
    a.variants = &variants;
    memcpy(m.model_digest, digest_b, sizeof(digest_b));
    cr_assert_eq(manifest_add(&m, &a, &err), 0);
    cr_assert_eq(manifest_add(&m, &b, &err), 0);
    cr_assert_eq(manifest_write(&m, path, (struct rows_made){ .tool = "test" }, &err), 0, "%s", err.msg);
    manifest_release(&m);
}

Test(manifest, reads_back_what_was_written)
{
    char path[] = "/tmp/evp-manifest-XXXXXX", digest[DIGEST_HEX];
    struct manifest m;
    struct err err;

    close(mkstemp(path));
    write_two(path);
    cr_assert_eq(manifest_read(&m, path, &err), 0, "%s", err.msg);
    cr_assert_eq(digest_file(path, digest, &err), 0);
    cr_assert_str_eq(m.digest, digest);
    cr_assert(m.n == 2 && m.tiers.n == 2 && m.alpha == 0.5 && m.gap == 0.25 && m.objective == 1.5);
    cr_assert_str_eq(m.model_digest, digest_b);
    cr_assert_str_eq(m.previous, "");
    const struct placement *a = manifest_find(&m, "a"), *b = manifest_find(&m, "b/\xc3\xa4 \"");
    cr_assert(a == &m.at[0] && b == &m.at[1] && !manifest_find(&m, "c"));
    cr_assert(a->tier == 1 && a->bytes == 345 && a->quality == 0.1 + 0.2 && a->operation == OP_INSERT);
    cr_assert_str_eq(a->payload, "a");
    cr_assert(m.min_quality == 0.125 && !b->variants && a->variants && a->variants->n == 2);
    cr_assert(a->variants->prefill_sd_s == 0.125 && a->variants->question_sd_s == 0.0625);
    cr_assert(m.uses == 9 && m.uses_weight[1] == 0.75 && a->variants->uses[0] == 1 && a->variants->uses[5] == 6);
    cr_assert(a->variants->prefill_s == 1.5 && a->variants->question_s == 0.01 && a->variants->min_quality == 0.2);
    cr_assert_str_eq(a->variants->pin, "ssd");
    cr_assert(a->variants->at[0].bytes == 100 && a->variants->at[0].quality == 0.25 &&
              isnan(a->variants->at[0].decompress_s));
    cr_assert(a->variants->at[1].bytes == 345 && a->variants->at[1].decompress_s == 0.125);
    cr_assert_str_eq(a->variants->at[1].config, "keydiff:drop=0.5");
    cr_assert(strncmp(m.header, "{\"evp\":\"manifest\"", 17) == 0);
    cr_assert(b->tier == -1 && !b->payload && isnan(b->quality_test) && b->operation == OP_EVICT);
    manifest_release(&m);
    unlink(path);
}

/* Every member of an object is described by the schema, and whatever the schema requires is there. */
static void follow(const struct json *schema, const char *definition, const struct json *object)
{
    const struct json *d = json_get(json_get(schema, "$defs"), definition);

    cr_assert(json_is_object(d) && json_is_object(object), "%s", definition);
    for (const struct json *m = json_first(object); m; m = json_next(m))
        cr_assert(json_get(json_get(d, "properties"), json_name(m)), "%s has '%s'", definition, json_name(m));
    for (const struct json *m = json_first(json_get(d, "required")); m; m = json_next(m))
        cr_assert(json_get(object, json_text(m)), "%s lacks '%s'", definition, json_text(m));
}

Test(manifest, has_the_members_of_its_schema)
{
    char path[] = "/tmp/evp-manifest-XXXXXX";
    struct buf text = { 0 }, manifest = { 0 };
    struct err err;
    int n = 0;

    cr_assert_eq(file_read(&text, "formats/manifest.schema.json", 1 << 20, &err), 0);
    struct json *schema = json_parse(text.at, text.n, &err);
    cr_assert(schema, "%s", err.msg);
    close(mkstemp(path));
    write_two(path);
    cr_assert_eq(file_read(&manifest, path, 1 << 20, &err), 0);
    for (const char *line = manifest.at, *end; (end = strchr(line, '\n')); line = end + 1, n++) {
        struct json *v = json_parse(line, (size_t)(end - line), &err);
        follow(schema, n == 0 ? "header" : end[1] ? "placement" : "end", v);
        if (json_get(v, "forms"))
            follow(schema, "forms", json_get(v, "forms"));
        json_free(v);
    }
    cr_assert_eq(n, 4);
    json_free(schema);
    buf_release(&text);
    buf_release(&manifest);
    unlink(path);
}

/* Each is one change to a good row; manifest_add must refuse it and name the field. */
Test(manifest, refuses_rows_that_lie)
{
    static const char long_config[] = "x:0123456789012345678901234567890123456789012345678901234567890123456789"
                                      "0123456789012345678901234567890123456789012345678901234567890123456789";
    struct manifest m = { .tiers = two_tiers() };
    struct err err;
    struct placement p = stored("a");
    cr_assert_eq(manifest_add(&m, &p, &err), 0);
    struct {
        struct placement row;
        const char *says;
    } bad[24];
    int n = 0;
#define BAD(field, value, text) bad[n].row = stored("x"), bad[n].row.field = value, bad[n++].says = text
    BAD(id, "a", "comes twice");
    BAD(id, "", "'id' is empty");
    BAD(id, "a\nb", "control character");
    BAD(payload, "a", "payload 'a' comes twice");
    BAD(payload, "../a", "not a plain file name");
    BAD(payload, "b/a", "not a plain file name");
    BAD(payload, ".hidden", "not a plain file name");
    BAD(payload, NULL, "'payload' is missing");
    BAD(config, long_config, "'config' is longer");
    BAD(config, NULL, "'config' is empty");
    BAD(token_digest, "abc", "'token_digest'");
    BAD(n_tokens, 0, "'n_tokens'");
    BAD(n_tokens, 1ll << 40, "'n_tokens'");
    BAD(tier, 2, "'tier'");
    BAD(tier, -1, "stores nothing");
    BAD(bytes, -1, "'bytes' is below zero");
    BAD(quality, (double)NAN, "'quality' is not a number");
    BAD(ttft_s, -1, "'ttft_s' is below zero");
    BAD(utility, HUGE_VAL, "'utility' is not a number");
    BAD(frequency, -1, "'frequency' is below zero");
    BAD(operation, OP_EVICT, "operation 'evict'");
#undef BAD
    for (int i = 0; i < n; i++) {
        cr_assert_eq(manifest_add(&m, &bad[i].row, &err), ERR_FORMAT, "%s", bad[i].says);
        cr_assert(strstr(err.msg, bad[i].says), "'%s' does not say '%s'", err.msg, bad[i].says);
    }
    cr_assert_eq(m.n, 1);
    manifest_release(&m);
}

/* A text of n times `c`, borrowed until the next call. */
static const char *text_of(char c, size_t n)
{
    static char text[MANIFEST_ID + 8];

    memset(text, c, n);
    text[n] = '\0';
    return text;
}

/* One below, at and above every bound of a row: ok means accepted. */
Test(manifest, rows_at_their_limits)
{
    struct tiers tiers = two_tiers();
    struct err err;
#define LIMIT(field, value, ok)                                                                                        \
    do {                                                                                                               \
        struct manifest m = { .tiers = tiers, .borrows = true };                                                       \
        struct placement p = stored("x");                                                                              \
        p.field = value;                                                                                               \
        cr_assert_eq(manifest_add(&m, &p, &err), ok ? 0 : ERR_FORMAT, #field " = " #value);                            \
        manifest_release(&m);                                                                                          \
    } while (0)
    LIMIT(id, text_of('i', MANIFEST_ID - 2), true);
    LIMIT(id, text_of('i', MANIFEST_ID - 1), true);
    LIMIT(id, text_of('i', MANIFEST_ID), false);
    LIMIT(config, text_of('c', MANIFEST_CONFIG - 2), true);
    LIMIT(config, text_of('c', MANIFEST_CONFIG - 1), true);
    LIMIT(config, text_of('c', MANIFEST_CONFIG), false);
    LIMIT(payload, text_of('p', MANIFEST_PAYLOAD - 2), true);
    LIMIT(payload, text_of('p', MANIFEST_PAYLOAD - 1), true);
    LIMIT(payload, text_of('p', MANIFEST_PAYLOAD), false);
    LIMIT(payload, "p", true);
    LIMIT(payload, "", false);
    LIMIT(token_digest, text_of('a', DIGEST_HEX - 2), false);
    LIMIT(token_digest, text_of('a', DIGEST_HEX - 1), true);
    LIMIT(token_digest, text_of('a', DIGEST_HEX), false);
    LIMIT(token_digest, text_of('A', DIGEST_HEX - 1), false);
    LIMIT(n_tokens, 0, false);
    LIMIT(n_tokens, 1, true);
    LIMIT(n_tokens, INT32_MAX, true);
    LIMIT(n_tokens, (int64_t)INT32_MAX + 1, false);
    LIMIT(tier, 1, true);
    LIMIT(tier, 2, false);
    LIMIT(tier, -2, false);
    LIMIT(bytes, -1, false);
    LIMIT(bytes, 0, true);
    LIMIT(bytes, (int64_t)1 << 53, true);
    LIMIT(bytes, ((int64_t)1 << 53) + 1, false);
    LIMIT(kv_bytes, (int64_t)1 << 53, true);
    LIMIT(kv_bytes, ((int64_t)1 << 53) + 1, false);
    LIMIT(quality, 0, true);
    LIMIT(quality, -0x1p-1074, false);
    LIMIT(quality, 1, true);
    LIMIT(quality, 1 + 0x1p-52, false);
    LIMIT(frequency, 0, true);
    LIMIT(frequency, -0x1p-1074, false);
    LIMIT(ttft_s, 0, true);
    LIMIT(ttft_s, -0x1p-1074, false);
    LIMIT(ttft_s, (double)NAN, true);
#undef LIMIT
    tiers_release(&tiers);
}

Test(manifest, as_many_variants_as_there_may_be)
{
    struct manifest m = { .tiers = two_tiers() };
    struct variant_info variant[VARIANTS_MAX + 1];
    char config[VARIANTS_MAX + 1][16];
    struct err err;

    for (int i = 0; i <= VARIANTS_MAX; i++) {
        snprintf(config[i], sizeof(config[i]), "c%d", i);
        variant[i] = (struct variant_info){ config[i], 345, 0.5, (double)NAN };
    }
    for (int n = VARIANTS_MAX - 1; n <= VARIANTS_MAX + 1; n++) {
        struct variants many = { .at = variant, .n = n };
        char id[16];
        snprintf(id, sizeof(id), "x%d", n);
        struct placement p = stored(id);
        p.config = config[0];
        p.quality = 0.5;
        p.variants = &many;
        cr_assert_eq(manifest_add(&m, &p, &err), n <= VARIANTS_MAX ? 0 : ERR_FORMAT, "%d", n);
    }
    manifest_release(&m);
}

/* n of a piece of JSON, with commas in between. */
static void repeat(struct buf *out, const char *piece, int n)
{
    for (int i = 0; i < n; i++)
        buf_printf(out, "%s%s", i ? "," : "", piece);
}

/* Makes `path` with mkstemp() and writes two rows there; returns the file's text. */
static struct buf make_two(char *path)
{
    struct buf text = { 0 };
    struct err err;

    close(mkstemp(path));
    write_two(path);
    cr_assert_eq(file_read(&text, path, 1 << 20, &err), 0);
    return text;
}

/* Lists that may have a limited number of members: at the limit, and one more. */
Test(manifest, texts_at_their_limits)
{
    static const char total[] = "{\"name\":\"t\",\"utility\":1}";
    char path[] = "/tmp/evp-manifest-XXXXXX";
    struct buf good = make_two(path), text = { 0 };
    struct manifest m;
    struct err err;

    for (int n = MANIFEST_TOTALS - 1; n <= MANIFEST_TOTALS + 1; n++) {
        buf_clear(&text);
        buf_adds(&text, "\"totals\":[");
        repeat(&text, total, n);
        buf_adds(&text, "]");
        write_lie(path, &good, "\"totals\":[]", buf_str(&text));
        cr_assert_eq(manifest_read(&m, path, &err), n <= MANIFEST_TOTALS ? 0 : ERR_FORMAT, "%d totals", n);
        if (n <= MANIFEST_TOTALS) {
            cr_assert_eq(m.n_totals, n);
            manifest_release(&m);
        } else
            cr_assert(strstr(err.msg, "field 'totals' has more than 8 members"), "%s", err.msg);
    }
    for (int n = VARIANTS_MAX; n <= VARIANTS_MAX + 1; n++) { /* with the one that is there: one and two too many */
        buf_clear(&text);
        buf_adds(&text, "\"forms\":{\"config\":[");
        repeat(&text, "0", n);
        buf_adds(&text, ",");
        write_lie(path, &good, "\"forms\":{\"config\":[", buf_str(&text));
        cr_assert_eq(manifest_read(&m, path, &err), ERR_FORMAT);
        cr_assert(strstr(err.msg, "line 2: field 'forms' has more than 127 members"), "%s", err.msg);
    }
    for (size_t n = sizeof(m.solver) - 2; n <= sizeof(m.solver); n++) {
        buf_clear(&text);
        buf_printf(&text, "\"solver\":\"%s\"", text_of('s', n));
        write_lie(path, &good, "\"solver\":\"evicpress\"", buf_str(&text));
        cr_assert_eq(manifest_read(&m, path, &err), n < sizeof(m.solver) ? 0 : ERR_FORMAT, "%zu", n);
        if (n < sizeof(m.solver))
            manifest_release(&m);
    }
    static const struct {
        const char *prices;
        int code;
    } at[] = { { "[0]", ERR_FORMAT },      { "[0,1e300]", 0 },          { "[0,1.1e300]", ERR_FORMAT },
               { "[0,0,0]", ERR_FORMAT },  { "[0,-1e-9]", ERR_FORMAT }, { "[0,null]", ERR_FORMAT },
               { "[0,\"1\"]", ERR_FORMAT } };
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        buf_clear(&text);
        buf_printf(&text, "\"prices\":%s", at[i].prices);
        write_lie(path, &good, "\"prices\":[0,0]", buf_str(&text));
        cr_assert_eq(manifest_read(&m, path, &err), at[i].code, "%s", at[i].prices);
        if (!at[i].code)
            manifest_release(&m);
    }
    buf_release(&good);
    buf_release(&text);
    unlink(path);
}

/* Rows that the previous manifest stores and the new one lacks; and the order of ids, also where one begins another. */
Test(manifest, order_and_what_is_gone)
{
    static const char *const id[] = {
        "b", "", "a/0123456789012345678901", "a/0123456789012345678900", "a", "\xc3\xa4"
    };
    static const int sorted[] = { 1, 4, 3, 2, 0, 5 };
    int order[6];
    struct manifest before = { .tiers = two_tiers() };
    struct map now = { 0 };
    struct placement rows[] = { stored("a"), recomputed("b"), stored("c"), stored("d") };
    struct err err;

    cr_assert_eq(manifest_order(order, id, 6, &err), 0);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(order[i], sorted[i], "%d", i);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(manifest_add(&before, &rows[i], &err), 0);
    cr_assert(map_add(&now, "c", 1, NULL) >= 0);
    int i = 0;
    cr_assert_str_eq(manifest_gone(&before, &now, &i)->id, "a");
    i++;
    cr_assert_str_eq(manifest_gone(&before, &now, &i)->id, "d");
    cr_assert_eq(i, 3);
    i++;
    cr_assert_null(manifest_gone(&before, &now, &i));
    map_release(&now);
    manifest_release(&before);
}

/* Beginnings are alike for 18 to 22 bytes, and go on with any byte. */
Test(manifest, many_rows_are_ordered_by_ids)
{
    enum { MANY = 20001, SIZE = 32 };
    char *text = calloc(MANY, SIZE);
    const char **id = calloc(MANY, sizeof(*id));
    int order[MANY];
    struct err err;

    for (int i = 0; i < MANY; i++) {
        uint64_t h = digest_xxh3(&i, sizeof(i));
        snprintf(text + (size_t)i * SIZE, SIZE, "%.*s%c%c%c%c", 18 + (int)(h >> 60 & 3), "0123456789abcdefghijkl",
                 (char)(1 + h % 255), (char)(1 + (h >> 8) % 255), (char)(1 + (h >> 16) % 255),
                 (char)(1 + (h >> 24) % 255));
        id[i] = text + (size_t)i * SIZE;
    }
    cr_assert_eq(manifest_order(order, id, MANY, &err), 0);
    for (int i = 1; i < MANY; i++)
        cr_assert(strcmp(id[order[i - 1]], id[order[i]]) < 0);
    free(text);
    free(id);
}

/* Each is one change to good variants. */
Test(manifest, refuses_variants_that_lie)
{
    struct manifest m = { .tiers = two_tiers() };
    struct {
        struct variant_info variant[2];
        struct variants variants;
        const char *says;
    } bad[24];
    int n = 0;
    struct err err;
#define BAD(field, value, text)                                                                                        \
    memcpy(bad[n].variant, two_variants, sizeof(two_variants)), bad[n].variants = variants, bad[n].field = value,      \
                                                                bad[n++].says = text
    BAD(variant[0].config, "", "variant 1: field 'config' is empty");
    BAD(variant[0].config, "keydiff:drop=0.5", "variant 2: config 'keydiff:drop=0.5' comes twice");
    BAD(variant[1].config, "knorm:drop=0.5", "lacks config 'keydiff:drop=0.5', which is stored");
    BAD(variant[0].bytes, -1, "variant 1: field 'bytes' is below zero");
    BAD(variant[1].bytes, 344, "field 'bytes' differs from the variant's");
    BAD(variant[1].quality, 0.5, "field 'quality' differs from the variant's");
    BAD(variant[0].quality, (double)NAN, "variant 1: field 'quality' is not a number");
    BAD(variant[0].quality, 1.5, "variant 1: field 'quality' is above one");
    BAD(variant[0].quality, 0.1, "variant 1: field 'quality' is below min_quality");
    BAD(variant[0].decompress_s, -1, "variant 1: field 'decompress_s' is below zero");
    BAD(variant[0].decompress_s, HUGE_VAL, "variant 1: field 'decompress_s' is not a number");
    BAD(variants.prefill_s, -1, "field 'prefill_s' is below zero");
    BAD(variants.prefill_sd_s, -1, "field 'prefill_sd_s' is below zero");
    BAD(variants.question_sd_s, (double)NAN, "field 'question_sd_s' is not a number");
    BAD(variants.question_s, (double)NAN, "field 'question_s' is not a number");
    BAD(variants.min_quality, -1, "field 'min_quality' is below zero");
    BAD(variants.uses[5], -1, "field 'uses' is below zero");
    BAD(variants.uses[0], HUGE_VAL, "field 'uses' is not a number");
    BAD(variants.pin, "tape", "field 'pin': tier 'tape' is not in the header");
    BAD(variants.n, VARIANTS_MAX + 1, "field 'forms' has more than 127 members");
    BAD(variants.n, 0, "lacks config 'keydiff:drop=0.5', which is stored");
#undef BAD
    for (int i = 0; i < n; i++) {
        struct placement p = stored("x");
        bad[i].variants.at = bad[i].variant;
        p.variants = &bad[i].variants;
        cr_assert_eq(manifest_add(&m, &p, &err), ERR_FORMAT, "%s", bad[i].says);
        cr_assert(strstr(err.msg, bad[i].says), "'%s' does not say '%s'", err.msg, bad[i].says);
    }
    manifest_release(&m);
}

/* Each is one change to the text of a good manifest. */
Test(manifest, refuses_texts_that_lie)
{
    static const char *const change[][3] = {
        { "\"tier\":\"ssd\"", "\"tier\":\"tape\"", "line 2: tier 'tape' is not in the header" },
        { "\"bytes\":345", "\"bytes\":345.5", "line 2: field 'bytes' is not a whole number" },
        { "\"bytes\":345", "\"bytes\":1e30", "line 2: field 'bytes' is not a whole number" },
        { "\"bytes\":345", "\"bytes\":-345", "line 2: field 'bytes' is below zero" },
        { "\"utility\":-0.5", "\"utility\":NaN", "line 2: malformed JSON" },
        { "\"utility\":-0.5", "\"utility\":1e999", "line 2: field 'utility' is not a number" },
        { "\"operation\":\"insert\"", "\"operation\":\"burn\"", "line 2: field 'operation' is 'burn'" },
        { "\"id\":\"a\"", "\"id\":\"b/\xc3\xa4 \\\"\"", "line 3: id 'b/\xc3\xa4 \"' comes twice" },
        { "\"payload\":\"a\"", "\"payload\":\"/etc/passwd\"", "line 2: field 'payload' is not a plain file name" },
        { "\"alpha\":0.5", "\"alpha\":\"x\"", "line 1: field 'alpha' is not a number" },
        { "\"uri\":\"/dev/shm/evp\"", "\"url\":\"/dev/shm/evp\"", "line 1: tier 'dram': field 'uri' is missing" },
        { "\"evp\":\"manifest\"", "\"evp\":\"contexts\"", "holds contexts, not a manifest" },
        { "\"version\":2", "\"version\":3", "is of version 3; this program reads version 1 to 2" },
        { "\"version\":2", "\"version\":0", "is of version 0" },
        { "\"version\":2", "\"version\":1", "line 2: variant 1: field 'config' is 1, but the header lists 0 configs" },
        { "\"configs\":[", "\"giconfs\":[", "line 1: field 'configs' is missing" },
        { "\"configs\":[", "\"configs\":{},\"x\":[", "line 1: field 'configs' is not an array" },
        { "\"configs\":[", "\"configs\":[7,", "line 1: field 'configs' holds something that is not a string" },
        { "\"configs\":[", "\"configs\":[\"\",", "line 1: field 'configs' is empty" },
        { "\"configs\":[", "\"configs\":[\"none\",\"none\",", "line 1: field 'configs' has 'none' twice" },
        { "\"evp\":\"manifest\"", "\"pve\":\"manifest\"", "is not a manifest" },
        { "\"forms\":{", "\"forms\":[{\"a\":", "line 2: malformed JSON" },
        { "\"forms\":{", "\"forms\":[],\"smrof\":{", "line 2: field 'forms' is not an object" },
        { "\"forms\":{\"config\"", "\"forms\":{\"gifnoc\"", "line 2: field 'config' of 'forms' is missing" },
        { "\"forms\":{\"config\":", "\"forms\":{\"config\":7,\"x\":", "field 'config' of 'forms' is not an array" },
        { "\"forms\":{\"config\":[", "\"forms\":{\"config\":[0,",
          "field 'bytes' of 'forms' has 2 members, 'config' has 3" },
        { "\"config\":[1,0]", "\"config\":[3,0]",
          "line 2: variant 1: field 'config' is 3, but the header lists 3 configs" },
        { "\"config\":[1,0]", "\"config\":[-1,0]",
          "line 2: variant 1: field 'config' is -1, but the header lists 3 configs" },
        { "\"config\":[1,0]", "\"config\":[0.5,0]", "line 2: variant 1: field 'config' is not a whole number" },
        { "\"config\":[1,0]", "\"config\":[0,0]", "line 2: variant 2: config 'keydiff:drop=0.5' comes twice" },
        { "\"bytes\":[100", "\"bytes\":[0.1", "line 2: variant 1: field 'bytes' is not a whole number" },
        { "\"quality\":[0.25", "\"quality\":[null", "line 2: variant 1: field 'quality' is not a number" },
        { "\"decompress_s\":[null", "\"decompress_s\":[true",
          "line 2: variant 1: field 'decompress_s' is not a number" },
        { "\"decompress_s\":[null", "\"decompress_s\":[0,0",
          "'decompress_s' of 'forms' has 3 members, 'config' has 2" },
        { "\"prefill_s\":1.5", "\"prefill\":1.5", "line 2: field 'prefill_s' is missing" },
        { "\"pin\":\"ssd\"", "\"pin\":\"tape\"", "line 2: field 'pin': tier 'tape' is not in the header" },
        { "\"min_quality\":0.125", "\"min_quality\":-1", "line 1: field 'min_quality' is below zero" },
        { "\"rows\":2", "\"rows\":3", "has 2 rows, but its end line says 3" },
        { "{\"end\":true", "{\"dne\":true", "line 4: field 'id' is missing" },
    };
    char path[] = "/tmp/evp-manifest-XXXXXX";
    struct buf good = make_two(path);
    struct manifest m;
    struct err err;

    for (size_t i = 0; i < sizeof(change) / sizeof(*change); i++) {
        write_lie(path, &good, change[i][0], change[i][1]);
        cr_assert_eq(manifest_read(&m, path, &err), ERR_FORMAT, "%s", change[i][1]);
        cr_assert(strstr(err.msg, change[i][2]), "'%s' does not say '%s'", err.msg, change[i][2]);
    }
    buf_release(&good);
    unlink(path);
}

/* A manifest cut anywhere is refused; only without its last line end is it whole. */
Test(manifest, refuses_every_cut)
{
    char path[] = "/tmp/evp-manifest-XXXXXX";
    struct buf good = make_two(path);
    struct manifest m;
    struct err err;

    for (size_t n = 0; n + 1 < good.n; n += 7) {
        cr_assert_eq(truncate(path, 0), 0);
        FILE *f = fopen(path, "wb");
        fwrite(good.at, 1, n, f);
        fclose(f);
        cr_assert_eq(manifest_read(&m, path, &err), ERR_FORMAT, "cut at %zu", n);
    }
    buf_release(&good);
    unlink(path);
}

Test(manifest, payload_names_are_safe_and_tell_contexts_apart)
{
    char *name = manifest_payload_name("../qasper/\n\xc3\xa4", digest_a, "snapkv:drop=0.5+kivi:bits=4");
    cr_assert(manifest_payload_safe(name), "%s", name);
    char *again = manifest_payload_name("../qasper/\n\xc3\xa4", digest_a, "snapkv:drop=0.5+kivi:bits=4");
    cr_assert_str_eq(name, again);
    char *other = manifest_payload_name("../qasper/\n\xc3\xb6", digest_a, "snapkv:drop=0.5+kivi:bits=4");
    cr_assert_str_neq(name, other);
    cr_assert(manifest_payload_made(name) && manifest_payload_made(other));
    cr_assert(manifest_payload_made("-0123456789abcdef.safetensors"));
    const char *const made_by_others[] = { "",
                                           "0123456789abcdef.safetensors",
                                           "model-00001-of-00002.safetensors",
                                           "a-0123456789abcdeF.safetensors",
                                           "a-0123456789abcde.safetensors",
                                           "a-00123456789abcdef.safetensors",
                                           "a-0123456789abcdef.safetensors.tmp.a1b2c3",
                                           "a-0123456789abcdef-safetensors",
                                           "a b-0123456789abcdef.safetensors",
                                           ".a-0123456789abcdef.safetensors" };
    for (size_t i = 0; i < sizeof(made_by_others) / sizeof(*made_by_others); i++)
        cr_assert_not(manifest_payload_made(made_by_others[i]), "%s", made_by_others[i]);
    free(name);
    free(again);
    free(other);
    char id[1000];
    memset(id, '.', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    name = manifest_payload_name(id, digest_a, "none");
    cr_assert(manifest_payload_safe(name), "%s", name);
    free(name);
    for (int c = 1; c < 256; c++)
        cr_assert_eq(manifest_payload_safe((char[]){ 'x', (char)c, '\0' }),
                     (c < 128 && isalnum(c)) || c == '-' || c == '_' || c == '.', "%d", c);
}
