/* model_internal.h - struct model, for the files of engine/ that read one. Other folders: engine/model/model.h.
 *
 * gguf_model_open() and hf_model_open() fill `config`, `tensor` and `names` from their container; model.c checks the
 * whole and answers questions about it.
 */
#ifndef EVP_MODEL_INTERNAL_H
#define EVP_MODEL_INTERNAL_H

#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "base/safetensors.h"
#include "engine/model/gguf.h"
#include "engine/model/model.h"
#include "engine/model/packed.h"
#include "kernels/kv.h"

#include <time.h>

/* The length of one side of a tensor: 1, D, H * K, G * K, (H + 2G) * K, K, d_ff, 2 * d_ff, E, H, expert_ff,
 * vocabulary. */
enum side { SIDE_ONE, SIDE_D, SIDE_Q, SIDE_KV, SIDE_QKV, SIDE_K, SIDE_F, SIDE_2F, SIDE_E, SIDE_H, SIDE_XF, SIDE_V };

/* The names of a role's tensor, for families that give no others: Hugging Face's follows "model.layers.N." and for an
 * expert the family's `experts` and "E." too, GGUF's "blk.N." for roles of a layer. GGUF has the experts of a layer in
 * one tensor of three dimensions. */
struct role {
    const char *name, *gguf_name;
    enum side rows, cols;
};
extern const struct role model_roles[TENSOR_ROLES];

/* The names of the multipliers in config.json, and in GGUF files. */
extern const char *const model_multipliers[MULTIPLIERS], *const model_multipliers_gguf[MULTIPLIERS];

/* What all of Gemma's models have; scores are divided by the root of `scalar`. */
void model_set_gemma(struct model_config *c, double scalar);

/* Sets every nth bit of c->unrotated; with n = 0 none. */
void model_unrotate(struct model_config *c, int n);
/* Sets the bits of c->windowed, but for every nth; with n = 0 all. */
void model_set_windowed(struct model_config *c, int n);

#define ROLE(role) ((uint64_t)1 << (role))

/* What the models of a family have in common. NULL and 0: what most families have. */
struct model_family {
    const char *name;  // Hugging Face's model_type
    const char *gguf;  // GGUF's architecture; NULL: GGUF files name another family
    const char *text;  // the family of its text model, which has all the rest: pictures are another model's
    const char *mixed; // the family of this architecture's GGUF files that have experts
    uint64_t roles;    // of its tensors
    uint64_t bias;     // roles present if config.json's attention_bias is true, or if the file has them
    uint64_t mlp_bias; // the same for mlp_bias
    bool pairs;        // GGUF files have rows of q and k in rotary pairs
    bool partial;      // the rotary embedding may cover only some columns of a head
    bool longrope;     // config.json's yarn is longrope
    bool multiplies;   // has multipliers
    bool clamped;      // its gate
    bool together;     // folders have all experts of a layer in one tensor, gate and up by turns
    bool yarn_exact;   // GGUF files' yarn does not truncate
    bool gemma;        // the embedding times the root of its width, GELU; folders have norms minus 1
    int unrotated;     // every so many layers one is not rotated, unless config.json says which; 0: all are
    bool renormalise;  // the weights of experts, whatever norm_topk_prob says
    /* other names of tensors, and of fields of config.json */
    const char *tensor[TENSOR_ROLES], *gguf_tensor[TENSOR_ROLES];
    const char *experts;   // before an expert's number; NULL: "mlp.experts."
    const char *expert_ff; // NULL: "moe_intermediate_size"
    /* defaults of fields that config.json may lack */
    double theta;        // rope_theta; 0: 10000
    int head_dim;        // 0: hidden_size / num_attention_heads
    int window;          // sliding_window; 0: none
    bool window_used;    // use_sliding_window
    int pattern;         // sliding_window_pattern: every so many layers one has no window; 0: all have
    double theta_window; // of the layers with a window; 0: as of the others
    int n_heads, n_kv_heads, n_vocab, max_tokens;
    double norm_eps, scalar; // rms_norm_eps; query_pre_attn_scalar, scores are divided by its root
    double cap, logit_cap;   // attn_logit_softcapping, final_logit_softcapping
};

/* The names of a role's tensor in a family, without layer and expert. */
const char *family_tensor(const struct model_family *f, enum tensor_role role);
const char *family_gguf_tensor(const struct model_family *f, enum tensor_role role);

/* By config.json's model_type, or by GGUF's general.architecture. NULL with ERR_FORMAT for an unsupported name, with
 * the reason if one is known. */
const struct model_family *model_family(const char *name, struct err *err);
const struct model_family *model_family_gguf(const char *name, struct err *err);

enum { MODEL_TENSOR_NAME = 256 };

/* GGUF's tensor of rotary divisors, which model_gguf.c turns into the config's scaling. */
#define MODEL_ROPE_DIVISORS "rope_freqs.weight"

/* Is it a tensor that some files contain and no engine reads? Rotary frequencies and angles follow from the config. */
bool model_tensor_is_harmless(const char *name);

