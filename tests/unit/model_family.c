/* What config.json says in the families: fields that are absent, biases, experts, windows, partial rotation; and who is
 * refused, with the reason. */
#include "engine/model/model_internal.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE                                                                                                          \
    "\"hidden_size\":64,\"num_hidden_layers\":4,\"num_attention_heads\":8,\"num_key_value_heads\":2,"                  \
    "\"intermediate_size\":96,\"vocab_size\":271,\"max_position_embeddings\":8192,\"rms_norm_eps\":1e-5"
#define EXPERTS ",\"num_experts\":8,\"num_experts_per_tok\":2,\"moe_intermediate_size\":24"

/* The config of a family with these fields; code 0 or that of *err. */
static int read_config(const char *family, const char *fields, struct model_config *c, struct err *err)
{
    struct model *m = calloc(1, sizeof(*m));
    struct buf text = { 0 };

    buf_printf(&text, "{\"model_type\":\"%s\"," SHAPE "%s}", family, fields);
    m->path = strdup("folder");
    m->json = json_parse(buf_str(&text), text.n, err);
    cr_assert(m->json, "%s", err->msg);
    int code = hf_config_read(m, err);
    *c = m->config;
    model_close(m);
    buf_release(&text);
    return code;
}

static struct model_config config_of(const char *family, const char *fields)
{
    struct model_config c;
    struct err err;

    cr_assert_eq(read_config(family, fields, &c, &err), 0, "%s%s: %s", family, fields, err.msg);
    return c;
}

static void refuses(const char *family, const char *fields, const char *why)
{
    struct model_config c;
    struct err err;

    cr_assert_eq(read_config(family, fields, &c, &err), ERR_FORMAT, "%s%s", family, fields);
    cr_assert(strstr(err.msg, why), "'%s' does not say '%s'", err.msg, why);
}

Test(model_family, others_are_refused_with_the_reason)
{
    static const char *const why[][2] = {
        { "deepseek_v3", "attention over a latent of keys and values (MLA) is not computed" },
        { "deepseek2", "attention over a latent of keys and values (MLA) is not computed" },
        { "exaone4", "norms after attention and MLP are not computed" },
        { "falcon_h1", "layers with a state in place of keys and values are not computed" },
        { "gemma", "its norms and activation differ from Llama's and are not computed" },
        { "gemma3n", "layers that share keys and values with others are not computed" },
        { "gemma4", "heads whose width differs from layer to layer are not computed" },
        { "glm4", "norms after attention and MLP are not computed" },
        { "glm4_moe", "a router that weighs experts by sigmoids is not computed" },
        { "granitemoe", "experts that lie in one tensor are not read" },
        { "granitemoehybrid", "layers with a state in place of keys and values are not computed" },
        { "kimi_k2", "attention over a latent of keys and values (MLA) is not computed" },
        { "llama4", "layers that attend to chunks of the text are not computed" },
        { "mamba2", "layers with a state in place of keys and values are not computed" },
        { "minimax_m2", "a router that weighs experts by sigmoids is not computed" },
        { "ministral3", "scores that grow with the position are not computed" },
        { "nemotron_h", "layers with a state in place of keys and values are not computed" },
        { "olmo2", "norms after attention and MLP are not computed" },
        { "phimoe", "its routing and its norms with biases are not computed" },
        { "qwen2_moe", "a shared expert is not computed" },
        { "qwen3_5", "layers with a state in place of keys and values are not computed" },
        { "qwen3_next", "layers with a state in place of keys and values are not computed" },
        { "qwen3_vl_moe", "experts that lie in one tensor are not read" },
    };

    for (size_t i = 0; i < sizeof(why) / sizeof(*why); i++) {
        char all[160];
        snprintf(all, sizeof(all), "architecture '%s' is not supported: %s", why[i][0], why[i][1]);
        refuses(why[i][0], "", all);
    }
    refuses("rwkv", "", "architecture 'rwkv' is not supported; these are: llama mistral qwen2 qwen3");
}

