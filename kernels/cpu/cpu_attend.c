/* cpu_attend.c - attention on the CPU: cuts the spans of a job into tiles and pieces, distributes them over threads,
 * and merges the results.
 *
 * A piece gives, per row, the sum of the values weighted by 2^(score - maximum), that maximum, and the sum of the
 * weights. Pieces are merged strictly from the first to the last, so the bits do not depend on which thread computed
 * them. With enough tiles for all threads a task goes through all pieces of its tile; otherwise each piece is a task,
 * and the tile is merged afterwards.
 *
 * The first OWN_BEGIN of a sequence's own keys are always one piece. Sequences that begin alike are neighbours, and so
 * are their rows of q: that piece is computed for many of them as one tile, before the others.
 */
#include "kernels/cpu/cpu_attend_internal.h"

#include <math.h>
#include <string.h>

enum {
    TILES_PER_THREAD = 8,   // enough for threads to finish nearly together
    PIECES_PER_THREAD = 16, // of spread tiles at a time: bounds the memory of their states
};
static const float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

/* A piece of a tile whose pieces are spread over the threads. */
struct task {
    const struct tile *tile;
    int first, end;
    float *state;
};

static int n_pieces(const struct attend *a, const struct tile *t)
{
    int n = 0;
    for (int key = t->from; key < t->n_keys; key = piece_end(a, key, t->n_keys))
        n++;
    return n;
}

/* ---- results ------------------------------------------------------------- */

/* Merges b, the next piece, into a. */
static void fold(const struct attend *at, struct state a, struct state b, int n_rows)
{
    int K = at->job->head_dim;
    float scale = at->job->scale * LOG2_E;

    for (int r = 0; r < n_rows; r++) {
        if (b.weight[r] == 0)
            continue;
        float max = a.max[r] > b.max[r] ? a.max[r] : b.max[r];
        float wa = exp2f((a.max[r] - max) * scale), wb = exp2f((b.max[r] - max) * scale);
        if (at->weighed)
            at->cpu->rows->blend(a.sum + (size_t)r * (size_t)K, wa, b.sum + (size_t)r * (size_t)K, wb, K);
        a.weight[r] = a.weight[r] * wa + b.weight[r] * wb;
        a.max[r] = max;
    }
}

/* out = sum / weight; out may be sum. */
static void write_row(const struct attend *a, void *out, enum dtype type, const float *sum, float weight)
{
    int K = a->job->head_dim;

    if (weight == 0) // no key
        memset(out, 0, (size_t)K * dtype_size(type));
    else
        a->cpu->rows->scale_to(out, type, sum, 1 / weight, K);
}

/* Writes a row of the job's out, merged with the result over other keys where there is one; sum is used up. */
static void write_out(const struct attend *a, void *out, size_t row, float *sum, float weight, float lse)
{
    const struct attn_job *job = a->job;
    int K = job->head_dim;

    if (!job->other_part) {
        write_row(a, out, job->out.type, sum, weight);
        return;
    }
    float other = job->other_lse[row],
          share = other == lse ? 0.5f : 1 / (1 + expf(lse - other)); // both may be -INFINITY
    write_row(a, sum, DTYPE_F32, sum, weight);
    a->cpu->rows->blend_to(out, job->out.type, job->other_part + row * (size_t)K, share, sum, 1 - share, K);
}

/* Adds a key with this score, and no value, to what a row has seen. */
static void add_sink(float sink, float *lse, float *weight)
{
    float more = *lse > sink ? *lse : sink, less = *lse > sink ? sink : *lse, all = more + log1pf(expf(less - more));

    *weight *= *weight == 0 ? 1 : expf(all - *lse);
    *lse = all;
}

static void finish(const struct attend *a, const struct tile *t, struct state s)
{
    const struct attn_job *job = a->job;
    int K = job->head_dim;

    for (int r = 0; r < tile_n_rows(a, t); r++) {
        int token = t->token + r / a->group, head = r % a->group;
        size_t row = tile_row(a, t) + (size_t)r; // the heads of a token are neighbours
        float *sum = s.sum + (size_t)r * (size_t)K;
        float lse = s.weight[r] == 0 ? -INFINITY : s.max[r] * job->scale + LN_2 * log2f(s.weight[r]);
        if (job->sinks)
            add_sink(job->sinks[t->head * a->group + head], &lse, &s.weight[r]);
        if (job->lse)
            job->lse[row] = lse;
        if (job->part)
            write_row(a, job->part + row * (size_t)K, DTYPE_F32, sum, s.weight[r]);
        if (job->out.at) {
            size_t column = (size_t)(t->head * a->group + head) * (size_t)K * dtype_size(job->out.type);
            write_out(a, (char *)cpu_row(job->out, token) + column, row, sum, s.weight[r], lse);
        }
    }
}

