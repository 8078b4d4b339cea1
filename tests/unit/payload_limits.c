/* The largest shapes and metadata of payloads. */
#include "base/buf.h"
#include "variants/packed_payload.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char model[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/* What a payload claims to be. */
struct claim {
    const char *n_tokens, *model_digest;
    int64_t heads, width;
};

/* Parses a payload of one layer: keys and values of zeros for one token, whatever the claim, and no checksums. */
static int parse_claim(const struct claim *c, struct err *err)
{
    struct buf b = { 0 };
    struct packed_payload p;
    int64_t bytes = 2 * c->heads * c->width;

    buf_printf(&b,
               "{\"__metadata__\":{\"evp\":\"payload\",\"version\":\"2\",\"config\":\"none\","
               "\"model_digest\":\"%s\",\"token_digest\":\"%s\",\"n_tokens\":\"%s\"},"
               "\"tokens\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]}",
               c->model_digest, model, c->n_tokens);
    for (int i = 0; i < 2; i++)
        buf_printf(&b, ",\"layers.0.%c\":{\"dtype\":\"BF16\",\"shape\":[%lld,1,%lld],\"data_offsets\":[%lld,%lld]}",
                   "kv"[i], (long long)c -> heads, (long long)c -> width, (long long)(4 + i * bytes),
                   (long long)(4 + (i + 1) * bytes));
    buf_addc(&b, '}');
    uint64_t header = b.n;
    size_t n = 8 + b.n + 4 + 2 * (size_t)bytes;
    char *image = calloc(1, n);
    memcpy(image, &header, 8);
    memcpy(image + 8, b.at, b.n);
    int code = packed_payload_parse(&p, image, n, PAYLOAD_HEADER, err);
    cr_assert(code || (p.file.n_tokens == 1 && p.shape.n_kv_heads == c->heads && p.shape.head_dim == c->width));
    if (!code)
        packed_payload_close(&p);
    free(image);
    buf_release(&b);
    return code;
}

Test(payload, takes_shapes_up_to_their_limits)
{
    static const struct {
        int64_t heads, width;
        bool good;
    } shape[] = { { 0, 1, false },    { 1, 0, false },   { 1, 1, true },    { 4095, 1, true }, { 4096, 1, true },
                  { 4097, 1, false }, { 1, 8191, true }, { 1, 8192, true }, { 1, 8193, false } };
    struct err err;

    for (size_t i = 0; i < sizeof(shape) / sizeof(*shape); i++) {
        int code = parse_claim(&(struct claim){ "1", model, shape[i].heads, shape[i].width }, &err);
        cr_assert_eq(code, shape[i].good ? 0 : ERR_FORMAT, "%d heads of %d: %s", (int)shape[i].heads,
                     (int)shape[i].width, code ? err.msg : "good");
        cr_assert(!code || strstr(err.msg, "no tensor 'layers.0.k' of shape [heads, rows, head_dim]"), "%s", err.msg);
    }
}

Test(payload, takes_metadata_up_to_their_limits)
{
    static const char *const bad[] = { "0", "-1", "2147483648", "1.5", "", "99999999999999999999" };
    char digest[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct err err;

    cr_assert_eq(parse_claim(&(struct claim){ "1", model, 1, 2 }, &err), 0, "%s", err.msg);
    for (int i = 0; i < 6; i++) {
        cr_assert_eq(parse_claim(&(struct claim){ bad[i], model, 1, 2 }, &err), ERR_FORMAT);
        cr_assert(strstr(err.msg, "'n_tokens' is"), "%s", err.msg);
    }
    cr_assert_eq(parse_claim(&(struct claim){ "2147483647", model, 1, 2 }, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "'tokens' is not I32 of shape [2147483647]"), "%s", err.msg);
    cr_assert_eq(strlen(digest), 65);
    cr_assert_eq(parse_claim(&(struct claim){ "1", digest, 1, 2 }, &err), ERR_FORMAT);
    digest[64] = '\0';
    cr_assert_eq(parse_claim(&(struct claim){ "1", digest, 1, 2 }, &err), 0, "%s", err.msg);
    digest[63] = '\0';
    cr_assert_eq(parse_claim(&(struct claim){ "1", digest, 1, 2 }, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "'model_digest' is not a SHA-256 digest"), "%s", err.msg);
}