Test(model_family, a_text_model_may_have_another_one_for_pictures)
{
    struct model_config c = config_of("qwen2_5_vl", ",\"vision_config\":{},\"rope_scaling\":{\"type\":\"mrope\","
                                                    "\"mrope_section\":[16,24,24]}");

    cr_assert(model_has(&c, TENSOR_Q_BIAS) && c.rope_scaling == ROPE_PLAIN && c.max_tokens == 8192);
    cr_assert_str_eq(c.arch, "qwen2_5_vl");
    c = config_of("qwen3_vl", ",\"text_config\":{\"model_type\":\"qwen3_vl_text\"," SHAPE ",\"head_dim\":16,"
                              "\"rope_scaling\":{\"rope_type\":\"default\",\"mrope_interleaved\":true}}");
    cr_assert(model_has(&c, TENSOR_Q_NORM) && c.head_dim == 16);
    c = config_of("mistral3", ",\"text_config\":{\"model_type\":\"mistral\"," SHAPE ",\"sliding_window\":null}");
    cr_assert(c.window == 0 && c.head_dim == 8);
    refuses("mistral3", ",\"text_config\":{\"model_type\":\"ministral3\"," SHAPE "}", "scores that grow with");
    refuses("mistral3", ",\"text_config\":{\"model_type\":\"mistral3\"," SHAPE "}", "of type 'mistral3' again");
    refuses("mistral3", ",\"quantization_config\":{},\"text_config\":{\"model_type\":\"mistral\"," SHAPE "}",
            "field 'quant_method' is missing");
    refuses("qwen3", ",\"rope_scaling\":{\"type\":\"mrope\"}", "rotary scaling 'mrope' is not supported");
}

Test(model_family, absent_fields_mean_what_the_family_says)
{
    cr_assert_eq(config_of("llama", "").head_dim, 8);
    cr_assert_eq(config_of("qwen3", "").head_dim, 128);
    cr_assert_eq(config_of("qwen3", ",\"head_dim\":16").head_dim, 16);
    cr_assert_eq(config_of("mistral", "").window, 4096);
    cr_assert_eq(config_of("mistral", ",\"sliding_window\":null").window, 0);
    cr_assert_eq(config_of("qwen2", "").window, 0); /* not used */
    cr_assert_eq(config_of("qwen2", ",\"sliding_window\":64").window, 0);
    cr_assert_eq(config_of("phi3", "").window, 0);
}

Test(model_family, a_window_counts_where_layers_use_it)
{
    static const char used[] = ",\"use_sliding_window\":true,\"sliding_window\":64";
    struct buf fields = { 0 };

    for (int first = 3; first <= 5; first++) { /* of 4 layers */
        buf_printf(&fields, "%s,\"max_window_layers\":%d", used, first);
        const struct model_config c = config_of("qwen2", buf_str(&fields));
        cr_assert(c.max_tokens == 8192 && c.window == (first < 4 ? 64 : 0), "%d", first);
        for (int l = 0; l < 4; l++)
            cr_assert_eq(model_window(&c, l), l >= first ? 64 : 0, "%d %d", first, l);
        const struct kv_shape s = model_kv_shape(&c, DTYPE_F32);
        cr_assert(s.n_layers == (first < 4 ? first : 4) && s.n_windowed == 4 - s.n_layers && s.window == c.window &&
                  model_short(&c) == 0);
        buf_release(&fields);
    }
    cr_assert_eq(config_of("qwen2", ",\"use_sliding_window\":true").window, 4096);
    const struct model_config phi = config_of("phi3", ",\"sliding_window\":2047");
    cr_assert(phi.window == 2047 && model_short(&phi) == 1023);
    cr_assert(model_limit(&phi, 1023) == 2047 && model_limit(&phi, 1024) == phi.max_tokens);
}

Test(model_family, gemma_rotates_layers_with_a_window_by_another_base)
{
    static const char *const same[] = {
        ",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8},\"sliding_window_pattern\":3",
        ",\"rope_theta\":1e6,\"rope_local_base_freq\":1e4,\"sliding_window_pattern\":3,\"rope_parameters\":{"
        "\"full_attention\":{\"rope_type\":\"linear\",\"factor\":8},\"sliding_attention\":{\"rope_theta\":1e4}}",
        ",\"text_config\":{" SHAPE ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":8},\"layer_types\":["
        "\"sliding_attention\",\"sliding_attention\",\"full_attention\",\"sliding_attention\"]}",
    };

    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
        struct model_config c = config_of(i < 2 ? "gemma3_text" : "gemma3", same[i]);
        cr_assert(c.rope_theta == 1e6 && c.rope_theta_window == 1e4 && c.rope_factor == 8, "%zu", i);
        cr_assert(c.rope_scaling == ROPE_LINEAR && c.window == 4096 && c.head_dim == 256 && c.tied && c.gelu);
        cr_assert(c.multiplier[MULTIPLY_SCORES] == 1 / 16.0 && c.multiplier[MULTIPLY_EMBEDDING] == sqrt(c.d_model));
        for (int l = 0; l < 4; l++)
            cr_assert_eq(model_window(&c, l), l == 2 ? 0 : 4096, "%zu %d", i, l);
    }
    cr_assert_eq(config_of("gemma3_text", ",\"sliding_window\":9000").window, 9000); /* for its base */
    refuses("gemma3_text", ",\"hidden_activation\":\"silu\"", "activation 'silu' is not supported");
    refuses("gemma3_text", ",\"query_pre_attn_scalar\":0", "field 'query_pre_attn_scalar' is not above 0");
    refuses("gemma3_text", ",\"rope_parameters\":{\"sliding_attention\":{\"type\":\"linear\",\"factor\":2}}",
            "the rotary embedding of layers with a window is scaled");
    refuses("gemma3_text", ",\"sliding_window_pattern\":-1", "field 'sliding_window_pattern' is -1, not a count");
}

