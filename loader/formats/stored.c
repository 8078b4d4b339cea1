/* stored.c - see stored.h. Rows come from files that anything may have happened to; nothing in them is believed. */
#include "loader/formats/stored.h"

#include "loader/formats/manifest.h"

#include <stdlib.h>
#include <string.h>

static const char hex_digits[] = "0123456789abcdef";
enum { FILE_PREFIX = 4 + 16 + 1 }; /* "evp-", the checksum, "-" */

bool entry_file_safe(const char *file)
{
    return strncmp(file, "evp-", 4) == 0 && strspn(file + 4, hex_digits) == 16 && file[20] == '-' &&
           manifest_payload_safe(file + FILE_PREFIX);
}

const char *entry_payload(const struct entry *e)
{
    return e->file + FILE_PREFIX;
}

int entry_set_file(struct entry *e, const char *payload, struct err *err)
{
    struct buf name = { 0 };

    buf_printf(&name, "evp-%s-%s", e->checksum, payload);
    free(e->file);
    e->file = buf_take(&name);
    return e->file ? 0 : err_nomem(err);
}

/* A hex text of exactly room - 1 digits, copied. */
static int copy_hex(char *to, size_t room, const char *name, const char *hex, struct err *err)
{
    if (strlen(hex) != room - 1 || strspn(hex, hex_digits) != room - 1)
        return err_set(err, ERR_FORMAT, "field '%s' is not %zu lower-case hex digits", name, room - 1);
    memcpy(to, hex, room);
    return 0;
}

static int check_numbers(const struct entry *e, struct err *err)
{
    if (e->n_tokens < 1 || e->n_tokens > INT32_MAX)
        return err_set(err, ERR_FORMAT, "field 'n_tokens' is out of range");
    if (e->bytes < 0 || e->size < 1)
        return err_set(err, ERR_FORMAT, "field '%s' is out of range", e->bytes < 0 ? "bytes" : "size");
    return 0;
}

static int check_texts(const struct entry *e, const char *id, const char *config, const char *file, struct err *err)
{
    if (!*id || strlen(id) >= MANIFEST_ID || !*config || strlen(config) >= MANIFEST_CONFIG)
        return err_set(err, ERR_FORMAT, "field '%s' is empty or too long",
                       !*id || strlen(id) >= MANIFEST_ID ? "id" : "config");
    if (!entry_file_safe(file))
        return err_set(err, ERR_FORMAT, "field 'file' is '%.80s', no name of a placed payload", file);
    if (strncmp(file + 4, e->checksum, XXH3_HEX - 1) != 0)
        return err_set(err, ERR_FORMAT, "field 'file' does not carry the checksum %s", e->checksum);
    return 0;
}

int entry_from_json(struct entry *e, const struct json *row, struct err *err)
{
    const char *id, *config, *file, *token_digest, *checksum, *model_digest = NULL;

    *e = (struct entry){ .spare = json_true(json_get(row, "spare")) };
    if (json_want_text(row, "id", &id, err) || json_want_text(row, "config", &config, err) ||
        json_want_text(row, "file", &file, err) || json_want_text(row, "token_digest", &token_digest, err) ||
        json_want_text(row, "checksum", &checksum, err) || json_may_text(row, "model_digest", &model_digest, err) ||
        json_want_int(row, "n_tokens", &e->n_tokens, err) || json_want_int(row, "bytes", &e->bytes, err) ||
        json_want_int(row, "size", &e->size, err) || check_numbers(e, err) ||
        copy_hex(e->token_digest, DIGEST_HEX, "token_digest", token_digest, err) ||
        copy_hex(e->checksum, XXH3_HEX, "checksum", checksum, err) ||
        (model_digest && copy_hex(e->model_digest, DIGEST_HEX, "model_digest", model_digest, err)) ||
        check_texts(e, id, config, file, err))
        return err->code;
    e->id = strdup(id);
    e->config = strdup(config);
    e->file = strdup(file);
    if (e->id && e->config && e->file)
        return 0;
    entry_release(e);
    return err_nomem(err);
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
    if (e->spare)
        json_put_bool(w, "spare", true);
}

int entry_copy(struct entry *to, const struct entry *from, struct err *err)
{
    *to = *from;
    to->id = strdup(from->id);
    to->config = strdup(from->config);
    to->file = from->file ? strdup(from->file) : NULL;
    if (to->id && to->config && (to->file || !from->file))
        return 0;
    entry_release(to);
    return err_nomem(err);
}

void entry_release(struct entry *e)
{
    free(e->id);
    free(e->config);
    free(e->file);
    *e = (struct entry){ 0 };
}

bool entry_same(const struct entry *a, const struct entry *b)
{
    return strcmp(a->token_digest, b->token_digest) == 0 && strcmp(a->id, b->id) == 0 &&
           strcmp(a->config, b->config) == 0 && strcmp(a->model_digest, b->model_digest) == 0;
}

int entries_add(struct entries *list, struct entry *e, struct err *err)
{
    if (list->n == list->room) {
        int room = list->room ? 2 * list->room : 64;
        struct entry *at = room > list->room ? realloc(list->at, (size_t)room * sizeof(*at)) : NULL;
        if (!at) {
            entry_release(e);
            return err_nomem(err);
        }
        list->at = at;
        list->room = room;
    }
    list->at[list->n++] = *e;
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
