/* state.c - the SQLite database of a tier's folder: opening it, its own row, namespaces, transactions. Only this file,
 * state_payload.c and state_parts.c use SQLite.
 */
#include "loader/store/state_internal.h"

#include "base/buf.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { BUSY_MS = 10000 };

#define PAYLOADS                                                                                                       \
    "SELECT s.name, p.context, p.config, p.payload, p.token_digest, p.model_digest, p.n_tokens, p.bytes, "             \
    "p.number, p.file, p.checksum, p.prefix, p.size "                                                                  \
    "FROM payload AS p LEFT JOIN namespace AS s ON p.namespace = s.number "

static const char *const sql[N_STATEMENTS] = {
    [GET_STORE] = "SELECT uri, generation, swept, id FROM store",
    [PUT_STORE] = "REPLACE INTO store VALUES(1, ?1, ?2, ?3, ?4)",
    [GET_SPACE] =
        "SELECT manifest, manifest_name, previous, previous_name, capacity, previous_capacity, load, running, "
        "undoable, number FROM namespace WHERE name = ?1",
    [DROP_SPACE] = "DELETE FROM namespace WHERE number = ?1",
    [PUT_SPACE] = "REPLACE INTO namespace VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    [EACH] = PAYLOADS "ORDER BY p.number",
    [OF_CONTEXT] = PAYLOADS "WHERE p.namespace = ?1 AND p.context = ?2 ORDER BY p.number",
    [EACH_BEFORE] = "SELECT '', context, config, payload, token_digest, model_digest, n_tokens, bytes "
                    "FROM payload_before WHERE namespace = ?1 ORDER BY number",
    [INSERT] = "INSERT INTO payload VALUES(NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    [UPDATE] = "UPDATE payload SET context = ?1, payload = ?2, bytes = ?3 WHERE number = ?4",
    [DELETE] = "DELETE FROM payload WHERE number = ?1",
    [KEEP] = "INSERT INTO payload_before SELECT NULL, namespace, context, config, payload, token_digest, "
             "model_digest, n_tokens, bytes FROM payload WHERE namespace = ?1 ORDER BY number",
    [FORGET] = "DELETE FROM payload_before WHERE namespace = ?1",
    [USED] = "SELECT namespace, sum(bytes) FROM payload INDEXED BY payload_used GROUP BY namespace",
    [GET_PARTS] = "SELECT header, digests FROM part WHERE payload = ?1",
    [PUT_PARTS] = "REPLACE INTO part VALUES(?1, ?2, ?3)",
    [DELETE_PARTS] = "DELETE FROM part WHERE payload = ?1",
    /* without the plus SQLite would substitute ?1 for `file` everywhere, and scan all rows */
    [IS_NAMED] = "SELECT EXISTS(SELECT 1 FROM payload INDEXED BY payload_object "
                 "WHERE substr(file, 17, 8) = substr(?1, 17, 8) AND +file = ?1)",
};

/* With these indexes, changing one payload reads no other rows; the first digits of an object's id are enough. */
static const char tables[] =
    "CREATE TABLE store(one INTEGER PRIMARY KEY, uri TEXT NOT NULL, generation INTEGER NOT NULL, swept INTEGER NOT "
    "NULL, id BLOB NOT NULL);CREATE TABLE namespace(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, manifest "
    "TEXT NOT NULL, manifest_name TEXT NOT NULL, previous TEXT NOT NULL, previous_name TEXT NOT NULL, capacity INTEGER "
    "NOT NULL, previous_capacity INTEGER NOT NULL, load INTEGER NOT NULL, running INTEGER NOT NULL, undoable INTEGER "
    "NOT NULL);CREATE TABLE payload(number INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, context TEXT NOT NULL, "
    "config TEXT NOT NULL, payload TEXT NOT NULL, token_digest TEXT NOT NULL, model_digest TEXT NOT NULL, n_tokens "
    "INTEGER NOT NULL, bytes INTEGER NOT NULL, file TEXT NOT NULL, checksum TEXT NOT NULL, prefix BLOB NOT NULL, size "
    "INTEGER NOT NULL);CREATE TABLE payload_before(number INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, context "
    "TEXT NOT NULL, config TEXT NOT NULL, payload TEXT NOT NULL, token_digest TEXT NOT NULL, model_digest TEXT NOT "
    "NULL, n_tokens INTEGER NOT NULL, bytes INTEGER NOT NULL);CREATE TABLE part(payload INTEGER PRIMARY KEY, header "
    "INTEGER NOT NULL, digests BLOB NOT NULL);CREATE INDEX payload_context ON payload(context);CREATE INDEX "
    "payload_used ON payload(namespace, bytes);CREATE INDEX payload_object ON payload(substr(file, 17, 8));PRAGMA "
    "application_id = 1163284563; PRAGMA user_version = 6";

