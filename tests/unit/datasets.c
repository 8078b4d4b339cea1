/* From published prompts and files of every kind to contexts. */
#include "logs/archive.h"
#include "base/digest.h"
#include "base/file.h"
#include "datasets/dataset.h"
#include "datasets/import.h"
#include "datasets/row.h"
#include "datasets/select.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- prompts -------------------------------------------------------------- */

/* hashlib.sha256(prompt).hexdigest()[:16] over the values of LongBench's config/dataset2prompt.json */
static const char *const published[][2] = {
    { "narrativeqa", "aada7ed24b06abac" },
    { "qasper", "0fbdd123fe7f83d6" },
    { "multifieldqa_en", "20b4666a2de8a1f7" },
    { "multifieldqa_zh", "344b3a4e557cd547" },
    { "hotpotqa", "9ec4ae308865bd0c" },
    { "2wikimqa", "9ec4ae308865bd0c" },
    { "musique", "9ec4ae308865bd0c" },
    { "dureader", "ae53329f51b17908" },
    { "gov_report", "91c25d585b189ced" },
    { "qmsum", "dca23b678fe0183b" },
    { "multi_news", "2af3f28c40b902e6" },
    { "vcsum", "3e5d8241bc9b512e" },
    { "trec", "0eff8bebdba99d91" },
    { "triviaqa", "00a802e6377e72fc" },
    { "samsum", "a68d884234907eef" },
    { "lsht", "f3edabdf7fae53d6" },
    { "passage_count", "986550b6c61009c6" },
    { "passage_retrieval_en", "39b96b7fa52bdd2a" },
    { "passage_retrieval_zh", "c1e2346e245eb365" },
    { "lcc", "6a1f24cf0bb83cd9" },
    { "repobench-p", "ee9ec182ea5ffeb7" },
    /* SCBench's multiturn_templates and LongBench v2's prompts/0shot.txt with these fields, choices taken out */
    { "scbench_kv", "afa97419dd69cd74" },
    { "scbench_choice_eng", "05d1fe9d53d8e888" },
    { "scbench_qa_eng", "658a3b345f204ec8" },
    { "scbench_qa_chn", "6b4b8912907d07b6" },
    { "scbench_repoqa", "55dc318d09515672" },
    { "longbench-v2", "dde31eacfa9d012f" },
};
enum { N_PUBLISHED = sizeof(published) / sizeof(*published) };

/* s with `from` replaced by `to` once. */
static char *replaced(const char *s, const char *from, const char *to)
{
    const char *at = strstr(s, from);
    struct buf b = { 0 };

    if (!at)
        return strdup(s);
    buf_add(&b, s, (size_t)(at - s));
    buf_adds(&b, to);
    buf_adds(&b, at + strlen(from));
    return buf_take(&b);
}

Test(datasets, prompts_are_the_published_ones)
{
    for (int i = 0; i < N_PUBLISHED; i++) {
        const struct dataset *d = dataset_find(published[i][0]);
        char hex[DIGEST_HEX], *after;
        struct buf b = { 0 };
        struct err e;

        cr_assert(d, "%s", published[i][0]);
        after = replaced(d->after, "{question}", "{input}");
        buf_printf(&b, "%s{context}%s", d->before, after);
        cr_assert(!digest_sha256(b.at, b.n, hex, &e));
        hex[16] = '\0';
        cr_assert_str_eq(hex, published[i][1], "%s", d->name);
        free(after);
        buf_release(&b);
    }
}

Test(datasets, names_of_longbench_e_have_the_same_prompts)
{
    cr_assert_eq(dataset_find("qasper_e"), dataset_find("qasper"));
    cr_assert(!dataset_find("qaspe") && !dataset_find("_e") && !dataset_find("") && !dataset_find("qasper_e_e"));
}

