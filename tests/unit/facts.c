/* The facts of answers, and which of them another answer keeps: pairs of sentences with what is expected. */
#include "profiler/score/exact.h"
#include "profiler/score/facts.h"
#include "profiler/score/metric.h"
#include "tests/unit/small_table.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* "12 | 3 February 2026 | Anna Schmidt", with "other: " before them in another language than English; + and - say
 * whether the answer has the fact. */
static void describe(char out[512], const struct facts *reference, const struct facts *answer, const char *text)
{
    int n = reference->language == FACTS_ENGLISH ? 0 : snprintf(out, 512, "other: ");

    out[n] = '\0';
    for (int i = 0; i < reference->found.n; i++) {
        const struct fact *f = &reference->found.at[i];
        if (!f->offered)
            n += snprintf(out + n, 512 - (size_t)n, "%s%.*s%s", n && out[n - 1] != ' ' ? " | " : "", (int)f->bytes,
                          text + f->at, facts_has(answer, reference, f) ? "+" : "-");
    }
}

static double compare(char facts[512], const char *reference, const char *answer, bool cut)
{
    struct facts of_reference, of_answer;
    struct err err;
    double share;

    cr_assert_eq(facts_read(&of_reference, &(struct facts_of){ reference, cut, FACTS_DETECT }, &err), 0);
    cr_assert_eq(facts_read(&of_answer, &(struct facts_of){ answer, cut, of_reference.language }, &err), 0);
    cr_assert_eq(facts_kept(&of_reference, &of_answer, &share, &err), 0);
    describe(facts, &of_reference, &of_answer, reference);
    facts_release(&of_reference);
    facts_release(&of_answer);
    return share;
}

