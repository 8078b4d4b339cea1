/* model.h - a model file opened for reading: what the model is, and its weights as f32 rows.
 *
 * Two containers, one view: GGUF (F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 tensors) and a Hugging Face folder
 * (config.json, model.safetensors or shards with an index, tokenizer.json). Names of tensors are Hugging Face's; GGUF
 * names are translated and Llama's interleaved rotary layout of q and k is put back into halves.
 *
 * Everything in the file is hostile: types, shapes, offsets and overlaps are checked here, once, so that who asks for a
 * tensor of a shape gets it or a sentence.
 */
#ifndef EVP_MODEL_H
#define EVP_MODEL_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum rope_scaling { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3 };

struct model_config {
    char arch[16]; // "llama"
    char name[64]; // from the file, or the folder's name
    int n_layers, d_model, n_heads, n_kv_heads, head_dim, d_ff, n_vocab, max_tokens;
    float norm_eps;
    double rope_theta;
    enum rope_scaling rope_scaling;
    double rope_factor, rope_low, rope_high; // linear: factor; llama3: factor, low_freq_factor, high_freq_factor
    int rope_original;                       // llama3: original_max_position_embeddings
    bool tied;                               // the output matrix is the embedding
};

struct model;

/* path: a .gguf file or a folder. NULL: cannot open (ERR_IO), malformed (ERR_FORMAT), or an architecture this engine
 * does not compute (ERR_FORMAT, named). */
struct model *model_open(const char *path, struct err *err);
void model_close(struct model *m);
const struct model_config *model_config(const struct model *m);

/* A copy of `given`, or where it is NULL the path of the default model, SmolLM2-135M-Instruct.Q4_1.gguf in
 * file_models_dir(). The caller frees it; NULL without memory. */
char *model_path(const char *given, struct err *err);

/* model_digest of the formats: SHA-256 hex over the weights' bytes and the tokenizer's, computed once and kept beside
 * the model (FILE.evp-digest, FOLDER/model.evp-digest; good for the same sizes and modification times; skipped where
 * the folder cannot be written). */
int model_digest(const struct model *m, char hex[65], struct err *err) MUST_CHECK;

/* A tensor that must be (rows, cols), or (cols) when rows is 1, dequantised into out (rows * cols floats).
 *     "model.embed_tokens.weight", "model.layers.3.self_attn.q_proj.weight", "model.norm.weight", "lm_head.weight" ...
 */
int model_read(const struct model *m, const char *name, int rows, int cols, float *out, struct err *err) MUST_CHECK;
bool model_has(const struct model *m, const char *name);

/* For evp-show: tensors in file order. */
struct model_tensor {
    const char *name, *type; // as in the file; borrowed
    int n_dims;
    int64_t dim[4];
    uint64_t bytes;
};
int model_n_tensors(const struct model *m);
struct model_tensor model_tensor(const struct model *m, int i);

#endif
