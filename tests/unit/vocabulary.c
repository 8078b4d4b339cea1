/* Vocabularies of SentencePiece and tiktoken files made here byte by byte: ids, and what is refused. Real ones are
 * compared with their libraries in tests/golden/vocabularies. */
#include "engine/tokens/tokenizer_internal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void encodes(const struct tokenizer *t, const char *text, const char *want)
{
    struct tokens ids = { 0 };
    struct buf got = { 0 };
    struct err err;

    cr_assert_eq(tokenizer_encode(t, text_view_of(text), SPECIAL_AS_TEXT, &ids, &err), 0, "%s", err.msg);
    for (int i = 0; i < ids.n; i++)
        buf_printf(&got, i ? " %d" : "%d", ids.at[i]);
    cr_assert_str_eq(buf_str(&got), want, "'%s' is %s, not %s", text, buf_str(&got), want);
    tokens_release(&ids);
    buf_release(&got);
}

/* ---- SentencePiece ------------------------------------------------------- */

/* A field with a number below 128 bytes or of this value. */
static void put_int(struct buf *out, int field, unsigned value)
{
    buf_addc(out, (char)((field << 3 & 0x7f) | (field > 15 ? 0x80 : 0)));
    if (field > 15)
        buf_addc(out, (char)(field >> 4));
    buf_addc(out, (char)value);
}

static void put_bytes(struct buf *out, int field, const void *bytes, size_t n)
{
    cr_assert(n < 16384);
    buf_addc(out, (char)(field << 3 | 2));
    buf_addc(out, (char)((n & 0x7f) | 0x80));
    buf_addc(out, (char)(n >> 7));
    buf_add(out, bytes, n);
}

static void put_piece(struct buf *out, const char *text, float score, unsigned type)
{
    struct buf piece = { 0 };

    put_bytes(&piece, 1, text, strlen(text));
    buf_addc(&piece, 2 << 3 | 5);
    buf_add(&piece, &score, 4);
    put_int(&piece, 3, type);
    put_bytes(out, 1, piece.at, piece.n);
    buf_release(&piece);
}

/* <unk> <s> </s> and the bytes are 0 .. 258. Then the pieces. */
static void put_pieces(struct buf *out)
{
    static const char *const pieces[] = { TEXT_BLANK, "a", "b", "ab", (TEXT_BLANK "a"), "aa", "aaa", ("b" TEXT_BLANK) };
    static const float scores[] = { -9, -9, -9, -2, -3, -4, -4, -8 };
    char name[8];

    put_piece(out, "<unk>", 0, 2);
    put_piece(out, "<s>", 0, 3);
    put_piece(out, "</s>", 0, 3);
    for (unsigned byte = 0; byte < 256; byte++) {
        snprintf(name, sizeof(name), "<0x%02X>", byte);
        put_piece(out, name, 0, 6);
    }
    for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++)
        put_piece(out, pieces[i], scores[i], 1);
    put_piece(out, "<x>", 0, 4);
}

/* What the trainer and the normaliser say. */
struct said {
    unsigned model, bytes, suffix, prefix, squeeze, escape;
    const char *rules;
};
static const struct said plain = { 2, 1, 0, 1, 0, 1, "" };

static void put_specs(struct buf *out, const struct said *said)
{
    struct buf trainer = { 0 }, normaliser = { 0 };

    put_int(&trainer, 3, said->model);
    put_int(&trainer, 24, said->suffix);
    put_int(&trainer, 35, said->bytes);
    put_bytes(&normaliser, 1, "identity", 8);
    put_bytes(&normaliser, 2, said->rules, strlen(said->rules));
    put_int(&normaliser, 3, said->prefix);
    put_int(&normaliser, 4, said->squeeze);
    put_int(&normaliser, 5, said->escape);
    put_bytes(out, 2, trainer.at, trainer.n);
    put_bytes(out, 3, normaliser.at, normaliser.n);
    buf_release(&trainer);
    buf_release(&normaliser);
}

static int open_sentencepiece(struct tokenizer *t, const struct buf *file, int n_vocab, struct err *err)
{
    *t = (struct tokenizer){ 0 };
    return tokenizer_from_sentencepiece(t, (struct text_view){ buf_str(file), file->n }, n_vocab, err);
}

