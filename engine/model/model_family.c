/* model_family.c - the families of models that the engine computes, a row each; and why some others are refused.
 *
 * All are one architecture: norm, attention, norm, MLP. A row has a family's tensors and the defaults of absent fields
 * of config.json, as in the family's class in transformers.
 */
#include "engine/model/model_internal.h"

#include <math.h>
#include <string.h>

#define ENDS          (ROLE(TENSOR_EMBEDDING) | ROLE(TENSOR_NORM) | ROLE(TENSOR_HEAD))
#define EVERY         (ENDS | ROLE(TENSOR_ATTENTION_NORM) | ROLE(TENSOR_O) | ROLE(TENSOR_MLP_NORM))
#define SEPARATE      (ROLE(TENSOR_Q) | ROLE(TENSOR_K) | ROLE(TENSOR_V))
#define DENSE         (ROLE(TENSOR_GATE) | ROLE(TENSOR_UP) | ROLE(TENSOR_DOWN))
#define ROUTED        (ROLE(TENSOR_ROUTER) | ROLE(TENSOR_EXPERT_GATE))
#define EXPERTS       (ROUTED | ROLE(TENSOR_EXPERT_UP) | ROLE(TENSOR_EXPERT_DOWN))
#define FUSED         (ROLE(TENSOR_QKV) | ROLE(TENSOR_GATE_UP) | ROLE(TENSOR_DOWN))
#define HEAD_NORMS    (ROLE(TENSOR_Q_NORM) | ROLE(TENSOR_K_NORM))
#define QKV_BIASES    (ROLE(TENSOR_Q_BIAS) | ROLE(TENSOR_K_BIAS) | ROLE(TENSOR_V_BIAS))
#define QKVO_BIASES   (QKV_BIASES | ROLE(TENSOR_O_BIAS))
#define EXPERT_BIASES (ROLE(TENSOR_EXPERT_GATE_BIAS) | ROLE(TENSOR_EXPERT_UP_BIAS) | ROLE(TENSOR_EXPERT_DOWN_BIAS))
#define AFTER_NORMS   (ROLE(TENSOR_AFTER_ATTENTION) | ROLE(TENSOR_AFTER_MLP))
#define DENSE_BIASES  (ROLE(TENSOR_GATE_BIAS) | ROLE(TENSOR_UP_BIAS) | ROLE(TENSOR_DOWN_BIAS))

