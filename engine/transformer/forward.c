/* forward.c - one pass of some tokens through the model: one architecture, written once over the backend's ops. NULL:
 * the family lacks it (biases, norms of heads, experts).
 *
 *     x += o(attend(rope(norm(qkv(rmsnorm(x))))))  per layer
 *     x += down(silu(gate) * up),  gate, up of rmsnorm(x); or the same of the experts that a token uses
 *
 * Gemma's gate is a GELU, what is added is normed first, and Gemma 2 caps scores and logits. gpt-oss' attention has a
 * sink for each head.
 *
 * Attention goes over up to two spans: the rows of a variant, shared by all its questions, and the tokens of a row's
 * own sequence, new ones included. The second one merges both results by log-sum-exp. When a context is repeated
 * (repeat.c), a third span gives its keys their scores. Layers with a window keep their last rows whole, so nothing is
 * measured for methods there. Only forward_best() and forward_likelihood() wait for the device.
 */
#include "engine/transformer/engine_internal.h"

#include <math.h>
#include <stdlib.h>

/* ---- memory ------------------------------------------------------------- */

/* Hands out blocks of one allocation; at NULL: only counts. */
struct divider {
    char *at;
    size_t used;
};

static void *divide(struct divider *d, size_t n, size_t size)
{
    size_t from = d->used;
    d->used += pool_size(n * size);
    return d->at ? d->at + from : NULL;
}

/* The lists of a pass; returns their bytes. */
static size_t lay_out_lists(struct pass_lists *l, void *at, size_t rows)
{
    struct divider d = { .at = at };

    l->own = divide(&d, rows, sizeof(*l->own));
    l->shared = divide(&d, rows, sizeof(*l->shared));
    l->ids = divide(&d, rows, sizeof(*l->ids));
    l->position = divide(&d, rows, sizeof(*l->position));
    l->slot = divide(&d, rows, sizeof(*l->slot));
    l->pick = divide(&d, rows, sizeof(*l->pick));
    l->since = divide(&d, rows, sizeof(*l->since));
    return d.used;
}

static void lay_out(struct forward *f, struct divider *d, const struct engine *e)
{
    const struct model_config *c = &e->config;
    size_t R = (size_t)e->backend->pass_rows, D = (size_t)c->d_model, F = (size_t)c->d_ff;
    size_t H = (size_t)c->n_heads, G = (size_t)c->n_kv_heads, K = (size_t)c->head_dim;
    size_t number = dtype_size(e->backend->dtype);
    struct pass_lists lists;

    f->x = divide(d, R * D, sizeof(float));
    f->picked = divide(d, R * D, sizeof(float));
    f->normed = divide(d, R * D, number);
    f->qkv = divide(d, R * (H + 2 * G) * K, number);
    f->q = divide(d, R * H * K, number);
    f->attended = divide(d, R * H * K, number);
    f->part = divide(d, R * H * K, sizeof(float));
    f->lse = divide(d, R * H, sizeof(float));
    f->gate_up = divide(d, R * 2 * F, number);
    f->mlp = divide(d, R * F, number);
    f->best = divide(d, R, sizeof(*f->best));
    f->drawn = divide(d, R, sizeof(*f->drawn));
    f->pass.device_at = divide(d, lay_out_lists(&lists, NULL, R), 1);
}

size_t forward_bytes(const struct engine *e)
{
    struct forward f = { 0 };
    struct divider count = { 0 };
    lay_out(&f, &count, e);
    return count.used;
}

int forward_open(struct forward *f, struct engine *e, struct pool *pool, struct err *err)
{
    size_t rows = (size_t)e->backend->pass_rows;

    *f = (struct forward){ .engine = e, .pass.rows = e->backend->pass_rows };
    void *arena = pool_take(pool, forward_bytes(e), err);
    if (!arena)
        return err->code;
    lay_out(f, &(struct divider){ .at = arena }, e);
    size_t bytes = lay_out_lists(&f->pass.device, f->pass.device_at, rows);
    f->pass.host_at = calloc(bytes, 1);
    f->pass.n_same = calloc(rows, sizeof(*f->pass.n_same));
    f->best_host = calloc(rows, sizeof(*f->best_host));
    f->drawn_host = calloc(rows, sizeof(*f->drawn_host));
    if (!f->pass.host_at || !f->pass.n_same || !f->best_host || !f->drawn_host) {
        forward_close(f);
        return err_nomem(err);
    }
    lay_out_lists(&f->pass.host, f->pass.host_at, rows);
    return 0;
}

