/* state.c - the SQLite database of a tier's folder: opened, its own row, its namespaces, its transactions. This file,
 * state_payload.c, which has the payloads, and state_parts.c are the only ones that know SQLite.
 *
 * `total` is the sum of all rows' checksums, modulo 2^64: rows that a damaged page hides are missed by it. A row's
 * checksum covers all but the mark `was_placed`, which one statement sets for a million rows.
 */
#include "loader/store/state_internal.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { BUSY_MS = 10000 };

#define PAYLOADS                                                                                                       \
    "SELECT p.sum, p.number, s.name, p.was_placed, p.context, p.config, p.payload, p.file, p.token_digest, "           \
    "p.model_digest, p.checksum, p.prefix, p.n_tokens, p.bytes, p.size, p.present, p.placed, p.namespace "             \
    "FROM payload AS p LEFT JOIN namespace AS s ON p.namespace = s.number "

static const char *const sql[N_STATEMENTS] = {
    [GET_STORE] = "SELECT sum, uri, generation, n_payloads, total, swept, id FROM store",
    [PUT_STORE] = "REPLACE INTO store VALUES(1, ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [GET_SPACE] =
        "SELECT sum, manifest, manifest_name, previous, previous_name, capacity, previous_capacity, load, running, "
        "undoable, number FROM namespace WHERE name = ?1",
    [PUT_SPACE] = "REPLACE INTO namespace VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    [EACH] = PAYLOADS "ORDER BY p.number",
    [INSERT] =
        "INSERT INTO payload VALUES(NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    [UPDATE] = "UPDATE payload SET sum = ?1, bytes = ?2, present = ?3, placed = ?4 WHERE number = ?5",
    [DELETE] = "DELETE FROM payload WHERE number = ?1",
    [KEEP] = "UPDATE payload SET was_placed = placed WHERE namespace = ?1 AND was_placed <> placed",
    [FORGET] = "UPDATE payload SET was_placed = 0 WHERE namespace = ?1 AND was_placed <> 0",
    [OF_CONTEXT] = PAYLOADS "WHERE p.namespace = ?1 AND p.context = ?2 ORDER BY p.number",
    [UNSEEN] = PAYLOADS "WHERE p.namespace = ?1 AND p.present <> 0 AND p.placed = 0 ORDER BY p.number",
    [GET_USED] = "SELECT sum, namespace, bytes FROM used",
    [PUT_USED] = "REPLACE INTO used VALUES(?1, ?2, ?3)",
    [GET_PARTS] = "SELECT sum, header, digests FROM part WHERE payload = ?1",
    [PUT_PARTS] = "REPLACE INTO part VALUES(?1, ?2, ?3, ?4)",
    [DELETE_PARTS] = "DELETE FROM part WHERE payload = ?1",
    /* without the plus SQLite would put ?1 for `file` everywhere, and go through all rows */
    [IS_NAMED] = "SELECT EXISTS(SELECT 1 FROM payload INDEXED BY payload_object "
                 "WHERE substr(file, 17, 8) = substr(?1, 17, 8) AND present <> 0 AND +file = ?1)",
};

static const char tables_1[] =
    "CREATE TABLE store(one INTEGER PRIMARY KEY, sum INTEGER NOT NULL, uri TEXT NOT NULL, generation INTEGER NOT NULL, "
    "n_payloads INTEGER NOT NULL, total INTEGER NOT NULL, swept INTEGER NOT NULL, id BLOB NOT NULL);"
    "CREATE TABLE namespace(number INTEGER PRIMARY KEY, sum INTEGER NOT NULL, name TEXT NOT NULL UNIQUE, "
    "manifest TEXT NOT NULL, manifest_name TEXT NOT NULL, previous TEXT NOT NULL, previous_name TEXT NOT NULL, "
    "capacity INTEGER NOT NULL, previous_capacity INTEGER NOT NULL, load INTEGER NOT NULL, running INTEGER NOT NULL, "
    "undoable INTEGER NOT NULL);"
    "CREATE TABLE payload(number INTEGER PRIMARY KEY, sum INTEGER NOT NULL, namespace INTEGER NOT NULL, "
    "was_placed INTEGER NOT NULL, context TEXT NOT NULL, config TEXT NOT NULL, payload TEXT NOT NULL, file TEXT NOT "
    "NULL, "
    "token_digest TEXT NOT NULL, model_digest TEXT NOT NULL, checksum TEXT NOT NULL, prefix BLOB NOT NULL, "
    "n_tokens INTEGER NOT NULL, bytes INTEGER NOT NULL, size INTEGER NOT NULL, present INTEGER NOT NULL, "
    "placed INTEGER NOT NULL);"
    "PRAGMA application_id = 1163284563; PRAGMA user_version = 1";

/* What version 2 added, so that one payload can change without reading all of them. */
static const char tables_2[] =
    "CREATE TABLE used(namespace INTEGER PRIMARY KEY, sum INTEGER NOT NULL, bytes INTEGER NOT NULL);"
    "CREATE INDEX payload_context ON payload(context);"
    "CREATE INDEX payload_unseen ON payload(namespace) WHERE present <> 0 AND placed = 0;"
    "PRAGMA user_version = 2";