Test(datasets, text_and_ask_make_the_published_prompt_with_the_document_once)
{
    static const char document[] = "@the document@", question[] = "@the question@";

    for (int i = 0; i < N_PUBLISHED; i++) {
        const struct dataset *d = dataset_find(published[i][0]);
        struct dataset_row row = { .document = document, .input = question };
        struct context c = { 0 };
        struct err e;

        cr_assert(!dataset_prompt(d, &row, &c, &e));
        size_t end = strlen(c.text) - strlen(document);
        cr_assert_str_eq(c.text + end, document, "%s", d->name);
        cr_assert(strstr(c.text, document) == c.text + end && !strstr(c.ask, document));
        char *first = strstr(c.ask, "{question}");
        cr_assert(first && !strstr(first + 1, "{question}"), "%s", d->name);
        cr_assert_eq(c.inputs.n, 1);
        bool open = strstr(d->after, "{question}") != NULL;
        cr_assert_str_eq(c.ask, open ? d->after : DATASET_ASK);
        if (open)
            cr_assert_str_eq(c.inputs.at->question, question);
        else
            cr_assert(strstr(d->after, c.inputs.at->question) && *c.inputs.at->question);
        context_release(&c);
    }
}

Test(datasets, summaries_ask_for_what_was_published)
{
    struct dataset_row row = { .document = "A report.", .input = "" };
    struct context c = { 0 };
    struct err e;

    cr_assert(!dataset_prompt(dataset_find("gov_report"), &row, &c, &e));
    cr_assert_str_eq(c.inputs.at->question, "Now, write a one-page summary of the report.\n\nSummary:");
    context_release(&c);
}

/* ---- rows ----------------------------------------------------------------- */

static int context_of(struct context *c, const char *json, struct err *e)
{
    struct row_origin origin = { .stem = "mine", .line = 7 };
    struct json *row = json_parse(json, strlen(json), e);

    cr_assert(row, "%s", json);
    int code = row_context(c, row, &origin, e);
    json_free(row);
    return code;
}

Test(datasets, rows_without_names_are_named_by_file_and_line)
{
    struct context c;
    struct err e;

    cr_assert(!context_of(&c, "{\"context\":\"D\",\"input\":\"Q\",\"answers\":\"A\"}", &e));
    cr_assert_str_eq(c.id, "mine/7");
    cr_assert_str_eq(c.dataset, "mine");
    cr_assert_str_eq(c.text, "D");
    cr_assert_str_eq(c.ask, CONTEXT_PLAIN_ASK);
    cr_assert_str_eq(c.inputs.at->answer[0], "A");
    context_release(&c);
    cr_assert(!context_of(&c, "{\"context\":\"D\",\"_id\":12,\"dataset\":\"x\"}", &e));
    cr_assert_str_eq(c.id, "x/12");
    cr_assert_eq(c.inputs.n, 0);
    context_release(&c);
}

Test(datasets, questions_under_other_names)
{
    struct context c;
    struct err e;

    cr_assert(!context_of(&c,
                          "{\"context\":\"D\",\"question\":\"Q?\",\"choice_A\":\"a\",\"choice_B\":\"b\",\"choice_C\":"
                          "\"c\",\"choice_D\":\"d\",\"answer\":\"B\"}",
                          &e));
    cr_assert_str_eq(c.inputs.at->question, "Q?\nChoices:\n(A) a\n(B) b\n(C) c\n(D) d");
    cr_assert_str_eq(c.inputs.at->answer[0], "B");
    context_release(&c);
    cr_assert(!context_of(&c, "{\"context\":\"D\",\"input\":\"\",\"query\":\"Q?\",\"question\":3}", &e));
    cr_assert_str_eq(c.inputs.at->question, "Q?");
    context_release(&c);
    cr_assert(!context_of(&c, "{\"context\":\"D\",\"choice_A\":\"a\"}", &e));
    cr_assert_eq(c.inputs.n, 0);
    context_release(&c);
}