Test(model_family, biases_are_roles)
{
    const struct model_config plain = config_of("llama", ""), biased = config_of("llama", ",\"attention_bias\":true"),
                              qwen = config_of("qwen2", "");

    cr_assert(!model_has(&plain, TENSOR_Q_BIAS) && !model_has(&plain, TENSOR_DOWN_BIAS));
    cr_assert(model_has(&biased, TENSOR_Q_BIAS) && model_has(&biased, TENSOR_O_BIAS));
    cr_assert(!model_has(&biased, TENSOR_DOWN_BIAS));
    cr_assert(model_has(&qwen, TENSOR_V_BIAS) && !model_has(&qwen, TENSOR_O_BIAS));
    refuses("mistral", ",\"attention_bias\":true", "field 'attention_bias' has a value that is not supported");
    refuses("phi3", ",\"mlp_bias\":true", "field 'mlp_bias' has a value that is not supported");
}

Test(model_family, every_layer_has_experts)
{
    const struct model_config c = config_of("qwen3_moe", EXPERTS);

    cr_assert(c.n_experts == 8 && c.n_experts_used == 2 && c.expert_ff == 24 && c.d_ff == 0 && !c.renormalise);
    cr_assert_eq(model_count(&c, TENSOR_EXPERT_UP), 32);
    cr_assert(config_of("qwen3_moe", EXPERTS ",\"norm_topk_prob\":true,\"mlp_only_layers\":[]").renormalise);
    refuses("qwen3_moe", "", "field 'num_local_experts' is missing");
    refuses("qwen3_moe", EXPERTS ",\"mlp_only_layers\":[1]", "field 'mlp_only_layers' names layers without experts");
    refuses("qwen3_moe", EXPERTS ",\"decoder_sparse_step\":2", "field 'decoder_sparse_step' has a value");
}

Test(model_family, mixtral_names_its_experts_and_their_width_differently)
{
    const struct model_config c = config_of("mixtral", ",\"num_local_experts\":4,\"num_experts_per_tok\":2");

    cr_assert(c.n_experts == 4 && c.n_experts_used == 2 && c.expert_ff == 96 && c.d_ff == 0 && c.renormalise);
    cr_assert(c.window == 0 && c.rope_theta == 1e6);
    refuses("mixtral", "", "field 'num_local_experts' is missing");
}

Test(model_family, a_part_of_a_head_may_be_rotated)
{
    cr_assert_eq(config_of("llama", "").rotary, 8);
    cr_assert_eq(config_of("phi3", ",\"head_dim\":128,\"partial_rotary_factor\":0.75").rotary, 96);
    cr_assert_eq(config_of("phi3", ",\"head_dim\":128,\"rope_parameters\":{\"partial_rotary_factor\":0.5}").rotary, 64);
    refuses("phi3", ",\"partial_rotary_factor\":0", "field 'partial_rotary_factor' is 0, which is not supported");
    refuses("phi3", ",\"partial_rotary_factor\":1.5", "field 'partial_rotary_factor' is 1.5");
    refuses("qwen3", ",\"partial_rotary_factor\":0.5", "field 'partial_rotary_factor' is 0.5");
}

Test(model_family, granite_multiplies_and_smollm3_does_not_rotate_all_layers)
{
    struct model_config c = config_of("granite", ",\"embedding_multiplier\":12,\"attention_multiplier\":0.0625");

    cr_assert(c.multiplier[MULTIPLY_EMBEDDING] == 12 && c.multiplier[MULTIPLY_SCORES] == 0.0625);
    cr_assert(c.multiplier[MULTIPLY_RESIDUAL] == 1 && c.multiplier[DIVIDE_LOGITS] == 1);
    refuses("granite", ",\"logits_scaling\":0", "field 'logits_scaling' is 0");
    refuses("llama", ",\"residual_multiplier\":0.22", "field 'residual_multiplier' has a value");
    refuses("llama", ",\"no_rope_layers\":[1,1,1,0]", "field 'no_rope_layers' has a value");
    c = config_of("smollm3", ""); /* of 4 layers */
    cr_assert(model_rotates(&c, 2) && !model_rotates(&c, 3) && c.rope_theta == 2e6);
    c = config_of("smollm3", ",\"no_rope_layer_interval\":2");
    cr_assert(model_rotates(&c, 0) && !model_rotates(&c, 1) && !model_rotates(&c, 3));
    c = config_of("smollm3", ",\"no_rope_layers\":[0,1,1,1]");
    cr_assert(!model_rotates(&c, 0) && model_rotates(&c, 3));
    refuses("smollm3", ",\"no_rope_layers\":[0,1]", "field 'no_rope_layers' is not a list of 4 numbers");
}

