/* state_payload.c - the payloads of a state: their rows, each with its checksum, and the bytes that they use. */
#include "loader/store/state_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- checksums ------------------------------------------------------------------- */

/* Adds a line; a million rows are summed up faster than printf() could write them. */
static void add_text(struct buf *b, const char *text)
{
    buf_adds(b, text);
    buf_addc(b, '\n');
}

static void add_number(struct buf *b, int64_t v)
{
    char text[24], *at = text + sizeof(text);
    uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;

    *--at = '\n';
    do {
        *--at = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    if (v < 0)
        *--at = '-';
    buf_add(b, at, (size_t)(text + sizeof(text) - at));
}

static uint64_t entry_sum(struct tier_state *s, int64_t name_space, const struct entry *e)
{
    struct buf *b = &s->line;
    char prefix[2 * OBJECT_ID + 1];

    buf_clear(b);
    digest_hex(e->prefix, OBJECT_ID, prefix);
    add_number(b, name_space);
    add_text(b, e->id);
    add_text(b, e->config);
    add_text(b, e->payload);
    add_text(b, e->file);
    add_text(b, e->token_digest);
    add_text(b, e->model_digest);
    add_text(b, e->checksum);
    add_text(b, prefix);
    add_number(b, e->n_tokens);
    add_number(b, e->bytes);
    add_number(b, e->size);
    add_number(b, e->present);
    add_number(b, e->placed);
    return buf_failed(b) ? 0 : digest_xxh3(b->at, b->n - 1); /* without the last line's end */
}

/* ---- bytes in use -------------------------------------------------------------------- */

static uint64_t used_sum(int64_t name_space, int64_t bytes)
{
    struct buf b = { 0 };

    buf_printf(&b, "%lld\n%lld", (long long)name_space, (long long)bytes);
    return state_sum_of(&b);
}

int state_put_used(struct tier_state *s, int64_t name_space, int64_t bytes, struct err *err)
{
    sqlite3_stmt *q = s->statement[PUT_USED];

    sqlite3_bind_int64(q, 1, name_space);
    sqlite3_bind_int64(q, 2, (int64_t)used_sum(name_space, bytes));
    sqlite3_bind_int64(q, 3, bytes);
    return state_step(s, PUT_USED, err);
}

static int get_used(struct tier_state *s, int64_t name_space, int64_t *own, int64_t *all, struct err *err)
{
    sqlite3_stmt *q = s->statement[GET_USED];
    int got, code = 0;

    *own = *all = 0;
    while (!code && (got = sqlite3_step(q)) == SQLITE_ROW) {
        int64_t number = sqlite3_column_int64(q, 1), bytes = sqlite3_column_int64(q, 2);
        if ((uint64_t)sqlite3_column_int64(q, 0) != used_sum(number, bytes) || bytes < 0)
            code = state_damaged(s, "the bytes in use", err);
        if (number == name_space)
            *own = bytes;
        if (__builtin_add_overflow(*all, bytes, all))
            *all = INT64_MAX;
    }
    if (!code && got != SQLITE_DONE)
        code = state_failed(s, err);
    sqlite3_reset(q);
    return code;
}

int state_flush_used(struct tier_state *s, struct err *err)
{
    int64_t own, all;

    if (!s->more)
        return 0;
    if (get_used(s, s->space, &own, &all, err))
        return err->code;
    if (__builtin_add_overflow(own, s->more, &own) || own < 0)
        return state_damaged(s, "the bytes in use", err);
    s->more = 0;
    return state_put_used(s, s->space, own, err);
}

/* An entry of a namespace takes so many bytes from now on. */
static int count(struct tier_state *s, int64_t name_space, struct entry *e, int64_t bytes, struct err *err)
{
    if (s->space != name_space && state_flush_used(s, err))
        return err->code;
    s->space = name_space;
    if (__builtin_add_overflow(s->more, bytes - e->counted, &s->more))
        return state_damaged(s, "the bytes in use", err);
    e->counted = bytes;
    return 0;
}

int state_used(struct tier_state *s, int64_t name_space, int64_t *own, int64_t *all, struct err *err)
{
    return state_flush_used(s, err) ? err->code : get_used(s, name_space, own, all, err);
}

/* ---- payloads ---------------------------------------------------------------------------- */

static int read_entry(struct tier_state *s, sqlite3_stmt *q, struct entry *e, struct err *err)
{
    const void *prefix = sqlite3_column_blob(q, 11);

    *e = (struct entry){ .row = sqlite3_column_int64(q, 1),
                         .sum = (uint64_t)sqlite3_column_int64(q, 0),
                         .id = strdup(state_text_at(q, 4)),
                         .config = strdup(state_text_at(q, 5)),
                         .payload = strdup(state_text_at(q, 6)),
                         .file = strdup(state_text_at(q, 7)),
                         .n_tokens = sqlite3_column_int64(q, 12),
                         .bytes = sqlite3_column_int64(q, 13),
                         .size = sqlite3_column_int64(q, 14),
                         .present = sqlite3_column_int(q, 15),
                         .placed = sqlite3_column_int(q, 16),
                         .before = sqlite3_column_int(q, 3) };
    if (!e->id || !e->config || !e->payload || !e->file)
        return err_nomem(err);
    state_copy_text(e->token_digest, sizeof(e->token_digest), q, 8);
    state_copy_text(e->model_digest, sizeof(e->model_digest), q, 9);
    state_copy_text(e->checksum, sizeof(e->checksum), q, 10);
    if (prefix && sqlite3_column_bytes(q, 11) == OBJECT_ID)
        memcpy(e->prefix, prefix, OBJECT_ID);
    e->counted = e->present ? e->bytes : 0;
    if (sqlite3_column_type(q, 2) != SQLITE_TEXT || e->sum != entry_sum(s, sqlite3_column_int64(q, 17), e) ||
        entry_check(e, err))
        return state_damaged(s, "a payload's row", err);
    return 0;
}

/* Who visits rows, and what they are together. */
struct visit {
    state_visit *each;
    void *arg;
    int64_t n;
    uint64_t sums, bytes;
};

static int visit_rows(struct tier_state *s, sqlite3_stmt *q, struct visit *t, struct err *err)
{
    int got, code = 0;

    while (!code && (got = sqlite3_step(q)) == SQLITE_ROW) {
        struct entry e;
        code = read_entry(s, q, &e, err);
        t->n++;
        t->sums += e.sum;
        t->bytes += (uint64_t)e.counted;
        if (!code)
            code = t->each(t->arg, state_text_at(q, 2), &e, err);
        entry_release(&e);
    }
    if (!code && got != SQLITE_DONE)
        code = state_failed(s, err);
    sqlite3_reset(q);
    return code;
}

int state_each(struct tier_state *s, state_visit *each, void *arg, struct err *err)
{
    struct visit t = { each, arg, 0, 0, 0 };
    int64_t own, all = 0;

    if (visit_rows(s, s->statement[EACH], &t, err) || (s->version > 1 && state_used(s, 0, &own, &all, err)))
        return err->code;
    if (t.n != s->n_payloads || t.sums != s->total)
        return state_damaged(s, "rows are missing", err);
    return s->version > 1 && t.bytes != (uint64_t)all ? state_damaged(s, "the bytes in use", err) : 0;
}

int state_each_of(struct tier_state *s, const struct state_some *some, state_visit *each, void *arg, struct err *err)
{
    sqlite3_stmt *q = s->statement[some->context ? OF_CONTEXT : UNSEEN];
    struct visit t = { each, arg, 0, 0, 0 };

    sqlite3_bind_int64(q, 1, some->name_space);
    if (some->context)
        state_bind_text(q, 2, some->context);
    return visit_rows(s, q, &t, err);
}

int state_is_named(struct tier_state *s, const char *file, bool *named, struct err *err)
{
    sqlite3_stmt *q = s->statement[IS_NAMED];

    if (state_change(s, err)) /* alone, each question would be a transaction */
        return err->code;
    state_bind_text(q, 1, file);
    int code = sqlite3_step(q) == SQLITE_ROW ? 0 : state_failed(s, err);
    *named = sqlite3_column_int(q, 0);
    sqlite3_reset(q);
    return code;
}

int state_insert(struct tier_state *s, int64_t name_space, struct entry *e, struct err *err)
{
    sqlite3_stmt *q = s->statement[INSERT];

    e->counted = 0;
    if (state_change(s, err) || count(s, name_space, e, e->present ? e->bytes : 0, err))
        return err->code;
    e->sum = entry_sum(s, name_space, e);
    sqlite3_bind_int64(q, 1, (int64_t)e->sum);
    sqlite3_bind_int64(q, 2, name_space);
    sqlite3_bind_int(q, 3, e->before);
    state_bind_text(q, 4, e->id);
    state_bind_text(q, 5, e->config);
    state_bind_text(q, 6, e->payload);
    state_bind_text(q, 7, e->file);
    state_bind_text(q, 8, e->token_digest);
    state_bind_text(q, 9, e->model_digest);
    state_bind_text(q, 10, e->checksum);
    sqlite3_bind_blob(q, 11, e->prefix, OBJECT_ID, SQLITE_STATIC);
    sqlite3_bind_int64(q, 12, e->n_tokens);
    sqlite3_bind_int64(q, 13, e->bytes);
    sqlite3_bind_int64(q, 14, e->size);
    sqlite3_bind_int(q, 15, e->present);
    sqlite3_bind_int(q, 16, e->placed);
    if (state_step(s, INSERT, err))
        return err->code;
    e->row = sqlite3_last_insert_rowid(s->db);
    s->n_payloads++;
    s->total += e->sum;
    s->changed = true;
    return 0;
}

int state_update(struct tier_state *s, int64_t name_space, struct entry *e, struct err *err)
{
    sqlite3_stmt *q = s->statement[UPDATE];

    if (state_change(s, err) || count(s, name_space, e, e->present ? e->bytes : 0, err))
        return err->code;
    s->total -= e->sum;
    e->sum = entry_sum(s, name_space, e);
    s->total += e->sum;
    s->changed = true;
    sqlite3_bind_int64(q, 1, (int64_t)e->sum);
    sqlite3_bind_int64(q, 2, e->bytes);
    sqlite3_bind_int(q, 3, e->present);
    sqlite3_bind_int(q, 4, e->placed);
    sqlite3_bind_int64(q, 5, e->row);
    return state_step(s, UPDATE, err);
}

int state_delete(struct tier_state *s, int64_t name_space, struct entry *e, struct err *err)
{
    if (state_change(s, err) || count(s, name_space, e, 0, err) || state_delete_parts(s, e, err))
        return err->code;
    s->n_payloads--;
    s->total -= e->sum;
    s->changed = true;
    sqlite3_bind_int64(s->statement[DELETE], 1, e->row);
    return state_step(s, DELETE, err);
}

static int mark_all(struct tier_state *s, enum statement which, int64_t name_space, struct err *err)
{
    if (state_change(s, err))
        return err->code;
    sqlite3_bind_int64(s->statement[which], 1, name_space);
    return state_step(s, which, err);
}

int state_keep_before(struct tier_state *s, int64_t name_space, struct err *err)
{
    return mark_all(s, KEEP, name_space, err);
}

int state_forget_before(struct tier_state *s, int64_t name_space, struct err *err)
{
    return mark_all(s, FORGET, name_space, err);
}
