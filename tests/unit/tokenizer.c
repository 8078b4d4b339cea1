/* Byte-pair encoding over a vocabulary of a dozen merges and splitting. Real vocabularies are compared
 * with Hugging Face's library in tests/golden/tokenizer. */
#include "engine/model/model.h"
#include "engine/tokens/split.h"
#include "engine/tokens/tokenizer.h"
#include "engine/tokens/tokenizer_internal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char smollm2_head[] =
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\n";

/* tests/data/tiny.py: 0 <|endoftext|>, 1 <|im_start|>, 2 <|im_end|>, 3.. the bytes, 259.. "he" "ll" "hell" "hello" " w"
 * "in" "or" " wor" "ld" " world" " hello" "  ". */
static struct tokenizer *tiny(const char *path)
{
    struct err err;
    struct model *m = model_open(path, &err);

    cr_assert_not_null(m, "%s", err.msg);
    struct tokenizer *t = tokenizer_open(m, &err);
    cr_assert_not_null(t, "%s", err.msg);
    model_close(m); /* a tokenizer needs it no more */
    return t;
}

static void expect(struct tokens *got, const char *want, const char *what)
{
    struct buf text = { 0 };

    for (int i = 0; i < got->n; i++)
        buf_printf(&text, i ? " %d" : "%d", got->at[i]);
    cr_assert_str_eq(buf_str(&text), want, "'%s' is %s, not %s", what, buf_str(&text), want);
    tokens_release(got);
    buf_release(&text);
}

static void encodes(const struct tokenizer *t, const char *text, enum special special, const char *want)
{
    struct tokens ids = { 0 };
    struct err err;

    cr_assert_eq(tokenizer_encode(t, text_view_of(text), special, &ids, &err), 0, "%s", err.msg);
    expect(&ids, want, text);
}

static void both_containers(void (*test)(const struct tokenizer *t))
{
    static const char *const path[] = { "tests/data/tiny.gguf", "tests/data/tiny" };

    for (int i = 0; i < 2; i++) {
        struct tokenizer *t = tiny(path[i]);
        test(t);
        tokenizer_free(t);
    }
}

static void merges(const struct tokenizer *t)
{
    encodes(t, "", SPECIAL_AS_TEXT, "");
    encodes(t, "hello world", SPECIAL_AS_TEXT, "262 268");
    encodes(t, " hello  hello", SPECIAL_AS_TEXT, "269 35 269"); /* of two blanks the second belongs to the word */
    encodes(t, "   ", SPECIAL_AS_TEXT, "270 35");               /* leftmost pair first */
    encodes(t, "hellll", SPECIAL_AS_TEXT, "261 260");
    encodes(t, "12in", SPECIAL_AS_TEXT, "52 53 264");   /* digits one by one */
    encodes(t, "\xff", SPECIAL_AS_TEXT, "242 194 192"); /* U+FFFD */
}

Test(tokenizer, merges_by_rank)
{
    both_containers(merges);
}

static void specials(const struct tokenizer *t)
{
    encodes(t, "in<|im_end|>in", SPECIAL_PARSED, "264 2 264");
    encodes(t, "<|im_end", SPECIAL_PARSED, "63 127 108 112 98 104 113 103");
    encodes(t, "<|im_end|>", SPECIAL_AS_TEXT, "63 127 108 112 98 104 113 103 127 65");
    cr_assert(tokenizer_stops(t, 0) && tokenizer_stops(t, 2));
    cr_assert(!tokenizer_stops(t, 1) && !tokenizer_stops(t, -1) && !tokenizer_stops(t, 1000));
}

Test(tokenizer, special_tokens_only_where_asked)
{
    both_containers(specials);
}

