/* cpu_tile.c - a tile of query rows against one piece of keys: scores, weights, weighted values.
 *
 * Scores and weighted values are oneDNN products on the calling thread, with f32 results. In bf16 the rounded weights
 * have their own buffer, because a product over rows with gaps is half as fast. ATTN_OWN takes dot products in blocks
 * of KEY_STEP keys instead, all in f32. ATTN_SHARED uses cpu_shared.h where that has a function; in bf16 on AMX all
 * kinds do.
 */
#include "kernels/cpu/cpu_attend_internal.h"

#include <math.h>
#include <string.h>

static const float LOG2_E = 1.44269504f;

/* Rows of a buffer: enough for products and for vectors of rows. Asking for K columns, as for the product with the
 * values, covers the scores too: the columns of scores are a multiple of KEY_STEP. */
static size_t buffer_rows(const struct cpu *c, int n_rows, int K)
{
    int product = matmul_rows(c->matmul, n_rows, K, c->base.dtype), lanes = shared_lanes(n_rows);
    return (size_t)(product > lanes ? product : lanes);
}

size_t tile_state_floats(const struct cpu *c, int n_rows, int K)
{
    return buffer_rows(c, n_rows, K) * (size_t)(K + 2);
}

struct state tile_state(float *at, const struct cpu *c, int n_rows, int K)
{
    size_t rows = buffer_rows(c, n_rows, K);
    return (struct state){ at, at + rows * (size_t)K, at + rows * (size_t)(K + 1) };
}

/* Lays out a tile's memory from *at on, and moves *at behind it. */
static struct tile_memory place(const struct cpu *c, int n_rows, int K, char **at)
{
    size_t rows = buffer_rows(c, n_rows, K), row = (size_t)K * sizeof(float);
    struct tile_memory m = { .score = cpu_take(at, rows * ATTN_SPLIT * sizeof(float)) };

    m.p = c->base.dtype == DTYPE_F32 ? m.score : cpu_take(at, rows * ATTN_SPLIT * dtype_size(c->base.dtype));
    m.q = cpu_take(at, rows * row);
    m.k = cpu_take(at, KEY_STEP * row);
    m.v = cpu_take(at, KEY_STEP * row);
    m.column = cpu_take(at, ATTN_SPLIT * sizeof(float));
    m.state[0] = cpu_take(at, tile_state_floats(c, n_rows, K) * sizeof(float));
    m.state[1] = cpu_take(at, tile_state_floats(c, n_rows, K) * sizeof(float));
    return m;
}

size_t tile_memory_bytes(const struct cpu *c, int n_rows, int K)
{
    static char from[64]; // the address from which sizes are measured
    char *at = from;
    place(c, n_rows, K, &at);
    return (size_t)(at - from);
}

bool tile_memory_of(struct cpu *c, int n_rows, int K, struct tile_memory *m)
{
    char *at = cpu_scratch(c, &c->tile[cpu_thread()], tile_memory_bytes(c, n_rows, K));
    if (at)
        *m = place(c, n_rows, K, &at);
    return at;
}

/* A row of a text is always in the same span, and its pieces may begin anywhere. Other pieces begin where they do
 * without a window. */
static int tile_from(const struct attend *a, const struct tile *t)
{
    int first = t->n_keys, from = 0;

    if (!a->job->window)
        return 0;
    for (int token = 0; token < t->n_tokens; token++) {
        int its = tile_first(a, t, token * a->group);
        first = its < first ? its : first;
    }
    if (a->job->kind == ATTN_TEXT)
        return first / KEY_STEP * KEY_STEP;
    for (int end; from < t->n_keys && (end = piece_end(a, from, t->n_keys)) <= first;)
        from = end;
    return from;
}

struct tile tile_of(const struct attend *a, const struct attn_span *span, int head, int row, int n_tokens)
{
    const struct attn_job *job = a->job;
    size_t K_bytes = (size_t)job->head_dim * dtype_size(a->cpu->base.dtype);
    struct tile t = { .head = head, .token = span->row + row, .n_tokens = n_tokens, .n_keys = span->n_keys };

    t.q = (const char *)job->q + tile_row(a, &t) * K_bytes;
    if (job->kind == ATTN_SHARED) {
        size_t entry = (size_t)(span->first * job->table.n_layers + job->layer) * (size_t)job->n_kv_heads;
        const struct kv_rows *rows = &job->table.host[entry + (size_t)head];
        t.k = rows->k, t.v = rows->v, t.n_keys = rows->n;
        t.from = tile_from(a, &t);
        return t;
    }
    size_t first = (size_t)(job->layer * job->n_kv_heads + head) * job->store.head_rows + (size_t)span->first;
    t.k = (const char *)job->store.k + first * K_bytes;
    t.v = (const char *)job->store.v + first * K_bytes;
    if (a->causal)
        t.n_keys = span->n_keys - span->n_rows + row + n_tokens;
    if (t.n_keys < 0)
        t.n_keys = 0;
    t.from = tile_from(a, &t);
    return t;
}

