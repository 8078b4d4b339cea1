/* Right answers from contexts to a table, and their scores by metrics. */
#include "profiler/score/gold.h"
#include "profiler/table/gold_list.h"
#include "tests/unit/small_table.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

static void expect(const struct context *c, const char *question, const char *want)
{
    struct err err;
    char *json;

    cr_assert_eq(gold_find(c, question, &json, &err), 0);
    cr_assert(want ? json && strcmp(json, want) == 0 : !json, "'%s': %s", question, json ? json : "none");
    free(json);
}

Test(gold, is_found_by_the_words_of_a_question)
{
    static char paris[] = "Paris", city[] = "a \"city\"", where[] = "Where\n is  it?", why[] = "Why?", who[] = "Who";
    char *answers[] = { paris, city };
    struct context_input input[] = { { where, answers, 2 }, { why, NULL, 0 }, { who, answers, 1 } };
    const struct context c = { .inputs = { input, 3, 3 } };

    expect(&c, "Where is it?", "[\"Paris\",\"a \\\"city\\\"\"]");
    expect(&c, " Where\tis it? ", "[\"Paris\",\"a \\\"city\\\"\"]");
    expect(&c, "Who", "[\"Paris\"]");
    expect(&c, "Where isit?", NULL);
    expect(&c, "Where is it", NULL);
    expect(&c, "Where is it?!", NULL);
    expect(&c, "Why?", NULL);
    expect(&c, "", NULL);
}

Test(gold, a_list_of_texts_is_checked)
{
    cr_assert(gold_is_list("") && gold_is_list("[\"a\"]") && gold_is_list("[\"\",\"b\"]"));
    cr_assert(!gold_is_list("[]") && !gold_is_list("[1]") && !gold_is_list("{\"a\":\"b\"}") && !gold_is_list("[\"a\""));
    cr_assert(!gold_is_list("\"a\"") && !gold_is_list("null"));
}

/* One context with two questions, one more with one. */
Test(gold, scores_and_their_means)
{
    static char text[60001], list[60005];
    struct table t;
    struct err err;

    small_table(&t, 0, 3, 1, 2);
    cr_assert_eq(table_alloc_scores(&t, 0, &err), 0);
    t.question_context[1] = 0;
    t.gold_answers[0] = "[\"yes\"]";
    t.gold_answers[1] = "[\"no\",\"yes or no\"]"; // of which "yes" has a third: F1 = 1/2
    t.context_dataset[0] = "qasper";
    t.answer_n_tokens[3] = -1; // question 1 with the variant
    t.answer_text[3] = "";
    cr_assert_eq(gold_score(&t, &err), 0, "%s", err.msg);
    cr_assert(t.gold_score[0] == 1 && t.gold_score[1] == 0 && t.gold_score[2] == 0.5F && isnan(t.gold_score[3]));
    cr_assert(isnan(t.gold_score[4]), "nothing is right");
    cr_assert(t.gold_mean[0] == 0.75 && t.gold_mean[1] == 0 && isnan(t.gold_mean[2]) && isnan(t.gold_mean[4]));
    cr_assert_eq(table_check(&t, &err), 0, "%s", err.msg);

    t.context_dataset[0] = "none";
    cr_assert_eq(gold_score(&t, &err), 0);
    cr_assert(isnan(t.gold_score[0]) && isnan(t.gold_mean[0]), "the dataset has no metric");
    t.context_dataset[0] = "lcc";
    memset(text, 'x', sizeof(text) - 1);
    snprintf(list, sizeof(list), "[\"%s\"]", text);
    t.answer_text[0] = text;
    t.gold_answers[0] = list;
    cr_assert_eq(gold_score(&t, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "question 'q0': the answer or the right answer is too long"), "%s", err.msg);
    table_release(&t);
}

/* What a reader refuses. */
Test(gold, broken_rules)
{
    struct table t;
    struct err err;

    small_table(&t, 0, 1, 1, 1);
    cr_assert_eq(table_alloc_scores(&t, 0, &err), 0);
    t.gold_answers[0] = "[";
    cr_assert_eq(table_check(&t, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "question 'q0' has gold answers that are not a list of texts in JSON");
    t.gold_answers[0] = "[\"a\"]";
    t.gold_score[0] = 1.5F;
    cr_assert_eq(table_check(&t, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "answer to 'q0' with 'none': gold/score is not within 0 and 1");
    t.gold_score[0] = 1;
    t.answer_n_tokens[0] = -1;
    t.answer_text[0] = "";
    cr_assert_eq(table_check(&t, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "answer to 'q0' with 'none': a gold score without an answer");
    t.gold_score[0] = NAN;
    t.gold_mean[0] = -1;
    cr_assert_eq(table_check(&t, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "context 'a/1' with 'none': gold/mean is not within 0 and 1");
    t.gold_mean[0] = 0;
    t.unrelated[0] = 2;
    cr_assert_eq(table_check(&t, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "context 'a/1': its unrelated is not within 0 and 1");
    t.unrelated[0] = 0;
    t.same_meaning[0] = -1;
    cr_assert_eq(table_check(&t, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "context 'a/1': its same_meaning is not within 0 and 1");
    table_release(&t);
}
