/* reference_attend.c - attention as the formula says: one query row, all its keys, softmax in double. */
#include "kernels/reference/reference.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static double dot(const float *a, const float *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Row i of the item. Scores are computed twice rather than stored, so nothing is allocated. */
static void attend_row(const struct attn_item *item, int i, int K, double scale)
{
    const float *q = (const float *)item->q + (size_t)i * (size_t)item->q_pitch;
    const float *k = item->kv.k, *v = item->kv.v; // (n, K)
    float *out = (float *)item->out + (size_t)i * (size_t)item->out_pitch;
    int n = item->causal < 0 ? item->kv.n : item->causal + i / item->group + 1;
    if (n > item->kv.n)
        n = item->kv.n;

    double max = -(double)INFINITY, total = 0, weighted[1024] = { 0 };
    assert(K <= (int)(sizeof(weighted) / sizeof(*weighted)));
    for (int j = 0; j < n; j++)
        max = fmax(max, scale * dot(q, k + (size_t)j * (size_t)K, K));
    for (int j = 0; j < n; j++) {
        double w = exp(scale * dot(q, k + (size_t)j * (size_t)K, K) - max);
        total += w;
        for (int c = 0; c < K; c++)
            weighted[c] += w * (double)v[(size_t)j * (size_t)K + (size_t)c];
    }
    for (int c = 0; c < K; c++)
        out[c] = n > 0 ? (float)(weighted[c] / total) : 0;
    if (item->lse)
        item->lse[i] = n > 0 ? (float)(max + log(total)) : -INFINITY;
}

void reference_attend(struct backend *be, const struct attn_item *item, int n_items, int head_dim, float scale)
{
    (void)be;
    for (int it = 0; it < n_items; it++)
        for (int i = 0; i < item[it].n_q; i++)
            attend_row(&item[it], i, head_dim, (double)scale);
}

void reference_merge(struct backend *be, const struct merge_job *job)
{
    int K = job->head_dim, G = job->n_kv_heads, T = job->out.rows, H = job->out.cols / K, group = H / G;

    (void)be;
    for (int t = 0; t < T; t++) {
        for (int h = 0; h < H; h++) {
            size_t from = ((size_t)(h / group) * (size_t)T + (size_t)t) * (size_t)group + (size_t)(h % group);
            float *out = (float *)job->out.at + (size_t)t * (size_t)job->out.pitch + h * K;
            const float *a = (const float *)job->part[0] + from * (size_t)K;
            if (job->n_parts == 1) {
                memcpy(out, a, (size_t)K * sizeof(float));
                continue;
            }
            const float *b = (const float *)job->part[1] + from * (size_t)K;
            double wa = 1 / (1 + exp((double)job->lse[1][from] - (double)job->lse[0][from]));
            for (int c = 0; c < K; c++)
                out[c] = (float)(wa * (double)a[c] + (1 - wa) * (double)b[c]);
        }
    }
}
