/* The offline generator and the list of questions: coverage, determinism, no duplicates, nothing about templates. */
#include "base/buf.h"
#include "qgen/offline.h"
#include "qgen/question_list.h"
#include "qgen/segments.h"

#include <criterion/criterion.h>
#include <string.h>

Test(qgen, a_list_takes_each_question_once)
{
    struct question_list list = { 0 };
    struct err err;
    static const struct {
        const char *text;
        bool added;
    } row[] = {
        { "  What is\n  it? ", true },
        { "what is it", false },
        { "What, is it?!", false },
        { "", false },
        { " \n ", false },
        { "?!.", false },
        { "ab", false },
        { "What was it?", true },
        { "\xe6\x98\xaf\xe4\xbb\x80\xe4\xb9\x88", true },
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        int before = list.n;
        cr_assert_eq(question_list_add(&list, row[i].text, strlen(row[i].text), 9 - i, &err), 0);
        cr_assert_eq(list.n - before, row[i].added, "%s", row[i].text);
    }
    question_list_sort(&list);
    cr_assert_str_eq(list.at[2].text, "What is it?");
    question_list_release(&list);
}

static void expect_segments(const char *text, int n, const char *const *want)
{
    struct segments s;
    struct err err;

    cr_assert_eq(segments_cut(&s, text, strlen(text), &err), 0);
    for (int i = 0; i < n && i < s.n; i++)
        cr_assert(s.at[i].n == strlen(want[i]) && memcmp(text + s.at[i].at, want[i], s.at[i].n) == 0,
                  "segment %d is '%.*s', not '%s'", i, (int)s.at[i].n, text + s.at[i].at, want[i]);
    cr_assert_eq(s.n, n, "%d segments, not %d", s.n, n);
    segments_release(&s);
}

Test(qgen, prose_is_cut_into_sentences)
{
    static const char *const want[] = { "Dr. Who met J. Smith, i.e. the other one, at 3.15 p.m. in town.", "He left!",
                                        "\"Why?\"", "Nobody knows" };
    expect_segments("Dr. Who met J. Smith, i.e. the other one, at 3.15 p.m. in town. He left! \"Why?\" Nobody knows", 4,
                    want);
}

Test(qgen, wrapped_lines_are_joined_and_short_ones_are_not)
{
    static const char *const want[] = {
        "This sentence was wrapped by hand at a width of\nabout fifty columns as licences are.",
        "Anna: hello there",
        "Ben: hi Anna, how are you",
        "int main(void)",
        "{",
        "return 0;",
        "}"
    };
    expect_segments("This sentence was wrapped by hand at a width of\nabout fifty columns as licences are.\n"
                    "Anna: hello there\nBen: hi Anna, how are you\nint main(void)\n{\n    return 0;\n}\n",
                    7, want);
}

Test(qgen, scripts_without_blanks_are_cut_at_their_own_stops)
{
    static const char *const want[] = { "\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002",
                                        "\u6211\u4eec\u8d70\u5427\uff01" };
    expect_segments("\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002\u6211\u4eec\u8d70\u5427\uff01", 2, want);
}

Test(qgen, what_has_no_stop_is_cut_between_characters)
{
    struct buf text = { 0 };
    struct segments s;
    struct err err;
    size_t next = 0;

    for (int i = 0; i < 1000; i++)
        buf_adds(&text, "\u0e01");
    cr_assert_eq(segments_cut(&s, text.at, text.n, &err), 0);
    for (int i = 0; i < s.n; i++) {
        cr_assert(s.at[i].at == next && s.at[i].n <= MAX_SEGMENT && s.at[i].n % 3 == 0);
        next += s.at[i].n;
    }
    cr_assert_eq(next, text.n);
    segments_release(&s);
    buf_release(&text);
}

static void story(struct buf *text, int sentences)
{
    static const char *const who[] = { "Alice", "Robert", "Carol", "David", "Erika", "Frank", "Grace" };
    static const char *const what[] = { "sold", "bought", "painted", "repaired", "inherited" };
    static const char *const which[] = { "the old boat", "a green lamp", "seven chairs", "the mill" };

    for (int i = 0; i < sentences; i++)
        buf_printf(text, "In the year %d the merchant called %s %s %s near house number %d. ", 1500 + i, who[i % 7],
                   what[i % 5], which[i % 4], i * 3);
}

static void ask(struct question_list *list, const char *text, int n, uint64_t seed)
{
    struct rng rng = rng_new(seed);
    struct err err;

    cr_assert_eq(offline_ask(list, text, n, &rng, &err), 0, "%s", err.msg);
}

Test(qgen, every_part_of_a_text_gives_one_question)
{
    enum { N = 20 };
    struct question_list list = { 0 };
    struct buf text = { 0 };

    story(&text, 200);
    ask(&list, text.at, N, 1);
    cr_assert_eq(list.n, N);
    for (int i = 0; i < N; i++)
        cr_assert(list.at[i].position * N / text.n == (size_t)i, "question %d comes from byte %zu", i,
                  list.at[i].position);
    question_list_release(&list);
    buf_release(&text);
}

