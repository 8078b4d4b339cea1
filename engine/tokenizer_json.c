/* tokenizer_json.c - a tokenizer from the parsed tokenizer.json of Hugging Face's tokenizers library.
 *
 * Read: byte-level BPE, normaliser none or NFC, pre-tokenisers Split (a regular expression, isolated), Digits and
 * ByteLevel. Anything else that would change an id is refused by its name.
 */
#include "engine/tokenizer_internal.h"

#include <string.h>

static const char *type_of(const struct json *v)
{
    const char *type = json_text(json_get(v, "type"));

    return type ? type : "?";
}

/* ---- normaliser -------------------------------------------------------- */

static int read_normalizer(struct tokenizer *t, const struct json *v, struct err *err)
{
    const struct json *list = json_get(v, "normalizers");

    if (v && strcmp(type_of(v), "Sequence") == 0 && json_count(list) <= 1)
        v = json_first(list);
    if (!v || json_is_null(v))
        return 0;
    if (strcmp(type_of(v), "NFC") != 0)
        return err_set(err, ERR_FORMAT, "normalizer '%.64s' is not supported (NFC is)", type_of(v));
    t->nfc = nfc_new(err);
    return t->nfc ? 0 : err->code;
}

/* ---- pre-tokeniser ----------------------------------------------------- */

static int read_split(struct tokenizer *t, const struct json *v, struct err *err)
{
    const char *regex = json_text(json_get(json_get(v, "pattern"), "Regex"));
    const char *behavior = json_text(json_get(v, "behavior"));

    if (!regex || !behavior || strcmp(behavior, "Isolated") != 0 || json_true(json_get(v, "invert")))
        return err_set(err, ERR_FORMAT,
                       "pre-tokenizer 'Split' is supported only with a regular expression, isolated and not inverted");
    return splitter_add(&t->splitter, regex, err);
}

static int read_byte_level(struct tokenizer *t, const struct json *v, struct err *err)
{
    const struct json *use_regex = json_get(v, "use_regex");

    if (json_true(json_get(v, "add_prefix_space")))
        return err_set(err, ERR_FORMAT, "'add_prefix_space' is not supported");
    return json_is_bool(use_regex) && !json_true(use_regex) ? 0 : splitter_add(&t->splitter, SPLIT_GPT2, err);
}

/* One step. ByteLevel, which turns text into bytes, sets *last: no step may follow it. */
static int read_step(struct tokenizer *t, const struct json *v, bool *last, struct err *err)
{
    const char *type = type_of(v);

    if (*last)
        return err_set(err, ERR_FORMAT, "pre-tokenizer '%.64s' after 'ByteLevel' is not supported", type);
    if (strcmp(type, "Split") == 0)
        return read_split(t, v, err);
    if (strcmp(type, "Digits") == 0)
        return splitter_add(&t->splitter, json_true(json_get(v, "individual_digits")) ? SPLIT_DIGITS : "\\p{N}+", err);
    *last = true;
    if (strcmp(type, "ByteLevel") == 0)
        return read_byte_level(t, v, err);
    return err_set(err, ERR_FORMAT, "pre-tokenizer '%.64s' is not supported", type);
}

static int read_pre_tokenizer(struct tokenizer *t, const struct json *v, struct err *err)
{
    bool last = false;

    if (strcmp(type_of(v), "Sequence") != 0)
        return read_step(t, v, &last, err) ? err->code
               : last                      ? 0
                                           : err_set(err, ERR_FORMAT, "its pre-tokenizer is not byte-level");
    const struct json *steps = json_get(v, "pretokenizers");
    for (const struct json *step = json_first(steps); step; step = json_next(step))
        if (read_step(t, step, &last, err))
            return err->code;
    return last ? 0 : err_set(err, ERR_FORMAT, "its pre-tokenizers do not end in 'ByteLevel'");
}

/* ---- model ------------------------------------------------------------- */

