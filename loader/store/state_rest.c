/* state_rest.c - what a state knows of a load that had nothing left to do: enough to see that it is so again without
 * reading every row.
 */
#include "loader/store/state_internal.h"

static uint64_t rest_sum(int64_t name_space, const struct state_rest *rest)
{
    struct buf b = { 0 };

    buf_printf(&b, "%lld\n%s\n%llu\n%lld\n%lld", (long long)name_space, rest->manifest,
               (unsigned long long)rest->generation, (long long)rest->n_placed, (long long)rest->bytes);
    return state_sum_of(&b);
}

int state_get_rest(struct tier_state *s, int64_t name_space, struct state_rest *rest, struct err *err)
{
    sqlite3_stmt *q = s->statement[GET_REST];
    int code = 0;

    *rest = (struct state_rest){ 0 };
    if (!q) /* of an older version */
        return 0;
    sqlite3_bind_int64(q, 1, name_space);
    int got = sqlite3_step(q);
    if (got == SQLITE_ROW) {
        state_copy_text(rest->manifest, sizeof(rest->manifest), q, 1);
        rest->generation = (uint64_t)sqlite3_column_int64(q, 2);
        rest->n_placed = sqlite3_column_int64(q, 3);
        rest->bytes = sqlite3_column_int64(q, 4);
        if ((uint64_t)sqlite3_column_int64(q, 0) != rest_sum(name_space, rest))
            code = state_damaged(s, "what is at rest", err);
    } else if (got != SQLITE_DONE)
        code = state_failed(s, err);
    sqlite3_reset(q);
    return code;
}

int state_put_rest(struct tier_state *s, int64_t name_space, const struct state_rest *rest, struct err *err)
{
    sqlite3_stmt *q = s->statement[PUT_REST];
    struct state_rest now = *rest;

    now.generation = s->generation;
    if (state_change(s, err))
        return err->code;
    sqlite3_bind_int64(q, 1, name_space);
    sqlite3_bind_int64(q, 2, (int64_t)rest_sum(name_space, &now));
    state_bind_text(q, 3, now.manifest);
    sqlite3_bind_int64(q, 4, (int64_t)now.generation);
    sqlite3_bind_int64(q, 5, now.n_placed);
    sqlite3_bind_int64(q, 6, now.bytes);
    return state_step(s, PUT_REST, err);
}

int state_each_placed(struct tier_state *s, int64_t name_space, state_visit_placed *each, void *arg, struct err *err)
{
    sqlite3_stmt *q = s->statement[PLACED];
    int got, code = 0;

    sqlite3_bind_int64(q, 1, name_space);
    while (!code && (got = sqlite3_step(q)) == SQLITE_ROW)
        code = each(arg, state_text_at(q, 0), sqlite3_column_int64(q, 1), err);
    if (!code && got != SQLITE_DONE)
        code = state_failed(s, err);
    sqlite3_reset(q);
    return code;
}