void forward_close(struct forward *f)
{
    free(f->pass.host_at);
    free(f->pass.n_same);
    free(f->best_host);
    free(f->drawn_host);
    *f = (struct forward){ 0 };
}

void forward_fit(struct forward *f, int n_tokens)
{
    const struct engine *e = f->engine;
    size_t at =
        (size_t)rope_table(&e->config, n_tokens) * (size_t)e->plan.max_positions * (size_t)(e->config.rotary / 2);

    f->shape = engine_kv_shape(e, n_tokens);
    f->cos = e->cos + at;
    f->sin = e->sin + at;
}

size_t kv_store_bytes(const struct engine *e, size_t n_tokens)
{
    const struct model_config *c = &e->config;
    size_t heads = (size_t)c->n_layers * (size_t)c->n_kv_heads;

    return 2 * pool_size(heads * (size_t)c->head_dim * dtype_size(e->backend->dtype) * n_tokens);
}

struct kv_store kv_store_take(struct pool *pool, const struct engine *e, size_t head_rows, struct err *err)
{
    size_t bytes = kv_store_bytes(e, head_rows);
    char *at = pool_take(pool, bytes, err);

    return (struct kv_store){ .k = at, .v = at ? at + bytes / 2 : NULL, .head_rows = head_rows };
}

/* ---- attention ---------------------------------------------------------- */

static struct mat mat_of(void *at, enum dtype type, int rows, int cols)
{
    return (struct mat){ at, type, rows, cols, cols };
}

static struct attn_job job_of(const struct forward *f, const struct forward_job *job, int layer)
{
    const struct model_config *c = &f->engine->config;

    return (struct attn_job){
        .kind = job->kind,
        .q = f->q,
        .spans = { f->pass.host.own, f->pass.device.own, f->pass.n_own, f->pass.n_same, f->pass.number },
        .store = job->store,
        .n_tokens = f->pass.n,
        .n_heads = c->n_heads,
        .n_kv_heads = c->n_kv_heads,
        .head_dim = c->head_dim,
        .layer = kv_place(&f->shape, layer),
        .scale = engine_score_scale(f->engine),
        .cap = (float)c->cap,
        .window = model_window(c, layer),
        .since = f->pass.device.since,
    };
}

/* Adds the attention of the pass's tokens to each key; `own` has been run and left its log-sum-exps. */
static void add_columns(struct forward *f, const struct forward_job *job, const struct attn_job *own)
{
    struct backend *be = f->engine->backend;
    size_t first = (size_t)own->layer * (size_t)own->n_kv_heads * job->column_pitch;

    be->watch_start(be);
    be->column_stats(be, &(struct column_job){ .attn = *own,
                                               .stat = COLUMN_SUM,
                                               .into = COLUMN_ADD,
                                               .column = job->column_sums + first,
                                               .pitch = job->column_pitch });
    be->watch_stop(be, HAND_COLUMNS);
}

/* The most attention that the pass's tokens give to each key of the store up to their own, among these keys alone. */
static void score_repeated(struct forward *f, const struct forward_job *job, int layer)
{
    struct backend *be = f->engine->backend;
    struct attn_job seen = job_of(f, job, layer);
    const struct attn_span own = seen.spans.host[0], span = { .n_rows = own.n_rows, .n_keys = own.first + own.n_keys };

    seen.spans = (struct attn_spans){ .host = &span, .n = 1 };
    seen.lse = f->lse;
    be->attend(be, &seen);
    be->column_stats(be, &(struct column_job){ .attn = seen,
                                               .stat = COLUMN_MAX,
                                               .into = COLUMN_ADD,
                                               .column = job->repeat_max +
                                                         (size_t)(seen.layer * seen.n_kv_heads) * job->store.head_rows,
                                               .pitch = job->store.head_rows });
}

static void attend(struct forward *f, const struct forward_job *job, int layer)
{
    struct backend *be = f->engine->backend;
    const struct model_config *c = &f->engine->config;
    struct mat attended = mat_of(f->attended, be->dtype, f->pass.n, c->n_heads * c->head_dim);
    struct attn_job own = job_of(f, job, layer), shared = own;

    own.out = attended;
    own.sinks = f->engine->layer[layer].sinks;
    if (f->pass.n_shared == 0) {
        own.lse = job->column_sums ? f->lse : NULL;
        be->attend(be, &own);
        if (job->column_sums)
            add_columns(f, job, &own);
        return;
    }
    shared.kind = ATTN_SHARED;
    shared.spans =
        (struct attn_spans){ f->pass.host.shared, f->pass.device.shared, f->pass.n_shared, NULL, f->pass.number };
    shared.table = job->table;
    shared.part = f->part;
    shared.lse = f->lse;
    own.other_part = f->part;
    own.other_lse = f->lse;
    be->attend(be, &shared);
    be->attend(be, &own);
    if (job->repeat_max)
        score_repeated(f, job, layer);
}

