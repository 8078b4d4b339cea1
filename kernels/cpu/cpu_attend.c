/* cpu_attend.c - attention on the CPU: tiles of query rows against pieces of ATTN_SPLIT keys.
 *
 * A piece gives, per row, the sum of the values weighted by 2^(scores - their maximum), that maximum, and the sum of
 * the weights. Pieces are merged strictly from the first to the last, so the bits do not depend on which thread
 * computed them. A tile of a causal item (prefill, a sequence's own suffix) is one task, which goes through its pieces
 * in order. The pieces of a shared item, which may be the only long one, are spread over the threads and merged
 * afterwards.
 *
 * Scores and weighted sums are oneDNN products on one thread each; short causal items, a decode step's suffixes, are
 * plain dot products. The choice depends on the item alone, never on the batch.
 */
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

enum {
    TILE_ROWS = 192, // x 1,024 keys of f32 scores stay in the second-level cache
    DOTS_ROWS = 32,  // causal items of at most so many rows: a product's overhead would be larger than the work
};
static const float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

/* A tile's rows after some of its pieces. */
struct state {
    float *sum;    // (rows, K): weighted values
    float *max;    // (rows): of the raw scores; -INFINITY: no key seen
    float *weight; // (rows): sum of the weights
};

struct task {
    const struct attn_item *item;
    int row, n_rows;
    int key, n_keys;
    float *shared; // state of one piece of a spread tile; NULL: the task finishes its tile
};

struct attend {
    struct cpu *cpu;
    int head_dim;
    float scale;
    struct task *task; // [n_tasks]; the pieces of a spread tile follow each other
    int n_tasks;
};

static int min(int a, int b)
{
    return a < b ? a : b;
}

static int n_pieces(int n_keys)
{
    return n_keys > 0 ? (n_keys + ATTN_SPLIT - 1) / ATTN_SPLIT : 1;
}

static bool is_spread(const struct attn_item *item)
{
    return item->causal < 0 && item->kv.n > ATTN_SPLIT;
}

/* A tile holds whole tokens, so that causal tiles can stop at their last token's keys. */
static int tile_rows(const struct attn_item *item)
{
    return item->group >= TILE_ROWS ? item->group : TILE_ROWS / item->group * item->group;
}

static int n_tiles(const struct attn_item *item)
{
    return (item->n_q + tile_rows(item) - 1) / tile_rows(item);
}

/* How many keys the item's rows up to `last` see. */
static int visible(const struct attn_item *item, int last)
{
    return item->causal < 0 ? item->kv.n : min(item->kv.n, item->causal + last / item->group + 1);
}

static size_t state_floats(int n_rows, int K)
{
    return (size_t)n_rows * (size_t)(K + 2);
}

static struct state state_at(float *at, int n_rows, int K)
{
    return (struct state){ at, at + (size_t)n_rows * (size_t)K, at + (size_t)n_rows * (size_t)(K + 1) };
}

/* ---- one piece ---------------------------------------------------------- */

static int product(struct cpu *c, struct matmul_shape shape, float *out, const float *a, const float *b)
{
    struct err err;
    int code = matmul_run(c->matmul, &shape, out, a, b, NULL, NULL, cpu_thread(), &err);
    if (code)
        cpu_fail(c, &err);
    return code;
}

/* Turns a tile's scores into weights, row by row, zero where a key is not seen. */
static void weigh_scores(const struct attend *a, const struct task *t, float *score, struct state to)
{
    for (int r = 0; r < t->n_rows; r++, score += t->n_keys) {
        int seen = min(t->n_keys, visible(t->item, t->row + r) - t->key);
        to.max[r] = -INFINITY;
        to.weight[r] = 0;
        if (seen > 0) {
            to.max[r] = a->cpu->rows->max(score, seen);
            to.weight[r] = a->cpu->rows->exp2_sum(score, seen, to.max[r], a->scale * LOG2_E);
        }
        for (int j = seen > 0 ? seen : 0; j < t->n_keys; j++)
            score[j] = 0;
    }
}

/* The tile's query rows without gaps between them; rows that have gaps are copied to `packed`. */
static const float *dense_rows(const struct task *t, int K, float *packed)
{
    const struct attn_item *item = t->item;
    const float *q = (const float *)item->q + (size_t)t->row * (size_t)item->q_pitch;
    if (item->q_pitch == K)
        return q;
    for (int r = 0; r < t->n_rows; r++)
        memcpy(packed + (size_t)r * (size_t)K, q + (size_t)r * (size_t)item->q_pitch, (size_t)K * sizeof(float));
    return packed;
}

