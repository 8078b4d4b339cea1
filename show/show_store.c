/* show_store.c - a tier's folder, from its state: the manifests in force, the payloads placed, and those kept for a
 * rollback; without access to the state, from its index. --check also reads every payload, and compares the index with
 * the state. */
#include "base/array.h"
#include "base/file.h"
#include "base/map.h"
#include "show/show.h"
#include "loader/store/folder.h"
#include "loader/store/index.h"
#include "loader/store/tier_store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct row {
    char *name_space;
    struct entry entry;
};

struct rows {
    struct row *at;
    int n, cap;
};

static void rows_release(struct rows *rows)
{
    for (int i = 0; i < rows->n; i++) {
        free(rows->at[i].name_space);
        entry_release(&rows->at[i].entry);
    }
    free(rows->at);
}

static int add_row(void *arg, const char *name_space, struct entry *e, struct err *err)
{
    struct rows *rows = arg;
    struct row row = { .name_space = strdup(name_space), .entry = *e };

    if (!row.name_space || ARRAY_PUSH(rows, row)) {
        free(row.name_space);
        return err_nomem(err);
    }
    *e = (struct entry){ 0 };
    return 0;
}

/* ---- the tables ---------------------------------------------------------- */

static void put_row(struct sheet *s, const struct row *row)
{
    const struct entry *e = &row->entry;

    sheet_text(s, NULL, e->id);
    sheet_int(s, NULL, e->n_tokens);
    sheet_text(s, NULL, e->config);
    sheet_bytes(s, NULL, e->bytes);
    sheet_bytes(s, NULL, e->size);
    sheet_text(s, NULL, e->checksum);
    sheet_text(s, NULL, row->name_space);
}

static void put_rows(struct sheet *s, const struct rows *rows)
{
    static const char *const column[] = { "context",    "n_tokens", "config",   "stored_bytes",
                                          "file_bytes", "checksum", "namespace" };
    int64_t bytes = 0;

    for (int i = 0; i < rows->n; i++)
        bytes += rows->at[i].entry.bytes;
    sheet_int(s, "n_placed", rows->n);
    sheet_bytes(s, "stored_bytes", bytes);
    sheet_table(s, "payloads", column, 7);
    for (int i = 0; i < rows->n; i++)
        put_row(s, &rows->at[i]);
    sheet_table_end(s);
}

/* The load of each namespace, in the order of their first rows. */
static int put_loads(struct sheet *s, struct tier_state *state, const struct rows *rows, struct err *err)
{
    static const char *const column[] = { "namespace", "manifest", "name", "load" };
    struct map seen = { 0 };
    int code = 0;

    sheet_table(s, "in_force", column, 4);
    for (int i = 0; i < rows->n && !code; i++) {
        const char *name = rows->at[i].name_space;
        struct state_load load;
        bool added = false;
        if (map_add(&seen, name, strlen(name), &added) < 0)
            code = err_nomem(err);
        if (code || !added)
            continue;
        code = state_get_load(state, name, &load, err);
        sheet_text(s, NULL, name);
        sheet_text(s, NULL, load.manifest);
        sheet_text(s, NULL, file_name(load.name));
        sheet_text(s, NULL, load.running ? "not ended" : "ended");
    }
    sheet_table_end(s);
    map_release(&seen);
    return code;
}

/* ---- the index alone ------------------------------------------------------- */

static void put_record(struct sheet *s, const struct index *ix, const struct index_record *r)
{
    char digest[DIGEST_HEX], checksum[XXH3_HEX];
    int name_space = r->key.name_space[0] << 8 | r->key.name_space[1];

    digest_hex(r->key.digest, sizeof(r->key.digest), digest);
    snprintf(checksum, sizeof(checksum), "%016" PRIx64, r->checksum);
    sheet_text(s, NULL, digest);
    sheet_int(s, NULL, r->n_tokens);
    sheet_text(s, NULL, ix->config[r->config].at);
    sheet_bytes(s, NULL, (int64_t)r->size);
    sheet_text(s, NULL, checksum);
    sheet_text(s, NULL, name_space < ix->n_name_spaces ? ix->name_space[name_space].at : "");
}

/* For users who may read the folder and not the state, such as members of the group that evp-load --group names. *err
 * says why the state is not read. */
static int show_index(struct sheet *s, const char *path, struct err *err)
{
    const struct err why = *err;
    static const char *const column[] = { "token_digest", "n_tokens", "config", "file_bytes", "checksum", "namespace" };
    struct index ix = { 0 };
    struct stat st;
    int folder;

    if (stat(path, &st))
        return err_set(err, ERR_IO, "there is no folder '%s'", path);
    if (folder_open(&folder, path, FOLDER_READ, st.st_uid, err))
        return err->code;
    int code = index_open(&ix, folder, err) ? err_wrap(err, "'%s'", path) : 0;
    close(folder);
    if (!code) {
        sheet_text(s, "only_the_index", why.msg);
        sheet_int(s, "n_placed", (int64_t)(ix.n - ix.n_parts));
        sheet_table(s, "payloads", column, 6);
        for (size_t i = 0; i < ix.n; i++)
            if (!index_is_part(&ix.record[i].key))
                put_record(s, &ix, &ix.record[i]);
        sheet_table_end(s);
    }
    index_close(&ix);
    return code;
}