/* ---- errors ----------------------------------------------------------------- */

int state_damaged(const struct tier_state *s, const char *what, struct err *err)
{
    return err_set(
        err, ERR_FORMAT,
        "'%s' is damaged (%s): remove it and its -wal and -shm files; the next load finds the payloads again", s->path,
        what);
}

int state_failed(const struct tier_state *s, struct err *err)
{
    int code = sqlite3_errcode(s->db);

    if (code == SQLITE_NOMEM)
        return err_nomem(err);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR || code == SQLITE_CONSTRAINT)
        return state_damaged(s, sqlite3_errmsg(s->db), err);
    return err_set(err, ERR_IO, "cannot use '%s': %s", s->path, sqlite3_errmsg(s->db));
}

/* ---- statements ---------------------------------------------------------------- */

static int run_text(struct tier_state *s, const char *text, struct err *err)
{
    return sqlite3_exec(s->db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : state_failed(s, err);
}

void state_bind_text(sqlite3_stmt *q, int at, const char *text)
{
    sqlite3_bind_text(q, at, text, -1, SQLITE_STATIC);
}

int state_step(struct tier_state *s, enum statement which, struct err *err)
{
    sqlite3_stmt *q = s->statement[which];
    int code = sqlite3_step(q) == SQLITE_DONE ? 0 : state_failed(s, err);

    sqlite3_reset(q);
    return code;
}

const char *state_text_at(sqlite3_stmt *q, int column)
{
    bool text = sqlite3_column_type(q, column) == SQLITE_TEXT;

    return text ? (const char *)sqlite3_column_text(q, column) : "";
}

void state_copy_text(char *to, size_t size, sqlite3_stmt *q, int column)
{
    const char *text = state_text_at(q, column);
    size_t n = strnlen(text, size - 1);

    memcpy(to, text, n);
    to[n] = '\0';
}

int state_change(struct tier_state *s, struct err *err)
{
    if (s->changing)
        return 0;
    s->changing = true;
    return run_text(s, "BEGIN IMMEDIATE", err);
}

/* ---- the store's row ---------------------------------------------------------------- */

static int put_store(struct tier_state *s, struct err *err)
{
    sqlite3_stmt *q = s->statement[PUT_STORE];

    state_bind_text(q, 1, s->uri);
    sqlite3_bind_int64(q, 2, (int64_t)s->generation);
    sqlite3_bind_int(q, 3, s->swept);
    sqlite3_bind_blob(q, 4, s->id, OBJECT_ID, SQLITE_STATIC);
    return state_step(s, PUT_STORE, err);
}

static int read_store(struct tier_state *s, struct err *err)
{
    sqlite3_stmt *q = s->statement[GET_STORE];
    char *uri = s->uri;

    if (sqlite3_step(q) != SQLITE_ROW)
        return sqlite3_errcode(s->db) == SQLITE_DONE ? state_damaged(s, "it is empty", err) : state_failed(s, err);
    s->uri = strdup(state_text_at(q, 0));
    s->generation = (uint64_t)sqlite3_column_int64(q, 1);
    s->swept = sqlite3_column_int(q, 2);
    const void *id = sqlite3_column_blob(q, 3);
    bool whole = id && sqlite3_column_bytes(q, 3) == OBJECT_ID;
    if (whole)
        memcpy(s->id, id, OBJECT_ID);
    sqlite3_reset(q);
    int code = !s->uri ? err_nomem(err) : whole ? 0 : state_damaged(s, "its first row", err);
    if (!code && *uri && strcmp(s->uri, uri) != 0)
        code = err_set(err, ERR_FORMAT, "'%s' is the state of the tier at '%s', not of '%s'", s->path, s->uri, uri);
    free(uri);
    return code;
}

/* ---- opening -------------------------------------------------------------------------- */

static int prepare(struct tier_state *s, struct err *err)
{
    for (int i = 0; i < N_STATEMENTS; i++)
        if (sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statement[i], NULL) != SQLITE_OK)
            return state_failed(s, err);
    return 0;
}