/* How many tensors of a role the model has: 0, 1, one per layer or one per expert. */
int model_count(const struct model_config *c, enum tensor_role role);

/* Hugging Face's name of a role's tensor (index as in model.h), and the name given here to the tensor of all experts of
 * a layer. */
void model_tensor_name(char out[MODEL_TENSOR_NAME], const struct model *m, enum tensor_role role, int index);
void model_experts_name(char out[MODEL_TENSOR_NAME], const struct model *m, enum tensor_role role, int layer);

/* What config.json says about quantised weights. */
struct quant {
    unsigned types;                 // 1 << type, of those that its tensors may have; 0: none is quantised
    int64_t bits, group;            // of integers; 0: the tensors tell; group < 0: a whole row
    int64_t block_rows, block_cols; // of FP8 and INT8 with scales of blocks
    bool gptq_zero;                 // GPTQ's zeros are stored minus 1
};

struct gguf_file {
    struct file_map map;
    struct gguf gguf;
};

struct model {
    char *path;
    struct model_config config;
    struct map names; // Hugging Face's name -> tensor
    struct tensor *tensor;
    int n_tensors;

    const struct model_family *family; // of the text
    bool pictures;                     // the folder has another model for pictures
    const struct json *text;           // in json: the config of the text
    int n_left_out;                    // tensors of the model for pictures
    float *rope_divisors;              // of the config

    /* one of the two containers */
    struct file_map map;
    struct gguf gguf;       // over map, with all keys; n_values is 0 in a folder
    struct gguf_file *file; // (n_shards): the files after the first, which have tensors alone

    struct quant quant;
    struct packed *packed; // (2 n) a folder's quantised matrices, and those of gpt-oss' experts, by the tensor's number
    struct map parts;      // the names of the tensors that they consist of, and of those that are ignored

    struct safetensors *shard; // (n_shards): a folder's weights, in the order of their names
    struct json *json;         // config.json, NULL in a GGUF file

    char **shard_path; // (n_shards)
    int n_shards;

    bool synthetic; // no container: tensors have no bytes; reading a row draws it
    int n_threads;  // that read a tensor; 0: parallel_threads()
};

/* The caller sets m->path, and after a failure releases whatever is in *m. */
int gguf_model_open(struct model *m, struct err *err) MUST_CHECK;
int gguf_model_parse(struct model *m, const void *bytes, size_t n, struct err *err) MUST_CHECK; // bytes are borrowed
int hf_model_open(struct model *m, struct err *err) MUST_CHECK;
int hf_config_read(struct model *m, struct err *err) MUST_CHECK; // m->json is config.json
int hf_rope_read(struct model *m, struct err *err) MUST_CHECK;   // its rotary embedding
void hf_set_name(struct model *m);                               // by the name of the folder
/* method: where `c` does not name one; NULL: it must. */
int quant_read(struct quant *q, const struct json *c, const char *method, struct err *err) MUST_CHECK;
int hf_tensors_add(struct model *m, struct err *err) MUST_CHECK;          // of m->shard
int hf_packed_add(struct model *m, size_t n, struct err *err) MUST_CHECK; // the quantised of n tensors
int synthetic_model_open(struct model *m, struct err *err) MUST_CHECK;    // ERR_USAGE: unknown shape

/* A whole number in config.json that fits an int. Absent or null gives `fallback`, or with fallback 0 an error. */
int hf_int(const struct json *config, const char *key, int fallback, int *out, struct err *err) MUST_CHECK;
/* Is the field absent, null, or the plain value? */
bool hf_plain(const struct json *v, double plain);

/* Finds a role's tensor; for an expert's role the slice of that expert. ERR_FORMAT when it is absent or has another
 * shape. */
int model_find(const struct model *m, enum tensor_role role, int index, struct tensor *out, struct err *err) MUST_CHECK;

/* Checks the config's numbers, and that exactly the tensors that it calls for are there in their shapes. */
int model_check(const struct model *m, struct err *err) MUST_CHECK;

/* Allocates m->tensor for n tensors; adds one under Hugging Face's name. */
int model_reserve(struct model *m, size_t n, struct err *err) MUST_CHECK;
int model_add(struct model *m, const char *name, const struct tensor *t, struct err *err) MUST_CHECK;

/* The sliding window of the layers in c->windowed. There is none without such layers, or where it shows all of any text
 * and changes nothing else. */
void model_set_window(struct model_config *c, int window);

/* model_digest() at time `now`. */
int model_digest_at(const struct model *m, time_t now, char hex[65], struct err *err) MUST_CHECK;

/* For a synthetic model: row `row` of a tensor in F32 or BF16, and the digest of the model's name. */
void synthetic_row(const struct tensor *t, int64_t row, enum dtype type, void *to);
int synthetic_digest(const struct model *m, char hex[65], struct err *err) MUST_CHECK;

/* {dir}/{name} parsed; NULL with ERR_IO when it is missing. */
struct json *model_json(const char *dir, const char *name, struct err *err);

#endif
