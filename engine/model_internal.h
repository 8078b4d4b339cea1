/* model_internal.h - what a model consists of, for the files of engine/ that read one. Other folders: engine/model.h.
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
#include "engine/gguf.h"
#include "engine/model.h"

#include <time.h>

/* How big a side of a tensor is. */
enum side { SIDE_ONE, SIDE_D, SIDE_Q, SIDE_KV, SIDE_F, SIDE_V }; // 1, D, H * K, G * K, d_ff, vocabulary

/* The names of a role's tensor: Hugging Face's follows "model.layers.N." and GGUF's "blk.N." for roles of a layer. */
struct role {
    const char *name, *gguf_name;
    enum side rows, cols;
};
extern const struct role model_roles[TENSOR_ROLES];

enum { MODEL_TENSOR_NAME = 256 };

/* GGUF's tensor of rotary divisors, which model_gguf.c turns into the config's scaling. */
#define MODEL_ROPE_DIVISORS "rope_freqs.weight"

/* Is it a tensor that some files contain and no engine reads? Rotary frequencies and angles follow from the config. */
bool model_tensor_is_harmless(const char *name);

/* Hugging Face's name of a role's tensor; layer is ignored for roles that come once. */
void model_tensor_name(char out[MODEL_TENSOR_NAME], enum tensor_role role, int layer);

struct model {
    char *path;
    struct model_config config;
    struct map names; // Hugging Face's name -> tensor
    struct tensor *tensor;
    int n_tensors;

    /* one of the two containers */
    struct file_map map;
    struct gguf gguf; // over map; n_values is 0 in a folder

    struct safetensors *shard; // a folder's weights, in the order of their names
    char **shard_path;
    int n_shards;
    struct json *json; // config.json, NULL in a GGUF file
};

/* `m->path` is set; on failure the caller releases what they leave in *m. */
int gguf_model_open(struct model *m, struct err *err) MUST_CHECK;
int gguf_model_parse(struct model *m, const void *bytes, size_t n, struct err *err) MUST_CHECK; // bytes are borrowed
int hf_model_open(struct model *m, struct err *err) MUST_CHECK;

/* The tensor of a role in its shape. ERR_FORMAT when there is none, or it has another shape. */
int model_find(const struct model *m, enum tensor_role role, int layer, const struct tensor **out,
               struct err *err) MUST_CHECK;

/* Is the config possible, is every tensor it calls for there in its shape, and no other? */
int model_check(const struct model *m, struct err *err) MUST_CHECK;

/* Allocates m->tensor for n tensors; adds one under Hugging Face's name. */
int model_reserve(struct model *m, size_t n, struct err *err) MUST_CHECK;
int model_add(struct model *m, const char *name, const struct tensor *t, struct err *err) MUST_CHECK;

/* Shortens max_tokens to a sliding window of attention; 0: there is none. */
void model_limit_window(struct model_config *c, int window);

/* Is `arch` one this engine computes? "llama", "mistral". ERR_FORMAT with its name otherwise. */
int model_check_arch(const char *arch, struct err *err) MUST_CHECK;

/* model_digest() when it is `now`. */
int model_digest_at(const struct model *m, time_t now, char hex[65], struct err *err) MUST_CHECK;

/* {dir}/{name} parsed; NULL with ERR_IO when it is not there. */
struct json *model_json(const char *dir, const char *name, struct err *err);

#endif