Test(qgen, the_same_seed_gives_the_same_questions)
{
    struct question_list a = { 0 }, b = { 0 }, c = { 0 };
    struct buf text = { 0 };
    int same = 0;

    story(&text, 100);
    ask(&a, text.at, 10, 7);
    ask(&b, text.at, 10, 7);
    ask(&c, text.at, 10, 8);
    for (int i = 0; i < 10; i++) {
        cr_assert_str_eq(a.at[i].text, b.at[i].text);
        same += strcmp(a.at[i].text, c.at[i].text) == 0;
    }
    cr_assert_lt(same, 5);
    question_list_release(&a);
    question_list_release(&b);
    question_list_release(&c);
    buf_release(&text);
}

/* The words that a question quotes occur in the text exactly once. */
Test(qgen, quotations_are_unique)
{
    struct question_list list = { 0 };
    struct buf text = { 0 };

    story(&text, 60);
    ask(&list, text.at, 60, 3);
    cr_assert_gt(list.n, 50);
    for (int i = 0; i < list.n; i++) {
        const char *open = strchr(list.at[i].text, '"'), *close = strrchr(list.at[i].text, '"');
        size_t n = (size_t)(close - open - 1);
        const char *at = memmem(text.at, text.n, open + 1, n);
        cr_assert(at && !memmem(at + 1, text.n - (size_t)(at + 1 - text.at), open + 1, n), "%s", list.at[i].text);
    }
    question_list_release(&list);
    buf_release(&text);
}

Test(qgen, short_texts_give_what_there_is)
{
    struct question_list list = { 0 };

    ask(&list, "Yes.", 8, 1);
    cr_assert_eq(list.n, 0);
    ask(&list, "The quick brown fox jumps over the lazy dog every single morning.", 8, 1);
    cr_assert_eq(list.n, 1);
    question_list_release(&list);
}

Test(qgen, text_that_repeats_itself_is_not_asked_about)
{
    struct question_list list = { 0 };
    struct buf text = { 0 };

    for (int i = 0; i < 50; i++)
        buf_adds(&text, "The same sentence stands here again and again and never ends.\n");
    ask(&list, text.at, 8, 1);
    cr_assert_eq(list.n, 0);
    question_list_release(&list);
    buf_release(&text);
}

Test(qgen, template_words_are_not_asked_about)
{
    struct question_list list = { 0 };
    struct buf text = { 0 };

    buf_adds(&text, "You are given a scientific article and a question. Answer the question as concisely as you can, "
                    "using a single phrase if possible. Do not provide any explanation.\n\nArticle: ");
    for (int i = 0; i < 40; i++)
        buf_printf(&text,
                   "Question: who found the comet number %d beyond the planet Neptune ?\nAnswer: a man of %d\n\n", i,
                   20 + i);
    ask(&list, text.at, 30, 5);
    cr_assert_gt(list.n, 20);
    for (int i = 0; i < list.n; i++) {
        const char *quote = strchr(list.at[i].text, '"');
        cr_assert(!strstr(quote, "Question:") && !strstr(quote, "Answer:") && !strstr(quote, "Article:") &&
                      !strstr(quote, "concisely") && !strstr(quote, "given a"),
                  "%s", list.at[i].text);
    }
    question_list_release(&list);
    buf_release(&text);
}

Test(qgen, scripts_without_blanks_and_code_give_questions)
{
    struct question_list list = { 0 };
    struct buf text = { 0 };

    for (int i = 0; i < 64; i++)
        buf_printf(&text,
                   "\u5f20\u4e09\u5728\u7b2c%d\u5929\u4ece\u5317\u4eac\u51fa\u53d1\u53bb\u4e86\u8fdc\u65b9\u7684"
                   "\u57ce\u5e02\u770b\u671b\u4ed6\u7684\u8001\u670b\u53cb\u548c\u5bb6\u4eba\u3002",
                   i * i);
    ask(&list, text.at, 8, 1);
    cr_assert_eq(list.n, 8);
    question_list_release(&list);
    buf_clear(&text);
    for (int i = 0; i < 64; i++)
        buf_printf(&text, "int f%d(int x)\n{\n    return x * %d;\n}\n\n", i, i + 7);
    ask(&list, text.at, 8, 1);
    cr_assert_eq(list.n, 8);
    question_list_release(&list);
    buf_release(&text);
}

Test(qgen, numbers_of_items_are_not_quoted)
{
    static const char *const item[] = { "(a) ", "12. ", "iv) " };
    struct question_list list = { 0 };
    struct buf text = { 0 };

    for (int i = 0; i < 30; i++)
        buf_printf(&text, "%sMerchant %c%c must deliver every barrel of the %d he owes.\n\n", item[i % 3], 'A' + i % 26,
                   'a' + i % 7, i + 100);
    ask(&list, text.at, 20, 2);
    cr_assert_gt(list.n, 15);
    for (int i = 0; i < list.n; i++)
        for (int k = 0; k < 3; k++)
            cr_assert(!strstr(list.at[i].text, item[k]), "%s", list.at[i].text);
    question_list_release(&list);
    buf_release(&text);
}
