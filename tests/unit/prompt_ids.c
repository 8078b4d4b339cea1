/* Prompts: what is certain of a text comes out the same whatever follows it, context and question are the ids of the
 * whole, and no more is held back than the rules of the tokenizer ask for. Vocabularies are learnt from random texts.
 */
#include "base/rng.h"
#include "base/utf8.h"
#include "engine/tokens/nfc.h"
#include "engine/tokens/tokenizer_internal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- random texts ------------------------------------------------------------ */

/* What texts are made of: letters, white space, digits, apostrophes, pieces of added tokens, and other scripts. */
static const char *const atoms[] = {
    "a", "e", "t", "s", "ll", "re", "the", "in", "E", "I", " ", " ", " ", "  ", "\n", "\r\n", "\t", "1", "2", "42",
    "2024", "'", "'s", "'re", "\"", ".", ",", "...", "!", "-", "<", "=", "<x", "<x>", ">", "<s>", "<e>", "\xc3\xa9",
    /* U+0301 and U+0323 change places; U+0338 joins with < = >; U+0344 becomes two marks; U+00EA */
    "\xcc\x81", "\xcc\xa3", "\xcc\xb8", "\xcc\x88", "\xcd\x84", "\xc3\xaa",
    /* jamo U+1100 U+1161 U+11A8, and U+AC00, which is the first two */
    "\xe1\x84\x80", "\xe1\x85\xa1", "\xe1\x86\xa8", "\xea\xb0\x80",
    /* U+0958 is never composed; U+09C7 and U+09BE join, and neither is a mark; U+304B and U+3099 join */
    "\xe0\xa5\x98", "\xe0\xa7\x87", "\xe0\xa6\xbe", "\xe3\x81\x8b", "\xe3\x82\x99",
    /* Chinese and its full stop; emoji, with U+200D; U+FE0F */
    "\xe4\xb8\xad\xe6\x96\x87", "\xe3\x80\x82", "\xf0\x9f\x98\x80", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb",
    "\xef\xb8\x8f",
    /* white space: U+00A0 U+2003 U+3000, but not U+180E; Arabic and its digit three; U+FFFD; Cyrillic */
    "\xc2\xa0", "\xe2\x80\x83", "\xe3\x80\x80", "\xe1\xa0\x8e", "\xd8\xa7", "\xd9\xa3", "\xef\xbf\xbd", "\xd1\x82"
};

static void random_text(struct rng *rng, struct buf *out, int n_atoms)
{
    for (int i = 0; i < n_atoms;) {
        const char *atom = atoms[rng_below(rng, sizeof(atoms) / sizeof(*atoms))];
        int times = rng_below(rng, 12) == 0 ? 1 + (int)rng_below(rng, 20) : 1;
        for (; times > 0 && i < n_atoms; times--, i++)
            buf_adds(out, atom);
    }
}

/* ---- kinds of tokenizer -------------------------------------------------------- */

enum { VOCAB = 900, MERGES = 500, SPECIAL_FIRST = 890, PLAIN_FIRST = 880 };

struct kind {
    const char *name;
    const char *pattern[4];
    bool nfc, whole_word_first;
    const char *plain[5]; // added tokens
    unsigned space;       // of these
    enum bpe_kind bpe;
    enum prefix prefix;
};

