/* payload.c - the metadata of a payload: written from one table, and read with every check that needs no compression
 * method. */
#include "formats/payload.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/parse.h"

#include <stdio.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------ */

static int want_meta(const struct safetensors *st, const char *key, const char **value, struct err *err)
{
    *value = safetensors_meta(st, key);
    return *value ? 0 : err_set(err, ERR_FORMAT, "metadata '%s' is missing", key);
}

static int want_digest(const struct safetensors *st, const char *key, const char **value, struct err *err)
{
    if (want_meta(st, key, value, err))
        return err->code;
    return digest_is_hex(*value) ? 0 : err_set(err, ERR_FORMAT, "metadata '%s' is not a SHA-256 digest", key);
}

static int read_metadata(struct payload *p, struct err *err)
{
    const char *kind, *version, *count;
    int64_t n_tokens;

    if (want_meta(&p->st, "evp", &kind, err) || want_meta(&p->st, "version", &version, err) ||
        want_meta(&p->st, "config", &p->config, err) || want_meta(&p->st, "n_tokens", &count, err) ||
        want_digest(&p->st, "model_digest", &p->model_digest, err) ||
        want_digest(&p->st, "token_digest", &p->token_digest, err))
        return err->code;
    if (strcmp(kind, "payload") != 0)
        return err_set(err, ERR_FORMAT, "not a payload");
    if (!parse_int(version, &p->version) || p->version != PAYLOAD_VERSION)
        return err_set(err, ERR_FORMAT, "a payload of version '%s'; this program reads version %d", version,
                       PAYLOAD_VERSION);
    if (!parse_int(count, &n_tokens) || n_tokens < 1 || n_tokens > INT32_MAX)
        return err_set(err, ERR_FORMAT, "metadata 'n_tokens' is '%.40s', not a number from 1 to %d", count, INT32_MAX);
    p->n_tokens = (int)n_tokens;
    p->origin = (struct payload_origin){ .producer = safetensors_meta(&p->st, "producer"),
                                         .model_name = safetensors_meta(&p->st, "model_name"),
                                         .cache = safetensors_meta(&p->st, "cache"),
                                         .lengths = safetensors_meta(&p->st, "lengths"),
                                         .errors = safetensors_meta(&p->st, "errors") };
    return 0;
}

static int find_tokens(struct payload *p, struct err *err)
{
    const struct st_tensor want = payload_tokens(p->n_tokens);

    p->tokens = safetensors_find(&p->st, want.name);
    if (!p->tokens)
        return err_set(err, ERR_FORMAT, "tensor '%s' is missing", want.name);
    if (p->tokens->type != want.type || p->tokens->n_dims != 1 || p->tokens->dim[0] != want.dim[0])
        return err_set(err, ERR_FORMAT, "tensor '%s' is not I32 of shape [%d]", want.name, p->n_tokens);
    return 0;
}

static int check_container(struct payload *p, struct err *err)
{
    return read_metadata(p, err) ? err->code : find_tokens(p, err);
}

int payload_parse_header(struct payload *p, const void *bytes, size_t n, uint64_t size, struct err *err)
{
    *p = (struct payload){ 0 };
    if (safetensors_parse_header(&p->st, bytes, n, size, err))
        return err->code;
    if (check_container(p, err)) {
        payload_close(p);
        return err->code;
    }
    return 0;
}

int payload_parse(struct payload *p, const void *bytes, size_t n, struct err *err)
{
    return payload_parse_header(p, bytes, n, n, err);
}

int payload_open(struct payload *p, const char *path, struct err *err)
{
    *p = (struct payload){ 0 };
    if (safetensors_open(&p->st, path, err))
        return err->code;
    if (check_container(p, err)) {
        payload_close(p);
        return err_wrap(err, "'%s'", path);
    }
    return 0;
}

void payload_close(struct payload *p)
{
    safetensors_close(&p->st);
    *p = (struct payload){ 0 };
}

static int check_token_digest(const struct payload *p, struct err *err)
{
    char hex[DIGEST_HEX];

    /* Ids are little-endian in the file as in the digest. */
    if (digest_sha256(p->tokens->at, (size_t)p->tokens->bytes, hex, err))
        return err->code;
    return strcmp(hex, p->token_digest) == 0
               ? 0
               : err_set(err, ERR_FORMAT, "tensor '%s' has digest %s, not the metadata's 'token_digest'",
                         p->tokens->name, hex);
}

struct json *payload_sums(const struct payload *p, struct err *err)
{
    const char *text = safetensors_meta(&p->st, "checksums");
    struct json *sums = text ? json_parse(text, strlen(text), err) : NULL;

    if (!sums)
        err_set(err, ERR_FORMAT, "metadata 'checksums' is not a JSON object");
    return sums;
}

const char *payload_sum(const struct json *sums, const char *tensor)
{
    return json_text(json_get(sums, tensor));
}

struct json *payload_head_sums(const struct payload *p)
{
    const char *text = safetensors_meta(&p->st, "head_checksums");
    struct err err;

    return text ? json_parse(text, strlen(text), &err) : NULL;
}

