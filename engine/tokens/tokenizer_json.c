/* tokenizer_json.c - a tokenizer from the parsed tokenizer.json of Hugging Face's tokenizers library.
 *
 * Read: byte-level BPE, normaliser none or NFC, pre-tokenisers Split (a regular expression, isolated), Digits and
 * ByteLevel; SentencePiece's BPE with byte fallback, normalisers Prepend and Replace, pre-tokeniser Metaspace. Anything
 * else that would change an id is refused by name.
 */
#include "engine/tokens/pieces.h"

#include <string.h>

static const char *type_of(const struct json *v)
{
    const char *type = json_text(json_get(v, "type"));

    return type ? type : "?";
}

/* ---- normaliser -------------------------------------------------------- */

static bool is_text(const struct json *v, const char *name, const char *want)
{
    const char *text = json_text(json_get(v, name));

    return text && strcmp(text, want) == 0;
}

/* Blanks become U+2581: the only supported replacement. */
static int read_replace(struct tokenizer *t, const struct json *v, struct err *err)
{
    if (!is_text(json_get(v, "pattern"), "String", " ") || !is_text(v, "content", TEXT_BLANK))
        return err_set(err, ERR_FORMAT, "normalizer 'Replace' is supported only from a blank to U+2581");
    t->blanks = true;
    return 0;
}

static int read_normal_form(struct tokenizer *t, const struct json *v, struct err *err)
{
    const char *type = type_of(v);

    if (strcmp(type, "NFC") == 0 && t->bpe.kind == BPE_ALPHABET) {
        nfc_free(t->nfc);
        t->nfc = nfc_new(err);
        return t->nfc ? 0 : err->code;
    }
    if (strcmp(type, "Replace") == 0 && t->bpe.kind == BPE_CHARS)
        return read_replace(t, v, err);
    if (strcmp(type, "Prepend") == 0 && t->bpe.kind == BPE_CHARS && is_text(v, "prepend", TEXT_BLANK)) {
        t->prefix = PREFIX_SECTION;
        return 0;
    }
    return err_set(err, ERR_FORMAT,
                   "normalizer '%.64s' is not supported (NFC is, and 'Prepend' and 'Replace' of SentencePiece's BPE)",
                   type);
}

static int read_normalizer(struct tokenizer *t, const struct json *v, struct err *err)
{
    if (!v || json_is_null(v))
        return 0;
    if (strcmp(type_of(v), "Sequence") != 0)
        return read_normal_form(t, v, err);
    const struct json *list = json_get(v, "normalizers");
    for (const struct json *one = json_first(list); one; one = json_next(one))
        if (read_normal_form(t, one, err))
            return err->code;
    return 0;
}

/* ---- pre-tokeniser ----------------------------------------------------- */

