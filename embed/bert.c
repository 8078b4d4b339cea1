/* bert.c - the forward pass of one batch: embeddings on the host, everything after them on the device. */
#include "embed/bert.h"

#include "kernels/backend.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct mat rows_of(float *at, int rows, int cols)
{
    return (struct mat){ .at = at, .type = DTYPE_F32, .rows = rows, .cols = cols, .pitch = cols };
}

/* x (N, D) = word[id] + type[0] + position[p], added in this order, on the host. */
static void look_up(const struct bert *b, const struct bert_batch *batch, float *x)
{
    size_t width = (size_t)b->shape.width;

    for (int i = 0; i < batch->n; i++) {
        for (int t = batch->start[i]; t < batch->start[i + 1]; t++, x += width) {
            const float *position = b->positions + (size_t)(1 + t - batch->start[i]) * width;
            const char *word = (const char *)b->word->at + (size_t)batch->id[t] * width * sizeof(float);
            memcpy(x, word, width * sizeof(float)); // `word` may be unaligned
            for (size_t c = 0; c < width; c++)
                x[c] = x[c] + b->positions[c] + position[c];
        }
    }
}

/* Attention within each text. rope() does not rotate here: it brings the queries, keys and values of a head together,
 * the layout for attend(). */
static void attention(struct bert *b, const struct attn_spans *texts, int rows)
{
    const struct bert_scratch *s = &b->scratch;
    int D = b->shape.width, H = b->shape.heads, K = D / H;
    const struct kv_store store = { s->k, s->v, (size_t)rows };

    b->backend->rope(b->backend, &(struct rope_job){ .qkv = rows_of(s->qkv, rows, 3 * D),
                                                     .slot = s->slot,
                                                     .q = s->q,
                                                     .store = store,
                                                     .n_heads = H,
                                                     .n_kv_heads = H,
                                                     .head_dim = K });
    b->backend->attend(b->backend, &(struct attn_job){ .kind = ATTN_WHOLE,
                                                       .q = s->q,
                                                       .spans = *texts,
                                                       .store = store,
                                                       .n_tokens = rows,
                                                       .n_heads = H,
                                                       .n_kv_heads = H,
                                                       .head_dim = K,
                                                       .scale = 1 / sqrtf((float)K),
                                                       .out = rows_of(s->attended, rows, D) });
}

static void run_layer(struct bert *b, const struct bert_layer *l, const struct attn_spans *texts, int N)
{
    struct backend *be = b->backend;
    const struct bert_scratch *s = &b->scratch;
    int D = b->shape.width;
    float eps = (float)b->shape.norm_eps;
    struct mat x = rows_of(s->x, N, D), inner = rows_of(s->inner, N, b->shape.inner);

    be->gemm(be, rows_of(s->qkv, N, 3 * D), x, l->qkv, l->qkv_bias, GEMM_SET);
    attention(b, texts, N);
    be->gemm(be, x, rows_of(s->attended, N, D), l->out, l->out_bias, GEMM_ADD);
    be->layernorm(be, x, x, l->mid_norm, l->mid_norm + D, eps);
    be->gemm(be, inner, x, l->up, l->up_bias, GEMM_SET);
    be->gelu(be, inner);
    be->gemm(be, x, inner, l->down, l->down_bias, GEMM_ADD);
    be->layernorm(be, x, x, l->end_norm, l->end_norm + D, eps);
}

/* One span per text: all its tokens attend to each other. */
static struct attn_spans spans_of(const struct bert *b, const struct bert_batch *batch, struct attn_span *host)
{
    const struct attn_spans spans = { .host = host, .device = b->scratch.spans, .n = batch->n };

    for (int i = 0; i < batch->n; i++) {
        int from = batch->start[i], n = batch->start[i + 1] - from;
        host[i] = (struct attn_span){ .row = from, .n_rows = n, .first = from, .n_keys = n };
    }
    b->backend->write(b->backend, b->scratch.spans, host, (size_t)batch->n * sizeof(*host));
    return spans;
}

int bert_run(struct bert *b, const struct bert_batch *batch, float *hidden, struct err *err)
{
    struct backend *be = b->backend;
    int D = b->shape.width, N = batch->start[batch->n];
    size_t bytes = (size_t)N * (size_t)D * sizeof(float);

    assert(N <= BERT_ROWS);
    struct attn_span *host = malloc((size_t)batch->n * sizeof(*host));
    if (!host)
        return err_nomem(err);
    const struct attn_spans texts = spans_of(b, batch, host);
    look_up(b, batch, hidden); // `hidden` serves as the input's buffer too
    be->write(be, b->scratch.x, hidden, bytes);
    struct mat x = rows_of(b->scratch.x, N, D);
    be->layernorm(be, x, x, b->first_norm, b->first_norm + D, (float)b->shape.norm_eps);
    for (int l = 0; l < b->shape.layers; l++)
        run_layer(b, &b->layer[l], &texts, N);
    free(host);
    return be->read(be, hidden, b->scratch.x, bytes, err);
}
