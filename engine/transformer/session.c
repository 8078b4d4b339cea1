/* session.c - a session's memory; one context's uncompressed cache, filled pass by pass; and logits for comparison.
 *
 * session_prefill() stops the last layer at its keys and values, since a context's own output is not used. A failure
 * leaves the session without a context.
 */
#include "engine/transformer/engine_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int warm_up(struct session *s, struct err *err);

struct session *session_new(struct engine *e, struct err *err)
{
    struct session *s = calloc(1, sizeof(*s));
    if (!s) {
        err_nomem(err);
        return NULL;
    }
    s->engine = e;
    s->rows = calloc((size_t)e->config.n_layers * (size_t)e->config.n_kv_heads, sizeof(*s->rows));
    s->window_q = calloc((size_t)e->config.n_layers, sizeof(*s->window_q));
    uint64_t bytes = 0;
    for (int i = PLAN_PASS; i < PLAN_AREAS; i++)
        bytes += i == PLAN_SCRATCH ? 0 : e->plan.bytes[i];
    if (!s->rows || !s->window_q)
        err_nomem(err);
    else if (pool_open(&s->pool, e->backend, (size_t)bytes, err) == 0 &&
             forward_open(&s->forward, e, &s->pool, err) == 0) {
        s->mark = pool_mark(&s->pool);
        if (warm_up(s, err) == 0)
            return s;
    }
    session_free(s);
    return NULL;
}

struct session *engine_start(struct engine *e, const struct engine_work *work, int n, uint64_t memory, struct err *err)
{
    struct engine_plan plan = { .limit = memory };

    if (engine_plan(e, work, n, &plan, err) || engine_load(e, &plan, err))
        return NULL;
    return session_new(e, err);
}

/* Back to a session without a context. */
static void forget(struct session *s)
{
    pool_reset(&s->pool, s->mark);
    free(s->value_norms);
    s->value_norms = NULL;
    s->full = (struct kv_full){ 0 };
}

void session_free(struct session *s)
{
    if (!s)
        return;
    forward_close(&s->forward);
    pool_close(&s->pool);
    free(s->rows);
    free(s->window_q);
    free(s->value_norms);
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
    int max = s->engine->config.max_tokens, planned = s->engine->plan.max_positions;
    if (n < 1)
        return err_set(err, ERR_USAGE, "the context is empty");
    if (n > max)
        return err_set(err, ERR_USAGE, "the context has %d tokens, the model allows %d", n, max);
    if (n > planned)
        return err_set(err, ERR_NOMEM, "the context has %d tokens, memory was planned for %d", n, planned);
    return engine_check_ids(s->engine, ids, n, err);
}

/* Memory for a context of n tokens, and the lists that describe it. */
static int lay_out(struct session *s, int n, int window, struct err *err)
{
    struct engine *e = s->engine;
    const struct model_config *c = &e->config;
    size_t row = (size_t)c->head_dim * dtype_size(e->backend->dtype), layer = (size_t)window * (size_t)c->n_heads * row;

    forward_fit(&s->forward, n);
    s->cache = kv_store_take(&s->pool, e, (size_t)n, err);
    if (!s->cache.k)
        return err->code;
    for (size_t h = 0; h < (size_t)c->n_layers * (size_t)c->n_kv_heads; h++)
        s->rows[h] =
            (struct kv_rows){ (char *)s->cache.k + h * (size_t)n * row, (char *)s->cache.v + h * (size_t)n * row, n };
    int L = s->forward.shape.n_layers;
    char *q = window > 0 ? pool_take(&s->pool, (size_t)L * layer, err) : NULL;
    if (window > 0 && !q)
        return err->code;
    for (int l = 0; l < L; l++)
        s->window_q[l] = q ? q + (size_t)l * layer : NULL;
    memset(s->unrotated, 0, sizeof(s->unrotated));
    for (int l = 0; l < L; l++)
        s->unrotated[l / 64] |= (uint64_t)!model_rotates(c, kv_number(&s->forward.shape, l)) << l % 64;
    return 0;
}