static int check_model(const struct json *model, struct err *err)
{
    static const char *const absent[] = { "continuing_subword_prefix", "end_of_word_suffix" };

    if (strcmp(type_of(model), "BPE") != 0)
        return err_set(err, ERR_FORMAT, "model '%.64s' is not supported (BPE is)", type_of(model));
    if (json_true(json_get(model, "byte_fallback")))
        return err_set(err, ERR_FORMAT, "'byte_fallback' is not supported");
    for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++) {
        const char *value = json_text(json_get(model, absent[i]));
        if (value && *value)
            return err_set(err, ERR_FORMAT, "'%s' is not supported", absent[i]);
    }
    if (!json_is_object(json_get(model, "vocab")) || !json_is_array(json_get(model, "merges")))
        return err_set(err, ERR_FORMAT, "its model has no 'vocab' or no 'merges'");
    return 0;
}

static int read_vocab(struct tokenizer *t, const struct json *vocab, struct err *err)
{
    for (const struct json *v = json_first(vocab); v; v = json_next(v)) {
        double id = json_real(v);
        if (!(id >= 0 && id < t->bpe.n_vocab) || id != (double)(int64_t)id)
            return err_set(err, ERR_FORMAT, "token '%.64s' has no id below %d", json_name(v), t->bpe.n_vocab);
        if (bpe_set_token(&t->bpe, (int64_t)id, text_view_of(json_name(v)), err))
            return err->code;
    }
    bpe_finish(&t->bpe);
    return 0;
}

/* "a b" in older files, ["a","b"] in newer ones. */
static int read_merges(struct tokenizer *t, const struct json *merges, struct err *err)
{
    for (const struct json *m = json_first(merges); m; m = json_next(m)) {
        const char *text = json_text(m);
        if (text && bpe_add_merge_text(&t->bpe, text_view_of(text), err))
            return err->code;
        if (text)
            continue;
        const struct json *first = json_first(m);
        const char *left = json_text(first), *right = json_text(json_next(first));
        if (!json_is_array(m) || !left || !right || json_next(json_next(first)))
            return err_set(err, ERR_FORMAT, "merge %u is not two tokens", t->bpe.n_merges);
        if (bpe_add_merge(&t->bpe, text_view_of(left), text_view_of(right), err))
            return err->code;
    }
    return 0;
}

static int read_added_token(struct tokenizer *t, const struct json *v, struct err *err)
{
    static const char *const unsupported[] = { "single_word", "lstrip", "rstrip" };
    const char *content;
    int64_t id;

    if (json_want_int(v, "id", &id, err) || json_want_text(v, "content", &content, err))
        return err->code;
    for (size_t i = 0; i < sizeof(unsupported) / sizeof(*unsupported); i++)
        if (json_true(json_get(v, unsupported[i])))
            return err_set(err, ERR_FORMAT, "'%s' is not supported", unsupported[i]);
    struct text_view text = text_view_of(content);
    int32_t found = bpe_find(&t->bpe, text);
    if (found >= 0 && found != id)
        return err_set(err, ERR_FORMAT, "'%.64s' has ids %d and %lld", content, found, (long long)id);
    if (found < 0 && bpe_set_token(&t->bpe, id, text, err))
        return err->code;
    enum added_kind kind = json_true(json_get(v, "special")) ? ADDED_SPECIAL : ADDED_PLAIN;
    return tokenizer_add_token(t, text, (int32_t)id, kind, err);
}

int tokenizer_from_json(struct tokenizer *t, const struct json *root, int n_vocab, struct err *err)
{
    const struct json *model = json_get(root, "model");

    if (check_model(model, err))
        return err->code;
    const struct json *merges = json_get(model, "merges"), *vocab = json_get(model, "vocab");
    if (tokenizer_alloc(t, n_vocab, json_count(merges), err) || read_normalizer(t, json_get(root, "normalizer"), err) ||
        read_pre_tokenizer(t, json_get(root, "pre_tokenizer"), err) || read_vocab(t, vocab, err) ||
        read_merges(t, merges, err))
        return err->code;
    t->bpe.whole_word_first = json_true(json_get(model, "ignore_merges"));
    const struct json *added = json_get(root, "added_tokens");
    for (const struct json *v = json_first(added); v; v = json_next(v))
        if (read_added_token(t, v, err))
            return err_wrap(err, "an added token");
    return 0;
}
