/* cpu_bert.c - what BERT needs beyond a Llama: layernorm and gelu, row by row. */
#include "kernels/cpu/cpu.h"

#include <assert.h>

static float *row(struct mat m, int i)
{
    assert(m.type == DTYPE_F32);
    return (float *)m.at + (size_t)i * (size_t)m.pitch;
}

void cpu_layernorm(struct backend *be, struct mat out, struct mat x, const float *w, const float *b, float eps)
{
    const struct cpu *c = cpu_of(be);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, x.rows))
    for (int t = 0; t < x.rows; t++)
        c->rows->layernorm(row(out, t), row(x, t), w, b, eps, x.cols);
}

void cpu_gelu(struct backend *be, struct mat x)
{
    const struct cpu *c = cpu_of(be);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, x.rows))
    for (int t = 0; t < x.rows; t++)
        c->rows->gelu(row(x, t), x.cols);
}