static const struct kind kinds[] = {
    { "smollm", { SPLIT_DIGITS, SPLIT_GPT2 }, false, false, { NULL }, 0, BPE_ALPHABET, PREFIX_NONE },
    { "gpt-2", { SPLIT_GPT2 }, false, false, { "<x>", "<x><x>" }, 0, BPE_ALPHABET, PREFIX_NONE },
    { "llama3", { SPLIT_LLAMA3 }, false, true, { NULL }, 0, BPE_ALPHABET, PREFIX_NONE },
    { "qwen2", { SPLIT_QWEN2 }, true, false, { "<x>", "\xc3\xa9\xcc\xa3", "=\xcc\xb8" }, 0, BPE_ALPHABET, PREFIX_NONE },
    { "Digits", { "\\p{N}+", SPLIT_GPT2 }, true, false, { "  ", "    ", "        " }, 0, BPE_ALPHABET, PREFIX_NONE },
    { "three",
      { "\\p{N}{1,3}", "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x83\xbf]+", SPLIT_LLAMA3 },
      false,
      false,
      { "\n\n", "the" },
      0,
      BPE_ALPHABET,
      PREFIX_NONE },
    { "looks back",
      { "(?<=the|\\s)e+|^\\s|\\bt\\B|\\Ain|a$|(?<!a)s(?=.)|\\s+\\z", SPLIT_QWEN2 },
      true,
      false,
      { "tt" },
      0,
      BPE_ALPHABET,
      PREFIX_NONE },
    { "gaps", { "\\p{N}", "the|\\s\\s(?!\\S)" }, true, false, { NULL }, 0, BPE_ALPHABET, PREFIX_NONE },
    { "no pattern", { NULL }, true, false, { "<x>" }, 0, BPE_ALPHABET, PREFIX_NONE },
    { "taken space",
      { SPLIT_LLAMA3 },
      false,
      false,
      { "<x>", "!" },
      ADDED_TAKES_BEFORE | ADDED_TAKES_AFTER,
      BPE_ALPHABET,
      PREFIX_NONE },
    { "SentencePiece", { NULL }, false, false, { "<x>", "  " }, 0, BPE_CHARS, PREFIX_AFTER_SPECIAL },
    { "Prepend", { NULL }, false, false, { "<x>", "the" }, ADDED_WANTS_BLANK, BPE_CHARS, PREFIX_SECTION },
    { "Metaspace", { " ?[^ ]*" }, false, false, { "<x>" }, ADDED_TAKES_AFTER, BPE_CHARS, PREFIX_TEXT },
};

/* The text of a token, in GPT-2's alphabet or SentencePiece's. */
static void name_token(const struct bpe *b, struct text_view bytes, struct buf *out)
{
    char text[4];

    for (size_t i = 0; i < bytes.n; i++)
        if (b->kind == BPE_ALPHABET)
            buf_add(out, text, (size_t)utf8_encode(b->point[(unsigned char)bytes.at[i]], text));
        else if (bytes.at[i] == ' ')
            buf_adds(out, TEXT_BLANK);
        else
            buf_addc(out, bytes.at[i]);
}

/* Makes a token of two that are neighbours in a random text. Returns how many tokens that makes: 0 or 1. */
static int learn_merge(struct bpe *b, int32_t id, struct rng *rng)
{
    struct buf text = { 0 }, left = { 0 }, right = { 0 }, both = { 0 };
    struct tokens ids = { 0 };
    struct bpe_work work = { 0 };
    struct err err;
    int made = 0;

    random_text(rng, &text, 8);
    if (b->kind == BPE_CHARS && rng_below(rng, 2))
        buf_adds(&text, " the e");
    cr_assert_eq(bpe_encode(b, &work, (struct text_view){ text.at, text.n }, &ids, &err), 0);
    int at = ids.n > 1 ? (int)rng_below(rng, (uint64_t)ids.n - 1) : 0;
    if (ids.n > 1 && (b->kind == BPE_ALPHABET || (ids.at[at] >= 256 && ids.at[at + 1] >= 256))) {
        name_token(b, bpe_bytes(b, ids.at[at]), &left);
        name_token(b, bpe_bytes(b, ids.at[at + 1]), &right);
        buf_printf(&both, "%s%s", left.at, right.at);
        if (bpe_find(b, text_view_of(both.at)) < 0) {
            cr_assert_eq(bpe_set_token(b, id, text_view_of(both.at), &err), 0, "%s", err.msg);
            made = 1;
        }
        cr_assert_eq(bpe_add_merge(b, text_view_of(left.at), text_view_of(right.at), &err), 0, "%s", err.msg);
    }
    bpe_work_release(&work);
    tokens_release(&ids);
    buf_release(&text);
    buf_release(&left);
    buf_release(&right);
    buf_release(&both);
    return made;
}