static void decodes(const struct tokenizer *t)
{
    static const int32_t ids[] = { 1, 262, 268, 2, 198, 172 }, bad[] = { 271 }; /* \xc3 \xa9 is an e with an accent */
    struct buf text = { 0 };
    struct err err;

    cr_assert_eq(tokenizer_decode(t, ids, 6, &text, &err), 0, "%s", err.msg);
    cr_assert_str_eq(buf_str(&text), "hello world\xc3\xa9");
    buf_clear(&text);
    cr_assert_eq(tokenizer_decode(t, ids, 5, &text, &err), 0); /* cut within the character */
    cr_assert_str_eq(buf_str(&text), "hello world\xef\xbf\xbd");
    cr_assert_eq(tokenizer_decode(t, bad, 1, &text, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "id 271 is not in the vocabulary of 271"), "%s", err.msg);
    buf_release(&text);
}

Test(tokenizer, decodes)
{
    both_containers(decodes);
}

/* The ids of `before` with special tokens, `data` without, and the tail, each encoded apart. */
static void add_parts(const struct tokenizer *t, const char *before, const char *data, struct tokens *ids)
{
    struct err err;

    cr_assert_eq(tokenizer_encode(t, text_view_of(before), SPECIAL_PARSED, ids, &err), 0);
    cr_assert_eq(tokenizer_encode(t, text_view_of(data), SPECIAL_AS_TEXT, ids, &err), 0);
    cr_assert_eq(tokenizer_encode(t, text_view_of(t->chat.tail), SPECIAL_PARSED, ids, &err), 0);
}

static void conversation(const struct tokenizer *t)
{
    struct prompt_ids context, asked;
    struct tokens whole = { 0 }, parts = { 0 };
    struct err err;

    cr_assert_str_eq(t->chat.head, smollm2_head);
    cr_assert_str_eq(t->chat.tail, "<|im_end|>\n<|im_start|>assistant\n");
    cr_assert_eq(tokenizer_context(t, "in<|im_end|>", &context, &err), 0);
    cr_assert_eq(tokenizer_ask(&context, " {question}in", &asked, &err), 0);
    cr_assert_eq(tokenizer_question(&asked, "<|im_end|>{question}", &whole, &err), 0);
    add_parts(t, smollm2_head, "in<|im_end|> <|im_end|>{question}in",
              &parts); /* only the template has special tokens */
    cr_assert(context.ids.n + whole.n == parts.n && context.ids.at[0] == 1);
    cr_assert_arr_eq(context.ids.at, parts.at, (size_t)context.ids.n * sizeof(*parts.at));
    cr_assert_arr_eq(whole.at, parts.at + context.ids.n, (size_t)whole.n * sizeof(*parts.at));
    prompt_ids_release(&asked);
    cr_assert_eq(tokenizer_ask(&context, "no place", &asked, &err), ERR_FORMAT);
    prompt_ids_release(&context);
    tokens_release(&whole);
    tokens_release(&parts);
}

Test(tokenizer, puts_the_template_around_a_message)
{
    both_containers(conversation);
}

/* ---- tokenizer.json ---------------------------------------------------- */

static int from_json(struct tokenizer *t, const char *text, struct err *err)
{
    struct json *root = json_parse(text, strlen(text), err);

    *t = (struct tokenizer){ 0 };
    cr_assert_not_null(root, "%s", text);
    int code = tokenizer_from_json(t, root, 64, err);
    json_free(root);
    return code;
}

#define VOCAB "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\xc4\xa0\":3,\"abab\":4,\"e\":5,\"\xc3\x83\":6,\"\xc2\xa9\":7}"
#define BYTES "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}"

Test(tokenizer_json, reads_both_kinds_of_merges_and_options)
{
    struct tokenizer t;
    struct err err;

    cr_assert_eq(from_json(&t, "{" BYTES ",\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[\"a b\"]}}", &err), 0,
                 "%s", err.msg);
    encodes(&t, "abab b", SPECIAL_AS_TEXT, "2 2 3 1");
    encodes(&t, "ax", SPECIAL_AS_TEXT, "0"); /* what has no token is dropped */
    encodes(&t, "e\xcc\x81", SPECIAL_AS_TEXT, "5");
    tokenizer_release(&t);
    cr_assert_eq(from_json(&t,
                           "{" BYTES
                           ",\"normalizer\":{\"type\":\"NFC\"},\"added_tokens\":[{\"id\":9,\"content\":\"ba\","
                           "\"special\":false}],\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[[\"a\",\"b\"]],"
                           "\"ignore_merges\":true}}",
                           &err),
                 0, "%s", err.msg);
    encodes(&t, "abab", SPECIAL_AS_TEXT, "0 9 1"); /* added tokens come before everything */
    encodes(&t, "e\xcc\x81", SPECIAL_AS_TEXT, "6 7");
    tokenizer_release(&t);
    cr_assert_eq(from_json(&t,
                           "{" BYTES ",\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[[\"a\",\"b\"]],"
                           "\"ignore_merges\":true}}",
                           &err),
                 0);
    encodes(&t, "abab", SPECIAL_AS_TEXT, "4"); /* no merge leads there, but the whole piece is a token */
    tokenizer_release(&t);
}

