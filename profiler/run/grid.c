/* grid.c - gives the questions to their contexts, tokenises everything, and compares it with the model's limit and with
 * the shards. */
#include "profiler/run/grid.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

static void work_release(struct work *w)
{
    for (int q = 0; w->question_ids && q < w->n_questions; q++)
        tokens_release(&w->question_ids[q]);
    free(w->question_ids);
    free(w->question);
    free(w->open);
    free(w->decodes);
    tokens_release(&w->ids);
}

void grid_release(struct grid *g)
{
    for (int i = 0; i < g->n_work; i++)
        work_release(&g->work[i]);
    free(g->work);
    for (int i = 0; i < g->why.n; i++)
        free(g->why.at[i]);
    free(g->why.at);
    *g = (struct grid){ 0 };
}

/* ---- what is left out ---------------------------------------------------------- */

/* Keeps the sentence of an error about one context or question. Returns any other error. */
static int keep_why(struct grid *g, struct err *err)
{
    if (err->code != ERR_FORMAT && err->code != ERR_FAIL)
        return err->code;
    if (g->why.n >= GRID_SENTENCES)
        return 0;
    char *copy = strdup(err->msg);
    if (copy && ARRAY_PUSH(&g->why, copy) == 0)
        return 0;
    free(copy);
    return err_nomem(err);
}

static int refuse_work(struct grid *g, struct work *w, struct err *err)
{
    if (keep_why(g, err))
        return err->code;
    w->refused = true;
    g->n_refused++;
    return 0;
}

static void drop_refused(struct grid *g)
{
    int n = 0;

    for (int i = 0; i < g->n_work; i++) {
        if (g->work[i].refused)
            work_release(&g->work[i]);
        else
            g->work[n++] = g->work[i];
    }
    g->n_work = n;
}

/* Leaves out question q of a context; the next one moves to its index. */
static int refuse_question(struct grid *g, struct work *w, int q, struct err *err)
{
    if (keep_why(g, err))
        return err->code;
    g->n_refused_questions++;
    tokens_release(&w->question_ids[q]);
    size_t after = (size_t)(--w->n_questions - q);
    memmove(w->question + q, w->question + q + 1, after * sizeof(*w->question));
    memmove(w->question_ids + q, w->question_ids + q + 1, after * sizeof(*w->question_ids));
    w->question_ids[w->n_questions] = (struct tokens){ 0 };
    return 0;
}

static int refuse_unless_questions(struct grid *g, struct work *w, struct err *err)
{
    if (w->n_questions > 0 || w->row_only)
        return 0;
    err_set(err, ERR_FORMAT, "context '%s' has no usable questions", w->context->id);
    return refuse_work(g, w, err);
}

/* ---- contexts and their questions ---------------------------------------------- */

static bool has_cells(const struct grid_input *in, const char *context)
{
    return !in->cells || map_find(&in->cells->contexts, context, strlen(context)) >= 0;
}

/* of[c]: index of the work of context c; -1: not in this shard or not wanted. */
static int make_work(struct grid *g, const struct grid_input *in, int *of, struct err *err)
{
    g->work = calloc((size_t)in->contexts->n + 1, sizeof(*g->work));
    if (!g->work)
        return err_nomem(err);
    for (int i = 0; i < in->contexts->n; i++) {
        int c = in->sample ? in->sample->order[i] : i;
        of[c] = -1;
        if (!shard_has(in->shard, c) || !has_cells(in, in->contexts->at[c].id))
            continue;
        of[c] = g->n_work;
        g->work[g->n_work].row_only = in->sample && i >= in->sample->n;
        g->work[g->n_work++].context = &in->contexts->at[c];
    }
    if (g->n_work == 0 && !in->cells)
        return err_set(err, ERR_FORMAT, "shard %lld of %lld has none of the %d contexts", (long long)in->shard.i,
                       (long long)in->shard.n, in->contexts->n);
    return 0;
}

/* The work of a question; NULL: its context is unknown, or without work here. */
static struct work *work_of(struct grid *g, const struct grid_input *in, const int *of, const struct question *q)
{
    int c = map_find(&in->contexts->ids, q->context, strlen(q->context));

    return c >= 0 && of[c] >= 0 ? &g->work[of[c]] : NULL;
}

