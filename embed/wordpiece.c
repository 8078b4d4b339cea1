#include "embed/wordpiece.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "base/utf8.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum {
    WORD_MOST = 100, /* characters; a longer word is [UNK], as BERT's vocabulary defines it */
    VOCAB_MOST = 1 << 24,
    FILE_MOST = 256 << 20,
    MARK = 2, /* length of "##", in front of a piece that continues a word */
};

struct wordpiece {
    struct map pieces;
    int32_t *id;    // number of a piece -> its id
    size_t longest; // bytes of the longest piece
    int n_vocab;
    int32_t unk, cls, sep;
};

/* ---- vocabulary -------------------------------------------------------- */

static int add_piece(struct wordpiece *w, const char *text, size_t n, int64_t id, struct err *err)
{
    bool added;
    int number = map_add(&w->pieces, text, n, &added);

    if (number < 0)
        return err_nomem(err);
    if (!added)
        return err_set(err, ERR_FORMAT, "piece '%.*s' is there twice", (int)(n < 64 ? n : 64), text);
    if (id < 0 || id >= VOCAB_MOST)
        return err_set(err, ERR_FORMAT, "piece '%.*s' has id %lld", (int)(n < 64 ? n : 64), text, (long long)id);
    w->id[number] = (int32_t)id;
    if (id >= w->n_vocab)
        w->n_vocab = (int)id + 1;
    if (n > w->longest)
        w->longest = n;
    return 0;
}

static int alloc_ids(struct wordpiece *w, size_t n, struct err *err)
{
    if (n > VOCAB_MOST)
        return err_set(err, ERR_FORMAT, "a vocabulary of %zu pieces", n);
    w->id = calloc(n + 1, sizeof(*w->id));
    return w->id ? 0 : err_nomem(err);
}

/* One piece a line, numbered from 0. */
static int read_vocab_text(struct wordpiece *w, const struct buf *text, struct err *err)
{
    const char *p = buf_str(text), *end = p + text->n;
    size_t n_lines = 0;

    for (const char *q = p; q < end; q++)
        n_lines += *q == '\n';
    if (alloc_ids(w, n_lines + 1, err))
        return err->code;
    for (int64_t line = 0; p < end; line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop)
            stop = end;
        if (add_piece(w, p, (size_t)(stop - p), line, err))
            return err_wrap(err, "line %lld", (long long)line + 1);
        p = stop + 1;
    }
    return 0;
}

static int read_vocab_json(struct wordpiece *w, const struct json *root, struct err *err)
{
    const struct json *model = json_get(root, "model"), *vocab = json_get(model, "vocab");
    const char *type = json_text(json_get(model, "type")),
               *mark = json_text(json_get(model, "continuing_subword_prefix"));

    if (!type || strcmp(type, "WordPiece") != 0 || !mark || strcmp(mark, "##") != 0 || !json_is_object(vocab))
        return err_set(err, ERR_FORMAT, "it holds no WordPiece model with '##' and a vocabulary");
    if (alloc_ids(w, (size_t)json_count(vocab), err))
        return err->code;
    for (const struct json *v = json_first(vocab); v; v = json_next(v)) {
        double id = json_real(v);
        if (!(id >= 0 && id < VOCAB_MOST) || id != (double)(int64_t)id)
            return err_set(err, ERR_FORMAT, "piece '%.64s' has no id", json_name(v));
        if (add_piece(w, json_name(v), strlen(json_name(v)), (int64_t)id, err))
            return err->code;
    }
    return 0;
}

static int find_special(const struct wordpiece *w, const char *text, int32_t *id, struct err *err)
{
    int number = map_find(&w->pieces, text, strlen(text));

    if (number < 0)
        return err_set(err, ERR_FORMAT, "the vocabulary has no %s", text);
    *id = w->id[number];
    return 0;
}

static int read_vocab(struct wordpiece *w, const char *path, bool is_json, struct err *err)
{
    struct buf text = { 0 };
    struct json *root = NULL;
    int result = file_read(&text, path, FILE_MOST, err);

    if (result == 0 && is_json) {
        root = json_parse(buf_str(&text), text.n, err);
        result = root ? read_vocab_json(w, root, err) : err->code;
    } else if (result == 0) {
        result = read_vocab_text(w, &text, err);
    }
    if (result == 0 && (find_special(w, "[UNK]", &w->unk, err) || find_special(w, "[CLS]", &w->cls, err) ||
                        find_special(w, "[SEP]", &w->sep, err)))
        result = err->code;
    json_free(root);
    buf_release(&text);
    return result == ERR_FORMAT ? err_wrap(err, "'%s'", path) : result;
}

struct wordpiece *wordpiece_open(const char *dir, struct err *err)
{
    struct wordpiece *w = calloc(1, sizeof(*w));
    char *text = file_join(dir, "vocab.txt"), *json = file_join(dir, "tokenizer.json");
    int result = w && text && json ? 0 : err_nomem(err);

    if (result == 0) {
        bool is_json = !file_exists(text);
        result = read_vocab(w, is_json ? json : text, is_json, err);
    }
    free(text);
    free(json);
    if (result == 0)
        return w;
    wordpiece_close(w);
    return NULL;
}

void wordpiece_close(struct wordpiece *w)
{
    if (!w)
        return;
    map_release(&w->pieces);
    free(w->id);
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

void wordpiece_ids_release(struct wordpiece_ids *ids)
{
    free(ids->at);
    *ids = (struct wordpiece_ids){ 0 };
}

/* ---- characters -------------------------------------------------------- */

static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
           c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* Control, format, private use and U+FFFD: dropped. */
static bool is_dropped(uint32_t c)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);

    if (c == '\t' || c == '\n' || c == '\r')
        return false;
    return c == 0xfffd || category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
           category == UTF8PROC_CATEGORY_CO;
}