static void no_keys(struct state s, int n_rows)
{
    for (int r = 0; r < n_rows; r++)
        s.max[r] = -INFINITY, s.weight[r] = 0;
}

static void copy_state(struct state to, struct state from, int n_rows, int K)
{
    memcpy(to.sum, from.sum, (size_t)n_rows * (size_t)K * sizeof(*to.sum));
    memcpy(to.max, from.max, (size_t)n_rows * sizeof(*to.max));
    memcpy(to.weight, from.weight, (size_t)n_rows * sizeof(*to.weight));
}

/* ---- shared beginnings of sequences -------------------------------------- */

static size_t begin_bytes(size_t rows, int K)
{
    return rows * (size_t)(K + 2) * sizeof(float);
}

/* A tile's rows in a->begin. */
static struct state begin_of(const struct attend *a, const struct tile *t)
{
    size_t row = tile_row(a, t);
    return (struct state){ a->begin.sum + row * (size_t)a->job->head_dim, a->begin.max + row, a->begin.weight + row };
}

static void run_begin(const struct attend *a, const struct tile *t)
{
    int n_rows = tile_n_rows(a, t), K = a->job->head_dim;
    struct tile_memory m;

    if (!tile_memory_of(a->cpu, n_rows, K, &m))
        return;
    struct state s = tile_state(m.state[0], a->cpu, n_rows, K);
    tile_piece(a, t, 0, OWN_BEGIN, &m, s);
    copy_state(begin_of(a, t), s, n_rows, K);
}

/* ---- tasks --------------------------------------------------------------- */

static void run_tile(const struct attend *a, const struct tile *t)
{
    struct cpu *c = a->cpu;
    int n_rows = tile_n_rows(a, t), K = a->job->head_dim;
    struct tile_memory m;

    if (!tile_memory_of(c, n_rows, K, &m))
        return;
    struct state all = tile_state(m.state[0], c, n_rows, K), next = tile_state(m.state[1], c, n_rows, K);
    if (t->begun)
        copy_state(all, begin_of(a, t), n_rows, K);
    else
        no_keys(all, n_rows);
    for (int key = t->begun ? t->begun : t->from, end; key < t->n_keys; key = end) {
        end = piece_end(a, key, t->n_keys);
        tile_piece(a, t, key, end, &m, key == t->from ? all : next);
        if (key > t->from)
            fold(a, all, next, n_rows);
    }
    finish(a, t, all);
}

static void run_piece(const struct attend *a, const struct task *task)
{
    int n_rows = tile_n_rows(a, task->tile), K = a->job->head_dim;
    struct tile_memory m;

    if (tile_memory_of(a->cpu, n_rows, K, &m))
        tile_piece(a, task->tile, task->first, task->end, &m, tile_state(task->state, a->cpu, n_rows, K));
}

/* Merges the pieces of a tile; `task` is the first of them. */
static void finish_pieces(const struct attend *a, const struct task *task)
{
    const struct tile *t = task->tile;
    int n_rows = tile_n_rows(a, t), K = a->job->head_dim;
    struct state all = tile_state(task->state, a->cpu, n_rows, K);

    for (; task->end < t->n_keys; task++)
        fold(a, all, tile_state(task[1].state, a->cpu, n_rows, K), n_rows);
    finish(a, t, all);
}

/* Splits a tile into tasks, with memory for their states from *state on. Returns the end of the tasks. */
static struct task *add_pieces(const struct attend *a, struct task *to, const struct tile *t, float **state)
{
    for (int key = t->from; key < t->n_keys; key = to++->end) {
        *to = (struct task){ t, key, piece_end(a, key, t->n_keys), *state };
        *state += tile_state_floats(a->cpu, tile_n_rows(a, t), a->job->head_dim);
    }
    return to;
}

/* Computes the first of n_tiles tiles, up to PIECES_PER_THREAD pieces per thread, at least one tile. Returns how
 * many. */
