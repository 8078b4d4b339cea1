/* hf.c - a Hugging Face folder as a model: config.json, and model.safetensors or the shards of its index.
 *
 * First config.json: its model_type is a family, and a field that departs from the family is refused by name. Then the
 * shards in the order of their names, so that the digest does not depend on the index.
 */
#include "engine/model/model_internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- config.json ------------------------------------------------------- */

int hf_int(const struct json *config, const char *key, int fallback, int *out, struct err *err)
{
    int64_t v = fallback;

    if (fallback ? json_may_int(config, key, &v, err) : json_want_int(config, key, &v, err))
        return err->code;
    if (v < 0 || v > INT_MAX)
        return err_set(err, ERR_FORMAT, "field '%s' is %lld, not a count", key, (long long)v);
    *out = (int)v;
    return 0;
}

/* Fields of config.json that change a model's computation, with the value that changes nothing; NAN: no value does.
 * They come from relatives of the families (Granite, Cohere, Gemma, Mixtral, SmolLM3 and others); some of these folders
 * give Llama as their type. Fields that are not listed are harmless: config.json has dozens. */
static const struct {
    const char *name;
    double plain; // true is 1, false 0
} dangerous[] = {
    { "lm_head_bias", 0 },
    { "qkv_bias", 0 },
    { "use_qkv_bias", 0 },
    { "use_bias", 0 },
    { "bias", 0 },
    { "qk_norm", 0 },
    { "use_qk_norm", 0 },
    { "use_parallel_residual", 0 },
    { "parallel_attn", 0 },
    { "alibi", 0 },
    { "attn_logit_softcapping", 0 },
    { "final_logit_softcapping", 0 },
    { "attn_temperature_tuning", 0 },
    { "use_bidirectional_attention", 0 },
    { "is_encoder_decoder", 0 },
    { "add_cross_attention", 0 },
    { "is_causal", 1 },
    { "swiglu_limit", 7 },        // of gpt-oss
    { "decoder_sparse_step", 1 }, // of layers with experts
    { "rotary_pct", 1 },
    { "embedding_multiplier", 1 },
    { "residual_multiplier", 1 },
    { "logits_scaling", 1 },
    { "logit_scale", 1 },
    { "attention_multiplier", (double)NAN },
    { "query_pre_attn_scalar", (double)NAN },
    { "clip_qkv", (double)NAN },
    { "no_rope_layers", (double)NAN },
    { "no_rope_layer_interval", (double)NAN },
    { "attention_out_bias", 0 },
    { "cross_attention_layers", (double)NAN },
};

bool hf_plain(const struct json *v, double plain)
{
    if (!v || json_is_null(v))
        return true;
    return json_is_bool(v) ? (json_true(v) ? 1 : 0) == plain : json_is_number(v) && json_real(v) == plain;
}

/* Does the family read a field that changes others' computation? */
static bool is_read(const struct model_family *f, const char *name)
{
    for (int i = 0; f->multiplies && i < MULTIPLIERS; i++)
        if (strcmp(name, model_multipliers[i]) == 0)
            return true;
    if (f->gemma && (strcmp(name, "query_pre_attn_scalar") == 0 || strstr(name, "_logit_softcapping")))
        return true;
    return f->unrotated && strncmp(name, "no_rope_layer", strlen("no_rope_layer")) == 0;
}

/* Refuses what this engine does not compute. */
static int check_plain(const struct model_family *f, const struct json *config, struct err *err)
{
    const char *want = f->gemma ? "gelu_pytorch_tanh" : "silu", *act = want;

    if (json_may_text(config, f->gemma ? "hidden_activation" : "hidden_act", &act, err))
        return err->code;
    if (strcmp(act, want) != 0)
        return err_set(err, ERR_FORMAT, "activation '%.64s' is not supported (%s is)", act, want);
    for (size_t i = 0; i < sizeof(dangerous) / sizeof(*dangerous); i++)
        if (!is_read(f, dangerous[i].name) && !hf_plain(json_get(config, dangerous[i].name), dangerous[i].plain))
            return err_set(err, ERR_FORMAT, "field '%s' has a value that is not supported", dangerous[i].name);
    return 0;
}

/* Where pictures are another model's, the config of the text is text_config, in older folders the whole. Its model_type
 * is that of a family, or the outer one with "_text". */
