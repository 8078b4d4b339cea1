/* Times of questions: weights, what is left out, and what a run renews and forgets. */
#include "profiler/table/table_asked.h"
#include "tests/unit/small_table.h"

#include <criterion/criterion.h>
#include <string.h>

enum { DAY = 86400 };
static const double unknown = (double)NAN, now = 1.75e9;

/* Three contexts with a question each, asked 0, 10 and 40 days ago; a curve and scores. */
static void make(struct table *t)
{
    struct err err;

    small_table(t, 0, 3, 1, 2);
    small_table_curve(t, 0.1);
    cr_assert_eq(table_alloc_scores(t, 2, &err), 0);
    for (int i = 0; i < 3; i++) {
        t->asked_at[i] = now - (double[]){ 0, 10, 40 }[i] * DAY;
        for (int v = 0; v < 2; v++)
            t->similarity[2 * i + v] = (float)(2 * i + v) / 8;
    }
    t->tier_name[0] = "dram";
    t->tier_name[1] = "recompute";
}

Test(asked, a_weight_halves_with_age)
{
    struct table t;
    struct err err;

    make(&t);
    double *w = table_asked_weights(&t, 10 * DAY, &err);
    cr_assert(w && w[0] == 1 && w[1] == 0.5 && w[2] == 0.0625);
    free(w);
    w = table_asked_weights(&t, 0, &err);
    cr_assert(w && w[0] == 1 && w[1] == 1 && w[2] == 1);
    free(w);
    t.asked_at[0] = unknown; // the newest is now 10 days old
    w = table_asked_weights(&t, 10 * DAY, &err);
    cr_assert(w && w[0] == 1 && w[1] == 1 && w[2] == 0.125);
    free(w);
    t.asked_at[1] = t.asked_at[2] = unknown;
    w = table_asked_weights(&t, 1e-300, &err);
    cr_assert(w && w[0] == 1 && w[1] == 1 && w[2] == 1);
    free(w);
    t.asked_at[0] = QUESTION_ASKED_MAX;
    t.asked_at[1] = 0;
    w = table_asked_weights(&t, 1e-300, &err);
    cr_assert(w && w[0] == 1 && w[1] == 0 && w[2] == 1);
    free(w);
    table_release(&t);
}

/* A context leaves with its question, cells, answers and points, and all others keep theirs. */
Test(asked, rows_left_out_take_everything_along)
{
    struct table t;
    struct err err;

    make(&t);
    cr_assert_eq(table_alloc_read(&t, &err), 0);
    t.cell_bytes_read[5] = 17;
    cr_assert_eq(table_keep(&t, (const bool[]){ true, false, true }, NULL, &err), 0);
    cr_assert_eq(table_check(&t, &err), 0, "%s", err.msg);
    cr_assert(t.n_contexts == 2 && t.n_questions == 2 && t.n_points == 4 && t.n_configs == 2 && t.n_tiers == 2);
    cr_assert_str_eq(t.context_id[1], "c/3");
    cr_assert_str_eq(t.question_id[1], "q2");
    cr_assert(t.question_context[0] == 0 && t.question_context[1] == 1);
    cr_assert(t.n_tokens[1] == 102 && t.cell_bytes[0] == 0 && t.cell_bytes[3] == 2001 && t.cell_bytes_read[3] == 17);
    cr_assert(t.similarity[1] == 0.125F && t.similarity[2] == 0.5F && t.similarity[3] == 0.625F);
    cr_assert(t.curve_context[1] == 0 && t.curve_context[2] == 1 && t.curve_n_tokens[3] == 102);
    cr_assert_eq(table_keep(&t, NULL, (const bool[]){ false, true }, &err), 0);
    cr_assert(t.n_contexts == 2 && t.n_questions == 1 && t.question_context[0] == 1 && t.similarity[0] == 0.5F);
    table_release(&t);
}

Test(asked, old_questions_are_left_out_and_contexts_stay)
{
    struct table t;
    struct err err;

    make(&t);
    cr_assert_eq(table_asked_since(&t, 10 * DAY, &err), 0);
    cr_assert(t.n_contexts == 3 && t.n_questions == 2, "at the limit it stays");
    t.asked_at[0] = unknown;
    cr_assert_eq(table_asked_since(&t, 1, &err), 0);
    cr_assert_eq(t.n_questions, 2);
    t.asked_at[0] = now;
    cr_assert_eq(table_asked_since(&t, 10 * DAY - 1, &err), 0);
    cr_assert_eq(t.n_questions, 1);
    table_release(&t);
}

