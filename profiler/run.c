/* One context: prefill, then group after group of configs that lack the same answers. A group is run in parts that fit
 * the memory: derive the variants, let them answer all questions in one batch, keep what was measured, release them. */
#include "profiler/run.h"

#include "base/clock.h"
#include "profiler/prefill_curve.h"

#include <stdlib.h>
#include <string.h>

/* What one context needs while it runs. */
struct context_run {
    const struct run *run;
    const struct work *work;
    struct compressor *compressor;
    struct table *out;
    uint64_t memory;      // bytes that variants and their batches may take
    double prefill_start; // by clock_now()
    struct prefill_curve curve;
    int64_t reported, before;       // tokens given to progress so far; tokens of the groups that are done
    bool *taken;                    // (V): configs that had their group
    int *member;                    // (V): the group that runs
    struct variant *variant;        // (V)
    const struct variant **pointer; // (V)
    struct question_ids *question;  // (n_questions): the open ones
    int *question_at;               // (n_questions): their numbers in the work
    struct answer *answer;          // (V * n_questions)
};

/* ---- progress ------------------------------------------------------------------ */

static void report(struct context_run *c, int64_t tokens)
{
    if (c->run->progress && tokens > c->reported)
        c->run->progress(c->run->arg, tokens - c->reported);
    if (tokens > c->reported)
        c->reported = tokens;
}

static void on_tokens(void *arg, int done)
{
    struct context_run *c = arg;

    report(c, c->before + done);
}

int64_t run_tokens(const struct grid *g, const struct work *w)
{
    int64_t n = w->n_open > 0 ? w->ids.n : 0;

    for (int v = 0; v < g->n_configs; v++)
        for (int q = 0; q < w->n_questions; q++)
            if (work_open(w, v)[q])
                n += w->question_ids[q].n + g->max_new_tokens;
    return n;
}

/* ---- results --------------------------------------------------------------------- */

static int set_prefix_digests(struct table *t, const struct work *w, struct err *err)
{
    struct buf chain = { 0 };
    int code = digest_chain(w->ids.at, w->ids.n, &chain, err);
    char *taken = code ? NULL : buf_take(&chain);

    buf_release(&chain);
    if (code || table_own(t, taken, err))
        return err->code;
    t->context_prefix_digests[0] = taken;
    return 0;
}

/* Fills what is known before anything runs. The strings belong to the inputs, which outlive the table. */
static int start_table(const struct run *run, const struct work *w, struct table *t, struct err *err)
{
    const struct grid *g = run->grid;

    if (table_alloc(t, 1, g->n_configs, w->n_questions, err))
        return err->code;
    t->context_id[0] = w->context->id;
    t->context_dataset[0] = w->context->dataset;
    t->context_token_digest[0] = w->token_digest;
    t->n_tokens[0] = w->ids.n;
    struct kv_shape shape = engine_kv_shape(run->engine);
    t->kv_bytes[0] = kv_bytes(&shape, w->ids.n);
    for (int v = 0; v < g->n_configs; v++)
        t->config_name[v] = g->config[v].name;
    for (int q = 0; q < w->n_questions; q++) {
        t->question_id[q] = w->question[q]->id;
        t->question_text[q] = w->question[q]->text;
        t->question_split[q] = split_name(w->question[q]->split);
        t->question_origin[q] = w->question[q]->origin;
        t->question_context[q] = 0;
    }
    t->profiled_at[0] = clock_utc();
    if (set_prefix_digests(t, w, err))
        return err->code;
    return table_set_made(t, run->made, err) ? err->code : table_set_text(&t->lineage, run->lineage, err);
}

static int keep_answer(struct context_run *c, int v, int q, const struct answer *answer, struct err *err)
{
    size_t at = table_answer(c->out, q, v);
    struct buf text = { 0 };

    if (tokenizer_decode(engine_tokenizer(c->run->engine), answer->ids, answer->n, &text, err)) {
        buf_release(&text);
        return err->code;
    }
    char *taken = buf_take(&text);
    if (table_own(c->out, taken, err))
        return err->code;
    c->out->answer_text[at] = taken;
    c->out->answer_n_tokens[at] = answer->n;
    return 0;
}

static void keep_variant(struct context_run *c, int v, const struct variant *variant)
{
    c->out->cell_bytes[v] = variant->bytes;
    c->out->size_frac[v] = variant->size_frac;
    c->out->keep_frac[v] = variant->keep_frac;
    c->out->compress_s[v] = variant->compress_s;
    c->out->decompress_s[v] = variant->decompress_s;
}

/* ---- groups ------------------------------------------------------------------------ */

static int decode_group(struct context_run *c, const int *member, int n, int n_questions, struct err *err)
{
    struct decode job = { .variant = c->pointer,
                          .n_variants = n,
                          .question = c->question,
                          .n_questions = n_questions,
                          .max_new_tokens = c->run->grid->max_new_tokens,
                          .progress = on_tokens,
                          .arg = c };
    double question_s;
    int n_answers = n * n_questions;

    memset(c->answer, 0, (size_t)n_answers * sizeof(*c->answer));
    int code = session_decode(c->run->session, &job, c->answer, &question_s, err);
    for (int i = 0; i < n_answers && !code; i++)
        code = keep_answer(c, member[i / n_questions], c->question_at[i % n_questions], &c->answer[i], err);
    for (int i = 0; i < n_answers; i++)
        free(c->answer[i].ids);
    if (code)
        return code;
    if (c->before == c->work->ids.n) // the first group, which has the reference
        c->out->question_s[0] = question_s;
    for (int q = 0; q < n_questions; q++)
        c->before += (int64_t)n * (c->question[q].n + job.max_new_tokens);
    report(c, c->before);
    return 0;
}

