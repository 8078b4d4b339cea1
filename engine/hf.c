/* hf.c - a Hugging Face folder as a model: config.json, and model.safetensors or the shards of its index.
 *
 * First config.json, which must describe a plain Llama: an option of the family that this engine does not compute is
 * refused by its name. Then the shards in the order of their names, so that the digest does not depend on the index.
 */
#include "engine/model_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- config.json ------------------------------------------------------- */

/* A whole number that fits an int. Absent or null gives `fallback`, or with fallback 0 an error. */
static int read_int(const struct json *config, const char *key, int fallback, int *out, struct err *err)
{
    int64_t v = fallback;

    if (fallback ? json_may_int(config, key, &v, err) : json_want_int(config, key, &v, err))
        return err->code;
    if (v < 0 || v > INT_MAX)
        return err_set(err, ERR_FORMAT, "field '%s' is %lld, not a count", key, (long long)v);
    *out = (int)v;
    return 0;
}

/* Parts of the family that this engine does not compute. */
static int check_plain(const struct json *config, struct err *err)
{
    static const char *const biases[] = { "attention_bias", "mlp_bias" };
    const char *act = "silu", *arch = NULL;

    if (json_want_text(config, "model_type", &arch, err) || model_check_arch(arch, err) ||
        json_may_text(config, "hidden_act", &act, err))
        return err->code;
    if (strcmp(act, "silu") != 0)
        return err_set(err, ERR_FORMAT, "activation '%.64s' is not supported (silu is)", act);
    for (size_t i = 0; i < sizeof(biases) / sizeof(*biases); i++)
        if (json_true(json_get(config, biases[i])))
            return err_set(err, ERR_FORMAT, "'%s' is not supported", biases[i]);
    const struct json *quantised = json_get(config, "quantization_config");
    if (quantised && !json_is_null(quantised))
        return err_set(err, ERR_FORMAT, "quantised weights ('quantization_config') are not supported");
    return 0;
}

static int read_shape(struct model_config *c, const struct json *config, struct err *err)
{
    int window = INT_MAX;

    if (read_int(config, "num_hidden_layers", 0, &c->n_layers, err) ||
        read_int(config, "hidden_size", 0, &c->d_model, err) ||
        read_int(config, "intermediate_size", 0, &c->d_ff, err) ||
        read_int(config, "vocab_size", 0, &c->n_vocab, err) ||
        read_int(config, "max_position_embeddings", 0, &c->max_tokens, err) ||
        read_int(config, "num_attention_heads", 0, &c->n_heads, err) ||
        read_int(config, "num_key_value_heads", c->n_heads ? c->n_heads : 1, &c->n_kv_heads, err) ||
        read_int(config, "head_dim", c->n_heads ? c->d_model / c->n_heads : 1, &c->head_dim, err) ||
        read_int(config, "sliding_window", INT_MAX, &window, err))
        return err->code;
    if (window < c->max_tokens) /* while the window holds every token, it changes nothing */
        c->max_tokens = window;
    return 0;
}

/* rope_scaling (null, or with `type` or `rope_type`), or transformers 5's rope_parameters, which hold the base too. */
static int read_rope(struct model_config *c, const struct json *config, struct err *err)
{
    const struct json *scaling = json_get(config, "rope_parameters");
    const char *type = "default";

    c->rope_theta = 10000;
    if (!json_is_object(scaling))
        scaling = json_get(config, "rope_scaling");
    if (json_may_real(config, "rope_theta", &c->rope_theta, err) ||
        json_may_real(scaling, "rope_theta", &c->rope_theta, err) || json_may_text(scaling, "type", &type, err) ||
        json_may_text(scaling, "rope_type", &type, err))
        return err->code;
    if (strcmp(type, "default") == 0)
        return 0;
    if (strcmp(type, "linear") == 0) {
        c->rope_scaling = ROPE_LINEAR;
        return json_want_real(scaling, "factor", &c->rope_factor, err);
    }
    if (strcmp(type, "llama3") != 0)
        return err_set(err, ERR_FORMAT, "rotary scaling '%.64s' is not supported", type);
    c->rope_scaling = ROPE_LLAMA3;
    if (json_want_real(scaling, "factor", &c->rope_factor, err) ||
        json_want_real(scaling, "low_freq_factor", &c->rope_low, err) ||
        json_want_real(scaling, "high_freq_factor", &c->rope_high, err))
        return err->code;
    return read_int(scaling, "original_max_position_embeddings", 0, &c->rope_original, err);
}