/* Runs the statement `text`, which returns one number. */
static int read_number(struct tier_state *s, const char *text, int64_t *number, struct err *err)
{
    sqlite3_stmt *q;

    if (sqlite3_prepare_v2(s->db, text, -1, &q, NULL) != SQLITE_OK)
        return state_failed(s, err);
    int code = sqlite3_step(q) == SQLITE_ROW ? 0 : state_failed(s, err);
    *number = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return code;
}

static int make_tables(struct tier_state *s, struct err *err)
{
    if (getrandom(s->id, sizeof(s->id), 0) != sizeof(s->id))
        return err_set(err, ERR_IO, "no random bytes: %s", strerror(errno));
    if (state_change(s, err) || run_text(s, tables, err) || prepare(s, err))
        return err->code;
    return state_commit(s, err);
}

static int look_for_parts(struct tier_state *s, struct err *err)
{
    int64_t n = 0;

    if (read_number(s, "SELECT EXISTS(SELECT 1 FROM part)", &n, err))
        return err->code;
    s->has_parts = n;
    return 0;
}

/* Disables triggers, views and functions: somebody else may have made the file. */
static void distrust(sqlite3 *db)
{
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_busy_timeout(db, BUSY_MS);
}

/* The rows of a load are scattered over the indexes on `file` and `context`. A large cache and a long log let one write
 * of a page serve many rows. */
