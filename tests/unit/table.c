/* The table: file and back, uniting, and the rules that reading applies. */
#include "base/buf.h"
#include "base/file.h"
#include "profiler/table.h"

#include <criterion/criterion.h>
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
    b.cell_bytes[0] = 77; // b/2 none: a has it already
    cr_assert_eq(unite(&both, &a, &b, &err), 0, "%s", err.msg);
    table_release(&a);
    table_release(&b);
    cr_assert(both.n_contexts == 3 && both.n_configs == 3 && both.n_questions == 3);
    cr_assert_str_eq(both.config_name[2], "kivi:bits=2");
    const int64_t bytes[] = { 0, 1, -1, 1000, 1001, 1002, 2000, -1, 2002 };
    for (int i = 0; i < 9; i++)
        cr_assert_eq(both.cell_bytes[i], bytes[i], "cell %d is %lld", i, (long long)both.cell_bytes[i]);
    cr_assert(isnan(both.size_frac[2]) && both.answer_n_tokens[2] == -1 && !*both.answer_text[2]);
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