Test(sentencepiece, merges_by_score)
{
    struct buf file = { 0 }, back = { 0 };
    struct tokenizer t;
    struct err err;
    static const int32_t ids[] = { 263, 261, 198, 172 };

    put_pieces(&file);
    put_specs(&file, &plain);
    cr_assert_eq(open_sentencepiece(&t, &file, 300, &err), 0, "%s", err.msg);
    encodes(&t, "", "");
    encodes(&t, "ab", "259 262");      /* a blank comes first; "ab" is better than blank + "a" */
    encodes(&t, "a b", "263 259 261"); /* "b" + blank has no "a" to its left */
    encodes(&t, "b a", "259 261 263"); /* blank + "a" is better than "b" + blank */
    encodes(&t, " ab", "259 259 262"); /* blanks are not squeezed */
    encodes(&t, "aaaa", "263 265");    /* blank + "a" first, then of equal scores the leftmost */
    encodes(&t,
            "a\xe2\x96\x81"
            "a",
            "263 263");                      /* U+2581 is a blank */
    encodes(&t, "a\xc3\xa9", "263 198 172"); /* bytes of a character that has no piece */
    encodes(&t, "a<x>a", "263 267 260");     /* no blank after a token that the user defined */
    encodes(&t, "<s>", "259 63 118 65");     /* text */
    cr_assert_eq(tokenizer_decode(&t, ids, 4, &back, &err), 0);
    cr_assert_str_eq(buf_str(&back), "ab\xc3\xa9"); /* the first blank is the tokenizer's */
    cr_assert(t.bos_first);
    cr_assert_str_eq(t.bos, "<s>");
    tokenizer_release(&t);
    cr_assert_eq(open_sentencepiece(&t, &file, 267, &err), ERR_FORMAT); /* one id too few */
    cr_assert(strstr(err.msg, "has id 267 in a vocabulary of 267"), "%s", err.msg);
    tokenizer_release(&t);
    buf_release(&file);
    buf_release(&back);
}

Test(sentencepiece, refuses_what_it_would_get_wrong)
{
    static const struct {
        struct said said;
        const char *why;
    } cases[] = {
        { { 1, 1, 0, 1, 0, 1, "" }, "kind 'unigram' is not supported" },
        { { 3, 1, 0, 1, 0, 1, "" }, "kind 'word' is not supported" },
        { { 9, 1, 0, 1, 0, 1, "" }, "kind '?' is not supported" },
        { { 2, 0, 0, 1, 0, 1, "" }, "without byte fallback" },
        { { 2, 1, 1, 1, 0, 1, "" }, "puts blanks after words" },
        { { 2, 1, 0, 1, 1, 1, "" }, "removes extra white space" },
        { { 2, 1, 0, 1, 0, 0, "" }, "does not escape blanks" },
        { { 2, 1, 0, 1, 0, 1, "x" }, "rules of its own" },
    };
    static const struct {
        const char *text;
        float score;
        unsigned type;
        const char *why;
    } pieces[] = {
        { "q", 0, 5, "piece 268 is unused" },
        { "q", 0, 7, "of the unknown type 7" },
        { "<0xZZ>", 0, 6, "is not a byte like <0x0A>" },
        { "\xff", 0, 1, "piece 268 is not UTF-8" },
        { "q", 0.0f / 0.0f, 1, "is not a number" },
    };
    struct tokenizer t;
    struct err err;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct buf file = { 0 };
        put_pieces(&file);
        put_specs(&file, &cases[i].said);
        cr_assert_eq(open_sentencepiece(&t, &file, 300, &err), ERR_FORMAT);
        cr_assert(strstr(err.msg, cases[i].why), "'%s' does not say '%s'", err.msg, cases[i].why);
        tokenizer_release(&t);
        buf_release(&file);
    }
    for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
        struct buf file = { 0 };
        put_pieces(&file);
        put_piece(&file, pieces[i].text, pieces[i].score, pieces[i].type);
        put_specs(&file, &plain);
        cr_assert_eq(open_sentencepiece(&t, &file, 300, &err), ERR_FORMAT);
        cr_assert(strstr(err.msg, pieces[i].why), "'%s' does not say '%s'", err.msg, pieces[i].why);
        tokenizer_release(&t);
        buf_release(&file);
    }
}

