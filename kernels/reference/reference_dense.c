/* reference_dense.c - matrices, the slow way: every sum in double, every element where backend.h says it is. */
#include "kernels/reference/reference.h"

#include "kernels/host.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static float *row(struct mat m, int i)
{
    assert(m.type == DTYPE_F32);
    return (float *)m.at + (size_t)i * (size_t)m.pitch;
}

struct weight *reference_weight_new(struct backend *be, const struct mat *host, int n_parts, enum dtype type,
                                    struct err *err)
{
    (void)be;
    assert(type == DTYPE_F32);
    struct weight *w = calloc(1, sizeof(*w));
    if (!w) {
        err_nomem(err);
        return NULL;
    }
    w->in = host[0].cols;
    for (int p = 0; p < n_parts; p++)
        w->out += host[p].rows;
    w->at = host_alloc((size_t)w->out * (size_t)w->in * sizeof(float));
    if (!w->at) {
        free(w);
        err_nomem(err);
        return NULL;
    }
    float *to = w->at;
    for (int p = 0; p < n_parts; p++)
        for (int i = 0; i < host[p].rows; i++, to += w->in)
            memcpy(to, row(host[p], i), (size_t)w->in * sizeof(float));
    return w;
}

void reference_weight_free(struct backend *be, struct weight *w)
{
    (void)be;
    if (!w)
        return;
    free(w->at);
    free(w);
}

void reference_gemm(struct backend *be, struct mat out, struct mat x, const struct weight *w, const float *bias,
                    enum gemm_into into)
{
    (void)be;
    assert(x.cols == w->in && out.cols == w->out && out.rows == x.rows);
    for (int t = 0; t < x.rows; t++) {
        for (int o = 0; o < w->out; o++) {
            const float *from = (const float *)w->at + (size_t)o * (size_t)w->in;
            double sum = bias ? (double)bias[o] : 0;
            for (int i = 0; i < w->in; i++)
                sum += (double)row(x, t)[i] * (double)from[i];
            float *to = row(out, t) + o;
            *to = (float)(into == GEMM_ADD ? (double)*to + sum : sum);
        }
    }
}

void reference_embed(struct backend *be, struct mat out, struct mat table, const int32_t *ids)
{
    (void)be;
    for (int t = 0; t < out.rows; t++)
        memcpy(row(out, t), row(table, ids[t]), (size_t)out.cols * sizeof(float));
}

void reference_rmsnorm(struct backend *be, struct mat out, struct mat x, const float *w, float eps)
{
    (void)be;
    for (int t = 0; t < x.rows; t++) {
        const float *from = row(x, t);
        double squares = 0;
        for (int i = 0; i < x.cols; i++)
            squares += (double)from[i] * (double)from[i];
        double scale = 1 / sqrt(squares / x.cols + (double)eps);
        for (int i = 0; i < x.cols; i++)
            row(out, t)[i] = (float)((double)from[i] * scale * (double)w[i]);
    }
}

/* Rotates one head of K columns by the angles of one position. */
static void rotate(float *to, const float *from, const float *cos, const float *sin, int head_dim)
{
    int half = head_dim / 2;
    for (int i = 0; i < half; i++) {
        double a = (double)from[i], b = (double)from[i + half], c = (double)cos[i], s = (double)sin[i];
        to[i] = (float)(a * c - b * s);
        to[i + half] = (float)(b * c + a * s);
    }
}

void reference_rope(struct backend *be, const struct rope_job *job)
{
    int K = job->head_dim, H = job->n_heads, G = job->n_kv_heads, group = H / G, T = job->qkv.rows;

    (void)be;
    for (int t = 0; t < T; t++) {
        const float *from = row(job->qkv, t);
        const float *cos = job->cos + (size_t)job->position[t] * (size_t)(K / 2);
        const float *sin = job->sin + (size_t)job->position[t] * (size_t)(K / 2);
        for (int h = 0; h < H; h++) {
            size_t at = ((size_t)(h / group) * (size_t)T + (size_t)t) * (size_t)group + (size_t)(h % group);
            rotate((float *)job->q + at * (size_t)K, from + h * K, cos, sin, K);
        }
        for (int g = 0; g < G; g++) {
            size_t at = ((size_t)g * job->head_rows + (size_t)job->slot[t]) * (size_t)K;
            rotate((float *)job->k + at, from + (H + g) * K, cos, sin, K);
            memcpy((float *)job->v + at, from + (H + G + g) * K, (size_t)K * sizeof(float));
        }
    }
}

void reference_silu_mul(struct backend *be, struct mat out, struct mat gate_up)
{
    (void)be;
    for (int t = 0; t < out.rows; t++) {
        for (int i = 0; i < out.cols; i++) {
            double gate = (double)row(gate_up, t)[i], up = (double)row(gate_up, t)[out.cols + i];
            row(out, t)[i] = (float)(gate / (1 + exp(-gate)) * up);
        }
    }
}

void reference_argmax(struct backend *be, int32_t *id, struct mat x)
{
    (void)be;
    for (int t = 0; t < x.rows; t++) {
        id[t] = 0;
        for (int i = 1; i < x.cols; i++)
            if (row(x, t)[i] > row(x, t)[id[t]])
                id[t] = i;
    }
}