static const struct model_family families[] = {
    { .name = "llama",
      .gguf = "llama",
      .mixed = "mixtral",
      .roles = EVERY | SEPARATE | DENSE,
      .bias = QKVO_BIASES,
      .mlp_bias = DENSE_BIASES,
      .pairs = true,
      .window_used = true },
    { .name = "mistral", .roles = EVERY | SEPARATE | DENSE, .window = 4096, .window_used = true },
    { .name = "qwen2", .gguf = "qwen2", .roles = EVERY | SEPARATE | QKV_BIASES | DENSE, .window = 4096 },
    { .name = "qwen3",
      .gguf = "qwen3",
      .roles = EVERY | SEPARATE | HEAD_NORMS | DENSE,
      .bias = QKVO_BIASES,
      .head_dim = 128,
      .window = 4096 },
    { .name = "qwen3_moe",
      .gguf = "qwen3moe",
      .roles = EVERY | SEPARATE | HEAD_NORMS | EXPERTS,
      .bias = QKVO_BIASES,
      .window = 4096 },
    { .name = "granite",
      .gguf = "granite",
      .roles = EVERY | SEPARATE | DENSE,
      .bias = QKVO_BIASES,
      .mlp_bias = DENSE_BIASES,
      .pairs = true,
      .multiplies = true },
    { .name = "smollm3",
      .gguf = "smollm3",
      .roles = EVERY | SEPARATE | DENSE,
      .bias = QKVO_BIASES,
      .mlp_bias = DENSE_BIASES,
      .pairs = true,
      .unrotated = 4,
      .theta = 2e6 },
    { .name = "seed_oss",
      .gguf = "seed_oss",
      .roles = EVERY | SEPARATE | DENSE,
      .bias = QKV_BIASES,
      .mlp_bias = DENSE_BIASES,
      .gguf_tensor = { [TENSOR_MLP_NORM] = "post_attention_norm.weight" },
      .head_dim = 128 },
    { .name = "mixtral",
      .roles = EVERY | SEPARATE | EXPERTS,
      .pairs = true,
      .renormalise = true,
      .tensor = { [TENSOR_ROUTER] = "block_sparse_moe.gate.weight",
                  [TENSOR_EXPERT_GATE] = "w1.weight",
                  [TENSOR_EXPERT_UP] = "w3.weight",
                  [TENSOR_EXPERT_DOWN] = "w2.weight" },
      .experts = "block_sparse_moe.experts.",
      .expert_ff = "intermediate_size",
      .theta = 1e6,
      .window_used = true },
    { .name = "phi3", .gguf = "phi3", .roles = EVERY | FUSED, .partial = true, .longrope = true, .window_used = true },
    { .name = "gemma2",
      .gguf = "gemma2",
      .roles = EVERY | SEPARATE | AFTER_NORMS | DENSE,
      .bias = QKVO_BIASES,
      .tensor = { [TENSOR_MLP_NORM] = "pre_feedforward_layernorm.weight" },
      .gemma = true,
      .head_dim = 256,
      .window = 4096,
      .window_used = true,
      .pattern = 2,
      .n_heads = 8,
      .n_kv_heads = 4,
      .n_vocab = 256000,
      .max_tokens = 8192,
      .norm_eps = 1e-6,
      .scalar = 256,
      .cap = 50,
      .logit_cap = 30 },
    { .name = "gemma3_text",
      .gguf = "gemma3",
      .roles = EVERY | SEPARATE | HEAD_NORMS | AFTER_NORMS | DENSE,
      .bias = QKVO_BIASES,
      .tensor = { [TENSOR_MLP_NORM] = "pre_feedforward_layernorm.weight" },
      .gemma = true,
      .theta = 1e6,
      .theta_window = 1e4,
      .head_dim = 256,
      .window = 4096,
      .window_used = true,
      .pattern = 6,
      .n_heads = 8,
      .n_kv_heads = 4,
      .n_vocab = 262208,
      .max_tokens = 131072,
      .norm_eps = 1e-6,
      .scalar = 256 },
    { .name = "gemma3", .text = "gemma3_text" },
    { .name = "gpt_oss",
      .gguf = "gpt-oss",
      .roles = EVERY | SEPARATE | QKVO_BIASES | ROLE(TENSOR_SINKS) | ROLE(TENSOR_ROUTER_BIAS) | EXPERTS | EXPERT_BIASES,
      .bias = QKVO_BIASES,
      .tensor = { [TENSOR_ROUTER] = "mlp.router.weight" },
      .gguf_tensor = { [TENSOR_MLP_NORM] = "post_attention_norm.weight" },
      .expert_ff = "intermediate_size",
      .renormalise = true,
      .clamped = true,
      .together = true,
      .yarn_exact = true,
      .theta = 150000,
      .head_dim = 64,
      .window = 128,
      .window_used = true,
      .pattern = 2 },
    { .name = "mistral3", .text = "mistral" },
    { .name = "qwen2_vl", .gguf = "qwen2vl", .text = "qwen2" },
    { .name = "qwen2_5_vl", .text = "qwen2" },
    { .name = "qwen3_vl", .gguf = "qwen3vl", .text = "qwen3" },
};

const char *const model_multipliers[MULTIPLIERS] = { "embedding_multiplier", "residual_multiplier",
                                                     "attention_multiplier", "logits_scaling" };
const char *const model_multipliers_gguf[MULTIPLIERS] = { "embedding_scale", "residual_scale", "attention.scale",
                                                          "logit_scale" };

void model_unrotate(struct model_config *c, int n)
{
    for (int l = n - 1; n > 0 && l < c->n_layers && l < MODEL_LAYERS_MAX; l += n)
        c->unrotated[l / 64] |= (uint64_t)1 << l % 64;
}

void model_set_windowed(struct model_config *c, int n)
{
    for (int l = 0; l < c->n_layers && l < MODEL_LAYERS_MAX; l++)
        if (n == 0 || (l + 1) % n != 0)
            c->windowed[l / 64] |= (uint64_t)1 << l % 64;
}

static int count_windowed(const struct model_config *c)
{
    int n = 0;

    for (int l = 0; l < c->n_layers; l++)
        n += model_window(c, l) > 0;
    return n;
}