Test(datasets, rows_that_cannot_be_used)
{
    static const char *const bad[][2] = {
        { "{\"input\":\"Q\"}", "the row has neither a field 'context' nor a field 'text'" },
        { "{\"context\":\"\"}", "the document is empty" },
        { "{\"context\":3}", "field 'context' is not a string" },
        { "{\"context\":\"D\",\"input\":3}", "field 'input' is not a string" },
        { "{\"context\":\"D\",\"input\":\"Q\",\"answers\":{}}", "field 'answers' is not a list" },
        { "{\"context\":\"D\",\"input\":\"Q\",\"answers\":[3,[]]}",
          "field 'answers' holds something that is neither a string nor a number" },
        { "{\"context\":\"D\",\"answer_prefix\":[]}", "field 'answer_prefix' is not a string" },
        { "{\"input\":\"Q?\",\"outputs\":[]}", "field 'input' has no question of RULER" },
        { "{\"input\":{},\"outputs\":[]}", "field 'input' is not a string" },
        { "{\"multi_turns\":[]}", "field 'input' is missing" },
        { "{\"context\":\"D\",\"multi_turns\":[{\"input\":\"Q\",\"answer\":true}]}", "field 'answers' is not a list" },
        { "{\"context\":\"D\",\"dataset\":[]}", "field 'dataset' is not a string" },
        { "{\"text\":\"D\"}", "field 'id' is missing" },
        { "{\"text\":\"\",\"id\":\"a\"}", "field 'text' is empty" },
    };
    struct context c;
    struct err e;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_assert_eq(context_of(&c, bad[i][0], &e), ERR_FORMAT, "%s", bad[i][0]);
        cr_assert_str_eq(e.msg, bad[i][1]);
        cr_assert(!c.text && !c.inputs.at && !c.id, "a failed row leaves nothing");
    }
}

/* ---- the import ----------------------------------------------------------- */

struct notes {
    int warnings, rows;
    char last[512];
};

static void take_note(void *arg, enum import_note what, const char *sentence)
{
    struct notes *n = arg;

    n->warnings += what == IMPORT_WARNING;
    n->rows += what == IMPORT_ROW_LEFT_OUT;
    snprintf(n->last, sizeof(n->last), "%s", sentence);
}

static int import_text_of(struct import *im, const char *name, const char *bytes, size_t n, struct err *e)
{
    char *copy = malloc(n + 1), label[64];

    memcpy(copy, bytes, n);
    copy[n] = '\0';
    snprintf(label, sizeof(label), "'%s'", name);
    struct import_file file = { .label = label, .name = name, .bytes = copy, .n = n };
    int code = import_bytes(im, &file, e);
    free(copy);
    return code;
}

#define IMPORT(im, name, bytes, e) import_text_of(im, name, bytes, sizeof(bytes) - 1, e)

Test(import, rows_with_the_same_text_become_one_context)
{
    struct notes notes = { 0 };
    struct import im = { .note = take_note, .arg = &notes };
    struct err e;

    cr_assert(!IMPORT(&im, "a.jsonl",
                      "{\"context\":\"D\",\"input\":\"one\",\"_id\":\"1\"}\n{\"context\":\"E\",\"_id\":\"2\"}\n"
                      "{\"context\":\"D\",\"input\":\"two\",\"_id\":\"3\"}\n"
                      "{\"context\":\"D\",\"input\":\"one\",\"_id\":\"4\"}\n",
                      &e));
    cr_assert_eq(im.contexts.n, 2);
    cr_assert_str_eq(im.contexts.at[0].id, "a/1");
    cr_assert_eq(im.contexts.at[0].inputs.n, 2);
    cr_assert_str_eq(im.contexts.at[0].inputs.at[1].question, "two");
    cr_assert_eq(notes.rows, 0);
    import_release(&im);
}

