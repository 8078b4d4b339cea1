/* stored.c - entries read, written and copied. A file may be damaged or edited, so every field is checked before
 * use. */
#include "formats/stored.h"

#include "base/array.h"
#include "formats/fields.h"
#include "formats/manifest.h"
#include "formats/operation.h"

#include <stdlib.h>
#include <string.h>

static const char hex_digits[] = "0123456789abcdef";

/* ---- names ---------------------------------------------------------------- */

static const char folders[] = "evp-payloads/00/";
enum { FOLDERS = sizeof(folders) - 1 };

void object_file(const uint8_t id[OBJECT_ID], char file[OBJECT_FILE])
{
    memcpy(file, folders, FOLDERS);
    digest_hex(id, OBJECT_ID, file + FOLDERS);
    memcpy(file + FOLDERS - 3, file + FOLDERS, 2); /* replaces the zeros */
}

bool object_parse(const char *file, uint8_t id[OBJECT_ID])
{
    char again[OBJECT_FILE];

    if (strnlen(file, OBJECT_FILE) != FOLDERS + 2 * OBJECT_ID)
        return false;
    digest_from_hex(file + FOLDERS, id, OBJECT_ID);
    object_file(id, again);
    return strcmp(file, again) == 0;
}

bool entry_file_safe(const char *file)
{
    uint8_t id[OBJECT_ID];

    return object_parse(file, id);
}

int entry_object(const struct entry *e, const char *name_space, uint8_t id[OBJECT_ID], struct err *err)
{
    const char *text[] = { name_space, e->model_digest, e->token_digest, e->config, e->checksum };
    char hex[DIGEST_HEX];
    struct buf key = { 0 };

    for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++) {
        buf_adds(&key, text[i]);
        buf_addc(&key, '\n');
    }
    buf_printf(&key, "%lld", (long long)e->size);
    int code = buf_failed(&key) ? err_nomem(err) : digest_sha256(key.at, key.n, hex, err);
    buf_release(&key);
    if (!code)
        digest_from_hex(hex, id, OBJECT_ID);
    return code;
}

int entry_set_file(struct entry *e, const char *name_space, struct err *err)
{
    char file[OBJECT_FILE];
    uint8_t id[OBJECT_ID];

    if (entry_object(e, name_space, id, err))
        return err->code;
    object_file(id, file);
    free(e->file);
    e->file = strdup(file);
    return e->file ? 0 : err_nomem(err);
}

/* ---- fields --------------------------------------------------------------- */

static int copy_digest(char to[DIGEST_HEX], const char *name, const char *hex, struct err *err)
{
    if (field_check_digest(name, hex, err))
        return err->code;
    memcpy(to, hex, DIGEST_HEX);
    return 0;
}

static int check_checksum(const char *hex, struct err *err)
{
    if (strlen(hex) != XXH3_HEX - 1 || strspn(hex, hex_digits) != XXH3_HEX - 1)
        return err_set(err, ERR_FORMAT, "field 'checksum' is not %d lower-case hex digits", XXH3_HEX - 1);
    return 0;
}

int entry_check_want(const struct entry *e, struct err *err)
{
    if (field_check_tokens("n_tokens", e->n_tokens, err))
        return err->code;
    if (e->bytes < 0)
        return err_set(err, ERR_FORMAT, "field 'bytes' is out of range");
    if (!*e->id || strlen(e->id) >= MANIFEST_ID || !*e->config || strlen(e->config) >= MANIFEST_CONFIG)
        return err_set(err, ERR_FORMAT, "field '%s' is empty or too long",
                       !*e->id || strlen(e->id) >= MANIFEST_ID ? "id" : "config");
    if (field_check_digest("token_digest", e->token_digest, err))
        return err->code;
    return *e->model_digest ? field_check_digest("model_digest", e->model_digest, err) : 0;
}

int entry_check(const struct entry *e, struct err *err)
{
    if (entry_check_want(e, err))
        return err->code;
    if (e->size < 1)
        return err_set(err, ERR_FORMAT, "field 'size' is out of range");
    if (!entry_file_safe(e->file))
        return err_set(err, ERR_FORMAT, "field 'file' is '%.80s', not the name of a stored payload", e->file);
    return check_checksum(e->checksum, err);
}

int entry_from_json(struct entry *e, const struct json *row, struct err *err)
{
    const char *id, *config, *file, *token_digest, *checksum, *model_digest = NULL;

    *e = (struct entry){ 0 };
    if (json_want_text(row, "id", &id, err) || json_want_text(row, "config", &config, err) ||
        json_want_text(row, "file", &file, err) || json_want_text(row, "token_digest", &token_digest, err) ||
        json_want_text(row, "checksum", &checksum, err) || json_may_text(row, "model_digest", &model_digest, err) ||
        json_want_int(row, "n_tokens", &e->n_tokens, err) || json_want_int(row, "bytes", &e->bytes, err) ||
        json_want_int(row, "size", &e->size, err) || copy_digest(e->token_digest, "token_digest", token_digest, err) ||
        (model_digest && copy_digest(e->model_digest, "model_digest", model_digest, err)) ||
        check_checksum(checksum, err))
        return err->code;
    memcpy(e->checksum, checksum, sizeof(e->checksum));
    e->id = strdup(id);
    e->config = strdup(config);
    e->file = strdup(file);
    int code = e->id && e->config && e->file ? entry_check(e, err) : err_nomem(err);
    if (code)
        entry_release(e);
    return code;
}

void entry_to_json(const struct entry *e, struct json_out *w)
{
    json_put_text(w, "id", e->id);
    json_put_text(w, "token_digest", e->token_digest);
    json_put_int(w, "n_tokens", e->n_tokens);
    json_put_text(w, "config", e->config);
    json_put_text(w, "model_digest", *e->model_digest ? e->model_digest : NULL);
    json_put_int(w, "bytes", e->bytes);
    json_put_text(w, "file", e->file);
    json_put_int(w, "size", e->size);
    json_put_text(w, "checksum", e->checksum);
}

int entry_copy(struct entry *to, const struct entry *from, struct err *err)
{
    *to = *from;
    to->id = strdup(from->id);
    to->config = strdup(from->config);
    to->file = from->file ? strdup(from->file) : NULL;
    to->payload = from->payload ? strdup(from->payload) : NULL;
    if (to->id && to->config && (to->file || !from->file) && (to->payload || !from->payload))
        return 0;
    entry_release(to);
    return err_nomem(err);
}

void entry_release(struct entry *e)
{
    free(e->id);
    free(e->config);
    free(e->file);
    free(e->payload);
    *e = (struct entry){ 0 };
}

struct cached entry_cached(const struct entry *e, const struct tier *tier)
{
    return (struct cached){ .token_digest = e->token_digest,
                            .config = e->config,
                            .model_digest = e->model_digest,
                            .bytes = -1, /* packing again may change the bytes */
                            .tier = tier };
}

bool entry_same(const struct entry *a, const struct entry *b)
{
    struct cached x = entry_cached(a, NULL), y = entry_cached(b, NULL);

    return strcmp(a->id, b->id) == 0 && cached_same(&x, &y);
}

int entries_add(struct entries *list, struct entry *e, struct err *err)
{
    if (ARRAY_PUSH(list, *e)) {
        entry_release(e);
        return err_nomem(err);
    }
    *e = (struct entry){ 0 };
    return 0;
}

void entries_release(struct entries *list)
{
    for (int i = 0; i < list->n; i++)
        entry_release(&list->at[i]);
    free(list->at);
    *list = (struct entries){ 0 };
}
