/* Scoring a table of two contexts, two configs and six questions with an embedder that only the test knows; how answers
 * are batched; utility on tiers. */
#include "profiler/score/score.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { C = 2, V = 2, Q = 6 };

/* Answers to question q: {the reference's, the variant's}; NULL: not run. */
static const struct {
    int context;
    const char *split, *answer[V];
} question[Q] = {
    { 0, "train", { "Paris", "Paris" } },  // equal texts are alike, whatever the embedder says
    { 0, "train", { "Paris", "London" } }, //
    { 0, "test", { "", "" } },             // so are two empty ones
    { 1, "train", { "Rome", NULL } },      // not run
    { 1, "test", { NULL, "Rome" } },       // nothing to compare with
    { 1, "dev", { "Rome", "London" } },    // of neither split
};

static void make(struct table *t, int n_tiers)
{
    static const char *const context[] = { "a", "b" }, *const config[] = { "none", "knorm:drop=0.5" };
    static const char *const name[] = { "0", "1", "2", "3", "4", "5" };
    struct err err;

    cr_assert_eq(table_alloc(t, C, V, Q, &err), 0);
    cr_assert_eq(table_alloc_scores(t, n_tiers, &err), 0);
    for (int i = 0; i < 2; i++) {
        t->context_id[i] = context[i];
        t->config_name[i] = config[i];
    }
    for (int q = 0; q < Q; q++) {
        t->question_id[q] = name[q];
        t->question_context[q] = question[q].context;
        t->question_split[q] = question[q].split;
        for (int v = 0; v < V; v++) {
            const char *answer = question[q].answer[v];
            t->answer_text[q * V + v] = answer ? answer : "";
            t->answer_n_tokens[q * V + v] = answer ? (int32_t)(*answer != '\0') : -1;
        }
    }
}

/* The cosine of a text to any reference. */
static int embed_cities(void *arg, const char *const *text, int n, float *vector, struct err *err)
{
    static const struct {
        const char *text;
        float cosine;
    } known[] = { { "Paris", 0.25F }, { "London", 0.5F }, { "", 0.25F },
                  { "Rome", 0.75F },  { "Oslo", -0.5F },  { "Bern", 1.0000001F } };

    (void)arg;
    (void)err;
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++)
            if (strcmp(text[i], known[k].text) == 0)
                vector[i] = known[k].cosine;
    return 0;
}

static float first_value(const float *a, const float *reference, int width)
{
    (void)reference;
    cr_assert_eq(width, 1);
    return a[0];
}

static const struct score_embedder cities = { 1, embed_cities, first_value, NULL };

Test(score, equal_answers_are_alike_and_missing_ones_absent)
{
    struct table t;
    struct err err;

    make(&t, 0);
    cr_assert_eq(score_answers(&t, &cities, NULL, &err), 0, "%s", err.msg);
    const float want[Q * V] = { 1, 1, 1, 0.5F, 1, 1, 1, NAN, NAN, NAN, 1, 0.5F };
    for (int i = 0; i < Q * V; i++)
        cr_assert(isnan(want[i]) ? isnan(t.similarity[i]) : t.similarity[i] == want[i], "[%d]: %g", i,
                  (double)t.similarity[i]);
    table_release(&t);
}

Test(score, quality_is_the_mean_over_a_split)
{
    struct table t;
    struct err err;

    make(&t, 0);
    cr_assert_eq(score_answers(&t, &cities, NULL, &err), 0, "%s", err.msg);
    const double nan = (double)NAN, train[C * V] = { 1, 0.75, 1, nan }, test[C * V] = { 1, 1, nan, nan };
    for (int i = 0; i < C * V; i++) {
        cr_assert(isnan(train[i]) ? isnan(t.quality_train[i]) : t.quality_train[i] == train[i], "train [%d]", i);
        cr_assert(isnan(test[i]) ? isnan(t.quality_test[i]) : t.quality_test[i] == test[i], "test [%d]", i);
    }
    t.answer_text[1] = "Bern"; // a little above 1, by rounding
    t.answer_text[3] = "Oslo"; // unrelated, as 0 is
    cr_assert_eq(score_answers(&t, &cities, NULL, &err), 0);
    cr_assert_eq(t.similarity[3], -0.5F);
    cr_assert_eq(t.quality_train[1], 0.5);
    table_release(&t);
}

static int fail_to_embed(void *arg, const char *const *text, int n, float *vector, struct err *err)
{
    (void)arg;
    (void)text;
    (void)n;
    (void)vector;
    return err_set(err, ERR_DEVICE, "no device");
}