Test(import, an_id_of_two_texts_is_reported)
{
    struct notes notes = { 0 };
    struct import im = { .note = take_note, .arg = &notes };
    struct err e;

    cr_assert(!IMPORT(&im, "a.jsonl",
                      "{\"text\":\"D\",\"id\":\"1\"}\n{\"text\":\"E\",\"id\":\"1\"}\n{\"text\":\"F\",\"id\":\"2\"}\n",
                      &e));
    cr_assert_eq(im.contexts.n, 2);
    cr_assert_eq(im.n_left_out, 1);
    cr_assert_eq(notes.rows, 1);
    cr_assert_str_eq(notes.last, "'a.jsonl' line 2: id '1' already belongs to another text");
    import_release(&im);
}

Test(import, texts_are_named_by_their_files)
{
    static const char *const id[] = { "a", "a-2", "Apache-2.0", "a-3" };
    struct notes notes = { 0 };
    struct import im = { .note = take_note, .arg = &notes };
    struct err e;

    cr_assert(!IMPORT(&im, "x/a.txt", "one", &e) && !IMPORT(&im, "y/a.md", "two", &e));
    cr_assert(!IMPORT(&im, "Apache-2.0", "three", &e) && !IMPORT(&im, "a.TXT", "four", &e));
    cr_assert(!IMPORT(&im, "z/again.txt", "one", &e));
    cr_assert_eq(im.contexts.n, 4);
    for (int i = 0; i < 4; i++)
        cr_assert_str_eq(im.contexts.at[i].id, id[i]);
    import_release(&im);
}

Test(import, malformed_utf8_is_cleaned_and_binaries_are_left_out)
{
    struct notes notes = { 0 };
    struct import im = { .note = take_note, .arg = &notes };
    struct err e;

    cr_assert(!IMPORT(&im, "latin.txt", "caf\xe9", &e));
    cr_assert_str_eq(im.contexts.at[0].text, "caf\xef\xbf\xbd");
    cr_assert_eq(notes.warnings, 1);
    cr_assert(!IMPORT(&im, "mark.txt", "\xef\xbb\xbfmarked", &e));
    cr_assert_str_eq(im.contexts.at[1].text, "marked");
    cr_assert(!IMPORT(&im, "b.txt", "a\0b", &e) && !IMPORT(&im, "empty.txt", "", &e));
    cr_assert_eq(im.n_left_out, 2);
    cr_assert_eq(im.contexts.n, 2);
    import_release(&im);
}

/* Texts above 32 MiB are left out, one byte below and at that are not. */
Test(import, length_of_a_text)
{
    struct notes notes = { 0 };
    struct import im = { .note = take_note, .arg = &notes };
    char *text = malloc(CONTEXT_MAX_TEXT + 2);
    struct err e;

    memset(text, 'x', CONTEXT_MAX_TEXT + 2);
    for (size_t n = CONTEXT_MAX_TEXT - 1; n <= CONTEXT_MAX_TEXT + 1; n++)
        cr_assert(!import_text_of(&im, "long.txt", text, n, &e));
    cr_assert_eq(im.contexts.n, 2);
    cr_assert_eq(im.n_left_out, 1);
    cr_assert_str_eq(notes.last, "'long.txt': the text of 'long-3' is longer than 32 MiB");
    free(text);
    import_release(&im);
}

Test(import, a_damaged_file_of_rows_fails_whole)
{
    struct notes notes = { 0 };
    struct import im = { .note = take_note, .arg = &notes };
    struct err e;

    cr_assert_eq(IMPORT(&im, "cut.jsonl", "{\"text\":\"D\",\"id\":\"1\"}\n{\"text\":\"E\",\"i", &e), ERR_FORMAT);
    cr_assert(strstr(e.msg, "'cut.jsonl' line 2: malformed JSON"), "%s", e.msg);
    cr_assert_eq(IMPORT(&im, "ours.jsonl", "{\"evp\":\"contexts\",\"version\":1}\n{\"text\":\"E\",\"id\":\"1\"}\n", &e),
                 ERR_FORMAT);
    cr_assert(strstr(e.msg, "no end line"), "%s", e.msg);
    cr_assert_eq(IMPORT(&im, "q.jsonl", "{\"evp\":\"questions\",\"version\":1}\n", &e), ERR_FORMAT);
    cr_assert_eq(IMPORT(&im, "empty.jsonl", "", &e), ERR_FORMAT);
    import_release(&im);
}