static const struct pair {
    const char *reference, *answer, *facts;
    double share; // NAN: no facts
    bool cut;
} pairs[] = {
    /* what a cosine hardly sees */
    { "changed on 2026-02-", "changed to a new policy on 2022", "2026-02-", 0, true },
    { "The Apache License, 2018", "The Apache License, 2012", "Apache License+ | 2018-", 0.5, true },
    { "The talk was given by Anna Schmidt.", "The talk was given by the chair.", "Anna Schmidt-", 0, false },
    { "It is not allowed in Rome.", "It is allowed in Rome.", "not- | Rome+", 0.5, false },
    { "It is allowed in Rome.", "It is never allowed in Rome.", "Rome+", 0.5, false },
    { "Yes, it is.", "No, it isn't.", "Yes-", 0, false },
    { "Yes, it is.", "It is.", "Yes+", 1, false },
    { "No.", "Yes.", "No-", 0, false },

    /* numbers */
    { "It has twelve parts.", "12 parts", "twelve+", 1, false },
    { "1,250 of 3.50 and 007", "1250.0, 3.5, 7", "1,250+ | 3.50+ | 007+", 1, false },
    { "1,250", "1,251", "1,250-", 0, false },
    { "12,5 or 1.2.3 at 10:30", "12.5, 1.2.3, 10:31", "12,5+ | 1.2.3+ | 10:30-", 2.0 / 3, false },
    { "12 % or 13 percent or 14 per cent", "12, 13%, 14 %", "12- | 13 percent+ | 14 per cent+", 2.0 / 3, false },
    { "3 million, two hundred and twenty-one", "3,000,000 and 200 and 21", "3 million+ | two hundred+ | twenty-one+", 1,
      false },
    { "-5 and \xe2\x88\x92"
      "6",
      "5, -6", "5- | 6+", 0.5, false },
    { "the 3rd of 10GB", "third, 10 GB", "3rd+ | 10GB+", 1, false },
    { "one of the first", "some", "", NAN, false },
    { "1 part", "one part", "1+", 1, false },
    { "1. Open it.\n2) Push 3 times.", "Open it, push 3 times.", "3+", 0.5, false },
    { "1. Open it.\n2) Push 3 times.", "1) Open it\n2) and push 3 times", "3+", 1, false },
    { "12.", "13.", "12-", 0, false },
    { "2 and 2", "2", "2+ | 2+", 1, false },
    { "2 and 2 and 3", "3", "2- | 2- | 3+", 0.5, false },
    { "5 in all", "5 in 12", "5+", 1, false },

    /* dates: one fact each, of the parts that are said */
    { "on 3 February 2026", "on Feb 3rd, 2026", "3 February 2026+", 1, false },
    { "on 3 February 2026", "on 2026-02-03", "3 February 2026+", 1, false },
    { "on the 3rd of February, 2026", "on 3 February 2025", "3rd of February, 2026-", 0, false },
    { "in February 2026", "on 3 February 2026", "February 2026+", 1, false },
    { "on 3 February 2026", "in February 2026", "3 February 2026-", 0, false },
    { "on Sept 9", "on 9 September 2026", "Sept 9+", 1, false },
    { "in 2026", "on 3.2.2026", "2026+", 1, false },
    { "2026/02/03 and 2026-13-01", "3.2.2026, 2026", "2026/02/03+ | 2026+ | 13- | 01-", 0.5, false },
    { "They may march 3 times", "3", "3+", 1, false },
    { "In May the May Queen came.", "It was in May, the May Queen", "May+ | May Queen+", 1, false },

    /* names */
    { "The answer is John Smith.", "smith, john", "John Smith-", 0, false },
    { "The answer is John Smith.", "It was john smith", "John Smith+", 1, false },
    { "Rain falls on Mr. Miller's house.", "miller", "Miller's+", 1, false },
    { "John Smith said so. However, Mary left.", "John Smith. Mary.", "John Smith+ | Mary+", 1, false },
    { "Paris", "London", "Paris-", 0, false },
    { "NASA launched it with the U.S. Army and an H100.", "nasa, us army, H200", "NASA+ | U.S. Army+ | H100-", 2.0 / 3,
      false },
    { "He met Dr. J. K. Rowling", "J. K. Rowling", "J. K. Rowling+", 1, false },
    { "He met Anne-Marie O'Brien",
      "Anne Marie O\xe2\x80\x99"
      "Brien",
      "Anne-Marie O'Brien+", 1, false },
    { "I think I'm right. The end.", "x", "", NAN, false },
    { "see No. 5", "see number 5", "5+", 1, false },

    /* at the end of cut answers */
    { "It was 20", "It was 2018", "20+", 1, true },
    { "It was 20", "It was 2018", "20-", 0, false },
    { "It was 2018 in all", "It was 20", "2018+", 1, true },
    { "It was 2018 in all", "It was 21", "2018-", 0, true },
    { "It was Anna Ma", "It was Anna Maria", "Anna Ma+", 1, true },
    { "It was Anna Maria at last", "It was Anna", "Anna Maria+", 1, true },
    { "It was Anna Maria at last", "It was a", "Anna Maria-", 0, true },
    { "on February 1", "on February 12", "February 1+", 1, true },
    { "on February 12 and so on", "on February", "February 12-", 0, true },
    { "on 2026-02-1", "on 2026-02-12", "2026-02-1+", 1, true },

    /* other languages: numbers and dates in digits */
    { "Der Vertrag mit Anna Schmidt ist nicht vom 3.2.2026 und hat 12 Seiten.",
      "Der Vertrag ist vom 3.2.2025 und hat 12 Seiten.", "other: 3.2.2026- | 12+", 0.5, false },
    { "Le contrat est sign\xc3\xa9 par Anne, avec une dur\xc3\xa9"
      "e de 12 mois.",
      "C'est 12 mois.", "other: 12+", 1, false },
    { "\xe5\x90\x88\xe5\x90\x8c\xe4\xba\x8e"
      "2026\xe5\xb9\xb4"
      "2\xe6\x9c\x88\xe7\x94\x9f\xe6\x95\x88",
      "\xe5\x90\x88\xe5\x90\x8c\xe4\xba\x8e"
      "2025\xe5\xb9\xb4"
      "2\xe6\x9c\x88",
      "other: 2026- | 2+", 0.5, false },
    { "\xd8\xb9\xd8\xa7\xd9\x85 \xd9\xa2\xd9\xa0\xd9\xa1\xd9\xa2", "\xd8\xb9\xd8\xa7\xd9\x85 2012",
      "other: \xd9\xa2\xd9\xa0\xd9\xa1\xd9\xa2+", 1, false },
    { "\xd0\x9c\xd0\xbe\xd1\x81\xd0\xba\xd0\xb2\xd0\xb0", "x", "other: ", NAN, false },

    { "", "x", "", NAN, false },
    { "It rains.", "It does not rain.", "", 0, false },

    /* what an answer does: its form */
    { "{\"it\": \"rains\"}", " {\n \"it\": \"snows\" }\n", "", 1, false },
    { "{\"it\": \"rains\"}", "```json\n{\"it\": \"snows\"}\n```", "", 1, false },
    { "{\"it\": \"rains\"}", "It rains.", "", 0, false },
    { "{\"it\": \"rains\"}", "{\"it\": \"rains", "", 0, false },
    { "{\"it\": \"rains\"", "{\"it\": \"snows", "", 1, true },
    { "[\"rain\", \"snow\"]", "[\"snow\"]", "", 1, false },
    { "[1] It rains.", "It rains.", "1-", 0, false },
    { "```\nit rains\n```", "it rains", "", 0, false },
    { "```\nit rains\n```", "```c\nit snows\n```", "", 1, false },
    { "- rain\n- snow", "* snow\n\xe2\x80\xa2 rain", "", 1, false },
    { "- rain\n- snow", "rain and snow", "", 0, false },
    { "- rain\n- snow", "- rain and", "", 0, false },
    { "- rain\n- snow", "- rain and", "", 1, true },
    { "- rain", "rain", "", NAN, false },
    { "| rain |\n| --- |\n| snow |", "| snow |\n| --- |", "", 1, false },
    { "| rain |\n| --- |\n| snow |", "- rain\n- snow", "", 0, false },
    { "| rain |\n| --- |\n| snow |", "| rain and", "", 1, true },

    /* refusals */
    { "I'm sorry, but I can't do that.", "Sorry, that is something I can't do.", "can't+", 1, false },
    { "I'm sorry, but I can't do that.", "It does rain.", "can't-", 0, false },
    { "It rains.", "As an AI, I have no view of the sky.", "", 0, false },
    { "It rains in Rome.", "Unfortunately, I am unable to say that of Rome.", "Rome+", 0.5, false },
    { "It does not rain.", "It is so that when rain begins to fall and goes on and on for days I cannot go.", "not+", 1,
      false },

    /* the language */
    { "It is the rain that falls on the roof of the house.",
      "Es ist der Regen, der auf das Dach von dem Haus und den Hof geht.", "", 0, false },
    { "It is the rain that falls on the roof of the house.", "Es ist der Regen", "", NAN, false },
    { "Es ist der Regen, der auf das Dach von dem Haus und den Hof geht.",
      "It is the rain that falls on the roof of the house.", "other: ", 0, false },
};

