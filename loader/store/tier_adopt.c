/* tier_adopt.c - payloads that the state does not name. If the state was lost, or restored from a copy, they are read
 * and named again. Otherwise a killed writer left them, and they are removed.
 */
#include "base/map.h"
#include "loader/store/blob_payload.h"
#include "loader/store/folder.h"
#include "loader/store/tier_store.h"

#include <stdlib.h>
#include <string.h>

struct unnamed {
    struct tier_store *store;
    struct map named, spaces; // the files that rows name; the known namespaces
};

static void unnamed_release(struct unnamed *w)
{
    map_release(&w->named);
    map_release(&w->spaces);
}

static int add_text(struct map *m, const char *text, struct err *err)
{
    return map_add(m, text, strlen(text), NULL) < 0 ? err_nomem(err) : 0;
}

static int add_row(void *arg, const char *name_space, struct entry *e, struct err *err)
{
    struct unnamed *w = arg;

    return add_text(&w->named, e->file, err) || add_text(&w->spaces, name_space, err) ? err->code : 0;
}

static int unnamed_begin(struct unnamed *w, struct tier_store *s, struct err *err)
{
    *w = (struct unnamed){ .store = s };
    int code = add_text(&w->spaces, s->name_space, err);
    for (int i = 0; i < s->index.n_name_spaces && !code; i++)
        code = add_text(&w->spaces, s->index.name_space[i].at, err);
    return code || state_each(s->state, add_row, w, err) ? err->code : 0;
}

static bool is_named(const struct unnamed *w, const char *file)
{
    return map_find(&w->named, file, strlen(file)) >= 0;
}

/* ---- from a payload to its entry -------------------------------------------------------- */

static int set_prefix(struct entry *e, const struct payload *p, const struct blob *b, struct err *err)
{
    char *tokens = malloc((size_t)p->tokens->bytes);
    int code = !tokens || blob_read(b, tokens, (size_t)p->tokens->bytes, p->tokens->offset, err)
                   ? (tokens ? err->code : err_nomem(err))
                   : index_prefix(tokens, p->n_tokens, e->prefix, err);

    free(tokens);
    return code;
}

/* The payload does not say which context it belongs to: the entry's id is its token digest. */
static int set_entry(struct entry *e, const struct payload *p, const struct blob *b, struct err *err)
{
    memcpy(e->token_digest, p->token_digest, DIGEST_HEX);
    memcpy(e->model_digest, p->model_digest, DIGEST_HEX);
    e->n_tokens = p->n_tokens;
    e->bytes = payload_bytes(p);
    e->id = strdup(p->token_digest);
    e->config = strdup(p->config);
    e->payload = strdup("");
    if (!e->id || !e->config || !e->payload)
        return err_nomem(err);
    return blob_checksum(b, &e->size, e->checksum, err) ? err->code : set_prefix(e, p, b, err);
}

/* Are the medium's objects files? Then their sizes need no record. */
static bool has_files(const struct tier_store *s)
{
    return !s->medium.driver->read;
}

/* Reads an object, and finds its namespace, whose name gives the object its name; *space -1: none of
 * the known ones. ERR_FORMAT: it is not a whole payload. The caller releases *e. */
static int read_object(const struct unnamed *w, const struct medium_object *object, struct entry *e, int *space,
                       struct err *err)
{
    const struct medium *m = &w->store->medium;
    int64_t size = has_files(w->store) ? folder_file_size(m->folder, object->key) : object->size;
    struct blob_payload p;
    struct blob b;

    *space = -1;
    int code = medium_get(m, object->key, size, &b, err);
    if (code)
        return code == MEDIUM_GONE ? err_set(err, ERR_IO, "it has gone") : code;
    code = blob_payload_open(&p, &b, (uint64_t)size, err);
    if (!code)
        code = set_entry(e, &p.payload, &b, err);
    blob_payload_close(&p);
    blob_close(&b);
    for (int i = 0; i < w->spaces.n && !code && *space < 0; i++) {
        code = entry_set_file(e, w->spaces.at[i].key, err);
        if (!code && strcmp(e->file, object->key) == 0)
            *space = i;
    }
    return code || entry_check(e, err) ? err->code : 0;
}

