/* The table: file and back, and the rules that reading applies. */
#include "base/buf.h"
#include "base/file.h"
#include "profiler/table/table_column.h"
#include "tests/unit/small_table.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <unistd.h>

Test(table, comes_back_from_its_file)
{
    struct table t, back;
    struct err err;
    char path[] = "/tmp/evp-unit-XXXXXX";

    close(mkstemp(path));
    small_table(&t, 0, 3, 1, 3);
    t.cell_bytes[4] = -1;
    t.size_frac[4] = t.keep_frac[4] = t.compress_s[4] = t.decompress_s[4] = (double)NAN;
    cr_assert_eq(table_write(&t, path, &err), 0, "%s", err.msg);
    cr_assert_eq(table_read(&back, path, TABLE_ALL, &err), 0, "%s", err.msg);
    cr_assert_eq(back.n_contexts, 3);
    cr_assert_eq(back.n_configs, 3);
    cr_assert_eq(back.n_questions, 3);
    cr_assert_eq(back.max_new_tokens, 32);
    cr_assert_str_eq(back.lineage, "[\"\xc3\xa9\"]");
    cr_assert_str_eq(back.context_id[2], "c/3");
    cr_assert_str_eq(back.answer_text[5], "na\xc3\xafve\nanswer");
    cr_assert_eq(back.cell_bytes[8], 2002);
    cr_assert(back.cell_bytes[4] == -1 && isnan(back.size_frac[4]));
    cr_assert_null(back.similarity);
    cr_assert_null(back.tier_name);
    table_release(&back);

    cr_assert_eq(table_alloc_scores(&t, 2, &err), 0);
    t.tier_name[0] = "dram";
    t.tier_name[1] = "recompute";
    t.quality_train[0] = 1;
    t.ttft_s[17] = 2.5;
    cr_assert_eq(table_write(&t, path, &err), 0, "%s", err.msg);
    cr_assert_eq(table_read(&back, path, TABLE_ALL, &err), 0, "%s", err.msg);
    cr_assert(back.n_tiers == 2 && back.quality_train[0] == 1 && back.ttft_s[17] == 2.5);
    table_release(&back);
    cr_assert_eq(table_read(&back, path, TABLE_PLAN, &err), 0, "%s", err.msg);
    cr_assert(back.quality_train[0] == 1 && !back.answer_text && !back.question_id && back.n_questions == 3);
    table_release(&back);
    table_release(&t);
    unlink(path);
}

Test(table, sampled_answers_come_back_and_follow_rules)
{
    struct table t, back;
    struct err err;
    char path[] = "/tmp/evp-unit-XXXXXX";

    close(mkstemp(path));
    small_table(&t, 0, 2, 1, 2);
    cr_assert_eq(table_alloc_scores(&t, 0, &err), 0);
    t.temperature = 0.7;
    t.sampled_n_tokens[0] = 3;
    t.sampled_text[0] = "so";
    t.sampled_similarity[0] = 0.5F;
    t.same_meaning[0] = 0.5;
    cr_assert_eq(table_write(&t, path, &err), 0, "%s", err.msg);
    cr_assert_eq(table_read(&back, path, TABLE_ALL, &err), 0, "%s", err.msg);
    cr_assert(back.temperature == 0.7 && back.sampled_n_tokens[0] == 3 && back.sampled_n_tokens[1] == -1);
    cr_assert_str_eq(back.sampled_text[0], "so");
    cr_assert(back.sampled_similarity[0] == 0.5F && isnan(back.sampled_similarity[1]) && back.same_meaning[0] == 0.5);
    table_release(&back);
    cr_assert_eq(table_read(&back, path, TABLE_PLAN, &err), 0, "%s", err.msg);
    cr_assert(back.same_meaning[0] == 0.5 && !back.sampled_text && !back.sampled_similarity);
    table_release(&back);
#define REFUSED(change, undo, why)                                                                                     \
    do {                                                                                                               \
        change;                                                                                                        \
        cr_assert_eq(table_check(&t, &err), ERR_FORMAT);                                                               \
        cr_assert_str_eq(err.msg, why);                                                                                \
        undo;                                                                                                          \
    } while (0)
    REFUSED(t.sampled_n_tokens[0] = -2, t.sampled_n_tokens[0] = 3,
            "the sampled answer to 'q0': n_tokens is not a count");
    REFUSED(t.sampled_n_tokens[0] = 0, t.sampled_n_tokens[0] = 3, "the sampled answer to 'q0': a text without tokens");
    REFUSED(t.sampled_similarity[0] = 1.5F, t.sampled_similarity[0] = 0.5F,
            "the sampled answer to 'q0': similarity is not a cosine");
    REFUSED(t.sampled_similarity[1] = 0, t.sampled_similarity[1] = NAN,
            "the sampled answer to 'q1': a similarity without an answer");
    REFUSED(t.temperature = -1, t.temperature = 0.7, "its temperature is not a number >= 0");
    REFUSED(t.temperature = (double)NAN, t.temperature = 0.7, "its temperature is not a number >= 0");
#undef REFUSED
    cr_assert_eq(table_check(&t, &err), 0, "%s", err.msg);
    table_release(&t);
    unlink(path);
}