/* ---- the checks ------------------------------------------------------------ */

/* The tier with its state in a folder: that folder, or a server. The caller frees uri and state. */
static int make_tier(struct tier *t, const char *path, const struct tier_state *state, struct err *err)
{
    *t = (struct tier){ .kind = tier_kind_of(state_uri(state)), .capacity = INT64_MAX };
    if (tier_set_name(t, "store", err) || tier_set_uri(t, tier_is_remote(t) ? state_uri(state) : path, err))
        return err->code;
    return tier_is_remote(t) ? tier_set_state(t, path, err) : 0;
}

static int check_rows(const struct tier *tier, const char *path, const struct rows *rows, struct err *err)
{
    struct tier_store_options o = { .tier = tier, .name_space = "", .use = STORE_LOOK };
    struct tier_store store;

    if (tier_store_open(&store, &o, err))
        return err->code;
    int code = 0;
    for (int i = 0; i < rows->n && !code; i++)
        if (tier_store_check(&store, &rows->at[i].entry, err))
            code = err_wrap(err, "'%s': context '%.80s'", path, rows->at[i].entry.id);
    tier_store_close(&store);
    return code;
}

static int check_payloads(const char *path, const struct rows *rows, const struct tier_state *state, struct err *err)
{
    struct tier tier;
    int code = make_tier(&tier, path, state, err);

    if (!code)
        code = check_rows(&tier, path, rows, err);
    free(tier.uri);
    free(tier.state);
    return code;
}

/* A writer that was killed, or is at work, has changed the state and not yet the index. */
static int check_index(const char *path, const struct tier_state *state, bool *behind, struct err *err)
{
    struct index ix;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = index_open(&ix, folder, err);

    if (folder >= 0)
        close(folder);
    if (code)
        return err_wrap(err, "'%s'", path);
    *behind = !index_is_of(&ix, state_id(state), state_generation(state));
    index_close(&ix);
    return !*behind
               ? 0
               : err_set(err, ERR_FORMAT,
                         "'%s': 'evp-index' does not belong to the state; the next evp-load writes it again", path);
}

/* ---- a store ------------------------------------------------------------------ */

/* SQLite writes files beside the one it reads, so the folder must be the user's own. */
static int open_state(struct tier_state **state, const char *path, struct err *err)
{
    int folder;

    if (folder_open(&folder, path, FOLDER_READ, geteuid(), err))
        return err->code;
    if (folder >= 0)
        close(folder);
    if (state_open(state, path, "", STATE_LOOK, err))
        return err->code;
    return *state ? 0
                  : err_set(err, ERR_FORMAT, "'%s' has no 'evp-state': the state is in another folder, or was removed",
                            path);
}

/* Has the store changed since it was read? An index that is behind is given a second to follow. */
static bool has_moved(const char *path, uint64_t generation, bool behind)
{
    const struct timespec moment = { .tv_nsec = 20000000 };

    for (int tries = 0; tries < 50; tries++) {
        struct tier_state *state;
        struct err ignored;
        if (open_state(&state, path, &ignored))
            return false;
        bool moved = state_generation(state) != generation || (behind && !check_index(path, state, &behind, &ignored));
        state_close(state);
        if (moved || !behind)
            return moved;
        nanosleep(&moment, NULL);
    }
    return false;
}

static int check_store(const char *path, const struct rows *rows, struct tier_state *state, bool *behind,
                       struct err *err)
{
    return state_check(state, err) || check_index(path, state, behind, err) || check_payloads(path, rows, state, err)
               ? err->code
               : 0;
}

/* What a check finds in a store that changes meanwhile may be the change: the check is made again. */
int show_store(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    enum { TRIES = 20 };
    struct rows rows = { 0 };
    struct tier_state *state = NULL;
    int code = 0;

    for (int tries = 0; tries < TRIES; tries++) {
        bool behind = false;
        code = open_state(&state, path, err) || state_each(state, add_row, &rows, err) ? err->code : 0;
        if (code || depth != SHOW_CHECK)
            break;
        code = check_store(path, &rows, state, &behind, err);
        if (!code || !has_moved(path, state_generation(state), behind))
            break;
        rows_release(&rows);
        state_close(state);
        rows = (struct rows){ 0 };
        state = NULL;
        code = err_set(err, ERR_FAIL, "'%s' changes all the time: it could not be checked", path);
    }
    if (!code)
        code = put_loads(s, state, &rows, err);
    if (!code)
        put_rows(s, &rows);
    else if (depth != SHOW_CHECK && (code == ERR_IO || code == ERR_FAIL))
        code = show_index(s, path, err);
    state_close(state);
    rows_release(&rows);
    return code;
}
