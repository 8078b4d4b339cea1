/* model.h - a model file opened for reading: the model's config and its weights.
 *
 * Two containers, one view: GGUF, in one file or several numbered ones, and a Hugging Face folder (config.json,
 * model.safetensors or shards with an index, tokenizer.json). engine/model/dequant.h has the number formats. Tensors
 * are looked up by role. Where GGUF files hold the rows of q and k in rotary pairs (Llama's), reading puts them back
 * into halves.
 *
 * Everything in the file is hostile. model_open() checks types, shapes, offsets and overlaps, and that every role has
 * its tensor in the shape that the config asks for. Nothing that changes the result is ignored: model_open() refuses by
 * name a tensor that no role reads, a key of a GGUF file's architecture that this engine does not follow, and a field
 * of config.json that departs from its family.
 *
 * To read another family: (1) its row in families[] of engine/model/model_family.c, with names of tensors and fields
 * that differ; where its arithmetic exists only (5) and (6) follow (2) its keys in known_keys[] of
 * engine/model/model_gguf.c and dangerous[] of engine/model/hf.c (3) tensors of new roles in model_roles[] of
 * engine/model/model.c, read in engine/transformer/weights.c (4) what the forward pass does differently in
 * engine/transformer/forward.c (5) a row in FAMILIES of tests/golden/families/families.py; tests/golden/families/oracle
 * compares it with transformers (6) its line in docs/models.md.
 */
#ifndef EVP_MODEL_H
#define EVP_MODEL_H

#include "base/err.h"
#include "engine/model/dequant.h"
#include "kernels/kv.h"

#include <stdbool.h>
#include <stdint.h>

enum rope_scaling { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3, ROPE_YARN, ROPE_LONGROPE };

/* As Hugging Face calls it. */
static inline const char *rope_scaling_name(enum rope_scaling s)
{
    static const char *const name[] = { "default", "linear", "llama3", "yarn", "longrope" };
    return name[s];
}

/* Granite's multipliers: of the embedding, of what a layer adds, of scores (in place of 1 / sqrt(head_dim)), and what
 * logits are divided by. */
enum multiplier { MULTIPLY_EMBEDDING, MULTIPLY_RESIDUAL, MULTIPLY_SCORES, DIVIDE_LOGITS, MULTIPLIERS };

enum { MODEL_LAYERS_MAX = KV_LAYERS_MAX };

struct model_config {
    char arch[16];  // as the file has it: "llama"
    char name[64];  // from the file, or the folder's name
    char dtype[16]; // as config.json has it: "bfloat16"; "": unknown
    uint64_t roles; // 1 << role, for each role that has tensors
    int n_layers, d_model, n_heads, n_kv_heads, head_dim, n_vocab;
    int d_ff;                                 // hidden numbers of the MLP; 0 with experts
    int n_experts, n_experts_used, expert_ff; // 0 without experts
    bool renormalise;                         // scale the weights of the experts that a token uses to sum 1
    int rotary;                               // rotated columns of a head, from the first
    int max_tokens;                           // the trained context length
    int window; // a layer with a window attends to so many tokens, the last its own; 0: no layer has one
    float norm_eps;
    double rope_theta;
    double rope_theta_window; // of layers with a window, whose rotation is not scaled; 0: they are as the others
    enum rope_scaling rope_scaling;
    double rope_factor;         // of all scalings
    double rope_low, rope_high; // llama3: low_freq_factor, high_freq_factor; yarn: beta_slow, beta_fast
    int rope_original;          // llama3, yarn, longrope: original_max_position_embeddings
    bool rope_exact;            // yarn: not truncate
    double rope_attention;      // what cosines and sines are multiplied by; 1 but for yarn and longrope
    const float
        *rope_divisors; // longrope: (2, rotary / 2): for contexts of up to rope_original tokens, for longer ones
    double multiplier[MULTIPLIERS];            // 0: none
    double cap, logit_cap;                     // x becomes cap * tanh(x / cap), of scores, of logits; 0: none
    bool round_embedding;                      // its multiplier, to the type of numbers
    bool gelu, clamped;                        // the MLP's gate: by tanh, or gpt-oss'; otherwise silu
    uint64_t unrotated[MODEL_LAYERS_MAX / 64]; // a bit for each layer without rotary embedding
    uint64_t windowed[MODEL_LAYERS_MAX / 64];  // a bit for each layer with a window
    bool tied;                                 // the output matrix is the embedding
};

