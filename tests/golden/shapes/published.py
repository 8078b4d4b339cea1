"""published.py >published.jsonl - published models of every kind: the fields of their config.json that the shape needs, and
the bytes by hand: for each kind of layers how many there are, the numbers that each keeps of a token, and its window (0:
none); then the bytes of states. Parameters are those that the model's card names, where they are all of the model's.
"""
import json

TOKENS = (1, 1000, 32768, 131072)

def usual(kind, layers, wide, heads, kv, ff, vocab, **more):
    return {"model_type": kind, "num_hidden_layers": layers, "hidden_size": wide, "num_attention_heads": heads,
            "num_key_value_heads": kv, "intermediate_size": ff, "vocab_size": vocab} | more

def rhythm(n, every, full="full_attention", other="sliding_attention"):
    return [full if (i + 1) % every == 0 else other for i in range(n)]

def mamba2(layers, inner, groups, state, kernel=4):
    return layers * ((kernel - 1) * (inner + 2 * groups * state) * 2 + inner * state * 4)

FP8 = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
NANO = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
MODELS = [
    ("Llama-3.2-1B", usual("llama", 16, 2048, 32, 8, 8192, 128256, head_dim=64, tie_word_embeddings=True,
                           rope_scaling={"rope_type": "llama3", "factor": 32}), [(16, 8 * 128, 0)], 0, 1.24e9),
    ("Mistral-7B-v0.1", usual("mistral", 32, 4096, 32, 8, 14336, 32000, sliding_window=4096, max_position_embeddings=32768),
     [(32, 8 * 256, 4096)], 0, 7.24e9),
    ("Mistral-Small-3.1-24B", {"model_type": "mistral3", "text_config": usual("mistral", 40, 5120, 32, 8, 32768, 131072,
     head_dim=128, sliding_window=None)}, [(40, 8 * 256, 0)], 0, 23.6e9),
    ("Mixtral-8x7B", usual("mixtral", 32, 4096, 32, 8, 14336, 32000, num_local_experts=8, num_experts_per_tok=2,
                           sliding_window=None), [(32, 8 * 256, 0)], 0, 46.7e9),
    ("Llama-4-Scout", {"model_type": "llama4", "text_config": usual("llama4_text", 48, 5120, 40, 8, 8192, 202048, head_dim=128,
     intermediate_size_mlp=16384, num_local_experts=16, num_experts_per_tok=1, interleave_moe_layer_step=1,
     attention_chunk_size=8192, max_position_embeddings=10485760)}, [(12, 8 * 256, 0), (36, 8 * 256, 8192)], 0, 107.8e9),
    ("Qwen2.5-7B with yarn", usual("qwen2", 28, 3584, 28, 4, 18944, 152064, sliding_window=131072, use_sliding_window=False,
     max_window_layers=28, rope_scaling={"type": "yarn", "factor": 4.0}), [(28, 4 * 256, 0)], 0, 7.62e9),
    ("Qwen2.5-VL-7B", usual("qwen2_5_vl", 28, 3584, 28, 4, 18944, 152064, sliding_window=32768, use_sliding_window=False,
     vision_config={"depth": 32}), [(28, 4 * 256, 0)], 0, 7.62e9),
    ("Qwen3-8B-FP8", usual("qwen3", 36, 4096, 32, 8, 12288, 151936, head_dim=128) | FP8, [(36, 8 * 256, 0)], 0, 8.19e9),
    ("Qwen3-30B-A3B", usual("qwen3_moe", 48, 2048, 32, 4, 6144, 151936, head_dim=128, num_experts=128, num_experts_per_tok=8,
     moe_intermediate_size=768, decoder_sparse_step=1, mlp_only_layers=[]), [(48, 4 * 256, 0)], 0, 30.5e9),
    ("Qwen3-Next-80B-A3B", usual("qwen3_next", 48, 2048, 16, 2, 5120, 151936, head_dim=256, full_attention_interval=4,
     linear_num_key_heads=16, linear_key_head_dim=128, linear_num_value_heads=32, linear_value_head_dim=128,
     linear_conv_kernel_dim=4, num_experts=512, num_experts_per_tok=10, moe_intermediate_size=512,
     shared_expert_intermediate_size=512), [(12, 2 * 512, 0)], mamba2(36, 4096, 16, 128), 80e9),
    ("Phi-4-mini", usual("phi3", 32, 3072, 24, 8, 8192, 200064, sliding_window=262144, max_position_embeddings=131072,
     tie_word_embeddings=True, rope_scaling={"type": "longrope"}), [(32, 8 * 256, 0)], 0, 3.84e9),
    ("SmolLM3-3B", usual("smollm3", 36, 2048, 16, 4, 11008, 128256, no_rope_layer_interval=4, use_sliding_window=False,
     no_rope_layers=[1, 1, 1, 0] * 9, sliding_window=None, tie_word_embeddings=True), [(36, 4 * 256, 0)], 0, 3.08e9),
    ("Gemma-2-9B", usual("gemma2", 42, 3584, 16, 8, 14336, 256000, head_dim=256, sliding_window=4096),
     [(21, 8 * 512, 0), (21, 8 * 512, 4096)], 0, 9.24e9),
    ("Gemma-3-4B", {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 2560,
     "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}},
     [(5, 4 * 512, 0), (29, 4 * 512, 1024)], 0, 3.88e9),
    ("Gemma-3n-E4B", {"model_type": "gemma3n", "text_config": usual("gemma3n_text", 35, 2048, 8, 2, [16384] * 35, 262400,
     head_dim=256, layer_types=rhythm(35, 5), num_kv_shared_layers=15, sliding_window=512)},
     [(4, 2 * 512, 0), (16, 2 * 512, 512)], 0, None),
    ("gpt-oss-120b", usual("gpt_oss", 36, 2880, 64, 8, 2880, 201088, head_dim=64, sliding_window=128, num_local_experts=128,
     num_experts_per_tok=4, layer_types=rhythm(36, 2), quantization_config={"quant_method": "mxfp4"}),
     [(18, 8 * 128, 0), (18, 8 * 128, 128)], 0, 116.8e9),
    ("GLM-4.5-Air", usual("glm4_moe", 46, 4096, 96, 8, 10944, 151552, head_dim=128, n_routed_experts=128, n_shared_experts=1,
     num_experts_per_tok=8, moe_intermediate_size=1408, first_k_dense_replace=1), [(46, 8 * 256, 0)], 0, 106e9),
    ("DeepSeek-V3", usual("deepseek_v3", 61, 7168, 128, 128, 18432, 129280, kv_lora_rank=512, q_lora_rank=1536,
     qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, n_routed_experts=256, n_shared_experts=1,
     num_experts_per_tok=8, moe_intermediate_size=2048, first_k_dense_replace=3, moe_layer_freq=1) | FP8,
     [(61, 576, 0)], 0, 671e9),
    ("Kimi-K2", usual("kimi_k2", 61, 7168, 64, 64, 18432, 163840, kv_lora_rank=512, q_lora_rank=1536, qk_nope_head_dim=128,
     qk_rope_head_dim=64, v_head_dim=128, n_routed_experts=384, n_shared_experts=1, num_experts_per_tok=8,
     moe_intermediate_size=2048, first_k_dense_replace=1), [(61, 576, 0)], 0, 1026e9),
    ("MiniMax-M2", usual("minimax_m2", 62, 3072, 48, 8, 1536, 200064, head_dim=128, num_local_experts=256,
     num_experts_per_tok=8) | FP8, [(62, 8 * 256, 0)], 0, 229e9),
    ("MiniMax-Text-01", usual("minimax_text_01", 80, 6144, 64, 8, 9216, 200064, head_dim=128, num_local_experts=32,
     num_experts_per_tok=2, attn_type_list=[int(i % 8 == 7) for i in range(80)]), [(10, 8 * 256, 0)],
     70 * 64 * 128 * 128 * 4, None),
    ("MiMo-V2-Flash", usual("mimo_v2_flash", 48, 4096, 64, 4, 16384, 152576, head_dim=192, v_head_dim=128, sliding_window=128,
     swa_num_attention_heads=64, swa_num_key_value_heads=8, swa_head_dim=192, swa_v_head_dim=128,
     hybrid_layer_pattern=[0] + [1, 1, 1, 1, 0] + [1, 1, 1, 1, 1, 0] * 7, moe_layer_freq=[0] + [1] * 47,
     moe_intermediate_size=2048, n_routed_experts=256, num_experts_per_tok=8),
     [(9, 4 * 320, 0), (39, 8 * 320, 128)], 0, 309e9),
    ("Command-R7B", usual("cohere2", 32, 4096, 32, 8, 14336, 256000, head_dim=128, sliding_window=4096,
     sliding_window_pattern=4), [(8, 8 * 256, 0), (24, 8 * 256, 4096)], 0, 8.03e9),
    ("OLMo-3-7B", usual("olmo3", 32, 4096, 32, 32, 11008, 100278, sliding_window=4096, layer_types=rhythm(32, 4)),
     [(8, 32 * 256, 0), (24, 32 * 256, 4096)], 0, 7.3e9),
    ("EXAONE-4.0-32B", usual("exaone4", 64, 5120, 40, 8, 27392, 102400, head_dim=128, sliding_window=4096,
     sliding_window_pattern="LLLG"), [(16, 8 * 256, 0), (48, 8 * 256, 4096)], 0, 32e9),
    ("Granite-3.3-8B", usual("granite", 40, 4096, 32, 8, 12800, 49159, tie_word_embeddings=True, attention_multiplier=0.0078125),
     [(40, 8 * 256, 0)], 0, 8.17e9),
    ("Granite-4.0-H-Small", usual("granitemoehybrid", 40, 4096, 32, 8, 768, 100352, num_local_experts=72,
     num_experts_per_tok=10, shared_intermediate_size=1536, tie_word_embeddings=True, mamba_n_heads=128, mamba_d_head=64,
     mamba_d_state=128, mamba_n_groups=1, mamba_d_conv=4, mamba_expand=2,
     layer_types=["attention" if i % 10 == 5 else "mamba" for i in range(40)]), [(4, 8 * 256, 0)],
     mamba2(36, 8192, 1, 128), 32.2e9),
    ("Bamba-9B", usual("bamba", 32, 4096, 32, 8, 14336, 128256, attn_layer_indices=[9, 18, 27], mamba_n_heads=128,
     mamba_d_head=64, mamba_d_state=128, mamba_n_groups=1, mamba_d_conv=4, mamba_expand=2), [(3, 8 * 256, 0)],
     mamba2(29, 8192, 1, 128), 9.78e9),
    ("Falcon-H1-7B", usual("falcon_h1", 44, 3072, 12, 2, 12288, 130048, head_dim=128, mamba_d_ssm=3072, mamba_n_heads=24,
     mamba_d_head=128, mamba_d_state=256, mamba_n_groups=1, mamba_d_conv=4), [(44, 2 * 256, 0)],
     mamba2(44, 3072, 1, 256), 7.59e9),
    ("Jamba-1.5-Mini", usual("jamba", 32, 4096, 32, 8, 14336, 65536, attn_layer_period=8, attn_layer_offset=4,
     expert_layer_period=2, expert_layer_offset=1, num_experts=16, num_experts_per_tok=2, mamba_d_state=16, mamba_d_conv=4,
     mamba_expand=2), [(4, 8 * 256, 0)], mamba2(28, 8192, 0, 16), 51.6e9),
    ("Nemotron-3-Nano-30B-A3B", usual("nemotron_h", 52, 2688, 32, 2, 1856, 131072, head_dim=128, hybrid_override_pattern=NANO,
     mamba_num_heads=64, mamba_head_dim=64, n_groups=8, ssm_state_size=128, conv_kernel=4, n_routed_experts=128,
     num_experts_per_tok=6, moe_intermediate_size=1856, n_shared_experts=1, moe_shared_expert_intermediate_size=3712),
     [(6, 2 * 256, 0)], mamba2(23, 4096, 8, 128), 31.6e9),
    ("LFM2-1.2B", usual("lfm2", 16, 2048, 32, 8, 8192, 65536, full_attn_idxs=[2, 5, 8, 10, 12, 14], conv_L_cache=3),
     [(6, 8 * 128, 0)], 10 * 2 * 2048 * 2, 1.17e9),
    ("a family of tomorrow, in layer_types", usual("tomorrow", 8, 1024, 8, 2, 4096, 32000, sliding_window=256,
     layer_types=rhythm(8, 4)), [(2, 2 * 256, 0), (6, 2 * 256, 256)], 0, None),
]

for name, config, parts, state, parameters in MODELS:
    sizes = [state + sum(2 * layers * numbers * (min(t, window) if window else t) for layers, numbers, window in parts)
             for t in TOKENS]
    print(json.dumps({"name": name, "config": config, "bytes": sizes} | ({"parameters": parameters} if parameters else {})))
