/* state_payload.c - the payloads of a state. */
#include "loader/store/state_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- payloads ---------------------------------------------------------------------------- */

/* The number of the column `number` in a row of a payload that is placed; before it are the columns of all rows. */
enum { NUMBER = 8 };

static int read_entry(struct tier_state *s, sqlite3_stmt *q, struct entry *e, struct err *err)
{
    bool placed = sqlite3_column_count(q) > NUMBER;
    const void *prefix = placed ? sqlite3_column_blob(q, NUMBER + 3) : NULL;

    *e = (struct entry){ .id = strdup(state_text_at(q, 1)),
                         .config = strdup(state_text_at(q, 2)),
                         .payload = strdup(state_text_at(q, 3)),
                         .n_tokens = sqlite3_column_int64(q, 6),
                         .bytes = sqlite3_column_int64(q, 7) };
    state_copy_text(e->token_digest, sizeof(e->token_digest), q, 4);
    state_copy_text(e->model_digest, sizeof(e->model_digest), q, 5);
    if (placed) {
        e->row = sqlite3_column_int64(q, NUMBER);
        e->file = strdup(state_text_at(q, NUMBER + 1));
        state_copy_text(e->checksum, sizeof(e->checksum), q, NUMBER + 2);
        e->size = sqlite3_column_int64(q, NUMBER + 4);
    }
    if (!e->id || !e->config || !e->payload || (placed && !e->file))
        return err_nomem(err);
    if (prefix && sqlite3_column_bytes(q, NUMBER + 3) == OBJECT_ID)
        memcpy(e->prefix, prefix, OBJECT_ID);
    if (sqlite3_column_type(q, 0) != SQLITE_TEXT || (placed ? entry_check(e, err) : entry_check_want(e, err)))
        return state_damaged(s, "a payload's row", err);
    return 0;
}

static int visit_rows(struct tier_state *s, sqlite3_stmt *q, state_visit *each, void *arg, struct err *err)
{
    int got, code = 0;

    while (!code && (got = sqlite3_step(q)) == SQLITE_ROW) {
        struct entry e;
        code = read_entry(s, q, &e, err);
        if (!code)
            code = each(arg, state_text_at(q, 0), &e, err);
        entry_release(&e);
    }
    if (!code && got != SQLITE_DONE)
        code = state_failed(s, err);
    sqlite3_reset(q);
    return code;
}

int state_each(struct tier_state *s, state_visit *each, void *arg, struct err *err)
{
    return visit_rows(s, s->statement[EACH], each, arg, err);
}

int state_each_of(struct tier_state *s, const struct state_context *of, state_visit *each, void *arg, struct err *err)
{
    sqlite3_stmt *q = s->statement[OF_CONTEXT];

    sqlite3_bind_int64(q, 1, of->name_space);
    state_bind_text(q, 2, of->id);
    return visit_rows(s, q, each, arg, err);
}

int state_each_before(struct tier_state *s, int64_t name_space, state_visit *each, void *arg, struct err *err)
{
    sqlite3_bind_int64(s->statement[EACH_BEFORE], 1, name_space);
    return visit_rows(s, s->statement[EACH_BEFORE], each, arg, err);
}

int state_used(struct tier_state *s, int64_t name_space, int64_t *own, int64_t *all, struct err *err)
{
    sqlite3_stmt *q = s->statement[USED];
    int got, code = 0;

    *own = *all = 0;
    while (!code && (got = sqlite3_step(q)) == SQLITE_ROW) {
        int64_t bytes = sqlite3_column_int64(q, 1);
        if (bytes < 0)
            code = state_damaged(s, "the bytes in use", err);
        if (sqlite3_column_int64(q, 0) == name_space)
            *own = bytes;
        if (__builtin_add_overflow(*all, bytes, all))
            *all = INT64_MAX;
    }
    if (!code && got != SQLITE_DONE)
        code = state_failed(s, err);
    sqlite3_reset(q);
    return code;
}

int state_is_named(struct tier_state *s, const char *file, bool *named, struct err *err)
{
    sqlite3_stmt *q = s->statement[IS_NAMED];

    if (state_change(s, err)) /* otherwise each query would be its own transaction */
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

    if (state_change(s, err))
        return err->code;
    sqlite3_bind_int64(q, 1, name_space);
    state_bind_text(q, 2, e->id);
    state_bind_text(q, 3, e->config);
    state_bind_text(q, 4, e->payload);
    state_bind_text(q, 5, e->token_digest);
    state_bind_text(q, 6, e->model_digest);
    sqlite3_bind_int64(q, 7, e->n_tokens);
    sqlite3_bind_int64(q, 8, e->bytes);
    state_bind_text(q, 9, e->file);
    state_bind_text(q, 10, e->checksum);
    sqlite3_bind_blob(q, 11, e->prefix, OBJECT_ID, SQLITE_STATIC);
    sqlite3_bind_int64(q, 12, e->size);
    if (state_step(s, INSERT, err))
        return err->code;
    e->row = sqlite3_last_insert_rowid(s->db);
    s->changed = true;
    return 0;
}

int state_update(struct tier_state *s, const struct entry *e, struct err *err)
{
    sqlite3_stmt *q = s->statement[UPDATE];

    if (state_change(s, err))
        return err->code;
    s->changed = true;
    state_bind_text(q, 1, e->id);
    state_bind_text(q, 2, e->payload);
    sqlite3_bind_int64(q, 3, e->bytes);
    sqlite3_bind_int64(q, 4, e->row);
    return state_step(s, UPDATE, err);
}

int state_delete(struct tier_state *s, const struct entry *e, struct err *err)
{
    if (state_change(s, err) || state_delete_parts(s, e, err))
        return err->code;
    s->changed = true;
    sqlite3_bind_int64(s->statement[DELETE], 1, e->row);
    return state_step(s, DELETE, err);
}

static int change_all(struct tier_state *s, enum statement which, int64_t name_space, struct err *err)
{
    if (state_change(s, err))
        return err->code;
    sqlite3_bind_int64(s->statement[which], 1, name_space);
    return state_step(s, which, err);
}

int state_keep_before(struct tier_state *s, int64_t name_space, struct err *err)
{
    return change_all(s, FORGET, name_space, err) ? err->code : change_all(s, KEEP, name_space, err);
}

int state_forget_before(struct tier_state *s, int64_t name_space, struct err *err)
{
    return change_all(s, FORGET, name_space, err);
}