/* score: scratch for n_rows rows of scores and n_rows rows of q. All operands are dense: oneDNN's fast code needs that.
 */
static void piece(const struct attend *a, const struct task *t, float *score, struct state to)
{
    const struct attn_item *item = t->item;
    const struct row_ops *rows = a->cpu->rows;
    int K = a->head_dim, m = t->n_rows, n = t->n_keys;
    const float *q = dense_rows(t, K, score + (size_t)m * ATTN_SPLIT);
    const float *k = (const float *)item->kv.k + (size_t)t->key * (size_t)K;
    const float *v = (const float *)item->kv.v + (size_t)t->key * (size_t)K;

    if (n == 0 || (item->causal >= 0 && item->n_q <= DOTS_ROWS)) {
        rows->dots(score, n, q, K, m, k, n, K);
        weigh_scores(a, t, score, to);
        rows->weigh(to.sum, score, n, m, v, n, K);
        return;
    }
    const struct matmul_shape qk = { m, n, K, K, K, n, RIGHT_TRANSPOSED, GEMM_SET, false };
    const struct matmul_shape pv = { m, K, n, n, K, K, RIGHT_ROWS, GEMM_SET, false };
    if (product(a->cpu, qk, score, q, k))
        return;
    weigh_scores(a, t, score, to);
    product(a->cpu, pv, to.sum, score, v);
}

/* Merges b, the next piece, into a. */
static void fold(const struct row_ops *rows, struct state a, struct state b, int n_rows, int K, float scale)
{
    for (int r = 0; r < n_rows; r++) {
        if (b.weight[r] == 0)
            continue;
        float max = a.max[r] > b.max[r] ? a.max[r] : b.max[r];
        float wa = exp2f((a.max[r] - max) * scale * LOG2_E), wb = exp2f((b.max[r] - max) * scale * LOG2_E);
        rows->blend(a.sum + (size_t)r * (size_t)K, wa, b.sum + (size_t)r * (size_t)K, wb, K);
        a.weight[r] = a.weight[r] * wa + b.weight[r] * wb;
        a.max[r] = max;
    }
}

static void finish(const struct attend *a, const struct attn_item *item, int row, int n_rows, struct state s)
{
    for (int r = 0; r < n_rows; r++) {
        float *out = (float *)item->out + (size_t)(row + r) * (size_t)item->out_pitch;
        float inverse = s.weight[r] > 0 ? 1 / s.weight[r] : 0;
        for (int c = 0; c < a->head_dim; c++)
            out[c] = s.sum[(size_t)r * (size_t)a->head_dim + (size_t)c] * inverse;
        if (item->lse)
            item->lse[row + r] = s.weight[r] > 0 ? s.max[r] * a->scale + LN_2 * log2f(s.weight[r]) : -INFINITY;
    }
}

/* ---- the list of work --------------------------------------------------- */

static void run_task(const struct attend *a, const struct task *t)
{
    int K = a->head_dim;
    size_t n_state = state_floats(t->n_rows, K), n_score = (size_t)t->n_rows * (size_t)(ATTN_SPLIT + K);
    float *at = cpu_scratch(a->cpu, &a->cpu->tile[cpu_thread()], (2 * n_state + n_score) * sizeof(float));
    if (!at)
        return;
    float *score = at + 2 * n_state;
    if (t->shared) {
        piece(a, t, score, state_at(t->shared, t->n_rows, K));
        return;
    }
    struct state all = state_at(at, t->n_rows, K), next = state_at(at + n_state, t->n_rows, K);
    struct task part = *t;
    for (int key = 0; key == 0 || key < t->n_keys; key += ATTN_SPLIT) {
        part.key = key;
        part.n_keys = min(t->n_keys - key, ATTN_SPLIT);
        piece(a, &part, score, key == 0 ? all : next);
        if (key > 0)
            fold(a->cpu->rows, all, next, t->n_rows, K, a->scale);
    }
    finish(a, t->item, t->row, t->n_rows, all);
}