/* The characters that are tokens of a vocabulary of SentencePiece's kind. The others are tokens of their bytes. */
static const char *const characters[] = { "a", "e",  "t", "h", "s", "i", "n",  "l", "r", "E",        TEXT_BLANK,    "1",
                                          "2", "\n", "<", ">", "x", "=", "\'", ".", ",", "\xc3\xa9", "\xe4\xb8\xad" };

static void add_token(struct tokenizer *t, int32_t id, const char *text, enum added_kind kind)
{
    struct err err;

    cr_assert_eq(bpe_set_token(&t->bpe, id, text_view_of(text), &err), 0, "%s", err.msg);
    cr_assert_eq(tokenizer_add_token(t, text_view_of(text), id, kind, &err), 0, "%s", err.msg);
}

static void make(struct tokenizer *t, const struct kind *kind, struct rng *rng)
{
    struct err err;
    struct buf name = { 0 };

    *t = (struct tokenizer){ 0 };
    cr_assert_eq(tokenizer_alloc(t, kind->bpe, VOCAB, &err), 0);
    t->bpe.whole_word_first = kind->whole_word_first;
    t->blanks = kind->bpe == BPE_CHARS;
    t->prefix = kind->prefix;
    t->prefix_unless_blank = kind->prefix == PREFIX_TEXT;
    t->blanks_first = kind->prefix == PREFIX_AFTER_SPECIAL;
    t->strip_blank = kind->prefix != PREFIX_NONE;
    if (kind->nfc)
        cr_assert_not_null(t->nfc = nfc_new(&err));
    for (int i = 0; i < 4 && kind->pattern[i]; i++)
        cr_assert_eq(splitter_add(&t->splitter, kind->pattern[i], &err), 0, "%s", err.msg);
    for (int byte = 0; byte < 256; byte++) {
        const char one = (char)byte;
        buf_clear(&name);
        if (kind->bpe == BPE_CHARS)
            buf_printf(&name, "<0x%02X>", (unsigned)byte);
        else
            name_token(&t->bpe, (struct text_view){ &one, 1 }, &name);
        cr_assert_eq(kind->bpe == BPE_CHARS
                         ? bpe_set_byte(&t->bpe, byte, text_view_of(name.at), (unsigned char)byte, &err)
                         : bpe_set_token(&t->bpe, byte, text_view_of(name.at), &err),
                     0);
    }
    int id = 256;
    for (size_t i = 0; kind->bpe == BPE_CHARS && i < sizeof(characters) / sizeof(*characters); i++)
        cr_assert_eq(bpe_set_token(&t->bpe, id++, text_view_of(characters[i]), &err), 0, "%s", err.msg);
    cr_assert_eq(bpe_finish(&t->bpe, &err), 0);
    for (int i = 0; i < MERGES; i++)
        id += learn_merge(&t->bpe, id, rng);
    cr_assert_eq(tokenizer_merged(t, &err), 0);
    add_token(t, SPECIAL_FIRST, "<s>", ADDED_SPECIAL);
    add_token(t, SPECIAL_FIRST + 1, "<e>", ADDED_SPECIAL);
    for (int i = 0; i < 5 && kind->plain[i]; i++) {
        add_token(t, PLAIN_FIRST + i, kind->plain[i], ADDED_PLAIN);
        tokenizer_take_space(t, kind->space);
    }
    buf_release(&name);
}

/* ---- the property ---------------------------------------------------------------- */

/* One string and its parts, as a server would put them together. */
struct sample {
    struct buf text, before, question, after, ask, data;
};

static void sample_release(struct sample *s)
{
    buf_release(&s->text);
    buf_release(&s->before);
    buf_release(&s->question);
    buf_release(&s->after);
    buf_release(&s->ask);
    buf_release(&s->data);
}