/* n_rows rows of n zeros. */
static float *take_zeros(struct session *s, int n_rows, size_t n, struct err *err)
{
    struct backend *be = s->engine->backend;
    float *zeros = calloc(n, sizeof(*zeros)), *at = NULL;

    if (!zeros)
        err_nomem(err);
    else
        at = pool_take(&s->pool, (size_t)n_rows * n * sizeof(*zeros), err);
    if (at)
        be->repeat(be, at, n * sizeof(*zeros), n_rows, zeros, n * sizeof(*zeros));
    free(zeros);
    return at;
}

/* Sums that passes add to, zero. */
static int lay_out_sums(struct session *s, int n, unsigned needs, struct err *err)
{
    const struct kv_shape *shape = &s->forward.shape;
    size_t K = (size_t)shape->head_dim;

    s->column_sums = s->moments = NULL;
    if (needs & NEED_COLUMN_SUMS)
        s->column_sums = take_zeros(s, shape->n_layers * shape->n_kv_heads, (size_t)n, err);
    if (needs & NEED_COLUMN_SUMS && !s->column_sums)
        return err->code;
    if (needs & NEED_MOMENTS)
        s->moments = take_zeros(s, shape->n_layers * shape->n_heads, (K + 1) * K, err);
    return needs & NEED_MOMENTS && !s->moments ? err->code : 0;
}

/* Queues one pass over tokens first .. first + n - 1 of a context. */
static void run_range(struct session *s, const int32_t *ids, int first, int n, const struct forward_job *job)
{
    struct pass *p = &s->forward.pass;

    pass_clear(p);
    pass_add(p, &(struct pass_tokens){ .ids = ids + first, .n = n, .position = first, .slot = first }, 0);
    forward_run(&s->forward, job);
}

/* One token through the whole model. At the first product of each shape a backend chooses its algorithm, and at the
 * first ops it takes its scratch memory: neither belongs in a measured time. */
static int warm_up(struct session *s, struct err *err)
{
    const int32_t id = 0;

    if (lay_out(s, 1, 0, err))
        return err->code;
    const struct forward_job job = { .store = s->cache, .kind = ATTN_TEXT, .end = FORWARD_OUTPUT };
    run_range(s, &id, 0, 1, &job);
    forward_warm(&s->forward);
    forget(s);
    return s->engine->backend->sync(s->engine->backend, err);
}

static int min(int a, int b)
{
    return a < b ? a : b;
}

static int prefill(struct session *s, const struct prefill *p, int n_window, struct err *err)
{
    struct backend *be = s->engine->backend;
    const struct query_window window = { .first = p->n - n_window, .n = n_window, .q = s->window_q };
    const struct forward_job job = { .store = s->cache,
                                     .kind = ATTN_TEXT,
                                     .end = FORWARD_CACHE,
                                     .window = n_window > 0 ? &window : NULL,
                                     .column_sums = s->column_sums,
                                     .column_pitch = (size_t)p->n,
                                     .moments = s->moments };
    double start = be->clock(be);

    s->forward.column_s = s->forward.moment_s = 0;
    for (int hand = 0; hand < WATCH_HANDS; hand++)
        be->watched(be, hand); // what a prefill that failed has left
    for (int i = 0, n; i < p->n; i += n) {
        n = min(p->n - i, be->pass_rows);
        run_range(s, p->ids, i, n, &job);
        if (be->sync(be, err))
            return err->code;
        s->forward.column_s += be->watched(be, HAND_COLUMNS);
        s->forward.moment_s += be->watched(be, HAND_MOMENTS);
        if (p->progress)
            p->progress(p->arg, i + n, be->clock(be) - start - s->forward.column_s - s->forward.moment_s);
    }
    return 0;
}

/* The norms of projected values, on the host. */
static int find_norms(struct session *s, int n, double *seconds, struct err *err)
{
    size_t heads = (size_t)s->forward.shape.n_layers * (size_t)s->forward.shape.n_kv_heads;

    s->value_norms = malloc(heads * (size_t)n * sizeof(*s->value_norms));
    return s->value_norms ? value_norms(s, n, s->value_norms, seconds, err) : err_nomem(err);
}