static char known[] = "q1", fresh[] = "new";

/* The run has context a/1 and one question. */
struct run {
    struct question question;
    struct questions questions;
    struct map contexts;
    struct table_asked_run asked;
};

static void begin(struct run *r, char *question, double at)
{
    static char context[] = "b/2", text[] = "why?";

    *r = (struct run){ .question = { .id = question, .context = context, .text = text, .asked_at = at } };
    r->questions = (struct questions){ .at = &r->question, .n = 1 };
    cr_assert_eq(map_add(&r->contexts, "a/1", 3, NULL), 0);
    r->asked = (struct table_asked_run){ &r->questions, &r->contexts, 0 };
}

Test(asked, a_run_brings_newer_times_of_the_same_questions)
{
    struct table t;
    struct run r;
    struct err err;
    int n;

    make(&t);
    begin(&r, known, now - 9 * DAY);
    cr_assert_eq(table_asked_renew(&t, &r.asked, &n, &err), 1);
    cr_assert(t.asked_at[1] == now - 9 * DAY && n == 0);
    cr_assert_eq(table_asked_renew(&t, &r.asked, &n, &err), 0, "not twice");
    r.question.asked_at = 0;
    cr_assert_eq(table_asked_renew(&t, &r.asked, &n, &err), 0, "unknown is not newer");
    t.asked_at[1] = unknown;
    r.question.asked_at = 1;
    cr_assert_eq(table_asked_renew(&t, &r.asked, &n, &err), 1);
    r.question.asked_at = 2;
    t.question_text[1] = "how?";
    cr_assert_eq(table_asked_renew(&t, &r.asked, &n, &err), 0, "another text");
    t.question_text[1] = "why?";
    t.question_context[1] = 0;
    cr_assert_eq(table_asked_renew(&t, &r.asked, &n, &err), 0, "another context");
    cr_assert_eq(t.asked_at[1], 1);
    map_release(&r.contexts);
    table_release(&t);
}

Test(asked, contexts_are_forgotten_unless_the_run_has_them)
{
    static const struct {
        double first, run, forget; // days before now: question of a/1, the run's question; days
        int n_forgotten, left;
    } cases[] = {
        { 0, 0, 0, 0, 3 },    // never
        { 0, 0, 40, 0, 3 },   // the limit
        { 0, 0, 39, 1, 2 },   //
        { 0, -1, 40, 1, 2 },  // the run's question, not in the table, is the newest
        { 0, 0, 5, 2, 1 },    // a/1 is the run's
        { 90, 0, 5, 2, 1 },   // even the oldest
        { 90, 80, 5, 1, 2 },  // b/2 is the newest
        { 90, 80, 35, 0, 3 }, //
    };
    struct table t;
    struct run r;
    struct err err;
    int n;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        make(&t);
        t.asked_at[0] = now - cases[i].first * DAY;
        begin(&r, fresh, now - cases[i].run * DAY);
        r.asked.forget = cases[i].forget * DAY;
        cr_assert_eq(table_asked_renew(&t, &r.asked, &n, &err), cases[i].n_forgotten > 0, "%zu", i);
        cr_assert(n == cases[i].n_forgotten && t.n_contexts == cases[i].left, "%zu", i);
        cr_assert_str_eq(t.context_id[0], "a/1");
        map_release(&r.contexts);
        table_release(&t);
    }
    make(&t);
    t.asked_at[1] = t.asked_at[2] = unknown;
    begin(&r, fresh, now);
    r.asked.forget = 1;
    cr_assert_eq(table_asked_renew(&t, &r.asked, &n, &err), 0, "without a time it stays");
    map_release(&r.contexts);
    t.asked_at[0] = t.asked_at[1] = t.asked_at[2] = now - DAY;
    cr_assert_eq(table_asked_renew(&t, &r.asked, &n, &err), 0, "a table has a context");
    cr_assert_eq(t.n_contexts, 3);
    table_release(&t);
}
