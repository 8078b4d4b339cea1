/* Several tables into one: what each lacks, and what does not go together. */
#include "tests/unit/small_table.h"

#include <criterion/criterion.h>
#include <math.h>

/* a and b united, or the error's message in err. */
static int unite(struct table *out, const struct table *a, const struct table *b, struct err *err)
{
    return table_unite(out, (const struct table *const[]){ a, b }, 2, err);
}

Test(table_unite, unites_what_each_lacks)
{
    struct table a, b, both;
    struct err err;

    small_table(&a, 0, 2, 1, 2); // a/1 b/2 with none, knorm
    small_table(&b, 1, 2, 2, 2); // b/2 c/3 with none, kivi
    a.cell_bytes[2] = 0;         // b/2 none: a has it already, with nothing in it
    b.cell_bytes[0] = 77;
    a.answer_n_tokens[2] = 0; // it stopped at once
    a.answer_text[2] = "";
    cr_assert_eq(unite(&both, &a, &b, &err), 0, "%s", err.msg);
    table_release(&a);
    table_release(&b);
    cr_assert(both.n_contexts == 3 && both.n_configs == 3 && both.n_questions == 3);
    cr_assert_str_eq(both.config_name[2], "kivi:bits=2");
    const int64_t bytes[] = { 0, 1, -1, 0, 1001, 1002, 2000, -1, 2002 };
    for (int i = 0; i < 9; i++)
        cr_assert_eq(both.cell_bytes[i], bytes[i], "cell %d is %lld", i, (long long)both.cell_bytes[i]);
    cr_assert(isnan(both.size_frac[2]) && both.answer_n_tokens[2] == -1 && !*both.answer_text[2]);
    cr_assert(both.answer_n_tokens[3] == 0 && !*both.answer_text[3]);
    cr_assert_eq(both.question_context[2], 2);
    cr_assert_eq(table_check(&both, &err), 0, "%s", err.msg);
    table_release(&both);
}

/* Of two measurements of a cell the first counts, but one with decoding times before one without. */
Test(table_unite, decoding_times_come_with_their_cell)
{
    struct table a, b, both;
    struct err err;

    small_table(&a, 0, 1, 1, 3);
    small_table(&b, 0, 1, 1, 3);
    for (int v = 0; v < 3; v++) {
        a.compress_s[v] = 1;
        b.compress_s[v] = 2;
        for (int i = 0; i < TABLE_BATCHES; i++) {
            a.decode_s[i][v] = v == 1 ? 10 : (double)NAN;
            b.decode_s[i][v] = v == 2 ? (double)NAN : 20 + i;
        }
    }
    cr_assert_eq(unite(&both, &a, &b, &err), 0, "%s", err.msg);
    cr_assert(both.compress_s[0] == 2 && both.decode_s[0][0] == 20 && both.decode_s[2][0] == 22);
    cr_assert(both.compress_s[1] == 1 && both.decode_s[0][1] == 10 && both.decode_s[2][1] == 10);
    cr_assert(both.compress_s[2] == 1 && isnan(both.decode_s[0][2]));
    cr_assert_eq(table_check(&both, &err), 0, "%s", err.msg);
    table_release(&a);
    table_release(&b);
    table_release(&both);
}