int session_prefill(struct session *s, const struct prefill *p, double *seconds, struct err *err)
{
    struct engine *e = s->engine;
    int window = p->needs & NEED_WINDOW_Q ? min(p->window, p->n) : 0;
    double norms_s = 0;
    int n_head = 0;

    forget(s);
    if (check(s, p->ids, p->n, err))
        return err->code;
    int code = lay_out(s, p->n, window, err);
    if (!code)
        code = lay_out_sums(s, p->n, p->needs, err);
    double start = e->backend->clock(e->backend);
    if (!code)
        code = prefill(s, p, window, err);
    if (code) {
        forget(s);
        return code;
    }
    if (seconds)
        *seconds = e->backend->clock(e->backend) - start - s->forward.column_s - s->forward.moment_s;
    if (tokenizer_head(e->tokenizer, p->ids, p->n, &n_head, err) ||
        (p->needs & NEED_VALUE_NORMS && find_norms(s, p->n, &norms_s, err))) {
        forget(s);
        return err->code;
    }
    s->full = (struct kv_full){ .backend = e->backend,
                                .pool = &s->pool,
                                .shape = s->forward.shape,
                                .n_tokens = p->n,
                                .n_head = n_head,
                                .store = s->cache,
                                .rows = s->rows,
                                .cos = s->forward.cos,
                                .sin = s->forward.sin,
                                .window = window,
                                .window_q = (void *const *)s->window_q,
                                .column_sums = s->column_sums,
                                .column_sums_s = s->forward.column_s,
                                .rotary = e->config.rotary,
                                .unrotated = s->unrotated,
                                .scale = engine_score_scale(e),
                                .cap = (float)e->config.cap,
                                .moments = s->moments,
                                .moments_s = s->forward.moment_s,
                                .value_norms = s->value_norms,
                                .value_norms_s = norms_s };
    return 0;
}

/* ---- the rows of variants ------------------------------------------------ */

int kv_table_take(struct session *s, const struct variant *const *variant, int n, struct kv_table *table,
                  struct err *err)
{
    const struct engine *e = s->engine;
    size_t heads = (size_t)e->config.n_layers * (size_t)e->config.n_kv_heads, bytes = heads * sizeof(struct kv_rows);
    struct kv_rows *host = malloc((size_t)n * bytes), *device = pool_take(&s->pool, (size_t)n * bytes, err);

    *table = (struct kv_table){ .host = host, .device = device, .n_layers = e->config.n_layers };
    if (!host)
        return err_nomem(err);
    if (!device)
        return err->code;
    for (int v = 0; v < n; v++)
        memcpy(host + (size_t)v * heads, variant[v]->rows, bytes);
    e->backend->write(e->backend, device, host, (size_t)n * bytes);
    return 0;
}

/* ---- logits ------------------------------------------------------------- */

/* Runs one pass and brings the logits of its tokens to the host, a few rows at a time. */
static int logits_of_pass(struct session *s, int n, float *space, float *logits, struct err *err)
{
    enum { TOGETHER = 64 };
    struct backend *be = s->engine->backend;
    size_t V = (size_t)s->engine->config.n_vocab;
    const double cap = s->engine->config.logit_cap;

    for (int i = 0; i < n; i += TOGETHER) {
        int some = min(n - i, TOGETHER);
        forward_logits(&s->forward, i, some, space);
        if (be->read(be, logits + (size_t)i * V, space, (size_t)some * V * sizeof(float), err))
            return err->code;
    }
    for (size_t i = 0; i < (size_t)n * V && cap > 0; i++)
        logits[i] = (float)(cap * tanh((double)logits[i] / cap));
    return 0;
}

int session_logits(struct session *s, const int32_t *ids, int n, float *logits, struct err *err)
{
    struct backend *be = s->engine->backend;
    size_t V = (size_t)s->engine->config.n_vocab;

    forget(s);
    if (check(s, ids, n, err) || lay_out(s, n, 0, err))
        return err->code;
    const struct forward_job job = { .store = s->cache, .kind = ATTN_TEXT, .end = FORWARD_OUTPUT };
    float *space = be->alloc(be, 64 * V * sizeof(float), err);
    int code = space ? 0 : err->code;
    for (int i = 0, some; i < n && !code; i += some) {
        some = min(n - i, be->pass_rows);
        run_range(s, ids, i, some, &job);
        code = logits_of_pass(s, some, space, logits + (size_t)i * V, err);
    }
    be->free(be, space);
    forget(s);
    return code;
}
