#include "engine/tokenizer.h"

#include "base/utf8.h"
#include "engine/model_internal.h"
#include "engine/tokenizer_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* ---- building ---------------------------------------------------------- */

int tokenizer_alloc(struct tokenizer *t, int n_vocab, int n_merges, struct err *err)
{
    t->flags = calloc((size_t)n_vocab + 1, 1);
    if (!t->flags)
        return err_nomem(err);
    return bpe_init(&t->bpe, n_vocab, n_merges, err);
}

int tokenizer_add_special(struct tokenizer *t, const char *text, size_t n, int32_t id, bool special, struct err *err)
{
    if (n == 0)
        return err_set(err, ERR_FORMAT, "added token %d is empty", id);
    if (t->n_added == t->room_added) {
        int room = t->room_added ? 2 * t->room_added : 32;
        struct added_token *added = realloc(t->added, (size_t)room * sizeof(*added));
        if (!added)
            return err_nomem(err);
        t->added = added;
        t->room_added = room;
    }
    char *copy = strndup(text, n);
    if (!copy)
        return err_nomem(err);
    t->added[t->n_added++] = (struct added_token){ copy, strlen(copy), id, special };
    if (special)
        t->flags[id] |= TOKEN_SPECIAL;
    return 0;
}

void tokenizer_set_stop(struct tokenizer *t, int64_t id)
{
    if (id >= 0 && id < t->bpe.n_vocab)
        t->flags[id] |= TOKEN_STOPS;
}

int tokenizer_complete(struct tokenizer *t, const char *jinja, size_t n, struct err *err)
{
    static const char *const stops[] = { "<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "</s>" };

    for (size_t i = 0; i < sizeof(stops) / sizeof(*stops); i++) {
        int32_t id = bpe_find(&t->bpe, stops[i], strlen(stops[i]));
        if (id >= 0 && t->flags[id] & TOKEN_SPECIAL)
            tokenizer_set_stop(t, id);
    }
    if (jinja)
        return chat_find(&t->chat, jinja, n, t->bos ? t->bos : "", err);
    t->chat.head = strdup(t->bos && t->bos_first ? t->bos : "");
    t->chat.tail = strdup("");
    return t->chat.head && t->chat.tail ? 0 : err_nomem(err);
}

void tokenizer_release(struct tokenizer *t)
{
    for (int i = 0; i < t->n_added; i++)
        free(t->added[i].text);
    free(t->added);
    free(t->flags);
    free(t->bos);
    chat_release(&t->chat);
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
    int result =
        m->json ? tokenizer_from_folder(t, m->path, n_vocab, err) : tokenizer_from_gguf(t, &m->gguf, n_vocab, err);
    if (result == 0)
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

/* ---- text to ids ------------------------------------------------------- */

struct encoding {
    const struct tokenizer *t;
    struct bpe_work work;
    struct tokens *out;
};

static int encode_piece(void *arg, const char *piece, size_t n, struct err *err)
{
    struct encoding *e = arg;

    return bpe_encode(&e->t->bpe, &e->work, piece, n, e->out, err);
}

static bool is_ascii(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] >= 0x80)
            return false;
    return true;
}

/* Text without added tokens in it. */
static int encode_plain(struct encoding *e, const char *text, size_t n, struct err *err)
{
    utf8proc_uint8_t *nfc = NULL;

    if (!e->t->nfc || is_ascii(text, n))
        return splitter_run(&e->t->splitter, text, n, encode_piece, e, err);
    utf8proc_ssize_t length =
        utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &nfc, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (length < 0)
        return err_set(err, ERR_FAIL, "cannot normalise a text: %s", utf8proc_errmsg(length));
    int result = splitter_run(&e->t->splitter, (const char *)nfc, (size_t)length, encode_piece, e, err);
    free(nfc);
    return result;
}

/* The longest added token at the start of the text, or NULL. */
static const struct added_token *added_at(const struct tokenizer *t, const char *text, size_t n, enum special special)
{
    const struct added_token *best = NULL;

    for (int i = 0; i < t->n_added; i++) {
        const struct added_token *a = &t->added[i];
        if (a->special && special == SPECIAL_AS_TEXT)
            continue;
        if (a->text[0] == text[0] && a->n <= n && memcmp(a->text, text, a->n) == 0 && (!best || a->n > best->n))
            best = a;
    }
    return best;
}

/* Which bytes an added token may begin with. */
static void first_bytes(const struct tokenizer *t, bool first[256])
{
    memset(first, 0, 256 * sizeof(*first));
    for (int i = 0; i < t->n_added; i++)
        first[(unsigned char)t->added[i].text[0]] = true;
}

