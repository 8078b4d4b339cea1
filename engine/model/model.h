/* model.h - a model file opened for reading: what the model is, and its weights.
 *
 * Two containers, one view: GGUF, in one file or in numbered parts, and a Hugging Face folder (config.json,
 * model.safetensors or shards with an index, tokenizer.json). engine/model/dequant.h has the number formats. Tensors are
 * known by their role; where GGUF files keep the rows of q and k in rotary pairs (Llama's), they are put back into
 * halves.
 *
 * Everything in the file is hostile. model_open() checks types, shapes, offsets and overlaps, and that the tensor of
 * every role is there in the shape that the config asks for. Nothing that changes the result is ignored: a tensor that
 * no role reads, a key of a GGUF file's architecture that this engine does not follow, or a field of config.json that
 * departs from its family is refused by its name. A sliding window cannot be applied to a compressed cache. Within the
 * window it changes nothing, so it shortens max_tokens.
 *
 * To read another family: (1) its row in families[] of engine/model/model_family.c (2) its keys in known_keys[] of
 * engine/model/model_gguf.c and dangerous[] of engine/model/hf.c (3) tensors of new roles in model_roles[] of engine/model/model.c, read
 * in engine/transformer/weights.c (4) what the forward pass does differently in engine/transformer/forward.c (5) a row in FAMILIES of
 * tests/golden/families/families.py; tests/golden/families/oracle compares it with transformers (6) its line in
 * docs/models.md.
 */
#ifndef EVP_MODEL_H
#define EVP_MODEL_H

#include "base/err.h"
#include "engine/model/dequant.h"

#include <stdbool.h>
#include <stdint.h>

enum rope_scaling { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3 };

/* As Hugging Face calls it. */
static inline const char *rope_scaling_name(enum rope_scaling s)
{
    static const char *const name[] = { "default", "linear", "llama3" };
    return name[s];
}

struct model_config {
    char arch[16];  // as the file has it: "llama"
    char name[64];  // from the file, or the folder's name
    char dtype[16]; // that config.json asks for: "bfloat16"; "": not known
    unsigned roles; // 1 << role for each that the model has tensors of
    int n_layers, d_model, n_heads, n_kv_heads, head_dim, n_vocab;
    int d_ff;                                 // hidden numbers of the MLP; 0 with experts
    int n_experts, n_experts_used, expert_ff; // 0 without experts
    bool renormalise;                         // the weights of the experts that a token uses add up to 1
    int rotary;                               // columns of a head that are rotated, from the first
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

/* Does a path name a model of random weights, "synthetic:NAME"? It has the shape of a published model, numbers that
 * follow from its name alone, and a token for every byte. It is for measuring speed: its answers mean nothing, and its
 * digest is that of its name, so nothing takes it for a real model. */
bool model_is_synthetic(const char *path);

/* path: a .gguf file, a folder or the name of a synthetic model (ERR_USAGE where there is none of that name). NULL:
 * cannot open (ERR_IO), malformed (ERR_FORMAT), or an architecture this engine does not compute (ERR_FORMAT, named). */
struct model *model_open(const char *path, struct err *err);
void model_close(struct model *m); // NULL is fine
const struct model_config *model_config(const struct model *m);

/* A copy of `given`; where it is NULL the path of the default model, SmolLM2-135M-Instruct.Q4_1.gguf in
 * file_models_dir(); where it names no file but looks like ORG/NAME, the snapshot of that repository in the cache of
 * huggingface_hub. The caller frees it. NULL: no such snapshot (ERR_IO, with the folder that was looked into), or no
 * memory. */
char *model_path(const char *given, struct err *err);

/* The file of a model folder that has the vocabulary; "tokenizer.json" where there is none. NULL without memory. */
char *model_vocabulary_path(const char *dir);

/* What a model folder is called: NAME for a snapshot in that cache, otherwise the last part of its path. */
void model_folder_name(const char *path, char *out, size_t size);

/* model_digest of the formats: SHA-256 hex over the weights' bytes and the tokenizer's, computed once and noted beside
 * the model (FILE.evp-digest, FOLDER/model.evp-digest), or in file_cache_dir()/digests where the folder cannot be
 * written. A note holds until one of the files changes. Where no note can be written, the digest is computed each time.
 */
int model_digest(const struct model *m, char hex[65], struct err *err) MUST_CHECK;

/* What a tensor is for. The roles up to TENSOR_ROUTER come once per layer, those up to TENSOR_EXPERT_DOWN once per
 * expert of a layer, the others once. Roles whose weights are multiplied together follow each other: Q K V, GATE UP,
 * and so do their biases. A model has either the three or QKV, either the two or GATE_UP, and either these or experts.
 */
enum tensor_role {
    TENSOR_ATTENTION_NORM,
    TENSOR_Q,
    TENSOR_K,
    TENSOR_V,
    TENSOR_QKV,
    TENSOR_Q_BIAS,
    TENSOR_K_BIAS,
    TENSOR_V_BIAS,
    TENSOR_Q_NORM,
    TENSOR_K_NORM,
    TENSOR_O,
    TENSOR_O_BIAS,
    TENSOR_MLP_NORM,
    TENSOR_GATE,
    TENSOR_UP,
    TENSOR_GATE_UP,
    TENSOR_GATE_BIAS,
    TENSOR_UP_BIAS,
    TENSOR_DOWN,
    TENSOR_DOWN_BIAS,
    TENSOR_ROUTER,
    TENSOR_EXPERT_GATE,
    TENSOR_EXPERT_UP,
    TENSOR_EXPERT_DOWN,
    TENSOR_EMBEDDING,
    TENSOR_NORM,
    TENSOR_HEAD, // in a tied model the embedding
    TENSOR_ROLES
};

static inline bool model_has(const struct model_config *c, enum tensor_role role)
{
    return c->roles >> role & 1;
}

/* (rows, cols) of a role's tensor; a vector is one row. */
struct tensor_shape {
    int rows, cols;
};
struct tensor_shape model_shape(const struct model_config *c, enum tensor_role role);

/* A role's tensor. `index` is the layer, or layer * n_experts + expert; it is ignored for roles that come once. Each of
 * these checks that all numbers are finite:
 * ERR_FORMAT names the tensor and the place of the first that is not. Several threads share the work.
 *
 *     model_view      *out becomes the tensor where it is in the file, in the file's type: F32, F16 or BF16. It may not
 *                     be written to and lives as long as the model. out->at is NULL where the bytes cannot be used as
 *                     they are (blocks, no alignment, rows of q and k in another order); out->type is then the type in
 *                     which model_read_mat() gives them without loss
 *     model_read_mat  copies into out->at, (rows, cols) with a pitch of at least cols; out->type is f32, bf16 (rounded)
 *                     or what model_view() said
 *     model_read      copies into out as f32, (rows, cols) */
struct mat;
int model_view(const struct model *m, enum tensor_role role, int index, struct mat *out, struct err *err) MUST_CHECK;
int model_read_mat(const struct model *m, enum tensor_role role, int index, const struct mat *out,
                   struct err *err) MUST_CHECK;
int model_read(const struct model *m, enum tensor_role role, int index, float *out, struct err *err) MUST_CHECK;

/* Lets the system take back the memory of what was read of the files. They can be read again. */
void model_forget(const struct model *m);

/* All tensors in file order, for evp-show; borrowed. */
int model_n_tensors(const struct model *m);
const struct tensor *model_tensor(const struct model *m, int i);

#endif
