/* model.h - a model file opened for reading: what the model is, and its weights.
 *
 * Two containers, one view: GGUF (F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 tensors) and a Hugging Face folder
 * (config.json, model.safetensors or shards with an index, tokenizer.json). Tensors are known by their role; Llama's
 * interleaved rotary layout of q and k in GGUF files is put back into halves.
 *
 * Everything in the file is hostile. model_open() checks types, shapes, offsets and overlaps, and that the tensor of
 * every role is there in the shape that the config asks for. Nothing that changes the result is ignored: a tensor that
 * no role reads, a key of a GGUF file's architecture that this engine does not follow, or a field of config.json that
 * departs from plain Llama is refused by its name. A sliding window cannot be applied to a compressed cache. Within the
 * window it changes nothing, so it shortens max_tokens.
 *
 * To read another architecture of the family: (1) its name in model_check_arch() of engine/model.c (2) its keys in
 * known_keys[] of engine/model_gguf.c and dangerous[] of engine/hf.c (3) tensors of new roles in model_roles[] of
 * engine/model.c, read in engine/engine.c (4) what the forward pass does differently in engine/forward.c (5) a small
 * file of it in tests/data, read by tests/unit/model.c (6) its logits in tests/golden/engine.
 */
#ifndef EVP_MODEL_H
#define EVP_MODEL_H

#include "base/err.h"
#include "engine/dequant.h"

#include <stdbool.h>
#include <stdint.h>

enum rope_scaling { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3 };

struct model_config {
    char arch[16]; // "llama"
    char name[64]; // from the file, or the folder's name
    int n_layers, d_model, n_heads, n_kv_heads, head_dim, d_ff, n_vocab;
    int max_tokens; // what the model was trained for, or its sliding window where that is shorter
    int window;     // max_tokens where it is a sliding window, otherwise 0
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
void model_close(struct model *m); // NULL is fine
const struct model_config *model_config(const struct model *m);

/* A copy of `given`, or where it is NULL the path of the default model, SmolLM2-135M-Instruct.Q4_1.gguf in
 * file_models_dir(). The caller frees it; NULL without memory. */
char *model_path(const char *given, struct err *err);

/* model_digest of the formats: SHA-256 hex over the weights' bytes and the tokenizer's, computed once and noted beside
 * the model (FILE.evp-digest, FOLDER/model.evp-digest), or in file_cache_dir()/digests where the folder cannot be
 * written. A note holds until one of the files changes. Where no note can be written, the digest is computed each time.
 */
int model_digest(const struct model *m, char hex[65], struct err *err) MUST_CHECK;

/* What a tensor is for. The roles up to TENSOR_DOWN come once per layer, the others once. Roles whose weights are
 * multiplied together follow each other: Q K V, and GATE UP. */
enum tensor_role {
    TENSOR_ATTENTION_NORM,
    TENSOR_Q,
    TENSOR_K,
    TENSOR_V,
    TENSOR_O,
    TENSOR_MLP_NORM,
    TENSOR_GATE,
    TENSOR_UP,
    TENSOR_DOWN,
    TENSOR_EMBEDDING,
    TENSOR_NORM,
    TENSOR_HEAD, // in a tied model the embedding
    TENSOR_ROLES
};

/* (rows, cols) of a role's tensor; a vector is one row. */
struct tensor_shape {
    int rows, cols;
};
struct tensor_shape model_shape(const struct model_config *c, enum tensor_role role);

/* A role's tensor; layer is ignored for roles that come once. Each of these checks that all numbers are finite:
 * ERR_FORMAT names the tensor and the place of the first that is not. Several threads share the work.
 *
 *     model_view      *out becomes the tensor where it is in the file, in the file's type: F32, F16 or BF16. It may not
 *                     be written to and lives as long as the model. out->at is NULL where the bytes cannot be used as
 *                     they are (blocks, no alignment, rows of q and k in another order); out->type is then the type in
 *                     which model_read_mat() gives them without loss
 *     model_read_mat  copies into out->at, (rows, cols) with a pitch of at least cols; out->type is f32 or what
 *                     model_view() said
 *     model_read      copies into out as f32, (rows, cols) */
struct mat;
int model_view(const struct model *m, enum tensor_role role, int layer, struct mat *out, struct err *err) MUST_CHECK;
int model_read_mat(const struct model *m, enum tensor_role role, int layer, const struct mat *out,
                   struct err *err) MUST_CHECK;
int model_read(const struct model *m, enum tensor_role role, int layer, float *out, struct err *err) MUST_CHECK;

/* All tensors in file order, for evp-show; borrowed. */
int model_n_tensors(const struct model *m);
const struct tensor *model_tensor(const struct model *m, int i);

#endif
