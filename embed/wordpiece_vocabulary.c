/* wordpiece_vocabulary.c - vocab.txt or tokenizer.json to tokens with ids, and to the special tokens that are split off
 * a text first. Both files are hostile: lengths, ids and types are checked. */
#include "embed/wordpiece_internal.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_VOCAB = 1 << 24,
    MAX_FILE = 256 << 20,
    SHOWN = 64, /* bytes of a token in a message */
};

/* ---- tokens -------------------------------------------------------------- */

static int shown(size_t n)
{
    return n < SHOWN ? (int)n : SHOWN;
}

static int add_piece(struct wordpiece *w, const char *text, size_t n, int64_t id, struct err *err)
{
    bool added;
    int number = map_add(&w->names, text, n, &added);

    if (number < 0)
        return err_nomem(err);
    if (!added)
        return err_set(err, ERR_FORMAT, "token '%.*s' occurs twice", shown(n), text);
    if (id < 0 || id >= MAX_VOCAB)
        return err_set(err, ERR_FORMAT, "token '%.*s' has id %lld, not 0 to %d", shown(n), text, (long long)id,
                       MAX_VOCAB - 1);
    w->id[number] = (int32_t)id;
    if (id >= w->n_vocab)
        w->n_vocab = (int)id + 1;
    if (n > w->longest)
        w->longest = n;
    return 0;
}

static int alloc_ids(struct wordpiece *w, size_t n, struct err *err)
{
    if (n > MAX_VOCAB)
        return err_set(err, ERR_FORMAT, "the vocabulary has %zu tokens, more than %d", n, MAX_VOCAB);
    w->id = calloc(n + 1, sizeof(*w->id));
    return w->id ? 0 : err_nomem(err);
}

/* The id of a token, or -1. */
static int32_t id_of(const struct wordpiece *w, const char *text)
{
    int number = map_find(&w->names, text, strlen(text));

    return number < 0 ? -1 : w->id[number];
}

/* ---- special tokens ------------------------------------------------------ */

static int add_special(struct wordpiece *w, const char *text, int32_t id, struct err *err)
{
    struct wordpiece_special s = { .text = strdup(text), .n = strlen(text), .id = id };

    if (!s.text || ARRAY_PUSH(&w->specials, s)) {
        free(s.text);
        return err_nomem(err);
    }
    w->opens_special[(unsigned char)*text] = true;
    if (id >= w->n_vocab)
        w->n_vocab = id + 1;
    return 0;
}

/* vocab.txt does not mark special tokens. */
static int add_default_specials(struct wordpiece *w, struct err *err)
{
    static const char *const name[] = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" };

    for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
        if (id_of(w, name[i]) >= 0 && add_special(w, name[i], id_of(w, name[i]), err))
            return err->code;
    return 0;
}

/* Reads an entry of "added_tokens". Refuses a token that swallows blanks, matches whole words only, or is searched in
 * the normalised text: ids would differ from the library's. */
static int read_special(struct wordpiece *w, const struct json *token, struct err *err)
{
    static const char *const flag[] = { "lstrip", "rstrip", "single_word", "normalized" };
    const char *text;
    int64_t id;

    if (json_want_text(token, "content", &text, err) || json_want_int(token, "id", &id, err))
        return err->code;
    int32_t known = id_of(w, text);
    if (id < 0 || id >= MAX_VOCAB || (known >= 0 && known != id))
        return err_set(err, ERR_FORMAT, "added token '%.*s' has id %lld, which is not its id in the vocabulary", SHOWN,
                       text, (long long)id);
    for (size_t i = 0; i < sizeof(flag) / sizeof(*flag); i++)
        if (json_true(json_get(token, flag[i])))
            return err_set(err, ERR_FORMAT, "added token '%.*s' is '%s', which is not supported", SHOWN, text, flag[i]);
    for (int i = 0; i < w->specials.n; i++)
        if (strcmp(w->specials.at[i].text, text) == 0)
            return err_set(err, ERR_FORMAT, "added token '%.*s' occurs twice", SHOWN, text);
    return *text ? add_special(w, text, (int32_t)id, err) : 0;
}