Test(score, an_embedder_that_fails_ends_it)
{
    const struct score_embedder e = { 1, fail_to_embed, first_value, NULL };
    struct table t;
    struct err err;

    make(&t, 0);
    cr_assert_eq(score_answers(&t, &e, NULL, &err), ERR_DEVICE);
    cr_assert(isnan(t.quality_train[0]));
    table_release(&t);
}

/* Vectors that say which answer they are of: (question, config). */
struct batches {
    int n, texts, longest; // embed calls, texts in all, texts of the longest
    int n_configs;
};

static int embed_numbers(void *arg, const char *const *text, int n, float *vector, struct err *err)
{
    struct batches *b = arg;

    (void)err;
    cr_assert(n % b->n_configs == 0, "a batch has whole questions");
    for (int i = 0; i < n; i++) {
        cr_assert_str_eq(text[i], (b->texts + i) % b->n_configs ? "other" : "reference");
        vector[2 * i] = (float)((b->texts + i) / b->n_configs);
        vector[2 * i + 1] = (float)((b->texts + i) % b->n_configs);
    }
    b->n++;
    b->texts += n;
    b->longest = n > b->longest ? n : b->longest;
    return 0;
}

static float compare_numbers(const float *a, const float *reference, int width)
{
    return width == 2 && a[0] == reference[0] && reference[1] == 0 ? 0.5F : -1;
}

/* Scores q questions under v configs; how they were batched. */
static struct batches batches(int q, int v)
{
    struct batches b = { .n_configs = v };
    const struct score_embedder e = { 2, embed_numbers, compare_numbers, &b };
    struct table t;
    struct err err;

    cr_assert_eq(table_alloc(&t, 1, v, q, &err), 0);
    cr_assert_eq(table_alloc_scores(&t, 0, &err), 0);
    for (int i = 0; i < q; i++) {
        t.question_context[i] = 0;
        t.question_split[i] = "train";
        for (int k = 0; k < v; k++) {
            t.answer_text[table_answer(&t, i, k)] = k ? "other" : "reference";
            t.answer_n_tokens[table_answer(&t, i, k)] = 1;
        }
    }
    cr_assert_eq(score_answers(&t, &e, NULL, &err), 0, "%s", err.msg);
    for (size_t i = 0; i < table_n_answers(&t); i++)
        cr_assert_eq(t.similarity[i], i % (size_t)v ? 0.5F : 1);
    cr_assert_eq(b.texts, q * v);
    table_release(&t);
    return b;
}

/* 65,536 answers at a time, in whole questions. */
Test(score, answers_are_embedded_in_batches)
{
    cr_assert_eq(batches(16383, 4).n, 1);
    cr_assert_eq(batches(16384, 4).n, 1);
    cr_assert_eq(batches(16385, 4).n, 2);
    cr_assert_eq(batches(21845, 3).n, 1); // 65,535
    cr_assert_eq(batches(21846, 3).n, 2);
    cr_assert_eq(batches(2, 32768).n, 1);
    cr_assert_eq(batches(2, 32769).n, 2);
    cr_assert_eq(batches(2, 65537).longest, 65537); // one question has more
    cr_assert_eq(batches(0, 2).n, 0);
}

Test(score, finds_contexts_without_a_reference)
{
    struct table t;
    bool lost[C];

    make(&t, 0);
    cr_assert_eq(score_lost(&t, lost), 0);
    cr_assert(!lost[0] && !lost[1]);
    t.answer_n_tokens[3 * V] = t.answer_n_tokens[5 * V] = -1; // question 4 was not run at first
    cr_assert_eq(score_lost(&t, lost), 1);
    cr_assert(!lost[0] && lost[1]);
    table_release(&t);
}