Test(table, same_content_same_bytes)
{
    struct table t;
    struct err err;
    struct buf a = { 0 }, b = { 0 };
    char path[] = "/tmp/evp-unit-XXXXXX";

    close(mkstemp(path));
    small_table(&t, 0, 3, 1, 3);
    cr_assert_eq(table_write(&t, path, &err), 0);
    cr_assert_eq(file_read(&a, path, 1 << 20, &err), 0);
    sleep(1); // times in object headers have seconds
    cr_assert_eq(table_write(&t, path, &err), 0);
    cr_assert_eq(file_read(&b, path, 1 << 20, &err), 0);
    cr_assert(a.n == b.n && memcmp(a.at, b.at, a.n) == 0);
    table_release(&t);
    buf_release(&a);
    buf_release(&b);
    unlink(path);
}

/* What h5py wrote: table-full.h5 is table.h5 with more of the datasets that a file may lack. */
Test(table, what_a_file_lacks_is_absent)
{
    struct table small, full;
    struct err err;

    cr_assert_eq(table_read(&small, "tests/data/table.h5", TABLE_ALL, &err), 0, "%s", err.msg);
    cr_assert_eq(table_read(&full, "tests/data/table-full.h5", TABLE_ALL, &err), 0, "%s", err.msg);
    for (int i = 0; i < 3; i++) {
        cr_assert(isnan(small.profiled_at[i]) && full.profiled_at[i] == 1.75e9 + i);
        cr_assert_str_empty(small.context_prefix_digests[i]);
        cr_assert_eq(strlen(full.context_prefix_digests[i]), 64 * (size_t)(full.n_tokens[i] / 256));
    }
    cr_assert_str_empty(small.question_origin[1]);
    cr_assert_str_eq(full.question_origin[1], "api:m");
    cr_assert(small.quality_train_n[0] == -1 && isnan(small.quality_train_std[0]) && full.quality_test_n[8] == 1);
    cr_assert(small.n_points == 0 && !small.curve_s && full.n_points == 6 && full.curve_s[5] == full.prefill_s[2]);
    table_release(&small);
    table_release(&full);
    cr_assert_eq(table_read(&full, "tests/data/table-full.h5", TABLE_PLAN, &err), 0, "%s", err.msg);
    cr_assert(full.quality_train && full.quality_train_n && full.quality_test_n && full.curve_s && !full.profiled_at &&
              full.n_points == 6);
    cr_assert(full.context_prefix_digests && !full.question_origin && full.n_questions == 6);
    table_release(&full);
}

Test(table, other_versions_are_refused)
{
    static const int64_t two = 2, other[] = { 1, 3, 0, -1 };
    char path[] = "/tmp/evp-unit-XXXXXX";
    struct buf file = { 0 };
    struct table t;
    struct err err;

    close(mkstemp(path));
    cr_assert_eq(file_read(&file, "tests/data/table-full.h5", 1 << 20, &err), 0, "%s", err.msg);
    char *name = memmem(file.at, file.n, "version", 8);
    cr_assert(name && name + 96 < file.at + file.n);
    char *value = memmem(name + 8, 88, &two, sizeof(two));
    cr_assert_not_null(value);
    for (int i = 0; i < 4; i++) {
        memcpy(value, &other[i], sizeof(other[i]));
        cr_assert_eq(file_write(path, file.at, file.n, &err), 0, "%s", err.msg);
        cr_assert_eq(table_read(&t, path, TABLE_ALL, &err), ERR_FORMAT);
        cr_assert(strstr(err.msg, "this program reads version 2"), "%s", err.msg);
    }
    buf_release(&file);
    unlink(path);
}

