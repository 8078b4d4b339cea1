/* WordPiece over a vocabulary of a dozen pieces; the real one is compared in tests/golden/tokenizer. */
#include "embed/wordpiece.h"

#include "base/buf.h"
#include "base/file.h"

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
    struct wordpiece_ids ids = { 0 };
    struct buf got = { 0 };
    struct err err;

    cr_assert_eq(wordpiece_encode(w, text, strlen(text), &ids, &err), 0);
    for (int i = 0; i < ids.n; i++)
        buf_printf(&got, i ? " %d" : "%d", ids.at[i]);
    cr_assert_str_eq(buf_str(&got), want, "'%s' is %s, not %s", text, buf_str(&got), want);
    wordpiece_ids_release(&ids);
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
           "11 10 11");             // ideographs stand alone
    expect(w, "[SEP]", "13 14 15"); // text, not a token
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

Test(wordpiece, words_over_100_characters_are_unknown)
{
    struct err err;
    struct wordpiece *w = open_with("vocab.txt", vocab, &err);
    char word[102] = { 0 };

    memset(word, 'e', 100);
    struct wordpiece_ids ids = { 0 };
    cr_assert_eq(wordpiece_encode(w, word, 100, &ids, &err), 0);
    cr_assert_eq(ids.n, 100);
    word[100] = 'e';
    ids.n = 0;
    cr_assert_eq(wordpiece_encode(w, word, 101, &ids, &err), 0);
    cr_assert(ids.n == 1 && ids.at[0] == 1);
    wordpiece_ids_release(&ids);
    wordpiece_close(w);
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

Test(wordpiece, refuses_broken_vocabularies)
{
    static const char *const bad[][3] = {
        { "vocab.txt", "[UNK]\n[CLS]\n", "has no [SEP]" },
        { "vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\na\n", "line 5: piece 'a' is there twice" },
        { "vocab.txt", "", "has no [UNK]" },
        { "tokenizer.json", "{\"model\":{\"type\":\"BPE\"}}", "no WordPiece model" },
        { "tokenizer.json", "{\"model\":", "malformed JSON" },
        { "tokenizer.json",
          "{\"model\":{\"type\":\"WordPiece\",\"continuing_subword_prefix\":\"##\",\"vocab\":{\"a\":-1}}}",
          "has no id" },
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
