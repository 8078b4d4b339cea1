/* tokenizer.c - what every tokenizer does, whichever container it came from.
 *
 * Text is cleaned to UTF-8, cut at added tokens, normalised, split by the model's patterns, and merged piece by piece.
 * Special tokens are found only within a range of the text that the caller names.
 */
#include "engine/tokenizer.h"

#include "base/array.h"
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

int tokenizer_add_token(struct tokenizer *t, struct text_view text, int32_t id, enum added_kind kind, struct err *err)
{
    if (text.n == 0)
        return err_set(err, ERR_FORMAT, "added token %d is empty", id);
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

/* ---- text to ids ------------------------------------------------------- */

struct encoding {
    const struct tokenizer *t;
    struct bpe_work work;
    struct tokens *out;
};

static int encode_piece(void *arg, struct text_view piece, struct err *err)
{
    struct encoding *e = arg;

    return bpe_encode(&e->t->bpe, &e->work, piece, e->out, err);
}

static bool is_ascii(struct text_view text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.at[i] >= 0x80)
            return false;
    return true;
}

/* Adds the ids of text without added tokens in it. */
static int encode_plain(struct encoding *e, struct text_view text, struct err *err)
{
    utf8proc_uint8_t *nfc = NULL;

    if (!e->t->nfc || is_ascii(text))
        return splitter_run(&e->t->splitter, text, encode_piece, e, err);
    utf8proc_ssize_t length = utf8proc_map((const utf8proc_uint8_t *)text.at, (utf8proc_ssize_t)text.n, &nfc,
                                           UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (length < 0)
        return err_set(err, ERR_FAIL, "cannot normalise a text: %s", utf8proc_errmsg(length));
    const struct text_view composed = { (const char *)nfc, (size_t)length };
    int code = splitter_run(&e->t->splitter, composed, encode_piece, e, err);
    free(nfc);
    return code;
}

/* The longest added token at the start of the text, or NULL. */
static const struct added_token *added_at(const struct tokenizer *t, struct text_view text, enum special special)
{
    const struct added_token *best = NULL;

    for (int i = 0; i < t->added.n; i++) {
        const struct added_token *a = &t->added.at[i];
        if (a->kind == ADDED_SPECIAL && special == SPECIAL_AS_TEXT)
            continue;
        if (a->text[0] == text.at[0] && a->n <= text.n && memcmp(a->text, text.at, a->n) == 0 &&
            (!best || a->n > best->n))
            best = a;
    }
    return best;
}

/* Which bytes an added token may begin with. */
static void first_bytes(const struct tokenizer *t, bool first[256])
{
    memset(first, 0, 256 * sizeof(*first));
    for (int i = 0; i < t->added.n; i++)
        first[(unsigned char)t->added.at[i].text[0]] = true;
}

/* Bytes first .. end - 1 of a text. */
struct byte_range {
    size_t first, end;
};

/* Adds the ids of valid UTF-8; special tokens are found where all their bytes are in `parsed`. */
static int encode(const struct tokenizer *t, struct text_view text, struct byte_range parsed, struct tokens *out,
                  struct err *err)
{
    struct encoding e = { .t = t, .out = out };
    bool first[256];
    size_t plain = 0; /* where text that is not encoded yet begins */
    int code = 0;

    first_bytes(t, first);
    for (size_t at = 0; at < text.n && !code;) {
        const struct added_token *a = NULL;
        if (first[(unsigned char)text.at[at]] && at >= parsed.first && at < parsed.end)
            a = added_at(t, (struct text_view){ text.at + at, parsed.end - at }, SPECIAL_PARSED);
        if (!a && first[(unsigned char)text.at[at]])
            a = added_at(t, (struct text_view){ text.at + at, text.n - at }, SPECIAL_AS_TEXT);
        if (!a) {
            at++;
            continue;
        }
        code = encode_plain(&e, (struct text_view){ text.at + plain, at - plain }, err);
        if (!code)
            code = tokens_add(out, a->id, err);
        at += a->n;
        plain = at;
    }
    if (!code)
        code = encode_plain(&e, (struct text_view){ text.at + plain, text.n - plain }, err);
    bpe_work_release(&e.work);
    return code;
}

/* Encodes what is in a buffer, with special tokens from byte `first` to byte `end`; releases it. */
static int encode_buf(const struct tokenizer *t, struct buf *text, struct byte_range parsed, struct tokens *out,
                      struct err *err)
{
    int code =
        buf_failed(text) ? err_nomem(err) : encode(t, (struct text_view){ buf_str(text), text->n }, parsed, out, err);

    buf_release(text);
    return code;
}

int tokenizer_encode(const struct tokenizer *t, struct text_view text, enum special special, struct tokens *out,
                     struct err *err)
{
    struct buf clean = { 0 };

    if (utf8_valid(text.at, text.n))
        return encode(t, text, (struct byte_range){ 0, special == SPECIAL_PARSED ? text.n : 0 }, out, err);
    utf8_clean(&clean, text.at, text.n);
    return encode_buf(t, &clean, (struct byte_range){ 0, special == SPECIAL_PARSED ? clean.n : 0 }, out, err);
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

/* ---- what the model sees ----------------------------------------------- */

/* Head and text are one string to the splitter, as they are to Hugging Face: white space may join across the seam. */
int tokenizer_context(const struct tokenizer *t, const char *text, struct tokens *out, struct err *err)
{
    struct buf whole = { 0 };
    size_t head = strlen(t->chat.head);

    buf_adds(&whole, t->chat.head);
    utf8_clean(&whole, text, strlen(text));
    return encode_buf(t, &whole, (struct byte_range){ 0, head }, out, err);
}

int tokenizer_question(const struct tokenizer *t, const char *ask, const char *question, struct tokens *out,
                       struct err *err)
{
    static const char mark[] = "{question}";
    struct buf whole = { 0 };
    const char *at = strstr(ask, mark);

    if (!at)
        return err_set(err, ERR_FORMAT, "'%.64s' does not contain {question}", ask);
    utf8_clean(&whole, ask, (size_t)(at - ask));
    utf8_clean(&whole, question, strlen(question));
    utf8_clean(&whole, at + sizeof(mark) - 1, strlen(at + sizeof(mark) - 1));
    size_t seam = whole.n;
    buf_adds(&whole, t->chat.tail);
    return encode_buf(t, &whole, (struct byte_range){ seam, whole.n }, out, err);
}