static void draw(struct sample *s, struct rng *rng)
{
    random_text(rng, &s->text, 1 + (int)rng_below(rng, 40));
    random_text(rng, &s->before, (int)rng_below(rng, 8));
    random_text(rng, &s->question, (int)rng_below(rng, 8));
    random_text(rng, &s->after, (int)rng_below(rng, 4));
    buf_printf(&s->ask, "%s{question}%s", buf_str(&s->before), buf_str(&s->after));
    buf_printf(&s->data, "%s%s%s%s", s->text.at, buf_str(&s->before), buf_str(&s->question), buf_str(&s->after));
}

/* The bytes at both ends that are white space, to Python. */
static struct text_view strip(struct text_view text)
{
    uint32_t point;
    size_t n = text.n;

    for (int length; text.n > 0 && (length = utf8_decode(text.at, text.n, &point)) > 0 && utf8_is_space(point);)
        text = (struct text_view){ text.at + length, text.n - (size_t)length };
    for (n = text.n; n > 0;) {
        size_t at = n - 1;
        while (((unsigned char)text.at[at] & 0xc0) == 0x80)
            at--;
        if (utf8_decode(text.at + at, n - at, &point) == 0 || !utf8_is_space(point))
            break;
        n = at;
    }
    return (struct text_view){ text.at, n };
}

/* The ids of head, data and tail in one go. The special tokens of the two halves stand at the seams, or there are no
 * halves, so that the data can be encoded as a text of its own. */
static void encode_whole(const struct tokenizer *t, const char *data, struct tokens *ids)
{
    struct err err;
    const struct text_view text = t->chat.trims ? strip(text_view_of(data)) : text_view_of(data);

    cr_assert_eq(tokenizer_encode(t, text_view_of(t->chat.head), SPECIAL_PARSED, ids, &err), 0);
    cr_assert_eq(tokenizer_encode(t, text, SPECIAL_AS_TEXT, ids, &err), 0, "%s", err.msg);
    cr_assert_eq(tokenizer_encode(t, text_view_of(t->chat.tail), SPECIAL_PARSED, ids, &err), 0);
}

static bool begins_with(const struct tokens *all, int from, const struct tokens *begin)
{
    return all->n - from >= begin->n &&
           (begin->n == 0 || memcmp(all->at + from, begin->at, (size_t)begin->n * sizeof(*all->at)) == 0);
}

static void check_sample(const struct tokenizer *t, const struct sample *s, const char *what)
{
    struct prompt_ids context, asked;
    struct tokens whole = { 0 }, ids = { 0 };
    struct err err;

    cr_assert_eq(tokenizer_context(t, s->text.at, &context, &err), 0, "%s", err.msg);
    cr_assert_eq(tokenizer_ask(&context, s->ask.at, &asked, &err), 0, "%s", err.msg);
    cr_assert_eq(tokenizer_question(&asked, buf_str(&s->question), &ids, &err), 0, "%s", err.msg);
    encode_whole(t, s->data.at, &whole);
    cr_assert(begins_with(&whole, 0, &context.ids), "%s: context of '%s' in '%s'", what, s->text.at, s->data.at);
    cr_assert(begins_with(&whole, context.ids.n, &ids) && whole.n == context.ids.n + ids.n, "%s: '%s' in '%s'", what,
              s->text.at, s->data.at);
    cr_assert(begins_with(&ids, 0, &asked.ids), "%s: ask '%s' of '%s'", what, s->ask.at, s->text.at);
    tokens_release(&whole);
    tokens_release(&ids);
    prompt_ids_release(&asked);
    prompt_ids_release(&context);
}

