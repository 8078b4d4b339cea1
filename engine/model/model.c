/* model.c - for both containers: the table of roles, and the check of config and tensors.
 *
 * model_open() lets the container fill config and tensors, then checks the config's numbers, then finds the tensor of
 * every role. The limits on the config's numbers keep every product of two of them from overflowing.
 */
#include "engine/model/model.h"

#include "base/magic.h"
#include "engine/model/model_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIM_MAX = 1 << 20,
    EXPERTS_MAX = 1024,
    HEAD_DIM_MAX = 1024, // the limit of the reference backend's attention
    VOCAB_MAX = 1 << 24,
    VOCAB_HEADER = 1 << 20, // of a config.json whose own number is not looked at
    TOKENS_MAX = 1 << 24,   // published models claim up to 10 * 2^20
    JSON_MAX = 256 << 20,
};

/* ---- the tensors of the architecture ----------------------------------- */

const struct role model_roles[TENSOR_ROLES] = {
    [TENSOR_ATTENTION_NORM] = { "input_layernorm.weight", "attn_norm.weight", SIDE_ONE, SIDE_D },
    [TENSOR_Q] = { "self_attn.q_proj.weight", "attn_q.weight", SIDE_Q, SIDE_D },
    [TENSOR_K] = { "self_attn.k_proj.weight", "attn_k.weight", SIDE_KV, SIDE_D },
    [TENSOR_V] = { "self_attn.v_proj.weight", "attn_v.weight", SIDE_KV, SIDE_D },
    [TENSOR_QKV] = { "self_attn.qkv_proj.weight", "attn_qkv.weight", SIDE_QKV, SIDE_D },
    [TENSOR_Q_BIAS] = { "self_attn.q_proj.bias", "attn_q.bias", SIDE_ONE, SIDE_Q },
    [TENSOR_K_BIAS] = { "self_attn.k_proj.bias", "attn_k.bias", SIDE_ONE, SIDE_KV },
    [TENSOR_V_BIAS] = { "self_attn.v_proj.bias", "attn_v.bias", SIDE_ONE, SIDE_KV },
    [TENSOR_Q_NORM] = { "self_attn.q_norm.weight", "attn_q_norm.weight", SIDE_ONE, SIDE_K },
    [TENSOR_K_NORM] = { "self_attn.k_norm.weight", "attn_k_norm.weight", SIDE_ONE, SIDE_K },
    [TENSOR_O] = { "self_attn.o_proj.weight", "attn_output.weight", SIDE_D, SIDE_Q },
    [TENSOR_O_BIAS] = { "self_attn.o_proj.bias", "attn_output.bias", SIDE_ONE, SIDE_D },
    [TENSOR_AFTER_ATTENTION] = { "post_attention_layernorm.weight", "post_attention_norm.weight", SIDE_ONE, SIDE_D },
    [TENSOR_MLP_NORM] = { "post_attention_layernorm.weight", "ffn_norm.weight", SIDE_ONE, SIDE_D },
    [TENSOR_GATE] = { "mlp.gate_proj.weight", "ffn_gate.weight", SIDE_F, SIDE_D },
    [TENSOR_UP] = { "mlp.up_proj.weight", "ffn_up.weight", SIDE_F, SIDE_D },
    [TENSOR_GATE_UP] = { "mlp.gate_up_proj.weight", "ffn_up.weight", SIDE_2F, SIDE_D },
    [TENSOR_GATE_BIAS] = { "mlp.gate_proj.bias", "ffn_gate.bias", SIDE_ONE, SIDE_F },
    [TENSOR_UP_BIAS] = { "mlp.up_proj.bias", "ffn_up.bias", SIDE_ONE, SIDE_F },
    [TENSOR_DOWN] = { "mlp.down_proj.weight", "ffn_down.weight", SIDE_D, SIDE_F },
    [TENSOR_DOWN_BIAS] = { "mlp.down_proj.bias", "ffn_down.bias", SIDE_ONE, SIDE_D },
    [TENSOR_AFTER_MLP] = { "post_feedforward_layernorm.weight", "post_ffw_norm.weight", SIDE_ONE, SIDE_D },
    [TENSOR_SINKS] = { "self_attn.sinks", "attn_sinks.weight", SIDE_ONE, SIDE_H },
    [TENSOR_ROUTER_BIAS] = { "mlp.router.bias", "ffn_gate_inp.bias", SIDE_ONE, SIDE_E },
    [TENSOR_EXPERT_GATE_BIAS] = { "mlp.experts.gate_proj_bias", "ffn_gate_exps.bias", SIDE_E, SIDE_XF },
    [TENSOR_EXPERT_UP_BIAS] = { "mlp.experts.up_proj_bias", "ffn_up_exps.bias", SIDE_E, SIDE_XF },
    [TENSOR_EXPERT_DOWN_BIAS] = { "mlp.experts.down_proj_bias", "ffn_down_exps.bias", SIDE_E, SIDE_D },
    [TENSOR_ROUTER] = { "mlp.gate.weight", "ffn_gate_inp.weight", SIDE_E, SIDE_D },
    [TENSOR_EXPERT_GATE] = { "gate_proj.weight", "ffn_gate_exps.weight", SIDE_XF, SIDE_D },
    [TENSOR_EXPERT_UP] = { "up_proj.weight", "ffn_up_exps.weight", SIDE_XF, SIDE_D },
    [TENSOR_EXPERT_DOWN] = { "down_proj.weight", "ffn_down_exps.weight", SIDE_D, SIDE_XF },
    [TENSOR_EMBEDDING] = { "model.embed_tokens.weight", "token_embd.weight", SIDE_V, SIDE_D },
    [TENSOR_NORM] = { "model.norm.weight", "output_norm.weight", SIDE_ONE, SIDE_D },
    [TENSOR_HEAD] = { "lm_head.weight", "output.weight", SIDE_V, SIDE_D },
};