static int refuse_unknown(struct grid *g, const struct grid_input *in, const struct question *q, struct err *err)
{
    if (map_find(&in->contexts->ids, q->context, strlen(q->context)) >= 0)
        return 0;
    g->n_refused_questions++;
    err_set(err, ERR_FORMAT, "question '%s' is about unknown context '%s'", q->id, q->context);
    return keep_why(g, err);
}

static int alloc_questions(struct grid *g, struct work *w, struct err *err)
{
    size_t n = (size_t)w->n_questions;

    if (n == 0 && !w->row_only) {
        err_set(err, ERR_FORMAT, "context '%s' has no questions", w->context->id);
        return refuse_work(g, w, err);
    }
    w->n_questions = 0;
    w->question = calloc(n + 1, sizeof(struct question *));
    w->question_ids = calloc(n + 1, sizeof(*w->question_ids));
    return w->question && w->question_ids ? 0 : err_nomem(err);
}

static int share_questions(struct grid *g, const struct grid_input *in, const int *of, struct err *err)
{
    for (int i = 0; i < in->questions->n; i++) {
        struct work *w = work_of(g, in, of, &in->questions->at[i]);
        if (w)
            w->n_questions++;
        else if (refuse_unknown(g, in, &in->questions->at[i], err))
            return err->code;
    }
    for (int i = 0; i < g->n_work; i++)
        if (alloc_questions(g, &g->work[i], err))
            return err->code;
    for (int i = 0; i < in->questions->n; i++) {
        struct work *w = work_of(g, in, of, &in->questions->at[i]);
        if (w)
            w->question[w->n_questions++] = &in->questions->at[i];
    }
    return 0;
}

int grid_begin(struct grid *g, const struct grid_input *in, struct err *err)
{
    int *of = calloc((size_t)in->contexts->n + 1, sizeof(*of)), code = of ? 0 : err_nomem(err);

    *g = (struct grid){ 0 };
    if (!code)
        code = make_work(g, in, of, err);
    if (!code)
        code = share_questions(g, in, of, err);
    free(of);
    drop_refused(g);
    return code;
}

/* ---- what fits ----------------------------------------------------------------- */

/* The longest context, in tokens, that fits the model with the longest question and a whole answer. */
static int max_context(const struct work *w, const struct grid_input *in)
{
    int longest = 0;

    for (int q = 0; q < w->n_questions; q++)
        if (w->question_ids[q].n > longest)
            longest = w->question_ids[q].n;
    return in->model_tokens - in->max_new_tokens - longest;
}

/* Leaves out questions that are too long even for a context of one token. */
static int fit_questions(struct grid *g, const struct grid_input *in, struct work *w, struct err *err)
{
    int max = in->model_tokens - in->max_new_tokens - 1;

    for (int q = 0; q < w->n_questions;) {
        if (w->question_ids[q].n <= max) {
            q++;
            continue;
        }
        err_set(err, ERR_FORMAT, "question '%s' and its answer are longer than the model's %d tokens",
                w->question[q]->id, in->model_tokens);
        if (refuse_question(g, w, q, err))
            return err->code;
    }
    return refuse_unless_questions(g, w, err);
}

/* ---- tokens -------------------------------------------------------------------- */

static int tokenise_questions(struct work *w, const struct prompt_ids *context, struct err *err)
{
    struct prompt_ids asked;
    int code = 0;

    if (tokenizer_ask(context, w->context->ask, &asked, err))
        return err_wrap(err, "context '%s'", w->context->id);
    w->n_shared = asked.ids.n;
    for (int q = 0; q < w->n_questions && !code; q++) {
        w->question_ids[q].n = 0;
        if (tokenizer_question(&asked, w->question[q]->text, &w->question_ids[q], err))
            code = err_wrap(err, "question '%s'", w->question[q]->id);
    }
    prompt_ids_release(&asked);
    return code;
}

/* Tokenises context and questions as one prompt, or separately when the context must be cut. */
static int tokenise_prompts(struct grid *g, const struct grid_input *in, struct work *w, struct prompt_ids *context,
                            struct err *err)
{
    if (context->ids.n == 0)
        return err_set(err, ERR_FORMAT, "context '%s' is too short: all its tokens depend on the text after it",
                       w->context->id);
    if (tokenise_questions(w, context, err) || fit_questions(g, in, w, err))
        return err->code;
    w->is_cut = in->too_long == TOO_LONG_CUT && !w->refused && context->ids.n > max_context(w, in);
    if (!w->is_cut)
        return 0;
    prompt_ids_cut(context, context->ids.n);
    return tokenise_questions(w, context, err);
}