/* ---- adopting ------------------------------------------------------------------------------ */

static int insert(struct unnamed *w, struct entry *e, int space, struct err *err)
{
    struct tier_state *state = w->store->state;
    const char *name = w->spaces.at[space].key;
    struct state_load load;

    if (state_get_load(state, name, &load, err) || (!load.number && state_put_load(state, name, &load, err)) ||
        state_insert(state, load.number, e, err))
        return err->code;
    w->store->n_adopted++;
    return add_text(&w->named, e->file, err);
}

static int adopt_object(void *arg, const struct medium_object *object, struct err *err)
{
    struct unnamed *w = arg;
    struct entry e = { 0 };
    struct err why;
    int space;

    if (is_named(w, object->key) || !entry_file_safe(object->key))
        return 0;
    int code = read_object(w, object, &e, &space, &why);
    if (code == ERR_NOMEM)
        *err = why;
    else
        code = !code && space >= 0 ? insert(w, &e, space, err) : 0;
    entry_release(&e);
    return code;
}

static int adopt_indexed(struct unnamed *w, struct err *err)
{
    const struct index *ix = &w->store->index;
    int code = 0;

    for (size_t i = 0; i < ix->n && !code; i++) {
        char file[OBJECT_FILE];
        object_file(ix->record[i].object, file);
        if (!index_is_part(&ix->record[i].key))
            code = adopt_object(w, &(struct medium_object){ file, (int64_t)ix->record[i].size }, err);
    }
    return code;
}

int tier_store_adopt(struct tier_store *s, struct err *err)
{
    struct unnamed w;
    int code = unnamed_begin(&w, s, err);

    if (!code)
        code = adopt_indexed(&w, err);
    if (!code && has_files(s))
        code = s->medium.driver->each(&s->medium, adopt_object, &w, err);
    if (!code)
        code = state_set_swept(s->state, false, err) || tier_store_commit(s, err) ? err->code : 0;
    unnamed_release(&w);
    return code;
}

static int refuse_object(void *arg, const struct medium_object *object, struct err *err)
{
    (void)arg;
    return entry_file_safe(object->key)
               ? err_set(err, ERR_FORMAT,
                         "its state was lost or is older than its payloads: the next evp-load finds them "
                         "again")
               : 0;
}

int tier_store_refuse_lost(const struct tier_store *s, struct err *err)
{
    char file[OBJECT_FILE];

    if (s->index.n) {
        object_file(s->index.record[0].object, file);
        return refuse_object(NULL, &(struct medium_object){ file, 0 }, err);
    }
    return has_files(s) ? s->medium.driver->each(&s->medium, refuse_object, NULL, err) : 0;
}

/* ---- sweeping ------------------------------------------------------------------------------- */

/* Leaves a file that cannot be read, and a whole payload of an unknown namespace. */
static int sweep_object(void *arg, const struct medium_object *object, struct err *err)
{
    const struct unnamed *w = arg;
    struct tier_store *s = w->store;
    struct entry e = { 0 };
    struct err why;
    int space = -1, code = ERR_FORMAT;

    if (is_named(w, object->key) || !entry_file_safe(object->key))
        return 0;
    if (has_files(s))
        code = read_object(w, object, &e, &space, &why);
    entry_release(&e);
    if (code ? code == ERR_FORMAT : space >= 0)
        return s->medium.driver->remove(&s->medium, object, err);
    s->n_unknown++;
    return 0;
}

int tier_store_sweep(struct tier_store *s, struct err *err)
{
    struct unnamed w;
    int code = unnamed_begin(&w, s, err) || s->medium.driver->each(&s->medium, sweep_object, &w, err) ? err->code : 0;

    unnamed_release(&w);
    s->unswept = code;
    return code;
}