/* A second answer and its number of tokens come from the first table that has them, whatever has the question first. */
Test(table_unite, sampled_answers_are_filled_in)
{
    struct table a, b, both;
    struct err err;

    small_table(&a, 0, 3, 1, 2);
    small_table(&b, 0, 3, 1, 2);
    a.sampled_n_tokens[1] = 0; // it stopped at once
    b.temperature = 0.7;
    for (int q = 0; q < 2; q++) {
        b.sampled_n_tokens[q] = 2;
        b.sampled_text[q] = "so";
    }
    cr_assert_eq(unite(&both, &a, &b, &err), 0, "%s", err.msg);
    cr_assert(both.sampled_n_tokens[0] == 2 && strcmp(both.sampled_text[0], "so") == 0);
    cr_assert(both.sampled_n_tokens[1] == 0 && !*both.sampled_text[1]);
    cr_assert(both.sampled_n_tokens[2] == -1 && !*both.sampled_text[2]);
    cr_assert_eq(both.temperature, 0.7);
    cr_assert_eq(table_check(&both, &err), 0, "%s", err.msg);
    table_release(&both);
    a.temperature = 1;
    cr_assert_eq(unite(&both, &a, &b, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "table 2 of 2 was made with --temperature 0.7, not 1");
    table_release(&a);
    table_release(&b);
}

Test(table_unite, does_not_unite_what_differs)
{
    struct table a, b, both;
    struct err err;

    small_table(&a, 0, 2, 1, 2);
    small_table(&b, 1, 2, 1, 2);
    b.max_new_tokens = 31;
    cr_assert_eq(unite(&both, &a, &b, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "table 2 of 2 was made with --max-new-tokens 31, not 32");
    b.max_new_tokens = 32;
    b.context_token_digest[0] = "";
    cr_assert_eq(unite(&both, &a, &b, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "context 'b/2' has different tokens in two tables");
    b.context_token_digest[0] = SMALL_DIGEST;
    b.question_text[0] = "when?";
    cr_assert_eq(unite(&both, &a, &b, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "question 'q1' is different in two tables");
    cr_assert(!both.context_id && !both.model, "a failure must leave an empty table");
    table_release(&a);
    table_release(&b);
}

/* A curve belongs to a prefill: that of the table which a context came from first, if it has one. */
Test(table_unite, unites_curves_with_their_contexts)
{
    struct table a, b, c, all;
    struct err err;

    small_table(&a, 1, 2, 1, 2); // b/2 c/3
    small_table(&b, 0, 2, 2, 2); // a/1 b/2
    small_table(&c, 2, 1, 2, 2); // c/3
    small_table_curve(&a, 1);
    small_table_curve(&b, 10);
    small_table_curve(&c, 100);
    cr_assert_eq(table_unite(&all, (const struct table *const[]){ &a, &b, &c }, 3, &err), 0, "%s", err.msg);
    const int64_t row[] = { 0, 0, 1, 1, 2, 2 }, n_tokens[] = { 50, 101, 50, 102, 50, 100 };
    const double seconds[] = { 1, 2, 3, 4, 10, 20 }; // a/1 is the last: it came with b
    cr_assert_eq(all.n_points, 6);
    for (int i = 0; i < 6; i++)
        cr_assert(all.curve_context[i] == row[i] && all.curve_n_tokens[i] == n_tokens[i] &&
                      all.curve_s[i] == seconds[i],
                  "point %d: context %lld, %lld tokens, %g s", i, (long long)all.curve_context[i],
                  (long long)all.curve_n_tokens[i], all.curve_s[i]);
    cr_assert_eq(table_check(&all, &err), 0, "%s", err.msg);
    table_release(&all);

    cr_assert_eq(table_alloc_curve(&a, 0, &err), 0); // a has none: its contexts stay without
    cr_assert_eq(table_unite(&all, (const struct table *const[]){ &a, &b, &c }, 3, &err), 0, "%s", err.msg);
    cr_assert(all.n_points == 2 && all.curve_context[0] == 2 && all.curve_s[1] == 20);
    table_release(&all);
    cr_assert_eq(unite(&all, &a, &a, &err), 0, "%s", err.msg);
    cr_assert(all.n_points == 0 && !all.curve_s);
    table_release(&all);
    table_release(&a);
    table_release(&b);
    table_release(&c);
}

Test(table_unite, unites_texts_that_one_lacks)
{
    struct table a, b, both;
    struct err err;

    small_table(&a, 0, 1, 1, 2);
    small_table(&b, 0, 1, 2, 2);
    b.context_dataset[0] = "made";
    b.question_origin[0] = "dataset";
    b.profiled_at[0] = 5;
    b.asked_at[0] = 7;
    cr_assert_eq(unite(&both, &a, &b, &err), 0, "%s", err.msg);
    cr_assert_str_eq(both.context_dataset[0], "made");
    cr_assert_str_eq(both.question_origin[0], "dataset");
    cr_assert(isnan(both.profiled_at[0]), "the first table does not say when");
    cr_assert_eq(both.asked_at[0], 7);
    table_release(&both);
    a.asked_at[0] = 8;
    a.context_dataset[0] = "other";
    a.profiled_at[0] = 4;
    cr_assert_eq(unite(&both, &a, &b, &err), 0, "%s", err.msg);
    cr_assert_str_eq(both.context_dataset[0], "other");
    cr_assert_eq(both.profiled_at[0], 4);
    cr_assert_eq(both.asked_at[0], 8);
    table_release(&both);
    b.asked_at[0] = 9;
    cr_assert_eq(unite(&both, &a, &b, &err), 0, "%s", err.msg);
    cr_assert_eq(both.asked_at[0], 9, "the latest");
    table_release(&both);
    table_release(&a);
    table_release(&b);
}

Test(table_unite, says_how_two_were_made_differently)
{
    const struct table_made want = { "m", "01", "cpu-avx512", "f32", 32, "aa", 0.7, NULL };
    char text[TABLE_DIFFERENCE];

#define DIFFERS(member, value, how)                                                                                    \
    do {                                                                                                               \
        struct table_made is = want;                                                                                   \
        cr_assert_null(table_made_difference(text, &is, &want));                                                       \
        is.member = value;                                                                                             \
        cr_assert_str_eq(table_made_difference(text, &is, &want), how);                                                \
    } while (0)
    DIFFERS(model_digest, "02", "another model named 'm'");
    DIFFERS(backend, "cpu-amx", "backend cpu-amx, not cpu-avx512");
    DIFFERS(dtype, "bf16", "--dtype bf16, not f32");
    DIFFERS(max_new_tokens, -1, "--max-new-tokens -1, not 32");
    DIFFERS(chat_digest, "bb", "another chat template");
    DIFFERS(temperature, 1, "--temperature 1, not 0.7");
    DIFFERS(measure, TABLE_LIKELIHOOD, "--measure likelihood, not answers");
#undef DIFFERS
    struct table_made silent = want;
    silent.chat_digest = "";
    cr_assert_null(table_made_difference(text, &silent, &want), "a table of before does not say");
    silent.temperature = 0;
    cr_assert_null(table_made_difference(text, &silent, &want), "one without sampled answers goes with any");
    struct table_made early = want;
    early.backend = early.dtype = NULL;
    cr_assert_null(table_made_difference(text, &want, &early), "what is not known yet is not compared");
    struct table_made other = want;
    other.model = "n";
    cr_assert_null(table_made_difference(text, &other, &want), "a model is its digest: a file may be renamed");
    other.model_digest = "02";
    cr_assert_str_eq(table_made_difference(text, &other, &want), "model 'n', not 'm'");
}
