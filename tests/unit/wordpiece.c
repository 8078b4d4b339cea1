/* WordPiece over vocabularies of a dozen pieces and of tests/data/minibert; the real one is compared in tests/golden.
 */
#include "embed/wordpiece.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/rows.h"
#include "embed/bert_chars.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

static const char vocab[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\nem\n##bed\n##ding\nbed\n.\n,\n\xe4\xb8\xad\ne\n##e\n[\nsep\n]\n";

/* A folder with one file in it, open; the folder is gone again. */
static struct wordpiece *open_with(const char *name, const char *text, struct err *err)
{
    char dir[] = "/tmp/wordpiece.XXXXXX";

    cr_assert_not_null(mkdtemp(dir));
    char *path = file_join(dir, name);
    cr_assert_eq(file_write(path, text, strlen(text), err), 0);
    struct wordpiece *w = wordpiece_open(dir, err);
    unlink(path);
    free(path);
    rmdir(dir);
    return w;
}

static void expect(const struct wordpiece *w, const char *text, const char *want)
{
    struct tokens ids = { 0 };
    struct buf got = { 0 };
    struct err err;

    cr_assert_eq(wordpiece_encode(w, text, strlen(text), &ids, &err), 0);
    for (int i = 0; i < ids.n; i++)
        buf_printf(&got, i ? " %d" : "%d", ids.at[i]);
    cr_assert_str_eq(buf_str(&got), want, "'%s' is %s, not %s", text, buf_str(&got), want);
    tokens_release(&ids);
    buf_release(&got);
}

Test(wordpiece, cuts_words_into_longest_pieces)
{
    struct err err;
    struct wordpiece *w = open_with("vocab.txt", vocab, &err);

    cr_assert_not_null(w, "%s", err.msg);
    cr_assert_eq(wordpiece_n_vocab(w), 16);
    cr_assert(wordpiece_cls(w) == 2 && wordpiece_sep(w) == 3);
    expect(w, "", "");
    expect(w, " \t\n ", "");
    expect(w, "embedding bed", "4 5 6 7");
    expect(w, "Em\xc3\xa9 EMBED.", "4 12 4 5 8"); // accents and case go
    expect(w, "embedx bed,bed", "1 7 9 7");       // one missing piece spoils its word only
    expect(w,
           "e\xe4\xb8\xad"
           "e",
           "11 10 11"); // ideographs stand alone
    expect(w, "[SEP]", "3");
    expect(w, "bed[SEP]ding[CLS]", "7 3 1 2"); // what follows begins a word
    expect(w, "[sep]", "13 14 15");
    expect(w,
           "b\xc2\xad"
           "ed b\xef\xbf\xbd"
           "ed",
           "7 7"); // soft hyphen and U+FFFD are dropped
    expect(w,
           "b\xff"
           "ed",
           "7"); // so is what is no UTF-8
    expect(w,
           "em\xe2\x80\x85"
           "bed",
           "4 7"); // any white space
    wordpiece_close(w);
}

/* A word of n characters: so many ids come of it. Accents go before the characters are counted. */
static int n_ids_of_word(const struct wordpiece *w, const char *character, int n)
{
    struct buf word = { 0 };
    struct tokens ids = { 0 };
    struct err err;

    for (int i = 0; i < n; i++)
        buf_adds(&word, character);
    cr_assert_eq(wordpiece_encode(w, word.at, word.n, &ids, &err), 0);
    cr_assert(ids.n != 1 || ids.at[0] == 1);
    int n_ids = ids.n;
    buf_release(&word);
    tokens_release(&ids);
    return n_ids;
}

Test(wordpiece, words_over_100_characters_are_unknown)
{
    struct err err;
    struct wordpiece *w = open_with("vocab.txt", vocab, &err);

    cr_assert_eq(n_ids_of_word(w, "e", 99), 99);
    cr_assert_eq(n_ids_of_word(w, "e", 100), 100);
    cr_assert_eq(n_ids_of_word(w, "e", 101), 1);
    cr_assert_eq(n_ids_of_word(w, "e\u0301", 100), 100);
    cr_assert_eq(n_ids_of_word(w, "\u00e9", 101), 1);
    wordpiece_close(w);
}

/* Made by tests/golden/embed/make-ids.py with the library itself. */
Test(wordpiece, special_tokens_in_texts_as_the_library_reads_them)
{
    struct wordpiece *w;
    struct rows_in in;
    struct json *row;
    struct err err;
    int n = 0;

    cr_assert(w = wordpiece_open("tests/data/minibert", &err), "%s", err.msg);
    cr_assert_eq(rows_open(&in, "tests/golden/embed/minibert.jsonl", "ids", &err), 0, "%s", err.msg);
    for (; rows_next(&in, &row, &err) == 1; n++) {
        struct buf want = { 0 };
        for (const struct json *id = json_first(json_get(row, "ids")); id; id = json_next(id))
            buf_printf(&want, want.n ? " %g" : "%g", json_real(id));
        expect(w, json_text(json_get(row, "text")), buf_str(&want));
        buf_release(&want);
        json_free(row);
    }
    cr_assert_eq(n, 28);
    rows_close(&in);
    wordpiece_close(w);
}

/* The ends of the ranges of bert_ranges.h, and characters younger than the Unicode that the library knows. */
Test(wordpiece, characters_have_the_classes_of_the_library)
{
    cr_assert(bert_is_dropped(0) && bert_is_dropped(0x7f) && bert_is_dropped(0x9f) && bert_is_dropped(0x10fffd));
    cr_assert(!bert_is_dropped('\t') && !bert_is_dropped(0x20) && !bert_is_dropped(0x7e) && !bert_is_dropped(0xa0));
    cr_assert(!bert_is_dropped(0x8e2) && !bert_is_dropped(0x10fffe));
    cr_assert(bert_is_mark(0x300) && bert_is_mark(0x36f) && bert_is_mark(0xe01ef));
    cr_assert(!bert_is_mark(0x2ff) && !bert_is_mark(0x370) && !bert_is_mark(0x7fd) && !bert_is_mark(0xe01f0));
    cr_assert(bert_is_punctuation('!') && bert_is_punctuation('~') && bert_is_punctuation(0xa1));
    cr_assert(bert_is_punctuation(0x166d) && !bert_is_punctuation(0x2e4f) && !bert_is_punctuation('a'));
    cr_assert(bert_is_ideograph(0x4e00) && bert_is_ideograph(0x9fff) && bert_is_ideograph(0x2fa1f));
    cr_assert(!bert_is_ideograph(0x33ff) && !bert_is_ideograph(0xa000) && !bert_is_ideograph(0x2b820));
    cr_assert(bert_is_space(0x3000) && bert_is_space(0x2000) && bert_is_space(0x200a) && !bert_is_space(0x200b));
}

Test(wordpiece, reads_tokenizer_json)
{
    struct err err;
    struct wordpiece *w = open_with("tokenizer.json",
                                    "{\"model\":{\"type\":\"WordPiece\",\"continuing_subword_prefix\":\"##\",\"vocab\":"
                                    "{\"[SEP]\":7,\"bed\":3,\"[UNK]\":1,\"[CLS]\":6}}}",
                                    &err);

    cr_assert_not_null(w, "%s", err.msg);
    cr_assert_eq(wordpiece_n_vocab(w), 8);
    cr_assert_eq(wordpiece_sep(w), 7);
    expect(w, "bed x", "3 1");
    wordpiece_close(w);
}

#define MODEL(vocab)                                                                                                   \
    "{\"model\":{\"type\":\"WordPiece\",\"continuing_subword_prefix\":\"##\",\"vocab\":{" vocab "}},\"added_tokens\":" \
    "["
#define NEEDED "\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2"

/* Only what "added_tokens" names is a special token, whatever it looks like; the longest one wins. */
Test(wordpiece, special_tokens_of_tokenizer_json)
{
    struct err err;
    struct wordpiece *w = open_with("tokenizer.json",
                                    MODEL(NEEDED ",\"a\":3") "{\"id\":2,\"content\":\"[SEP]\",\"special\":true},"
                                                             "{\"id\":9,\"content\":\"\u00e9\"},"
                                                             "{\"id\":8,\"content\":\"\u00e9A\"}]}",
                                    &err);

    cr_assert_not_null(w, "%s", err.msg);
    cr_assert_eq(wordpiece_n_vocab(w), 10);
    expect(w, "a[SEP]a", "3 2 3");
    expect(w, "a[CLS]", "3 0 0 0");
    expect(w, "a\u00e9a\u00e9A\u00e9", "3 9 3 8 9");
    expect(w, "A\u0301a", "0");   // not yet composed, so not that token
    expect(w, "\u00e9\xc3", "9"); // cut
    wordpiece_close(w);
}

Test(wordpiece, refuses_broken_vocabularies)
{
    static const char *const bad[][3] = {
        { "vocab.txt", "[UNK]\n[CLS]\n", "has no [SEP]" },
        { "vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\na\n", "line 5: token 'a' occurs twice" },
        { "vocab.txt", "", "has no [UNK]" },
        { "tokenizer.json", "{\"model\":{\"type\":\"BPE\"}}", "no WordPiece model" },
        { "tokenizer.json", "{\"model\":", "malformed JSON" },
        { "tokenizer.json", MODEL("\"a\":-1") "]}", "token 'a' has no id from 0 to 16777215" },
        { "tokenizer.json", MODEL("\"a\":1.5") "]}", "has no id" },
        { "tokenizer.json", MODEL("\"a\":16777216") "]}", "has no id" },
        { "tokenizer.json", MODEL("\"a\":16777215") "]}", "has no [UNK]" },
        { "tokenizer.json", MODEL(NEEDED) "{\"id\":1}]}", "'content' is missing" },
        { "tokenizer.json", MODEL(NEEDED) "{\"content\":\"[X]\"}]}", "'id' is missing" },
        { "tokenizer.json", MODEL(NEEDED) "{\"content\":\"[X]\",\"id\":16777216}]}",
          "added token '[X]' has id 16777216" },
        { "tokenizer.json", MODEL(NEEDED) "{\"content\":\"[SEP]\",\"id\":1}]}", "not its id in the vocabulary" },
        { "tokenizer.json", MODEL(NEEDED) "{\"content\":\"[X]\",\"id\":7},{\"content\":\"[X]\",\"id\":7}]}",
          "added token '[X]' occurs twice" },
        { "tokenizer.json", MODEL(NEEDED) "{\"content\":\"[X]\",\"id\":7,\"lstrip\":true}]}",
          "added token '[X]' is 'lstrip', which is not supported" },
        { "tokenizer.json", MODEL(NEEDED) "{\"content\":\"[X]\",\"id\":7,\"normalized\":true}]}", "'normalized'" },
    };
    struct err err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_assert_null(open_with(bad[i][0], bad[i][1], &err), "%s", bad[i][1]);
        cr_assert_eq(err.code, ERR_FORMAT);
        cr_assert(strstr(err.msg, bad[i][2]), "%s: %s", bad[i][1], err.msg);
    }
    cr_assert_null(open_with("other", "", &err));
    cr_assert_eq(err.code, ERR_IO);
}
