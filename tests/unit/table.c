/* The table: file and back, uniting, and the rules that reading applies. */
#include "base/buf.h"
#include "base/file.h"
#include "profiler/table_column.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <unistd.h>

static const char *const context[] = { "a/1", "b/2", "c/3" };
static const char *const config[] = { "none", "knorm:drop=0.5", "kivi:bits=2" };
static const char *const question[] = { "q0", "q1", "q2", "q3" };

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Two contexts from `first`, the configs from `first_config` after none, two questions each; cell values tell where
 * they come from. */
static void make(struct table *t, int first, int n, int first_config, int n_configs)
{
    struct err err;

    cr_assert_eq(table_alloc(t, n, n_configs, n, &err), 0);
    cr_assert(!table_set_text(&t->model, "m", &err) && !table_set_text(&t->model_digest, DIGEST, &err));
    cr_assert(!table_set_text(&t->lineage, "[\"\xc3\xa9\"]", &err));
    t->max_new_tokens = 32;
    for (int v = 0; v < n_configs; v++)
        t->config_name[v] = config[v ? first_config + v - 1 : 0];
    for (int i = 0; i < n; i++) {
        t->context_id[i] = context[first + i];
        t->context_token_digest[i] = DIGEST;
        t->n_tokens[i] = 100 + first + i;
        t->kv_bytes[i] = 1 << 20;
        t->prefill_s[i] = 0.25;
        t->question_id[i] = question[first + i];
        t->question_text[i] = "why?";
        t->question_split[i] = "train";
        t->question_context[i] = i;
        for (int v = 0; v < n_configs; v++) {
            int at = i * n_configs + v;
            t->cell_bytes[at] = 1000 * (first + i) + (v ? first_config + v - 1 : 0);
            t->size_frac[at] = t->keep_frac[at] = 0.5;
            t->compress_s[at] = t->decompress_s[at] = 0;
            t->answer_n_tokens[at] = v + 1;
            t->answer_text[at] = v ? "na\xc3\xafve\nanswer" : "yes";
        }
    }
}