static int side(const struct model_config *c, enum side side)
{
    const int size[] = {
        [SIDE_ONE] = 1,
        [SIDE_D] = c->d_model,
        [SIDE_Q] = c->n_heads * c->head_dim,
        [SIDE_KV] = c->n_kv_heads * c->head_dim,
        [SIDE_QKV] = (c->n_heads + 2 * c->n_kv_heads) * c->head_dim,
        [SIDE_K] = c->head_dim,
        [SIDE_F] = c->d_ff,
        [SIDE_2F] = 2 * c->d_ff,
        [SIDE_E] = c->n_experts,
        [SIDE_H] = c->n_heads,
        [SIDE_XF] = c->expert_ff,
        [SIDE_V] = c->n_vocab,
    };
    return size[side];
}

struct tensor_shape model_shape(const struct model_config *c, enum tensor_role role)
{
    return (struct tensor_shape){ side(c, model_roles[role].rows), side(c, model_roles[role].cols) };
}

double model_token_flop(const struct model_config *c)
{
    double D = c->d_model, heads = (double)c->n_heads * c->head_dim, kv = (double)c->n_kv_heads * c->head_dim;
    double mlp = 3 * D * (c->d_ff + (double)c->n_experts_used * c->expert_ff) + D * c->n_experts;

    return 2.0 * c->n_layers * (D * (2 * heads + 2 * kv) + mlp);
}

double model_pair_flop(const struct model_config *c)
{
    return 4.0 * c->n_layers * c->n_heads * c->head_dim;
}

static bool is_of_expert(enum tensor_role role)
{
    return role > TENSOR_ROUTER && role <= TENSOR_EXPERT_DOWN;
}

int model_count(const struct model_config *c, enum tensor_role role)
{
    if (!model_has(c, role))
        return 0;
    return is_of_expert(role) ? c->n_layers * c->n_experts : role < TENSOR_EMBEDDING ? c->n_layers : 1;
}

static const char *experts_of(const struct model_family *f)
{
    return f->experts ? f->experts : "mlp.experts.";
}

void model_tensor_name(char out[MODEL_TENSOR_NAME], const struct model *m, enum tensor_role role, int index)
{
    const char *name = family_tensor(m->family, role);
    const int E = m->config.n_experts;

    if (is_of_expert(role))
        snprintf(out, MODEL_TENSOR_NAME, "model.layers.%d.%s%d.%s", index / E, experts_of(m->family), index % E, name);
    else if (role < TENSOR_EMBEDDING)
        snprintf(out, MODEL_TENSOR_NAME, "model.layers.%d.%s", index, name);
    else
        snprintf(out, MODEL_TENSOR_NAME, "%s", name);
}

void model_experts_name(char out[MODEL_TENSOR_NAME], const struct model *m, enum tensor_role role, int layer)
{
    snprintf(out, MODEL_TENSOR_NAME, "model.layers.%d.%s%s", layer, experts_of(m->family),
             family_tensor(m->family, role));
}

