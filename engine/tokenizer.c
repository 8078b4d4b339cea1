/* tokenizer.c - how a tokenizer is put together, whichever container it came from, and ids back to text. Text to ids:
 * engine/prompt_ids.c.
 */
#include "engine/tokenizer.h"

#include "base/array.h"
#include "base/utf8.h"
#include "engine/model_internal.h"
#include "engine/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- building ---------------------------------------------------------- */

int tokenizer_alloc(struct tokenizer *t, int n_vocab, int n_merges, struct err *err)
{
    t->flags = calloc((size_t)n_vocab + 1, 1);
    if (!t->flags)
        return err_nomem(err);
    return bpe_init(&t->bpe, n_vocab, n_merges, err);
}

int tokenizer_add_token(struct tokenizer *t, struct text_view text, int32_t id, enum added_kind kind, struct err *err)
{
    if (text.n == 0)
        return err_set(err, ERR_FORMAT, "added token %d is empty", id);
    if (!utf8_valid(text.at, text.n)) /* it could match a part of a character */
        return err_set(err, ERR_FORMAT, "added token %d is not UTF-8", id);
    char *copy = malloc(text.n);
    if (!copy || ARRAY_PUSH(&t->added, ((struct added_token){ copy, text.n, id, kind }))) {
        free(copy);
        return err_nomem(err);
    }
    memcpy(copy, text.at, text.n);
    if (kind == ADDED_SPECIAL)
        t->flags[id] |= TOKEN_SPECIAL;
    return 0;
}

void tokenizer_set_stop(struct tokenizer *t, int64_t id)
{
    if (id >= 0 && id < t->bpe.n_vocab)
        t->flags[id] |= TOKEN_STOPS;
}

int tokenizer_complete(struct tokenizer *t, struct text_view jinja, struct err *err)
{
    static const char *const stops[] = { "<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "</s>" };

    for (size_t i = 0; i < sizeof(stops) / sizeof(*stops); i++) {
        int32_t id = bpe_find(&t->bpe, text_view_of(stops[i]));
        if (id >= 0 && t->flags[id] & TOKEN_SPECIAL)
            tokenizer_set_stop(t, id);
    }
    if (jinja.at)
        return chat_find(&t->chat, jinja, t->bos ? t->bos : "", err);
    t->chat.head = strdup(t->bos && t->bos_first ? t->bos : "");
    t->chat.tail = strdup("");
    return t->chat.head && t->chat.tail ? 0 : err_nomem(err);
}

void tokenizer_release(struct tokenizer *t)
{
    for (int i = 0; i < t->added.n; i++)
        free(t->added.at[i].text);
    free(t->added.at);
    free(t->flags);
    free(t->bos);
    chat_release(&t->chat);
    nfc_free(t->nfc);
    splitter_release(&t->splitter);
    bpe_release(&t->bpe);
    *t = (struct tokenizer){ 0 };
}

struct tokenizer *tokenizer_open(const struct model *m, struct err *err)
{
    struct tokenizer *t = calloc(1, sizeof(*t));

    if (!t) {
        err_nomem(err);
        return NULL;
    }
    int n_vocab = m->config.n_vocab;
    int code =
        m->json ? tokenizer_from_folder(t, m->path, n_vocab, err) : tokenizer_from_gguf(t, &m->gguf, n_vocab, err);
    if (!code)
        return t;
    err_wrap(err, "the tokenizer of '%s'", m->path);
    tokenizer_free(t);
    return NULL;
}

void tokenizer_free(struct tokenizer *t)
{
    if (!t)
        return;
    tokenizer_release(t);
    free(t);
}

/* ---- ids to text ------------------------------------------------------- */

int tokenizer_decode(const struct tokenizer *t, const int32_t *ids, int n, struct buf *out, struct err *err)
{
    struct buf bytes = { 0 };
    int code = 0;

    for (int i = 0; i < n && !code; i++) {
        if (ids[i] < 0 || ids[i] >= t->bpe.n_vocab)
            code = err_set(err, ERR_FORMAT, "id %d is not in the vocabulary of %d", ids[i], t->bpe.n_vocab);
        else if (!(t->flags[ids[i]] & TOKEN_SPECIAL))
            buf_add(&bytes, buf_str(&t->bpe.bytes) + t->bpe.token[ids[i]].at, t->bpe.token[ids[i]].n);
    }
    if (!code) {
        utf8_clean(out, buf_str(&bytes), bytes.n);
        if (buf_failed(&bytes) || buf_failed(out))
            code = err_nomem(err);
    }
    buf_release(&bytes);
    return code;
}

bool tokenizer_stops(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->bpe.n_vocab && t->flags[id] & TOKEN_STOPS;
}
