/* The plan of a profile: which context has which question, what is open, what fits, what is answered together. */
#include "base/file.h"
#include "engine/tokens/tokenizer_internal.h"
#include "profiler/run/grid.h"
#include "profiler/run/groups.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

static struct contexts contexts;
static struct questions questions;
static struct config *config;
static int n_configs;

static void write_rows(char *path, const char *rows)
{
    struct err err;

    close(mkstemp(path));
    cr_assert_eq(file_write(path, rows, strlen(rows), &err), 0);
}

/* Contexts a, b, c; a has questions q1, q2, the others one each. */
static void open_inputs(void)
{
    char c[] = "/tmp/evp-unit-XXXXXX", q[] = "/tmp/evp-unit-XXXXXX";
    struct err err;

    write_rows(c,
               "{\"id\":\"a\",\"text\":\"one\"}\n{\"id\":\"b\",\"text\":\"two\"}\n{\"id\":\"c\",\"text\":\"three\"}\n");
    write_rows(q, "{\"id\":\"q1\",\"context\":\"a\",\"split\":\"train\",\"text\":\"who?\"}\n"
                  "{\"id\":\"q3\",\"context\":\"b\",\"split\":\"train\",\"text\":\"why?\"}\n"
                  "{\"id\":\"q2\",\"context\":\"a\",\"split\":\"test\",\"text\":\"when?\"}\n"
                  "{\"id\":\"q4\",\"context\":\"c\",\"split\":\"test\",\"text\":\"how?\"}\n");
    cr_assert_eq(contexts_read(&contexts, c, &err), 0, "%s", err.msg);
    cr_assert_eq(questions_read(&questions, q, &err), 0, "%s", err.msg);
    cr_assert_eq(config_list(&config, &n_configs, "knorm:drop=0.5,kivi:bits=2", &err), 0, "%s", err.msg);
    unlink(c);
    unlink(q);
}

static void close_inputs(void)
{
    contexts_release(&contexts);
    questions_release(&questions);
    free(config);
}

TestSuite(grid, .init = open_inputs, .fini = close_inputs);

static struct grid_input input(int64_t shard, int64_t shards)
{
    return (struct grid_input){ .contexts = &contexts,
                                .questions = &questions,
                                .config = config,
                                .n_configs = n_configs,
                                .shard = { shard, shards },
                                .max_new_tokens = 10,
                                .model_tokens = 100 };
}

/* As if tokenised: contexts of n tokens, questions of 20. */
static void give_tokens(struct grid *g, int n)
{
    for (int i = 0; i < g->n_work; i++) {
        struct work *w = &g->work[i];
        w->ids = (struct tokens){ .at = calloc((size_t)n, sizeof(int32_t)), .n = n };
        for (int q = 0; q < w->n_questions; q++)
            w->question_ids[q] = (struct tokens){ .at = calloc(20, sizeof(int32_t)), .n = 20 };
    }
}

Test(grid, shares_contexts_and_their_questions)
{
    struct grid g;
    struct err err;
    struct grid_input in = input(1, 2);

    cr_assert_eq(grid_begin(&g, &in, &err), 0, "%s", err.msg);
    cr_assert(g.n_work == 2 && g.work[0].n_questions == 2 && g.work[1].n_questions == 1);
    cr_assert_str_eq(g.work[0].question[1]->id, "q2");
    cr_assert_str_eq(g.work[1].context->id, "c");
    grid_release(&g);
    in = input(2, 2);
    cr_assert_eq(grid_begin(&g, &in, &err), 0, "%s", err.msg);
    cr_assert(g.n_work == 1 && strcmp(g.work[0].context->id, "b") == 0);
    grid_release(&g);
}

