/* model.c - what both containers have in common: the table of roles, and the check of the whole.
 *
 * model_open() lets the container fill config and tensors, then checks the config's numbers, then finds the tensor of
 * every role. What a config may say is bounded here, so that no product of two of its numbers overflows.
 */
#include "engine/model.h"

#include "engine/model_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIM_MAX = 1 << 20,
    LAYERS_MAX = 1024,
    HEAD_DIM_MAX = 1024, // what the reference backend's attention holds
    VOCAB_MAX = 1 << 24,
    TOKENS_MAX = 1 << 24, // published models claim up to 10 * 2^20
    JSON_MAX = 256 << 20,
};

/* ---- the tensors of the architecture ----------------------------------- */

const struct role model_roles[TENSOR_ROLES] = {
    [TENSOR_ATTENTION_NORM] = { "input_layernorm.weight", "attn_norm.weight", SIDE_ONE, SIDE_D },
    [TENSOR_Q] = { "self_attn.q_proj.weight", "attn_q.weight", SIDE_Q, SIDE_D },
    [TENSOR_K] = { "self_attn.k_proj.weight", "attn_k.weight", SIDE_KV, SIDE_D },
    [TENSOR_V] = { "self_attn.v_proj.weight", "attn_v.weight", SIDE_KV, SIDE_D },
    [TENSOR_O] = { "self_attn.o_proj.weight", "attn_output.weight", SIDE_D, SIDE_Q },
    [TENSOR_MLP_NORM] = { "post_attention_layernorm.weight", "ffn_norm.weight", SIDE_ONE, SIDE_D },
    [TENSOR_GATE] = { "mlp.gate_proj.weight", "ffn_gate.weight", SIDE_F, SIDE_D },
    [TENSOR_UP] = { "mlp.up_proj.weight", "ffn_up.weight", SIDE_F, SIDE_D },
    [TENSOR_DOWN] = { "mlp.down_proj.weight", "ffn_down.weight", SIDE_D, SIDE_F },
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
        [SIDE_F] = c->d_ff,
        [SIDE_V] = c->n_vocab,
    };
    return size[side];
}

struct tensor_shape model_shape(const struct model_config *c, enum tensor_role role)
{
    return (struct tensor_shape){ side(c, model_roles[role].rows), side(c, model_roles[role].cols) };
}

void model_tensor_name(char out[MODEL_TENSOR_NAME], enum tensor_role role, int layer)
{
    if (role <= TENSOR_DOWN)
        snprintf(out, MODEL_TENSOR_NAME, "model.layers.%d.%s", layer, model_roles[role].name);
    else
        snprintf(out, MODEL_TENSOR_NAME, "%s", model_roles[role].name);
}

/* ---- for the containers ------------------------------------------------ */

int model_check_arch(const char *arch, struct err *err)
{
    static const char *const known[] = { "llama", "mistral" };

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strcmp(arch, known[i]) == 0)
            return 0;
    return err_set(err, ERR_FORMAT, "architecture '%.64s' is not supported (llama and mistral are)", arch);
}

