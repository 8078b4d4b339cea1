/* cpu_columns.c - statistics of attention's columns: the attention that each key gets from the rows of a span.
 *
 * A task is a block of keys of one kv head. It goes through the span's rows tile by tile, so a column is summed in the
 * order of the rows, and nothing is stored per row.
 */
#include "kernels/cpu/cpu_attend_internal.h"

#include <math.h>
#include <string.h>

static const float LOG2_E = 1.44269504f;

/* Adds a tile's rows to the columns of keys first .. end - 1, which are one piece. */
static void add_piece(const struct attend *a, const struct column_job *job, const struct tile *t, int first, int end,
                      const struct tile_memory *m, float *column)
{
    const struct row_ops *rows = a->cpu->rows;
    size_t row = ((size_t)t->head * (size_t)a->job->n_tokens + (size_t)t->token) * (size_t)a->group;
    int pitch;

    if (t->n_keys <= first || !tile_scores(a, t, first, end, m, &pitch))
        return;
    for (int r = 0; r < tile_n_rows(a, t); r++) {
        int seen = tile_visible(a, t, r);
        float lse = job->attn.lse[row + (size_t)r] * LOG2_E;
        float *score = m->score + (size_t)r * (size_t)pitch;
        seen = seen < end ? seen - first : end - first;
        if (a->job->cap > 0)
            rows->soft_cap(score, seen, a->job->cap / a->job->scale);
        if (job->stat == COLUMN_MAX)
            rows->exp2_max(column, score, seen, a->job->scale * LOG2_E, lse);
        else
            rows->exp2_add(column, score, seen, a->job->scale * LOG2_E, lse);
    }
}

static void write_columns(const struct column_job *job, float *to, const float *column, int n, float share)
{
    for (int j = 0; j < n; j++) {
        float value = column[j] * share;
        if (job->into == COLUMN_SET)
            to[j] = value;
        else if (job->stat == COLUMN_MAX)
            to[j] = fmaxf(to[j], value);
        else
            to[j] += value;
    }
}

/* The columns of keys first .. end - 1. */
static void run_block(const struct attend *a, const struct column_job *job, int head, int first, int end)
{
    const struct attn_span *span = a->job->spans.host;
    int tokens = tile_tokens(a->group), n_rows = span->n_rows * a->group;
    struct tile_memory m;

    if (!tile_memory_of(a->cpu, tokens * a->group, a->job->head_dim, &m))
        return;
    memset(m.column, 0, (size_t)(end - first) * sizeof(*m.column));
    for (int row = 0; row < span->n_rows; row += tokens) {
        int n = span->n_rows - row < tokens ? span->n_rows - row : tokens;
        struct tile t = tile_of(a, span, head, row, n);
        for (int key = first, next; key < end; key = next) {
            next = piece_end(a, key, end);
            add_piece(a, job, &t, key, next, &m, m.column + (key - first));
        }
    }
    write_columns(job, job->column + (size_t)head * job->pitch + first, m.column, end - first,
                  job->stat == COLUMN_MEAN ? 1 / (float)n_rows : 1);
}

void cpu_column_stats(struct backend *be, const struct column_job *job)
{
    struct cpu *c = cpu_of(be);
    const struct attn_job *attn = &job->attn;
    const struct attend a = { .cpu = c, .job = attn, .group = attn->n_heads / attn->n_kv_heads, .causal = true };
    int n_keys = attn->spans.host[0].n_keys, per_head = (n_keys + ATTN_SPLIT - 1) / ATTN_SPLIT;

    matmul_trim(c->matmul);
#pragma omp parallel for schedule(dynamic, 1) num_threads(c->n_threads)
    for (int i = 0; i < attn->n_kv_heads * per_head; i++) {
        int first = i % per_head * ATTN_SPLIT, end = n_keys - first < ATTN_SPLIT ? n_keys : first + ATTN_SPLIT;
        run_block(&a, job, i / per_head, first, end);
    }
}
