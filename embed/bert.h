/* bert.h - a BERT encoder over kernels/backend.h: token ids of several texts to their hidden states.
 *
 * Inside embed/ only. Texts are not padded: the tokens of a batch stand row below row, the matrix products see one tall
 * matrix, attention sees one item per text and head. After each half of a layer the norm follows ("post-norm"):
 *
 *     x = norm(word[id] + type[0] + position[p])
 *     per layer:  x = norm(x + W_out attention(W_qkv x));  x = norm(x + W_down gelu(W_up x))
 */
#ifndef EVP_BERT_H
#define EVP_BERT_H

#include "base/err.h"
#include "base/safetensors.h"

#include <stdint.h>

struct backend;
struct weight;

enum { BERT_ROWS = 1024 }; // of one batch; from 256 to 2048 the speed is the same

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

/* One batch's matrices, for BERT_ROWS rows each, and what never changes. All on the device. */
struct bert_scratch {
    float *x, *qkv, *q, *k, *v, *attended, *inner;
    int32_t *position, *slot;
    float *cos, *sin;
};

struct bert {
    struct backend *backend;
    struct bert_shape shape;
    struct safetensors file;      // stays mapped: word rows are copied out of it
    const struct st_tensor *word; // (vocab, D)
    float *place;                 // (1 + positions, D) on the host: type[0], then position[p]
    struct bert_layer *layer;
    float *first_norm; // (2, D) on the device
    float *vectors;    // all small vectors of all layers: one allocation on the device
    struct bert_scratch scratch;
    void *scratch_at; // its one allocation
};

/* dir holds config.json and model.safetensors; `positions` of the shape is cut to `most`. The backend must outlive it.
 * ERR_FORMAT says which field or tensor is not as a BERT model has it. */
int bert_open(struct bert *b, const char *dir, int most, struct backend *backend, struct err *err) MUST_CHECK;
void bert_close(struct bert *b); // zeroed is fine

/* Text i has the tokens id[start[i]] .. id[start[i + 1] - 1], at least one and at most shape.positions; start[n] is at
 * most BERT_ROWS and ids are below shape.vocab. */
struct bert_batch {
    const int32_t *id;
    const int *start; // (n + 1), start[0] is 0
    int n;
};
int bert_run(struct bert *b, const struct bert_batch *batch, float *hidden /* (start[n], D) */,
             struct err *err) MUST_CHECK;

#endif
