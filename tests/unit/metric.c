/* LongBench's metrics on answers small enough to score by hand; tests/golden/metric has more, by the published code. */
#include "profiler/score/metric.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double score(const char *dataset, const char *answer, const char *gold)
{
    struct err err;
    double is;

    cr_assert_eq(metric_score(dataset, answer, &(struct metric_gold){ &gold, 1 }, &is, &err), 0, "%s", err.msg);
    return is;
}

static void expect(const char *dataset, const char *answer, const char *gold, double want)
{
    double is = score(dataset, answer, gold);

    cr_assert(fabs(is - want) < 1e-7, "%s '%s' '%s': %.9g, not %.9g", dataset, answer, gold, is, want);
}

Test(metric, every_dataset_has_its_own)
{
    cr_assert_eq(metric_of("qasper"), METRIC_F1);
    cr_assert_eq(metric_of("qasper_e"), METRIC_F1);
    cr_assert_eq(metric_of("gov_report"), METRIC_ROUGE_L);
    cr_assert_eq(metric_of("trec_e"), METRIC_CLASS);
    cr_assert_eq(metric_of("passage_count"), METRIC_COUNT);
    cr_assert_eq(metric_of("repobench-p"), METRIC_EDIT);
    cr_assert_eq(metric_of("lsht"), METRIC_NONE);
    cr_assert_eq(metric_of("qasper_"), METRIC_NONE);
    cr_assert_eq(metric_of("_e"), METRIC_NONE);
    cr_assert_eq(metric_of(""), METRIC_NONE);
    cr_assert_str_eq(metric_name(METRIC_RETRIEVAL), "right numbers");
    cr_assert_null(metric_name(METRIC_NONE));
    cr_assert(isnan(score("notes", "a", "a")));
}

Test(metric, the_best_of_several_right_answers_counts)
{
    const char *gold[] = { "London", "The Paris!", "Rome" };
    struct err err;
    double is;

    cr_assert_eq(metric_score("qasper", "paris", &(struct metric_gold){ gold, 3 }, &is, &err), 0);
    cr_assert_eq(is, 1);
    cr_assert_eq(metric_score("qasper", "paris", &(struct metric_gold){ gold, 0 }, &is, &err), 0);
    cr_assert_eq(is, 0);
}

Test(metric, token_f1_without_case_punctuation_and_articles)
{
    expect("qasper", "The cat, sat.", "a cat SAT", 1);
    expect("qasper", "cat cat dog", "cat dog dog", 2.0 / 3);
    expect("qasper", "cat", "cat dog", 2.0 / 3); // 1 and 1/2
    expect("qasper", "an", "the", 0);            // nothing is left of either
    expect("qasper", "", "cat", 0);
    expect("qasper", "o-a-o", "oao", 1); // punctuation goes first
    expect("qasper",
           "the\xe2\x80\x94"
           "end",
           "\xe2\x80\x94"
           "end",
           1);                                               // a dash ends a word
    expect("qasper", "th\xc3\xa9 ana", "TH\xc3\x89 ana", 1); // no article
    expect("qasper", "x\x1cy\xc2\xa0z", "x y z", 1);         // Python's white space
    expect("triviaqa", "\n\nParis\nand more", "Paris", 1);
    expect("qasper", "\nParis\nand more", "Paris", 0.5);
}

Test(metric, rouge_l_by_sentences_and_distinct_words)
{
    expect("gov_report", "a b c", "a b c", 1);
    expect("gov_report", "a b c", "c b a", 1.0 / 3);
    expect("gov_report", "a a a", "a", 1);             // distinct words
    expect("gov_report", "a b. c d.", "c d. a b.", 1); // the order of sentences is nothing
    expect("gov_report", "", "a", 0);
    expect("gov_report", "...", "a", 0);
    expect("gov_report", ". .", " . .", 1); // blanks are an empty word
    expect("qmsum", "w1 w2 w6 w7 w8. w1 w3 w8 w9 w5", "w1 w2 w3 w4 w5",
           2 * (4.0 / 8) * (4.0 / 5) / (4.0 / 8 + 4.0 / 5));
    expect("samsum", "a b\nc", "a b", 1);
}

/* Of "a b" and "b a" the common word is b, so that a of the second sentence adds one. */
Test(metric, rouge_l_breaks_ties_as_the_package_does)
{
    expect("gov_report", "b a. a c", "a b", 0.8); // 2/3 and 2/2
    expect("gov_report", "b a. b c", "a b", 0.4); // 1/3 and 1/2
}

Test(metric, classes_that_an_answer_names)
{
    expect("trec", "Other location", "Other location", 1);
    expect("trec", "It is a City or a Country", "City", 0.5);
    expect("trec", "City\nCountry", "City", 1); // the first line
    expect("trec", "a city", "City", 0);
    expect("trec", "Country", "City", 0);
    expect("trec", "Percent, fraction of Food", "Percent, fraction", 0.5);
}

Test(metric, numbers_that_are_right)
{
    expect("passage_count", "There are 12, or 13.", "12", 0.5);
    expect("passage_count", "012", "12", 0);
    expect("passage_count", "none", "12", 0);
    expect("passage_retrieval_en", "Paragraph 7", "Paragraph 7", 1);
    expect("passage_retrieval_en", "7 17", "Paragraph 7", 0.5);
    expect("passage_retrieval_en", "7", "seven", 0);
}

Test(metric, edit_similarity_of_the_first_line_of_code)
{
    expect("lcc", "\n# a comment\nreturn x", "return x", 1);
    expect("lcc", "return y", "return x", 0.88); // 14 of 16 is 87.5, to even
    expect("lcc", "abc", "", 0);
    expect("lcc", "`", "", 1);
    expect("repobench-p", "x = 1 // y\nx = 2", "x = 2", 1);
}

Test(metric, texts_too_long_to_be_compared_are_refused)
{
    size_t n = 60000;
    char *a = malloc(n + 1);
    const char *gold = a;
    struct err err;
    double is;

    memset(a, 'x', n);
    a[n] = '\0';
    cr_assert_eq(metric_score("lcc", a, &(struct metric_gold){ &gold, 1 }, &is, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "the answer or the right answer is too long to compare");
    for (size_t i = 1; i < n; i += 2)
        a[i] = ' ';
    cr_assert_eq(metric_score("qmsum", a, &(struct metric_gold){ &gold, 1 }, &is, &err), ERR_FORMAT);
    cr_assert_eq(metric_score("qasper", a, &(struct metric_gold){ &gold, 1 }, &is, &err), 0); // needs no table
    cr_assert_eq(is, 1);
    free(a);
}
