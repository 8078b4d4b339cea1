/* state_parts.c - the parts of contexts in a state: one row for each payload with parts in the index. */
#include "loader/store/state_internal.h"

#include <stdlib.h>
#include <string.h>

bool state_has_parts(const struct tier_state *s)
{
    return s->has_parts;
}

void state_parts_release(struct state_parts *parts)
{
    free(parts->digest);
    *parts = (struct state_parts){ 0 };
}

static int read_parts(struct tier_state *s, const struct entry *e, struct state_parts *parts, struct err *err)
{
    sqlite3_stmt *q = s->statement[GET_PARTS];
    const void *digests = sqlite3_column_blob(q, 1);
    size_t n = (size_t)sqlite3_column_bytes(q, 1);
    int64_t header = sqlite3_column_int64(q, 0);

    parts->digest = malloc(n + 1);
    if (!parts->digest)
        return err_nomem(err);
    if (n)
        memcpy(parts->digest, digests, n);
    parts->header = (uint32_t)header;
    parts->n = (int)(n / sizeof(*parts->digest));
    bool whole =
        n % sizeof(*parts->digest) == 0 && header == parts->header && (int64_t)parts->n * DIGEST_CHUNK < e->n_tokens;
    return whole ? 1 : state_damaged(s, "the parts of a payload", err);
}

int state_get_parts(struct tier_state *s, const struct entry *e, struct state_parts *parts, struct err *err)
{
    sqlite3_stmt *q = s->statement[GET_PARTS];

    *parts = (struct state_parts){ 0 };
    if (!s->has_parts)
        return 0;
    sqlite3_bind_int64(q, 1, e->row);
    int got = sqlite3_step(q);
    int code = got == SQLITE_ROW ? read_parts(s, e, parts, err) : got == SQLITE_DONE ? 0 : state_failed(s, err);
    sqlite3_reset(q);
    if (code < 0)
        state_parts_release(parts);
    return code;
}

int state_put_parts(struct tier_state *s, const struct entry *e, const struct state_parts *parts, struct err *err)
{
    static const uint8_t none[1];
    sqlite3_stmt *q = s->statement[PUT_PARTS];
    int n = parts->n * (int)sizeof(*parts->digest);

    if (state_change(s, err))
        return err->code;
    sqlite3_bind_int64(q, 1, e->row);
    sqlite3_bind_int64(q, 2, parts->header);
    sqlite3_bind_blob(q, 3, n ? (const void *)parts->digest : none, n, SQLITE_STATIC);
    s->has_parts = s->changed = true;
    return state_step(s, PUT_PARTS, err);
}

int state_delete_parts(struct tier_state *s, const struct entry *e, struct err *err)
{
    if (!s->has_parts)
        return 0;
    if (state_change(s, err))
        return err->code;
    s->changed = true;
    sqlite3_bind_int64(s->statement[DELETE_PARTS], 1, e->row);
    return state_step(s, DELETE_PARTS, err);
}
