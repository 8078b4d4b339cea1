/* bert.h - a BERT encoder over kernels/backend.h: token ids of several texts to their hidden states.
 *
 * For embed/ only. Texts are not padded: a batch has one row per token, text after text. Matrix products work on one
 * tall matrix, attention on one item per text and head. The norm follows each half of a layer ("post-norm"):
 *
 *     x = norm(word[id] + type[0] + position[p])
 *     per layer:  x = norm(x + W_out attention(W_qkv x));  x = norm(x + W_down gelu(W_up x))
 */
#ifndef EVP_BERT_H
#define EVP_BERT_H

#include "base/err.h"
#include "base/safetensors.h"

#include <stdint.h>

struct attn_span;
struct backend;
struct weight;

enum { BERT_ROWS = 1024 }; // of one batch; the speed is the same from 256 to 2048

struct bert_shape {
    int width, heads, inner, layers; // D, H, F, L
    int vocab, positions, types;
    double norm_eps;
};

/* Vectors are on the device. */
struct bert_layer {
    struct weight *qkv, *out, *up, *down;             // (3D, D), (D, D), (F, D), (D, F)
    float *qkv_bias, *out_bias, *up_bias, *down_bias; // (3D), (D), (F), (D)
    float *mid_norm, *end_norm;                       // (2, D): weight, then bias
};

/* The matrices of one batch, BERT_ROWS rows each; one span per text; slot t for row t. All on the device. */
struct bert_scratch {
    float *x, *qkv, *q, *k, *v, *attended, *inner;
    struct attn_span *spans;
    int32_t *slot;
};

struct bert {
    struct backend *backend;
    struct bert_shape shape;
    struct safetensors file;      // mapped until bert_close(): rows of `word` are copied out of it
    const struct st_tensor *word; // (vocab, D)
    float *positions;             // (1 + positions, D) on the host: type[0], then position[p]
    struct bert_layer *layer;
    float *first_norm; // (2, D) on the device
    float *vectors;    // all small vectors of all layers: one allocation on the device
    struct bert_scratch scratch;
    void *scratch_at; // its one allocation
};

/* dir holds config.json and model.safetensors; shape.positions becomes at most max_positions. The backend must outlive
 * *b. Fails with ERR_FORMAT, naming the field or tensor that does not fit a BERT model. */
int bert_open(struct bert *b, const char *dir, int max_positions, struct backend *backend, struct err *err) MUST_CHECK;
void bert_close(struct bert *b); // zeroed is fine

/* Text i has the tokens id[start[i]] .. id[start[i + 1] - 1], from one to shape.positions of them; start[n] is at most
 * BERT_ROWS and ids are below shape.vocab. */
struct bert_batch {
    const int32_t *id;
    const int *start; // (n + 1), start[0] is 0
    int n;
};

/* hidden: one row per token, for the caller to pool. */
int bert_run(struct bert *b, const struct bert_batch *batch, float *hidden /* (start[n], D) */,
             struct err *err) MUST_CHECK;

#endif