Test(import, unwanted_datasets_are_dropped_but_known)
{
    struct notes notes = { 0 };
    struct import im = { .note = take_note, .arg = &notes };
    struct err e;

    map_add(&im.wanted, "b", 1, NULL);
    cr_assert(
        !IMPORT(&im, "x.jsonl", "{\"context\":\"D\",\"dataset\":\"a\"}\n{\"context\":\"E\",\"dataset\":\"b\"}\n", &e));
    cr_assert_eq(im.contexts.n, 1);
    cr_assert_str_eq(im.contexts.at[0].dataset, "b");
    cr_assert_geq(map_find(&im.datasets, "a", 1), 0);
    import_release(&im);
}

/* ---- choosing ------------------------------------------------------------- */

/* 20 contexts, the datasets taking turns; context i has i tokens. */
static void twenty(struct import *im)
{
    static struct notes notes;
    struct buf rows = { 0 };
    struct err e;

    *im = (struct import){ .note = take_note, .arg = &notes };
    for (int i = 0; i < 20; i++)
        buf_printf(&rows, "{\"id\":\"%d\",\"text\":\"text %d\",\"dataset\":\"%s\"}\n", i, i, i % 2 ? "odd" : "even");
    cr_assert(!import_text_of(im, "x.jsonl", rows.at, rows.n, &e));
    buf_release(&rows);
}

static int length_is_id(void *arg, struct context *c, struct err *e)
{
    (void)e;
    ++*(int *)arg;
    c->n_tokens = strtol(c->id, NULL, 10);
    return 0;
}

static char *chosen(const struct selection *s)
{
    struct buf ids = { 0 };
    struct import im;
    struct err e;

    twenty(&im);
    cr_assert(!select_contexts(&im.contexts, s, &e));
    for (int i = 0; i < im.contexts.n; i++) {
        cr_assert_eq(map_find(&im.contexts.ids, im.contexts.at[i].id, strlen(im.contexts.at[i].id)), i);
        buf_printf(&ids, "%s ", im.contexts.at[i].id);
    }
    import_release(&im);
    return buf_take(&ids);
}

Test(select, the_first_of_each_dataset)
{
    char *ids = chosen(&(struct selection){ .limit = 2 });

    cr_assert_str_eq(ids, "0 1 2 3 ");
    free(ids);
}

Test(select, the_limit_counts_what_has_the_right_length)
{
    int counted = 0;
    struct selection s = { .limit = 3, .min = 5, .max = 11, .count = length_is_id, .arg = &counted };
    char *ids = chosen(&s);

    cr_assert_str_eq(ids, "5 6 7 8 9 10 ");
    cr_assert_eq(counted, 11, "counting goes on to what fills the limit, and no further: %d", counted);
    free(ids);
}

Test(select, lengths_are_inclusive)
{
    int counted = 0;
    char *ids = chosen(&(struct selection){ .min = 5, .max = 7, .count = length_is_id, .arg = &counted });

    cr_assert_str_eq(ids, "5 6 7 ");
    free(ids);
}

Test(select, samples_depend_on_the_seed_alone)
{
    char *one = chosen(&(struct selection){ .limit = 3, .sampled = true, .seed = 1 });
    char *again = chosen(&(struct selection){ .limit = 3, .sampled = true, .seed = 1 });
    char *other = chosen(&(struct selection){ .limit = 3, .sampled = true, .seed = 2 });

    cr_assert_str_eq(one, again);
    cr_assert_str_neq(one, other);
    free(one);
    free(again);
    free(other);
}
