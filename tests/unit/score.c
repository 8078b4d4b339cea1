/* The arithmetic of scoring on a table of two contexts, two configs and five questions. */
#include "profiler/score.h"

#include <criterion/criterion.h>
#include <math.h>

enum { C = 2, V = 2, Q = 5 };

/* Answers to question q: {the reference's, the variant's}; NULL: not run. */
static const struct {
    int context;
    const char *split, *answer[V];
    float cosine; // what the embedder would say of the two
} question[Q] = {
    { 0, "train", { "Paris", "Paris" }, 0.25f }, // equal texts are alike, whatever the embedder says
    { 0, "train", { "Paris", "London" }, 0.5f }, //
    { 0, "test", { "", "" }, 0.25f },            // so are two empty ones
    { 1, "train", { "Rome", NULL }, 0.75f },     // not run
    { 1, "test", { NULL, "Rome" }, 0.75f },      // nothing to compare with
};

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void make(struct table *t, float cosine[Q * V])
{
    static const char *const context[] = { "a", "b" }, *const config[] = { "none", "knorm:drop=0.5" };
    static const char *const name[] = { "0", "1", "2", "3", "4" };
    struct err err;

    cr_assert_eq(table_alloc(t, C, V, Q, &err), 0);
    cr_assert_eq(table_alloc_scores(t, 0, &err), 0);
    for (int i = 0; i < 2; i++) {
        t->context_id[i] = text(context[i]);
        t->config_name[i] = text(config[i]);
    }
    for (int q = 0; q < Q; q++) {
        t->question_id[q] = text(name[q]);
        t->question_context[q] = question[q].context;
        t->question_split[q] = text(question[q].split);
        for (int v = 0; v < V; v++) {
            const char *answer = question[q].answer[v];
            t->answer_text[q * V + v] = text(answer ? answer : "");
            t->answer_n_tokens[q * V + v] = answer ? (int32_t)(*answer != '\0') : -1;
            cosine[q * V + v] = v ? question[q].cosine : 0.999f;
        }
    }
}

Test(score, equal_answers_are_alike_and_missing_ones_absent)
{
    struct table t;
    float cosine[Q * V];

    make(&t, cosine);
    score_similarity(&t, cosine);
    const float want[Q * V] = { 1, 1, 1, 0.5f, 1, 1, 1, NAN, NAN, NAN };
    for (int i = 0; i < Q * V; i++)
        cr_assert(isnan(want[i]) ? isnan(t.similarity[i]) : t.similarity[i] == want[i], "[%d]: %g", i,
                  (double)t.similarity[i]);
    table_release(&t);
}

Test(score, quality_is_the_mean_over_a_split)
{
    struct table t;
    float cosine[Q * V];
    struct err err;

    make(&t, cosine);
    score_similarity(&t, cosine);
    cr_assert_eq(score_quality(&t, &err), 0);
    const double train[C * V] = { 1, 0.75, 1, (double)NAN }, test[C * V] = { 1, 1, (double)NAN, (double)NAN };
    for (int i = 0; i < C * V; i++) {
        cr_assert(isnan(train[i]) ? isnan(t.quality_train[i]) : t.quality_train[i] == train[i], "train [%d]", i);
        cr_assert(isnan(test[i]) ? isnan(t.quality_test[i]) : t.quality_test[i] == test[i], "test [%d]", i);
    }
    t.similarity[3] = -0.5f; // unrelated, as 0 is
    t.similarity[1] = 1.0000001f;
    cr_assert_eq(score_quality(&t, &err), 0);
    cr_assert_eq(t.quality_train[1], 0.5);
    t.quality_train[1] = 0.75;
    cr_assert_eq(score_mean(&t, t.quality_train, 1), 0.75); // of the one context that has it
    t.quality_test[1] = (double)NAN;
    cr_assert(isnan(score_mean(&t, t.quality_test, 1)));
    table_release(&t);
}