/* The column sums of the last layer; its attention has no other use in prefill. */
static void attend_for_columns(struct forward *f, const struct forward_job *job, int layer)
{
    struct backend *be = f->engine->backend;
    struct attn_job own = job_of(f, job, layer);

    own.lse = f->lse;
    own.sinks = f->engine->layer[layer].sinks;
    be->watch_start(be);
    be->attend(be, &own);
    be->watch_stop(be, HAND_COLUMNS);
    add_columns(f, job, &own);
}

/* Saves the queries of this pass that are in the window. */
static void save_queries(const struct forward *f, const struct query_window *w, int layer)
{
    const struct model_config *c = &f->engine->config;
    struct backend *be = f->engine->backend;
    size_t token = (size_t)(c->n_heads / c->n_kv_heads) * (size_t)c->head_dim * dtype_size(be->dtype); // of one kv head
    int first = f->pass.host.position[0], n = f->pass.n;
    int begin = first > w->first ? first : w->first, end = first + n;

    for (int g = 0; g < c->n_kv_heads && begin < end; g++) {
        const char *from = (const char *)f->q + ((size_t)g * (size_t)n + (size_t)(begin - first)) * token;
        char *to = w->q[kv_place(&f->shape, layer)] + ((size_t)g * (size_t)w->n + (size_t)(begin - w->first)) * token;
        be->copy(be, to, from, (size_t)(end - begin) * token);
    }
}

/* ---- the pass ----------------------------------------------------------- */

/* Adds up the queries of this pass without their rotation, which leaves keys without rotation in the store. */
static void add_moments(const struct forward *f, const struct forward_job *job, const struct rope_job *rope)
{
    struct backend *be = f->engine->backend;
    struct rope_job plain = *rope;
    int skip = MOMENT_FIRST - f->pass.host.position[0], H = rope->n_heads, K = rope->head_dim;

    skip = skip < 0 ? 0 : skip;
    plain.cos = plain.sin = NULL;
    be->watch_start(be);
    be->rope(be, &plain);
    be->moments(be, &(struct moment_job){ .q = f->q,
                                          .n_tokens = f->pass.n,
                                          .first = skip < f->pass.n ? skip : f->pass.n,
                                          .n_heads = H,
                                          .n_kv_heads = rope->n_kv_heads,
                                          .head_dim = K,
                                          .into = job->moments + (size_t)(rope->layer * H) * (size_t)((K + 1) * K) });
    be->watch_stop(be, HAND_MOMENTS);
}

/* Computes queries, keys and values from x, and puts them where attention reads them. */
static void fill_cache(const struct forward *f, const struct forward_job *job, int layer)
{
    const struct engine *e = f->engine;
    const struct model_config *c = &e->config;
    struct backend *be = e->backend;
    struct mat normed = mat_of(f->normed, be->dtype, f->pass.n, c->d_model);
    struct mat qkv = mat_of(f->qkv, be->dtype, f->pass.n, (c->n_heads + 2 * c->n_kv_heads) * c->head_dim);

    be->rmsnorm(be, normed, mat_of(f->x, DTYPE_F32, f->pass.n, c->d_model), e->layer[layer].norm_attention, c->norm_eps,
                GEMM_SET);
    be->gemm(be, qkv, normed, e->layer[layer].qkv, e->layer[layer].qkv_bias, GEMM_SET);
    const bool second = c->rope_theta_window > 0 && model_window(c, layer);
    const size_t table = second ? (size_t)e->plan.max_positions * (size_t)(c->rotary / 2) : 0;
    const struct rope_job rope = { .qkv = qkv,
                                   .position = f->pass.device.position,
                                   .slot = f->pass.device.slot,
                                   .cos = model_rotates(c, layer) ? f->cos + table : NULL,
                                   .sin = f->sin + table,
                                   .rotary = c->rotary,
                                   .q_norm = e->layer[layer].q_norm,
                                   .k_norm = e->layer[layer].k_norm,
                                   .norm_eps = c->norm_eps,
                                   .q = f->q,
                                   .store = job->store,
                                   .layer = kv_place(&f->shape, layer),
                                   .n_heads = c->n_heads,
                                   .n_kv_heads = c->n_kv_heads,
                                   .head_dim = c->head_dim };
    if (job->moments)
        add_moments(f, job, &rope);
    be->rope(be, &rope);
    if (job->window)
        save_queries(f, job->window, layer);
}

