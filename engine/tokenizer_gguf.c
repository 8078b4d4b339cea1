/* tokenizer_gguf.c - a tokenizer from the keys of a GGUF file (tokenizer.ggml.*).
 *
 * GGUF names a pre-tokenizer instead of storing its pattern, so the patterns of the known names are here.
 */
#include "engine/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

const char SPLIT_DIGITS[] = "\\p{N}";
const char SPLIT_GPT2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char SPLIT_LLAMA3[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
                            "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const char SPLIT_QWEN2[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
                           "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

enum { TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4 };

static int read_splitter(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    static const struct {
        const char *name, *first, *second;
        bool nfc, whole_word_first;
    } known[] = {
        { "smollm", SPLIT_DIGITS, SPLIT_GPT2, false, false }, { "gpt-2", SPLIT_GPT2, NULL, false, false },
        { "llama-bpe", SPLIT_LLAMA3, NULL, false, true },     { "llama3", SPLIT_LLAMA3, NULL, false, true },
        { "qwen2", SPLIT_QWEN2, NULL, true, false },
    };
    struct text_view name;

    if (gguf_want_text(g, "tokenizer.ggml.pre", &name, err))
        return err->code;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (!text_view_is(name, known[i].name))
            continue;
        t->nfc = known[i].nfc ? nfc_new(err) : NULL;
        if (known[i].nfc && !t->nfc)
            return err->code;
        t->bpe.whole_word_first = known[i].whole_word_first;
        if (splitter_add(&t->splitter, known[i].first, err))
            return err->code;
        return known[i].second ? splitter_add(&t->splitter, known[i].second, err) : 0;
    }
    return err_set(err, ERR_FORMAT, "pre-tokenizer '%.*s' is not supported", text_view_width(name, 64), name.at);
}

static int read_tokens(struct tokenizer *t, struct gguf_array tokens, struct gguf_array types, struct err *err)
{
    for (int i = 0; i < tokens.n; i++) {
        struct text_view text = gguf_next_text(&tokens);
        int64_t type = types.n ? gguf_next_int(&types) : 0;
        if (bpe_set_token(&t->bpe, i, text, err))
            return err->code;
        if ((type == TYPE_CONTROL || type == TYPE_USER_DEFINED) &&
            tokenizer_add_token(t, text, i, type == TYPE_CONTROL ? ADDED_SPECIAL : ADDED_PLAIN, err))
            return err->code;
    }
    bpe_finish(&t->bpe);
    return 0;
}

static int read_merges(struct tokenizer *t, struct gguf_array merges, struct err *err)
{
    for (int i = 0; i < merges.n; i++) {
        struct text_view text = gguf_next_text(&merges);
        if (bpe_add_merge_text(&t->bpe, text, err))
            return err->code;
    }
    return 0;
}

static int read_bos(struct tokenizer *t, const struct gguf *g, int n_tokens, struct err *err)
{
    int64_t add = t->bpe.whole_word_first, id = -1; /* llama.cpp's default too: Llama 3 only */

    if (gguf_may_int(g, "tokenizer.ggml.add_bos_token", &add, err) ||
        gguf_may_int(g, "tokenizer.ggml.bos_token_id", &id, err))
        return err->code;
    t->bos_first = add != 0;
    if (id < 0 || id >= n_tokens)
        return 0;
    t->bos = strndup(buf_str(&t->bpe.bytes) + t->bpe.token[id].at, t->bpe.token[id].n);
    return t->bos ? 0 : err_nomem(err);
}

static int read_ends(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    static const char *const keys[] = { "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id" };

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        int64_t id = -1;
        if (gguf_may_int(g, keys[i], &id, err))
            return err->code;
        tokenizer_set_stop(t, id);
    }
    return 0;
}

int tokenizer_from_gguf(struct tokenizer *t, const struct gguf *g, int n_vocab, struct err *err)
{
    struct gguf_array tokens, types = { 0 }, merges;
    struct text_view model, jinja = { 0 };

    if (gguf_want_text(g, "tokenizer.ggml.model", &model, err))
        return err->code;
    if (!text_view_is(model, "gpt2"))
        return err_set(err, ERR_FORMAT, "vocabulary model '%.*s' is not supported ('gpt2', byte-level BPE, is)",
                       text_view_width(model, 64), model.at);
    if (gguf_want_texts(g, "tokenizer.ggml.tokens", &tokens, err) ||
        gguf_want_texts(g, "tokenizer.ggml.merges", &merges, err))
        return err->code;
    if (gguf_has(g, "tokenizer.ggml.token_type") && gguf_want_ints(g, "tokenizer.ggml.token_type", &types, err))
        return err->code;
    if (types.n && types.n != tokens.n)
        return err_set(err, ERR_FORMAT, "%d tokens have %d types", tokens.n, types.n);
    if (tokens.n > n_vocab)
        return err_set(err, ERR_FORMAT, "%d tokens are more than the model's %d", tokens.n, n_vocab);
    if (tokenizer_alloc(t, n_vocab, merges.n, err) || read_splitter(t, g, err) || read_tokens(t, tokens, types, err) ||
        read_merges(t, merges, err) || read_bos(t, g, tokens.n, err) || read_ends(t, g, err) ||
        gguf_may_text(g, "tokenizer.chat_template", &jinja, err))
        return err->code;
    return tokenizer_complete(t, jinja, err);
}