/* What version 3 added, for hits on part of a context. */
static const char tables_3[] =
    "CREATE TABLE part(payload INTEGER PRIMARY KEY, sum INTEGER NOT NULL, header INTEGER NOT NULL, digests BLOB NOT "
    "NULL);"
    "PRAGMA user_version = 3";

/* What version 4 added: for objects that several payloads share, the first digits of whose ids are enough. */
static const char tables_4[] = "CREATE INDEX payload_object ON payload(substr(file, 17, 8)) WHERE present <> 0;"
                               "PRAGMA user_version = 4";

/* ---- errors ----------------------------------------------------------------- */

int state_damaged(const struct tier_state *s, const char *what, struct err *err)
{
    return err_set(err, ERR_FORMAT,
                   "'%s' is damaged (%s): remove it with its -wal and -shm, and load again with the payload folder",
                   s->path, what);
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

/* ---- checksums ------------------------------------------------------------------- */

uint64_t state_sum_of(struct buf *text)
{
    uint64_t sum = buf_failed(text) ? 0 : digest_xxh3(text->at, text->n);

    buf_release(text);
    return sum;
}

static uint64_t store_sum(const struct tier_state *s)
{
    struct buf b = { 0 };
    char id[2 * OBJECT_ID + 1];

    digest_hex(s->id, OBJECT_ID, id);
    buf_printf(&b, "%s\n%llu\n%lld\n%llu\n%d\n%s", s->uri, (unsigned long long)s->generation, (long long)s->n_payloads,
               (unsigned long long)s->total, s->swept, id);
    return state_sum_of(&b);
}

static uint64_t load_sum(const char *name_space, const struct state_load *l)
{
    struct buf b = { 0 };

    buf_printf(&b, "%lld\n%s\n%s\n%s\n%s\n%s\n%lld\n%lld\n%lld\n%d\n%d", (long long)l->number, name_space, l->manifest,
               l->name, l->before, l->before_name, (long long)l->capacity, (long long)l->before_capacity,
               (long long)l->load, (int)l->running, l->undoable);
    return state_sum_of(&b);
}

/* ---- the store's row ---------------------------------------------------------------- */

static int put_store(struct tier_state *s, struct err *err)
{
    sqlite3_stmt *q = s->statement[PUT_STORE];

    sqlite3_bind_int64(q, 1, (int64_t)store_sum(s));
    state_bind_text(q, 2, s->uri);
    sqlite3_bind_int64(q, 3, (int64_t)s->generation);
    sqlite3_bind_int64(q, 4, s->n_payloads);
    sqlite3_bind_int64(q, 5, (int64_t)s->total);
    sqlite3_bind_int(q, 6, s->swept);
    sqlite3_bind_blob(q, 7, s->id, OBJECT_ID, SQLITE_STATIC);
    return state_step(s, PUT_STORE, err);
}

static int read_store(struct tier_state *s, struct err *err)
{
    sqlite3_stmt *q = s->statement[GET_STORE];
    char *uri = s->uri;

    if (sqlite3_step(q) != SQLITE_ROW)
        return sqlite3_errcode(s->db) == SQLITE_DONE ? state_damaged(s, "it is empty", err) : state_failed(s, err);
    s->uri = strdup(state_text_at(q, 1));
    s->generation = (uint64_t)sqlite3_column_int64(q, 2);
    s->n_payloads = sqlite3_column_int64(q, 3);
    s->total = (uint64_t)sqlite3_column_int64(q, 4);
    s->swept = sqlite3_column_int(q, 5);
    const void *id = sqlite3_column_blob(q, 6);
    bool whole = s->uri && id && sqlite3_column_bytes(q, 6) == OBJECT_ID;
    if (whole)
        memcpy(s->id, id, OBJECT_ID);
    whole = whole && (uint64_t)sqlite3_column_int64(q, 0) == store_sum(s);
    sqlite3_reset(q);
    int code = !s->uri ? err_nomem(err) : whole ? 0 : state_damaged(s, "its first row", err);
    if (!code && *uri && strcmp(s->uri, uri) != 0)
        code = err_set(err, ERR_FORMAT, "'%s' is the state of the tier at '%s', not of '%s'", s->path, s->uri, uri);
    free(uri);
    return code;
}

/* ---- opening -------------------------------------------------------------------------- */

/* The statements that the file's version can carry out. */
static int prepare(struct tier_state *s, struct err *err)
{
    static const int n[] = { 0, N_VERSION_1, N_VERSION_2, N_VERSION_3, N_STATEMENTS };

    for (int i = 0; i < n[s->version]; i++)
        if (sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statement[i], NULL) != SQLITE_OK)
            return state_failed(s, err);
    return 0;
}