/* ---- for the containers ------------------------------------------------ */

void model_set_window(struct model_config *c, int window)
{
    uint64_t any = 0;

    for (int i = 0; i < MODEL_LAYERS_MAX / 64; i++)
        any |= c->windowed[i];
    if (any && window > 0 && (window < c->max_tokens || c->rope_theta_window > 0))
        c->window = window;
    else
        memset(c->windowed, 0, sizeof(c->windowed));
}

int model_reserve(struct model *m, size_t n, struct err *err)
{
    m->tensor = calloc(n + 1, sizeof(*m->tensor));
    return m->tensor ? 0 : err_nomem(err);
}

int model_add(struct model *m, const char *name, const struct tensor *t, struct err *err)
{
    bool added;

    if (map_add(&m->names, name, strlen(name), &added) < 0)
        return err_nomem(err);
    if (!added)
        return err_set(err, ERR_FORMAT, "two tensors have the name '%s'", name);
    m->tensor[m->n_tensors++] = *t;
    return 0;
}

/* Python writes infinity and NaN without quotes, which JSON does not have; published models have such fields. They
 * become 0. */
static void blank_infinities(struct buf *text)
{
    static const char *const words[] = { "Infinity", "NaN" };
    bool quoted = false;

    for (size_t i = 0; i < text->n; i++) {
        quoted ^= text->at[i] == '"';
        if (quoted && text->at[i] == '\\')
            i++;
        for (int w = 0; w < 2 && !quoted && text->at[i] == words[w][0]; w++)
            if (strncmp(text->at + i, words[w], strlen(words[w])) == 0) {
                memset(text->at + i, ' ', strlen(words[w]));
                text->at[i] = '0';
            }
    }
}

struct json *model_json(const char *dir, const char *name, struct err *err)
{
    struct buf text = { 0 };
    struct json *json = NULL;
    char *path = file_join(dir, name);

    if (!path)
        err_nomem(err);
    else if (file_read(&text, path, JSON_MAX, err) == 0) {
        blank_infinities(&text);
        json = json_parse(buf_str(&text), text.n, err);
        if (!json)
            err_wrap(err, "'%s'", path);
    }
    buf_release(&text);
    free(path);
    return json;
}

/* ---- the check of config and tensors ----------------------------------- */

static int check_range(const char *what, int64_t v, int64_t max, struct err *err)
{
    if (v < 1 || v > max)
        return err_set(err, ERR_FORMAT, "%s is %lld; it can be 1 to %lld", what, (long long)v, (long long)max);
    return 0;
}

static int check_config(const struct model_config *c, struct err *err)
{
    if (check_range("the number of layers", c->n_layers, MODEL_LAYERS_MAX, err) ||
        check_range("the model's width", c->d_model, DIM_MAX, err) ||
        check_range("the number of heads", c->n_heads, DIM_MAX, err) ||
        check_range("the number of key-value heads", c->n_kv_heads, c->n_heads, err) ||
        check_range("the width of a head", c->head_dim, HEAD_DIM_MAX, err) ||
        check_range("the feed-forward width", c->n_experts ? c->expert_ff : c->d_ff, DIM_MAX, err) ||
        check_range("the vocabulary's size", c->n_vocab, VOCAB_MAX, err) ||
        check_range("the context length", c->max_tokens, TOKENS_MAX, err))
        return err->code;
    if (c->n_heads % c->n_kv_heads != 0 || c->head_dim % 2 != 0 || (int64_t)c->n_heads * c->head_dim > DIM_MAX)
        return err_set(err, ERR_FORMAT, "%d heads of %d and %d key-value heads do not fit together", c->n_heads,
                       c->head_dim, c->n_kv_heads);
    if (c->rotary < 2 || c->rotary > c->head_dim || c->rotary % 2 != 0)
        return err_set(err, ERR_FORMAT, "%d of %d columns of a head cannot be rotated", c->rotary, c->head_dim);
    if (model_has(c, TENSOR_ROUTER) &&
        (check_range("the number of experts", c->n_experts, EXPERTS_MAX, err) ||
         check_range("the number of experts that a token uses", c->n_experts_used, c->n_experts, err)))
        return err->code;
    if (!(c->norm_eps > 0 && c->norm_eps < 1) || !(c->rope_theta > 1 && c->rope_theta < 1e12))
        return err_set(err, ERR_FORMAT, "norm epsilon %g or rotary base %g is out of range", (double)c->norm_eps,
                       c->rope_theta);
    if (c->rope_scaling != ROPE_PLAIN && !(c->rope_factor >= 1 && c->rope_factor < 1e6))
        return err_set(err, ERR_FORMAT, "rotary scaling factor %g is out of range", c->rope_factor);
    if (c->rope_scaling == ROPE_LLAMA3 &&
        !(c->rope_low > 0 && c->rope_high > c->rope_low && isfinite(c->rope_high) && c->rope_original > 0))
        return err_set(err, ERR_FORMAT, "the parameters of its llama3 rotary scaling are out of range");
    if (!(c->rope_attention > 0 && c->rope_attention < 1e3) || (c->rope_scaling >= ROPE_YARN && c->rope_original < 2) ||
        (c->rope_scaling == ROPE_YARN && !(c->rope_low > 0 && c->rope_high >= c->rope_low && c->rope_high < 1e6)))
        return err_set(err, ERR_FORMAT, "the parameters of its %s rotary scaling are out of range",
                       rope_scaling_name(c->rope_scaling));
    const double cap[] = { c->cap, c->logit_cap };
    for (int i = 0; i < 2; i++)
        if (!(cap[i] == 0 || (cap[i] > 1e-3 && cap[i] < 1e6)))
            return err_set(err, ERR_FORMAT, "its cap %g of %s is out of range", cap[i], i ? "logits" : "scores");
    for (int i = 0; i < MULTIPLIERS; i++)
        if (!(c->multiplier[i] == 0 || (c->multiplier[i] > 1e-6 && c->multiplier[i] < 1e6)))
            return err_set(err, ERR_FORMAT, "its %s %g is out of range", model_multipliers[i], c->multiplier[i]);
    return 0;
}