static int tokenise(struct grid *g, const struct grid_input *in, struct work *w, struct err *err)
{
    struct prompt_ids context;

    if (tokenizer_context_row(in->tokenizer, w->context, &context, err))
        return err_wrap(err, "context '%s'", w->context->id);
    int code = tokenise_prompts(g, in, w, &context, err);
    w->ids = prompt_ids_take(&context);
    return code;
}

/* ---- where a context is cut ------------------------------------------------------ */

/* Leaves out questions that do not fit after a context of n tokens, its length in the shards. */
static int fit_after_stored(struct grid *g, const struct grid_input *in, struct work *w, int n, struct err *err)
{
    for (int q = 0; q < w->n_questions;) {
        if (n + w->question_ids[q].n + in->max_new_tokens <= in->model_tokens) {
            q++;
            continue;
        }
        err_set(
            err, ERR_FORMAT,
            "question '%s' and its answer do not fit after the %d tokens of context '%s' in '%s'; use --overwrite to "
            "cut the context again",
            w->question[q]->id, n, w->context->id, in->shards->path);
        if (refuse_question(g, w, q, err))
            return err->code;
    }
    return refuse_unless_questions(g, w, err);
}

/* The length to which a context is cut. The longest question is rounded up to a multiple of QUESTION_STEP tokens, so
 * that slightly longer questions in a later run usually fit the same cut. */
enum { QUESTION_STEP = 64 };

static int new_cut(const struct work *w, const struct grid_input *in)
{
    int max = max_context(w, in), all = in->model_tokens - in->max_new_tokens, longest = all - max;
    int cut = all - (longest + QUESTION_STEP - 1) / QUESTION_STEP * QUESTION_STEP;

    return cut > 0 ? cut : max;
}

static int cut_work(struct grid *g, const struct grid_input *in, struct work *w, struct err *err)
{
    int stored = 0;

    if (in->too_long == TOO_LONG_REFUSE) {
        err_set(
            err, ERR_FORMAT,
            "context '%s' has %d tokens: with question and answer more than the model's %d; use --truncate to cut it",
            w->context->id, w->ids.n, in->model_tokens);
        return refuse_work(g, w, err);
    }
    if (in->shards && shards_prefix(in->shards, w->context->id, &w->ids, &stored, err))
        return err->code;
    int n = stored ? stored : new_cut(w, in);
    w->n_cut = n < w->ids.n ? w->ids.n - n : 0; /* tokenised separately, the questions may leave enough space */
    w->ids.n -= w->n_cut;
    return stored ? fit_after_stored(g, in, w, stored, err) : 0;
}

/* A context that its questions and answers would take beyond the limit of short contexts is left out. */
static int fit_original(struct grid *g, const struct grid_input *in, struct work *w, struct err *err)
{
    int original = in->model_original, longest = in->model_tokens - max_context(w, in);

    if (w->refused || w->ids.n > in->model_short || w->ids.n + longest <= original)
        return 0;
    err_set(err, ERR_FORMAT,
            "context '%s' has %d tokens: with question and answer more than the %d beyond which the model treats all "
            "keys differently (longrope, or a window in every layer)",
            w->context->id, w->ids.n, original);
    return refuse_work(g, w, err);
}

static int fit_work(struct grid *g, const struct grid_input *in, struct work *w, struct err *err)
{
    w->n_cut = 0;
    if (fit_questions(g, in, w, err))
        return err->code;
    if (!w->refused && (w->is_cut || w->ids.n > max_context(w, in)) && cut_work(g, in, w, err))
        return err->code;
    if (fit_original(g, in, w, err))
        return err->code;
    return w->refused ? 0 : digest_tokens(w->ids.at, w->ids.n, w->token_digest, err);
}

int grid_fit(struct grid *g, const struct grid_input *in, struct err *err)
{
    for (int i = 0; i < g->n_work; i++)
        if (fit_work(g, in, &g->work[i], err))
            return err->code;
    drop_refused(g);
    return 0;
}

/* ---- what is open ----------------------------------------------------------------- */

int work_n_open(const struct work *w, int v)
{
    int n = 0;

    for (int q = 0; q < w->n_questions; q++)
        n += work_open(w, v)[q];
    return n;
}