/* Merges the pieces of a spread tile; t is the first of them. */
static void finish_spread(const struct attend *a, const struct task *t)
{
    struct state all = state_at(t->shared, t->n_rows, a->head_dim);
    for (int i = 1; i < n_pieces(t->item->kv.n); i++)
        fold(a->cpu->rows, all, state_at(t[i].shared, t->n_rows, a->head_dim), t->n_rows, a->head_dim, a->scale);
    finish(a, t->item, t->row, t->n_rows, all);
}

/* One tile becomes one task, or one for each of its pieces. Returns the place after the last. */
static struct task *add_tile(struct task *to, const struct attn_item *item, int tile, int K, float **partial)
{
    int row = tile * tile_rows(item), n_rows = min(item->n_q - row, tile_rows(item));
    struct task t = { .item = item, .row = row, .n_rows = n_rows, .n_keys = visible(item, row + n_rows - 1) };

    if (!is_spread(item)) {
        *to = t;
        return to + 1;
    }
    for (t.key = 0; t.key < item->kv.n; t.key += ATTN_SPLIT) {
        t.n_keys = min(item->kv.n - t.key, ATTN_SPLIT);
        t.shared = *partial;
        *partial += state_floats(n_rows, K);
        *to++ = t;
    }
    return to;
}

/* Lists the tasks of all items; a causal item's last tile, its longest, comes first. False: no memory. */
static bool list_tasks(struct attend *a, const struct attn_item *item, int n_items)
{
    size_t n_tasks = 0, n_floats = 0;
    for (int i = 0; i < n_items; i++) {
        size_t pieces = is_spread(&item[i]) ? (size_t)n_pieces(item[i].kv.n) : 1;
        n_tasks += pieces * (size_t)n_tiles(&item[i]);
        n_floats += is_spread(&item[i]) ? pieces * state_floats(item[i].n_q, a->head_dim) : 0;
    }
    a->task = cpu_scratch(a->cpu, &a->cpu->list, n_tasks * sizeof(*a->task));
    float *partial = cpu_scratch(a->cpu, &a->cpu->partial, n_floats * sizeof(float));
    if (!a->task || (n_floats && !partial))
        return false;
    struct task *to = a->task;
    for (int i = 0; i < n_items; i++)
        for (int tile = n_tiles(&item[i]) - 1; tile >= 0; tile--)
            to = add_tile(to, &item[i], tile, a->head_dim, &partial);
    a->n_tasks = (int)n_tasks;
    return true;
}

void cpu_attend(struct backend *be, const struct attn_item *item, int n_items, int head_dim, float scale)
{
    struct attend a = { .cpu = cpu_of(be), .head_dim = head_dim, .scale = scale };

    matmul_trim(a.cpu->matmul);
    if (n_items == 0 || !list_tasks(&a, item, n_items))
        return;
#pragma omp parallel for schedule(dynamic, 1) num_threads(a.cpu->n_threads)
    for (int i = 0; i < a.n_tasks; i++)
        run_task(&a, &a.task[i]);
#pragma omp parallel for schedule(dynamic, 1) num_threads(a.cpu->n_threads)
    for (int i = 0; i < a.n_tasks; i++)
        if (a.task[i].shared && a.task[i].key == 0)
            finish_spread(&a, &a.task[i]);
}

/* ---- pieces of one sequence --------------------------------------------- */

static void merge_token(const struct merge_job *job, const struct row_ops *rows, int t)
{
    int K = job->head_dim, H = job->out.cols / K, group = H / job->n_kv_heads;

    for (int h = 0; h < H; h++) {
        size_t from = ((size_t)(h / group) * (size_t)job->out.rows + (size_t)t) * (size_t)group + (size_t)(h % group);
        float *out = (float *)job->out.at + (size_t)t * (size_t)job->out.pitch + h * K;
        memcpy(out, (const float *)job->part[0] + from * (size_t)K, (size_t)K * sizeof(float));
        if (job->n_parts == 1)
            continue;
        float wa = 1 / (1 + expf(job->lse[1][from] - job->lse[0][from]));
        rows->blend(out, wa, (const float *)job->part[1] + from * (size_t)K, 1 - wa, K);
    }
}

void cpu_merge(struct backend *be, const struct merge_job *job)
{
    const struct cpu *c = cpu_of(be);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, job->out.rows))
    for (int t = 0; t < job->out.rows; t++)
        merge_token(job, c->rows, t);
}