Test(score, utility_on_every_tier_and_recomputed)
{
    struct tier tier[] = { { .name = "dram", .latency_s = 0.5, .read_bytes_per_s = 1000 },
                           { .name = "ssd", .latency_s = 2, .read_bytes_per_s = 100 } };
    const struct tiers tiers = { .at = tier, .n = 2 };
    struct table t;
    struct err err;

    make(&t, 3);
    t.cell_bytes[0] = 1000;
    t.quality_train[0] = 1;
    t.quality_train[1] = 0.5;
    t.decompress_s[1] = 0.25;
    t.prefill_s[0] = 8;
    t.question_s[0] = 0.125;
    cr_assert_eq(table_alloc_read(&t, &err), 0);
    t.cell_bytes_read[1] = 500;
    t.cell_bytes[1] = 900; // what is kept takes no time
    cr_assert_eq(score_tiers(&t, &tiers, 10, &err), 0);
    tier[0].name[0] = 'x'; // the table has its own names
    cr_assert_str_eq(t.tier_name[0], "dram");
    cr_assert_str_eq(t.tier_name[1], "ssd");
    cr_assert_str_eq(t.tier_name[2], "recompute");
    const double ttft[] = { 1.625, 12.125, 8.125, 1.375, 7.375, (double)NAN };
    const double utility[] = { 10 - 1.625, 10 - 12.125, 10 - 8.125, 5 - 1.375, 5 - 7.375, (double)NAN };
    for (int i = 0; i < 6; i++) {
        cr_assert(isnan(ttft[i]) ? isnan(t.ttft_s[i]) : t.ttft_s[i] == ttft[i], "ttft [%d]: %g", i, t.ttft_s[i]);
        cr_assert(isnan(utility[i]) ? isnan(t.utility[i]) : t.utility[i] == utility[i], "utility [%d]", i);
    }
    for (int i = 6; i < 12; i++) // context b was not run
        cr_assert(isnan(t.ttft_s[i]) && isnan(t.utility[i]), "[%d]", i);
    table_release(&t);
}

/* Per context, then the mean: (0.4 / 0.2 + 0.3 / 0.1) / 2; a context without one of both times does not count. */
Test(score, speed_is_relative_to_the_reference)
{
    struct table t;
    struct err err;

    cr_assert_eq(table_alloc(&t, 4, 2, 0, &err), 0);
    cr_assert(isnan(score_speed(&t, 1, 0)) && !score_has_speed(&t));
    const double times[] = { 0.4, 0.2, 0.3, 0.1, (double)NAN, 0.1, 0.4, (double)NAN };
    for (int i = 0; i < 8; i++)
        t.decode_s[0][i] = times[i];
    cr_assert_float_eq(score_speed(&t, 1, 0), 2.5, 1e-12);
    cr_assert(score_speed(&t, 0, 0) == 1 && isnan(score_speed(&t, 1, 2)) && score_has_speed(&t));
    table_release(&t);
}

/* Of the similarities 1, 0.5 and 0.75 under the variant, and of one alone. */
Test(score, a_quality_has_its_deviation_and_number)
{
    struct table t;
    struct err err;

    make(&t, 0);
    t.question_split[2] = "train";
    t.answer_text[5] = "Rome"; // 0.75
    cr_assert_eq(score_answers(&t, &cities, NULL, &err), 0, "%s", err.msg);
    cr_assert(t.quality_train[1] == 0.75 && t.quality_train_n[1] == 3);
    cr_assert_eq(t.quality_train_std[1], 0.25); // sqrt((1/16 + 1/16) / 2)
    cr_assert(t.quality_train_std[0] == 0 && t.quality_train_n[0] == 3);
    cr_assert(isnan(t.quality_train_std[2]) && t.quality_train_n[2] == 1, "one alone");
    cr_assert(isnan(t.quality_test[0]) && isnan(t.quality_test_std[0]) && t.quality_test_n[0] == 0);
    cr_assert(t.quality_train_n[3] == 0 && isnan(t.quality_train_std[3]));
    table_release(&t);
}

/* ---- the scale, and how sure qualities are --------------------------------- */

/* The cosine of cities by their first values' product. */
static float product(const float *a, const float *b, int width)
{
    (void)width;
    return a[0] * b[0];
}

Test(score, the_scale_is_the_reference_s_answers_to_other_questions)
{
    const struct score_embedder e = { 1, embed_cities, product, NULL };
    struct table t;
    struct err err;

    make(&t, 0);
    t.answer_text[2] = "London";
    cr_assert_eq(score_answers(&t, &e, NULL, &err), 0, "%s", err.msg);
    // context a: Paris London, Paris "", London "": 0.25 * 0.5, 0.25 * 0.25, 0.5 * 0.25
    cr_assert_float_eq(t.unrelated[0], (0.125 + 0.0625 + 0.125) / 3, 1e-12);
    cr_assert_eq(t.unrelated[1], 1); // Rome and Rome; the one that was not run counts for nothing
    cr_assert_float_eq(score_unrelated(&t), (1 + 0.3125 / 3) / 2, 1e-12);
    t.answer_n_tokens[6] = t.answer_n_tokens[10] = -1;
    t.answer_text[2] = "Oslo"; // below 0 counts as 0
    cr_assert_eq(score_answers(&t, &e, NULL, &err), 0);
    cr_assert_float_eq(t.unrelated[0], 0.0625 / 3, 1e-12);
    cr_assert(isnan(t.unrelated[1]), "no two answers");
    cr_assert_float_eq(score_unrelated(&t), 0.0625 / 3, 1e-12);
    cr_assert_eq(score_kept(0.5, 0, 1), 0.5);
    cr_assert_eq(score_kept(0.25, 0.5, 1), -0.5);
    cr_assert_eq(score_kept(0.75, 0.5, 0.75), 1);
    cr_assert(isnan(score_kept(0.75, 0.5, 0.5)), "no way to go");
    table_release(&t);
}