/* A file that was cut is refused: a field does not fit, or a byte has no piece, or there is no BPE. */
Test(sentencepiece, refuses_cut_files)
{
    struct buf file = { 0 };
    struct err err;

    put_specs(&file, &plain);
    put_pieces(&file);
    for (size_t n = file.n - 200; n < file.n; n++) {
        struct tokenizer t = { 0 };
        const struct text_view cut = { file.at, n };
        if (tokenizer_from_sentencepiece(&t, cut, 300, &err))
            cr_assert_eq(err.code, ERR_FORMAT);
        tokenizer_release(&t);
    }
    for (size_t n = 0; n < 3000; n += 7) {
        struct tokenizer t = { 0 };
        const struct text_view cut = { file.at, n };
        cr_assert_eq(tokenizer_from_sentencepiece(&t, cut, 300, &err), ERR_FORMAT);
        tokenizer_release(&t);
    }
    buf_release(&file);
}

/* ---- tiktoken ------------------------------------------------------------ */

static void put_line(struct buf *out, const char *bytes, size_t n, int rank)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < n; i += 3) {
        unsigned v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (i + k < n ? (unsigned char)bytes[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            buf_addc(out, i + k > n ? '=' : digits[v >> (18 - 6 * k) & 63]);
    }
    buf_printf(out, " %d\n", rank);
}

static void put_bytes_lines(struct buf *out)
{
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        put_line(out, &c, 1, byte);
    }
}

static int open_lines(struct tokenizer *t, const struct buf *file, struct err *err)
{
    *t = (struct tokenizer){ 0 };
    if (tokenizer_alloc(t, BPE_BYTES, 300, err))
        return err->code;
    return tiktoken_lines(t, (struct text_view){ buf_str(file), file->n }, err);
}

Test(tiktoken, merges_by_rank)
{
    struct buf file = { 0 };
    struct tokenizer t;
    struct err err;

    put_bytes_lines(&file);
    put_line(&file, "bc", 2, 256);
    put_line(&file, "ab", 2, 257);
    put_line(&file, "abc", 3, 258);
    put_line(&file, "\xff\xfe\xfd", 3, 259); /* no two of these are a token */
    buf_adds(&file, "\n");
    cr_assert_eq(open_lines(&t, &file, &err), 0, "%s", err.msg);
    encodes(&t, "abc", "258"); /* of "a" and "bc" */
    encodes(&t, "abab", "257 257");
    encodes(&t, "x\xc3\xa9", "120 195 169");
    tokenizer_release(&t);
    buf_release(&file);
}

Test(tiktoken, refuses_damaged_lines)
{
    static const char *const bad[][2] = {
        { "YQ== x\n", "line 257 is not a token in base64" },
        { "YQ==\n", "line 257" },
        { "YQ= 256\n", "line 257" },
        { "Y!== 256\n", "line 257" },
        { "=== 256\n", "line 257" },
        { " 256\n", "line 257" },
        { "YQ== -1\n", "line 257" },
        { "YQ== 9999999999\n", "257" },
        { "YWI= 5\n", "two tokens" },
        { "YWI= 300\n", "has id 300 in a vocabulary of 300" },
    };
    struct tokenizer t;
    struct err err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct buf file = { 0 };
        put_bytes_lines(&file);
        buf_adds(&file, bad[i][0]);
        cr_assert_eq(open_lines(&t, &file, &err), ERR_FORMAT, "%s", bad[i][0]);
        cr_assert(strstr(err.msg, bad[i][1]), "'%s' does not say '%s'", err.msg, bad[i][1]);
        tokenizer_release(&t);
        buf_release(&file);
    }
    cr_assert_eq(open_lines(&t, &(struct buf){ 0 }, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "byte 0x00 has no token"), "%s", err.msg);
    tokenizer_release(&t);
}

Test(tiktoken, a_family_is_known_by_its_size)
{
    static const char text[] = "YQ== 0\nYg== 1\n";
    struct tokenizer t = { 0 };
    struct err err;

    cr_assert_eq(tokenizer_from_tiktoken(&t, text_view_of(text), 300, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "a tiktoken file of 2 tokens is not of a known family (Llama 3 has 128000, Qwen 151643)");
    tokenizer_release(&t);
}