/* A copy of tests/data/table.h5, as h5py wrote it, in which `name` is called something else. */
static void rename_in_copy(char *path, const char *name, const char *other)
{
    struct buf file = { 0 };
    struct err err;

    cr_assert_eq(file_read(&file, "tests/data/table.h5", 1 << 20, &err), 0, "%s", err.msg);
    char *at = memmem(file.at, file.n, name, strlen(name));
    cr_assert(at && strlen(name) == strlen(other));
    memcpy(at, other, strlen(other));
    close(mkstemp(path));
    cr_assert_eq(file_write(path, file.at, file.n, &err), 0, "%s", err.msg);
    buf_release(&file);
}

Test(table, a_file_without_question_s_reads_as_0)
{
    static const enum table_want want[] = { TABLE_ALL, TABLE_PLAN };
    char path[] = "/tmp/evp-unit-XXXXXX";
    struct table t;
    struct err err;

    rename_in_copy(path, "question_s", "question_t");
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(table_read(&t, path, want[i], &err), 0, "%s", err.msg);
        cr_assert(t.n_contexts == 3 && t.prefill_s[2] == 4);
        for (int c = 0; c < 3; c++)
            cr_assert_eq(t.question_s[c], 0);
        table_release(&t);
    }
    unlink(path);
}

Test(table, a_file_without_another_dataset_is_refused)
{
    char path[] = "/tmp/evp-unit-XXXXXX";
    struct table t;
    struct err err;

    rename_in_copy(path, "prefill_s", "prefill_t");
    cr_assert_eq(table_read(&t, path, TABLE_ALL, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "it has no dataset '/contexts/prefill_s'"), "%s", err.msg);
    unlink(path);
}

Test(table, finds_a_config_by_name)
{
    struct table t;

    small_table(&t, 0, 1, 1, 3);
    cr_assert_eq(table_find_config(&t, "none"), 0);
    cr_assert_eq(table_find_config(&t, "kivi:bits=2"), 2);
    cr_assert_eq(table_find_config(&t, "kivi:bits=4"), -1);
    table_release(&t);
}

Test(table, means_are_over_what_is_there)
{
    struct table t;

    small_table(&t, 0, 2, 1, 2);
    t.size_frac[1] = (double)NAN;
    t.size_frac[3] = 0.25;
    cr_assert_eq(table_mean(&t, t.size_frac, 0), 0.5);
    cr_assert_eq(table_mean(&t, t.size_frac, 1), 0.25); // of the one context that has it
    t.size_frac[3] = (double)NAN;
    cr_assert(isnan(table_mean(&t, t.size_frac, 1)));
    cr_assert(isnan(table_mean(&t, t.quality_train, 0)), "a column that is not there");
    table_release(&t);
}

/* ---- limits ------------------------------------------------------------- */

/* Is a column with these axes within what a table may hold? */
static bool may_hold(const char *path, int n_contexts, int n_configs, int n_tiers)
{
    struct table t = {
        .n_contexts = n_contexts, .n_configs = n_configs, .n_questions = n_contexts, .n_tiers = n_tiers
    };
    size_t n;

    for (int i = 0; i < TABLE_COLUMNS; i++)
        if (strcmp(table_columns[i].path, path) == 0)
            return column_count(&t, &table_columns[i], &n);
    cr_assert_fail("no column %s", path);
    return false;
}

