/* reference_bert.c - the ops that only BERT needs: layernorm and gelu, with the C library's erf in double. */
#include "kernels/reference/reference.h"

#include <math.h>

void reference_layernorm(struct backend *be, struct mat out, struct mat x, const float *w, const float *b, float eps)
{
    (void)be;
    for (int t = 0; t < x.rows; t++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < x.cols; i++)
            sum += mat_get(x, t, i);
        double mean = sum / x.cols;
        for (int i = 0; i < x.cols; i++)
            squares += (mat_get(x, t, i) - mean) * (mat_get(x, t, i) - mean);
        double scale = 1 / sqrt(squares / x.cols + (double)eps);
        for (int i = 0; i < x.cols; i++)
            mat_put(out, t, i, (mat_get(x, t, i) - mean) * scale * (double)w[i] + (double)b[i]);
    }
}

void reference_gelu(struct backend *be, struct mat x)
{
    (void)be;
    for (int t = 0; t < x.rows; t++)
        for (int i = 0; i < x.cols; i++) {
            double v = mat_get(x, t, i);
            mat_put(x, t, i, v * (1 + erf(v / sqrt(2))) / 2);
        }
}
