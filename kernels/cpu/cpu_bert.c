/* cpu_bert.c - the ops that only BERT needs: layernorm and gelu, row by row. */
#include "kernels/cpu/cpu.h"

#include <assert.h>

void cpu_layernorm(struct backend *be, struct mat out, struct mat x, const float *w, const float *b, float eps)
{
    const struct cpu *c = cpu_of(be);

    assert(x.type == DTYPE_F32 && out.type == DTYPE_F32);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, x.rows))
    for (int t = 0; t < x.rows; t++)
        c->rows->layernorm(cpu_row(out, t), cpu_row(x, t), w, b, eps, x.cols);
}

void cpu_gelu(struct backend *be, struct mat x)
{
    const struct cpu *c = cpu_of(be);

    assert(x.type == DTYPE_F32);
#pragma omp parallel for schedule(static) num_threads(cpu_threads_for(c, x.rows))
    for (int t = 0; t < x.rows; t++)
        c->rows->gelu(cpu_row(x, t), x.cols);
}