/* Valid UTF-8; special tokens are found where they lie whole in bytes from .. to. */
static int encode(const struct tokenizer *t, const char *text, size_t n, size_t from, size_t to, struct tokens *out,
                  struct err *err)
{
    struct encoding e = { .t = t, .out = out };
    bool first[256];
    size_t plain = 0; /* where text not yet encoded begins */
    int result = 0;

    first_bytes(t, first);
    for (size_t at = 0; at < n && result == 0;) {
        const struct added_token *a = NULL;
        if (first[(unsigned char)text[at]] && at >= from && at < to)
            a = added_at(t, text + at, to - at, SPECIAL_PARSED);
        if (!a && first[(unsigned char)text[at]])
            a = added_at(t, text + at, n - at, SPECIAL_AS_TEXT);
        if (!a) {
            at++;
            continue;
        }
        result = encode_plain(&e, text + plain, at - plain, err);
        if (result == 0)
            result = tokens_add(out, a->id, err);
        at += a->n;
        plain = at;
    }
    if (result == 0)
        result = encode_plain(&e, text + plain, n - plain, err);
    bpe_work_release(&e.work);
    return result;
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t n, enum special special, struct tokens *out,
                     struct err *err)
{
    bool parsed = special == SPECIAL_PARSED;
    struct buf clean = { 0 };

    if (utf8_valid(text, n))
        return encode(t, text, n, 0, parsed ? n : 0, out, err);
    utf8_clean(&clean, text, n);
    int result =
        buf_failed(&clean) ? err_nomem(err) : encode(t, buf_str(&clean), clean.n, 0, parsed ? clean.n : 0, out, err);
    buf_release(&clean);
    return result;
}

/* ---- ids to text ------------------------------------------------------- */

int tokenizer_decode(const struct tokenizer *t, const int32_t *ids, int n, struct buf *out, struct err *err)
{
    struct buf bytes = { 0 };
    int result = 0;

    for (int i = 0; i < n && result == 0; i++) {
        if (ids[i] < 0 || ids[i] >= t->bpe.n_vocab)
            result = err_set(err, ERR_FORMAT, "id %d is not in the vocabulary of %d", ids[i], t->bpe.n_vocab);
        else if (!(t->flags[ids[i]] & TOKEN_SPECIAL))
            buf_add(&bytes, buf_str(&t->bpe.bytes) + t->bpe.token[ids[i]].at, t->bpe.token[ids[i]].n);
    }
    if (result == 0) {
        utf8_clean(out, buf_str(&bytes), bytes.n);
        if (buf_failed(&bytes) || buf_failed(out))
            result = err_nomem(err);
    }
    buf_release(&bytes);
    return result;
}

bool tokenizer_stops(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->bpe.n_vocab && t->flags[id] & TOKEN_STOPS;
}

int tokenizer_n_vocab(const struct tokenizer *t)
{
    return t->bpe.n_vocab;
}

/* ---- what the model sees ----------------------------------------------- */

const char *tokenizer_head(const struct tokenizer *t)
{
    return t->chat.head;
}

const char *tokenizer_tail(const struct tokenizer *t)
{
    return t->chat.tail;
}

/* Head and text are one string to the splitter, as they are to Hugging Face: white space may join across the seam. */
int tokenizer_context(const struct tokenizer *t, const char *text, struct tokens *out, struct err *err)
{
    struct buf whole = { 0 };
    size_t head = strlen(t->chat.head);

    buf_adds(&whole, t->chat.head);
    utf8_clean(&whole, text, strlen(text));
    int result = buf_failed(&whole) ? err_nomem(err) : encode(t, buf_str(&whole), whole.n, 0, head, out, err);
    buf_release(&whole);
    return result;
}

int tokenizer_question(const struct tokenizer *t, const char *ask, const char *question, struct tokens *out,
                       struct err *err)
{
    static const char mark[] = "{question}";
    struct buf whole = { 0 };
    const char *at = strstr(ask, mark);

    if (!at)
        return err_set(err, ERR_FORMAT, "'%.64s' has no {question} in it", ask);
    utf8_clean(&whole, ask, (size_t)(at - ask));
    utf8_clean(&whole, question, strlen(question));
    utf8_clean(&whole, at + sizeof(mark) - 1, strlen(at + sizeof(mark) - 1));
    size_t seam = whole.n;
    buf_adds(&whole, t->chat.tail);
    int result = buf_failed(&whole) ? err_nomem(err) : encode(t, buf_str(&whole), whole.n, seam, whole.n, out, err);
    buf_release(&whole);
    return result;
}
