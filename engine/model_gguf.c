/* model_gguf.c - a GGUF file as a model: its keys become the config, its tensors get Hugging Face's names. */
#include "engine/model_internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ------------------------------------------------------------- */

struct rename {
    const char *from, *to;
};

static const char *lookup(const struct rename *table, const char *from)
{
    for (; table->from; table++)
        if (strcmp(table->from, from) == 0)
            return table->to;
    return NULL;
}

/* Hugging Face's name of a tensor; what has none keeps its own. */
static void hf_name(const char *from, char *to, size_t room)
{
    static const struct rename whole[] = {
        { "token_embd.weight", "model.embed_tokens.weight" },
        { "output_norm.weight", "model.norm.weight" },
        { "output.weight", "lm_head.weight" },
        { 0 },
    };
    static const struct rename in_layer[] = {
        { "attn_norm.weight", "input_layernorm.weight" },    { "attn_q.weight", "self_attn.q_proj.weight" },
        { "attn_k.weight", "self_attn.k_proj.weight" },      { "attn_v.weight", "self_attn.v_proj.weight" },
        { "attn_output.weight", "self_attn.o_proj.weight" }, { "ffn_norm.weight", "post_attention_layernorm.weight" },
        { "ffn_gate.weight", "mlp.gate_proj.weight" },       { "ffn_up.weight", "mlp.up_proj.weight" },
        { "ffn_down.weight", "mlp.down_proj.weight" },       { 0 },
    };
    const char *to_whole = lookup(whole, from);
    int layer, at = 0;

    if (!to_whole && sscanf(from, "blk.%5d.%n", &layer, &at) == 1 && at > 0 && lookup(in_layer, from + at))
        snprintf(to, room, "model.layers.%d.%s", layer, lookup(in_layer, from + at));
    else
        snprintf(to, room, "%s", to_whole ? to_whole : from);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

static int add_weights(struct model *m, struct err *err)
{
    char name[256];

    m->weight = calloc((size_t)m->gguf.n_tensors + 1, sizeof(*m->weight));
    if (!m->weight)
        return err_nomem(err);
    for (int i = 0; i < m->gguf.n_tensors; i++) {
        const struct gguf_tensor *t = &m->gguf.tensor[i];
        struct weight w = { t->name, t->type, t->n_dims, { 0 }, t->at, t->bytes, 0 };
        memcpy(w.dim, t->dim, sizeof(w.dim));
        if (strlen(t->name) > 128)
            return err_set(err, ERR_FORMAT, "tensor %d has a name of %zu bytes", i, strlen(t->name));
        hf_name(t->name, name, sizeof(name));
        int heads = ends_with(name, "self_attn.q_proj.weight")   ? m->config.n_heads
                    : ends_with(name, "self_attn.k_proj.weight") ? m->config.n_kv_heads
                                                                 : 0;
        if (w.dim[0] == (int64_t)heads * m->config.head_dim) /* otherwise it is refused, or of a layer there is not */
            w.pairs_heads = heads;
        if (model_add(m, name, &w, err))
            return err->code;
    }
    return 0;
}

/* ---- config ------------------------------------------------------------ */

/* A whole number that must fit an int; An absent key means `fallback`; 0: it must be there. */
static int read_int(const struct gguf *g, const char *arch, const char *key, int fallback, int *out, struct err *err)
{
    char full[128];
    int64_t v = fallback;

    snprintf(full, sizeof(full), "%s.%s", arch, key);
    if (fallback ? gguf_may_int(g, full, &v, err) : gguf_want_int(g, full, &v, err))
        return err->code;
    if (v < 0 || v > INT_MAX)
        return err_set(err, ERR_FORMAT, "key '%s' is %lld", full, (long long)v);
    *out = (int)v;
    return 0;
}

static int read_real(const struct gguf *g, const char *arch, const char *key, double *out, struct err *err)
{
    char full[128];

    snprintf(full, sizeof(full), "%s.%s", arch, key);
    return gguf_may_real(g, full, out, err);
}

static int read_arch(struct model_config *c, const struct gguf *g, struct err *err)
{
    struct text_view arch, name = { "", 0 };

    if (gguf_want_text(g, "general.architecture", &arch, err) || gguf_may_text(g, "general.name", &name, err))
        return err->code;
    snprintf(c->arch, sizeof(c->arch), "%.*s", (int)(arch.n < 64 ? arch.n : 64), arch.at);
    snprintf(c->name, sizeof(c->name), "%.*s", (int)(name.n < 64 ? name.n : 64), name.at);
    return model_check_arch(c->arch, err);
}

static int read_shape(struct model_config *c, const struct gguf *g, struct err *err)
{
    int experts, rope_dims;

    if (read_int(g, c->arch, "block_count", 0, &c->n_layers, err) ||
        read_int(g, c->arch, "embedding_length", 0, &c->d_model, err) ||
        read_int(g, c->arch, "feed_forward_length", 0, &c->d_ff, err) ||
        read_int(g, c->arch, "context_length", 0, &c->max_tokens, err) ||
        read_int(g, c->arch, "attention.head_count", 0, &c->n_heads, err) ||
        read_int(g, c->arch, "attention.head_count_kv", c->n_heads ? c->n_heads : 1, &c->n_kv_heads, err) ||
        read_int(g, c->arch, "attention.key_length", c->n_heads ? c->d_model / c->n_heads : 1, &c->head_dim, err) ||
        read_int(g, c->arch, "rope.dimension_count", c->head_dim ? c->head_dim : 1, &rope_dims, err) ||
        read_int(g, c->arch, "expert_count", 1, &experts, err))
        return err->code;
    if (experts > 1)
        return err_set(err, ERR_FORMAT, "a mixture of %d experts is not supported", experts);
    if (rope_dims != c->head_dim)
        return err_set(err, ERR_FORMAT, "rotating %d of %d dimensions is not supported", rope_dims, c->head_dim);
    return 0;
}

static int read_rope(struct model_config *c, const struct gguf *g, struct err *err)
{
    struct text_view scaling = { "none", 4 };
    double eps = 1e-5;
    char key[128];

    c->rope_theta = 10000;
    snprintf(key, sizeof(key), "%s.rope.scaling.type", c->arch);
    if (read_real(g, c->arch, "attention.layer_norm_rms_epsilon", &eps, err) ||
        read_real(g, c->arch, "rope.freq_base", &c->rope_theta, err) || gguf_may_text(g, key, &scaling, err))
        return err->code;
    c->norm_eps = (float)eps;
    if (scaling.n == 4 && memcmp(scaling.at, "none", 4) == 0)
        return 0;
    if (scaling.n != 6 || memcmp(scaling.at, "linear", 6) != 0)
        return err_set(err, ERR_FORMAT, "rotary scaling '%.*s' is not supported",
                       (int)(scaling.n < 64 ? scaling.n : 64), scaling.at);
    c->rope_scaling = ROPE_LINEAR;
    c->rope_factor = 1;
    return read_real(g, c->arch, "rope.scaling.factor", &c->rope_factor, err);
}

/* What llama3 scaling divides the frequency of pair j by. */
static double llama3_divisor(const struct model_config *c, int j)
{
    double wavelength = 2 * acos(-1) * pow(c->rope_theta, 2.0 * j / c->head_dim);

    if (wavelength < c->rope_original / c->rope_high)
        return 1;
    if (wavelength > c->rope_original / c->rope_low)
        return c->rope_factor;
    double smooth = (c->rope_original / wavelength - c->rope_low) / (c->rope_high - c->rope_low);
    return 1 / ((1 - smooth) / c->rope_factor + smooth);
}

/* GGUF keeps llama3 scaling as a tensor of divisors, not as parameters. All published Llama 3.x models have low 1,
 * high 4 and 8192 original positions; the factor is the largest divisor. Divisors that these do not give are refused.
 */
static int read_rope_divisors(struct model_config *c, const struct gguf *g, struct err *err)
{
    int i = map_find(&g->names, "rope_freqs.weight", 17), half = c->head_dim / 2;

    if (i < 0)
        return 0;
    const struct gguf_tensor *t = &g->tensor[i];
    if (c->rope_scaling != ROPE_PLAIN || t->type != WEIGHT_F32 || t->n_dims != 1 || t->dim[0] != half || half == 0)
        return err_set(err, ERR_FORMAT, "the tensor 'rope_freqs.weight' is not %d divisors in F32", half);
    c->rope_scaling = ROPE_LLAMA3;
    c->rope_low = 1;
    c->rope_high = 4;
    c->rope_original = 8192;
    float divisor;
    memcpy(&divisor, (const char *)t->at + 4 * (half - 1), sizeof(divisor));
    c->rope_factor = (double)divisor;
    for (int j = 0; j < half; j++) {
        memcpy(&divisor, (const char *)t->at + 4 * j, sizeof(divisor));
        double want = llama3_divisor(c, j);
        if (!(fabs((double)divisor - want) <= 1e-4 * want))
            return err_set(err, ERR_FORMAT, "the divisors in 'rope_freqs.weight' are not llama3's (%g at %d, not %g)",
                           (double)divisor, j, want);
    }
    return 0;
}

static int read_config(struct model *m, struct err *err)
{
    struct model_config *c = &m->config;
    const struct gguf *g = &m->gguf;

    if (read_arch(c, g, err) || read_shape(c, g, err) || read_rope(c, g, err) || read_rope_divisors(c, g, err))
        return err->code;
    int embedding = map_find(&g->names, "token_embd.weight", 17);
    if (embedding < 0 || g->tensor[embedding].n_dims != 2)
        return err_set(err, ERR_FORMAT, "no tensor 'token_embd.weight' of two dimensions");
    c->n_vocab = (int)g->tensor[embedding].dim[0];
    c->tied = map_find(&g->names, "output.weight", 13) < 0;
    return 0;
}

int gguf_model_parse(struct model *m, const void *bytes, size_t n, struct err *err)
{
    if (gguf_parse(&m->gguf, bytes, n, err) || read_config(m, err) || add_weights(m, err))
        return err_wrap(err, "'%s'", m->path);
    return 0;
}

int gguf_model_open(struct model *m, struct err *err)
{
    if (file_map(&m->map, m->path, err))
        return err->code;
    return gguf_model_parse(m, m->map.at, m->map.n, err);
}
