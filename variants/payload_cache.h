/* payload_cache.h - a payload's description of the cache that it was made from: JSON texts in its metadata. A
 * serving engine compares it with its own cache before it loads the payload, so a mismatch does not become a wrong
 * answer.
 *
 *     cache    {"dtype":"f32","n_layers":30,"n_heads":9,"n_kv_heads":3,"head_dim":64,"model_dtype":"bfloat16",
 *               "rope":{"theta":100000,"dims":64,"scaling":"llama3","factor":32,"low_freq_factor":1,
 *                       "high_freq_factor":4,"original_max_position_embeddings":8192}}
 *              with layers that keep the last tokens only: "window":512,"windowed":[0,1,2,3,4,6,...]
 *     lengths  [2006,2006,1003,...], the tokens that each head of a layer keeps
 *     errors   [0.0262,0.0265,...], what a quantiser loses of each layer's keys, then values (variants/variant_error.h)
 *
 * docs/formats/payload.md says what they mean and when they are absent.
 */
#ifndef EVP_PAYLOAD_CACHE_H
#define EVP_PAYLOAD_CACHE_H

#include "base/buf.h"
#include "base/err.h"
#include "kernels/kv.h"

/* How keys were rotated: column i of a head's first `dims` columns is paired with column i + dims / 2. Names as in
 * Hugging Face's config.json. */
struct payload_rope {
    double theta;
    int dims;
    const char *scaling; // "default", "linear", "llama3", "yarn" or "longrope"
    double factor;
    double low, high;                     // llama3: low_freq_factor, high_freq_factor; yarn: beta_slow, beta_fast
    double attention_factor;              // yarn, longrope
    int original_max_position_embeddings; // llama3, yarn, longrope
};

/* The model that computed a cache. */
struct payload_model {
    const char *name;
    const char *dtype; // as in its config, "bfloat16"; "": unknown
    struct payload_rope rope;
};

struct payload_cache {
    struct kv_shape shape;
    char model_dtype[16]; // "": unknown
    struct payload_rope rope;
};

/* Appends the text. */
void payload_cache_put(struct buf *text, const struct kv_shape *shape, const struct payload_model *model);

/* Reads it back. ERR_FORMAT says what is wrong with it. */
int payload_cache_parse(struct payload_cache *c, const char *text, struct err *err) MUST_CHECK;

/* The same for n lengths. ERR_FORMAT also when the text has another number of them. */
void payload_lengths_put(struct buf *text, const int *length, int n);
int payload_lengths_parse(int *length, int n, const char *text, struct err *err) MUST_CHECK;

/* The same for the errors of n layers, (n, 2). */
void payload_errors_put(struct buf *text, const double *error, int n);
int payload_errors_parse(double *error, int n, const char *text, struct err *err) MUST_CHECK;

#endif