/* ---- files --------------------------------------------------------------- */

/* One token per line, numbered from 0. */
static int read_text(struct wordpiece *w, const struct buf *text, struct err *err)
{
    const char *p = buf_str(text), *end = p + text->n;
    size_t n_lines = 0;

    for (const char *q = p; q < end; q++)
        n_lines += *q == '\n';
    if (alloc_ids(w, n_lines + 1, err))
        return err->code;
    for (int64_t line = 0; p < end; line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop)
            stop = end;
        if (add_piece(w, p, (size_t)(stop - p), line, err))
            return err_wrap(err, "line %lld", (long long)line + 1);
        p = stop + 1;
    }
    return add_default_specials(w, err);
}

static int read_tokens(struct wordpiece *w, const struct json *vocab, struct err *err)
{
    if (alloc_ids(w, (size_t)json_count(vocab), err))
        return err->code;
    for (const struct json *v = json_first(vocab); v; v = json_next(v)) {
        double id = json_real(v);
        if (!(id >= 0 && id < MAX_VOCAB) || id != (double)(int64_t)id)
            return err_set(err, ERR_FORMAT, "token '%.*s' has no id from 0 to %d", SHOWN, json_name(v), MAX_VOCAB - 1);
        if (add_piece(w, json_name(v), strlen(json_name(v)), (int64_t)id, err))
            return err->code;
    }
    return 0;
}

static int read_json(struct wordpiece *w, const struct json *root, struct err *err)
{
    const struct json *model = json_get(root, "model"), *vocab = json_get(model, "vocab");
    const char *type = json_text(json_get(model, "type")),
               *mark = json_text(json_get(model, "continuing_subword_prefix"));

    if (!type || strcmp(type, "WordPiece") != 0 || !mark || strcmp(mark, "##") != 0 || !json_is_object(vocab))
        return err_set(err, ERR_FORMAT, "it holds no WordPiece model with '##' and a vocabulary");
    if (read_tokens(w, vocab, err))
        return err->code;
    for (const struct json *t = json_first(json_get(root, "added_tokens")); t; t = json_next(t))
        if (read_special(w, t, err))
            return err->code;
    return 0;
}

static int find_needed(const struct wordpiece *w, const char *text, int32_t *id, struct err *err)
{
    *id = id_of(w, text);
    return *id >= 0 ? 0 : err_set(err, ERR_FORMAT, "the vocabulary has no %s", text);
}

int vocabulary_parse(struct wordpiece *w, const struct buf *text, enum vocabulary_file kind, struct err *err)
{
    struct json *root = NULL;
    int code;

    if (kind == TOKENIZER_JSON) {
        root = json_parse(buf_str(text), text->n, err);
        code = root ? read_json(w, root, err) : err->code;
    } else {
        code = read_text(w, text, err);
    }
    if (!code && (find_needed(w, "[UNK]", &w->unk, err) || find_needed(w, "[CLS]", &w->cls, err) ||
                  find_needed(w, "[SEP]", &w->sep, err)))
        code = err->code;
    json_free(root);
    return code;
}

static int read_file(struct wordpiece *w, const char *path, enum vocabulary_file kind, struct err *err)
{
    struct buf text = { 0 };
    int code = file_read(&text, path, MAX_FILE, err);

    if (!code)
        code = vocabulary_parse(w, &text, kind, err);
    buf_release(&text);
    return code == ERR_FORMAT ? err_wrap(err, "'%s'", path) : code;
}

int vocabulary_read(struct wordpiece *w, const char *dir, struct err *err)
{
    char *text = file_join(dir, "vocab.txt"), *json = file_join(dir, "tokenizer.json");
    int code = text && json ? 0 : err_nomem(err);

    if (!code)
        code = file_exists(text) ? read_file(w, text, VOCAB_TXT, err) : read_file(w, json, TOKENIZER_JSON, err);
    free(text);
    free(json);
    return code;
}

void vocabulary_release(struct wordpiece *w)
{
    map_release(&w->names);
    free(w->id);
    for (int i = 0; i < w->specials.n; i++)
        free(w->specials.at[i].text);
    free(w->specials.at);
}
