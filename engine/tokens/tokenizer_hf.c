/* tokenizer_hf.c - a tokenizer from a Hugging Face folder: tokenizer.json, or without one tokenizer.model, which is
 * SentencePiece's or tiktoken's, or qwen.tiktoken; BOS and chat template from tokenizer_config.json and
 * chat_template.jinja; the ids that end a text from generation_config.json or config.json.
 */
#include "base/file.h"
#include "base/parse.h"
#include "engine/model/model_internal.h"
#include "engine/tokens/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

enum { TEMPLATE_MAX = 1 << 20, VOCABULARY_MAX = 1 << 28 };

/* Parses {dir}/{name} into *out, which stays NULL when there is no such file. */
static int read_optional(struct json **out, const char *dir, const char *name, struct err *err)
{
    char *path = file_join(dir, name);

    if (!path)
        return err_nomem(err);
    bool there = file_exists(path);
    free(path);
    if (!there)
        return 0;
    *out = model_json(dir, name, err);
    return *out ? 0 : err->code;
}

static void set_stop(struct tokenizer *t, const struct json *id)
{
    if (json_real(id) >= 0 && json_real(id) < t->bpe.n_vocab)
        tokenizer_set_stop(t, (int64_t)json_real(id));
}

/* "eos_token_id" is a number or a list of numbers; config.json counts only where generation_config.json has none. */
static int read_ends(struct tokenizer *t, const char *dir, struct err *err)
{
    static const char *const files[] = { "generation_config.json", "config.json" };
    bool found = false;

    for (size_t i = 0; i < sizeof(files) / sizeof(*files) && !found; i++) {
        struct json *config = NULL;
        if (read_optional(&config, dir, files[i], err))
            return err->code;
        const struct json *eos = json_get(config, "eos_token_id");
        set_stop(t, eos);
        for (const struct json *id = json_is_array(eos) ? json_first(eos) : NULL; id; id = json_next(id))
            set_stop(t, id);
        found = json_is_number(eos) || json_is_array(eos);
        json_free(config);
    }
    return 0;
}

/* A special token is a text, or an object with its text as `content`. */
static const char *token_text(const struct json *v)
{
    return json_is_object(v) ? json_text(json_get(v, "content")) : json_text(v);
}

/* True when the post-processor's template starts with a special token: then encoding puts BOS first. */
static bool starts_with_special(const struct json *post)
{
    const struct json *list = json_get(post, "processors");
    const struct json *first = json_first(json_get(post, "single"));

    for (const struct json *p = json_first(list); p && !first; p = json_next(p))
        first = json_first(json_get(p, "single"));
    return json_get(first, "SpecialToken") != NULL;
}

/* The chat template in tokenizer_config.json, which is a text or a list of named texts. NULL: none. */
static const char *config_template(const struct json *config)
{
    const struct json *v = json_get(config, "chat_template");
    const char *text = json_text(v);

    for (const struct json *named = json_is_array(v) ? json_first(v) : NULL; named; named = json_next(named)) {
        const char *name = json_text(json_get(named, "name"));
        if (name && strcmp(name, "default") == 0)
            text = json_text(json_get(named, "template"));
    }
    return text;
}

/* For a vocabulary without tokenizer.json: whether BOS comes first, and added tokens, from tokenizer_config.json. */
static int read_added(struct tokenizer *t, const struct json *config, struct err *err)
{
    const struct json *add_bos = json_get(config, "add_bos_token");

    if (json_is_bool(add_bos))
        t->bos_first = json_true(add_bos);
    for (const struct json *v = json_first(json_get(config, "added_tokens_decoder")); v; v = json_next(v)) {
        int64_t id;
        if (!parse_int(json_name(v), &id))
            return err_set(err, ERR_FORMAT, "'tokenizer_config.json': '%.64s' is not an id", json_name(v));
        if (id >= 0 && id < t->bpe.n_vocab && t->bpe.token[id].set)
            continue;
        if (tokenizer_add_json(t, id, v, err))
            return err_wrap(err, "'tokenizer_config.json'");
    }
    return 0;
}

static int complete(struct tokenizer *t, const char *dir, const struct json *config, struct err *err)
{
    struct buf jinja = { 0 };
    char *path = file_join(dir, "chat_template.jinja");
    const char *bos = token_text(json_get(config, "bos_token")), *text = config_template(config);
    int code = 0;

    if (bos) {
        free(t->bos);
        t->bos = strdup(bos);
        code = t->bos ? 0 : err_nomem(err);
    }
    if (!path)
        code = err_nomem(err);
    else if (!code && file_exists(path)) {
        code = file_read(&jinja, path, TEMPLATE_MAX, err);
        text = buf_str(&jinja);
    }
    if (!code)
        code = tokenizer_complete(t, (struct text_view){ text, text ? strlen(text) : 0 }, err);
    buf_release(&jinja);
    free(path);
    return code;
}

static int from_json(struct tokenizer *t, const char *dir, int n_vocab, struct err *err)
{
    struct json *root = model_json(dir, "tokenizer.json", err);

    if (!root)
        return err->code;
    int code = tokenizer_from_json(t, root, n_vocab, err);
    t->bos_first = starts_with_special(json_get(root, "post_processor"));
    json_free(root);
    return code ? err_wrap(err, "'%s/tokenizer.json'", dir) : 0;
}

/* A message of SentencePiece begins with field 1, a piece; no line of base64 begins with the byte of that field. */
static int from_vocabulary(struct tokenizer *t, const char *path, int n_vocab, struct err *err)
{
    struct buf file = { 0 };
    int code = file_read(&file, path, VOCABULARY_MAX, err);
    const struct text_view text = { buf_str(&file), file.n };

    if (!code && text.n > 0 && text.at[0] == '\n')
        code = tokenizer_from_sentencepiece(t, text, n_vocab, err);
    else if (!code)
        code = tokenizer_from_tiktoken(t, text, n_vocab, err);
    buf_release(&file);
    return code ? err_wrap(err, "'%s'", path) : 0;
}

int tokenizer_from_folder(struct tokenizer *t, const char *dir, int n_vocab, struct err *err)
{
    char *path = model_vocabulary_path(dir);
    struct json *config = NULL;

    if (!path)
        return err_nomem(err);
    bool json = strcmp(file_name(path), "tokenizer.json") == 0;
    int code = json ? from_json(t, dir, n_vocab, err) : from_vocabulary(t, path, n_vocab, err);
    free(path);
    if (!code)
        code = read_ends(t, dir, err);
    if (!code)
        code = read_optional(&config, dir, "tokenizer_config.json", err);
    if (!code && !json)
        code = read_added(t, config, err);
    if (!code)
        code = complete(t, dir, config, err);
    json_free(config);
    return code;
}
