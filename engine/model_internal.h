/* model_internal.h - what a model consists of, for the files of engine/ that read one. Everybody else: engine/model.h.
 *
 * gguf_open() and hf_open() fill `config`, `weight` and `names` from their container; model.c checks the whole and
 * answers questions about it.
 */
#ifndef EVP_MODEL_INTERNAL_H
#define EVP_MODEL_INTERNAL_H

#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "base/safetensors.h"
#include "engine/dequant.h"
#include "engine/gguf.h"
#include "engine/model.h"

struct weight {
    const char *file_name; // as in the file; borrowed from the container
    enum weight_type type;
    int n_dims;
    int64_t dim[4];
    const void *at;
    uint64_t bytes;
    int pairs_heads; // > 0: rows in Llama's interleaved rotary order, over so many heads
};

struct model {
    char *path;
    struct model_config config;
    struct map names; // Hugging Face's name -> weight
    struct weight *weight;
    int n_weights;

    /* one of the two containers */
    struct file_map map;
    struct gguf gguf; // over map; n_values is 0 in a folder

    struct safetensors *shard; // a folder's weights, in the order of their names
    char **shard_path;
    int n_shards;
    struct json *json; // config.json, NULL in a GGUF file
};

/* `m->path` is set; what they leave behind when they fail is released by the caller. */
int gguf_model_open(struct model *m, struct err *err) MUST_CHECK;
int gguf_model_parse(struct model *m, const void *bytes, size_t n, struct err *err) MUST_CHECK; // bytes are borrowed
int hf_model_open(struct model *m, struct err *err) MUST_CHECK;

/* Is the config possible, and is every tensor it calls for there in its shape? */
int model_check(const struct model *m, struct err *err) MUST_CHECK;

/* Adds a weight under Hugging Face's name; m->weight has room for it. */
int model_add(struct model *m, const char *name, const struct weight *w, struct err *err) MUST_CHECK;

/* Is `arch` one this engine computes? "llama", "mistral". ERR_FORMAT with its name otherwise. */
int model_check_arch(const char *arch, struct err *err) MUST_CHECK;

/* {dir}/{name} parsed; NULL with ERR_IO when it is not there. */
struct json *model_json(const char *dir, const char *name, struct err *err);

#endif