static int read_text_family(struct model *m, const char *outer, struct err *err)
{
    const struct json *inner = json_get(m->json, "text_config");
    const char *type = m->family->text;
    char own[80];

    m->pictures = true;
    if (json_is_object(inner)) {
        m->text = inner;
        if (json_may_text(inner, "model_type", &type, err))
            return err->code;
    }
    snprintf(own, sizeof(own), "%s_text", outer);
    m->family = model_family(strcmp(type, own) == 0 ? m->family->text : type, err);
    return m->family ? 0 : err->code;
}

static int read_family(struct model *m, struct err *err)
{
    const char *type = NULL;

    m->text = m->json;
    if (json_want_text(m->json, "model_type", &type, err))
        return err->code;
    m->family = model_family(type, err);
    if (!m->family || (m->family->text && read_text_family(m, type, err)))
        return err->code;
    if (m->family->text)
        return err_set(err, ERR_FORMAT, "the text model is of type '%.64s' again", m->family->name);
    m->config.roles = m->family->roles;
    m->config.clamped = m->family->clamped;
    snprintf(m->config.arch, sizeof(m->config.arch), "%s", type);
    return 0;
}

/* Biases that config.json switches on or off. */
static int read_biases(struct model *m, struct err *err)
{
    const struct {
        const char *name;
        uint64_t roles;
    } field[] = { { "attention_bias", m->family->bias }, { "mlp_bias", m->family->mlp_bias } };

    for (size_t i = 0; i < sizeof(field) / sizeof(*field); i++) {
        if (hf_plain(json_get(m->text, field[i].name), 0))
            continue;
        if (!field[i].roles)
            return err_set(err, ERR_FORMAT, "field '%s' has a value that is not supported", field[i].name);
        m->config.roles |= field[i].roles;
    }
    return 0;
}

/* The experts: every layer has the same number. */
static int read_experts(struct model *m, const struct json *config, struct err *err)
{
    const char *key = json_get(config, "num_experts") ? "num_experts" : "num_local_experts";
    const struct model_family *f = m->family;
    struct model_config *c = &m->config;

    if (json_first(json_get(config, "mlp_only_layers")))
        return err_set(err, ERR_FORMAT, "field 'mlp_only_layers' names layers without experts, which is not supported");
    if (hf_int(config, key, 0, &c->n_experts, err) ||
        hf_int(config, "num_experts_per_tok", 0, &c->n_experts_used, err) ||
        hf_int(config, f->expert_ff ? f->expert_ff : "moe_intermediate_size", 0, &c->expert_ff, err))
        return err->code;
    c->renormalise = f->renormalise || json_true(json_get(config, "norm_topk_prob"));
    return 0;
}

static int read_shape(struct model *m, const struct json *config, struct err *err)
{
    struct model_config *c = &m->config;
    const struct model_family *f = m->family;
    int head_dim = f->head_dim;

    if (hf_int(config, "num_hidden_layers", 0, &c->n_layers, err) ||
        hf_int(config, "hidden_size", 0, &c->d_model, err) ||
        hf_int(config, "vocab_size", f->n_vocab, &c->n_vocab, err) ||
        hf_int(config, "max_position_embeddings", f->max_tokens, &c->max_tokens, err) ||
        hf_int(config, "num_attention_heads", f->n_heads, &c->n_heads, err) ||
        hf_int(config, "num_key_value_heads",
               f->n_kv_heads ? f->n_kv_heads
               : c->n_heads  ? c->n_heads
                             : 1,
               &c->n_kv_heads, err))
        return err->code;
    if (head_dim == 0)
        head_dim = c->n_heads ? c->d_model / c->n_heads : 1;
    if (hf_int(config, "head_dim", head_dim, &c->head_dim, err))
        return err->code;
    if (model_has(c, TENSOR_ROUTER))
        return read_experts(m, config, err);
    return hf_int(config, "intermediate_size", 0, &c->d_ff, err);
}

/* An absent cap is the family's; null is none. */
static int read_cap(const struct model *m, const char *name, double fallback, double *cap, struct err *err)
{
    const struct json *v = json_get(m->text, name);

    *cap = v && json_is_null(v) ? 0 : fallback;
    return json_may_real(m->text, name, cap, err);
}

/* A multiplier that is absent is 1. */
static int read_multipliers(struct model *m, struct err *err)
{
    double scalar = m->family->scalar;

    if (m->family->gemma) {
        if (json_may_real(m->text, "query_pre_attn_scalar", &scalar, err) ||
            read_cap(m, "attn_logit_softcapping", m->family->cap, &m->config.cap, err) ||
            read_cap(m, "final_logit_softcapping", m->family->logit_cap, &m->config.logit_cap, err))
            return err->code;
        if (!(scalar > 0))
            return err_set(err, ERR_FORMAT, "field 'query_pre_attn_scalar' is not above 0");
        model_set_gemma(&m->config, scalar);
    }
    for (int i = 0; m->family->multiplies && i < MULTIPLIERS; i++) {
        double *v = &m->config.multiplier[i];
        *v = 1;
        if (json_may_real(m->text, model_multipliers[i], v, err))
            return err->code;
        if (*v == 0)
            return err_set(err, ERR_FORMAT, "field '%s' is 0", model_multipliers[i]);
    }
    return 0;
}

