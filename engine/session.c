/* A session: one context's full cache, filled by one chunked pass. */
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
            return err_set(err, ERR_USAGE, "token %d is %d, the model knows 0 to %d", i, ids[i], e->config.n_vocab - 1);
    return 0;
}

static int check(const struct session *s, const int32_t *ids, int n, struct err *err)
{
    int most = s->engine->config.max_tokens;
    if (n < 1)
        return err_set(err, ERR_USAGE, "the context is empty");
    if (n > most)
        return err_set(err, ERR_USAGE, "the context has %d tokens, the model allows %d", n, most);
    return engine_check_ids(s->engine, ids, n, err);
}

/* Memory for a context of n tokens, and the view of it that methods get. */
static int lay_out(struct session *s, int n, int window, struct err *err)
{
    struct engine *e = s->engine;
    const struct model_config *c = &e->config;
    size_t K = (size_t)c->head_dim, rows = (size_t)window * (size_t)c->n_heads;

    if (kv_store_alloc(&s->cache, e, (size_t)n, err) < 0)
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

/* One chunk of a context: tokens first .. first + n - 1. */
static int run_chunk(struct session *s, const int32_t *ids, int first, int n, const struct query_window *window,
                     enum forward_end end, struct err *err)
{
    int32_t position[FORWARD_ROWS];
    for (int i = 0; i < n; i++)
        position[i] = first + i;
    const struct own_span own = { .row = 0, .n_rows = n, .first = 0, .n_keys = first + n };
    const struct batch b = { .n = n,
                             .ids = ids + first,
                             .position = position,
                             .slot = position,
                             .store = s->cache,
                             .own = &own,
                             .n_own = 1,
                             .window = window };
    return forward_run(&s->forward, &b, end, err);
}

static int chunk_at(int first, int n)
{
    return n - first < FORWARD_ROWS ? n - first : FORWARD_ROWS;
}

static int prefill(struct session *s, const struct prefill *p, int n_window, struct err *err)
{
    const struct query_window window = { .first = p->n - n_window, .n = n_window, .q = s->window_q };

    for (int i = 0; i < p->n; i += FORWARD_ROWS) {
        int n = chunk_at(i, p->n);
        if (run_chunk(s, p->ids, i, n, n_window > 0 ? &window : NULL, FORWARD_CACHE, err) < 0)
            return err->code;
        if (p->progress)
            p->progress(p->arg, i + n);
    }
    return 0;
}

int session_prefill(struct session *s, const struct prefill *p, double *seconds, struct err *err)
{
    double start = clock_now();
    int window = p->needs & NEED_WINDOW_Q ? p->window : 0;

    forget(s);
    if (check(s, p->ids, p->n, err) < 0)
        return err->code;
    window = window < p->n ? window : p->n;
    if (lay_out(s, p->n, window, err) < 0 || prefill(s, p, window, err) < 0) {
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
    if (check(s, ids, n, err) < 0 || lay_out(s, n, 0, err) < 0)
        return err->code;
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i += FORWARD_ROWS) {
        rc = run_chunk(s, ids, i, chunk_at(i, n), NULL, FORWARD_OUTPUT, err);
        if (rc == 0)
            rc = forward_logits(&s->forward, chunk_at(i, n), logits + (size_t)i * (size_t)s->engine->config.n_vocab,
                                err);
    }
    forget(s);
    return rc;
}
