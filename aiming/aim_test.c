/* aim_test.c - lists the test questions of each context over the variant that a plan chose. Answers to test questions
 * never decide anything, so other variants would only cost time. A context that is not compressed needs none: its
 * answers are the reference's. */
#include "aiming/aim_job.h"

#include <stdlib.h>
#include <string.h>

struct test_list {
    struct aim_job *job;
    struct manifest manifest;
    int **test, *n_test; // (contexts): numbers of each context's test questions
    int *numbers;        // the memory of `test`
    struct aim_tested counts;
};

static void test_release(struct test_list *a)
{
    free(a->test);
    free(a->n_test);
    free(a->numbers);
    manifest_release(&a->manifest);
}

/* The context of a test question, or -1. */
static int tested_context(const struct aim_job *j, const struct question *q)
{
    return q->split == SPLIT_TEST ? map_find(&j->contexts.ids, q->context, strlen(q->context)) : -1;
}

static int share_tests(struct test_list *a, struct err *err)
{
    const struct aim_job *j = a->job;
    size_t n = (size_t)j->contexts.n;
    int used = 0;

    a->test = calloc(n + 1, sizeof(int *));
    a->n_test = calloc(n + 1, sizeof(int));
    a->numbers = calloc((size_t)j->questions.n + 1, sizeof(int));
    if (!a->test || !a->n_test || !a->numbers)
        return err_nomem(err);
    for (int q = 0; q < j->questions.n; q++) {
        int c = tested_context(j, &j->questions.at[q]);
        if (c >= 0)
            a->n_test[c]++;
    }
    for (int c = 0; c < j->contexts.n; c++) {
        a->test[c] = a->numbers + used;
        used += a->n_test[c];
        a->n_test[c] = 0;
    }
    for (int q = 0; q < j->questions.n; q++) {
        int c = tested_context(j, &j->questions.at[q]);
        if (c >= 0)
            a->test[c][a->n_test[c]++] = q;
    }
    return 0;
}

/* Writes the row of a placement, if it needs one. */
static int put_row(struct test_list *a, struct rows_out *out, const struct placement *p, struct err *err)
{
    int c = map_find(&a->job->contexts.ids, p->id, strlen(p->id));

    if (p->tier < 0 || strcmp(p->config, "none") == 0)
        return 0;
    if (c < 0 || a->n_test[c] == 0) {
        a->counts.n_unknown += c < 0;
        a->counts.n_untested += c >= 0;
        return 0;
    }
    struct json_out w = rows_begin(out);
    json_put_text(&w, "context", p->id);
    json_begin(&w, "configs", '[');
    json_put_text(&w, NULL, p->config);
    json_end(&w, ']');
    json_begin(&w, "questions", '[');
    for (int i = 0; i < a->n_test[c]; i++)
        json_put_text(&w, NULL, a->job->questions.at[a->test[c][i]].id);
    json_end(&w, ']');
    a->counts.n_rows++;
    a->counts.n_answers += 2 * a->n_test[c];
    return rows_put(out, &w, err);
}

static void put_split(const void *arg, struct json_out *w)
{
    (void)arg;
    json_put_text(w, "split", "test");
}

static int write_list(struct test_list *a, struct err *err)
{
    const struct aim_job *j = a->job;
    struct json *manifest = a->manifest.header ? json_parse(a->manifest.header, strlen(a->manifest.header), err) : NULL;
    const struct json *const from[] = { j->contexts.header, j->questions.header, manifest };
    struct rows_made made = { .kind = "cells",
                              .tool = "evp-aim",
                              .args = j->opt->args,
                              .n_args = j->opt->n_args,
                              .from = from,
                              .n_from = 3,
                              .more = put_split };
    struct rows_out out = { 0 };
    int code = rows_create(&out, j->opt->output, &made, err);

    for (int i = 0; i < a->manifest.n && !code; i++)
        code = put_row(a, &out, &a->manifest.at[i], err);
    if (!code)
        code = rows_finish(&out, err);
    rows_abort(&out);
    json_free(manifest);
    return code;
}

int aim_test(struct aim_job *j, struct aim_tested *tested, struct err *err)
{
    struct test_list a = { .job = j };
    int code = manifest_read(&a.manifest, j->opt->test, err);

    if (!code)
        code = share_tests(&a, err);
    if (!code)
        code = write_list(&a, err);
    *tested = a.counts;
    test_release(&a);
    return code;
}