/* The number that the statement `text` gives. */
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
    s->version = STATE_VERSION;
    if (state_change(s, err) || run_text(s, tables_1, err) || run_text(s, tables_2, err) ||
        run_text(s, tables_3, err) || run_text(s, tables_4, err) || prepare(s, err))
        return err->code;
    return state_commit(s, err);
}

static int sum_up(struct tier_state *s, struct err *err)
{
    static const char text[] = "SELECT namespace, sum(bytes) FROM payload WHERE present <> 0 GROUP BY namespace";
    sqlite3_stmt *q;
    int got, code = 0;

    if (sqlite3_prepare_v2(s->db, text, -1, &q, NULL) != SQLITE_OK)
        return state_failed(s, err);
    while (!code && (got = sqlite3_step(q)) == SQLITE_ROW)
        code = state_put_used(s, sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1), err);
    if (!code && got != SQLITE_DONE)
        code = state_failed(s, err);
    sqlite3_finalize(q);
    return code;
}

/* Makes a state of an older version one of today's. */
static int renew(struct tier_state *s, struct err *err)
{
    int64_t old = s->version;

    s->version = STATE_VERSION;
    if (state_change(s, err) || (old < 2 && run_text(s, tables_2, err)) || (old < 3 && run_text(s, tables_3, err)) ||
        run_text(s, tables_4, err) || prepare(s, err) || read_store(s, err) || (old < 2 && sum_up(s, err)))
        return err->code;
    return state_commit(s, err);
}

static int look_for_parts(struct tier_state *s, struct err *err)
{
    int64_t n = 0;

    if (s->version > 2 && read_number(s, "SELECT EXISTS(SELECT 1 FROM part)", &n, err))
        return err->code;
    s->has_parts = n;
    return 0;
}

/* No triggers, views or functions of a file that somebody else may have made. */
static void distrust(sqlite3 *db)
{
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_busy_timeout(db, BUSY_MS);
}

/* Rows of a load lie all over the indexes on `file` and `context`: pages that are still in memory, and are still in the
 * log, are written once for many of them. */
static const char settings[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA mmap_size = 0; "
                               "PRAGMA cell_size_check = ON; PRAGMA cache_size = -16384; "
                               "PRAGMA wal_autocheckpoint = 8000";

static int open_database(struct tier_state *s, enum state_use use, struct err *err)
{
    if (sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return s->db ? state_failed(s, err) : err_nomem(err);
    distrust(s->db);
    if (run_text(s, settings, err) || read_number(s, "PRAGMA user_version", &s->version, err))
        return err->code;
    if (s->version == 0)
        return use == STATE_CHANGE ? make_tables(s, err) : 0;
    if (s->version < 0 || s->version > STATE_VERSION)
        return err_set(err, ERR_FORMAT, "'%s' is of version %d, this program reads 1 to %d", s->path, (int)s->version,
                       STATE_VERSION);
    if (s->version < STATE_VERSION && use == STATE_CHANGE)
        return renew(s, err);
    return prepare(s, err) || read_store(s, err) ? err->code : look_for_parts(s, err);
}

/* SQLite gives the files beside the database its mode. */
static int make_file(const char *path, struct err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

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
    code = make_file(s->path, err);
    if (!code)
        code = open_database(s, use, err);
    if (code || !s->statement[0]) /* a writer was killed before it made the tables */
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
    buf_release(&s->line);
    free(s->path);
    free(s->uri);
    free(s);
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
        state_copy_text(load->manifest, sizeof(load->manifest), q, 1);
        state_copy_text(load->name, sizeof(load->name), q, 2);
        state_copy_text(load->before, sizeof(load->before), q, 3);
        state_copy_text(load->before_name, sizeof(load->before_name), q, 4);
        load->capacity = sqlite3_column_int64(q, 5);
        load->before_capacity = sqlite3_column_int64(q, 6);
        load->load = sqlite3_column_int64(q, 7);
        load->running = (enum state_running)sqlite3_column_int(q, 8);
        load->undoable = sqlite3_column_int(q, 9);
        load->number = sqlite3_column_int64(q, 10);
        if ((uint64_t)sqlite3_column_int64(q, 0) != load_sum(name_space, load))
            code = state_damaged(s, "a namespace", err);
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
    sqlite3_bind_int64(q, 2, (int64_t)load_sum(name_space, load));
    state_bind_text(q, 3, name_space);
    state_bind_text(q, 4, load->manifest);
    state_bind_text(q, 5, load->name);
    state_bind_text(q, 6, load->before);
    state_bind_text(q, 7, load->before_name);
    sqlite3_bind_int64(q, 8, load->capacity);
    sqlite3_bind_int64(q, 9, load->before_capacity);
    sqlite3_bind_int64(q, 10, load->load);
    sqlite3_bind_int(q, 11, (int)load->running);
    sqlite3_bind_int(q, 12, load->undoable);
    return state_step(s, PUT_SPACE, err);
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
    int code = state_flush_used(s, err) || put_store(s, err) ? err->code : 0;
    if (!code)
        code = run_text(s, "COMMIT", err);
    if (!code)
        s->changing = s->changed = false;
    return code;
}