/* Texts of a few dozen characters, each with several asks and questions; every fourth time without halves. */
static void check_kind(const struct kind *kind, uint64_t seed, int n_samples)
{
    struct rng rng = rng_named(seed, kind->name);
    struct tokenizer t;
    static char head[] = "<s>", tail[] = "<e>\n", none[] = "";

    make(&t, kind, &rng);
    for (int i = 0; i < n_samples; i++) {
        struct sample s = { 0 };
        t.chat.head = i % 4 && kind->prefix != PREFIX_TEXT ? head : none; // no blank after the head there
        t.chat.tail = i % 4 ? tail : none;
        t.chat.trims = i % 3 == 0;
        draw(&s, &rng);
        for (int again = 0; again < 4; again++) {
            check_sample(&t, &s, kind->name);
            struct sample next = { .text = s.text };
            s.text = (struct buf){ 0 };
            sample_release(&s);
            s = next;
            random_text(&rng, &s.before, (int)rng_below(&rng, 8));
            random_text(&rng, &s.question, (int)rng_below(&rng, 8));
            buf_printf(&s.ask, "%s{question}", buf_str(&s.before));
            buf_printf(&s.data, "%s%s%s", s.text.at, buf_str(&s.before), buf_str(&s.question));
        }
        sample_release(&s);
    }
    t.chat.head = t.chat.tail = NULL;
    tokenizer_release(&t);
}

Test(prompt_ids, context_and_question_are_the_ids_of_the_whole)
{
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        for (uint64_t seed = 1; seed <= 3; seed++)
            check_kind(&kinds[k], seed, 400);
}

/* ---- as much as there is ------------------------------------------------------------ */

/* The number of bytes of the text whose ids are not certain. */
static size_t held_back(const struct tokenizer *t, const char *text)
{
    struct prompt_ids context;
    struct buf back = { 0 };
    struct err err;

    cr_assert_eq(tokenizer_context(t, text, &context, &err), 0, "%s", err.msg);
    cr_assert_eq(tokenizer_decode(t, context.ids.at, context.ids.n, &back, &err), 0);
    cr_assert_eq(memcmp(buf_str(&back), text, back.n), 0);
    size_t n = strlen(text) - back.n;
    buf_release(&back);
    prompt_ids_release(&context);
    return n;
}

/* Texts of one long piece: nearly all of it is certain, and comes out the same whatever follows. */
static void check_long(const struct kind *kind, struct rng *rng)
{
    static const char *const parts[] = { "a", "e", "t", "the", "in", "\xe4\xb8\xad", "\xc3\xa9" };
    struct tokenizer t;
    struct buf text = { 0 };
    struct prompt_ids context;
    struct tokens whole = { 0 };
    struct err err;
    static char none[] = "";

    make(&t, kind, rng);
    t.chat.head = t.chat.tail = none;
    for (int i = 0; i < 3000; i++)
        buf_adds(&text, parts[rng_below(rng, i < 1500 ? 7 : 2)]);
    cr_assert_eq(tokenizer_context(&t, text.at, &context, &err), 0, "%s", err.msg);
    cr_assert_eq(tokenizer_encode(&t, text_view_of(text.at), SPECIAL_AS_TEXT, &whole, &err), 0);
    cr_assert(whole.n - context.ids.n < 32, "%s: %d of %d ids", kind->name, context.ids.n, whole.n);
    for (int again = 0; again < 20; again++) {
        struct buf more = { 0 };
        buf_adds(&more, text.at);
        random_text(rng, &more, 1 + (int)rng_below(rng, 8));
        tokens_release(&whole);
        cr_assert_eq(tokenizer_encode(&t, text_view_of(more.at), SPECIAL_AS_TEXT, &whole, &err), 0);
        cr_assert(begins_with(&whole, 0, &context.ids), "%s: '%s'", kind->name, more.at + text.n - 16);
        buf_release(&more);
    }
    tokens_release(&whole);
    prompt_ids_release(&context);
    buf_release(&text);
    t.chat.head = t.chat.tail = NULL;
    tokenizer_release(&t);
}

Test(prompt_ids, long_pieces_are_certain_but_for_their_ends)
{
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        for (uint64_t seed = 1; seed <= 5 && !kinds[k].pattern[0]; seed++) {
            struct rng rng = rng_named(seed, kinds[k].name);
            check_long(&kinds[k], &rng);
        }
}