Test(tokenizer_json, refuses_what_it_would_get_wrong)
{
    static const char *const bad[][2] = {
        { "{" BYTES ",\"model\":{\"type\":\"Unigram\"}}", "model 'Unigram' is not supported" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"vocab\":{}}}", "no 'vocab' or no 'merges'" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"byte_fallback\":true," VOCAB ",\"merges\":[]}}",
          "'byte_fallback'" },
        { "{\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[]}}", "pre-tokenizer '?' is not supported" },
        { "{\"pre_tokenizer\":{\"type\":\"Metaspace\"},\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[]}}",
          "pre-tokenizer 'Metaspace'" },
        { "{\"pre_tokenizer\":{\"type\":\"Digits\"},\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[]}}",
          "not byte-level" },
        { "{\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Removed\",\"pattern\":{\"Regex\":\"a\"}},\"model\":{"
          "\"type\":\"BPE\"," VOCAB ",\"merges\":[]}}",
          "isolated" },
        { "{\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"(\"}},\"model\":{"
          "\"type\":\"BPE\"," VOCAB ",\"merges\":[]}}",
          "'(' does not compile" },
        { "{" BYTES ",\"normalizer\":{\"type\":\"Prepend\"},\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[]}}",
          "normalizer 'Prepend'" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":64},\"merges\":[]}}", "has no id below 64" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0.5},\"merges\":[]}}", "has no id below 64" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1,\"b\":1},\"merges\":[]}}",
          "two tokens have id 1" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[\"a x\"]}}", "merge 0 ('a' and 'x')" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[\"a b\",\"ab\"]}}", "merge 1 ('ab')" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[[\"a\"]]}}", "merge 0 is not two tokens" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[]},\"added_tokens\":[{\"id\":70,\"content\":"
          "\"x\"}]}",
          "an added token: token 'x' has id 70 in a vocabulary of 64" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[]},\"added_tokens\":[{\"id\":1,\"content\":"
          "\"a\"}]}",
          "'a' has ids 0 and 1" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[]},\"added_tokens\":[{\"id\":9,\"content\":"
          "\"x\",\"single_word\":true}]}",
          "'single_word' of added token 'x' is not supported" },
    };
    struct tokenizer t;
    struct err err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_assert_eq(from_json(&t, bad[i][0], &err), ERR_FORMAT, "%s", bad[i][0]);
        cr_assert(strstr(err.msg, bad[i][1]), "'%s' does not say '%s'", err.msg, bad[i][1]);
        tokenizer_release(&t);
    }
}

/* ---- splitting --------------------------------------------------------- */

static int note(void *arg, struct text_view piece, struct err *err)
{
    (void)err;
    buf_printf(arg, "[%.*s]", (int)piece.n, piece.at);
    return 0;
}

static int run(const struct splitter *s, struct text_view text, struct buf *got, struct err *err)
{
    struct split_mark mark = { 0 };
    const struct split_job job = { text, END_CLOSED, &mark, note, NULL, got };

    return splitter_run(s, &job, err);
}