static int read_config(struct model *m, struct err *err)
{
    struct model_config *c = &m->config;
    double eps;

    m->json = model_json(m->path, "config.json", err);
    if (!m->json)
        return err->code;
    if (check_plain(m->json, err) || read_shape(c, m->json, err) || read_rope(c, m->json, err) ||
        json_want_real(m->json, "rms_norm_eps", &eps, err))
        return err_wrap(err, "'%s/config.json'", m->path);
    c->norm_eps = (float)eps;
    c->tied = json_true(json_get(m->json, "tie_word_embeddings"));
    snprintf(c->arch, sizeof(c->arch), "%s", json_text(json_get(m->json, "model_type")));
    size_t n = strlen(m->path);
    while (n > 1 && m->path[n - 1] == '/')
        m->path[--n] = '\0';
    snprintf(c->name, sizeof(c->name), "%.63s", file_name(m->path));
    return 0;
}

/* ---- weights ----------------------------------------------------------- */

/* Adds the file {folder}/{name} to the shards, which alloc_shards() made. */
static int add_shard(struct model *m, const char *name, struct err *err)
{
    char *path = file_join(m->path, name);

    if (!path)
        return err_nomem(err);
    if (safetensors_open(&m->shard[m->n_shards], path, err)) {
        free(path);
        return err->code;
    }
    m->shard_path[m->n_shards++] = path;
    return 0;
}

static int alloc_shards(struct model *m, int n, struct err *err)
{
    m->shard = calloc((size_t)n + 1, sizeof(*m->shard));
    m->shard_path = calloc((size_t)n + 1, sizeof(*m->shard_path));
    return m->shard && m->shard_path ? 0 : err_nomem(err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The files an index names, each once, in the order of their names. */
static int list_files(struct map *files, const char ***sorted, const struct json *weights, struct err *err)
{
    for (const struct json *w = json_first(weights); w; w = json_next(w)) {
        const char *file = json_text(w);
        if (!file || !*file || strchr(file, '/'))
            return err_set(err, ERR_FORMAT, "tensor '%.128s' is not in a file of the folder", json_name(w));
        if (map_add(files, file, strlen(file), NULL) < 0)
            return err_nomem(err);
    }
    if (files->n == 0)
        return err_set(err, ERR_FORMAT, "field 'weight_map' names no file");
    *sorted = calloc((size_t)files->n, sizeof(**sorted));
    if (!*sorted)
        return err_nomem(err);
    for (int i = 0; i < files->n; i++)
        (*sorted)[i] = files->at[i].key;
    qsort(*sorted, (size_t)files->n, sizeof(**sorted), by_name);
    return 0;
}

static int open_index(struct model *m, struct err *err)
{
    struct json *index = model_json(m->path, "model.safetensors.index.json", err);
    struct map files = { 0 };
    const char **sorted = NULL;

    if (!index)
        return err->code;
    int code = list_files(&files, &sorted, json_get(index, "weight_map"), err);
    if (code)
        err_wrap(err, "'%s/model.safetensors.index.json'", m->path);
    else
        code = alloc_shards(m, files.n, err);
    for (int i = 0; i < files.n && code == 0; i++)
        code = add_shard(m, sorted[i], err);
    free(sorted);
    map_release(&files);
    json_free(index);
    return code;
}

static int open_shards(struct model *m, struct err *err)
{
    char *index = file_join(m->path, "model.safetensors.index.json");

    if (!index)
        return err_nomem(err);
    bool sharded = file_exists(index);
    free(index);
    if (sharded)
        return open_index(m, err);
    return alloc_shards(m, 1, err) ? err->code : add_shard(m, "model.safetensors", err);
}

/* False for what cannot be a weight of the model: integers and masks, which some folders also contain. */
static bool tensor_of(struct tensor *out, const struct st_tensor *t)
{
    if ((t->type != ST_F32 && t->type != ST_F16 && t->type != ST_BF16) || t->n_dims < 1 || t->n_dims > TENSOR_DIMS)
        return false;
    *out = (struct tensor){ .name = t->name, .n_dims = t->n_dims, .at = t->at, .bytes = t->bytes };
    out->type = t->type == ST_F32 ? WEIGHT_F32 : t->type == ST_F16 ? WEIGHT_F16 : WEIGHT_BF16;
    memcpy(out->dim, t->dim, sizeof(out->dim));
    return true;
}

static int add_tensors(struct model *m, struct err *err)
{
    size_t n = 0;

    for (int s = 0; s < m->n_shards; s++)
        n += (size_t)m->shard[s].n;
    if (model_reserve(m, n, err))
        return err->code;
    for (int s = 0; s < m->n_shards; s++)
        for (int i = 0; i < m->shard[s].n; i++) {
            struct tensor t;
            if (tensor_of(&t, &m->shard[s].tensor[i]) && model_add(m, t.name, &t, err))
                return err_wrap(err, "'%s'", m->shard_path[s]);
        }
    return 0;
}

int hf_model_open(struct model *m, struct err *err)
{
    if (read_config(m, err) || open_shards(m, err))
        return err->code;
    return add_tensors(m, err);
}
