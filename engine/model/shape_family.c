/* shape_family.c - the families whose shape is known, a row each: names, and defaults of absent fields.
 *
 * Most fields mean the same in all families: shape.c reads them in the order of its tables. What a row says: which
 * fields transformers fills in, how wide windows are, and how often a layer has none (sliding_window_pattern). Four
 * fields are in no config.json: all_windows (sliding_window, if there is one, is for all layers), every_layer_both
 * (attention and a state), and mlp_matrices (3 unless said); nor is unserved (no adapter takes the payloads). /
 */
#include "engine/model/shape_internal.h"

#include <string.h>

static const struct shape_family families[] = {
    { "Llama 2 and 3, SmolLM2, Vicuna", "llama ", "llama ", "all_windows=1 " },
    { "Llama 4", "llama4 llama4_text ", "llama4 ",
      "num_hidden_layers=48 hidden_size=5120 num_attention_heads=40 num_key_value_heads=8 head_dim=128 "
      "vocab_size=202048 "
      "intermediate_size=8192 intermediate_size_mlp=16384 num_local_experts=16 num_experts_per_tok=1 "
      "n_shared_experts=1 "
      "attention_chunk_size=8192 no_rope_layer_interval=4 interleave_moe_layer_step=1 " },
    { "Llama-Nemotron (pruned layers)", "nemotron-nas ", "deci ", "" },
    { "Mistral v0.1 to v0.3, Nemo", "mistral ", "", "all_windows=1 " },
    { "Mistral Small 3, Magistral, Devstral", "mistral3 ", "", "all_windows=1 " },
    { "Ministral 3, Pixtral", "ministral3 ministral pixtral ", "mistral3 ", "all_windows=1 " },
    { "Mixtral", "mixtral ", "", "all_windows=1 num_local_experts=8 num_experts_per_tok=2 " },
    { "Qwen2, Qwen2.5, QwQ", "qwen2 ", "qwen2 ", "use_sliding_window=0 " },
    { "Qwen2-VL, Qwen2.5-VL", "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text ", "qwen2vl ",
      "use_sliding_window=0 unserved=1 " },
    { "Qwen2.5-Omni", "qwen2_5_omni qwen2_5_omni_text ", "", "use_sliding_window=0 " },
    { "Qwen2-MoE", "qwen2_moe ", "qwen2moe ", "use_sliding_window=0 " },
    { "Qwen3", "qwen3 ", "qwen3 ", "use_sliding_window=0 head_dim=128 " },
    { "Qwen3-VL", "qwen3_vl qwen3_vl_text ", "qwen3vl ", "use_sliding_window=0 head_dim=128 unserved=1 " },
    { "Qwen3-MoE, Qwen3-Coder", "qwen3_moe ", "qwen3moe ", "use_sliding_window=0 " },
    { "Qwen3-VL-MoE, Qwen3-Omni", "qwen3_vl_moe qwen3_vl_moe_text qwen3_omni_moe qwen3_omni_moe_text ", "qwen3vlmoe ",
      "use_sliding_window=0 " },
    { "Qwen3-Next, Qwen3.5, 3.6, 3.8",
      "qwen3_next qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text qwen3_6 qwen3_6_text qwen3_6_moe "
      "qwen3_6_moe_text qwen3_8 "
      "qwen3_8_text qwen3_8_moe qwen3_8_moe_text ",
      "qwen3next qwen35 qwen35moe ",
      "full_attention_interval=4 head_dim=256 linear_conv_kernel_dim=4 linear_key_head_dim=128 "
      "linear_value_head_dim=128 "
      "linear_num_key_heads=16 linear_num_value_heads=32 attn_output_gate=1 " },
    { "Phi-3, Phi-3.5-mini, Phi-4", "phi3 ", "phi3 ", "all_windows=1 " },
    { "Phi-3.5-MoE", "phimoe ", "phimoe ", "all_windows=1 " },
    { "SmolLM3", "smollm3 ", "smollm3 ", "use_sliding_window=0 num_key_value_heads=4 " },
    { "Gemma 2", "gemma2 ", "gemma2 ",
      "head_dim=256 sliding_window=4096 sliding_window_pattern=2 tie_word_embeddings=1 unserved=1 " },
    { "Gemma 3", "gemma3 gemma3_text ", "gemma3 ",
      "num_attention_heads=8 num_key_value_heads=4 head_dim=256 hidden_size=2304 intermediate_size=9216 "
      "num_hidden_layers=26 "
      "unserved=1 vocab_size=262208 sliding_window=4096 sliding_window_pattern=6 max_position_embeddings=131072 "
      "tie_word_embeddings=1 " },
    { "Gemma 3n", "gemma3n gemma3n_text ", "gemma3n ",
      "num_attention_heads=8 num_key_value_heads=2 head_dim=256 hidden_size=2048 intermediate_size=16384 "
      "num_hidden_layers=35 "
      "vocab_size=262400 sliding_window=512 sliding_window_pattern=5 num_kv_shared_layers=15 "
      "hidden_size_per_layer_input=256 "
      "vocab_size_per_layer_input=262144 max_position_embeddings=32768 tie_word_embeddings=1 " },
    { "Gemma 4", "gemma4 gemma4_text ", "gemma4 ",
      "head_dim=256 global_head_dim=512 sliding_window=512 sliding_window_pattern=6 vocab_size=262144 "
      "tie_word_embeddings=1 " },
    { "gpt-oss", "gpt_oss ", "gpt-oss ",
      "head_dim=64 sliding_window=128 sliding_window_pattern=2 num_local_experts=128 num_experts_per_tok=4 "
      "unserved=1 " },
    { "GLM-4", "glm glm4 ", "glm4 chatglm ", "" },
    { "GLM-4.5, 4.6, 4.7", "glm4_moe glm4v_moe glm4v_moe_text ", "glm4moe ", "first_k_dense_replace=1 " },
    { "DeepSeek V2, V3, R1, GLM-4.7-Flash", "deepseek_v2 deepseek_v3 glm4_moe_lite ", "deepseek2 ", "" },
    { "Kimi K2", "kimi_k2 kimi_k25 kimi_vl ", "", "" },
    { "DeepSeek V3.2, GLM-5", "deepseek_v32 glm_moe_dsa ", "glm-dsa deepseek32 ", "" },
    { "DeepSeek V4, V4.1", "deepseek_v4 deepseek_v41 deepseek_v41_text deepseek_ref ", "deepseek4 ", "" },
    { "GLM-5.3-Flash", "glm5_next glm5_next_text ", "", "" },
    { "dots3-note", "dots3_note ", "", "" },
    { "Inkling", "inkling inkling_text inkling_mm_model inkling_model ", "", "" },
    { "Kimi Linear, Kimi K3", "kimi_linear kimi_k3 ", "kimi-linear ", "" },
    { "MiniMax-M2", "minimax_m2 ", "minimax-m2 ", "" },
    { "MiniMax-M3", "minimax_m3 minimax_m3_vl ", "", "" },
    { "MiniMax-Text-01, M1", "minimax minimax_text_01 minimax_m1 ", "", "" },
    { "MiMo-V2", "mimo_v2 mimo_v2_flash mimo_v2_5 ", "mimo2 ", "" },
    { "MiMo-7B", "mimo ", "", "use_sliding_window=0 " },
    { "Cohere Command R", "cohere ", "command-r ", "tie_word_embeddings=1 " },
    { "Cohere Command A, R7B, Aya", "cohere2 cohere2_moe ", "cohere2 ",
      "sliding_window=4096 sliding_window_pattern=4 tie_word_embeddings=1 " },
    { "OLMo 2 and 3", "olmo2 olmo3 ", "olmo2 ", "sliding_window_pattern=4 " },
    { "EXAONE 4", "exaone4 exaone_moe ", "exaone4 exaone-moe ", "sliding_window=4096 sliding_window_pattern=4 " },
    { "Granite 3", "granite ", "granite ", "" },
    { "Granite 3 with experts", "granitemoe granitemoeshared ", "granitemoe ", "" },
    { "Granite 4 (hybrid)", "granitemoehybrid ", "granitehybrid ",
      "mamba_n_heads=128 mamba_n_groups=1 mamba_d_state=256 mamba_d_conv=4 mamba_expand=2 " },
    { "Bamba", "bamba ", "",
      "num_key_value_heads=8 mamba_n_heads=128 mamba_n_groups=1 mamba_d_state=256 mamba_d_conv=4 mamba_expand=2 " },
    { "Falcon-H1", "falcon_h1 ", "falcon-h1 ", "every_layer_both=1 mamba_n_groups=1 mamba_d_conv=4 mamba_expand=2 " },
    { "Jamba", "jamba ", "jamba ",
      "num_key_value_heads=8 attn_layer_period=8 attn_layer_offset=4 expert_layer_period=2 expert_layer_offset=1 "
      "num_experts=16 "
      "num_experts_per_tok=2 mamba_d_state=16 mamba_d_conv=4 mamba_expand=2 " },
    { "Nemotron-H, Nemotron 3", "nemotron_h nemotron_h_puzzle ", "nemotron_h nemotron_h_moe ", "mlp_matrices=2 " },
    { "LFM2", "lfm2 lfm2_moe lfm2_vl ", "lfm2 lfm2moe ",
      "conv_L_cache=3 num_key_value_heads=8 tie_word_embeddings=1 " },
    { "Step-3", "step3p5 step3p7 ", "step35 ", "" },
    { "Seed-OSS", "seed_oss ", "seed_oss ", "" },
    { "Hunyuan, InternLM, Ernie 4.5",
      "hunyuan_v1_dense hunyuan_v1_moe internlm2 internlm3 internvl internvl_chat ernie4_5 ernie4_5_moe ",
      "hunyuan-dense hunyuan-moe internlm2 ernie4_5 ernie4_5-moe ", "" },
};

const struct shape_family *shape_family(int i)
{
    return i >= 0 && (size_t)i < sizeof(families) / sizeof(*families) ? &families[i] : NULL;
}

bool shape_family_profiled(const struct shape_family *f)
{
    char type[SHAPE_NAME];
    struct err ignored;

    snprintf(type, sizeof(type), "%.*s", (int)strcspn(f->types, " "), f->types);
    return model_family(type, &ignored) != NULL;
}