Test(grid, cuts_only_when_told)
{
    struct grid g;
    struct err err;
    struct grid_input in = input(1, 1);

    cr_assert_eq(grid_begin(&g, &in, &err), 0);
    give_tokens(&g, 70); // 70 + 20 + 10: just fits
    cr_assert_eq(grid_fit(&g, &in, &err), 0, "%s", err.msg);
    cr_assert(g.work[0].ids.n == 70 && g.work[0].n_cut == 0);
    in.model_tokens = 99;
    in.too_long = TOO_LONG_CUT;
    cr_assert_eq(grid_fit(&g, &in, &err), 0, "%s", err.msg);
    cr_assert(g.work[0].ids.n == 99 - 10 - 64 && g.work[0].n_cut == 70 - 25, "questions count as 64 tokens");
    in.model_tokens = 75;
    g.work[0].ids.n = 70;
    cr_assert_eq(grid_fit(&g, &in, &err), 0, "%s", err.msg);
    cr_assert_eq(g.work[0].ids.n, 1);
    in.model_tokens = 74;
    g.work[0].ids.n = 70;
    cr_assert_eq(grid_fit(&g, &in, &err), 0, "%s", err.msg);
    cr_assert_eq(g.work[0].ids.n, 44, "or as what they have, when nothing else fits");
    in.model_tokens = 31;
    g.work[0].ids.n = 70;
    cr_assert_eq(grid_fit(&g, &in, &err), 0, "%s", err.msg);
    cr_assert(g.n_work == 3 && g.work[0].ids.n == 1 && g.work[0].n_cut == 69);
    in.model_tokens = 30;
    cr_assert_eq(grid_fit(&g, &in, &err), 0, "%s", err.msg);
    cr_assert(g.n_work == 0 && g.n_refused == 3 && g.n_refused_questions == 4, "no token is left of the context");
    cr_assert_str_eq(g.why.at[0], "question 'q1' and its answer are longer than the model's 30 tokens");
    cr_assert_str_eq(g.why.at[2], "context 'a' has no usable questions");
    grid_release(&g);
}

Test(grid, what_would_change_its_rotation_is_left_out)
{
    struct grid g;
    struct err err;
    struct grid_input in = input(1, 1);

    in.model_short = 61;
    in.model_original = 90;
    cr_assert_eq(grid_begin(&g, &in, &err), 0);
    give_tokens(&g, 62); // is not short
    g.work[0].ids.n = 61;
    g.work[2].ids.n = 60; // 30 for question and answer
    cr_assert_eq(grid_fit(&g, &in, &err), 0, "%s", err.msg);
    cr_assert(g.n_work == 2 && g.n_refused == 1);
    cr_assert_str_eq(g.why.at[0], "context 'a' has 61 tokens: with question and answer more than the 90 beyond which "
                                  "the model treats all keys differently (longrope, or a window in every layer)");
    grid_release(&g);
}

Test(grid, what_is_too_long_is_left_out)
{
    struct grid g;
    struct err err;
    struct grid_input in = input(1, 1);

    cr_assert_eq(grid_begin(&g, &in, &err), 0);
    give_tokens(&g, 70);
    g.work[1].ids.n = 71;
    cr_assert_eq(grid_fit(&g, &in, &err), 0, "%s", err.msg);
    cr_assert(g.n_work == 2 && g.n_refused == 1 && g.why.n == 1);
    cr_assert_str_eq(g.why.at[0], "context 'b' has 71 tokens: with question and answer more than the model's 100; "
                                  "use --truncate to cut it");
    cr_assert_str_eq(g.work[1].context->id, "c", "the others stay in order");
    grid_release(&g);
}

/* A question about no context of ours, and a context that nobody asks about. */
Test(grid, rows_without_a_partner_are_left_out)
{
    struct grid g;
    struct err err;
    struct grid_input in = input(1, 1);
    static char other[] = "d";
    char *c = questions.at[3].context;

    questions.at[3].context = other;
    cr_assert_eq(grid_begin(&g, &in, &err), 0, "%s", err.msg);
    cr_assert(g.n_work == 2 && g.n_refused == 1 && g.n_refused_questions == 1 && g.why.n == 2);
    cr_assert_str_eq(g.why.at[0], "question 'q4' is about unknown context 'd'");
    cr_assert_str_eq(g.why.at[1], "context 'c' has no questions");
    questions.at[3].context = c;
    grid_release(&g);
    in = input(4, 4);
    cr_assert_eq(grid_begin(&g, &in, &err), ERR_FORMAT, "a shard without contexts concerns the whole run");
    grid_release(&g);
}