/* A product and the norm of it; NULL: none. */
struct addition {
    const struct weight *weight;
    const float *bias, *norm;
};

/* x += what it is of `in` */
static void add_product(const struct forward *f, struct mat x, struct mat in, struct addition a)
{
    struct backend *be = f->engine->backend;
    struct mat added = mat_of(f->picked, DTYPE_F32, x.rows, x.cols);

    be->gemm(be, a.norm ? added : x, in, a.weight, a.bias, a.norm ? GEMM_SET : GEMM_ADD);
    if (a.norm)
        be->rmsnorm(be, x, added, a.norm, f->engine->config.norm_eps, GEMM_ADD);
}

static void run_mlp(const struct forward *f, const struct layer *w, struct mat x, struct mat normed)
{
    const struct model_config *c = &f->engine->config;
    struct backend *be = f->engine->backend;
    struct mat gate_up = mat_of(f->gate_up, be->dtype, x.rows, 2 * c->d_ff),
               mlp = mat_of(f->mlp, be->dtype, x.rows, c->d_ff);

    be->gemm(be, gate_up, normed, w->gate_up, w->gate_up_bias, GEMM_SET);
    be->gate_mul(be, mlp, gate_up, c->gelu ? GATE_GELU : GATE_SILU);
    add_product(f, x, mlp, (struct addition){ w->down, w->down_bias, w->after_mlp });
}

static void run_experts(const struct forward *f, const struct layer *w, struct mat x, struct mat normed)
{
    const struct model_config *c = &f->engine->config;
    const struct experts experts = { .router = w->router,
                                     .gate_up = (const struct weight *const *)w->expert_gate_up,
                                     .down = (const struct weight *const *)w->expert_down,
                                     .router_bias = w->router_bias,
                                     .gate_up_bias = w->expert_gate_up_bias,
                                     .down_bias = w->expert_down_bias,
                                     .n = c->n_experts,
                                     .n_used = c->n_experts_used,
                                     .width = c->expert_ff,
                                     .renormalise = c->renormalise,
                                     .gate = c->clamped ? GATE_CLAMPED : GATE_SILU };

    f->engine->backend->moe(f->engine->backend, x, normed, &experts);
}

static void finish_layer(struct forward *f, const struct forward_job *job, int layer)
{
    const struct engine *e = f->engine;
    const struct model_config *c = &e->config;
    const struct layer *w = &e->layer[layer];
    struct backend *be = e->backend;
    int n = f->pass.n;
    struct mat x = mat_of(f->x, DTYPE_F32, n, c->d_model), normed = mat_of(f->normed, be->dtype, n, c->d_model);

    attend(f, job, layer);
    add_product(f, x, mat_of(f->attended, be->dtype, n, c->n_heads * c->head_dim),
                (struct addition){ w->o, w->o_bias, w->after_attention });
    be->rmsnorm(be, normed, x, w->norm_mlp, c->norm_eps, GEMM_SET);
    if (w->router)
        run_experts(f, w, x, normed);
    else
        run_mlp(f, w, x, normed);
}

void forward_run(struct forward *f, const struct forward_job *job)
{
    const struct engine *e = f->engine;
    struct backend *be = e->backend;
    const struct model_config *c = &e->config;
    struct pass_lists unused;
    struct forward_job plain = *job; // methods ask nothing of layers with a window

    plain.window = NULL;
    plain.column_sums = plain.repeat_max = plain.moments = NULL;
    f->pass.number = ++be->n_numbered;
    be->write(be, f->pass.device_at, f->pass.host_at, lay_out_lists(&unused, NULL, (size_t)f->pass.rows));
    be->embed(be, mat_of(f->x, DTYPE_F32, f->pass.n, c->d_model), e->embedding, f->pass.device.ids);
    if (e->scale)
        be->scale_columns(be, f->x, f->pass.n, c->d_model, e->scale);
    for (int l = 0; l < c->n_layers; l++) {
        const struct forward_job *of = kv_has_window(&f->shape, l) ? &plain : job;
        fill_cache(f, of, l);
        if (of->end == FORWARD_OUTPUT || l < c->n_layers - 1)
            finish_layer(f, of, l);
        else if (of->column_sums)
            attend_for_columns(f, of, l);
        else if (of->repeat_max)
            score_repeated(f, of, l);
    }
}