/* What each kind holds back of a text, in bytes: the last piece that could be longer, and no more. */
Test(prompt_ids, hold_back_no_more_than_the_last_piece)
{
    static const struct {
        const char *kind, *text;
        size_t bytes;
    } cases[] = {
        { "smollm", "in the year 2024", 0 }, // single digits are whole
        { "smollm", "in the year", 5 },      // " year" and more letters
        { "smollm", "the year. ", 1 },       // a blank joins with a word
        { "smollm", "the year.", 1 },        // "." and "..."
        { "smollm", "It's", 0 },             // "'s" is whole: the first alternative takes it
        { "smollm", "It'", 1 },
        { "smollm", "the\n\n", 2 },
        { "smollm", "the\xc3\xa9", 5 },
        { "gpt-2", "in the year 2024", 5 },
        { "gpt-2", "a b <", 2 },    // may become "<x>"
        { "gpt-2", "a b <x>", 3 },  // or "<x><x>"
        { "llama3", "in 2024", 1 }, // "202", then up to three digits
        { "llama3", "in 202", 0 },
        { "llama3", "the year.\n", 2 }, // ".\n" takes further line ends
        { "llama3", "the year.", 1 },
        { "qwen2", "in 2024", 0 },
        { "qwen2", "in 202<", 1 }, // joins with U+0338, and may become "<x>"
        { "qwen2", "the year.", 1 },
        { "qwen2", "the year e", 2 }, // " e", and e joins with marks
        { "qwen2", "the year \xe3\x81\x8b", 4 },
        { "Digits", "a    ", 4 },           // an added token of eight blanks
        { "Digits", "a        ", 0 },       // is there: nothing joins with it
        { "no pattern", "in the year", 2 }, // a token of this vocabulary could begin with the last two bytes
        { "no pattern", "a<x>", 0 },
        { "SentencePiece", "in the year", 1 },
        { "SentencePiece", "in the ", 5 }, // two blanks are an added token; what is before it ends openly
        { "Prepend", "in a<x>", 1 },       // without a blank before it <x> is text
        { "Metaspace", "in the year", 5 },
        { "taken space", "in the  ", 6 }, // the blanks may be those of <x>, and " the" goes on
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        size_t k = 0;
        struct tokenizer t;
        while (strcmp(kinds[k].name, cases[i].kind) != 0)
            k++;
        struct rng rng = rng_named(1, kinds[k].name);
        make(&t, &kinds[k], &rng);
        t.chat.head = strdup("");
        t.chat.tail = strdup("");
        cr_assert_eq(held_back(&t, cases[i].text), cases[i].bytes, "%s holds back %zu bytes of '%s'", kinds[k].name,
                     held_back(&t, cases[i].text), cases[i].text);
        tokenizer_release(&t);
    }
}

/* ---- normal forms -------------------------------------------------------------------- */

/* The normal form of a text is that of its certain part, then that of the rest with what follows. */
Test(prompt_ids, normal_forms_are_cut_where_nothing_joins)
{
    struct rng rng = rng_new(9);
    struct err err;
    struct nfc *nfc = nfc_new(&err);

    for (int i = 0; i < 20000; i++) {
        struct buf text = { 0 }, whole = { 0 }, parts = { 0 };
        random_text(&rng, &text, 1 + (int)rng_below(&rng, 8));
        size_t certain = nfc_certain(nfc, (struct text_view){ text.at, text.n });
        random_text(&rng, &text, (int)rng_below(&rng, 6));
        cr_assert_eq(nfc_add(&whole, (struct text_view){ text.at, text.n }, &err), 0);
        cr_assert_eq(nfc_add(&parts, (struct text_view){ text.at, certain }, &err), 0);
        cr_assert_eq(nfc_add(&parts, (struct text_view){ text.at + certain, text.n - certain }, &err), 0);
        cr_assert_str_eq(buf_str(&parts), buf_str(&whole), "'%s' cut after %zu", text.at, certain);
        buf_release(&text);
        buf_release(&whole);
        buf_release(&parts);
    }
    cr_assert_eq(nfc_certain(nfc, text_view_of("ab1")), 3);
    cr_assert_eq(nfc_certain(nfc, text_view_of("1")), 1);
    cr_assert_eq(nfc_certain(nfc, text_view_of("abc")), 2);
    cr_assert_eq(nfc_certain(nfc, text_view_of("ab\xcc\x81\xcc\xa3")), 1);
    cr_assert_eq(nfc_certain(nfc, text_view_of("\xcc\x81")), 0);
    cr_assert_eq(nfc_certain(nfc, text_view_of("")), 0);
    nfc_free(nfc);
}