/* The number of the tensor that holds a role's `index`; -1: none. Experts are a tensor each, or one of three
 * dimensions. */
static int find_index(const struct model *m, enum tensor_role role, int index)
{
    char name[MODEL_TENSOR_NAME];

    model_tensor_name(name, m, role == TENSOR_HEAD && m->config.tied ? TENSOR_EMBEDDING : role, index);
    int i = map_find(&m->names, name, strlen(name));
    if (i < 0 && is_of_expert(role)) {
        model_experts_name(name, m, role, index / m->config.n_experts);
        i = map_find(&m->names, name, strlen(name));
    }
    return i;
}

/* Reduces the tensor of all experts of a layer to one expert. */
static bool cut_expert(struct tensor *t, int expert, int n_experts)
{
    if (t->n_dims != 3 || t->dim[0] != n_experts)
        return false;
    t->n_dims = 2;
    t->dim[0] = t->dim[1];
    t->dim[1] = t->dim[2];
    t->bytes /= (uint64_t)n_experts;
    t->at = (const char *)t->at + (uint64_t)expert * t->bytes;
    t->first_row = expert * t->dim[0];
    return true;
}

static const char *shape_text(char out[TENSOR_DIMS * 24], const struct tensor *t)
{
    size_t at = (size_t)snprintf(out, 8, "%s", t->n_dims == 1 ? "1 x " : "");

    for (int i = 0; i < t->n_dims; i++)
        at += (size_t)snprintf(out + at, TENSOR_DIMS * 24 - at, i ? " x %lld" : "%lld", (long long)t->dim[i]);
    return out;
}

int model_find(const struct model *m, enum tensor_role role, int index, struct tensor *out, struct err *err)
{
    const struct tensor_shape want = model_shape(&m->config, role);
    char name[MODEL_TENSOR_NAME], shape[TENSOR_DIMS * 24];
    int i = find_index(m, role, index);

    if (i < 0) {
        model_tensor_name(name, m, role == TENSOR_HEAD && m->config.tied ? TENSOR_EMBEDDING : role, index);
        return err_set(err, ERR_FORMAT, "'%s' has no tensor '%s'", m->path, name);
    }
    const struct tensor *t = &m->tensor[i];
    *out = *t;
    bool fits =
        !is_of_expert(role) || t->n_dims == 2 || cut_expert(out, index % m->config.n_experts, m->config.n_experts);
    int64_t rows = out->n_dims == 2 ? out->dim[0] : 1, cols = out->dim[out->n_dims - 1];
    if (!fits || out->n_dims > 2 || (out->n_dims == 1 && want.rows != 1) || rows != want.rows || cols != want.cols)
        return err_set(err, ERR_FORMAT, "'%s': tensor '%s' is %s, not %d x %d", m->path, t->name, shape_text(shape, t),
                       want.rows, want.cols);
    return 0;
}