Test(score, the_other_end_is_the_reference_s_second_answers)
{
    struct table t;
    struct err err;

    make(&t, 0);
    cr_assert_eq(score_answers(&t, &cities, NULL, &err), 0, "%s", err.msg);
    cr_assert(isnan(t.same_meaning[0]) && isnan(t.sampled_similarity[0]) && isnan(score_same_meaning(&t)), "not asked");
    static const char *const sampled[Q] = { "Paris", "London", "Oslo", NULL, "Rome", "Rome" };
    for (int q = 0; q < Q; q++) {
        t.sampled_text[q] = sampled[q] ? sampled[q] : "";
        t.sampled_n_tokens[q] = sampled[q] ? 1 : -1;
    }
    cr_assert_eq(score_answers(&t, &cities, NULL, &err), 0, "%s", err.msg);
    const float want[Q] = { 1, 0.5F, -0.5F, NAN, NAN, 1 };
    for (int q = 0; q < Q; q++)
        cr_assert(isnan(want[q]) ? isnan(t.sampled_similarity[q]) : t.sampled_similarity[q] == want[q], "%d: %g", q,
                  (double)t.sampled_similarity[q]);
    cr_assert_eq(t.same_meaning[0], 0.5, "below 0 counts as 0");
    cr_assert_eq(t.same_meaning[1], 1);
    cr_assert_eq(score_same_meaning(&t), 0.75);
    table_release(&t);
}

Test(score, standard_errors_of_contexts_or_of_questions)
{
    struct table t;
    struct err err;

    make(&t, 0);
    cr_assert(isnan(score_error(&t, SPLIT_TEST, 1)), "nothing is known");
    t.quality_test[1] = 0.5;
    t.quality_test[3] = 0.75; // sd 0.25 / sqrt(2), of two
    cr_assert_float_eq(score_error(&t, SPLIT_TEST, 1), 0.125, 1e-12);
    cr_assert(isnan(score_error(&t, SPLIT_TRAIN, 1)));
    t.quality_test[3] = (double)NAN;
    cr_assert(isnan(score_error(&t, SPLIT_TEST, 1)), "one context, of one question for all we know");
    t.quality_test_std[1] = 0.5;
    t.quality_test_n[1] = 4;
    cr_assert_eq(score_error(&t, SPLIT_TEST, 1), 0.25);
    cr_assert_eq(table_alloc_scores(&t, 0, &err), 0);
    table_release(&t);
}

/* One context, v configs, q test questions; similarity of a config: 1 - its number / 10, less `noise` at every second
 * question for odd configs. */
static struct score_resolution resolved(int v, int q, float noise)
{
    struct table t;
    struct err err;

    cr_assert_eq(table_alloc(&t, 1, v, q, &err), 0);
    cr_assert_eq(table_alloc_scores(&t, 0, &err), 0);
    for (int i = 0; i < q; i++) {
        t.question_context[i] = 0;
        t.question_split[i] = "test";
        for (int k = 0; k < v; k++)
            t.similarity[table_answer(&t, i, k)] = 1 - 0.1F * (float)k - (k % 2 && i % 2 ? noise : 0);
    }
    struct score_resolution r = score_resolve(&t, SPLIT_TEST), none = score_resolve(&t, SPLIT_TRAIN);
    cr_assert(none.pairs == 0 && none.told == 0, "no question of that split");
    table_release(&t);
    return r;
}

Test(score, configs_are_told_apart_by_enough_questions)
{
    struct score_resolution r = resolved(4, 8, 0); // 1, 2 and 3
    cr_assert(r.pairs == 3 && r.told == 3);
    r = resolved(4, 1, 0);
    cr_assert(r.pairs == 3 && r.told == 0, "one question tells nothing");
    r = resolved(4, 4, 0.8F); // 2 and 3 differ always, 1 and 2 now in this way, now in that
    cr_assert(r.pairs == 3 && r.told == 2, "%d of %d", r.told, r.pairs);
    r = resolved(4, 400, 0.8F);
    cr_assert(r.pairs == 3 && r.told == 3, "%d of %d", r.told, r.pairs);
    r = resolved(2, 8, 0);
    cr_assert(r.pairs == 0, "none is not compared");
}
