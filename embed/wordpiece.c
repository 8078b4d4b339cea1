/* wordpiece.c - from the whole text down: special tokens off, the text between them normalised in two passes (clean,
 * fold), cut into words, and each word into tokens of the vocabulary. */
#include "embed/wordpiece.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "embed/bert_chars.h"
#include "embed/wordpiece_internal.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum {
    MAX_WORD = 100, /* characters; a longer word is [UNK], as BERT's vocabulary defines it */
    MARK = 2,       /* length of "##", in front of a token that continues a word */
};

struct wordpiece *wordpiece_open(const char *dir, struct err *err)
{
    struct wordpiece *w = calloc(1, sizeof(*w));
    int code = w ? vocabulary_read(w, dir, err) : err_nomem(err);

    if (!code)
        return w;
    wordpiece_close(w);
    return NULL;
}

void wordpiece_close(struct wordpiece *w)
{
    if (!w)
        return;
    vocabulary_release(w);
    free(w);
}

int wordpiece_n_vocab(const struct wordpiece *w)
{
    return w->n_vocab;
}

int32_t wordpiece_cls(const struct wordpiece *w)
{
    return w->cls;
}

int32_t wordpiece_sep(const struct wordpiece *w)
{
    return w->sep;
}

/* ---- normalisation ----------------------------------------------------- */

static void add_point(struct buf *out, uint32_t c)
{
    char text[4];

    buf_add(out, text, (size_t)utf8_encode(c, text));
}

/* Drops control characters, makes every white space a blank, puts blanks around ideographs. */
static void clean(struct buf *out, const char *text, size_t n)
{
    uint32_t c;

    for (size_t at = 0; at < n;) {
        at += (size_t)utf8_decode(text + at, n - at, &c);
        if (bert_is_dropped(c))
            continue;
        if (bert_is_space(c)) {
            buf_addc(out, ' ');
        } else if (bert_is_ideograph(c)) {
            buf_addc(out, ' ');
            add_point(out, c);
            buf_addc(out, ' ');
        } else {
            add_point(out, c);
        }
    }
}

/* Decomposes, drops combining marks, makes lower case. */
static int fold(struct buf *out, const struct buf *text, struct err *err)
{
    utf8proc_uint8_t *nfd = NULL;
    utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)buf_str(text), (utf8proc_ssize_t)text->n, &nfd,
                                      UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
    uint32_t c;

    if (n < 0)
        return err_set(err, ERR_FAIL, "cannot normalise a text: %s", utf8proc_errmsg(n));
    for (size_t at = 0; at < (size_t)n;) {
        at += (size_t)utf8_decode((const char *)nfd + at, (size_t)n - at, &c);
        if (!bert_is_mark(c))
            add_point(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
    }
    free(nfd);
    return 0;
}

/* ---- words to tokens --------------------------------------------------- */

/* The number of the longest token that text begins with; *length: bytes of the word it takes. `mark` bytes of "##" at
 * the start belong to the token but not to the word. */
static int longest_token(const struct wordpiece *w, const char *text, size_t mark, size_t n, size_t *length)
{
    for (size_t end = n < w->longest ? n : w->longest; end > mark; end--) {
        if (end < n && ((unsigned char)text[end] & 0xc0) == 0x80)
            continue; /* within a character */
        int number = map_find(&w->names, text, end);
        *length = end - mark;
        if (number >= 0)
            return number;
    }
    return -1;
}

/* Encodes a word of n bytes. Overwrites MARK bytes in front of each token that continues the word with "##", to look it
 * up in place. */
static int encode_word(const struct wordpiece *w, char *word, size_t n, struct tokens *out, struct err *err)
{
    int start = out->n;
    size_t length;

    if (utf8_count(word, n) > MAX_WORD)
        return tokens_add(out, w->unk, err);
    for (size_t at = 0; at < n; at += length) {
        size_t mark = at > 0 ? MARK : 0;
        if (mark)
            memcpy(word + at - MARK, "##", MARK);
        int number = longest_token(w, word + at - mark, mark, n - at + mark, &length);
        if (number < 0) {
            out->n = start;
            return tokens_add(out, w->unk, err);
        }
        if (tokens_add(out, w->id[number], err))
            return err->code;
    }
    return 0;
}

/* Encodes normalised text, with MARK writable bytes in front of it; overwrites it. */
static int encode_words(const struct wordpiece *w, char *text, size_t n, struct tokens *out, struct err *err)
{
    size_t word = 0; /* where the current one begins */
    uint32_t c;

    for (size_t at = 0; at < n;) {
        size_t next = at + (size_t)utf8_decode(text + at, n - at, &c);
        bool blank = c == ' ', alone = bert_is_punctuation(c);
        if ((blank || alone) && at > word && encode_word(w, text + word, at - word, out, err))
            return err->code;
        if (alone && encode_word(w, text + at, next - at, out, err))
            return err->code;
        if (blank || alone)
            word = next;
        at = next;
    }
    return n > word ? encode_word(w, text + word, n - word, out, err) : 0;
}

/* ---- whole texts --------------------------------------------------------- */

/* Text without special tokens. */
static int encode_text(const struct wordpiece *w, const char *text, size_t n, struct tokens *out, struct err *err)
{
    struct buf valid = { 0 }, cleaned = { 0 }, folded = { 0 };
    bool is_valid = utf8_valid(text, n);

    if (!is_valid)
        utf8_clean(&valid, text, n);
    clean(&cleaned, is_valid ? text : buf_str(&valid), is_valid ? n : valid.n);
    buf_adds(&folded, "##"); /* the MARK bytes that encode_words() wants */
    int code = buf_failed(&valid) || buf_failed(&cleaned) ? err_nomem(err) : fold(&folded, &cleaned, err);
    if (!code)
        code = buf_failed(&folded) ? err_nomem(err) : encode_words(w, folded.at + MARK, folded.n - MARK, out, err);
    buf_release(&valid);
    buf_release(&cleaned);
    buf_release(&folded);
    return code;
}

/* The longest special token that the n bytes of text begin with, or NULL. */
static const struct wordpiece_special *special_at(const struct wordpiece *w, const char *text, size_t n)
{
    const struct wordpiece_special *found = NULL;

    if (!w->opens_special[(unsigned char)*text])
        return NULL;
    for (int i = 0; i < w->specials.n; i++) {
        const struct wordpiece_special *s = &w->specials.at[i];
        if (s->n <= n && memcmp(text, s->text, s->n) == 0 && (!found || s->n > found->n))
            found = s;
    }
    return found;
}

/* Splits off special tokens from left to right in the raw text; only the text between them is normalised. */
int wordpiece_encode(const struct wordpiece *w, const char *text, size_t n, struct tokens *out, struct err *err)
{
    size_t from = 0; /* where the ordinary text before `at` begins */

    for (size_t at = 0; at < n;) {
        const struct wordpiece_special *s = special_at(w, text + at, n - at);
        if (!s) {
            at++;
            continue;
        }
        if ((at > from && encode_text(w, text + from, at - from, out, err)) || tokens_add(out, s->id, err))
            return err->code;
        at += s->n;
        from = at;
    }
    return n > from ? encode_text(w, text + from, n - from, out, err) : 0;
}