/* ---- by products --------------------------------------------------------- */

static bool product(const struct attend *a, const struct matmul_shape *shape, void *c, const void *left,
                    const void *right)
{
    const struct operands at = { .c = c, .a = left, .right = right };
    struct err err;
    int code = matmul_run(a->cpu->matmul, shape, &at, cpu_thread(), &err);
    if (code)
        cpu_fail(a->cpu, &err);
    return code == 0;
}

/* The tile's rows, padded with rows of zeros to `rows`, the number that a product needs. */
static const void *padded_rows(const struct attend *a, const struct tile *t, int rows, void *to)
{
    int n = tile_n_rows(a, t);
    size_t row = (size_t)a->job->head_dim * dtype_size(a->cpu->base.dtype);

    if (n == rows)
        return t->q;
    memcpy(to, t->q, (size_t)n * row);
    memset((char *)to + (size_t)n * row, 0, (size_t)(rows - n) * row);
    return to;
}

/* Keys or values first .. end - 1, padded with rows of zeros to a multiple of KEY_STEP. */
static const void *padded_keys(const struct attend *a, const char *all, int first, int end, void *to)
{
    size_t row = (size_t)a->job->head_dim * dtype_size(a->cpu->base.dtype), n = (size_t)(end - first);

    all += (size_t)first * row;
    if (n % KEY_STEP == 0)
        return all;
    memcpy(to, all, n * row);
    memset((char *)to + n * row, 0, (KEY_STEP - n) * row);
    return to;
}

bool tile_scores(const struct attend *a, const struct tile *t, int first, int end, const struct tile_memory *m,
                 int *pitch)
{
    enum dtype dtype = a->cpu->base.dtype;
    int rows = matmul_rows(a->cpu->matmul, tile_n_rows(a, t), a->job->head_dim, dtype);
    const struct matmul_shape shape = { .m = rows,
                                        .n = (end - first + KEY_STEP - 1) / KEY_STEP * KEY_STEP,
                                        .k = a->job->head_dim,
                                        .in = dtype,
                                        .out = DTYPE_F32,
                                        .right = RIGHT_TRANSPOSED };
    *pitch = shape.n;
    return product(a, &shape, m->score, padded_rows(a, t, rows, m->q), padded_keys(a, t->k, first, end, m->k));
}

/* Turns the scores of keys first .. end - 1 into weights in m->p, row by row; 0 for a key that the row does not see.
 * Padding rows are 0, too. */
static void weigh_scores(const struct attend *a, const struct tile *t, int first, int end, const struct tile_memory *m,
                         int pitch, enum dtype type, struct state to)
{
    const struct row_ops *ops = a->cpu->rows;
    int n_rows = tile_n_rows(a, t), rows = n_rows;
    size_t size = dtype_size(type);

    if (!a->dots)
        rows = matmul_rows(a->cpu->matmul, n_rows, a->job->head_dim, a->cpu->base.dtype);
    for (int r = 0; r < rows; r++) {
        float *score = m->score + (size_t)r * (size_t)pitch;
        char *p = (char *)m->p + (size_t)r * (size_t)pitch * size;
        int seen = r < n_rows ? tile_visible(a, t, r) : 0, from = r < n_rows ? tile_first(a, t, r) - first : 0;
        seen = seen < end ? seen - first : end - first;
        from = from > 0 ? from : 0;
        to.max[r] = -INFINITY;
        to.weight[r] = 0;
        if (seen > from) {
            if (a->job->cap > 0)
                ops->soft_cap(score + from, seen - from, a->job->cap / a->job->scale);
            to.max[r] = ops->max(score + from, seen - from);
            to.weight[r] = ops->exp2_sum(p + (size_t)from * size, type, score + from, seen - from, to.max[r],
                                         a->job->scale * LOG2_E);
        }
        seen = seen > from ? seen : 0;
        memset(p, 0, (size_t)(seen > 0 ? from : 0) * size);
        memset(p + (size_t)seen * size, 0, (size_t)(pitch - seen) * size);
    }
}

static void product_piece(const struct attend *a, const struct tile *t, int first, int end, const struct tile_memory *m,
                          struct state to)
{
    enum dtype dtype = a->cpu->base.dtype;
    int pitch;