/* Which layers are rotated: a list of 0 and 1, or all but every so many. */
static int read_unrotated(struct model *m, struct err *err)
{
    const struct json *list = json_get(m->text, "no_rope_layers");
    int n, l = 0;

    if (!m->family->unrotated || hf_int(m->text, "no_rope_layer_interval", m->family->unrotated, &n, err))
        return m->family->unrotated ? err->code : 0;
    if (!list || json_is_null(list)) {
        model_unrotate(&m->config, n);
        return 0;
    }
    if (!json_is_array(list) || json_count(list) != m->config.n_layers)
        return err_set(err, ERR_FORMAT, "field 'no_rope_layers' is not a list of %d numbers", m->config.n_layers);
    for (const struct json *at = json_first(list); at && l < MODEL_LAYERS_MAX; at = json_next(at), l++)
        if (hf_plain(at, 0))
            m->config.unrotated[l / 64] |= (uint64_t)1 << l % 64;
    return 0;
}

/* Which layers have the window, by layer_types. */
static int read_layer_types(struct model_config *c, const struct json *types, int window, struct err *err)
{
    int l = 0;

    if (json_count(types) != c->n_layers)
        return err_set(err, ERR_FORMAT, "field 'layer_types' does not have %d texts", c->n_layers);
    for (const struct json *t = json_first(types); t && l < MODEL_LAYERS_MAX; t = json_next(t), l++) {
        const char *type = json_text(t);
        const bool sliding = type && strcmp(type, "sliding_attention") == 0;
        if (!sliding && (!type || strcmp(type, "full_attention") != 0))
            return err_set(err, ERR_FORMAT, "field 'layer_types' has '%.64s', which is not supported",
                           type ? type : "no text");
        if (sliding && window == INT_MAX)
            return err_set(err, ERR_FORMAT, "field 'layer_types' has '%s' without a 'sliding_window'", type);
        c->windowed[l / 64] |= (uint64_t)sliding << l % 64;
    }
    return 0;
}

/* By layer_types; all but every nth; for Qwen all from max_window_layers on; or all. */
static int read_windowed(struct model *m, int window, struct err *err)
{
    const struct json *types = json_get(m->text, "layer_types");
    struct model_config *c = &m->config;
    int first = 0, every = 0;

    if (json_is_array(types))
        return read_layer_types(c, types, window, err);
    if (m->family->pattern && hf_int(m->text, "sliding_window_pattern", m->family->pattern, &every, err))
        return err->code;
    if (json_get(m->text, "max_window_layers") && hf_int(m->text, "max_window_layers", INT_MAX, &first, err))
        return err->code;
    model_set_windowed(c, every);
    for (int l = 0; l < first && l < MODEL_LAYERS_MAX; l++)
        c->windowed[l / 64] &= ~((uint64_t)1 << l % 64);
    return 0;
}

/* A folder without these fields has the defaults of its family's class in transformers. */
static int read_window(struct model *m, struct err *err)
{
    const struct json *used = json_get(m->text, "use_sliding_window");
    int window = INT_MAX;

    if (hf_int(m->text, "sliding_window", INT_MAX, &window, err))
        return err->code;
    if (window == 0)
        return err_set(err, ERR_FORMAT, "field 'sliding_window' is 0");
    if (!json_get(m->text, "sliding_window") && m->family->window > 0)
        window = m->family->window;
    if (read_windowed(m, window, err))
        return err->code;
    model_set_window(&m->config, (json_is_bool(used) ? json_true(used) : m->family->window_used) ? window : 0);
    return 0;
}

/* The quantisation of weights. compressed-tensors' first name for the field was another. */
static int read_quant(struct model *m, struct err *err)
{
    const struct json *c = json_get(m->json, "quantization_config"), *old = json_get(m->json, "compression_config");

    if (c && !json_is_null(c))
        return quant_read(&m->quant, c, NULL, err);
    return old && !json_is_null(old) ? quant_read(&m->quant, old, "compressed-tensors", err) : 0;
}