/* A hundred sentences; the rest is counted. */
Test(grid, many_refusals_are_counted)
{
    for (int n = GRID_SENTENCES - 1; n <= GRID_SENTENCES + 1; n++) {
        static char id[] = "q", context[] = "nowhere", text[] = "?";
        struct question *at = calloc((size_t)n, sizeof(*at));
        struct questions many = { .at = at, .n = n };
        struct grid_input in = input(1, 3);
        struct grid g;
        struct err err;
        for (int i = 0; i < n; i++)
            at[i] = (struct question){ .id = id, .context = context, .text = text };
        in.questions = &many;
        cr_assert_eq(grid_begin(&g, &in, &err), 0, "%s", err.msg);
        cr_assert(g.n_refused_questions == n && g.n_refused == 1 && g.n_work == 0);
        cr_assert_eq(g.why.n, n + 1 < GRID_SENTENCES ? n + 1 : GRID_SENTENCES);
        grid_release(&g);
        free(at);
    }
}

/* Context a with question q1 answered by none and knorm; as shards_open() would have it. */
static void fill_shards(struct shards *s, const char *digest)
{
    struct err err;

    static char path[] = "p.h5";

    *s = (struct shards){ .path = path, .lock = -1 };
    cr_assert_eq(table_alloc(&s->have, 1, 2, 1, &err), 0);
    s->have.context_id[0] = "a";
    s->have.context_token_digest[0] = digest;
    s->have.config_name[0] = "none";
    s->have.config_name[1] = "knorm:drop=0.5";
    s->have.question_id[0] = "q1";
    s->have.question_text[0] = "who?";
    s->have.question_context[0] = 0;
    for (int v = 0; v < 2; v++)
        s->have.cell_bytes[v] = s->have.answer_n_tokens[v] = 1;
    cr_assert_eq(table_rows_add(&s->rows, &s->have, &err), 0);
}

static void empty_shards(struct shards *s)
{
    table_release(&s->have);
    table_rows_release(&s->rows);
}

/* A grid of all inputs, where every context has 50 tokens, and its shards. */
static void open_grid(struct grid *g, struct shards *s)
{
    struct err err;
    struct grid_input in = input(1, 1);

    cr_assert_eq(grid_begin(g, &in, &err), 0);
    give_tokens(g, 50);
    cr_assert_eq(grid_fit(g, &in, &err), 0);
    fill_shards(s, g->work[0].token_digest);
}

static int open_again(struct grid *g, const struct shards *s, struct err *err)
{
    struct grid_input in = input(1, 1);

    in.shards = s;
    return grid_open(g, &in, err);
}

Test(grid, only_what_is_missing_is_open)
{
    struct grid g;
    struct err err;
    struct shards s;

    open_grid(&g, &s);
    cr_assert_eq(open_again(&g, &s, &err), 0, "%s", err.msg);
    cr_assert(g.n_found == 2 && g.n_answers == 4 * 3 - 2 && g.n_contexts == 3 && g.n_variants == 9);
    cr_assert_eq(g.work[0].n_open, 4);

    struct work_groups groups;
    cr_assert_eq(work_groups_make(&groups, &g, &g.work[0], &err), 0);
    cr_assert_eq(groups.n, 3);
    cr_assert_eq(work_group_end(&groups, &g.work[0], 0), 2); // none and knorm lack q2 alone
    cr_assert(groups.member[0] == 0 && groups.member[1] == 1 && groups.config[1] == &g.config[1]);
    cr_assert_eq(work_group_end(&groups, &g.work[0], 2), 3); // kivi lacks both
    cr_assert_eq(groups.member[2], 2);
    struct engine_work two = work_of_group(&g, &g.work[0], &groups, 0, 2);
    struct engine_work one = work_of_group(&g, &g.work[0], &groups, 2, 3);
    cr_assert(two.n_configs == 2 && two.n_questions == 1 && one.n_configs == 1 && one.n_questions == 2);
    cr_assert_eq(one.config[0], &g.config[2]);
    cr_assert_eq(one.question_tokens, g.work[0].question_ids[0].n + g.work[0].question_ids[1].n);
    work_groups_release(&groups);

    s.have.answer_n_tokens[0] = -1; // sizes without an answer are no answer
    g.n_found = 0;
    cr_assert_eq(open_again(&g, &s, &err), 0);
    cr_assert_eq(g.n_found, 1);
    empty_shards(&s);
    grid_release(&g);
}