/* ---- the output --------------------------------------------------------- */

/* Normed rows of x (n, D), the input of the output matrix. */
static struct mat norm_output(const struct forward *f, float *x, int n)
{
    const struct engine *e = f->engine;
    struct mat normed = mat_of(f->normed, e->backend->dtype, n, e->config.d_model);

    e->backend->rmsnorm(e->backend, normed, mat_of(x, DTYPE_F32, n, e->config.d_model), e->norm, e->config.norm_eps,
                        GEMM_SET);
    return normed;
}

/* Rows first .. first + n - 1 of a matrix. */
static struct mat rows_of(struct mat m, int first, int n)
{
    m.at = (char *)m.at + (size_t)first * (size_t)m.pitch * dtype_size(m.type);
    m.rows = n;
    return m;
}

/* The normed rows of the picks. */
static struct mat norm_picks(struct forward *f)
{
    struct backend *be = f->engine->backend;
    int D = f->engine->config.d_model, n = f->pass.n_picks;

    be->embed(be, mat_of(f->picked, DTYPE_F32, n, D), mat_of(f->x, DTYPE_F32, f->pass.n, D), f->pass.device.pick);
    return norm_output(f, f->picked, n);
}

static int refuse_output(const struct forward *f, int pick, struct err *err)
{
    return err_set(err, ERR_FORMAT, "the model's output is not finite after %d tokens",
                   f->pass.host.position[f->pass.host.pick[pick]] + 1);
}

/* Queues a token of each row, by the capped logits; the largest is the same without the cap. */
static void queue_draw(struct forward *f, struct mat rows, struct draw_job job)
{
    struct backend *be = f->engine->backend;

    job.cap = (float)f->engine->config.logit_cap;
    if (rows.rows > 0)
        be->draw(be, f->drawn, rows, f->engine->head, &job);
}

/* Reads n of these tokens to f->drawn_host. */
static int read_drawn(struct forward *f, int n, struct err *err)
{
    struct backend *be = f->engine->backend;

    return n > 0 ? be->read(be, f->drawn_host, f->drawn, (size_t)n * sizeof(*f->drawn), err) : 0;
}

int forward_best(struct forward *f, const struct draws *draws, struct err *err)
{
    struct backend *be = f->engine->backend;
    int n = f->pass.n_picks, chosen = n - draws->n;
    struct mat normed = norm_picks(f);

    queue_draw(f, rows_of(normed, chosen, draws->n),
               (struct draw_job){ .unit = draws->unit, .temperature = draws->temperature });
    be->best(be, f->best, rows_of(normed, 0, chosen), f->engine->head);
    if (be->read(be, f->best_host, f->best, (size_t)chosen * sizeof(*f->best), err) || read_drawn(f, draws->n, err))
        return err->code;
    for (int i = 0; i < draws->n; i++)
        f->best_host[chosen + i] = (struct best){ .id = f->drawn_host[i].id };
    for (int i = 0; i < n; i++)
        if (f->best_host[i].id < 0)
            return refuse_output(f, i, err);
    return 0;
}

int forward_likelihood(struct forward *f, const int32_t *target, double *value, struct err *err)
{
    int n = f->pass.n_picks;

    queue_draw(f, norm_picks(f), (struct draw_job){ .given = target, .temperature = 1 });
    if (read_drawn(f, n, err))
        return err->code;
    for (int i = 0; i < n; i++) {
        const struct drawn_token *d = &f->drawn_host[i];
        if (d->id < 0)
            return refuse_output(f, i, err);
        value[i] = -(double)d->below - log(d->sum);
    }
    return 0;
}

void forward_warm(struct forward *f)
{
    struct backend *be = f->engine->backend;

    be->best(be, f->best, norm_output(f, f->x, 1), f->engine->head);
}

void forward_logits(struct forward *f, int first, int n, float *logits)
{
    const struct engine *e = f->engine;
    float *x = f->x + (size_t)first * (size_t)e->config.d_model;

    e->backend->gemm(e->backend, mat_of(logits, DTYPE_F32, n, e->config.n_vocab), norm_output(f, x, n), e->head, NULL,
                     GEMM_SET);
}