/* ---- cut contexts and short ones ------------------------------------------------------- */

/* After a cut the questions are the ids of ask, question and tail alone. */
Test(prompt_ids, of_a_cut_context_are_encoded_apart)
{
    struct rng rng = rng_new(5);
    struct tokenizer t;
    struct prompt_ids context, asked;
    struct tokens ids = { 0 }, want = { 0 };
    struct err err;

    make(&t, &kinds[0], &rng);
    t.chat.head = strdup("<s>");
    t.chat.tail = strdup("<e>");
    cr_assert_eq(tokenizer_context(&t, "the end in the", &context, &err), 0);
    int n = context.ids.n - 1;
    prompt_ids_cut(&context, n);
    cr_assert_eq(context.ids.n, n);
    cr_assert_eq(tokenizer_ask(&context, "the {question}.", &asked, &err), 0);
    cr_assert_eq(tokenizer_question(&asked, "re<s>", &ids, &err), 0);
    cr_assert_eq(tokenizer_encode(&t, text_view_of("the re<s>."), SPECIAL_AS_TEXT, &want, &err), 0);
    cr_assert_eq(tokens_add(&want, SPECIAL_FIRST + 1, &err), 0);
    cr_assert(ids.n == want.n && begins_with(&ids, 0, &want));
    prompt_ids_release(&asked);
    prompt_ids_release(&context);
    t.chat.head[0] = '\0';
    cr_assert_eq(tokenizer_context(&t, "the", &context, &err), 0);
    cr_assert_eq(context.ids.n, 0);
    prompt_ids_release(&context);
    tokens_release(&ids);
    tokens_release(&want);
    tokenizer_release(&t);
}

/* ---- replies that are begun ---------------------------------------------------------------- */

/* They follow the template; without one, the question: with it they are one string. */
Test(prompt_ids, of_a_begun_reply_follow_the_template)
{
    struct rng rng = rng_new(6);
    struct tokenizer t;
    struct err err;
    static char head[] = "<s>", tail[] = "<e>\n", none[] = "";

    make(&t, &kinds[0], &rng);
    for (int templated = 0; templated < 2; templated++) {
        struct prompt_ids context, asked;
        struct tokens ids = { 0 }, want = { 0 };
        t.chat.head = templated ? head : none;
        t.chat.tail = templated ? tail : none;
        t.chat.trims = templated;
        cr_assert_eq(tokenizer_context(&t, "the end in the", &context, &err), 0);
        cr_assert_eq(tokenizer_ask(&context, " {question} . {reply} the <s>42", &asked, &err), 0);
        cr_assert_eq(tokenizer_question(&asked, "re<e>", &ids, &err), 0);
        if (templated) {
            encode_whole(&t, "the end in the re<e> .", &want);
            want.n--; // the line end of the tail begins a section that the reply continues
            cr_assert_eq(tokenizer_encode(&t, text_view_of("\n the <s>42"), SPECIAL_PARSED, &want, &err), 0);
        } else {
            cr_assert_eq(
                tokenizer_encode(&t, text_view_of("the end in the re<e> .  the "), SPECIAL_AS_TEXT, &want, &err), 0);
            cr_assert_eq(tokenizer_encode(&t, text_view_of("<s>42"), SPECIAL_PARSED, &want, &err), 0);
        }
        cr_assert(begins_with(&want, context.ids.n, &ids) && want.n == context.ids.n + ids.n);
        prompt_ids_release(&asked);
        prompt_ids_release(&context);
        tokens_release(&ids);
        tokens_release(&want);
    }
    t.chat.head = t.chat.tail = NULL;
    tokenizer_release(&t);
}
