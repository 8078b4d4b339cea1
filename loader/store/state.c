/* state.c - the SQLite database of a tier's folder. The only file that knows SQLite.
 *
 * `total` is the sum of all rows' checksums, modulo 2^64: rows that a damaged page hides are missed by it. A row's
 * checksum covers all but the mark `was_placed`, which one statement sets for a million rows.
 */
#include "loader/store/state.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { STATE_VERSION = 1, BUSY_MS = 10000 };

enum statement { GET_STORE, PUT_STORE, GET_SPACE, PUT_SPACE, EACH, INSERT, UPDATE, DELETE, KEEP, FORGET, N_STATEMENTS };

static const char *const sql[N_STATEMENTS] = {
    [GET_STORE] = "SELECT sum, uri, generation, n_payloads, total, swept, id FROM store",
    [PUT_STORE] = "REPLACE INTO store VALUES(1, ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [GET_SPACE] =
        "SELECT sum, manifest, manifest_name, previous, previous_name, capacity, previous_capacity, load, running, "
        "undoable, number FROM namespace WHERE name = ?1",
    [PUT_SPACE] = "REPLACE INTO namespace VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    [EACH] = "SELECT p.sum, p.number, s.name, p.was_placed, p.context, p.config, p.payload, p.file, p.token_digest, "
             "p.model_digest, p.checksum, p.prefix, p.n_tokens, p.bytes, p.size, p.present, p.placed, p.namespace "
             "FROM payload AS p LEFT JOIN namespace AS s ON p.namespace = s.number ORDER BY p.number",
    [INSERT] =
        "INSERT INTO payload VALUES(NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    [UPDATE] = "UPDATE payload SET sum = ?1, bytes = ?2, present = ?3, placed = ?4 WHERE number = ?5",
    [DELETE] = "DELETE FROM payload WHERE number = ?1",
    [KEEP] = "UPDATE payload SET was_placed = placed WHERE namespace = ?1 AND was_placed <> placed",
    [FORGET] = "UPDATE payload SET was_placed = 0 WHERE namespace = ?1 AND was_placed <> 0",
};

static const char tables[] =
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

struct state {
    sqlite3 *db;
    sqlite3_stmt *statement[N_STATEMENTS];
    char *path, *uri;
    uint8_t id[OBJECT_ID];
    uint64_t generation, total;
    int64_t n_payloads;
    bool swept, changing, changed; // in a transaction; it changes payloads
    struct buf line;               // of entry_sum()
};

/* ---- errors ----------------------------------------------------------------- */

static int damaged(const struct state *s, const char *what, struct err *err)
{
    return err_set(err, ERR_FORMAT,
                   "'%s' is damaged (%s): remove it with its -wal and -shm, and load again with the payload folder",
                   s->path, what);
}

static int failed(const struct state *s, struct err *err)
{
    int code = sqlite3_errcode(s->db);

    if (code == SQLITE_NOMEM)
        return err_nomem(err);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR || code == SQLITE_CONSTRAINT)
        return damaged(s, sqlite3_errmsg(s->db), err);
    return err_set(err, ERR_IO, "cannot use '%s': %s", s->path, sqlite3_errmsg(s->db));
}

/* ---- statements ---------------------------------------------------------------- */