Test(table, comes_back_from_its_file)
{
    struct table t, back;
    struct err err;
    char path[] = "/tmp/evp-unit-XXXXXX";

    close(mkstemp(path));
    make(&t, 0, 3, 1, 3);
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

Test(table, same_content_same_bytes)
{
    struct table t;
    struct err err;
    struct buf a = { 0 }, b = { 0 };
    char path[] = "/tmp/evp-unit-XXXXXX";

    close(mkstemp(path));
    make(&t, 0, 3, 1, 3);
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
    static const enum table_want want[] = { TABLE_ALL, TABLE_PLAN, TABLE_PLAN_LENIENT };
    char path[] = "/tmp/evp-unit-XXXXXX";
    struct table t;
    struct err err;

    rename_in_copy(path, "question_s", "question_t");
    for (int i = 0; i < 3; i++) {
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

    make(&t, 0, 1, 1, 3);
    cr_assert_eq(table_find_config(&t, "none"), 0);
    cr_assert_eq(table_find_config(&t, "kivi:bits=2"), 2);
    cr_assert_eq(table_find_config(&t, "kivi:bits=4"), -1);
    table_release(&t);
}

/* a and b united, or the error's message in err. */
static int unite(struct table *out, const struct table *a, const struct table *b, struct err *err)
{
    return table_unite(out, (const struct table *const[]){ a, b }, 2, err);
}

Test(table, unites_what_each_lacks)
{
    struct table a, b, both;
    struct err err;

    make(&a, 0, 2, 1, 2); // a/1 b/2 with none, knorm
    make(&b, 1, 2, 2, 2); // b/2 c/3 with none, kivi
    a.cell_bytes[2] = 0;  // b/2 none: a has it already, with nothing in it
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

Test(table, does_not_unite_what_differs)
{
    struct table a, b, both;
    struct err err;

    make(&a, 0, 2, 1, 2);
    make(&b, 1, 2, 1, 2);
    b.max_new_tokens = 31;
    cr_assert_eq(unite(&both, &a, &b, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "table 2 of 2 was made with --max-new-tokens 31, not 32");
    b.max_new_tokens = 32;
    b.context_token_digest[0] = "";
    cr_assert_eq(unite(&both, &a, &b, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "context 'b/2' has different tokens in two tables");
    b.context_token_digest[0] = DIGEST;
    b.question_text[0] = "when?";
    cr_assert_eq(unite(&both, &a, &b, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "question 'q1' is different in two tables");
    cr_assert(!both.context_id && !both.model, "a failure must leave an empty table");
    table_release(&a);
    table_release(&b);
}

Test(table, says_how_two_were_made_differently)
{
    const struct table_made want = { "m", "01", "cpu", "f32", 32 };
    char text[TABLE_DIFFERENCE];

#define DIFFERS(member, value, how)                                                                                    \
    do {                                                                                                               \
        struct table_made is = want;                                                                                   \
        cr_assert_null(table_made_difference(text, &is, &want));                                                       \
        is.member = value;                                                                                             \
        cr_assert_str_eq(table_made_difference(text, &is, &want), how);                                                \
    } while (0)
    DIFFERS(model_digest, "02", "another model of the name 'm'");
    DIFFERS(backend, "reference", "--backend reference, not cpu");
    DIFFERS(dtype, "bf16", "--dtype bf16, not f32");
    DIFFERS(max_new_tokens, -1, "--max-new-tokens -1, not 32");
#undef DIFFERS
    struct table_made other = want;
    other.model = "n";
    cr_assert_null(table_made_difference(text, &other, &want), "a model is its digest: a file may be renamed");
    other.model_digest = "02";
    cr_assert_str_eq(table_made_difference(text, &other, &want), "model 'n', not 'm'");
}

Test(table, means_are_over_what_is_there)
{
    struct table t;

    make(&t, 0, 2, 1, 2);
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
        make(&t, 0, 1, 1, 1);
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
        cr_assert_eq(table_drop_cells(&t), 3);
        cr_assert(t.cell_bytes[n - 1] == -1 && t.cell_bytes[n - 2] == n - 2 && isnan(t.size_frac[n / 2]));
        cr_assert_eq(table_check(&t, &err), 0, "%s", err.msg);
        t.context_id[n - 1] = "\xff";
        cr_assert_eq(table_check(&t, &err), ERR_FORMAT);
        snprintf(want, sizeof(want), "'/contexts/id' element %d is not UTF-8", n - 1);
        cr_assert_str_eq(err.msg, want);
        table_release(&t);
    }
}

/* Each line is the last value that a rule allows, then the first that it does not. */
Test(table, values_at_their_limits)
{
    const double above_1 = nextafter(1, 2), below_0 = -DBL_TRUE_MIN, nan = (double)NAN;
    struct table t;
    struct err err;

#define LIMIT(member, good, bad)                                                                                       \
    do {                                                                                                               \
        make(&t, 0, 2, 1, 2);                                                                                          \
        cr_assert_eq(table_alloc_scores(&t, 2, &err), 0);                                                              \
        t.tier_name[0] = "dram";                                                                                       \
        t.tier_name[1] = "recompute";                                                                                  \
        t.member = good;                                                                                               \
        cr_assert_eq(table_check(&t, &err), 0, #member " = " #good ": %s", err.msg);                                   \
        t.member = bad;                                                                                                \
        cr_assert_eq(table_check(&t, &err), ERR_FORMAT, #member " = " #bad);                                           \
        table_release(&t);                                                                                             \
    } while (0)
    LIMIT(n_contexts, 2, 0);
    LIMIT(n_configs, 2, 0);
    LIMIT(n_tokens[0], 1, 0);
    LIMIT(n_tokens[0], -1, -2);
    LIMIT(kv_bytes[0], 1, 0);
    LIMIT(kv_bytes[0], -1, -2);
    LIMIT(prefill_s[0], 0, below_0);
    LIMIT(prefill_s[0], nan, (double)INFINITY);
    LIMIT(question_s[1], DBL_MAX, (double)INFINITY);
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
    LIMIT(similarity[1], 1.001F, nextafterf(1.001F, 2));
    LIMIT(similarity[1], -1.001F, nextafterf(-1.001F, -2));
    LIMIT(similarity[1], NAN, INFINITY);
    LIMIT(quality_train[1], 1, above_1);
    LIMIT(quality_test[1], 0, below_0);
    LIMIT(utility[1], -DBL_MAX, -(double)INFINITY);
    LIMIT(ttft_s[1], 0, below_0);
#undef LIMIT
}

/* Each line breaks one rule. */
Test(table, rules)
{
    struct table t;
    struct err err;

#define BROKEN(change)                                                                                                 \
    do {                                                                                                               \
        make(&t, 0, 2, 1, 2);                                                                                          \
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
        make(&t, 0, 2, 1, 2);                                                                                          \
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
    BAD(t.quality_train[3] = 1.0001, "quality/train is not within 0 and 1");
    BAD(t.quality_train[3] = -0.0001, "quality/train is not within 0 and 1");
    BAD(t.quality_train[3] = -(double)INFINITY, "quality/train is not within 0 and 1");
    BAD(t.quality_test[3] = 2, "quality/test is not within 0 and 1");
    BAD(t.quality_test[3] = -1, "quality/test is not within 0 and 1");
#undef BAD
}

Test(table, refuses_a_file_cut_anywhere)
{
    struct table t;
    struct err err;
    struct buf whole = { 0 };
    char path[] = "/tmp/evp-unit-XXXXXX";

    close(mkstemp(path));
    make(&t, 0, 3, 1, 3);
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