Test(facts, pairs)
{
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        const struct pair *p = &pairs[i];
        char facts[512];
        double share = compare(facts, p->reference, p->answer, p->cut);
        cr_expect(isnan(p->share) ? isnan(share) : fabs(share - p->share) < 1e-9, "'%s' '%s': %g, not %g (%s)",
                  p->reference, p->answer, share, p->share, facts);
        cr_expect_str_eq(facts, p->facts, "'%s' '%s': '%s', not '%s'", p->reference, p->answer, facts, p->facts);
    }
}

/* Bytes that are no text must not matter. */
Test(facts, odd_bytes)
{
    static const char *const odd[] = { "\xff",     "\xe5\x90", "2026-",
                                       "2026-02-", "1,",       ".5",
                                       "'",        "-",        "1/",
                                       "_",        "%",        "12\xff%",
                                       "J.",       "U.S",      "\xcc\x81",
                                       "0,0,0",    "000",      "0.000",
                                       "1:",       "--1",      "99999999999999999999999999999999999999 million",
                                       "1e400",    "{",        "[",
                                       "```",      "|\n|",     "-\n- ",
                                       "{\n\n",    "[ ]" };
    char facts[512];

    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
        for (int cut = 0; cut < 2; cut++) {
            double share = compare(facts, odd[i], odd[i], cut);
            cr_expect(isnan(share) || share == 1, "'%s' does not keep its own facts: %g", odd[i], share);
        }
}