/* Leaves out the context, or questions of it, whose text in the shards is different. */
static int check_work(struct grid *g, struct work *w, const struct shards *shards, struct err *err)
{
    const char *id = w->context->id;

    if (shards_check_context(shards, id, w->token_digest, err))
        return refuse_work(g, w, err);
    for (int q = 0; q < w->n_questions;) {
        if (!shards_check_question(shards, w->question[q]->id, id, w->question[q]->text, err))
            q++;
        else if (refuse_question(g, w, q, err))
            return err->code;
    }
    return refuse_unless_questions(g, w, err);
}

static bool is_wanted(const struct grid_input *in, const struct work *w, int v, int q)
{
    if (w->row_only)
        return false;
    if (in->split != GRID_BOTH && (in->split == GRID_TRAIN) != (w->question[q]->split == SPLIT_TRAIN))
        return false;
    return !in->cells || cells_want(in->cells, (int)(w->question[q] - in->questions->at), v);
}

static int open_work(struct work *w, struct grid *g, const struct grid_input *in, struct err *err)
{
    free(w->open);
    free(w->decodes);
    w->open = calloc((size_t)w->n_questions * (size_t)g->n_configs + 1, sizeof(*w->open));
    w->decodes = calloc((size_t)g->n_configs + 1, sizeof(*w->decodes));
    w->n_open = 0;
    w->is_new = true;
    if (!w->open || !w->decodes)
        return err_nomem(err);
    for (int v = 0; v < g->n_configs; v++)
        w->decodes[v] = in->times_decoding && !shards_has_decode_s(in->shards, w->context->id, g->config[v].name);
    for (int q = 0; q < w->n_questions; q++) {
        for (int v = 0; v < g->n_configs; v++) {
            if (!is_wanted(in, w, v, q))
                continue;
            bool open = !shards_has(in->shards, w->context->id, g->config[v].name, w->question[q]->id);
            work_open(w, v)[q] = open;
            w->n_open += open;
            w->is_new &= open;
            g->n_found += !open;
        }
    }
    return 0;
}

/* sign: 1 to add, -1 to take away. */
static void count_work(struct grid *g, const struct work *w, int sign)
{
    if (w->n_open == 0)
        return;
    g->n_contexts += sign;
    g->n_tokens += sign * w->ids.n;
    g->n_questions += sign * w->n_questions;
    g->n_answers += sign * w->n_open;
    g->n_sampled += g->temperature > 0 ? sign * work_n_open(w, 0) : 0;
    for (int v = 0; v < g->n_configs; v++)
        g->n_variants += work_n_open(w, v) > 0 ? sign : 0;
}

void grid_leave(struct grid *g, const struct work *w)
{
    count_work(g, w, -1);
    g->n_left++;
}

/* Where the time may end before the work: new contexts come first, so that the sample grows from run to run. */
static int put_new_first(struct grid *g, struct err *err)
{
    struct work *sorted = calloc((size_t)g->n_work + 1, sizeof(*sorted));
    int n = 0;

    if (!sorted)
        return err_nomem(err);
    for (int is_new = 1; is_new >= 0; is_new--)
        for (int i = 0; i < g->n_work; i++)
            if (g->work[i].is_new == is_new)
                sorted[n++] = g->work[i];
    free(g->work);
    g->work = sorted;
    return 0;
}

int grid_open(struct grid *g, const struct grid_input *in, struct err *err)
{
    g->config = in->config;
    g->n_configs = in->n_configs;
    g->max_new_tokens = in->max_new_tokens;
    g->temperature = in->temperature;
    g->judges = in->judges;
    for (int i = 0; i < g->n_work; i++)
        if (check_work(g, &g->work[i], in->shards, err))
            return err->code;
    drop_refused(g);
    for (int i = 0; i < g->n_work; i++) {
        if (open_work(&g->work[i], g, in, err))
            return err->code;
        count_work(g, &g->work[i], 1);
    }
    return in->sample && in->sample->seconds > 0 ? put_new_first(g, err) : 0;
}

int grid_plan(struct grid *g, const struct grid_input *in, struct err *err)
{
    for (int i = 0; i < g->n_work; i++)
        if (tokenise(g, in, &g->work[i], err) && refuse_work(g, &g->work[i], err))
            return err->code;
    drop_refused(g);
    return grid_fit(g, in, err) ? err->code : grid_open(g, in, err);
}
