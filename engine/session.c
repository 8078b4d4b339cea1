/* session.c - one context's full cache, filled chunk by chunk; and logits for evaluation.
 *
 * session_prefill() stops the last layer at its keys and values, since a context's own output is never used. A failure
 * leaves a session without a context.
 */
#include "engine/engine_internal.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

struct session *session_new(struct engine *e, struct err *err)
{
    struct session *s = calloc(1, sizeof(*s));
    if (!s) {
        err_nomem(err);
        return NULL;
    }
    s->engine = e;
    size_t heads = (size_t)e->config.n_layers * (size_t)e->config.n_kv_heads;
    s->rows = calloc(heads, sizeof(*s->rows));
    s->window_q = calloc((size_t)e->config.n_layers, sizeof(*s->window_q));
    if (!s->rows || !s->window_q)
        err_nomem(err);
    else if (forward_open(&s->forward, e, err) == 0)
        return s;
    session_free(s);
    return NULL;
}

/* Back to a session without a context. */
static void forget(struct session *s)
{
    struct backend *be = s->engine->backend;
    kv_store_free(&s->cache, s->engine);
    be->free(be, s->window);
    s->window = NULL;
    s->full = (struct kv_full){ 0 };
}

void session_free(struct session *s)
{
    if (!s)
        return;
    forget(s);
    forward_close(&s->forward);
    free(s->rows);
    free(s->window_q);
    free(s);
}

const struct kv_full *session_full(const struct session *s)
{
    return &s->full;
}

/* ---- prefill ------------------------------------------------------------ */

int engine_check_ids(const struct engine *e, const int32_t *ids, int n, struct err *err)
{
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= e->config.n_vocab)
            return err_set(err, ERR_USAGE, "token %d is %d; the model's vocabulary is 0 to %d", i, ids[i],
                           e->config.n_vocab - 1);
    return 0;
}

static int check(const struct session *s, const int32_t *ids, int n, struct err *err)
{
    int max = s->engine->config.max_tokens;
    if (n < 1)
        return err_set(err, ERR_USAGE, "the context is empty");
    if (n > max)
        return err_set(err, ERR_USAGE, "the context has %d tokens, the model allows %d", n, max);
    return engine_check_ids(s->engine, ids, n, err);
}

/* Memory for a context of n tokens, and the view of it that methods get. */
static int lay_out(struct session *s, int n, int window, struct err *err)
{
    struct engine *e = s->engine;
    const struct model_config *c = &e->config;
    size_t K = (size_t)c->head_dim, rows = (size_t)window * (size_t)c->n_heads;

    if (kv_store_alloc(&s->cache, e, (size_t)n, err))
        return err->code;
    for (size_t h = 0; h < (size_t)c->n_layers * (size_t)c->n_kv_heads; h++)
        s->rows[h] = (struct kv_rows){ s->cache.k + h * (size_t)n * K, s->cache.v + h * (size_t)n * K, n };
    if (window > 0) {
        s->window = e->backend->alloc(e->backend, (size_t)c->n_layers * rows * K * sizeof(float), err);
        if (!s->window)
            return err->code;
    }
    for (int l = 0; l < c->n_layers; l++)
        s->window_q[l] = window > 0 ? s->window + (size_t)l * rows * K : NULL;
    return 0;
}

/* One pass over a part of a context: tokens first .. first + n - 1. */
struct chunk {
    const int32_t *ids; // of the whole context
    int first, n;
    const struct query_window *window; // NULL: none
};

static struct chunk chunk_at(const int32_t *ids, int first, int n_tokens)
{
    int left = n_tokens - first;
    return (struct chunk){ .ids = ids, .first = first, .n = left < FORWARD_ROWS ? left : FORWARD_ROWS };
}

static int run_chunk(struct session *s, const struct chunk *c, enum forward_end end, struct err *err)
{
    int32_t position[FORWARD_ROWS];
    for (int i = 0; i < c->n; i++)
        position[i] = c->first + i;
    const struct own_span own = { .rows = { 0, c->n }, .slot = 0, .n_keys = c->first + c->n };
    const struct batch b = { .n = c->n,
                             .ids = c->ids + c->first,
                             .position = position,
                             .slot = position,
                             .store = s->cache,
                             .own = &own,
                             .n_own = 1,
                             .window = c->window };
    return forward_run(&s->forward, &b, end, err);
}

static int prefill(struct session *s, const struct prefill *p, int n_window, struct err *err)
{
    const struct query_window window = { .first = p->n - n_window, .n = n_window, .q = s->window_q };

    for (int i = 0; i < p->n; i += FORWARD_ROWS) {
        struct chunk c = chunk_at(p->ids, i, p->n);
        c.window = n_window > 0 ? &window : NULL;
        if (run_chunk(s, &c, FORWARD_CACHE, err))
            return err->code;
        if (p->progress)
            p->progress(p->arg, i + c.n);
    }
    return 0;
}

int session_prefill(struct session *s, const struct prefill *p, double *seconds, struct err *err)
{
    double start = clock_now();
    int window = p->needs & NEED_WINDOW_Q ? p->window : 0;

    forget(s);
    if (check(s, p->ids, p->n, err))
        return err->code;
    window = window < p->n ? window : p->n;
    if (lay_out(s, p->n, window, err) || prefill(s, p, window, err)) {
        forget(s);
        return err->code;
    }
    s->full = (struct kv_full){ .backend = s->engine->backend,
                                .shape = engine_kv_shape(s->engine),
                                .n_tokens = p->n,
                                .rows = s->rows,
                                .window = window,
                                .window_q = (void *const *)s->window_q };
    if (seconds)
        *seconds = clock_now() - start;
    return 0;
}

int session_logits(struct session *s, const int32_t *ids, int n, float *logits, struct err *err)
{
    forget(s);
    if (check(s, ids, n, err) || lay_out(s, n, 0, err))
        return err->code;
    int code = 0;
    for (int i = 0; i < n && !code; i += FORWARD_ROWS) {
        struct chunk c = chunk_at(ids, i, n);
        code = run_chunk(s, &c, FORWARD_OUTPUT, err);
        if (!code)
            code = forward_logits(&s->forward, c.n, logits + (size_t)i * (size_t)s->engine->config.n_vocab, err);
    }
    forget(s);
    return code;
}