#define YARN "\"type\":\"yarn\",\"factor\":4.0"

Test(model_family, yarn_has_the_defaults_of_transformers)
{
    struct model_config c =
        config_of("qwen2", ",\"rope_scaling\":{" YARN ",\"original_max_position_embeddings\":32768}");

    cr_assert(c.rope_scaling == ROPE_YARN && c.max_tokens == 131072 && c.rope_low == 1 && c.rope_high == 32);
    cr_assert(!c.rope_exact && fabs(c.rope_attention - 1.138629436) < 1e-9);
    c = config_of("qwen3", ",\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":2,\"beta_fast\":16,\"beta_slow\":0,"
                           "\"truncate\":false,\"attention_factor\":0.5,\"finetuned\":true}");
    cr_assert(c.max_tokens == 16384 && c.rope_original == 8192 && c.rope_high == 16 && c.rope_low == 1);
    cr_assert(c.rope_exact && c.rope_attention == 0.5);
    c = config_of("llama", ",\"rope_scaling\":{" YARN ",\"mscale\":0.707,\"mscale_all_dim\":1.0}");
    cr_assert(fabs(c.rope_attention - (0.0707 * log(4) + 1) / (0.1 * log(4) + 1)) < 1e-12);
    c = config_of("mistral", ",\"rope_scaling\":{" YARN "}"); /* the window stays what it is */
    cr_assert(c.max_tokens > 8192 && c.window == 4096);
    refuses("qwen2", ",\"rope_scaling\":{\"type\":\"yarn\"}", "field 'factor' is missing");
    refuses("qwen2", ",\"rope_scaling\":{" YARN ",\"extrapolation_factor\":1}", "scaling with 'extrapolation_factor'");
    refuses("qwen2", ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2,\"beta_fast\":32}",
            "scaling with 'beta_fast'");
    refuses("qwen2",
            ",\"rope_scaling\":{" YARN "},\"rope_parameters\":{" YARN ",\"attention_factor\":1.5,\"rope_theta\":1e4}",
            "'rope_parameters' and 'rope_scaling' do not agree");
}

#define SHORT "\"short_factor\":[1,1,1,1]"

Test(model_family, longrope_is_chosen_by_the_length_of_a_context)
{
    struct model_config c = config_of("phi3", ",\"original_max_position_embeddings\":4096,\"rope_scaling\":{"
                                              "\"type\":\"su\"," SHORT ",\"long_factor\":[1,2,3,4]}");

    cr_assert(c.rope_scaling == ROPE_LONGROPE && c.rope_factor == 2 && c.rope_original == 4096 && c.max_tokens == 8192);
    cr_assert(fabs(c.rope_attention - sqrt(1 + log(2) / log(4096))) < 1e-12);
    cr_assert(model_short(&c) == 4096 && model_limit(&c, 4096) == 4096 && model_limit(&c, 4097) == 8192);
    c = config_of("phi3", ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":3,\"attention_factor\":1.25," SHORT
                          ",\"long_factor\":[1,2,3,4]}");
    cr_assert(c.rope_scaling == ROPE_LONGROPE && c.rope_factor == 3 && c.rope_attention == 1.25);
    refuses("phi3", ",\"rope_scaling\":{\"type\":\"longrope\"," SHORT "}",
            "field 'long_factor' is not a list of 4 numbers");
    refuses("phi3", ",\"rope_scaling\":{\"type\":\"longrope\"," SHORT ",\"long_factor\":[1,2,3,\"x\"]}",
            "field 'long_factor' has a number that is not above 0");
    refuses("phi3",
            ",\"rope_scaling\":{\"type\":\"longrope\"," SHORT ",\"long_factor\":[1,2,3,4]},\"rope_parameters\":{"
            "\"rope_type\":\"longrope\"," SHORT ",\"long_factor\":[1,2,3,5]}",
            "'rope_parameters' and 'rope_scaling' do not agree");
}

Test(model_family, dynamic_is_exact_within_the_original_length)
{
    const struct model_config c = config_of("llama", ",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":4.0}");

    cr_assert(c.rope_scaling == ROPE_PLAIN && c.max_tokens == 8192);
}

Test(model_family, unknown_scalings_are_refused_by_name)
{
    refuses("phi3", ",\"rope_scaling\":{\"type\":\"ntk\",\"factor\":4.0}", "rotary scaling 'ntk' is not supported");
    refuses("qwen2", ",\"rope_parameters\":{\"rope_type\":\"ntk\",\"factor\":4.0}", "scaling 'ntk' is not supported");
    refuses("llama", ",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":4.0,\"alpha\":1000}", "scaling with 'alpha'");
}
