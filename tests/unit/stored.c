/* Entries of an index or a receipt at their limits: what is let in one below, at and above each. */
#include "base/buf.h"
#include "formats/manifest.h"
#include "formats/operation.h"
#include "formats/receipt.h"
#include "formats/stored.h"

#include <criterion/criterion.h>
#include <string.h>

static const char digest[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

struct fields {
    const char *id, *config, *token_digest, *checksum, *file;
    long long n_tokens, bytes, size;
};

static const struct fields good = {
    "x", "none", digest, "0123456789abcdef", "evp-payloads/0f/0f0123456789abcdef0123456789abcd", 1, 0, 1
};

static const char *letters(char c, int n)
{
    static char text[2 * MANIFEST_ID];

    memset(text, c, (size_t)n);
    text[n] = '\0';
    return text;
}

/* Whether an entry is let in; one that is comes back as it was written. */
static bool accepted(struct fields f)
{
    struct buf text = { 0 }, again = { 0 };
    struct json_out w = { .buf = &again };
    struct entry e;
    struct err err;

    buf_printf(&text,
               "{\"id\":\"%s\",\"token_digest\":\"%s\",\"n_tokens\":%lld,\"config\":\"%s\",\"model_digest\":\"%s\","
               "\"bytes\":%lld,\"file\":\"%s\",\"size\":%lld,\"checksum\":\"%s\"}",
               f.id, f.token_digest, f.n_tokens, f.config, digest, f.bytes, f.file, f.size, f.checksum);
    struct json *row = json_parse(text.at, text.n, &err);
    cr_assert_not_null(row, "%s", err.msg);
    int code = entry_from_json(&e, row, &err);
    json_free(row);
    cr_assert(code == 0 || code == ERR_FORMAT);
    if (!code) {
        json_begin(&w, NULL, '{');
        entry_to_json(&e, &w);
        json_end(&w, '}');
        cr_assert_str_eq(buf_str(&again), buf_str(&text));
        entry_release(&e);
    }
    buf_release(&text);
    buf_release(&again);
    return code == 0;
}

#define LIMIT(field, value, ok)                                                                                        \
    do {                                                                                                               \
        struct fields f = good;                                                                                        \
        f.field = value;                                                                                               \
        cr_assert_eq(accepted(f), ok, #field " = " #value);                                                            \
    } while (0)

Test(stored, texts_at_their_limits)
{
    cr_assert(accepted(good));
    LIMIT(id, "", false);
    LIMIT(id, letters('i', MANIFEST_ID - 2), true);
    LIMIT(id, letters('i', MANIFEST_ID - 1), true);
    LIMIT(id, letters('i', MANIFEST_ID), false);
    LIMIT(config, "", false);
    LIMIT(config, letters('c', MANIFEST_CONFIG - 2), true);
    LIMIT(config, letters('c', MANIFEST_CONFIG - 1), true);
    LIMIT(config, letters('c', MANIFEST_CONFIG), false);
    LIMIT(token_digest, letters('a', DIGEST_HEX - 2), false);
    LIMIT(token_digest, letters('a', DIGEST_HEX), false);
    LIMIT(token_digest, letters('g', DIGEST_HEX - 1), false);
    LIMIT(checksum, "0123456789abcde", false);
    LIMIT(checksum, "0123456789abcdef0", false);
    LIMIT(checksum, "0123456789abcdeF", false);
}

Test(stored, numbers_at_their_limits)
{
    LIMIT(n_tokens, 0, false);
    LIMIT(n_tokens, 2, true);
    LIMIT(n_tokens, INT32_MAX, true);
    LIMIT(n_tokens, (long long)INT32_MAX + 1, false);
    LIMIT(bytes, -1, false);
    LIMIT(bytes, 1, true);
    LIMIT(bytes, 1ll << 53, true);
    LIMIT(bytes, (1ll << 53) + 2, false);
    LIMIT(size, 0, false);
    LIMIT(size, 2, true);
    LIMIT(size, 1ll << 53, true);
    LIMIT(size, (1ll << 53) + 2, false);
}

/* A name of ours: that of an object. */
Test(stored, file_names_at_their_limits)
{
    LIMIT(file, "evp-payloads/0f/0f0123456789abcdef0123456789abcd", true);
    LIMIT(file, "evp-payloads/0f/0f0123456789abcdef0123456789abc", false);
    LIMIT(file, "evp-payloads/0f/0f0123456789abcdef0123456789abcde", false);
    LIMIT(file, "evp-payloads/0f/1f0123456789abcdef0123456789abcd", false);
    LIMIT(file, "evp-payloads/0F/0F0123456789abcdef0123456789abcd", false);
    LIMIT(file, "evp-payloads/../0f0123456789abcdef0123456789abcd", false);
    LIMIT(file, "evp-payloads/0f/0f0123456789abcdef0123456789ab/x", false);
    LIMIT(file, "evp-0123456789abcdef-x", false);
    LIMIT(file, "/evp-payloads/0f/0f0123456789abcdef0123456789abcd", false);
}

/* Everything that names a cache counts, and what is only its circumstance does not. */
Test(stored, same_is_context_tokens_config_and_model)
{
    char id[] = "x", other_id[] = "y", config[] = "none", other_config[] = "kivi:bits=2";
    struct entry a = { .id = id, .config = config, .token_digest = "a", .model_digest = "m", .n_tokens = 1 }, b = a;

    b.bytes = b.size = 7;
    b.row = 7;
    b.tier = 3;
    cr_assert(entry_same(&a, &b));
    b = a, b.id = other_id;
    cr_assert_not(entry_same(&a, &b));
    b = a, b.config = other_config;
    cr_assert_not(entry_same(&a, &b));
    b = a, b.token_digest[0] = 'b';
    cr_assert_not(entry_same(&a, &b));
    b = a, b.model_digest[0] = 'n';
    cr_assert_not(entry_same(&a, &b));
    b = a, b.model_digest[0] = '\0';
    cr_assert_not(entry_same(&a, &b), "a model that is not known is another one");
}

/* Whether a receipt is let in whose one row, a recomputed context, has this operation. */
static bool receipt_accepted(const char *operation)
{
    struct buf text = { 0 };
    struct receipt r;
    struct rows_in in;
    struct err err;

    buf_printf(
        &text,
        "{\"evp\":\"receipt\",\"version\":1,\"manifest_digest\":\"%s\",\"tiers\":[{\"name\":\"a\",\"kind\":\"gpu\","
        "\"uri\":\"gpu0\",\"capacity_bytes\":1,\"read_bytes_per_s\":1,\"write_bytes_per_s\":1,\"latency_s\":0}]}\n"
        "{\"id\":\"x\",\"tier\":\"recompute\",\"operation\":\"%s\"}\n{\"end\":true,\"rows\":1}\n",
        digest, operation);
    cr_assert_eq(rows_open_bytes(&in, &(struct rows_bytes){ "receipt", text.at, text.n }, "receipt", &err), 0, "%s",
                 err.msg);
    int code = receipt_parse(&r, &in, &err);
    cr_assert(code == 0 || (code == ERR_FORMAT && strstr(err.msg, "line 2: field 'operation' is ")), "%s", err.msg);
    rows_close(&in);
    receipt_release(&r);
    buf_release(&text);
    return code == 0;
}

Test(stored, a_receipt_has_known_operations)
{
    for (int i = 0; i < N_OPERATIONS; i++)
        cr_assert(receipt_accepted(operation_name((enum operation)i)));
    cr_assert_not(receipt_accepted(""));
    cr_assert_not(receipt_accepted("burn"));
    cr_assert_not(receipt_accepted("inserts"));
}