struct model;

/* Does a path name a model of random weights, "synthetic:NAME"? Such a model has the shape of a published one, numbers
 * derived from its name alone, and a token for every byte. It serves to measure speed: its answers mean nothing, and
 * its digest is the digest of its name, so nothing mistakes it for a real model. */
bool model_is_synthetic(const char *path);

/* path: a .gguf file, a folder or the name of a synthetic model (ERR_USAGE: unknown name). NULL: cannot open (ERR_IO),
 * malformed (ERR_FORMAT), or an architecture that this engine does not compute (ERR_FORMAT, with its name). */
struct model *model_open(const char *path, struct err *err);
void model_close(struct model *m); // NULL is fine

/* The same without the weights of a folder, which need not be there: for its config and its tokenizer. The folder's
 * config.json is a path, too. The model has no tensors. */
struct model *model_open_config(const char *path, struct err *err);

/* The header of a model of any architecture, for shape_read() and tokenizer_open() alone: of model_config() only the
 * name is set. Weights need not be there. */
struct model *model_open_header(const char *path, struct err *err);
const struct model_config *model_config(const struct model *m);

/* Are the weights in f32, and not in a type of fewer bits? Without weights as config.json says. */
bool model_is_f32(const struct model *m);

#define MODEL_DEFAULT "SmolLM2-135M-Instruct"

/* The path of the model that a user names; the caller frees it. `given` NULL: the default model,
 * MODEL_DEFAULT.Q4_1.gguf in file_models_dir(), where `evp models` puts it; ERR_IO if it is not there. ORG/NAME that is
 * not a file: the repository's snapshot in the cache of huggingface_hub. Anything else: a copy of `given`. NULL: no
 * such snapshot (ERR_IO, with the folder searched), or out of memory. */
char *model_path(const char *given, struct err *err);

/* The vocabulary file of a model folder, "tokenizer.json" if it has none. NULL: out of memory. */
char *model_vocabulary_path(const char *dir);

/* The name of a model folder: NAME for a snapshot in that cache, otherwise the last component of its path. */
void model_folder_name(const char *path, char *out, size_t size);

/* The formats' `model_digest`: SHA-256 hex over the bytes of weights and tokenizer, computed once and noted beside the
 * model (FILE.evp-digest, FOLDER/model.evp-digest), or in file_cache_dir()/digests if the folder is read-only. A note
 * holds until one of the files changes. If no note can be written, the digest is computed each time. */
int model_digest(const struct model *m, char hex[65], struct err *err) MUST_CHECK;

/* The same on a thread beside the caller's, since SHA-256 takes longer than sending the weights to a GPU. NULL: out of
 * memory. wait(): until it is done; it may be called again. hex(): valid until free(), contents defined after wait().
 * free(): stops it; NULL is fine. The model stays open until then. */
struct model_digesting;
struct model_digesting *model_digest_begin(const struct model *m, struct err *err);
int model_digest_wait(struct model_digesting *d, struct err *err) MUST_CHECK;
const char *model_digest_hex(const struct model_digesting *d);
void model_digest_free(struct model_digesting *d);

