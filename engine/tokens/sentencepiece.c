/* sentencepiece.c - a tokenizer from SentencePiece's tokenizer.model, a protobuf message.
 *
 * A message is a list of fields: a varint (number << 3 | wire type), then a varint, 4 or 8 bytes, or a length and that
 * number of bytes. Unknown fields are skipped. Read: BPE with byte fallback, no normalisation except of blanks (Llama
 * 2, Mistral, Gemma). Refused by name: other models (unigram), rules of normalisation. Format:
 * https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
 */
#include "engine/tokens/pieces.h"

#include <limits.h>

enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

struct field {
    uint32_t number;
    uint64_t value;         // of a varint
    float real;             // of four bytes
    struct text_view bytes; // of a length
};

struct message {
    const unsigned char *at, *end;
};

static struct message message_of(struct text_view bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.at;

    return (struct message){ at, at + bytes.n };
}

static bool take_varint(struct message *m, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && m->at < m->end; shift += 7) {
        unsigned char byte = *m->at++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* The next field of a message that is not at its end. ERR_FORMAT when it does not fit. */
static int take_field(struct message *m, struct field *f, struct err *err)
{
    uint64_t key, n = 0;

    *f = (struct field){ 0 };
    bool fits = take_varint(m, &key);
    unsigned wire = key & 7;
    f->number = (uint32_t)(key >> 3);
    if (fits && wire == WIRE_VARINT)
        fits = take_varint(m, &f->value);
    else if (fits && wire == WIRE_BYTES)
        fits = take_varint(m, &n);
    else
        n = wire == WIRE_32 ? 4 : wire == WIRE_64 ? 8 : UINT64_MAX;
    if (!fits || n > (uint64_t)(m->end - m->at))
        return err_set(err, ERR_FORMAT, "it is damaged: a field does not fit");
    if (wire == WIRE_BYTES)
        f->bytes = (struct text_view){ (const char *)m->at, n };
    else if (wire == WIRE_32)
        memcpy(&f->real, m->at, 4);
    m->at += n;
    return 0;
}

/* The fields of the trainer's and the normaliser's messages. */
struct spec {
    int64_t model; // 1 unigram, 2 BPE, 3 word, 4 char
    int64_t bos;
    bool bytes, prefix, squeeze, escape, suffix, rules;
};

static int read_trainer(struct spec *s, struct message m, struct err *err)
{
    enum { MODEL_TYPE = 3, SUFFIX = 24, BYTE_FALLBACK = 35, BOS = 41 };
    struct field f;

    while (m.at < m.end) {
        if (take_field(&m, &f, err))
            return err->code;
        if (f.number == MODEL_TYPE)
            s->model = f.value > 4 ? 0 : (int64_t)f.value;
        else if (f.number == SUFFIX)
            s->suffix = f.value != 0;
        else if (f.number == BYTE_FALLBACK)
            s->bytes = f.value != 0;
        else if (f.number == BOS)
            s->bos = f.value > INT_MAX ? -1 : (int64_t)f.value;
    }
    return 0;
}

static int read_normaliser(struct spec *s, struct message m, struct err *err)
{
    enum { CHARSMAP = 2, PREFIX = 3, SQUEEZE = 4, ESCAPE = 5 };
    struct field f;

    while (m.at < m.end) {
        if (take_field(&m, &f, err))
            return err->code;
        if (f.number == CHARSMAP)
            s->rules = f.bytes.n > 0;
        else if (f.number == PREFIX)
            s->prefix = f.value != 0;
        else if (f.number == SQUEEZE)
            s->squeeze = f.value != 0;
        else if (f.number == ESCAPE)
            s->escape = f.value != 0;
    }
    return 0;
}

static int check_spec(const struct spec *s, struct err *err)
{
    static const char *const models[] = { "?", "unigram", "BPE", "word", "char" };

    if (s->model != 2)
        return err_set(err, ERR_FORMAT, "a SentencePiece model of kind '%s' is not supported (BPE is)",
                       models[s->model]);
    if (!s->bytes)
        return err_set(err, ERR_FORMAT, "a SentencePiece model without byte fallback is not supported");
    if (s->rules || s->squeeze || !s->escape || s->suffix)
        return err_set(err, ERR_FORMAT, "its SentencePiece model %s, which is not supported",
                       s->rules     ? "normalises text by rules of its own"
                       : s->squeeze ? "removes extra white space"
                       : s->suffix  ? "puts blanks after words"
                                    : "does not escape blanks");
    return 0;
}

static int read_piece(struct piece *piece, struct message m, struct err *err)
{
    enum { TEXT = 1, SCORE = 2, TYPE = 3 };
    struct field f;

    *piece = (struct piece){ .text = { "", 0 }, .type = PIECE_NORMAL };
    while (m.at < m.end) {
        if (take_field(&m, &f, err))
            return err->code;
        if (f.number == TEXT && f.bytes.at)
            piece->text = f.bytes;
        else if (f.number == SCORE)
            piece->score = f.real;
        else if (f.number == TYPE)
            piece->type = f.value > INT_MAX ? 0 : (int64_t)f.value;
    }
    return 0;
}

/* Reads the two specs, or the pieces if `p` is not NULL. In the file the specs follow the pieces. */
static int read_model(struct message m, struct spec *s, struct pieces *p, struct err *err)
{
    enum { PIECE = 1, TRAINER = 2, NORMALISER = 3 };
    struct field f;
    struct piece piece;

    for (int id = 0; m.at < m.end;) {
        if (take_field(&m, &f, err))
            return err->code;
        if (!f.bytes.at)
            continue;
        int code = 0;
        if (p && f.number == PIECE)
            code = read_piece(&piece, message_of(f.bytes), err) || pieces_add(p, id++, &piece, err) ? err->code : 0;
        else if (!p && f.number == TRAINER)
            code = read_trainer(s, message_of(f.bytes), err);
        else if (!p && f.number == NORMALISER)
            code = read_normaliser(s, message_of(f.bytes), err);
        if (code)
            return code;
    }
    return 0;
}

static int set_bos(struct tokenizer *t, int64_t id, struct err *err)
{
    if (id < 0 || id >= t->bpe.n_vocab || !(t->flags[id] & TOKEN_SPECIAL))
        return 0;
    struct text_view bos = bpe_bytes(&t->bpe, (int32_t)id);
    t->bos = strndup(bos.at, bos.n);
    t->bos_first = true;
    return t->bos ? 0 : err_nomem(err);
}

int tokenizer_from_sentencepiece(struct tokenizer *t, struct text_view file, int n_vocab, struct err *err)
{
    struct spec s = {
        .model = 1, .bos = 1, .prefix = true, .squeeze = true, .escape = true
    }; /* the format's defaults */
    struct pieces p = { .t = t };

    if (read_model(message_of(file), &s, NULL, err) || check_spec(&s, err) ||
        tokenizer_alloc(t, BPE_CHARS, n_vocab, err))
        return err->code;
    t->blanks = t->blanks_first = true;
    t->prefix = s.prefix ? PREFIX_AFTER_SPECIAL : PREFIX_NONE;
    t->strip_blank = s.prefix;
    int code = read_model(message_of(file), &s, &p, err);
    if (!code)
        code = pieces_finish(&p, err);
    pieces_release(&p);
    return code ? code : set_bos(t, s.bos, err);
}
