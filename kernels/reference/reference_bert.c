/* reference_bert.c - what BERT needs beyond a Llama: layernorm and gelu, with the C library's erf in double. */
#include "kernels/reference/reference.h"

#include <assert.h>
#include <math.h>

static float *row(struct mat m, int i)
{
    assert(m.type == DTYPE_F32);
    return (float *)m.at + (size_t)i * (size_t)m.pitch;
}

void reference_layernorm(struct backend *be, struct mat out, struct mat x, const float *w, const float *b, float eps)
{
    (void)be;
    for (int t = 0; t < x.rows; t++) {
        const float *from = row(x, t);
        double sum = 0, squares = 0;
        for (int i = 0; i < x.cols; i++)
            sum += (double)from[i];
        double mean = sum / x.cols;
        for (int i = 0; i < x.cols; i++)
            squares += ((double)from[i] - mean) * ((double)from[i] - mean);
        double scale = 1 / sqrt(squares / x.cols + (double)eps);
        for (int i = 0; i < x.cols; i++)
            row(out, t)[i] = (float)(((double)from[i] - mean) * scale * (double)w[i] + (double)b[i]);
    }
}

void reference_gelu(struct backend *be, struct mat x)
{
    (void)be;
    for (int t = 0; t < x.rows; t++)
        for (int i = 0; i < x.cols; i++) {
            double v = (double)row(x, t)[i];
            row(x, t)[i] = (float)(v * (1 + erf(v / sqrt(2))) / 2);
        }
}
