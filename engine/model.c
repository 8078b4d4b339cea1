/* model.c - what both containers have in common: the check of the whole, reading of tensors, and identity. */
#include "engine/model.h"

#include "base/digest.h"
#include "engine/model_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIM_MOST = 1 << 20, LAYERS_MOST = 1024, JSON_MOST = 256 << 20 };

/* ---- for the containers ------------------------------------------------ */

int model_check_arch(const char *arch, struct err *err)
{
    static const char *const known[] = { "llama", "mistral" };

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strcmp(arch, known[i]) == 0)
            return 0;
    return err_set(err, ERR_FORMAT, "architecture '%.64s' is not supported (llama and mistral are)", arch);
}

int model_add(struct model *m, const char *name, const struct weight *w, struct err *err)
{
    bool added;

    if (map_add(&m->names, name, strlen(name), &added) < 0)
        return err_nomem(err);
    if (!added)
        return err_set(err, ERR_FORMAT, "two tensors are '%s'", name);
    m->weight[m->n_weights++] = *w;
    return 0;
}

struct json *model_json(const char *dir, const char *name, struct err *err)
{
    struct buf text = { 0 };
    struct json *json = NULL;
    char *path = file_join(dir, name);

    if (!path)
        err_nomem(err);
    else if (file_read(&text, path, JSON_MOST, err) == 0) {
        json = json_parse(buf_str(&text), text.n, err);
        if (!json)
            err_wrap(err, "'%s'", path);
    }
    buf_release(&text);
    free(path);
    return json;
}

/* ---- the check of the whole -------------------------------------------- */

static int check_range(const char *what, int64_t v, int64_t most, struct err *err)
{
    if (v < 1 || v > most)
        return err_set(err, ERR_FORMAT, "%s is %lld; 1 to %lld is possible", what, (long long)v, (long long)most);
    return 0;
}

static int check_config(const struct model_config *c, struct err *err)
{
    if (check_range("the number of layers", c->n_layers, LAYERS_MOST, err) ||
        check_range("the model's width", c->d_model, DIM_MOST, err) ||
        check_range("the number of heads", c->n_heads, DIM_MOST, err) ||
        check_range("the number of key-value heads", c->n_kv_heads, c->n_heads, err) ||
        check_range("the width of a head", c->head_dim, 4096, err) ||
        check_range("the feed-forward width", c->d_ff, DIM_MOST, err) ||
        check_range("the vocabulary's size", c->n_vocab, 1 << 24, err) ||
        check_range("the context length", c->max_tokens, 1 << 28, err))
        return err->code;
    if (c->n_heads % c->n_kv_heads != 0 || c->head_dim % 2 != 0 || (int64_t)c->n_heads * c->head_dim > DIM_MOST)
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

static int find(const struct model *m, const char *name, int rows, int cols, const struct weight **out, struct err *err)
{
    int i = map_find(&m->names, name, strlen(name));

    if (i < 0)
        return err_set(err, ERR_FORMAT, "'%s' has no tensor '%s'", m->path, name);
    const struct weight *w = &m->weight[i];
    bool fits =
        w->n_dims == 2 ? w->dim[0] == rows && w->dim[1] == cols : w->n_dims == 1 && rows == 1 && w->dim[0] == cols;
    if (!fits)
        return err_set(err, ERR_FORMAT, "'%s': tensor '%s' is %lld x %lld, not %d x %d", m->path, w->file_name,
                       (long long)(w->n_dims == 2 ? w->dim[0] : 1), (long long)w->dim[w->n_dims == 2 ? 1 : 0], rows,
                       cols);
    *out = w;
    return 0;
}

static int check_layer(const struct model *m, int layer, struct err *err)
{
    const struct model_config *c = &m->config;
    int d = c->d_model, q = c->n_heads * c->head_dim, kv = c->n_kv_heads * c->head_dim;
    const struct {
        const char *name;
        int rows, cols;
    } want[] = {
        { "input_layernorm", 1, d },     { "self_attn.q_proj", q, d },  { "self_attn.k_proj", kv, d },
        { "self_attn.v_proj", kv, d },   { "self_attn.o_proj", d, q },  { "post_attention_layernorm", 1, d },
        { "mlp.gate_proj", c->d_ff, d }, { "mlp.up_proj", c->d_ff, d }, { "mlp.down_proj", d, c->d_ff },
    };
    const struct weight *w;
    char name[96];

    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        snprintf(name, sizeof(name), "model.layers.%d.%s.weight", layer, want[i].name);
        if (find(m, name, want[i].rows, want[i].cols, &w, err))
            return err->code;
    }
    return 0;
}

/* Every tensor of the architecture is there in its shape, so that a bad file is refused before work starts. */
static int check_weights(const struct model *m, struct err *err)
{
    const struct model_config *c = &m->config;
    const struct weight *w;

    if (find(m, "model.embed_tokens.weight", c->n_vocab, c->d_model, &w, err) ||
        find(m, "model.norm.weight", 1, c->d_model, &w, err))
        return err->code;
    if (!c->tied && find(m, "lm_head.weight", c->n_vocab, c->d_model, &w, err))
        return err->code;
    for (int layer = 0; layer < c->n_layers; layer++)
        if (check_layer(m, layer, err))
            return err->code;
    return 0;
}

int model_check(const struct model *m, struct err *err)
{
    if (check_config(&m->config, err))
        return err_wrap(err, "'%s'", m->path);
    return check_weights(m, err);
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
    free(m->weight);
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

/* Row r of a tensor that rotates neighbours (2j, 2j + 1), as llama.cpp stores q and k, belongs at row j or at
 * j + head_dim / 2 of its head when halves are rotated. */
static int64_t unpaired_row(int64_t r, int64_t head_dim)
{
    int64_t in_head = r % head_dim;

    return r - in_head + in_head / 2 + (in_head & 1) * (head_dim / 2);
}

int model_read(const struct model *m, const char *name, int rows, int cols, float *out, struct err *err)
{
    const struct weight *w;

    if (find(m, name, rows, cols, &w, err))
        return err->code;
    if (w->pairs_heads == 0) {
        dequant(w->type, w->at, (size_t)rows * (size_t)cols, out);
        return 0;
    }
    size_t row_bytes = (size_t)cols / (size_t)weight_block(w->type) * weight_block_bytes(w->type);
    for (int64_t r = 0; r < rows; r++)
        dequant(w->type, (const char *)w->at + (size_t)r * row_bytes, (size_t)cols,
                out + unpaired_row(r, rows / w->pairs_heads) * cols);
    return 0;
}

bool model_has(const struct model *m, const char *name)
{
    return map_find(&m->names, name, strlen(name)) >= 0;
}

int model_n_tensors(const struct model *m)
{
    return m->n_weights;
}

struct model_tensor model_tensor(const struct model *m, int i)
{
    const struct weight *w = &m->weight[i];
    struct model_tensor t = { w->file_name, weight_type_name(w->type), w->n_dims, { 0 }, w->bytes };

    memcpy(t.dim, w->dim, sizeof(t.dim));
    return t;
}