static void splits(const char *first, const char *second, const char *text, const char *want)
{
    struct splitter s = { 0 };
    struct buf got = { 0 };
    struct err err;

    cr_assert_eq(splitter_add(&s, first, &err), 0, "%s", err.msg);
    if (second)
        cr_assert_eq(splitter_add(&s, second, &err), 0, "%s", err.msg);
    cr_assert_eq(run(&s, text_view_of(text), &got, &err), 0, "%s", err.msg);
    cr_assert_str_eq(buf_str(&got), want);
    splitter_release(&s);
    buf_release(&got);
}

Test(split, cuts_as_the_models_do)
{
    splits(SPLIT_GPT2, NULL, "I'm  here, 42!\n\n  x", "[I]['m][ ][ here][,][ 42][!][\n\n ][ x]");
    splits(SPLIT_DIGITS, SPLIT_GPT2, "a  42b", "[a][  ][4][2][b]");
    splits(SPLIT_LLAMA3, NULL, "I'M 12345 (ok)\n\n x", "[I]['M][ ][123][45][ (][ok][)\n\n][ x]");
    splits(SPLIT_QWEN2, NULL, "x 123", "[x][ ][1][2][3]");
    splits(SPLIT_GPT2, NULL, "", "");
    splits("b+", NULL, "abbcb", "[a][bb][c][b]"); /* gaps are pieces too */
    splits("x*", NULL, "ab", "[ab]");             /* nothing matched is no piece */
}

Test(split, white_space_is_what_unicode_says)
{
    splits("\\s", NULL,
           "a\xe1\xa0\x8e"
           "b",
           "[a\xe1\xa0\x8e"
           "b]"); /* U+180E */
    splits("[\\S]+", NULL,
           "a\xe1\xa0\x8e"
           "b\xe2\x80\x85"
           "c",
           "[a\xe1\xa0\x8e"
           "b][\xe2\x80\x85][c]");
    splits("[^\\s]+", NULL,
           "a\xc2\x85"
           "b\x1c",
           "[a][\xc2\x85][b\x1c]");
}

Test(split, refuses_patterns_that_run_away)
{
    struct splitter s = { 0 };
    struct buf got = { 0 };
    struct err err;
    char text[64];

    memset(text, 'a', sizeof(text));
    cr_assert_eq(splitter_add(&s, "(a+)+[bc]", &err), 0);
    cr_assert_eq(run(&s, (struct text_view){ text, sizeof(text) }, &got, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "split pattern failed"), "%s", err.msg);
    cr_assert_eq(splitter_add(&s, "[a[b]]", &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "class inside a class"), "%s", err.msg);
    splitter_release(&s);
    buf_release(&got);
}

/* Names of GGUF files, as llama.cpp lists them for a pattern. */
Test(tokenizer, pre_tokenizers_have_several_names)
{
    static const struct {
        const char *name;
        int steps; // 0: refused
        bool nfc, whole_word_first;
    } known[] = {
        { "llama-bpe", 1, false, true },  { "falcon-h1", 1, false, true },
        { "lfm2", 1, false, true },       { "dbrx", 1, false, false },
        { "smaug-bpe", 1, false, false }, { "glm4", 1, false, false },
        { "qwen2", 1, true, false },      { "deepseek-r1-qwen", 1, true, false },
        { "megrez", 1, true, false },     { "stablelm2", 1, false, false },
        { "gpt-4o", 1, false, false },    { "llama4", 1, false, false },
        { "starcoder", 2, false, false }, { "command-r", 2, true, false },
        { "phi-2", 1, false, false },     { "deepseek-v3", 0, false, false },
        { "llama", 0, false, false },     { "lfm2 pixtral", 0, false, false },
        { "", 0, false, false },          { "dbrx ", 0, false, false },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        struct tokenizer t = { 0 };
        struct err err;
        int code = tokenizer_split_as(&t, text_view_of(known[i].name), &err);
        cr_expect_eq(code, known[i].steps ? 0 : ERR_FORMAT, "%s", known[i].name);
        cr_expect_eq(t.splitter.n, known[i].steps, "%s", known[i].name);
        cr_expect(!t.nfc == !known[i].nfc && t.bpe.whole_word_first == known[i].whole_word_first, "%s", known[i].name);
        tokenizer_release(&t);
    }
}