static int read_split(struct tokenizer *t, const struct json *v, struct err *err)
{
    const char *regex = json_text(json_get(json_get(v, "pattern"), "Regex"));
    const char *behavior = json_text(json_get(v, "behavior"));

    if (t->blanks && is_text(json_get(v, "pattern"), "String", " "))
        return 0; /* no blanks are left */
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

/* SentencePiece's blanks: where a text gets an extra one, and whether each begins a piece. */
static int read_metaspace(struct tokenizer *t, const struct json *v, struct err *err)
{
    const char *scheme = json_text(json_get(v, "prepend_scheme"));
    const struct json *prefix = json_get(v, "add_prefix_space"), *split = json_get(v, "split");

    if (t->bpe.kind != BPE_CHARS || !is_text(v, "replacement", TEXT_BLANK))
        return err_set(err, ERR_FORMAT, "pre-tokenizer 'Metaspace' is supported only in SentencePiece's BPE");
    t->blanks = t->prefix_unless_blank = true;
    if (scheme && strcmp(scheme, "first") == 0)
        t->prefix = PREFIX_TEXT;
    else if (scheme ? strcmp(scheme, "always") == 0 : !json_is_bool(prefix) || json_true(prefix))
        t->prefix = PREFIX_SECTION;
    else if (scheme && strcmp(scheme, "never") != 0)
        return err_set(err, ERR_FORMAT, "'prepend_scheme' '%.64s' is not supported", scheme);
    return json_is_bool(split) && !json_true(split) ? 0 : splitter_add(&t->splitter, " ?[^ ]*", err);
}

/* One step. ByteLevel turns text into bytes and sets *last: no step may follow it. */
static int read_step(struct tokenizer *t, const struct json *v, bool *last, struct err *err)
{
    const char *type = type_of(v);

    if (*last)
        return err_set(err, ERR_FORMAT, "pre-tokenizer '%.64s' after 'ByteLevel' is not supported", type);
    if (strcmp(type, "Split") == 0)
        return read_split(t, v, err);
    if (strcmp(type, "Metaspace") == 0)
        return read_metaspace(t, v, err);
    if (strcmp(type, "Digits") == 0)
        return splitter_add(&t->splitter, json_true(json_get(v, "individual_digits")) ? SPLIT_DIGITS : "\\p{N}+", err);
    *last = true;
    if (strcmp(type, "ByteLevel") == 0)
        return read_byte_level(t, v, err);
    return err_set(err, ERR_FORMAT, "pre-tokenizer '%.64s' is not supported", type);
}

static int read_steps(struct tokenizer *t, const struct json *v, bool *last, struct err *err)
{
    if (t->bpe.kind == BPE_CHARS && (!v || json_is_null(v)))
        return 0;
    if (strcmp(type_of(v), "Sequence") != 0)
        return read_step(t, v, last, err);
    const struct json *steps = json_get(v, "pretokenizers");
    for (const struct json *step = json_first(steps); step; step = json_next(step))
        if (read_step(t, step, last, err))
            return err->code;
    return 0;
}

static int read_pre_tokenizer(struct tokenizer *t, const struct json *v, struct err *err)
{
    bool last = false;

    if (read_steps(t, v, &last, err))
        return err->code;
    if (last != (t->bpe.kind == BPE_ALPHABET))
        return err_set(err, ERR_FORMAT,
                       last ? "pre-tokenizer 'ByteLevel' with 'byte_fallback' is not supported"
                            : "its pre-tokenizer is not byte-level");
    if (t->bpe.kind == BPE_CHARS && !t->blanks)
        return err_set(err, ERR_FORMAT, "'byte_fallback' without U+2581 for blanks is not supported");
    return 0;
}

/* ---- decoder ----------------------------------------------------------- */

/* SentencePiece's decoders remove the blank that was put before a text. */
static bool strips_blank(const struct tokenizer *t, const struct json *v)
{
    const char *type = type_of(v);
    bool strips = strcmp(type, "Strip") == 0 && json_real(json_get(v, "start")) > 0;

    strips |= strcmp(type, "Metaspace") == 0 && t->prefix != PREFIX_NONE;
    for (const struct json *one = json_first(json_get(v, "decoders")); one; one = json_next(one))
        strips |= strips_blank(t, one);
    return strips;
}

/* ---- model ------------------------------------------------------------- */

static int check_model(const struct json *model, struct err *err)
{
    static const char *const absent[] = { "continuing_subword_prefix", "end_of_word_suffix" };

    if (strcmp(type_of(model), "BPE") != 0)
        return err_set(err, ERR_FORMAT, "model '%.64s' is not supported (BPE is)", type_of(model));
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
        const struct text_view name = text_view_of(json_name(v));
        int byte = t->bpe.kind == BPE_CHARS ? piece_byte(name) : -1;
        double id = json_real(v);
        if (!(id >= 0 && id < t->bpe.n_vocab) || id != (double)(int64_t)id)
            return err_set(err, ERR_FORMAT, "token '%.64s' has no id below %d", json_name(v), t->bpe.n_vocab);
        if (byte >= 0 ? bpe_set_byte(&t->bpe, (int64_t)id, name, (unsigned char)byte, err)
                      : bpe_set_token(&t->bpe, (int64_t)id, name, err))
            return err->code;
    }
    return bpe_finish(&t->bpe, err);
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

int tokenizer_add_json(struct tokenizer *t, int64_t id, const struct json *v, struct err *err)
{
    const char *content;
    unsigned space = 0;

    if (json_want_text(v, "content", &content, err))
        return err->code;
    if (json_true(json_get(v, "single_word")))
        return err_set(err, ERR_FORMAT, "'single_word' of added token '%.64s' is not supported", content);
    struct text_view text = text_view_of(content);
    int32_t found = bpe_find(&t->bpe, text);
    if (found >= 0 && found != id)
        return err_set(err, ERR_FORMAT, "'%.64s' has ids %d and %lld", content, found, (long long)id);
    if (found < 0 && bpe_set_token(&t->bpe, id, text, err))
        return err->code;
    if (json_true(json_get(v, "lstrip")))
        space |= ADDED_TAKES_BEFORE;
    if (json_true(json_get(v, "rstrip")))
        space |= ADDED_TAKES_AFTER;
    if (t->prefix == PREFIX_SECTION && !t->prefix_unless_blank && json_true(json_get(v, "normalized")))
        space |= ADDED_WANTS_BLANK;
    enum added_kind kind = json_true(json_get(v, "special")) ? ADDED_SPECIAL : ADDED_PLAIN;
    if (tokenizer_add_token(t, text, (int32_t)id, kind, err))
        return err->code;
    tokenizer_take_space(t, space);
    return 0;
}

static int read_added_token(struct tokenizer *t, const struct json *v, struct err *err)
{
    int64_t id;

    return json_want_int(v, "id", &id, err) || tokenizer_add_json(t, id, v, err) ? err->code : 0;
}

int tokenizer_from_json(struct tokenizer *t, const struct json *root, int n_vocab, struct err *err)
{
    const struct json *model = json_get(root, "model");

    if (check_model(model, err))
        return err->code;
    const struct json *merges = json_get(model, "merges"), *vocab = json_get(model, "vocab");
    enum bpe_kind kind = json_true(json_get(model, "byte_fallback")) ? BPE_CHARS : BPE_ALPHABET;
    if (tokenizer_alloc(t, kind, n_vocab, err) || read_normalizer(t, json_get(root, "normalizer"), err) ||
        read_pre_tokenizer(t, json_get(root, "pre_tokenizer"), err) || read_vocab(t, vocab, err) ||
        read_merges(t, merges, err) || tokenizer_merged(t, err))
        return err->code;
    t->bpe.whole_word_first = json_true(json_get(model, "ignore_merges"));
    t->strip_blank = strips_blank(t, json_get(root, "decoder"));
    const struct json *added = json_get(root, "added_tokens");
    for (const struct json *v = json_first(added); v; v = json_next(v))
        if (read_added_token(t, v, err))
            return err_wrap(err, "an added token");
    return 0;
}
