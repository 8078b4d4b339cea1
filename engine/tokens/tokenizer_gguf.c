/* tokenizer_gguf.c - a tokenizer from the keys of a GGUF file (tokenizer.ggml.*): byte-level BPE ("gpt2") with merges
 * and a named pre-tokenizer, or SentencePiece's BPE ("llama") with scores.
 */
#include "engine/tokens/pieces.h"

#include <stdlib.h>
#include <string.h>

enum { TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4 };

/* The vocabulary's arrays. */
struct vocabulary {
    struct gguf_array tokens, types; // types.n is 0: no types
};

static int read_tokens(struct tokenizer *t, struct vocabulary *v, struct err *err)
{
    for (int i = 0; i < v->tokens.n; i++) {
        struct text_view text = gguf_next_text(&v->tokens);
        int64_t type = v->types.n ? gguf_next_int(&v->types) : 0;
        if (bpe_set_token(&t->bpe, i, text, err))
            return err->code;
        if ((type == TYPE_CONTROL || type == TYPE_USER_DEFINED) &&
            tokenizer_add_token(t, text, i, type == TYPE_CONTROL ? ADDED_SPECIAL : ADDED_PLAIN, err))
            return err->code;
    }
    return bpe_finish(&t->bpe, err);
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

/* Byte-level BPE. A file without a pre-tokenizer's name is read as in llama.cpp. */
static int read_byte_level(struct tokenizer *t, const struct gguf *g, struct vocabulary *v, int n_vocab,
                           struct err *err)
{
    struct gguf_array merges;
    struct text_view pre = text_view_of("default");

    if (gguf_want_texts(g, "tokenizer.ggml.merges", &merges, err) ||
        gguf_may_text(g, "tokenizer.ggml.pre", &pre, err) || tokenizer_alloc(t, BPE_ALPHABET, n_vocab, err) ||
        tokenizer_split_as(t, pre, err) || read_tokens(t, v, err) || read_merges(t, merges, err))
        return err->code;
    t->bos_first = t->bpe.whole_word_first; /* llama.cpp's default too: Llama 3 only */
    return tokenizer_merged(t, err);
}

static int add_pieces(struct pieces *p, struct vocabulary *v, struct gguf_array scores, struct err *err)
{
    for (int i = 0; i < v->tokens.n; i++) {
        struct piece piece = { gguf_next_text(&v->tokens), gguf_next_real(&scores), gguf_next_int(&v->types) };
        if (pieces_add(p, i, &piece, err))
            return err->code;
    }
    return pieces_finish(p, err);
}

/* SentencePiece's BPE. */
static int read_pieces(struct tokenizer *t, const struct gguf *g, struct vocabulary *v, int n_vocab, struct err *err)
{
    struct pieces p = { .t = t };
    struct gguf_array scores;
    int64_t prefix = 1;

    if (gguf_want_reals(g, "tokenizer.ggml.scores", &scores, err) ||
        gguf_may_int(g, "tokenizer.ggml.add_space_prefix", &prefix, err))
        return err->code;
    if (scores.n != v->tokens.n || v->types.n != v->tokens.n)
        return err_set(err, ERR_FORMAT, "%d tokens have %d scores and %d types", v->tokens.n, scores.n, v->types.n);
    if (tokenizer_alloc(t, BPE_CHARS, n_vocab, err))
        return err->code;
    t->blanks = t->blanks_first = t->bos_first = true;
    t->prefix = prefix ? PREFIX_AFTER_SPECIAL : PREFIX_NONE;
    t->strip_blank = prefix != 0;
    int code = add_pieces(&p, v, scores, err);
    pieces_release(&p);
    return code;
}

static int read_bos(struct tokenizer *t, const struct gguf *g, int n_tokens, struct err *err)
{
    int64_t add = t->bos_first, id = -1;

    if (gguf_may_int(g, "tokenizer.ggml.add_bos_token", &add, err) ||
        gguf_may_int(g, "tokenizer.ggml.bos_token_id", &id, err))
        return err->code;
    t->bos_first = add != 0;
    if (id < 0 || id >= n_tokens)
        return 0;
    struct text_view bos = bpe_bytes(&t->bpe, (int32_t)id);
    t->bos = strndup(bos.at, bos.n);
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
    struct vocabulary v = { 0 };
    struct text_view model, jinja = { 0 };

    if (gguf_want_text(g, "tokenizer.ggml.model", &model, err))
        return err->code;
    bool bytes = text_view_is(model, "gpt2");
    if (!bytes && !text_view_is(model, "llama"))
        return err_set(err, ERR_FORMAT,
                       "vocabulary model '%.*s' is not supported ('gpt2', byte-level BPE, and 'llama', SentencePiece's "
                       "BPE, are)",
                       text_view_width(model, 64), model.at);
    if (gguf_want_texts(g, "tokenizer.ggml.tokens", &v.tokens, err))
        return err->code;
    if (gguf_has(g, "tokenizer.ggml.token_type") && gguf_want_ints(g, "tokenizer.ggml.token_type", &v.types, err))
        return err->code;
    if (v.types.n && v.types.n != v.tokens.n)
        return err_set(err, ERR_FORMAT, "%d tokens have %d types", v.tokens.n, v.types.n);
    if (v.tokens.n > n_vocab)
        return err_set(err, ERR_FORMAT, "%d tokens are more than the model's %d", v.tokens.n, n_vocab);
    int n = v.tokens.n;
    if ((bytes ? read_byte_level(t, g, &v, n_vocab, err) : read_pieces(t, g, &v, n_vocab, err)) ||
        read_bos(t, g, n, err) || read_ends(t, g, err) || gguf_may_text(g, "tokenizer.chat_template", &jinja, err))
        return err->code;
    return tokenizer_complete(t, jinja, err);
}