struct kv_shape model_kv_shape(const struct model_config *c, enum dtype dtype)
{
    int windowed = count_windowed(c);
    struct kv_shape s = { c->n_layers - windowed,   c->n_heads, c->n_kv_heads, c->head_dim, dtype, windowed,
                          windowed ? c->window : 0, { 0 } };

    memcpy(s.windowed, c->windowed, sizeof(s.windowed));
    return s;
}

int model_short(const struct model_config *c)
{
    if (c->rope_scaling == ROPE_LONGROPE && c->rope_original < c->max_tokens)
        return c->rope_original;
    return count_windowed(c) == c->n_layers ? c->window / 2 : 0;
}

int model_limit(const struct model_config *c, int n)
{
    if (n > model_short(c))
        return c->max_tokens;
    return c->rope_scaling == ROPE_LONGROPE ? c->rope_original : c->window;
}

void model_set_gemma(struct model_config *c, double scalar)
{
    const double multiplier[] = { [MULTIPLY_EMBEDDING] = sqrt(c->d_model),
                                  [MULTIPLY_RESIDUAL] = 1,
                                  [MULTIPLY_SCORES] = 1 / sqrt(scalar),
                                  [DIVIDE_LOGITS] = 1 };

    memcpy(c->multiplier, multiplier, sizeof(multiplier));
    c->round_embedding = c->gelu = true;
}

const char *family_tensor(const struct model_family *f, enum tensor_role role)
{
    return f->tensor[role] ? f->tensor[role] : model_roles[role].name;
}

const char *family_gguf_tensor(const struct model_family *f, enum tensor_role role)
{
    return f->gguf_tensor[role] ? f->gguf_tensor[role] : model_roles[role].gguf_name;
}

#define STATES   "layers with a state in place of keys and values are not computed"
#define LATENT   "attention over a latent of keys and values (MLA) is not computed"
#define AFTER    "norms after attention and MLP are not computed"
#define SHARED   "a shared expert is not computed"
#define SIGMOID  "a router that weighs experts by sigmoids is not computed"
#define TOGETHER "experts that lie in one tensor are not read"

/* Refused, with the reason. Names in both containers begin with `begin`; the first that fits counts. */
static const struct {
    const char *begin, *why;
} refused[] = {
    { "deepseek2", LATENT },
    { "deepseek_v", LATENT },
    { "exaone4", AFTER },
    { "falcon_h1", STATES },
    { "gemma3n", "layers that share keys and values with others are not computed" },
    { "gemma4", "heads whose width differs from layer to layer are not computed" },
    { "gemma", "its norms and activation differ from Llama's and are not computed" },
    { "glm4_moe", SIGMOID },
    { "glm4moe", SIGMOID },
    { "glm4", AFTER },
    { "granitehybrid", STATES },
    { "granitemoehybrid", STATES },
    { "granitemoe", TOGETHER },
    { "kimi_k2", LATENT },
    { "llama4", "layers that attend to chunks of the text are not computed" },
    { "mamba", STATES },
    { "minimax-m2", SIGMOID },
    { "minimax_m2", SIGMOID },
    { "ministral3", "scores that grow with the position are not computed" },
    { "nemotron_h", STATES },
    { "olmo2", AFTER },
    { "phimoe", "its routing and its norms with biases are not computed" },
    { "qwen2_moe", SHARED },
    { "qwen2moe", SHARED },
    { "qwen3_5", STATES },
    { "qwen3_next", STATES },
    { "qwen3next", STATES },
    { "qwen3_vl_moe", TOGETHER },
};

static int refuse(const char *name, struct err *err)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        if (strncmp(name, refused[i].begin, strlen(refused[i].begin)) == 0)
            return err_set(err, ERR_FORMAT, "architecture '%.64s' is not supported: %s", name, refused[i].why);
    err_set(err, ERR_FORMAT, "architecture '%.64s' is not supported; these are:", name);
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
        err_add(err, " %s", families[i].name);
    return err->code;
}

const struct model_family *model_family(const char *name, struct err *err)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
        if (strcmp(families[i].name, name) == 0)
            return &families[i];
    refuse(name, err);
    return NULL;
}

const struct model_family *model_family_gguf(const char *name, struct err *err)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
        if (families[i].gguf && strcmp(families[i].gguf, name) == 0)
            return &families[i];
    refuse(name, err);
    return NULL;
}
