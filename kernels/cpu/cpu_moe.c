/* cpu_moe.c - a mixture of experts: chooses each row's experts and computes one expert after the other.
 *
 * An expert's rows are gathered, go through its two products together, and are added to the residual. Experts come in
 * ascending order of their numbers, so each row is summed in that order, whatever the other rows are.
 */
#include "kernels/cpu/cpu.h"

#include "kernels/order.h"

#include <math.h>
#include <string.h>

enum { EXPERT_ROWS = 256 }; // rows of one expert at a time: bounds the memory

/* Memory of the op in progress. */
struct moe {
    float *logit;  // (rows, E); later the weights of the chosen experts, 0 for the others
    int32_t *mine; // (rows): the rows of one expert
    void *in;      // (EXPERT_ROWS, D)
    void *gate_up; // (EXPERT_ROWS, 2F)
    void *hidden;  // (EXPERT_ROWS, F)
    float *out;    // (EXPERT_ROWS, D)
};

static struct moe place(const struct cpu *c, const struct work_shape *s, char **at)
{
    size_t size = dtype_size(c->base.dtype), block = (size_t)(s->rows < EXPERT_ROWS ? s->rows : EXPERT_ROWS);
    size_t D = (size_t)s->width, F = (size_t)s->expert_width, rows = (size_t)s->rows;

    return (struct moe){ .logit = cpu_take(at, rows * (size_t)s->n_experts * sizeof(float)),
                         .mine = cpu_take(at, rows * sizeof(int32_t)),
                         .in = cpu_take(at, block * D * size),
                         .gate_up = cpu_take(at, block * 2 * F * size),
                         .hidden = cpu_take(at, block * F * size),
                         .out = cpu_take(at, block * D * sizeof(float)) };
}

static size_t needed(const struct cpu *c, const struct work_shape *s)
{
    static char from[64]; // the address from which sizes are measured
    char *at = from;
    place(c, s, &at);
    return (size_t)(at - from);
}

/* The expert with the largest logit among those not yet chosen; ties go to the lower number; -1: none is left. */
static int next_expert(const float *logit, const bool *chosen, int n)
{
    int best = -1;
    for (int e = 0; e < n; e++)
        if (!chosen[e] && (best < 0 || score_order(logit[e]) > score_order(logit[best])))
            best = e;
    return best;
}

/* Turns a row's logits into the weights of the experts it uses. */
static void weigh_experts(float *logit, const struct experts *x, bool *chosen)
{
    float max = logit[0], total = 0;

    memset(chosen, 0, (size_t)x->n * sizeof(*chosen));
    for (int i = 0; i < x->n_used; i++)
        chosen[next_expert(logit, chosen, x->n)] = true;
    for (int e = 0; e < x->n; e++)
        max = logit[e] > max ? logit[e] : max;
    for (int e = 0; e < x->n; e++) {
        logit[e] = expf(logit[e] - max);
        total += chosen[e] || !x->renormalise ? logit[e] : 0;
    }
    for (int e = 0; e < x->n; e++)
        logit[e] = chosen[e] ? logit[e] / total : 0;
}

static void route(struct cpu *c, const struct experts *x, float *logit, int n_rows)
{
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, n_rows))
    for (int t = 0; t < n_rows; t++) {
        bool *chosen = cpu_scratch(c, &c->tile[cpu_thread()], (size_t)x->n * sizeof(*chosen)); // (E)
        if (chosen)
            weigh_experts(logit + (size_t)t * (size_t)x->n, x, chosen);
    }
}

/* x += weight * expert e, for rows mine[0 .. n - 1]. */
static void run_expert(struct cpu *c, struct mat x, struct mat normed, const struct experts *experts, int e,
                       const struct moe *m, const int32_t *mine, int n)
{
    struct backend *be = &c->base;
    size_t row = (size_t)normed.cols * dtype_size(be->dtype);
    const struct mat in = { m->in, be->dtype, n, normed.cols, normed.cols };
    const struct mat gate_up = { m->gate_up, be->dtype, n, 2 * experts->width, 2 * experts->width };
    const struct mat hidden = { m->hidden, be->dtype, n, experts->width, experts->width };
    const struct mat out = { m->out, DTYPE_F32, n, x.cols, x.cols };

    for (int i = 0; i < n; i++)
        memcpy((char *)m->in + (size_t)i * row, cpu_row(normed, mine[i]), row);
    cpu_gemm(be, gate_up, in, experts->gate_up[e],
             experts->gate_up_bias ? experts->gate_up_bias + e * gate_up.cols : NULL, GEMM_SET);
    cpu_gate_mul(be, hidden, gate_up, experts->gate);
    cpu_gemm(be, out, hidden, experts->down[e], experts->down_bias ? experts->down_bias + e * out.cols : NULL,
             GEMM_SET);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, n))
    for (int i = 0; i < n; i++) {
        float weight = m->logit[(size_t)mine[i] * (size_t)experts->n + (size_t)e];
        c->rows->blend(cpu_row(x, mine[i]), 1, cpu_row(out, i), weight, x.cols);
    }
}

void cpu_moe(struct backend *be, struct mat x, struct mat normed, const struct experts *experts)
{
    struct cpu *c = cpu_of(be);
    const struct work_shape shape = {
        .rows = x.rows, .width = x.cols, .expert_width = experts->width, .n_experts = experts->n
    };
    char *at = cpu_scratch(c, &c->work, needed(c, &shape));

    if (!at)
        return;
    struct moe m = place(c, &shape, &at);
    cpu_gemm(be, (struct mat){ m.logit, DTYPE_F32, x.rows, experts->n, experts->n }, normed, experts->router,
             experts->router_bias, GEMM_SET);
    route(c, experts, m.logit, x.rows);
    for (int e = 0; e < experts->n; e++) {
        int n = 0;
        for (int t = 0; t < x.rows; t++)
            if (m.logit[(size_t)t * (size_t)experts->n + (size_t)e] != 0)
                m.mine[n++] = t;
        for (int first = 0; first < n; first += EXPERT_ROWS)
            run_expert(c, x, normed, experts, e, &m, m.mine + first, n - first < EXPERT_ROWS ? n - first : EXPERT_ROWS);
    }
}

struct cpu_needs cpu_moe_needs(const struct cpu *c, const struct work_shape *shape)
{
    if (shape->n_experts == 0)
        return (struct cpu_needs){ 0 };
    return (struct cpu_needs){ .tile = (size_t)shape->n_experts * sizeof(bool), .work = needed(c, shape) };
}