/* 2^40 elements. */
Test(table, a_column_has_a_largest_size)
{
    static const char *const paths[] = { "/cells/bytes", "/answers/n_tokens" };
    struct table t = { .n_contexts = 1 << 20, .n_configs = (1 << 20) + 1 };
    struct err err;

    for (int i = 0; i < 2; i++) {
        cr_assert(may_hold(paths[i], 1 << 20, (1 << 20) - 1, 0));
        cr_assert(may_hold(paths[i], 1 << 20, 1 << 20, 0));
        cr_assert_not(may_hold(paths[i], 1 << 20, (1 << 20) + 1, 0));
        cr_assert_not(may_hold(paths[i], INT32_MAX, INT32_MAX, 0));
    }
    cr_assert(may_hold("/utility/value", 1 << 20, 1 << 10, 1 << 10));
    cr_assert_not(may_hold("/utility/value", 1 << 20, 1 << 10, (1 << 10) + 1));
    cr_assert_not(may_hold("/utility/value", INT32_MAX, INT32_MAX, INT32_MAX), "the product overflows");
    cr_assert(may_hold("/contexts/id", INT32_MAX, 1, 0));
    cr_assert_eq(table_check(&t, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "'/cells/bytes' has more elements than a table can hold");
    cr_assert_eq(table_alloc(&t, 2, INT32_MAX, INT32_MAX, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "2 contexts, 2147483647 configs, 2147483647 questions are too many for a table");
}

/* 64 MiB. */
Test(table, a_string_has_a_largest_size)
{
    const int limit = 64 << 20;
    char path[] = "/tmp/evp-unit-XXXXXX", *text = malloc((size_t)limit + 2);

    close(mkstemp(path));
    memset(text, 'x', (size_t)limit + 1);
    for (int more = -1; more <= 1; more++) {
        struct table t, back;
        struct err err;
        small_table(&t, 0, 1, 1, 1);
        text[limit + more] = '\0';
        t.question_text[0] = text;
        cr_assert_eq(table_write(&t, path, &err), 0, "%s", err.msg);
        table_release(&t);
        cr_assert_eq(table_read(&back, path, TABLE_ALL, &err), more > 0 ? ERR_FORMAT : 0, "%s", err.msg);
        cr_assert(more <= 0 || strstr(err.msg, "'/questions/text': a string above 64 MiB"), "%s", err.msg);
        cr_assert(more > 0 || strlen(back.question_text[0]) == (size_t)(limit + more));
        table_release(&back);
        text[limit + more] = 'x';
    }
    free(text);
    unlink(path);
}

/* n contexts under v configs, everything run, without questions; names are numbers. */
static void make_long(struct table *t, int n, int v)
{
    struct err err;

    cr_assert_eq(table_alloc(t, n, v, 0, &err), 0);
    char(*name)[16] = calloc((size_t)(n > v ? n : v), sizeof(*name));
    cr_assert_eq(table_own(t, (char *)name, &err), 0);
    for (int i = 0; i < (n > v ? n : v); i++)
        snprintf(name[i], sizeof(name[i]), "%07d", i);
    for (int i = 0; i < n; i++)
        t->context_id[i] = name[i];
    for (int i = 0; i < v; i++)
        t->config_name[i] = i ? name[i] : "none";
    for (size_t i = 0; i < table_n_cells(t); i++) {
        t->cell_bytes[i] = (int64_t)i;
        t->size_frac[i] = t->keep_frac[i] = 1;
    }
}

/* Chunks of the file, and shares of threads, are 65,536 elements. */
Test(table, long_columns_come_back)
{
    static const int size[][2] = { { 65535, 1 }, { 65536, 1 }, { 65537, 1 }, { 2, 65535 }, { 2, 65536 }, { 2, 65537 } };
    char path[] = "/tmp/evp-unit-XXXXXX";
    struct err err;

    close(mkstemp(path));
    for (int s = 0; s < 6; s++) {
        struct table t, back;
        make_long(&t, size[s][0], size[s][1]);
        cr_assert_eq(table_write(&t, path, &err), 0, "%s", err.msg);
        cr_assert_eq(table_read(&back, path, TABLE_ALL, &err), 0, "%s", err.msg);
        cr_assert(back.n_contexts == size[s][0] && back.n_configs == size[s][1]);
        cr_assert_eq(memcmp(back.cell_bytes, t.cell_bytes, table_n_cells(&t) * sizeof(*t.cell_bytes)), 0);
        cr_assert_str_eq(back.context_id[size[s][0] - 1], t.context_id[size[s][0] - 1]);
        table_release(&back);
        table_release(&t);
    }
    unlink(path);
}

Test(table, the_first_fault_of_a_long_column_is_named)
{
    for (int n = 65535; n <= 65537; n++) {
        struct table t;
        struct err err;
        char want[128];
        make_long(&t, n, 1);
        t.size_frac[n - 1] = 0;
        snprintf(want, sizeof(want), "context '%07d' with 'none': size_frac is not a fraction", n - 1);
        cr_assert_eq(table_check(&t, &err), ERR_FORMAT);
        cr_assert_str_eq(err.msg, want);
        t.size_frac[n / 2 + 1] = t.size_frac[n / 2] = 0;
        snprintf(want, sizeof(want), "context '%07d' with 'none': size_frac is not a fraction", n / 2);
        cr_assert_eq(table_check(&t, &err), ERR_FORMAT);
        cr_assert_str_eq(err.msg, want);
        t.size_frac[n - 1] = t.size_frac[n / 2 + 1] = t.size_frac[n / 2] = 1;
        cr_assert_eq(table_check(&t, &err), 0, "%s", err.msg);
        t.context_id[n - 1] = "\xff";
        cr_assert_eq(table_check(&t, &err), ERR_FORMAT);
        snprintf(want, sizeof(want), "'/contexts/id' element %d is not UTF-8", n - 1);
        cr_assert_str_eq(err.msg, want);
        table_release(&t);
    }
}

#define LIMIT(member, good, bad)                                                                                       \
    do {                                                                                                               \
        small_table(&t, 0, 2, 1, 2);                                                                                   \
        cr_assert_eq(table_alloc_scores(&t, 2, &err), 0);                                                              \
        t.tier_name[0] = "dram";                                                                                       \
        t.tier_name[1] = "recompute";                                                                                  \
        for (int i = 0; i < 4; i++) {                                                                                  \
            t.quality_train[i] = t.quality_test[i] = 0.5;                                                              \
            t.quality_train_n[i] = t.quality_test_n[i] = 2;                                                            \
        }                                                                                                              \
        cr_assert_eq(table_alloc_belief(&t, &err), 0);                                                                 \
        for (int i = 0; i < 4; i++) {                                                                                  \
            t.predicted_quality[i] = 0.5;                                                                              \
            t.predicted_sd[i] = 0.5F;                                                                                  \
            t.cell_asked[i] = 2;                                                                                       \
        }                                                                                                              \
        t.n_tokens[0] = 512;                                                                                           \
        if (strstr(#member, "curve"))                                                                                  \
            small_table_curve(&t, 1);                                                                                  \
        t.member = good;                                                                                               \
        cr_assert_eq(table_check(&t, &err), 0, #member " = " #good ": %s", err.msg);                                   \
        t.member = bad;                                                                                                \
        cr_assert_eq(table_check(&t, &err), ERR_FORMAT, #member " = " #bad);                                           \
        table_release(&t);                                                                                             \
    } while (0)
/* Each line is the last value that a rule allows, then the first that it does not. */
Test(table, values_at_their_limits)
{
    const double above_1 = nextafter(1, 2), below_0 = -DBL_TRUE_MIN, nan = (double)NAN;
    struct table t;
    struct err err;

    LIMIT(n_contexts, 2, 0);
    LIMIT(n_configs, 2, 0);
    LIMIT(n_tokens[0], 1, 0);
    LIMIT(n_tokens[0], -1, -2);
    LIMIT(kv_bytes[0], 1, 0);
    LIMIT(kv_bytes[0], -1, -2);
    LIMIT(prefill_s[0], 0, below_0);
    LIMIT(prefill_s[0], nan, (double)INFINITY);
    LIMIT(question_s[1], 1e30, nextafter(1e30, 2e30));
    LIMIT(prefill_flop[1], 0, below_0);
    LIMIT(prefill_flop[1], nan, (double)INFINITY);
    LIMIT(profiled_at[1], 0, below_0);
    LIMIT(profiled_at[1], nan, (double)INFINITY);
    LIMIT(context_prefix_digests[0], SMALL_DIGEST SMALL_DIGEST, SMALL_DIGEST);
    LIMIT(context_prefix_digests[0], "", SMALL_DIGEST SMALL_DIGEST SMALL_DIGEST);
    LIMIT(context_prefix_digests[0], SMALL_DIGEST SMALL_DIGEST, &(SMALL_DIGEST "0123456789ABCDEF" SMALL_DIGEST)[16]);
    LIMIT(context_prefix_digests[1], "", SMALL_DIGEST); // 101 tokens
    LIMIT(curve_context[1], 0, -1);
    LIMIT(curve_context[3], 1, 2);
    LIMIT(curve_context[1], 0, 1); // then the third point's tokens do not rise
    LIMIT(curve_n_tokens[0], 1, 0);
    LIMIT(curve_n_tokens[0], 511, 512);
    LIMIT(curve_n_tokens[1], 512, 513);
    LIMIT(curve_s[0], 0, below_0);
    LIMIT(curve_s[1], 1, nextafter(1, 0));
    LIMIT(curve_s[3], DBL_MAX, (double)INFINITY);
    LIMIT(curve_s[2], 0, nan);
    LIMIT(quality_train_std[1], 0, below_0);
    LIMIT(quality_train_std[1], 1, above_1);
    LIMIT(quality_test_std[1], nan, (double)INFINITY);
    LIMIT(quality_train_n[1], 1, 0);
    LIMIT(quality_test_n[1], -1, -2);
    LIMIT(question_context[1], 1, 2);
    LIMIT(question_context[1], 0, -1);
    LIMIT(answer_n_tokens[1], 1, 0); // the answer has a text
    LIMIT(cell_bytes[1], 0, -1);
    LIMIT(size_frac[1], DBL_TRUE_MIN, 0);
    LIMIT(size_frac[1], DBL_MAX, (double)INFINITY);
    LIMIT(keep_frac[1], DBL_TRUE_MIN, 0);
    LIMIT(keep_frac[1], 1, above_1);
    LIMIT(compress_s[1], nan, below_0);
    LIMIT(decompress_s[1], 0, below_0);
    LIMIT(decode_s[0][1], DBL_TRUE_MIN, 0);
    LIMIT(decode_s[1][1], 1e30, nextafter(1e30, 2e30));
    LIMIT(decode_s[2][1], nan, below_0);
    LIMIT(similarity[1], 1.001F, nextafterf(1.001F, 2));
    LIMIT(similarity[1], -1.001F, nextafterf(-1.001F, -2));
    LIMIT(similarity[1], NAN, INFINITY);
    LIMIT(log_likelihood[1], 0, 0.5F);
    LIMIT(facts_kept[1], 1, nextafterf(1, 2));
    LIMIT(token_f1[1], NAN, -1);
    LIMIT(facts_train[1], nan, above_1);
    LIMIT(facts_test[1], 1, below_0);
    LIMIT(token_f1_train[1], 0, below_0);
    LIMIT(token_f1_test[1], 0, above_1);
    LIMIT(quality_train[1], 1, above_1);
    LIMIT(quality_test[1], 0, below_0);
    LIMIT(utility[1], -DBL_MAX, -(double)INFINITY);
    LIMIT(ttft_s[1], 0, below_0);
}

Test(table, predictions_at_their_limits)
{
    const double above_1 = nextafter(1, 2), below_0 = -DBL_TRUE_MIN, nan = (double)NAN;
    const float below_0_sd = -FLT_TRUE_MIN, no_sd = NAN, above_1_facts = nextafterf(1, 2);
    struct table t;
    struct err err;

    LIMIT(predicted_quality[1], 1, above_1);
    LIMIT(predicted_quality[1], 0, nan); // its sd is there
    LIMIT(predicted_sd[1], 0, below_0_sd);
    LIMIT(predicted_sd[1], 1, no_sd);
    LIMIT(predicted_facts[1], 1, above_1_facts);
    LIMIT(predicted_facts_sd[1], 0, below_0_sd);
    LIMIT(cell_asked[1], 0, -1);
    LIMIT(belief_mean[1], 1, above_1);
    LIMIT(belief_between[1], 0, below_0);
    LIMIT(belief_within[1], nan, below_0);
}
#undef LIMIT

/* Each line breaks one rule. */
Test(table, rules)
{
    struct table t;
    struct err err;

#define BROKEN(change)                                                                                                 \
    do {                                                                                                               \
        small_table(&t, 0, 2, 1, 2);                                                                                   \
        cr_assert_eq(table_check(&t, &err), 0, "%s", err.msg);                                                         \
        change;                                                                                                        \
        cr_assert_eq(table_check(&t, &err), ERR_FORMAT, #change);                                                      \
        table_release(&t);                                                                                             \
    } while (0)
    BROKEN(t.context_id[1] = "a/1");
    BROKEN(t.context_id[1] = "");
    BROKEN(t.context_id[1] = "\xff");
    BROKEN(t.context_token_digest[1] = "ab");
    BROKEN(t.n_tokens[0] = 0);
    BROKEN(t.kv_bytes[0] = -2);
    BROKEN(t.prefill_s[0] = -1);
    BROKEN(t.question_s[0] = (double)INFINITY);
    BROKEN(t.config_name[0] = "kivi:bits=2");
    BROKEN(t.config_name[1] = "none");
    BROKEN(t.question_context[1] = 2);
    BROKEN(t.question_context[1] = -1);
    BROKEN(t.question_split[0] = "dev");
    BROKEN(t.asked_at[0] = -1);
    BROKEN(t.asked_at[0] = 1.7e12);
    BROKEN(t.asked_at[0] = (double)INFINITY);
    BROKEN(t.answer_n_tokens[0] = -2);
    BROKEN(t.answer_n_tokens[0] = -1);
    BROKEN(t.cell_bytes[1] = -1);
    BROKEN(t.size_frac[1] = (double)NAN);
    BROKEN(t.keep_frac[1] = 1.5);
    BROKEN(t.decompress_s[1] = -0.5);
#undef BROKEN
}

/* What breaks a rule in one cell is said with its context, config and dataset. */
Test(table, cells_that_break_a_rule_are_named)
{
    struct table t;
    struct err err;

#define BAD(change, what)                                                                                              \
    do {                                                                                                               \
        small_table(&t, 0, 2, 1, 2);                                                                                   \
        cr_assert_eq(table_alloc_scores(&t, 0, &err), 0);                                                              \
        t.quality_train[3] = 0;                                                                                        \
        t.quality_test[3] = 1;                                                                                         \
        cr_assert_eq(table_check(&t, &err), 0, "%s", err.msg);                                                         \
        change;                                                                                                        \
        cr_assert_eq(table_check(&t, &err), ERR_FORMAT, #change);                                                      \
        cr_assert_str_eq(err.msg, "context 'b/2' with 'knorm:drop=0.5': " what);                                       \
        table_release(&t);                                                                                             \
    } while (0)
    BAD(t.cell_bytes[3] = -2, "bytes is not a size");
    BAD(t.cell_bytes[3] = INT64_MIN, "bytes is not a size");
    BAD(t.size_frac[3] = (double)NAN, "size_frac is not a fraction");
    BAD(t.size_frac[3] = (double)INFINITY, "size_frac is not a fraction");
    BAD(t.size_frac[3] = -0.5, "size_frac is not a fraction");
    BAD(t.decompress_s[3] = (double)INFINITY, "compress_s or decompress_s is not a number of seconds");
    BAD(t.decode_s[1][3] = -0.5, "the time of a generated token is not a number of seconds above 0");
    BAD(t.decode_s[2][3] = (double)INFINITY, "the time of a generated token is not a number of seconds above 0");
    BAD(t.quality_train[3] = 1.0001, "quality/train is not within 0 and 1");
    BAD(t.quality_train[3] = -0.0001, "quality/train is not within 0 and 1");
    BAD(t.quality_train[3] = -(double)INFINITY, "quality/train is not within 0 and 1");
    BAD(t.quality_test[3] = 2, "quality/test is not within 0 and 1");
    BAD(t.quality_test[3] = -1, "quality/test is not within 0 and 1");
    BAD(t.quality_test[3] = (double)NAN; t.quality_test_std[3] = 0, "a deviation without a quality");
    BAD(t.quality_test[3] = (double)NAN; t.quality_test_n[3] = 1, "a number without a quality");
    BAD(t.quality_train_n[3] = 0, "a quality without a number");
    BAD(t.quality_train_n[3] = -2, "the number of a quality is not a count");
    BAD(t.quality_train_std[3] = 1.5, "the deviation of a quality is not within 0 and 1");
#undef BAD
}

Test(table, refuses_a_file_cut_anywhere)
{
    struct table t;
    struct err err;
    struct buf whole = { 0 };
    char path[] = "/tmp/evp-unit-XXXXXX";

    close(mkstemp(path));
    small_table(&t, 0, 3, 1, 3);
    cr_assert_eq(table_write(&t, path, &err), 0);
    table_release(&t);
    cr_assert_eq(file_read(&whole, path, 1 << 20, &err), 0);
    for (size_t n = 0; n < whole.n; n += 257) {
        cr_assert_eq(file_write(path, whole.at, n, &err), 0);
        cr_assert_eq(table_read(&t, path, TABLE_ALL, &err), ERR_FORMAT, "cut to %zu bytes of %zu", n, whole.n);
    }
    buf_release(&whole);
    unlink(path);
}