    if (!tile_scores(a, t, first, end, m, &pitch))
        return;
    weigh_scores(a, t, first, end, m, pitch, dtype, to);
    const struct matmul_shape shape = { .m = matmul_rows(a->cpu->matmul, tile_n_rows(a, t), a->job->head_dim, dtype),
                                        .n = a->job->head_dim,
                                        .k = pitch,
                                        .in = dtype,
                                        .out = DTYPE_F32,
                                        .right = RIGHT_ROWS };
    if (a->weighed)
        product(a, &shape, to.sum, m->p, padded_keys(a, t->v, first, end, m->v));
}

/* ---- by dot products ----------------------------------------------------- */

/* Rows first .. first + n - 1 of keys or values, to be multiplied by n_q query rows: in place where n_q is so small
 * that each row is read once, else widened. */
static const void *rows_for(const struct attend *a, int n_q, const char *rows, int first, int n, void *to)
{
    enum dtype dtype = a->cpu->base.dtype;
    int K = a->job->head_dim;

    rows += (size_t)first * (size_t)K * dtype_size(dtype);
    if (dtype == DTYPE_F32 || n_q <= ROWS_FEW)
        return rows;
    a->cpu->rows->widen(to, rows, dtype, n * K);
    return to;
}

static void dots_piece(const struct attend *a, const struct tile *t, int first, int end, const struct tile_memory *m,
                       struct state to)
{
    const struct row_ops *ops = a->cpu->rows;
    int K = a->job->head_dim, rows = tile_n_rows(a, t), pitch = (end - first + KEY_STEP - 1) / KEY_STEP * KEY_STEP;
    enum dtype dtype = a->cpu->base.dtype, type = rows <= ROWS_FEW ? dtype : DTYPE_F32;
    const float *q = rows_for(a, ROWS_FEW + 1, t->q, 0, rows, m->q);
    struct tile_memory in_place = *m;

    for (int key = first; key < end; key += KEY_STEP) {
        int n = end - key < KEY_STEP ? end - key : KEY_STEP;
        const void *k = rows_for(a, rows, t->k, key, n, m->k);
        ops->dots(&(struct dots){ m->score + (key - first), (size_t)pitch, q, k, type, rows, n, K });
    }
    in_place.p = m->score;
    weigh_scores(a, t, first, end, &in_place, pitch, DTYPE_F32, to);
    if (!a->weighed)
        return;
    memset(to.sum, 0, (size_t)rows * (size_t)K * sizeof(float));
    for (int key = first; key < end; key += KEY_STEP) {
        int n = end - key < KEY_STEP ? end - key : KEY_STEP;
        const void *v = rows_for(a, rows, t->v, key, n, m->v);
        ops->weigh(&(struct weigh){ to.sum, m->score + (key - first), (size_t)pitch, v, type, rows, n, K });
    }
}

/* ---- by vectors of rows -------------------------------------------------- */

static void shared_piece(const struct attend *a, const struct tile *t, int first, int end, const struct tile_memory *m,
                         struct state to)
{
    size_t row = (size_t)a->job->head_dim * dtype_size(a->cpu->base.dtype), key = (size_t)first * row;
    const struct tile *next = end < t->n_keys ? t : t->next;
    int next_key = next == t ? end : next ? next->begun : 0;
    size_t at = (size_t)next_key * row;

    a->shared(&(struct shared_piece){ .q = t->q,
                                      .k = t->k + key,
                                      .v = t->v + key,
                                      .n_rows = tile_n_rows(a, t),
                                      .n_keys = end - first,
                                      .K = a->job->head_dim,
                                      .group = a->causal ? a->group : 0,
                                      .seen = t->n_keys - t->n_tokens + 1 - first,
                                      .next_k = next ? next->k + at : NULL,
                                      .next_v = next ? next->v + at : NULL,
                                      .n_next = next ? next->n_keys - next_key : 0,
                                      .scale = a->job->scale * LOG2_E,
                                      .sum = a->weighed ? to.sum : NULL,
                                      .max = to.max,
                                      .weight = to.weight,
                                      .score = m->score,
                                      .q_lanes = m->q,
                                      .v_at = m->v,
                                      .k_at = m->k });
}

void tile_piece(const struct attend *a, const struct tile *t, int first, int end, const struct tile_memory *m,
                struct state to)
{
    if (a->shared)
        shared_piece(a, t, first, end, m, to);
    else if (a->dots)
        dots_piece(a, t, first, end, m, to);
    else
        product_piece(a, t, first, end, m, to);
}