static bool is_punctuation(uint32_t c)
{
    if (c < 128)
        return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

/* Ideographs, each a word of its own. 0x2b920 is what Hugging Face's code has where BERT's has 0x2b820. */
static bool is_ideograph(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } range[] = { { 0x4e00, 0x9fff },   { 0x3400, 0x4dbf },   { 0x20000, 0x2a6df }, { 0x2a700, 0x2b73f },
                  { 0x2b740, 0x2b81f }, { 0x2b920, 0x2ceaf }, { 0xf900, 0xfaff },   { 0x2f800, 0x2fa1f } };

    for (size_t i = 0; i < sizeof(range) / sizeof(*range); i++)
        if (c >= range[i].first && c <= range[i].last)
            return true;
    return false;
}

/* ---- normalisation ----------------------------------------------------- */

static void add_point(struct buf *out, uint32_t c)
{
    char text[4];

    buf_add(out, text, (size_t)utf8_encode(c, text));
}

/* What is dropped, every white space as a blank, blanks around ideographs. */
static void clean(struct buf *out, const char *text, size_t n)
{
    uint32_t c;

    for (size_t at = 0; at < n;) {
        at += (size_t)utf8_decode(text + at, n - at, &c);
        if (is_dropped(c))
            continue;
        if (is_space(c)) {
            buf_addc(out, ' ');
        } else if (is_ideograph(c)) {
            buf_addc(out, ' ');
            add_point(out, c);
            buf_addc(out, ' ');
        } else {
            add_point(out, c);
        }
    }
}

/* Decomposed, without combining marks, in lower case. */
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
        if (utf8proc_category((utf8proc_int32_t)c) != UTF8PROC_CATEGORY_MN)
            add_point(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
    }
    free(nfd);
    return 0;
}

/* ---- words to pieces --------------------------------------------------- */

static int add_id(struct wordpiece_ids *ids, int32_t id, struct err *err)
{
    if (ids->n == ids->room) {
        int room = ids->room ? 2 * ids->room : 64;
        int32_t *at = ids->room < INT_MAX / 2 ? realloc(ids->at, (size_t)room * sizeof(*at)) : NULL;
        if (!at)
            return err_nomem(err);
        ids->at = at;
        ids->room = room;
    }
    ids->at[ids->n++] = id;
    return 0;
}

/* The longest piece that text begins with, as its number; *length: bytes of the word it takes. `mark` bytes of "##" at
 * the start belong to the piece but not to the word. */
static int longest_piece(const struct wordpiece *w, const char *text, size_t mark, size_t n, size_t *length)
{
    for (size_t end = n < w->longest ? n : w->longest; end > mark; end--) {
        if (end < n && ((unsigned char)text[end] & 0xc0) == 0x80)
            continue; /* within a character */
        int number = map_find(&w->pieces, text, end);
        *length = end - mark;
        if (number >= 0)
            return number;
    }
    return -1;
}

/* A word of n bytes; overwrites up to MARK bytes in front of each piece with "##", so that a piece that continues a
 * word can be looked up where it stands. */
static int encode_word(const struct wordpiece *w, char *word, size_t n, struct wordpiece_ids *out, struct err *err)
{
    int start = out->n;
    size_t length;

    if (utf8_count(word, n) > WORD_MOST)
        return add_id(out, w->unk, err);
    for (size_t at = 0; at < n; at += length) {
        size_t mark = at > 0 ? MARK : 0;
        if (mark)
            memcpy(word + at - MARK, "##", MARK);
        int number = longest_piece(w, word + at - mark, mark, n - at + mark, &length);
        if (number < 0) {
            out->n = start;
            return add_id(out, w->unk, err);
        }
        if (add_id(out, w->id[number], err))
            return err->code;
    }
    return 0;
}

/* `text` has MARK bytes of room in front of it, and is used up. */
static int encode_words(const struct wordpiece *w, char *text, size_t n, struct wordpiece_ids *out, struct err *err)
{
    size_t word = 0; /* where the current one begins */
    uint32_t c;

    for (size_t at = 0; at < n;) {
        size_t next = at + (size_t)utf8_decode(text + at, n - at, &c);
        bool space = is_space(c), alone = is_punctuation(c);
        if ((space || alone) && at > word && encode_word(w, text + word, at - word, out, err))
            return err->code;
        if (alone && encode_word(w, text + at, next - at, out, err))
            return err->code;
        if (space || alone)
            word = next;
        at = next;
    }
    return n > word ? encode_word(w, text + word, n - word, out, err) : 0;
}

int wordpiece_encode(const struct wordpiece *w, const char *text, size_t n, struct wordpiece_ids *out, struct err *err)
{
    struct buf valid = { 0 }, cleaned = { 0 }, folded = { 0 };
    bool is_valid = utf8_valid(text, n);

    if (!is_valid)
        utf8_clean(&valid, text, n);
    clean(&cleaned, is_valid ? text : buf_str(&valid), is_valid ? n : valid.n);
    buf_adds(&folded, "##"); /* MARK bytes of room */
    int result = buf_failed(&valid) || buf_failed(&cleaned) ? err_nomem(err) : fold(&folded, &cleaned, err);
    if (result == 0)
        result = buf_failed(&folded) ? err_nomem(err) : encode_words(w, folded.at + MARK, folded.n - MARK, out, err);
    buf_release(&valid);
    buf_release(&cleaned);
    buf_release(&folded);
    return result;
}
