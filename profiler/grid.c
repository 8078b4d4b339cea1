/* First the questions are shared out to their contexts, then everything is tokenised, compared with the model's limit
 * and with the store. The costs are sums over the same groups of configs that run.c runs. */
#include "profiler/grid.h"

#include <stdlib.h>
#include <string.h>

/* ---- contexts and their questions -------------------------------------------- */

static void work_release(struct work *w)
{
    for (int q = 0; w->question_ids && q < w->n_questions; q++)
        tokens_release(&w->question_ids[q]);
    free(w->question_ids);
    free(w->question);
    free(w->open);
    tokens_release(&w->ids);
}

void grid_release(struct grid *g)
{
    for (int i = 0; i < g->n_work; i++)
        work_release(&g->work[i]);
    free(g->work);
    *g = (struct grid){ 0 };
}

/* of[c]: the work of context c, or -1 when c is in another shard. */
static int make_work(struct grid *g, const struct grid_input *in, int *of, struct err *err)
{
    g->work = calloc((size_t)in->contexts->n + 1, sizeof(*g->work));
    if (!g->work)
        return err_nomem(err);
    for (int c = 0; c < in->contexts->n; c++) {
        of[c] = -1;
        if (!shard_has(in->shard, c))
            continue;
        of[c] = g->n_work;
        g->work[g->n_work++].context = &in->contexts->at[c];
    }
    if (g->n_work == 0)
        return err_set(err, ERR_FORMAT, "shard %lld of %lld has none of the %d contexts", (long long)in->shard.i,
                       (long long)in->shard.n, in->contexts->n);
    return 0;
}

static int context_of(const struct grid_input *in, const struct question *q, struct err *err)
{
    int c = map_find(&in->contexts->ids, q->context, strlen(q->context));

    if (c == MAP_ABSENT)
        err_set(err, ERR_FORMAT, "question '%s' is about unknown context '%s'", q->id, q->context);
    return c;
}

static int alloc_questions(struct work *w, int n_configs, struct err *err)
{
    size_t n = (size_t)w->n_questions;

    if (n == 0)
        return err_set(err, ERR_FORMAT, "context '%s' has no questions", w->context->id);
    w->n_questions = 0;
    w->question = calloc(n, sizeof(struct question *));
    w->question_ids = calloc(n, sizeof(*w->question_ids));
    w->open = calloc(n * (size_t)n_configs, sizeof(*w->open));
    return w->question && w->question_ids && w->open ? 0 : err_nomem(err);
}

static int share_questions(struct grid *g, const struct grid_input *in, const int *of, struct err *err)
{
    for (int i = 0; i < in->questions->n; i++) {
        int c = context_of(in, &in->questions->at[i], err);
        if (c < 0)
            return err->code;
        if (of[c] >= 0)
            g->work[of[c]].n_questions++;
    }
    for (int i = 0; i < g->n_work; i++)
        if (alloc_questions(&g->work[i], in->n_configs, err))
            return err->code;
    for (int i = 0; i < in->questions->n; i++) {
        const struct question *q = &in->questions->at[i];
        int at = of[map_find(&in->contexts->ids, q->context, strlen(q->context))];
        if (at >= 0)
            g->work[at].question[g->work[at].n_questions++] = q;
    }
    return 0;
}

int grid_begin(struct grid *g, const struct grid_input *in, struct err *err)
{
    int *of = calloc((size_t)in->contexts->n + 1, sizeof(*of)), code = of ? 0 : err_nomem(err);

    *g = (struct grid){ .config = in->config, .n_configs = in->n_configs };
    if (!code)
        code = make_work(g, in, of, err);
    if (!code)
        code = share_questions(g, in, of, err);
    free(of);
    return code;
}

static int tokenise(struct work *w, const struct tokenizer *t, struct err *err)
{
    const struct context *c = w->context;

    if (tokenizer_context(t, c->text, &w->ids, err))
        return err_wrap(err, "context '%s'", c->id);
    for (int q = 0; q < w->n_questions; q++)
        if (tokenizer_question(t, c->ask, w->question[q]->text, &w->question_ids[q], err))
            return err_wrap(err, "question '%s'", w->question[q]->id);
    return 0;
}

/* ---- what fits ----------------------------------------------------------------- */

/* The tokens of context that fit the model together with the longest question and a whole answer. */
static int max_context(const struct work *w, const struct grid_input *in)
{
    int longest = 0;

    for (int q = 0; q < w->n_questions; q++)
        if (w->question_ids[q].n > longest)
            longest = w->question_ids[q].n;
    return in->model_tokens - in->max_new_tokens - longest;
}

static int refuse_long(const struct grid *g, const struct grid_input *in, struct err *err)
{
    struct buf names = { 0 };
    int n = 0;

    for (int i = 0; i < g->n_work; i++) {
        const struct work *w = &g->work[i];
        if (w->ids.n <= max_context(w, in))
            continue;
        if (++n <= 4)
            buf_printf(&names, "%s'%s' (%d)", n > 1 ? ", " : "", w->context->id, w->ids.n);
    }
    if (n > 4)
        buf_printf(&names, " and %d more", n - 4);
    if (n > 0)
        err_set(err, ERR_FORMAT,
                "longer than the model's %s%d tokens with question and answer: %s; --truncate cuts them",
                in->model_window ? "sliding window of " : "", in->model_tokens, buf_str(&names));
    buf_release(&names);
    return n > 0 ? err->code : 0;
}

