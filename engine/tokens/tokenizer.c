/* tokenizer.c - assembling a tokenizer from any container, and ids to text. Text to ids: engine/tokens/prompt_ids.c. */
#include "engine/tokens/tokenizer.h"

#include "base/array.h"
#include "base/file.h"
#include "base/utf8.h"
#include "engine/model/model_internal.h"
#include "engine/tokens/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

enum { CHAT_TEMPLATE_MAX = 1 << 20 };

/* ---- building ---------------------------------------------------------- */

int tokenizer_alloc(struct tokenizer *t, enum bpe_kind kind, int n_vocab, struct err *err)
{
    t->flags = calloc((size_t)n_vocab + 1, 1);
    if (!t->flags)
        return err_nomem(err);
    return bpe_init(&t->bpe, kind, n_vocab, err);
}

int tokenizer_add_token(struct tokenizer *t, struct text_view text, int32_t id, enum added_kind kind, struct err *err)
{
    if (text.n == 0)
        return err_set(err, ERR_FORMAT, "added token %d is empty", id);
    if (!utf8_valid(text.at, text.n)) /* it could match within a character */
        return err_set(err, ERR_FORMAT, "added token %d is not UTF-8", id);
    char *copy = malloc(text.n);
    if (!copy || ARRAY_PUSH(&t->added, ((struct added_token){ copy, text.n, id, kind, 0 }))) {
        free(copy);
        return err_nomem(err);
    }
    memcpy(copy, text.at, text.n);
    if (kind == ADDED_SPECIAL)
        t->flags[id] |= TOKEN_SPECIAL;
    return 0;
}

void tokenizer_take_space(struct tokenizer *t, unsigned space)
{
    t->added.at[t->added.n - 1].space = space;
    t->added.space |= space;
}

int tokenizer_merged(struct tokenizer *t, struct err *err)
{
    return t->splitter.n ? 0 : bpe_open_pieces(&t->bpe, err);
}

void tokenizer_set_stop(struct tokenizer *t, int64_t id)
{
    if (id >= 0 && id < t->bpe.n_vocab)
        t->flags[id] |= TOKEN_STOPS;
}

static int no_template(struct tokenizer *t, struct err *err)
{
    t->chat.head = strdup(t->bos && t->bos_first ? t->bos : "");
    t->chat.tail = strdup("");
    t->chat.first = strdup("");
    t->chat.no_turns = "without a chat template there can be only one message";
    return t->chat.head && t->chat.tail && t->chat.first ? 0 : err_nomem(err);
}

int tokenizer_complete(struct tokenizer *t, struct text_view jinja, struct err *err)
{
    static const char *const stops[] = { "<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "</s>" };

    /* whatever is tokenised must be UTF-8: the split patterns do not check */
    if (t->bos && !utf8_valid(t->bos, strlen(t->bos)))
        return err_set(err, ERR_FORMAT, "its first token is not UTF-8");
    if (jinja.at && !utf8_valid(jinja.at, jinja.n))
        return err_set(err, ERR_FORMAT, "its chat template is not UTF-8");
    for (size_t i = 0; i < sizeof(stops) / sizeof(*stops); i++) {
        int32_t id = bpe_find(&t->bpe, text_view_of(stops[i]));
        if (id >= 0 && t->flags[id] & TOKEN_SPECIAL)
            tokenizer_set_stop(t, id);
    }
    if (!jinja.at)
        return no_template(t, err);
    int code = chat_find(&t->chat, jinja, t->bos ? t->bos : "", err);
    if (code != ERR_FORMAT)
        return code;
    t->no_chat = strdup(err->msg);
    return t->no_chat ? 0 : err_nomem(err);
}

int tokenizer_render(struct tokenizer *t, const char *chat_template, struct err *err)
{
    struct buf text = { 0 };

    if (!chat_template)
        return tokenizer_renders(t, err);
    if (chat_date(chat_template))
        return tokenizer_renders(t, err) ? err->code : chat_set_date(&t->chat, chat_date(chat_template), err);
    chat_release(&t->chat);
    free(t->no_chat);
    t->no_chat = NULL;
    if (strcmp(chat_template, "none") == 0)
        return no_template(t, err);
    int code = file_read(&text, chat_template, CHAT_TEMPLATE_MAX, err);
    if (!code && chat_parse(&t->chat, (struct text_view){ buf_str(&text), text.n }, err))
        code = err_wrap(err, "'%s'", chat_template);
    buf_release(&text);
    return code;
}

int tokenizer_renders(const struct tokenizer *t, struct err *err)
{
    if (!t->no_chat)
        return 0;
    return err_set(err, ERR_FORMAT, "%s; --chat-template takes a file with another one, or 'none'", t->no_chat);
}

int tokenizer_chat_digest(const struct tokenizer *t, char hex[DIGEST_HEX], struct err *err)
{
    struct buf text = { 0 };

    if (!t->no_chat)
        buf_printf(&text, "%s{content%s}%s", t->chat.head, t->chat.trims ? " | trim" : "", t->chat.tail);
    int code = buf_failed(&text) ? err_nomem(err) : digest_sha256(buf_str(&text), text.n, hex, err);
    buf_release(&text);
    return code;
}

bool tokenizer_writes_today(const struct tokenizer *t)
{
    return t->chat.today;
}

const char *tokenizer_tail(const struct tokenizer *t)
{
    return t->chat.tail ? t->chat.tail : "";
}

int tokenizer_head(const struct tokenizer *t, const int32_t *ids, int n, int *n_head, struct err *err)
{
    struct tokens head = { 0 };
    int code = tokenizer_encode(t, text_view_of(t->chat.head ? t->chat.head : ""), SPECIAL_PARSED, &head, err);

    *n_head = 0;
    while (!code && *n_head < head.n && *n_head < n && ids[*n_head] == head.at[*n_head])
        ++*n_head;
    tokens_release(&head);
    return code;
}

void tokenizer_release(struct tokenizer *t)
{
    for (int i = 0; i < t->added.n; i++)
        free(t->added.at[i].text);
    free(t->added.at);
    free(t->flags);
    free(t->bos);
    free(t->no_chat);
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
    int code = m->synthetic ? tokenizer_of_bytes(t, n_vocab, err)
               : m->json    ? tokenizer_from_folder(t, m->path, n_vocab, err)
                            : tokenizer_from_gguf(t, &m->gguf, n_vocab, err);
    if (!code)
        return t;
    err_wrap(err, "the tokenizer of '%s'", m->path);
    tokenizer_free(t);
    return NULL;
}

struct tokenizer *tokenizer_open_chat(const struct model *m, const char *chat_template, struct err *err)
{
    struct tokenizer *t = tokenizer_open(m, err);

    if (!t || !tokenizer_render(t, chat_template, err))
        return t;
    if (!chat_template || chat_date(chat_template))
        err_wrap(err, "'%s'", m->path);
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
            buf_add(&bytes, bpe_bytes(&t->bpe, ids[i]).at, bpe_bytes(&t->bpe, ids[i]).n);
    }
    if (!code) {
        size_t skip = t->strip_blank && bytes.n && bytes.at[0] == ' ';
        utf8_clean(out, buf_str(&bytes) + skip, bytes.n - skip);
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