/* What a tensor is for. The roles up to TENSOR_ROUTER occur once per layer, the next up to TENSOR_EXPERT_DOWN once per
 * expert of a layer, the others once per model. Weights that are multiplied together have consecutive roles (Q K V,
 * GATE UP), and so do their biases. A model has Q, K and V or QKV; it has GATE and UP, GATE_UP, or experts. */
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
    TENSOR_AFTER_ATTENTION, // norm of what attention adds
    TENSOR_MLP_NORM,
    TENSOR_GATE,
    TENSOR_UP,
    TENSOR_GATE_UP,
    TENSOR_GATE_BIAS,
    TENSOR_UP_BIAS,
    TENSOR_DOWN,
    TENSOR_DOWN_BIAS,
    TENSOR_AFTER_MLP, // norm of what the MLP adds
    TENSOR_SINKS,     // a score of a further key, of which the value is 0, for each head
    TENSOR_ROUTER_BIAS,
    TENSOR_EXPERT_GATE_BIAS, // of all experts of the layer
    TENSOR_EXPERT_UP_BIAS,
    TENSOR_EXPERT_DOWN_BIAS,
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

/* Floating-point operations of a token in all layers outside attention, and of attention per query and key. A prefill
 * of n tokens takes n of the first and n * n / 2 of the second. */
double model_token_flop(const struct model_config *c);
double model_pair_flop(const struct model_config *c);

static inline bool model_rotates(const struct model_config *c, int layer)
{
    return !(c->unrotated[layer / 64] >> layer % 64 & 1);
}

/* The tokens that a layer attends to, the last its own; 0: all before it. */
static inline int model_window(const struct model_config *c, int layer)
{
    return c->windowed[layer / 64] >> layer % 64 & 1 ? c->window : 0;
}

struct kv_shape model_kv_shape(const struct model_config *c, enum dtype dtype);

/* The most tokens that a context of n tokens, a question and its answer can have together. With longrope all of a text
 * is rotated by its length: a context of up to the original length cannot grow beyond it. One that kv_shape_of() treats
 * as without windows cannot grow beyond the window. model_short: contexts of up to so many tokens have such a limit. */
int model_limit(const struct model_config *c, int n);
int model_short(const struct model_config *c);

/* A role's tensor. `index` is the layer, or layer * n_experts + expert; roles that occur once ignore it. Each function
 * but model_map checks that all numbers are finite: ERR_FORMAT names the tensor, and row and column of the first that
 * is not. Several threads share the work.
 *
 *     model_view      points *out at the tensor in the mapped file, in the file's type: F32, F16 or BF16. Read-only;
 *                     lives as long as the model. out->at is NULL where the bytes cannot be used as they are (blocks,
 *                     no alignment, rows of q and k in another order); out->type is then the type in which
 *                     model_read_mat() gives them without loss
 *     model_map       the same, and no number has been read
 *     model_read_mat  copies into out->at, (rows, cols) with a pitch of at least cols; out->type is f32, bf16 (rounded)
 *                     or what model_view() said
 *     model_read      copies into out as f32, (rows, cols) */
struct mat;
int model_view(const struct model *m, enum tensor_role role, int index, struct mat *out, struct err *err) MUST_CHECK;
int model_map(const struct model *m, enum tensor_role role, int index, struct mat *out, struct err *err) MUST_CHECK;
int model_read_mat(const struct model *m, enum tensor_role role, int index, const struct mat *out,
                   struct err *err) MUST_CHECK;
int model_read(const struct model *m, enum tensor_role role, int index, float *out, struct err *err) MUST_CHECK;

/* Lets the system reclaim the memory of the files' pages read so far. They can be read again. */
void model_forget(const struct model *m);

/* How many threads read tensors; default: parallel_threads(). */
void model_set_threads(struct model *m, int n);

/* Tensors of a folder's model for pictures, which no text needs. */
int model_n_left_out(const struct model *m);

/* All tensors in file order, for evp-show; borrowed. */
int model_n_tensors(const struct model *m);
const struct tensor *model_tensor(const struct model *m, int i);

#endif
