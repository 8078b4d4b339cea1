/* shape_cost.c - how many parameters a model has, how many of them a token uses, and how many bytes they take in GPU
 * memory: to first order, from the sizes of its matrices. Norms, biases, routers' corrections and vision are left out.
 */
#include "engine/model/shape_internal.h"

#include <math.h>
#include <string.h>

#define EXPERTS      "num_experts num_local_experts n_routed_experts moe_num_experts num_routed_experts "
#define EXPERTS_USED "num_experts_per_tok num_experts_per_token top_k_experts experts_per_token moe_topk moe_k "
#define SHARED_WIDTH                                                                                                   \
    "shared_expert_intermediate_size moe_shared_expert_intermediate_size shared_intermediate_size share_expert_dim "

/* Sums over the layers, in parameters. */
struct cost {
    double dense, experts, active; // matrices of all tokens; of experts; those of them that a token uses
};

static double hidden(struct shape_fields *f)
{
    return shape_field(f, "hidden_size n_embd d_model ", 0, 0);
}

/* Adds q, k, v and output; per pair of tokens the scores take 2 operations for each number, and so do the values. */
static void add_attention(struct shape *s, struct shape_fields *f, struct cost *c, int i, bool windowed)
{
    double D = hidden(f), H = shape_field(f, "num_attention_heads n_head n_heads ", i, 0);
    double latent = shape_field(f, "kv_lora_rank ", 0, 0), rank = shape_field(f, "q_lora_rank ", 0, 0);
    double K = shape_field(
        f, windowed ? "swa_head_dim head_dim attention_head_dim " : "global_head_dim head_dim attention_head_dim ", i,
        H > 0 ? floor(D / H) : 0);
    double V = shape_field(f, windowed ? "swa_v_head_dim v_head_dim " : "v_head_dim ", i, K);
    double G = shape_field(f,
                           windowed ? "swa_num_key_value_heads num_key_value_heads "
                                    : "num_global_key_value_heads num_key_value_heads ",
                           i, H);
    double top = shape_field(f, "index_topk ", 0, 0),
           index = shape_field(f, "index_head_dim ", 0, 0) * shape_field(f, "index_n_heads ", 0, 0);

    if (latent > 0) {
        double rope = shape_field(f, "qk_rope_head_dim ", 0, 0), nope = shape_field(f, "qk_nope_head_dim ", 0, 0);
        K = nope > 0 ? nope + rope : shape_field(f, "qk_head_dim head_dim ", 0, 0);
        c->dense += D * (latent + rope) + latent * H * (K - rope + V) + H * V * D;
    } else
        c->dense += D * G * (K + V) + H * V * D;
    c->dense += (rank > 0 ? D * rank + rank * H * K : D * H * K) * (1 + shape_field(f, "attn_output_gate ", 0, 0));
    if (windowed || top > 0)
        s->window_flop += 2 * H * (K + V);
    else
        s->pair_flop += 2 * H * (K + V);
    s->pair_flop += 2 * index;
}

static bool has_experts(struct shape_fields *f, int i)
{
    double step = shape_field(f, "decoder_sparse_step interleave_moe_layer_step ", 0, 1);
    double period = shape_field(f, "expert_layer_period ", 0, 0);
    const struct json *types = shape_value(f, "mlp_layer_types ");

    if (json_is_array(types)) {
        const char *type = json_text(json_at(types, i));
        return type && strcmp(type, "dense") != 0;
    }
    if (json_is_array(shape_value(f, "moe_layer_freq ")))
        return shape_field(f, "moe_layer_freq ", i, 1) > 0;
    if (period > 0)
        return i % (int)period == (int)shape_field(f, "expert_layer_offset ", 0, 0);
    return i >= shape_field(f, "first_k_dense_replace num_dense_layers ", 0, 0) &&
           (step < 2 || (i + 1) % (int)step == 0);
}