/* Once per variant: a cell of an older file, without such times, gets them. */
Test(grid, decoding_is_timed_once)
{
    struct grid g;
    struct err err;
    struct shards s;

    open_grid(&g, &s);
    struct grid_input in = input(1, 1);
    in.shards = &s;
    cr_assert_eq(grid_open(&g, &in, &err), 0);
    cr_assert(!g.work[0].decodes[0] && !g.work[1].decodes[0], "not asked for");
    in.times_decoding = true;
    s.have.decode_s[0][0] = 0.01;
    cr_assert_eq(grid_open(&g, &in, &err), 0);
    cr_assert(!g.work[0].decodes[0] && g.work[0].decodes[1] && g.work[0].decodes[2] && g.work[1].decodes[0]);
    empty_shards(&s);
    grid_release(&g);
}

Test(grid, a_text_that_changed_is_left_out)
{
    struct grid g;
    struct err err;
    struct shards s;

    open_grid(&g, &s);
    s.have.question_text[0] = "what?";
    cr_assert_eq(open_again(&g, &s, &err), 0, "%s", err.msg);
    cr_assert(g.n_refused == 0 && g.n_refused_questions == 1 && g.work[0].n_questions == 1);
    cr_assert_str_eq(g.work[0].question[0]->id, "q2");
    cr_assert_eq(g.work[0].n_open, 3);
    cr_assert_str_eq(g.why.at[0], "question 'q1' has another text or context in 'p.h5'; --overwrite replaces it");
    empty_shards(&s);
    grid_release(&g);

    open_grid(&g, &s);
    s.have.context_token_digest[0] = "";
    cr_assert_eq(open_again(&g, &s, &err), 0, "%s", err.msg);
    cr_assert(g.n_refused == 1 && g.n_work == 2 && g.n_contexts == 2 && g.n_found == 0);
    cr_assert_str_eq(g.why.at[0], "context 'a' has another text in 'p.h5'; --overwrite replaces it");
    empty_shards(&s);
    grid_release(&g);
}

/* Questions of 1 to 64 tokens leave a context the same cut. */
Test(grid, the_cut_does_not_hang_on_every_token_of_a_question)
{
    static const int longest[] = { 1, 63, 64, 65 }, cut[] = { 126, 126, 126, 62 };

    for (int i = 0; i < 4; i++) {
        struct grid_input in = input(2, 2);
        struct grid g;
        struct err err;
        in.model_tokens = 200;
        in.too_long = TOO_LONG_CUT;
        cr_assert_eq(grid_begin(&g, &in, &err), 0);
        give_tokens(&g, 300);
        free(g.work[0].question_ids[0].at);
        g.work[0].question_ids[0].n = longest[i];
        g.work[0].question_ids[0].at = calloc((size_t)longest[i], sizeof(int32_t));
        cr_assert_eq(grid_fit(&g, &in, &err), 0, "%s", err.msg);
        cr_assert_eq(g.work[0].ids.n, cut[i], "%d tokens", longest[i]);
        grid_release(&g);
    }
}

/* A context of 90 tokens that the shards have cut to 69, or to 70 of other tokens; q1 has 20 tokens, q2 `longer` more.
 * The model has 100 tokens, an answer 10. */
static void fit_cut(struct grid *g, struct shards *s, int stored, int longer)
{
    struct grid_input in = input(1, 3);
    char digest[DIGEST_HEX];
    struct err err;

    cr_assert_eq(grid_begin(g, &in, &err), 0);
    give_tokens(g, 90);
    for (int i = 0; i < 90; i++)
        g->work[0].ids.at[i] = i;
    free(g->work[0].question_ids[1].at);
    g->work[0].question_ids[1].n = 20 + longer;
    g->work[0].question_ids[1].at = calloc((size_t)(20 + longer), sizeof(int32_t));
    cr_assert_eq(digest_tokens(g->work[0].ids.at, stored, digest, &err), 0);
    fill_shards(s, digest);
    s->have.n_tokens[0] = 69;
    in.too_long = TOO_LONG_CUT;
    in.shards = s;
    cr_assert_eq(grid_fit(g, &in, &err), 0, "%s", err.msg);
    cr_assert_eq(g->n_work, 1);
    g->work[0].n_open = 0;
    s->have.context_token_digest[0] = "";
}

Test(grid, a_cut_stays_as_it_is_stored)
{
    struct grid g;
    struct shards s;

    for (int longer = 0; longer <= 2; longer++) { // 69 + 21 + 10: just fits
        fit_cut(&g, &s, 69, longer);
        cr_assert(g.work[0].ids.n == 69 && g.work[0].n_cut == 21, "longer by %d: %d", longer, g.work[0].ids.n);
        cr_assert_eq(g.work[0].n_questions, longer == 2 ? 1 : 2);
        cr_assert_eq(g.n_refused_questions, longer == 2);
        empty_shards(&s);
        grid_release(&g);
    }
    fit_cut(&g, &s, 70, 2); // other tokens are stored: cut as if nothing were
    cr_assert(g.work[0].ids.n == 26 && g.work[0].n_questions == 2);
    empty_shards(&s);
    grid_release(&g);
}

