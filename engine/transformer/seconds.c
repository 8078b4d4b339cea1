/* seconds.c - what a user of one variant waits for: the first token of a question, and each token of an answer. Nothing
 * else runs meanwhile. The backend's clock waits until the work is done. */
#include "engine/transformer/engine_internal.h"

#include "base/unconst.h"

#include <math.h>
#include <stdlib.h>

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* ---- a question ---------------------------------------------------------- */

/* Runs the question and its output; a question longer than a pass takes several. */
static int run_question(struct session *s, const struct forward_job *job, struct question_ids q, int position,
                        struct err *err)
{
    struct pass *p = &s->forward.pass;

    for (int done = 0, n; done < q.n; done += n) {
        n = min(q.n - done, p->rows);
        pass_clear(p);
        pass_add(p, &(struct pass_tokens){ .ids = q.ids + done, .n = n, .position = position + done, .slot = done }, 0);
        pass_share(p, 0, n, 0);
        pass_pick(p, 1);
        forward_run(&s->forward, job);
    }
    return forward_best(&s->forward, &(struct draws){ 0 }, err);
}

int session_question_s(struct session *s, const struct variant *variant, struct question_ids question, double *seconds,
                       struct err *err)
{
    struct backend *be = s->engine->backend;
    size_t mark = pool_mark(&s->pool);
    struct forward_job job = { .kind = ATTN_OWN, .end = FORWARD_OUTPUT };

    job.store = kv_store_take(&s->pool, s->engine, (size_t)question.n, err);
    int code = job.store.k ? kv_table_take(s, &variant, 1, &job.table, err) : err->code;
    *seconds = (double)INFINITY;
    for (int i = 0; i < 2 && !code; i++) { // the first time includes making kernels
        double start = be->clock(be);
        code = run_question(s, &job, question, variant->n_tokens, err);
        *seconds = fmin(*seconds, be->clock(be) - start);
    }
    free(unconst(job.table.host));
    pool_reset(&s->pool, mark);
    return code;
}

/* ---- an answer's token ---------------------------------------------------- */

/* A pass of `batch` copies of one sequence: its first token after the context. Each copy attends to the rows by itself,
 * as if they were its own. */
static void fill_step(struct pass *p, int batch, int position)
{
    pass_clear(p);
    for (int i = 0; i < batch; i++) {
        pass_add(p, &(struct pass_tokens){ .ids = &(int32_t){ 0 }, .n = 1, .position = position, .slot = i }, i);
        p->host.shared[p->n_shared++] = (struct attn_span){ .row = i, .n_rows = 1 };
        pass_pick(p, 1);
    }
}

static int run_step(struct session *s, const struct forward_job *job, double *seconds, struct err *err)
{
    struct backend *be = s->engine->backend;
    double start = be->clock(be);

    forward_run(&s->forward, job);
    if (forward_best(&s->forward, &(struct draws){ 0 }, err))
        return err->code;
    *seconds = be->clock(be) - start;
    return 0;
}

int session_decode_s(struct session *s, const struct variant *variant, int batch, double *seconds, struct err *err)
{
    const double enough = 0.02; // a step this long says enough alone
    const int steps = 3;        // of shorter ones the fastest counts
    size_t mark = pool_mark(&s->pool);
    struct forward_job job = { .kind = ATTN_OWN, .end = FORWARD_OUTPUT };
    double step, sum = 0;

    job.store = kv_store_take(&s->pool, s->engine, (size_t)batch, err);
    int code = job.store.k ? kv_table_take(s, &variant, 1, &job.table, err) : err->code;
    fill_step(&s->forward.pass, batch, variant->n_tokens);
    if (!code && !s->has_decoded[batch]) // the first step of a batch includes making kernels
        code = run_step(s, &job, &step, err);
    s->has_decoded[batch] = !code;
    *seconds = (double)INFINITY;
    for (int i = 0; i < steps && sum < enough && !code; i++) {
        code = run_step(s, &job, &step, err);
        *seconds = fmin(*seconds, step / batch);
        sum += step;
    }
    free(unconst(job.table.host));
    pool_reset(&s->pool, mark);
    return code;
}
