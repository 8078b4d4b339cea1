/* state_internal.h - the open database and its statements, for state*.c. */
#ifndef EVP_STATE_INTERNAL_H
#define EVP_STATE_INTERNAL_H

#include "loader/store/state.h"

#include <sqlite3.h>

enum { STATE_VERSION = 6 };

enum statement {
    GET_STORE,
    PUT_STORE,
    GET_SPACE,
    PUT_SPACE,
    DROP_SPACE,
    EACH,
    OF_CONTEXT,
    EACH_BEFORE,
    INSERT,
    UPDATE,
    DELETE,
    KEEP,
    FORGET,
    USED,
    GET_PARTS,
    PUT_PARTS,
    DELETE_PARTS,
    IS_NAMED,
    N_STATEMENTS
};

struct tier_state {
    sqlite3 *db;
    sqlite3_stmt *statement[N_STATEMENTS];
    char *path, *uri;
    uint8_t id[OBJECT_ID];
    uint64_t generation;
    bool swept, changing, changed; // changing: in a transaction; changed: it changes payloads
    bool has_parts;                // some payload may have parts
};

/* ERR_FORMAT that says how to repair the state; ERR_IO with SQLite's last failure. */
int state_damaged(const struct tier_state *s, const char *what, struct err *err);
int state_failed(const struct tier_state *s, struct err *err);

/* Runs a statement without result rows; its values are bound. */
int state_step(struct tier_state *s, enum statement which, struct err *err) MUST_CHECK;
void state_bind_text(sqlite3_stmt *q, int at, const char *text);

/* A column's text; a value of another type reads as "". */
const char *state_text_at(sqlite3_stmt *q, int column);
void state_copy_text(char *to, size_t size, sqlite3_stmt *q, int column);

/* Begins a transaction unless one is open. */
int state_change(struct tier_state *s, struct err *err) MUST_CHECK;

#endif