static const char settings[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA mmap_size = 0; "
                               "PRAGMA cell_size_check = ON; PRAGMA cache_size = -16384; "
                               "PRAGMA wal_autocheckpoint = 8000";

/* For a look where SQLite may not write its other files, as on a disk that is mounted read-only: the file as it is,
 * unless a writer has left a log, or holds one. */
static int open_fixed(struct tier_state *s, struct err *err)
{
    struct buf uri = { 0 }, log = { 0 };

    buf_printf(&log, "%s-wal", s->path);
    buf_adds(&uri, "file:");
    for (const char *at = s->path; *at; at++)
        buf_printf(&uri, strchr("%?#", *at) ? "%%%02X" : "%c", *at);
    buf_adds(&uri, file_exists(buf_str(&log)) ? "" : "?immutable=1");
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
    int code = buf_failed(&uri) || buf_failed(&log) || sqlite3_open_v2(buf_str(&uri), &s->db, flags, NULL) != SQLITE_OK
                   ? (s->db ? state_failed(s, err) : err_nomem(err))
                   : 0;
    buf_release(&uri);
    buf_release(&log);
    return code;
}

static int open_database(struct tier_state *s, enum state_use use, bool fixed, struct err *err)
{
    int64_t version;

    if (fixed && open_fixed(s, err))
        return err->code;
    if (!fixed && sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return s->db ? state_failed(s, err) : err_nomem(err);
    distrust(s->db);
    /* A look sees one moment, whatever a writer commits meanwhile. */
    if (run_text(s, settings, err) || (use == STATE_LOOK && run_text(s, "BEGIN", err)) ||
        read_number(s, "PRAGMA user_version", &version, err))
        return err->code;
    if (version == 0)
        return use == STATE_CHANGE ? make_tables(s, err) : 0;
    if (version != STATE_VERSION)
        return err_set(err, ERR_FORMAT, "'%s' is of version %d; this program reads version %d", s->path, (int)version,
                       STATE_VERSION);
    return prepare(s, err) || read_store(s, err) ? err->code : look_for_parts(s, err);
}

/* Creates the file with our mode; SQLite gives its other files the same mode. A look only tries to read it. */
static int make_file(const char *path, enum state_use use, struct err *err)
{
    int fd = open(path, (use == STATE_CHANGE ? O_RDWR | O_CREAT : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    close(fd);
    return 0;
}

int state_open(struct tier_state **state, const char *dir, const char *uri, enum state_use use, struct err *err)
{
    struct tier_state *s = calloc(1, sizeof(*s));
    int code = 0;

    *state = NULL;
    if (s) {
        s->path = file_join(dir, "evp-state");
        s->uri = strdup(uri);
        s->swept = true;
    }
    if (!s || !s->path || !s->uri) {
        state_close(s);
        return err_nomem(err);
    }
    if (use == STATE_LOOK && !file_exists(s->path)) {
        state_close(s);
        return 0;
    }
    bool fixed = use == STATE_LOOK && faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS);
    code = make_file(s->path, use, err);
    if (!code)
        code = open_database(s, use, fixed, err);
    if (code || !s->statement[0]) /* a writer was killed before it created the tables */
        state_close(s);
    else
        *state = s;
    return code;
}

void state_close(struct tier_state *s)
{
    if (!s)
        return;
    for (int i = 0; i < N_STATEMENTS; i++)
        sqlite3_finalize(s->statement[i]);
    sqlite3_close(s->db);
    free(s->path);
    free(s->uri);
    free(s);
}

int state_check(struct tier_state *s, struct err *err)
{
    sqlite3_stmt *q;

    if (sqlite3_prepare_v2(s->db, "PRAGMA quick_check(1)", -1, &q, NULL) != SQLITE_OK)
        return state_failed(s, err);
    int code = sqlite3_step(q) != SQLITE_ROW            ? state_failed(s, err)
               : strcmp(state_text_at(q, 0), "ok") != 0 ? state_damaged(s, state_text_at(q, 0), err)
                                                        : 0;
    sqlite3_finalize(q);
    return code;
}

const char *state_uri(const struct tier_state *s)
{
    return s->uri;
}

const uint8_t *state_id(const struct tier_state *s)
{
    return s->id;
}

uint64_t state_generation(const struct tier_state *s)
{
    return s->generation;
}

bool state_is_swept(const struct tier_state *s)
{
    return s->swept;
}

/* ---- namespaces ------------------------------------------------------------------------- */

int state_get_load(struct tier_state *s, const char *name_space, struct state_load *load, struct err *err)
{
    sqlite3_stmt *q = s->statement[GET_SPACE];
    int code = 0;

    *load = (struct state_load){ 0 };
    state_bind_text(q, 1, name_space);
    int got = sqlite3_step(q);
    if (got == SQLITE_ROW) {
        state_copy_text(load->manifest, sizeof(load->manifest), q, 0);
        state_copy_text(load->name, sizeof(load->name), q, 1);
        state_copy_text(load->before, sizeof(load->before), q, 2);
        state_copy_text(load->before_name, sizeof(load->before_name), q, 3);
        load->capacity = sqlite3_column_int64(q, 4);
        load->before_capacity = sqlite3_column_int64(q, 5);
        load->load = sqlite3_column_int64(q, 6);
        load->running = (enum state_running)sqlite3_column_int(q, 7);
        load->undoable = sqlite3_column_int(q, 8);
        load->number = sqlite3_column_int64(q, 9);
    } else if (got != SQLITE_DONE)
        code = state_failed(s, err);
    sqlite3_reset(q);
    return code;
}

int state_put_load(struct tier_state *s, const char *name_space, struct state_load *load, struct err *err)
{
    sqlite3_stmt *q = s->statement[PUT_SPACE];

    if (state_change(s, err) ||
        (!load->number && read_number(s, "SELECT 1 + ifnull(max(number), 0) FROM namespace", &load->number, err)))
        return err->code;
    sqlite3_bind_int64(q, 1, load->number);
    state_bind_text(q, 2, name_space);
    state_bind_text(q, 3, load->manifest);
    state_bind_text(q, 4, load->name);
    state_bind_text(q, 5, load->before);
    state_bind_text(q, 6, load->before_name);
    sqlite3_bind_int64(q, 7, load->capacity);
    sqlite3_bind_int64(q, 8, load->before_capacity);
    sqlite3_bind_int64(q, 9, load->load);
    sqlite3_bind_int(q, 10, (int)load->running);
    sqlite3_bind_int(q, 11, load->undoable);
    return state_step(s, PUT_SPACE, err);
}

int state_drop_load(struct tier_state *s, const struct state_load *load, struct err *err)
{
    if (state_change(s, err))
        return err->code;
    sqlite3_bind_int64(s->statement[DROP_SPACE], 1, load->number);
    return state_step(s, DROP_SPACE, err);
}

void state_take_over(struct tier_state *s, const uint8_t id[OBJECT_ID], uint64_t generation)
{
    memcpy(s->id, id, OBJECT_ID);
    s->generation = generation;
}

int state_set_swept(struct tier_state *s, bool swept, struct err *err)
{
    s->swept = swept;
    return state_change(s, err);
}

int state_commit(struct tier_state *s, struct err *err)
{
    if (!s->changing)
        return 0;
    s->generation += s->changed;
    int code = put_store(s, err) ? err->code : run_text(s, "COMMIT", err);
    if (!code)
        s->changing = s->changed = false;
    return code;
}