/* The type that other engines compute in; this one uses the backend's. transformers 5 shortened the field's name. */
static void read_dtype(struct model *m)
{
    const char *dtype = json_text(json_get(m->text, "dtype"));

    if (!dtype)
        dtype = json_text(json_get(m->text, "torch_dtype"));
    if (dtype && strlen(dtype) < sizeof(m->config.dtype))
        memcpy(m->config.dtype, dtype, strlen(dtype) + 1);
}

void hf_set_name(struct model *m)
{
    size_t n = strlen(m->path);

    while (n > 1 && m->path[n - 1] == '/')
        m->path[--n] = '\0';
    model_folder_name(m->path, m->config.name, sizeof(m->config.name));
}

static int read_eps(struct model *m, struct err *err)
{
    double eps = m->family->norm_eps;

    if (eps > 0 ? json_may_real(m->text, "rms_norm_eps", &eps, err)
                : json_want_real(m->text, "rms_norm_eps", &eps, err))
        return err->code;
    m->config.norm_eps = (float)eps;
    return 0;
}

int hf_config_read(struct model *m, struct err *err)
{
    struct model_config *c = &m->config;

    if (read_family(m, err) || check_plain(m->family, m->json, err) || check_plain(m->family, m->text, err) ||
        read_biases(m, err) || read_shape(m, m->text, err) || read_multipliers(m, err) || read_unrotated(m, err) ||
        hf_rope_read(m, err) || read_window(m, err) || read_quant(m, err) || read_eps(m, err))
        return err_wrap(err, "'%s/config.json'", m->path);
    c->tied = json_true(json_get(m->text, "tie_word_embeddings")) ||
              json_true(json_get(m->json, "tie_word_embeddings")) ||
              (m->family->gemma && !json_get(m->text, "tie_word_embeddings"));
    read_dtype(m);
    hf_set_name(m);
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

/* The files of an index, each once, in the order of their names. */
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

/* Is there a file of this name in the folder? Also false when out of memory, with err->code set. */
static bool has_file(const struct model *m, const char *name, struct err *err)
{
    char *path = file_join(m->path, name);
    bool found = path && file_exists(path);

    if (!path)
        err_nomem(err);
    free(path);
    return found;
}

/* model.safetensors takes precedence over an index, as in transformers. */
static int open_shards(struct model *m, struct err *err)
{
    static const char whole[] = "model.safetensors", index[] = "model.safetensors.index.json";

    err->code = 0;
    if (has_file(m, "adapter_config.json", err))
        return err_set(err, ERR_FORMAT,
                       "'%s' has an adapter ('adapter_config.json'), which is not supported; merge it into the weights",
                       m->path);
    bool sharded = !has_file(m, whole, err) && has_file(m, index, err);
    if (err->code)
        return err->code;
    if (sharded)
        return open_index(m, err);
    return alloc_shards(m, 1, err) ? err->code : add_shard(m, whole, err);
}

/* False for a tensor that cannot be a weight: another type, too many dimensions or none. */
static bool tensor_of(struct tensor *out, const struct st_tensor *t)
{
    if ((t->type != ST_F32 && t->type != ST_F16 && t->type != ST_BF16) || t->n_dims < 1 || t->n_dims > TENSOR_DIMS)
        return false;
    *out = (struct tensor){ .name = t->name, .n_dims = t->n_dims, .at = t->at, .bytes = t->bytes };
    out->type = t->type == ST_F32 ? WEIGHT_F32 : t->type == ST_F16 ? WEIGHT_F16 : WEIGHT_BF16;
    memcpy(out->dim, t->dim, sizeof(out->dim));
    return true;
}

/* The name of a tensor in the text's model: without "language_model." before it or after "model."; NULL: a tensor of
 * the model for pictures. */
static const char *text_name(char out[MODEL_TENSOR_NAME], const char *name)
{
    static const char *const pictures[] = { "visual.", "vision_tower.", "vision_model.", "multi_modal_projector." };
    static const char outer[] = "model.", inner[] = "language_model.";
    const char *rest = strncmp(name, outer, strlen(outer)) == 0 ? name + strlen(outer) : name;

    for (size_t i = 0; i < sizeof(pictures) / sizeof(*pictures); i++)
        if (strncmp(rest, pictures[i], strlen(pictures[i])) == 0)
            return NULL;
    if (strncmp(rest, inner, strlen(inner)) != 0)
        return name;
    snprintf(out, MODEL_TENSOR_NAME, "%s%s", rest == name ? "" : outer, rest + strlen(inner));
    return out;
}

/* Where the name of a tensor for add_experts() has the part: "gate_up_proj", "down_proj"; NULL: it is another. */
static const char *part_of(const struct model *m, const char *name, const struct tensor *t)
{
    static const char before[] = ".mlp.experts.";
    const char *at = m->family->together ? strstr(name, before) : NULL, *part = at ? at + strlen(before) : "";
    const bool bias = strcmp(part, "gate_up_proj_bias") == 0, both = bias || strcmp(part, "gate_up_proj") == 0;

    return (both ? t->dim[t->n_dims - 1] % 2 == 0 : strcmp(part, "down_proj") == 0) && t->n_dims == (bias ? 2 : 3)
               ? part
               : NULL;
}

/* A layer's experts: a tensor (E, in, out), of biases (E, out), with gate and up by turns in `out`. They are added as
 * matrices (E, out, in), or (E, out), of gate and up apart. */
static int add_experts(struct model *m, struct tensor t, const char *name, const char *part, struct err *err)
{
    static const char *const parts[] = { "gate", "up", "down" };
    const bool both = *part == 'g', bias = t.n_dims == 2;
    const int64_t rows = t.dim[0], in = t.dim[1], out = t.dim[t.n_dims - 1], step = both ? 2 : 1;
    char own[MODEL_TENSOR_NAME];

    t.dim[1] = out / step;
    t.dim[2] = in;
    t.bytes /= (uint64_t)step;
    for (int i = 0; i < step; i++) {
        struct packed *p = &m->packed[m->n_tensors];
        *p = (struct packed){ .type = t.type, .codes = t.at, .first = i, .matrix = in * out };
        p->rows = bias ? rows : out / step;
        p->row = bias ? out : step;
        p->col = bias ? step : out;
        t.packed = p;
        snprintf(own, sizeof(own), "%.*s%s_proj%s", (int)(part - name), name, parts[both ? i : 2],
                 bias ? "_bias" : ".weight");
        if (model_add(m, own, &t, err))
            return err->code;
    }
    return 0;
}

static int add_tensor(struct model *m, const struct st_tensor *from, struct err *err)
{
    char own[MODEL_TENSOR_NAME];
    const char *name = m->pictures ? text_name(own, from->name) : from->name;
    struct tensor t;

    if (!name) {
        m->n_left_out++;
        return 0;
    }
    if (tensor_of(&t, from))
        return part_of(m, name, &t) ? add_experts(m, t, name, part_of(m, name, &t), err) : model_add(m, name, &t, err);
    if (model_tensor_is_harmless(from->name))
        return 0;
    return err_set(err, ERR_FORMAT, "tensor '%s' of type %s and %d dimensions is not supported", from->name,
                   st_type_name(from->type), from->n_dims);
}

/* Is it a part of a quantised matrix, which has been added? */
static bool is_part(const struct model *m, const struct st_tensor *t)
{
    return map_find(&m->parts, t->name, strlen(t->name)) >= 0;
}

int hf_tensors_add(struct model *m, struct err *err)
{
    size_t n = 0;

    for (int s = 0; s < m->n_shards; s++)
        n += (size_t)m->shard[s].n;
    m->packed = calloc(2 * n + 1, sizeof(*m->packed));
    if (!m->packed)
        return err_nomem(err);
    if (model_reserve(m, 2 * n, err) || (m->quant.types && hf_packed_add(m, n, err)))
        return err->code;
    for (int s = 0; s < m->n_shards; s++)
        for (int i = 0; i < m->shard[s].n; i++)
            if (!is_part(m, &m->shard[s].tensor[i]) && add_tensor(m, &m->shard[s].tensor[i], err))
                return err_wrap(err, "'%s'", m->shard_path[s]);
    return 0;
}

/* modelopt's own file, where config.json does not have the same. */
static int read_modelopt(struct model *m, struct err *err)
{
    static const char name[] = "hf_quant_config.json";

    err->code = 0;
    if (m->quant.types || !has_file(m, name, err))
        return err->code;
    struct json *json = model_json(m->path, name, err);
    int code = json ? quant_read(&m->quant, json_get(json, "quantization"), "modelopt", err) : err->code;
    if (code && json)
        err_wrap(err, "'%s/%s'", m->path, name);
    json_free(json);
    return code;
}

int hf_model_open(struct model *m, struct err *err)
{
    m->json = model_json(m->path, "config.json", err);
    if (!m->json || hf_config_read(m, err) || read_modelopt(m, err) || open_shards(m, err))
        return err->code;
    return hf_tensors_add(m, err);
}