static void add_mlp(struct shape_fields *f, struct cost *c, int i, bool experts_alone)
{
    const double D = hidden(f), matrices = shape_field(f, "mlp_matrices ", 0, 3);
    double n = shape_field(f, EXPERTS, i, 0), used = shape_field(f, EXPERTS_USED, i, 1);
    double dense =
        shape_field(f, "intermediate_size_mlp dense_intermediate_size intermediate_size ffn_dim n_inner ", i, 4 * D);
    double width = shape_field(f, "moe_intermediate_size expert_intermediate_size intermediate_size ", i, dense);
    double within = shape_field(f, "routed_expert_hidden_size moe_latent_size ", 0, D); // of the experts' inputs
    double shared =
        shape_field(f, SHARED_WIDTH, 0, width * shape_field(f, "n_shared_experts num_shared_experts ", 0, 0));
    bool routed = n > 1 && shape_field(f, "enable_moe_block ", 0, 1) > 0 && (experts_alone || has_experts(f, i));

    if (!routed || shape_field(f, "enable_moe_block ", 0, 0) > 0)
        c->dense += matrices * D * dense;
    if (!routed)
        return;
    c->dense += D * n + matrices * D * shared + (within == D ? 0 : 2 * D * within);
    c->experts += matrices * n * within * width;
    c->active += matrices * fmin(used, n) * within * width;
}

static void add_state(struct shape_fields *f, struct cost *c)
{
    struct shape_state x;

    if (shape_state_of(f, &x))
        c->dense += hidden(f) * ((x.state > 0 ? 3 : 4) * x.inner + 2 * x.keys); // LFM2's convolution has two gates
}

/* Bits of a weight by the quantisation of config.json; 16: none, or one that is not known. */
static double bits_of(const struct json *q)
{
    static const struct {
        const char *method;
        double bits;
    } known[] = { { "mxfp4", 4.25 }, { "NVFP4", 4.5 }, { "fp8", 8 },  { "fbgemm_fp8", 8 },
                  { "FP8", 8 },      { "awq", 4 },     { "gptq", 4 }, { "bitsandbytes", 4.5 } };
    const struct json *weights = json_get(json_first(json_get(q, "config_groups")), "weights");
    double bits = json_real(json_get(weights, "num_bits")), group = json_real(json_get(weights, "group_size"));
    const char *const says[] = { json_text(json_get(q, "moe_quant_algo")), json_text(json_get(q, "quant_algo")),
                                 json_text(json_get(q, "quant_method")) };

    if (json_is_number(json_get(q, "bits"))) {
        bits = json_real(json_get(q, "bits"));
        group = json_real(json_get(q, "group_size"));
    }
    if (json_true(json_get(q, "load_in_8bit")))
        bits = 8;
    for (size_t i = 0; i < sizeof(says) / sizeof(*says); i++)
        for (size_t k = 0; k < sizeof(known) / sizeof(*known) && says[i] && !(bits > 0); k++)
            if (strcmp(says[i], known[k].method) == 0)
                bits = known[k].bits;
    if (!(bits >= 1 && bits <= 16))
        return 16;
    return bits < 8 && group >= 8 ? bits + (group == 16 ? 8 : 16) / group : bits; // a scale for each group
}

/* Of models with experts, 4 bits are those of the experts alone: so do gpt-oss, Kimi and NVIDIA's models. */
static void set_weights(struct shape *s, struct shape_fields *f, const struct cost *c, double embedding)
{
    double bits = bits_of(f->quantised), experts = bits;
    const char *type = json_text(shape_value(f, "expert_dtype "));

    if (type && strcmp(type, "fp4") == 0)
        experts = 4.25;
    else if (c->experts > 0 && bits < 8)
        bits = 16;
    s->weights_bytes = 2 * embedding + (c->dense * bits + c->experts * experts) / 8;
}

void shape_cost(struct shape *s, struct shape_fields *f, const uint8_t *kind)
{
    struct cost c = { 0 };
    double D = hidden(f), layered = shape_field(f, "hidden_size_per_layer_input ", 0, 0);
    double embedding =
        (2 - fmin(shape_field(f, "tie_word_embeddings ", 0, 0), 1)) * D * shape_field(f, "vocab_size ", 0, 0);

    for (int i = 0; i < s->n_layers; i++) {
        if (kind[i] & LAYER_ATTENTION)
            add_attention(s, f, &c, i, kind[i] & LAYER_WINDOW);
        if (kind[i] & LAYER_STATE)
            add_state(f, &c);
        if (kind[i] & (LAYER_MLP | LAYER_EXPERTS))
            add_mlp(f, &c, i, kind[i] & LAYER_EXPERTS);
    }
    embedding += layered * s->n_layers * shape_field(f, "vocab_size_per_layer_input ", 0, 0); // Gemma 3n
    s->parameters = embedding + c.dense + c.experts;
    s->active_parameters = c.dense + c.active;
    double top = shape_field(f, "index_topk ", 0, 0);
    s->window_tokens = top > 0 ? top : s->window;
    set_weights(s, f, &c, embedding);
}