/* A context with two questions, one with one; the second question's answer is cut. */
Test(facts, columns_of_a_table)
{
    struct table t;
    struct err err;
    int n, other;

    small_table(&t, 0, 3, 1, 2);
    cr_assert_eq(table_alloc_scores(&t, 0, &err), 0);
    cr_assert_eq(table_alloc_belief(&t, &err), 0);
    t.question_context[1] = 0;
    t.answer_text[0] = "in Rome in 2018";
    t.answer_text[1] = "In 2018";
    t.answer_text[2] = "in 20";
    t.answer_n_tokens[2] = 32;
    t.answer_text[3] = "in 2018";
    t.answer_text[4] = "der Hund ist";
    t.answer_n_tokens[5] = -1;
    t.answer_text[5] = "";
    cr_assert_eq(exact_score(&t, NULL, &err), 0, "%s", err.msg);
    cr_assert(t.facts_kept[0] == 1 && t.facts_kept[1] == 0.5F && t.facts_kept[2] == 1 && t.facts_kept[3] == 1);
    cr_assert(isnan(t.facts_kept[4]) && isnan(t.facts_kept[5]) && isnan(t.token_f1[5]));
    cr_assert(t.token_f1[0] == 1 && fabsf(t.token_f1[1] - 2.0F / 3) < 1e-6F && t.token_f1[3] == 0.5F);
    cr_assert(t.facts_train[1] == 0.75 && isnan(t.facts_test[1]) && isnan(t.facts_train[4]));
    cr_assert(fabs(t.token_f1_train[1] - 7.0 / 12) < 1e-6 && t.token_f1_train[4] == 1 && isnan(t.token_f1_train[5]));
    cr_assert_eq(exact_languages(&t, &n, &other, &err), 0);
    cr_assert(n == 3 && other == 1, "%d of %d", other, n);

    cr_assert_eq(exact_predict(&t, NULL, &err), 0);
    cr_assert(t.predicted_facts[0] == 1 && t.predicted_facts_sd[0] == 0);
    cr_assert(t.predicted_facts[1] == 0.75F && t.predicted_facts_sd[1] > 0.24F, "%g", (double)t.predicted_facts_sd[1]);
    for (size_t i = 0; i < table_n_cells(&t); i++)
        t.cell_asked[i] = 0;
    cr_assert_eq(table_check(&t, &err), 0, "%s", err.msg);
    table_release(&t);
}

/* Three answers that kept everything leave doubt; three hundred leave little. */
Test(facts, few_answers_leave_doubt)
{
    for (int n = 3; n <= 300; n *= 10) {
        struct table t;
        struct err err;
        char id[300][16];
        cr_assert_eq(table_alloc(&t, 1, 2, n, &err), 0);
        cr_assert_eq(table_alloc_scores(&t, 0, &err), 0);
        cr_assert_eq(table_alloc_belief(&t, &err), 0);
        t.context_id[0] = "c";
        t.config_name[0] = "none";
        t.config_name[1] = "kivi:bits=4";
        t.cell_bytes[0] = t.cell_bytes[1] = 1;
        for (int q = 0; q < n; q++) {
            snprintf(id[q], sizeof(id[q]), "%d", q);
            t.question_id[q] = id[q];
            t.question_split[q] = "train";
            t.question_context[q] = 0;
            t.answer_text[2 * q] = t.answer_text[2 * q + 1] = "12";
            t.answer_n_tokens[2 * q] = t.answer_n_tokens[2 * q + 1] = 1;
        }
        cr_assert_eq(exact_score(&t, NULL, &err), 0);
        cr_assert_eq(exact_predict(&t, NULL, &err), 0);
        double p = (n + 1.0) / (n + 2), sd = sqrt(p * (1 - p) / (n + 2));
        cr_assert(t.predicted_facts[1] == 1 && fabs((double)t.predicted_facts_sd[1] - sd) < 1e-6, "%d: %g", n,
                  (double)t.predicted_facts_sd[1]);
        table_release(&t);
    }
}

Test(facts, words_of_any_two_texts)
{
    static const struct {
        const char *answer, *reference;
        double f1;
    } pair[] = { { "The cat.", "a cat", 1 },
                 { "cat dog", "cat", 2.0 / 3 },
                 { "", "", 1 },
                 { "the", "a!", 1 },
                 { "", "cat", 0 },
                 { "x", "y", 0 } };
    struct err err;
    double f1;

    for (size_t i = 0; i < sizeof(pair) / sizeof(*pair); i++) {
        cr_assert_eq(metric_token_f1(pair[i].answer, pair[i].reference, &f1, &err), 0);
        cr_expect(fabs(f1 - pair[i].f1) < 1e-12, "'%s' '%s': %g", pair[i].answer, pair[i].reference, f1);
    }
}