const char *payload_head_sum(const struct json *member, const struct st_tensor *t)
{
    enum { DIGITS = XXH3_HEX - 1 };
    const char *sum = json_text(member);

    return sum && t->n_dims > 0 && t->dim[0] > 0 && strlen(sum) == (uint64_t)t->dim[0] * DIGITS ? sum : NULL;
}

/* Compares the heads of a tensor with their checksums, if it has any. */
static int check_heads(const struct st_tensor *t, const struct json *sums, struct err *err)
{
    const char *want = payload_head_sum(json_get(sums, t->name), t), *at = t->at;
    char hex[XXH3_HEX];

    for (int64_t g = 0; want && g < t->dim[0]; g++, want += XXH3_HEX - 1) {
        size_t n = (size_t)(t->bytes / (uint64_t)t->dim[0]);
        digest_xxh3_hex(at + (size_t)g * n, n, hex);
        if (strncmp(want, hex, XXH3_HEX - 1) != 0)
            return err_set(err, ERR_FORMAT, "head %lld of tensor '%s' has checksum %s, not %.16s: the file is damaged",
                           (long long)g, t->name, hex, want);
    }
    return 0;
}

static int check_tensor(const struct st_tensor *t, const struct json *sums, struct err *err)
{
    const char *want = payload_sum(sums, t->name);
    char hex[XXH3_HEX];

    if (!want)
        return err_set(err, ERR_FORMAT, "tensor '%s' has no checksum", t->name);
    digest_xxh3_hex(t->at, (size_t)t->bytes, hex);
    return strcmp(want, hex) == 0 ? 0
                                  : err_set(err, ERR_FORMAT, "tensor '%s' has checksum %s, not %s: the file is damaged",
                                            t->name, hex, want);
}

int payload_check_sums(const struct payload *p, struct err *err)
{
    struct json *sums = payload_sums(p, err), *heads = payload_head_sums(p);
    int code = sums ? 0 : err->code;

    for (int i = 0; i < p->st.n && !code; i++) {
        code = check_tensor(&p->st.tensor[i], sums, err);
        if (!code)
            code = check_heads(&p->st.tensor[i], heads, err);
    }
    json_free(sums);
    json_free(heads);
    return code ? code : check_token_digest(p, err);
}

/* layers.N.positions, the list of kept tokens: a serving cache does not hold it. */
static bool is_positions(const char *name)
{
    static const char end[] = ".positions";
    size_t n = strlen(name);

    return n > sizeof(end) - 1 && strcmp(name + n - (sizeof(end) - 1), end) == 0;
}

int64_t payload_bytes(const struct payload *p)
{
    uint64_t bytes = 0; /* no overflow: tensors are disjoint ranges of one file */

    for (int i = 0; i < p->st.n; i++)
        if (&p->st.tensor[i] != p->tokens && !is_positions(p->st.tensor[i].name))
            bytes += p->st.tensor[i].bytes;
    return (int64_t)bytes;
}

/* ---- writing ------------------------------------------------------------ */

struct st_tensor payload_tokens(int n)
{
    return (struct st_tensor){ .name = "tokens", .type = ST_I32, .n_dims = 1, .dim = { n } };
}

static void put_sums(const struct payload_made *made, struct buf *sums, struct buf *heads)
{
    struct json_out json = { .buf = sums }, json_heads = { .buf = heads };

    json_begin(&json, NULL, '{');
    for (int i = 0; i < made->n; i++)
        json_put_text(&json, made->tensor[i].name, made->checksum[i]);
    json_end(&json, '}');
    if (!made->head_checksum)
        return;
    json_begin(&json_heads, NULL, '{');
    for (int i = 0; i < made->n; i++)
        if (made->head_checksum[i])
            json_put_text(&json_heads, made->tensor[i].name, made->head_checksum[i]);
    json_end(&json_heads, '}');
}

int payload_write_header(struct file_out *out, const struct payload_made *made, struct err *err)
{
    struct buf sums = { 0 }, heads = { 0 };
    char n_tokens[TEXT_SHORT], version[TEXT_SHORT];

    put_sums(made, &sums, &heads);
    if (buf_failed(&sums) || buf_failed(&heads)) {
        buf_release(&sums);
        buf_release(&heads);
        return err_nomem(err);
    }
    snprintf(n_tokens, sizeof(n_tokens), "%d", made->n_tokens);
    snprintf(version, sizeof(version), "%d", PAYLOAD_VERSION);
    const struct st_meta all[] = {
        { "evp", "payload" },
        { "version", version },
        { "config", made->config },
        { "model_digest", made->model_digest },
        { "token_digest", made->token_digest },
        { "n_tokens", n_tokens },
        { "checksums", sums.at },
        { "head_checksums", heads.at },
        { "producer", made->origin.producer },
        { "model_name", made->origin.model_name },
        { "cache", made->origin.cache },
        { "lengths", made->origin.lengths },
        { "errors", made->origin.errors },
    };
    enum { N = sizeof(all) / sizeof(*all) };
    struct st_meta meta[N];
    struct st_header header = { made->tensor, made->n, meta, 0 };
    for (int i = 0; i < N; i++)
        if (all[i].value)
            meta[header.n_meta++] = all[i];
    int code = safetensors_write_header(out, &header, err);
    buf_release(&sums);
    buf_release(&heads);
    return code;
}