static int run_text(struct state *s, const char *text, struct err *err)
{
    return sqlite3_exec(s->db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(s, err);
}

static void bind_text(sqlite3_stmt *q, int at, const char *text)
{
    sqlite3_bind_text(q, at, text, -1, SQLITE_STATIC);
}

/* Carries out a statement that returns no rows; its values are bound. */
static int step(struct state *s, enum statement which, struct err *err)
{
    sqlite3_stmt *q = s->statement[which];
    int code = sqlite3_step(q) == SQLITE_DONE ? 0 : failed(s, err);

    sqlite3_reset(q);
    return code;
}

/* A column's text; a value of another type reads as "". */
static const char *text_at(sqlite3_stmt *q, int column)
{
    bool text = sqlite3_column_type(q, column) == SQLITE_TEXT;

    return text ? (const char *)sqlite3_column_text(q, column) : "";
}

static void copy_text(char *to, size_t size, sqlite3_stmt *q, int column)
{
    const char *text = text_at(q, column);
    size_t n = strnlen(text, size - 1);

    memcpy(to, text, n);
    to[n] = '\0';
}

/* Begins a transaction unless one is open. */
static int change(struct state *s, struct err *err)
{
    if (s->changing)
        return 0;
    s->changing = true;
    return run_text(s, "BEGIN IMMEDIATE", err);
}

/* ---- checksums ------------------------------------------------------------------- */

static uint64_t sum_of(struct buf *text)
{
    uint64_t sum = buf_failed(text) ? 0 : digest_xxh3(text->at, text->n);

    buf_release(text);
    return sum;
}

static uint64_t store_sum(const struct state *s)
{
    struct buf b = { 0 };
    char id[2 * OBJECT_ID + 1];

    digest_hex(s->id, OBJECT_ID, id);
    buf_printf(&b, "%s\n%llu\n%lld\n%llu\n%d\n%s", s->uri, (unsigned long long)s->generation, (long long)s->n_payloads,
               (unsigned long long)s->total, s->swept, id);
    return sum_of(&b);
}

static uint64_t load_sum(const char *name_space, const struct state_load *l)
{
    struct buf b = { 0 };

    buf_printf(&b, "%lld\n%s\n%s\n%s\n%s\n%s\n%lld\n%lld\n%lld\n%d\n%d", (long long)l->number, name_space, l->manifest,
               l->name, l->before, l->before_name, (long long)l->capacity, (long long)l->before_capacity,
               (long long)l->load, (int)l->running, l->undoable);
    return sum_of(&b);
}

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

static uint64_t entry_sum(struct state *s, int64_t name_space, const struct entry *e)
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

/* ---- the store's row ---------------------------------------------------------------- */

static int put_store(struct state *s, struct err *err)
{
    sqlite3_stmt *q = s->statement[PUT_STORE];

    sqlite3_bind_int64(q, 1, (int64_t)store_sum(s));
    bind_text(q, 2, s->uri);
    sqlite3_bind_int64(q, 3, (int64_t)s->generation);
    sqlite3_bind_int64(q, 4, s->n_payloads);
    sqlite3_bind_int64(q, 5, (int64_t)s->total);
    sqlite3_bind_int(q, 6, s->swept);
    sqlite3_bind_blob(q, 7, s->id, OBJECT_ID, SQLITE_STATIC);
    return step(s, PUT_STORE, err);
}

static int read_store(struct state *s, struct err *err)
{
    sqlite3_stmt *q = s->statement[GET_STORE];
    char *uri = s->uri;

    if (sqlite3_step(q) != SQLITE_ROW)
        return sqlite3_errcode(s->db) == SQLITE_DONE ? damaged(s, "it is empty", err) : failed(s, err);
    s->uri = strdup(text_at(q, 1));
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
    int code = !s->uri ? err_nomem(err) : whole ? 0 : damaged(s, "its first row", err);
    if (!code && *uri && strcmp(s->uri, uri) != 0)
        code = err_set(err, ERR_FORMAT, "'%s' is the state of the tier at '%s', not of '%s'", s->path, s->uri, uri);
    free(uri);
    return code;
}

/* ---- opening -------------------------------------------------------------------------- */

static int prepare(struct state *s, struct err *err)
{
    for (int i = 0; i < N_STATEMENTS; i++)
        if (sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statement[i], NULL) != SQLITE_OK)
            return failed(s, err);
    return 0;
}

/* The number that the statement `text` gives. */
static int read_number(struct state *s, const char *text, int64_t *number, struct err *err)
{
    sqlite3_stmt *q;

    if (sqlite3_prepare_v2(s->db, text, -1, &q, NULL) != SQLITE_OK)
        return failed(s, err);
    int code = sqlite3_step(q) == SQLITE_ROW ? 0 : failed(s, err);
    *number = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return code;
}