/* ---- tokens ---------------------------------------------------------------------- */

static struct tokenizer *tiny(struct err *err)
{
    struct model *m = model_open("tests/data/tiny.gguf", err);
    struct tokenizer *t = m ? tokenizer_open(m, err) : NULL;

    model_close(m);
    cr_assert_not_null(t, "%s", err->msg);
    return t;
}

/* "one" of tests/data/tiny.gguf: the head, then "one", which could be longer and is the question's. */
Test(grid, contexts_and_questions_are_one_prompt)
{
    struct grid g;
    struct err err;
    struct shards s = { 0 };
    struct grid_input in = input(1, 1);
    struct tokenizer *t = tiny(&err);
    struct tokens whole = { 0 };
    struct buf text = { 0 };

    in.tokenizer = t;
    in.shards = &s;
    in.model_tokens = 10000;
    cr_assert_eq(grid_begin(&g, &in, &err), 0);
    cr_assert_eq(grid_plan(&g, &in, &err), 0, "%s", err.msg);
    const struct work *w = &g.work[0];
    buf_printf(&text, "one%s", CONTEXT_PLAIN_ASK);
    text.n -= strlen("{question}");
    cr_assert_eq(tokenizer_encode(t, text_view_of(t->chat.head), SPECIAL_PARSED, &whole, &err), 0);
    cr_assert_eq(w->ids.n, whole.n);
    cr_assert_arr_eq(w->ids.at, whole.at, (size_t)whole.n * sizeof(*whole.at));
    whole.n = 0;
    cr_assert_eq(tokenizer_encode(t, (struct text_view){ text.at, text.n }, SPECIAL_AS_TEXT, &whole, &err), 0);
    cr_assert_eq(w->n_shared, whole.n - 1); // all but the blank before {question}
    for (int q = 0; q < 2; q++)
        cr_assert_arr_eq(w->question_ids[q].at, whole.at, (size_t)w->n_shared * sizeof(*whole.at));
    grid_release(&g);
    tokens_release(&whole);
    buf_release(&text);
    tokenizer_free(t);
}

/* What is cut off is no part of the question either. */
Test(grid, questions_of_a_cut_context_are_encoded_apart)
{
    struct grid g;
    struct err err;
    struct shards s = { 0 };
    struct grid_input in = input(1, 1);
    struct tokenizer *t = tiny(&err);
    struct tokens apart = { 0 };

    in.tokenizer = t;
    in.shards = &s;
    in.model_tokens = 150;
    in.too_long = TOO_LONG_CUT;
    cr_assert_eq(grid_begin(&g, &in, &err), 0);
    cr_assert_eq(grid_plan(&g, &in, &err), 0, "%s", err.msg);
    const struct work *w = &g.work[0];
    cr_assert(w->is_cut && w->ids.n == 150 - 10 - 64);
    cr_assert_eq(tokenizer_encode(t, text_view_of(CONTEXT_PLAIN_ASK), SPECIAL_AS_TEXT, &apart, &err), 0);
    cr_assert_arr_eq(w->question_ids[0].at, apart.at, (size_t)w->n_shared * sizeof(*apart.at)); // no "one" before it
    tokens_release(&apart);
    grid_release(&g);
    tokenizer_free(t);
}

Test(grid, a_context_without_tokens_of_its_own_is_refused)
{
    struct grid g;
    struct err err;
    struct shards s = { 0 };
    struct grid_input in = input(1, 1);
    struct tokenizer *t = tiny(&err);

    t->chat.head[0] = '\0';
    in.tokenizer = t;
    in.shards = &s;
    cr_assert_eq(grid_begin(&g, &in, &err), 0);
    cr_assert_eq(grid_plan(&g, &in, &err), 0, "%s", err.msg);
    cr_assert(g.n_work == 0 && g.n_refused == 3);
    cr_assert_str_eq(g.why.at[0], "context 'a' is too short: all its tokens depend on the text after it");
    grid_release(&g);
    tokenizer_free(t);
}
