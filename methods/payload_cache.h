/* payload_cache.h - what a payload says of the cache that it was made of, so that whoever puts it back into a serving
 * engine can compare the two before a wrong answer does: two texts of its metadata, both JSON.
 *
 *     cache    {"dtype":"f32","n_layers":30,"n_heads":9,"n_kv_heads":3,"head_dim":64,"model_dtype":"bfloat16",
 *               "rope":{"theta":100000,"dims":64,"scaling":"llama3","factor":32,"low_freq_factor":1,
 *                       "high_freq_factor":4,"original_max_position_embeddings":8192}}
 *     lengths  [2006,2006,1003,...], the tokens that each head of a layer keeps
 *
 * docs/formats/payload.md says what they mean and when they are absent.
 */
#ifndef EVP_PAYLOAD_CACHE_H
#define EVP_PAYLOAD_CACHE_H

#include "base/buf.h"
#include "base/err.h"
#include "kernels/kv.h"

/* How keys were rotated: column i of a head's first `dims` with column i + dims / 2. Names are those of Hugging Face's
 * config.json. */
struct payload_rope {
    double theta;
    int dims;
    const char *scaling;                              // "default", "linear" or "llama3"
    double factor, low_freq_factor, high_freq_factor; // linear: factor
    int original_max_position_embeddings;             // llama3
};

/* The model that computed a cache. */
struct payload_model {
    const char *name;
    const char *dtype; // that its config asks for, "bfloat16"; "": not known
    struct payload_rope rope;
};

struct payload_cache {
    struct kv_shape shape;
    char model_dtype[16]; // "": not known
    struct payload_rope rope;
};

/* Appends the text. */
void payload_cache_put(struct buf *text, const struct kv_shape *shape, const struct payload_model *model);

/* Reads it back. ERR_FORMAT says what is wrong with it. */
int payload_cache_parse(struct payload_cache *c, const char *text, struct err *err) MUST_CHECK;

/* The same of n lengths. ERR_FORMAT: there is another number of them, too. */
void payload_lengths_put(struct buf *text, const int *length, int n);
int payload_lengths_parse(int *length, int n, const char *text, struct err *err) MUST_CHECK;

#endif