void model_limit_window(struct model_config *c, int window)
{
    if (window == 0 || window >= c->max_tokens)
        return;
    c->max_tokens = window;
    c->window = window;
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

struct json *model_json(const char *dir, const char *name, struct err *err)
{
    struct buf text = { 0 };
    struct json *json = NULL;
    char *path = file_join(dir, name);

    if (!path)
        err_nomem(err);
    else if (file_read(&text, path, JSON_MAX, err) == 0) {
        json = json_parse(buf_str(&text), text.n, err);
        if (!json)
            err_wrap(err, "'%s'", path);
    }
    buf_release(&text);
    free(path);
    return json;
}

/* ---- the check of the whole -------------------------------------------- */

static int check_range(const char *what, int64_t v, int64_t max, struct err *err)
{
    if (v < 1 || v > max)
        return err_set(err, ERR_FORMAT, "%s is %lld; it can be 1 to %lld", what, (long long)v, (long long)max);
    return 0;
}

static int check_config(const struct model_config *c, struct err *err)
{
    if (check_range("the number of layers", c->n_layers, LAYERS_MAX, err) ||
        check_range("the model's width", c->d_model, DIM_MAX, err) ||
        check_range("the number of heads", c->n_heads, DIM_MAX, err) ||
        check_range("the number of key-value heads", c->n_kv_heads, c->n_heads, err) ||
        check_range("the width of a head", c->head_dim, HEAD_DIM_MAX, err) ||
        check_range("the feed-forward width", c->d_ff, DIM_MAX, err) ||
        check_range("the vocabulary's size", c->n_vocab, VOCAB_MAX, err) ||
        check_range("the context length", c->max_tokens, TOKENS_MAX, err))
        return err->code;
    if (c->n_heads % c->n_kv_heads != 0 || c->head_dim % 2 != 0 || (int64_t)c->n_heads * c->head_dim > DIM_MAX)
        return err_set(err, ERR_FORMAT, "%d heads of %d and %d key-value heads do not fit together", c->n_heads,
                       c->head_dim, c->n_kv_heads);
    if (!(c->norm_eps > 0 && c->norm_eps < 1) || !(c->rope_theta > 1 && c->rope_theta < 1e12))
        return err_set(err, ERR_FORMAT, "a norm epsilon of %g or a rotary base of %g makes no sense",
                       (double)c->norm_eps, c->rope_theta);
    if (c->rope_scaling != ROPE_PLAIN && !(c->rope_factor >= 1 && c->rope_factor < 1e6))
        return err_set(err, ERR_FORMAT, "a rotary scaling factor of %g makes no sense", c->rope_factor);
    if (c->rope_scaling == ROPE_LLAMA3 &&
        !(c->rope_low > 0 && c->rope_high > c->rope_low && isfinite(c->rope_high) && c->rope_original > 0))
        return err_set(err, ERR_FORMAT, "the parameters of its llama3 rotary scaling make no sense");
    return 0;
}

int model_find(const struct model *m, enum tensor_role role, int layer, const struct tensor **out, struct err *err)
{
    struct tensor_shape want = model_shape(&m->config, role);
    char name[MODEL_TENSOR_NAME];

    model_tensor_name(name, role == TENSOR_HEAD && m->config.tied ? TENSOR_EMBEDDING : role, layer);
    int i = map_find(&m->names, name, strlen(name));
    if (i < 0)
        return err_set(err, ERR_FORMAT, "'%s' has no tensor '%s'", m->path, name);
    const struct tensor *t = &m->tensor[i];
    int64_t rows = t->n_dims == 2 ? t->dim[0] : 1, cols = t->dim[t->n_dims - 1];
    if (t->n_dims > 2 || (t->n_dims == 1 && want.rows != 1) || rows != want.rows || cols != want.cols)
        return err_set(err, ERR_FORMAT, "'%s': tensor '%s' is %lld x %lld, not %d x %d", m->path, t->name,
                       (long long)rows, (long long)cols, want.rows, want.cols);
    *out = t;
    return 0;
}

/* Finds the tensor of a role and marks it as used. */
static int use(const struct model *m, enum tensor_role role, int layer, bool *used, struct err *err)
{
    const struct tensor *t;

    if (model_find(m, role, layer, &t, err))
        return err->code;
    used[t - m->tensor] = true;
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

/* An output matrix that a tied model has all the same: it must be the embedding, byte by byte. */
static bool is_copy_of_embedding(const struct model *m, const struct tensor *t, struct err *err)
{
    const struct tensor *embedding;

    return m->config.tied && strcmp(t->name, model_roles[TENSOR_HEAD].name) == 0 &&
           model_find(m, TENSOR_EMBEDDING, 0, &embedding, err) == 0 && t->type == embedding->type &&
           t->bytes == embedding->bytes && memcmp(t->at, embedding->at, t->bytes) == 0;
}

/* A tensor that no role reads changes what the model computes, unless it is known to be harmless. */
static int check_unused(const struct model *m, const bool *used, struct err *err)
{
    for (int i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensor[i];
        if (used[i] || model_tensor_is_harmless(t->name) || is_copy_of_embedding(m, t, err) ||
            (!m->json && strcmp(t->name, MODEL_ROPE_DIVISORS) == 0))
            continue;
        return err_set(err, ERR_FORMAT, "'%s': tensor '%s' is not supported", m->path, t->name);
    }
    return 0;
}

/* Every tensor of the architecture is there in its shape and there are no others, so that a file whose answers would
 * not be the model's is refused before work starts. */
static int check_tensors(const struct model *m, struct err *err)
{
    bool *used = calloc((size_t)m->n_tensors + 1, sizeof(*used));
    int code = used ? 0 : err_nomem(err);

    for (int role = TENSOR_EMBEDDING; role < TENSOR_ROLES && !code; role++)
        code = use(m, (enum tensor_role)role, 0, used, err);
    for (int layer = 0; layer < m->config.n_layers && !code; layer++)
        for (int role = 0; role <= TENSOR_DOWN && !code; role++)
            code = use(m, (enum tensor_role)role, layer, used, err);
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
    if (!file_exists(path))
        err_set(err, ERR_IO, "cannot open model '%s': no such file or folder", path);
    else if ((file_is_dir(path) ? hf_model_open(m, err) : gguf_model_open(m, err)) == 0 && model_check(m, err) == 0)
        return m;
    model_close(m);
    return NULL;
}

void model_close(struct model *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->n_shards; i++) {
        safetensors_close(&m->shard[i]);
        free(m->shard_path[i]);
    }
    free(m->shard);
    free(m->shard_path);
    json_free(m->json);
    gguf_release(&m->gguf);
    file_unmap(&m->map);
    map_release(&m->names);
    free(m->tensor);
    free(m->path);
    free(m);
}

char *model_path(const char *given, struct err *err)
{
    char *dir = given ? NULL : file_models_dir();
    char *path = given ? strdup(given) : dir ? file_join(dir, "SmolLM2-135M-Instruct.Q4_1.gguf") : NULL;

    free(dir);
    if (!path)
        err_nomem(err);
    return path;
}

const struct model_config *model_config(const struct model *m)
{
    return &m->config;
}

/* ---- tensors ----------------------------------------------------------- */

int model_n_tensors(const struct model *m)
{
    return m->n_tensors;
}

const struct tensor *model_tensor(const struct model *m, int i)
{
    return &m->tensor[i];
}