int grid_fit(struct grid *g, const struct grid_input *in, struct err *err)
{
    if (in->too_long == TOO_LONG_REFUSE && refuse_long(g, in, err))
        return err->code;
    for (int i = 0; i < g->n_work; i++) {
        struct work *w = &g->work[i];
        int max = max_context(w, in);
        if (max < 1)
            return err_set(err, ERR_FORMAT,
                           "a question about '%s' and its answer are longer than the model's %d tokens", w->context->id,
                           in->model_tokens);
        w->n_cut = w->ids.n > max ? w->ids.n - max : 0;
        w->ids.n -= w->n_cut;
        if (digest_tokens(w->ids.at, w->ids.n, w->token_digest, err))
            return err->code;
    }
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

static int open_work(struct work *w, const struct grid *g, const struct store *store, struct err *err)
{
    const char *id = w->context->id;

    if (store_check_context(store, id, w->token_digest, err))
        return err->code;
    w->n_open = 0;
    for (int q = 0; q < w->n_questions; q++) {
        const struct question *question = w->question[q];
        if (store_check_question(store, question->id, id, question->text, err))
            return err->code;
        for (int v = 0; v < g->n_configs; v++) {
            bool open = !store_has(store, id, g->config[v].name, question->id);
            work_open(w, v)[q] = open;
            w->n_open += open;
        }
    }
    return 0;
}

int grid_open(struct grid *g, const struct store *store, struct err *err)
{
    for (int i = 0; i < g->n_work; i++) {
        struct work *w = &g->work[i];
        if (open_work(w, g, store, err))
            return err->code;
        g->n_found += (int64_t)g->n_configs * w->n_questions - w->n_open;
        if (w->n_open == 0)
            continue;
        g->n_contexts++;
        g->n_tokens += w->ids.n;
        g->n_questions += w->n_questions;
        g->n_answers += w->n_open;
        for (int v = 0; v < g->n_configs; v++)
            g->n_variants += work_n_open(w, v) > 0;
    }
    return 0;
}

int grid_group(const struct grid *g, const struct work *w, bool *taken, int *member)
{
    size_t row = (size_t)w->n_questions * sizeof(*w->open);
    int first = 0, n = 0;

    while (first < g->n_configs && (taken[first] || work_n_open(w, first) == 0))
        first++;
    for (int v = first; v < g->n_configs; v++) {
        if (taken[v] || memcmp(work_open(w, v), work_open(w, first), row) != 0)
            continue;
        taken[v] = true;
        member[n++] = v;
    }
    return n;
}

int grid_plan(struct grid *g, const struct grid_input *in, struct err *err)
{
    g->max_new_tokens = in->max_new_tokens;
    for (int i = 0; i < g->n_work; i++)
        if (tokenise(&g->work[i], in->tokenizer, err))
            return err->code;
    return grid_fit(g, in, err) ? err->code : grid_open(g, in->store, err);
}

/* ---- what it costs ----------------------------------------------------------------- */

struct engine_cost work_cost(const struct grid *g, const struct work *w, const int *member, int n,
                             const struct engine *e)
{
    struct engine_work cost = { .n_tokens = w->ids.n, .n_variants = n, .max_new_tokens = g->max_new_tokens };

    for (int i = 0; i < n; i++)
        cost.keep_frac_sum += (double)config_n_keep(&g->config[member[i]], w->ids.n) / w->ids.n;
    for (int q = 0; q < w->n_questions; q++) {
        if (!work_open(w, member[0])[q])
            continue;
        cost.n_questions++;
        if (w->question_ids[q].n > cost.question_tokens)
            cost.question_tokens = w->question_ids[q].n;
    }
    return engine_cost(e, &cost);
}

/* For grid_group(). */
struct scratch {
    bool *taken; // (V)
    int *member; // (V)
};

/* Adds the cost of one context to *sum. */
static void add_cost(struct grid_cost *sum, const struct grid *g, const struct work *w, const struct engine *e,
                     struct scratch *s)
{
    bool first = true;
    int n;

    memset(s->taken, 0, (size_t)g->n_configs * sizeof(*s->taken));
    while ((n = grid_group(g, w, s->taken, s->member)) > 0) {
        struct engine_cost cost = work_cost(g, w, s->member, n, e);
        sum->flop += cost.decode_flop + (first ? cost.prefill_flop : 0);
        if (cost.bytes > sum->bytes)
            sum->bytes = cost.bytes;
        first = false;
    }
}

int grid_cost(const struct grid *g, const struct engine *e, struct grid_cost *cost, struct err *err)
{
    struct scratch s = { calloc((size_t)g->n_configs, sizeof(*s.taken)),
                         calloc((size_t)g->n_configs, sizeof(*s.member)) };
    int code = s.taken && s.member ? 0 : err_nomem(err);

    *cost = (struct grid_cost){ 0 };
    for (int i = 0; i < g->n_work && !code; i++)
        add_cost(cost, g, &g->work[i], e, &s);
    free(s.taken);
    free(s.member);
    return code;
}