/* Derives n variants, lets them answer, and releases them. */
static int run_variants(struct context_run *c, const int *member, int n, int n_questions, struct err *err)
{
    int code = 0, made = 0;

    while (made < n && !code) {
        const struct config *config = &c->run->grid->config[member[made]];
        code = compressor_variant(c->compressor, config, VARIANT_ROWS, &c->variant[made], err);
        if (code) {
            err_wrap(err, "config '%s'", config->name);
            break;
        }
        c->pointer[made] = &c->variant[made];
        keep_variant(c, member[made], &c->variant[made]);
        made++;
    }
    if (!code)
        code = decode_group(c, member, n, n_questions, err);
    for (int i = 0; i < made; i++)
        variant_release(&c->variant[i]);
    return code;
}

/* How many of n members, from the first, fit the memory together. At least one: a variant that cannot run at all fails
 * with a message of its own. */
static int fitting(const struct context_run *c, const int *member, int n)
{
    const struct run *run = c->run;

    while (n > 1 && work_cost(run->grid, c->work, member, n, run->engine).bytes > c->memory)
        n--;
    return n;
}

static int run_group(struct context_run *c, int n, struct err *err)
{
    const struct work *w = c->work;
    int n_questions = 0;

    for (int q = 0; q < w->n_questions; q++) {
        if (!work_open(w, c->member[0])[q])
            continue;
        c->question[n_questions] = (struct question_ids){ .ids = w->question_ids[q].at, .n = w->question_ids[q].n };
        c->question_at[n_questions++] = q;
    }
    for (int done = 0; done < n;) {
        int now = fitting(c, c->member + done, n - done);
        if (run_variants(c, c->member + done, now, n_questions, err))
            return err->code;
        done += now;
    }
    return 0;
}

/* ---- the whole context ---------------------------------------------------------------- */

static void on_prefill(void *arg, int done)
{
    struct context_run *c = arg;

    prefill_curve_note(&c->curve, done, clock_now() - c->prefill_start);
    report(c, done);
}

static int prefill(struct context_run *c, double *seconds, struct err *err)
{
    struct prefill p = { .ids = c->work->ids.at, .n = c->work->ids.n, .progress = on_prefill, .arg = c };

    configs_need(c->run->grid->config, c->run->grid->n_configs, &p.needs, &p.window);
    c->curve.n_tokens = c->work->ids.n;
    c->prefill_start = clock_now();
    if (session_prefill(c->run->session, &p, seconds, err) || prefill_curve_keep(&c->curve, *seconds, c->out, err))
        return err->code;
    c->before = c->work->ids.n;
    report(c, c->before);
    return 0;
}

static int alloc_scratch(struct context_run *c, struct err *err)
{
    size_t v = (size_t)c->run->grid->n_configs, q = (size_t)c->work->n_questions;

    c->taken = calloc(v, sizeof(*c->taken));
    c->member = calloc(v, sizeof(*c->member));
    c->variant = calloc(v, sizeof(*c->variant));
    c->pointer = calloc(v, sizeof(struct variant *));
    c->question = calloc(q, sizeof(*c->question));
    c->question_at = calloc(q, sizeof(*c->question_at));
    c->answer = calloc(v * q, sizeof(*c->answer));
    return c->taken && c->member && c->variant && c->pointer && c->question && c->question_at && c->answer
               ? 0
               : err_nomem(err);
}

static void release_scratch(struct context_run *c)
{
    compressor_free(c->compressor);
    free(c->taken);
    free(c->member);
    free(c->variant);
    free(c->pointer);
    free(c->question);
    free(c->question_at);
    free(c->answer);
}

static int run_groups(struct context_run *c, struct err *err)
{
    int n;

    if (prefill(c, &c->out->prefill_s[0], err))
        return err->code;
    c->compressor = compressor_new(session_full(c->run->session), err);
    if (!c->compressor)
        return err->code;
    while ((n = grid_group(c->run->grid, c->work, c->taken, c->member)) > 0)
        if (run_group(c, n, err))
            return err->code;
    return 0;
}

int run_work(const struct run *run, const struct work *w, struct table *out, struct err *err)
{
    const double share = 0.8; // of what is free now; the rest is for what the estimate leaves out
    struct backend *be = engine_backend(run->engine);
    struct context_run c = { .run = run, .work = w, .out = out };

    c.memory = (uint64_t)(share * (double)be->memory(be).free);
    int code = start_table(run, w, out, err);
    if (!code)
        code = alloc_scratch(&c, err);
    if (!code)
        code = run_groups(&c, err);
    release_scratch(&c);
    if (code)
        table_release(out);
    return code;
}

/* ---- speed -------------------------------------------------------------------------------- */

int run_speed(const struct run *run, const struct work *w, double *flop_per_s, struct err *err)
{
    const double enough = 3e10; // operations: a third of a second where 100 billion a second are usual
    struct engine_work piece = { .n_tokens = w->ids.n < 256 ? w->ids.n : 256 };
    double best = 0;

    while (piece.n_tokens > 16 && engine_cost(run->engine, &piece).prefill_flop > enough)
        piece.n_tokens /= 2;
    struct prefill p = { .ids = w->ids.at, .n = piece.n_tokens };
    for (int i = 0; i < 2; i++) { // the first one also makes pages and kernels
        double seconds;
        if (session_prefill(run->session, &p, &seconds, err))
            return err->code;
        double rate = engine_cost(run->engine, &piece).prefill_flop / (seconds > 1e-9 ? seconds : 1e-9);
        best = rate > best ? rate : best;
    }
    *flop_per_s = best;
    return 0;
}