static int make_tables(struct state *s, struct err *err)
{
    if (getrandom(s->id, sizeof(s->id), 0) != sizeof(s->id))
        return err_set(err, ERR_IO, "no random bytes: %s", strerror(errno));
    if (change(s, err) || run_text(s, tables, err) || prepare(s, err))
        return err->code;
    return state_commit(s, err);
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

static int open_database(struct state *s, enum state_use use, struct err *err)
{
    int64_t version = 0;

    if (sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return s->db ? failed(s, err) : err_nomem(err);
    distrust(s->db);
    if (run_text(
            s,
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON",
            err) ||
        read_number(s, "PRAGMA user_version", &version, err))
        return err->code;
    if (version == 0)
        return use == STATE_CHANGE ? make_tables(s, err) : 0;
    if (version != STATE_VERSION)
        return err_set(err, ERR_FORMAT, "'%s' is of version %d, this program reads %d", s->path, (int)version,
                       STATE_VERSION);
    return prepare(s, err) ? err->code : read_store(s, err);
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

int state_open(struct state **state, const char *dir, const char *uri, enum state_use use, struct err *err)
{
    struct state *s = calloc(1, sizeof(*s));
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

void state_close(struct state *s)
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

const uint8_t *state_id(const struct state *s)
{
    return s->id;
}

uint64_t state_generation(const struct state *s)
{
    return s->generation;
}

bool state_is_swept(const struct state *s)
{
    return s->swept;
}

/* ---- namespaces ------------------------------------------------------------------------- */

int state_get_load(struct state *s, const char *name_space, struct state_load *load, struct err *err)
{
    sqlite3_stmt *q = s->statement[GET_SPACE];
    int code = 0;

    *load = (struct state_load){ 0 };
    bind_text(q, 1, name_space);
    int got = sqlite3_step(q);
    if (got == SQLITE_ROW) {
        copy_text(load->manifest, sizeof(load->manifest), q, 1);
        copy_text(load->name, sizeof(load->name), q, 2);
        copy_text(load->before, sizeof(load->before), q, 3);
        copy_text(load->before_name, sizeof(load->before_name), q, 4);
        load->capacity = sqlite3_column_int64(q, 5);
        load->before_capacity = sqlite3_column_int64(q, 6);
        load->load = sqlite3_column_int64(q, 7);
        load->running = (enum state_running)sqlite3_column_int(q, 8);
        load->undoable = sqlite3_column_int(q, 9);
        load->number = sqlite3_column_int64(q, 10);
        if ((uint64_t)sqlite3_column_int64(q, 0) != load_sum(name_space, load))
            code = damaged(s, "a namespace", err);
    } else if (got != SQLITE_DONE)
        code = failed(s, err);
    sqlite3_reset(q);
    return code;
}

int state_put_load(struct state *s, const char *name_space, struct state_load *load, struct err *err)
{
    sqlite3_stmt *q = s->statement[PUT_SPACE];

    if (change(s, err) ||
        (!load->number && read_number(s, "SELECT 1 + ifnull(max(number), 0) FROM namespace", &load->number, err)))
        return err->code;
    sqlite3_bind_int64(q, 1, load->number);
    sqlite3_bind_int64(q, 2, (int64_t)load_sum(name_space, load));
    bind_text(q, 3, name_space);
    bind_text(q, 4, load->manifest);
    bind_text(q, 5, load->name);
    bind_text(q, 6, load->before);
    bind_text(q, 7, load->before_name);
    sqlite3_bind_int64(q, 8, load->capacity);
    sqlite3_bind_int64(q, 9, load->before_capacity);
    sqlite3_bind_int64(q, 10, load->load);
    sqlite3_bind_int(q, 11, (int)load->running);
    sqlite3_bind_int(q, 12, load->undoable);
    return step(s, PUT_SPACE, err);
}

/* ---- payloads ---------------------------------------------------------------------------- */

static int read_entry(struct state *s, sqlite3_stmt *q, struct entry *e, struct err *err)
{
    const void *prefix = sqlite3_column_blob(q, 11);

    *e = (struct entry){ .row = sqlite3_column_int64(q, 1),
                         .sum = (uint64_t)sqlite3_column_int64(q, 0),
                         .id = strdup(text_at(q, 4)),
                         .config = strdup(text_at(q, 5)),
                         .payload = strdup(text_at(q, 6)),
                         .file = strdup(text_at(q, 7)),
                         .n_tokens = sqlite3_column_int64(q, 12),
                         .bytes = sqlite3_column_int64(q, 13),
                         .size = sqlite3_column_int64(q, 14),
                         .present = sqlite3_column_int(q, 15),
                         .placed = sqlite3_column_int(q, 16),
                         .before = sqlite3_column_int(q, 3) };
    if (!e->id || !e->config || !e->payload || !e->file)
        return err_nomem(err);
    copy_text(e->token_digest, sizeof(e->token_digest), q, 8);
    copy_text(e->model_digest, sizeof(e->model_digest), q, 9);
    copy_text(e->checksum, sizeof(e->checksum), q, 10);
    if (prefix && sqlite3_column_bytes(q, 11) == OBJECT_ID)
        memcpy(e->prefix, prefix, OBJECT_ID);
    if (sqlite3_column_type(q, 2) != SQLITE_TEXT || e->sum != entry_sum(s, sqlite3_column_int64(q, 17), e) ||
        entry_check(e, err))
        return damaged(s, "a payload's row", err);
    return 0;
}

int state_each(struct state *s, state_visit *each, void *arg, struct err *err)
{
    sqlite3_stmt *q = s->statement[EACH];
    uint64_t total = 0;
    int64_t n = 0;
    int got, code = 0;

    while (!code && (got = sqlite3_step(q)) == SQLITE_ROW) {
        struct entry e;
        code = read_entry(s, q, &e, err);
        n++;
        total += e.sum;
        if (!code)
            code = each(arg, text_at(q, 2), &e, err);
        entry_release(&e);
    }
    if (!code && got != SQLITE_DONE)
        code = failed(s, err);
    sqlite3_reset(q);
    if (!code && (n != s->n_payloads || total != s->total))
        code = damaged(s, "rows are missing", err);
    return code;
}

int state_insert(struct state *s, int64_t name_space, struct entry *e, struct err *err)
{
    sqlite3_stmt *q = s->statement[INSERT];

    if (change(s, err))
        return err->code;
    e->sum = entry_sum(s, name_space, e);
    sqlite3_bind_int64(q, 1, (int64_t)e->sum);
    sqlite3_bind_int64(q, 2, name_space);
    sqlite3_bind_int(q, 3, e->before);
    bind_text(q, 4, e->id);
    bind_text(q, 5, e->config);
    bind_text(q, 6, e->payload);
    bind_text(q, 7, e->file);
    bind_text(q, 8, e->token_digest);
    bind_text(q, 9, e->model_digest);
    bind_text(q, 10, e->checksum);
    sqlite3_bind_blob(q, 11, e->prefix, OBJECT_ID, SQLITE_STATIC);
    sqlite3_bind_int64(q, 12, e->n_tokens);
    sqlite3_bind_int64(q, 13, e->bytes);
    sqlite3_bind_int64(q, 14, e->size);
    sqlite3_bind_int(q, 15, e->present);
    sqlite3_bind_int(q, 16, e->placed);
    if (step(s, INSERT, err))
        return err->code;
    e->row = sqlite3_last_insert_rowid(s->db);
    s->n_payloads++;
    s->total += e->sum;
    s->changed = true;
    return 0;
}

int state_update(struct state *s, int64_t name_space, struct entry *e, struct err *err)
{
    sqlite3_stmt *q = s->statement[UPDATE];

    if (change(s, err))
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
    return step(s, UPDATE, err);
}

int state_delete(struct state *s, struct entry *e, struct err *err)
{
    if (change(s, err))
        return err->code;
    s->n_payloads--;
    s->total -= e->sum;
    s->changed = true;
    sqlite3_bind_int64(s->statement[DELETE], 1, e->row);
    return step(s, DELETE, err);
}

static int mark_all(struct state *s, enum statement which, int64_t name_space, struct err *err)
{
    if (change(s, err))
        return err->code;
    sqlite3_bind_int64(s->statement[which], 1, name_space);
    return step(s, which, err);
}

int state_keep_before(struct state *s, int64_t name_space, struct err *err)
{
    return mark_all(s, KEEP, name_space, err);
}

int state_forget_before(struct state *s, int64_t name_space, struct err *err)
{
    return mark_all(s, FORGET, name_space, err);
}

int state_set_swept(struct state *s, bool swept, struct err *err)
{
    s->swept = swept;
    return change(s, err);
}

int state_commit(struct state *s, struct err *err)
{
    if (!s->changing)
        return 0;
    s->generation += s->changed;
    int code = put_store(s, err);
    if (!code)
        code = run_text(s, "COMMIT", err);
    if (!code)
        s->changing = s->changed = false;
    return code;
}
