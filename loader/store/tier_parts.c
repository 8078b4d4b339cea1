/* tier_parts.c - the parts of contexts in a store's index: of all payloads that have parts, or none. Computed from the
 * tokens in the payloads.
 */
#include "formats/payload_prefix.h"
#include "loader/store/blob_payload.h"
#include "loader/store/tier_store.h"

#include <stdlib.h>
#include <string.h>

int tier_store_has_parts(struct tier_store *s, int i, bool *has, struct err *err)
{
    struct state_parts parts;
    int got = s->in.at[i].row ? state_get_parts(s->state, &s->in.at[i], &parts, err) : 0;

    *has = got == 1;
    if (*has)
        state_parts_release(&parts);
    return got < 0 ? got : 0;
}

static bool may_have_parts(const struct entry *e)
{
    return e->row && e->n_tokens > DIGEST_CHUNK && config_has_parts(e->config);
}

int tier_store_other_parts(struct tier_store *s, enum tier_store_parts want, int64_t *n, struct err *err)
{
    bool has;

    *n = 0;
    if (want == STORE_WHOLE && !state_has_parts(s->state))
        return 0;
    for (int i = 0; i < s->in.n; i++) {
        if (want == STORE_PARTS && !may_have_parts(&s->in.at[i]))
            continue;
        if (tier_store_has_parts(s, i, &has, err))
            return err->code;
        *n += has == (want == STORE_WHOLE);
    }
    return 0;
}

/* ---- from a payload's tokens ------------------------------------------------------------ */

/* Fills the digests; the tokens must be those of the entry. */
static int sum_chunks(struct state_parts *parts, const struct entry *e, const char *tokens, struct err *err)
{
    enum { CHUNK = DIGEST_CHUNK * sizeof(int32_t) };
    struct digest *d = digest_new(err);
    char hex[DIGEST_HEX];
    int code = d ? 0 : err->code;

    for (int i = 0; i < parts->n && !code; i++) {
        digest_add(d, tokens + (size_t)i * CHUNK, CHUNK);
        code = digest_peek_tokens(d, NULL, 0, parts->digest[i], err);
    }
    if (code) {
        digest_end(d, NULL);
        return code;
    }
    digest_add(d, tokens + (size_t)parts->n * CHUNK, (size_t)e->n_tokens * sizeof(int32_t) - (size_t)parts->n * CHUNK);
    digest_end(d, hex);
    return strcmp(hex, e->token_digest) == 0 ? 0 : err_set(err, ERR_FORMAT, "its tokens are damaged");
}

static int read_parts(struct state_parts *parts, const struct entry *e, const struct payload *p, const struct blob *b,
                      struct err *err)
{
    char *tokens = malloc((size_t)p->tokens->bytes);
    int code;

    parts->n = (p->n_tokens - 1) / DIGEST_CHUNK;
    parts->header = (uint32_t)payload_header_bytes(p, (uint64_t)e->size);
    parts->digest = malloc((size_t)parts->n * sizeof(*parts->digest) + 1);
    if (!tokens || !parts->digest)
        code = err_nomem(err);
    else if (p->n_tokens != e->n_tokens)
        code = err_set(err, ERR_FORMAT, "it is another payload");
    else
        code = blob_read(b, tokens, (size_t)p->tokens->bytes, p->tokens->offset, err);
    if (!code)
        code = sum_chunks(parts, e, tokens, err);
    free(tokens);
    return code;
}

/* Does the header of the longest part, the longest of all parts' headers, fit the header of the payload? */
static int try_header(const struct payload *p, uint64_t size, int n_tokens, struct err *err)
{
    struct buf header = { 0 };
    char(*checksum)[XXH3_HEX] = calloc((size_t)p->st.n + 1, sizeof(*checksum));
    const struct payload_part part = { n_tokens, p->token_digest, checksum };

    for (int i = 0; checksum && i < p->st.n; i++)
        digest_xxh3_hex("", 0, checksum[i]);
    int code = checksum ? payload_part_header(p, size, &part, &header, err) : err_nomem(err);
    buf_release(&header);
    free(checksum);
    return code;
}

/* Sets *parts; empty if the payload has no parts, such as one from another program. */
static int parts_of(struct state_parts *parts, const struct entry *e, const struct payload *p, const struct blob *b,
                    struct err *err)
{
    int code = payload_check_parts(p, err);

    if (!code)
        code = try_header(p, (uint64_t)e->size, p->n_tokens - 1, err);
    if (code)
        return code == ERR_FORMAT ? 0 : code;
    return read_parts(parts, e, p, b, err);
}

int tier_store_read_parts(struct tier_store *s, int i, struct err *err)
{
    struct blob_payload p;
    struct blob b;
    struct state_parts parts = { 0 };
    const struct entry *e = &s->in.at[i];
    bool has = !may_have_parts(e);

    if (!has && tier_store_has_parts(s, i, &has, err))
        return err->code;
    if (has)
        return 0;
    if (tier_store_get(s, e, &b, err))
        return err->code;
    int code = blob_payload_open(&p, &b, (uint64_t)e->size, err);
    if (!code)
        code = parts_of(&parts, e, &p.payload, &b, err);
    if (code)
        err_wrap(err, "'%s/%s'", s->tier->uri, e->file);
    else
        code = tier_store_put_parts(s, i, &parts, err);
    state_parts_release(&parts);
    blob_payload_close(&p);
    blob_close(&b);
    return code;
}

int tier_store_set_parts(struct tier_store *s, enum tier_store_parts want, struct err *err)
{
    int code = 0;

    for (int i = 0; i < s->in.n && !code; i++)
        if (want == STORE_PARTS)
            code = tier_store_read_parts(s, i, err);
        else if (s->in.at[i].row)
            code = tier_store_drop_parts(s, i, err);
    return code || tier_store_commit(s, err) || tier_store_publish(s, err) ? err->code : 0;
}