/* Finds the tensor of a role and marks it as used. */
static int use(const struct model *m, enum tensor_role role, int index, bool *used, struct err *err)
{
    struct tensor t;

    if (model_find(m, role, index, &t, err))
        return err->code;
    used[find_index(m, role, index)] = true;
    return 0;
}

bool model_tensor_is_harmless(const char *name)
{
    static const char *const ends[] = { ".rotary_emb.inv_freq", ".rotary_emb.cos_cached", ".rotary_emb.sin_cached",
                                        ".attn_rot_embd.weight" };
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (n > strlen(ends[i]) && strcmp(name + n - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

/* A tied model may still have an output matrix: it must equal the embedding, byte by byte. */
static bool is_copy_of_embedding(const struct model *m, const struct tensor *t, struct err *err)
{
    struct tensor embedding;

    return m->config.tied && strcmp(t->name, model_roles[TENSOR_HEAD].name) == 0 &&
           model_find(m, TENSOR_EMBEDDING, 0, &embedding, err) == 0 && t->type == embedding.type && !t->packed &&
           t->bytes == embedding.bytes && memcmp(t->at, embedding.at, t->bytes) == 0;
}

/* AutoGPTQ writes a bias of zeros for every matrix. */
static bool is_zero_bias(const struct tensor *t)
{
    const char *end = strrchr(t->name, '.'), *at = t->at;

    if (!end || strcmp(end, ".bias") != 0)
        return false;
    return t->bytes == 0 || (at[0] == 0 && memcmp(at, at + 1, t->bytes - 1) == 0);
}

/* Is it a tensor of longrope's divisors? */
static bool is_longrope(const struct model *m, const char *name)
{
    return m->rope_divisors && strncmp(name, "rope_factors_", strlen("rope_factors_")) == 0;
}

/* A tensor that no role reads changes what the model computes, unless it is known to be harmless. */
static int check_unused(const struct model *m, const bool *used, struct err *err)
{
    for (int i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensor[i];
        if (used[i] || model_tensor_is_harmless(t->name) || is_copy_of_embedding(m, t, err) ||
            (m->quant.types && is_zero_bias(t)) ||
            (!m->json && (strcmp(t->name, MODEL_ROPE_DIVISORS) == 0 || is_longrope(m, t->name))))
            continue;
        return err_set(err, ERR_FORMAT, "'%s': tensor '%s' is not supported", m->path, t->name);
    }
    return 0;
}

/* Every tensor of the architecture is there in its shape, and no other tensor is: a file that would give other answers
 * than its model is refused before work starts. */
static int check_tensors(const struct model *m, struct err *err)
{
    bool *used = calloc((size_t)m->n_tensors + 1, sizeof(*used));
    int code = used ? 0 : err_nomem(err);

    for (int at = 0; at < TENSOR_ROLES && !code; at++) {
        enum tensor_role role =
            (enum tensor_role)((at + TENSOR_EMBEDDING) % TENSOR_ROLES); // embedding, norm, head first
        for (int i = 0, n = model_count(&m->config, role); i < n && !code; i++)
            code = use(m, role, i, used, err);
    }
    if (!code)
        code = check_unused(m, used, err);
    free(used);
    return code;
}

int model_check(const struct model *m, struct err *err)
{
    if (check_config(&m->config, err))
        return err_wrap(err, "'%s'", m->path);
    return check_tensors(m, err);
}

/* ---- open and close ---------------------------------------------------- */

struct model *model_open(const char *path, struct err *err)
{
    struct model *m = calloc(1, sizeof(*m));

    if (m)
        m->path = strdup(path);
    if (!m || !m->path) {
        err_nomem(err);
        model_close(m);
        return NULL;
    }
    if (model_is_synthetic(path)) {
        if (synthetic_model_open(m, err) == 0 && model_check(m, err) == 0)
            return m;
    } else if (!file_exists(path))
        err_set(err, ERR_IO,
                strstr(path, "://")
                    ? "cannot open model '%s': a service shows no KV caches; give the file or folder of its model, or "
                      "ORG/NAME in the Hugging Face cache"
                    : "cannot open model '%s': no such file or folder, and not ORG/NAME in the Hugging Face cache",
                path);
    else if ((file_is_dir(path) ? hf_model_open(m, err) : gguf_model_open(m, err)) == 0 && model_check(m, err) == 0)
        return m;
    if (!file_is_dir(path))
        magic_refuse(err, path, "a model");
    model_close(m);
    return NULL;
}

/* A model of a folder, or of its config.json, with m->json; NULL: neither, or it cannot be read. */
static struct model *open_json(const char *path, struct err *err)
{
    bool file = strcmp(file_name(path), "config.json") == 0 && !file_is_dir(path);
    struct model *m = calloc(1, sizeof(*m));

    if (m)
        m->path = file ? strndup(path, strlen(path) - strlen("config.json")) : strdup(path);
    if (m && m->path && !*m->path) {
        free(m->path);
        m->path = strdup(".");
    }
    if (!m || !m->path)
        err_nomem(err);
    else if ((m->json = model_json(m->path, "config.json", err)))
        return m;
    model_close(m);
    return NULL;
}

static bool has_config(const char *path)
{
    return file_is_dir(path) || strcmp(file_name(path), "config.json") == 0;
}

struct model *model_open_config(const char *path, struct err *err)
{
    if (!has_config(path))
        return model_open(path, err);
    struct model *m = open_json(path, err);
    if (m && hf_config_read(m, err) == 0) {
        if (check_config(&m->config, err) == 0)
            return m;
        err_wrap(err, "'%s'", m->path);
    }
    model_close(m);
    return NULL;
}

/* Of a GGUF file the keys. A vocabulary may be as large as its list of tokens. */
static int open_keys(struct model *m, struct err *err)
{
    struct gguf_array tokens = { 0 };
    struct text_view name = { "", 0 };
    struct err ignored;

    if (file_map(&m->map, m->path, err) || gguf_parse_keys(&m->gguf, m->map.at, m->map.n, err) ||
        gguf_may_text(&m->gguf, "general.name", &name, err))
        return err->code;
    if (gguf_want_texts(&m->gguf, "tokenizer.ggml.tokens", &tokens, &ignored) == 0)
        m->config.n_vocab = tokens.n;
    snprintf(m->config.name, sizeof(m->config.name), "%.*s", text_view_width(name, 64), name.at);
    return 0;
}

struct model *model_open_header(const char *path, struct err *err)
{
    if (model_is_synthetic(path) || !file_exists(path))
        return model_open(path, err);
    if (has_config(path)) {
        struct model *m = open_json(path, err);
        if (m) {
            hf_set_name(m);
            m->config.n_vocab = VOCAB_HEADER;
        }
        return m;
    }
    struct model *m = calloc(1, sizeof(*m));
    if (m)
        m->path = strdup(path);
    if (!m || !m->path)
        err_nomem(err);
    else if (open_keys(m, err) == 0)
        return m;
    else
        err_wrap(err, "'%s'", path);
    magic_refuse(err, path, "a model");
    model_close(m);
    return NULL;
}

void model_close(struct model *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->n_shards; i++) {
        if (m->shard)
            safetensors_close(&m->shard[i]);
        if (m->file) {
            gguf_release(&m->file[i].gguf);
            file_unmap(&m->file[i].map);
        }
        free(m->shard_path[i]);
    }
    free(m->shard);
    free(m->file);
    free(m->shard_path);
    free(m->packed);
    map_release(&m->parts);
    json_free(m->json);
    gguf_release(&m->gguf);
    file_unmap(&m->map);
    map_release(&m->names);
    free(m->tensor);
    free(m->rope_divisors);
    free(m->path);
    free(m);
}

const struct model_config *model_config(const struct model *m)
{
    return &m->config;
}

bool model_is_f32(const struct model *m)
{
    struct tensor t;
    struct err ignored;

    if (m->n_tensors == 0)
        return strcmp(m->config.dtype, "float32") == 0;
    return model_find(m, TENSOR_O, 0, &t, &ignored) == 0 && t.type == WEIGHT_F32;
}

/* ---- tensors ----------------------------------------------------------- */

int model_n_left_out(const struct model *m)
{
    return m->n_left_out;
}

int model_n_tensors(const struct model *m)
{
    return m->n_tensors;
}

const struct tensor *model_tensor(const struct model *m, int i)
{
    return &m->tensor[i];
}

void model_set_threads(struct model *m, int n)
{
    m->n_threads = n;
}

void model_forget(const struct model *m)
{
    file_map_forget(&m->map);
    for (int i = 0; i < m->n_shards; i++)
        file_map_forget(m->shard ? &m->shard[i].map : &m->file[i].map);
}