static int run_spread(const struct attend *a, const struct tile *tile, int n_tiles, struct task *task)
{
    struct cpu *c = a->cpu;
    size_t n_floats = 0;
    int n = 0, n_tasks = 0;

    for (; n < n_tiles && n_tasks < PIECES_PER_THREAD * c->n_threads; n++) {
        int pieces = n_pieces(a, &tile[n]);
        n_floats += (size_t)pieces * tile_state_floats(c, tile_n_rows(a, &tile[n]), a->job->head_dim);
        n_tasks += pieces;
    }
    float *state = cpu_scratch(c, &c->work, n_floats * sizeof(*state));
    if (!state)
        return n_tiles;
    struct task *end = task;
    for (int i = 0; i < n; i++)
        if (tile[i].n_keys > tile[i].from)
            end = add_pieces(a, end, &tile[i], &state);
        else
            run_tile(a, &tile[i]);
#pragma omp parallel for schedule(dynamic, 1) num_threads(c->n_threads)
    for (int i = 0; i < n_tasks; i++)
        run_piece(a, &task[i]);
#pragma omp parallel for schedule(dynamic, 1) num_threads(c->n_threads)
    for (int i = 0; i < n_tasks; i++)
        if (task[i].first == task[i].tile->from)
            finish_pieces(a, &task[i]);
    return n;
}

/* ---- the list of tiles --------------------------------------------------- */

static int count_tiles(const struct attend *a)
{
    int tokens = tile_tokens(a->group), n = 0;

    for (int i = 0; i < a->job->spans.n; i++)
        n += (a->job->spans.host[i].n_rows + tokens - 1) / tokens;
    return n * a->job->n_kv_heads;
}

/* Writes the tiles of a span to *to; a causal span's last tile, its longest, comes first. Returns the end of the
 * tiles. */
static struct tile *add_tiles(const struct attend *a, const struct attn_span *span, int begun, struct tile *to)
{
    int tokens = tile_tokens(a->group);

    for (int row = (span->n_rows - 1) / tokens * tokens; row >= 0 && span->n_rows > 0; row -= tokens)
        for (int g = 0; g < a->job->n_kv_heads; g++) {
            *to = tile_of(a, span, g, row, span->n_rows - row < tokens ? span->n_rows - row : tokens);
            to++->begun = begun;
        }
    return to;
}

/* Do all rows of a causal span see its first OWN_BEGIN keys? */
static bool sees_begin(const struct attn_job *job, const struct attn_span *span)
{
    return span->n_keys - span->n_rows + 1 >= OWN_BEGIN && attn_first(job, span->n_keys, 0) == 0;
}

/* The end of the spans from i on that begin alike; i + 1 where the next span begins differently. */
static int alike(const struct attend *a, int i)
{
    const struct attn_spans *spans = &a->job->spans;
    const struct attn_span *span = spans->host;
    int end = i + 1;

    if (a->job->kind == ATTN_OWN && spans->n_same && sees_begin(a->job, &span[i]))
        while (end < spans->n && spans->n_same[end] >= OWN_BEGIN && sees_begin(a->job, &span[end]) &&
               span[end].row == span[end - 1].row + span[end - 1].n_rows)
            end++;
    return end;
}

/* The tiles of shared beginnings of spans; returns how many. `a` is not causal: all rows see all these keys. */
static int list_begins(const struct attend *a, struct tile *tile)
{
    const struct attn_span *span = a->job->spans.host;
    struct tile *to = tile;

    for (int i = 0, end; i < a->job->spans.n; i = end) {
        end = alike(a, i);
        const struct attn_span *last = &span[end - 1];
        if (end - i > 1)
            to = add_tiles(a,
                           &(struct attn_span){ .row = span[i].row,
                                                .n_rows = last->row + last->n_rows - span[i].row,
                                                .first = span[i].first,
                                                .n_keys = OWN_BEGIN },
                           0, to);
    }
    return (int)(to - tile);
}

static void list_tiles(const struct attend *a, struct tile *to)
{
    for (int i = 0, end; i < a->job->spans.n; i = end) {
        end = alike(a, i);
        for (int span = i; span < end; span++)
            to = add_tiles(a, &a->job->spans.host[span], end - i > 1 ? OWN_BEGIN : 0, to);
    }
}

/* The most pieces that run_spread() works on at a time. */
static size_t max_tasks(const struct cpu *c, int n_keys)
{
    return (size_t)(PIECES_PER_THREAD * c->n_threads + n_keys / ATTN_SPLIT + 2);
}

/* The choice depends only on the machine, the dtype, the kind, the head and whether there is a window or a cap: a
 * row's bits must not depend on the batch. */
static shared_fn *shared_for(const struct cpu *c, const struct attn_job *job)
{
    shared_fn *fn = job->kind == ATTN_SHARED ? c->shared : c->text;
    int K = job->head_dim;

    if (job->window || job->cap > 0)
        return NULL;
    if (c->base.dtype == DTYPE_BF16 && (K % SHARED_COLUMNS != 0 || (c->text && K > SHARED_AMX_COLUMNS)))
        return NULL;
    return fn;
}

/* Links each tile to the same thread's likely next tile. */
static void link_tiles(const struct cpu *c, struct tile *tile, int n)
{
    for (int i = 0; i + c->n_threads < n; i++)
        tile[i].next = &tile[i + c->n_threads];
}

/* Computes the shared beginnings of spans, if there are any, into a->begin. False when memory runs out. */
static bool run_begins(struct attend *a, struct tile *tile)
{
    struct cpu *c = a->cpu;
    struct attend whole = *a;
    size_t rows = (size_t)a->job->n_tokens * (size_t)a->job->n_heads;

    whole.causal = false;
    int n = list_begins(&whole, tile);
    if (n == 0)
        return true;
    float *at = cpu_scratch(c, &c->work, begin_bytes(rows, a->job->head_dim));
    if (!at)
        return false;
    float *max = at + rows * (size_t)a->job->head_dim;
    a->begin = whole.begin = (struct state){ at, max, max + rows };
    link_tiles(c, tile, n);
#pragma omp parallel for schedule(dynamic, 1) num_threads(n > 1 ? c->n_threads : 1)
    for (int i = 0; i < n; i++)
        run_begin(&whole, &tile[i]);
    return true;
}

void cpu_attend(struct backend *be, const struct attn_job *job)
{
    struct cpu *c = cpu_of(be);
    struct attend a = { .cpu = c,
                        .job = job,
                        .group = job->n_heads / job->n_kv_heads,
                        .causal = job->kind == ATTN_TEXT || job->kind == ATTN_OWN,
                        .dots = job->kind == ATTN_OWN,
                        .shared = shared_for(c, job),
                        .weighed = job->out.at || job->part };
    int n_tiles = count_tiles(&a), n_keys = 0;

    matmul_trim(c->matmul);
    struct tile *tile = cpu_scratch(c, &c->list, 2 * (size_t)n_tiles * sizeof(*tile)); // and their beginnings
    if (n_tiles == 0 || !tile)
        return;
    list_tiles(&a, tile);
    for (int i = 0; i < n_tiles; i++)
        n_keys = tile[i].n_keys - tile[i].from > n_keys ? tile[i].n_keys - tile[i].from : n_keys;
    if (n_keys <= ATTN_SPLIT || n_tiles >= TILES_PER_THREAD * c->n_threads) {
        if (!run_begins(&a, tile + n_tiles))
            return;
        link_tiles(c, tile, n_tiles);
#pragma omp parallel for schedule(dynamic, 1) num_threads(n_tiles > 1 ? c->n_threads : 1)
        for (int i = 0; i < n_tiles; i++)
            run_tile(&a, &tile[i]);
        return;
    }
    struct task *task = cpu_scratch(c, &c->tasks, max_tasks(c, n_keys) * sizeof(*task));
    for (int done = 0; done < n_tiles && task;)
        done += run_spread(&a, tile + done, n_tiles - done, task);
}

struct cpu_needs cpu_attend_needs(const struct cpu *c, const struct work_shape *shape)
{
    size_t begin = begin_bytes((size_t)shape->rows * (size_t)shape->n_heads, shape->head_dim);
    int group = shape->n_heads / shape->n_kv_heads, n_rows = tile_tokens(group) * group;
    size_t tasks = max_tasks(c, shape->n_keys);
    size_t state = tile_state_floats(c, n_rows, shape->head_dim) * sizeof(float);

    return (struct cpu_needs){ .tile = tile_memory_bytes(c, n_rows, shape->head_dim),
                               .list = 2 * (size_t)shape->rows * (size_t)shape->n_kv_heads * sizeof(struct tile),
                               .tasks = tasks * sizeof(struct task),
                               .work = tasks * state > begin ? tasks * state : begin };
}
