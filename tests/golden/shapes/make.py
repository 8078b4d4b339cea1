"""make.py SIMULATOR >catalogue.jsonl - the 62 models of kvcache-simulator 0.1.3 (unpacked in the folder SIMULATOR): the
fields of config.json that its catalogue has, under their names there, and the bytes that it computes.

Precisions are its own defaults, and states count, but for what its fields and the published files decide: 16 bits for
recurrent states only where mamba_ssm_dtype is not float32. "bytes" are at 1, 1000, 32768 and 131072 tokens; null: it has no
formula. Where an engine keeps something else, "engine" has the bytes, and "why" says what.
"""
import json, math, sys
sys.path.insert(0, sys.argv[1])
from kvcache_sim import calculator

TOKENS = (1, 1000, 32768, 131072)
TYPES = {"deepseek-v3": "deepseek_v3", "deepseek-r1": "deepseek_v3", "deepseek-v3.2": "deepseek_v32",
         "deepseek-v4": "deepseek_v4", "deepseek-v4.1": "deepseek_v41", "glm-5": "glm_moe_dsa", "kimi-k2": "kimi_k2",
         "kimi-k3": "kimi_linear", "qwen3.": "qwen3_5_moe", "qwen3-": "qwen3", "qwen2.5": "qwen2", "llama": "llama",
         "gemma-4": "gemma4_text", "cohere-command-r-": "cohere", "cohere-command-r7b": "cohere2",
         "cohere-command-a": "cohere2", "mimo": "mimo_v2", "minimax-m2": "minimax_m2", "minimax-m3": "minimax_m3",
         "inkling": "inkling_mm_model", "dots3": "dots3_note", "glm-5.3-flash": "glm5_next"}
# Fields of the catalogue that no config.json has, or that describe the calculator.
OWN = ("full_attention_layers", "linear_attention_layers", "sliding_attention_layers", "kda_", "stored_layers", "default_",
       "fixed_precision", "precision", "draft", "include", "sparse_attention", "index_n", "index_l", "index_block", "qk_head",
       "indexer_", "disable", "hit_", "mtp", "num_nextn", "model_max", "config_max", "sliding_window_size", "index_tail",
       "kv_quant", "kv_scale", "kv_precision", "swa_bytes", "swa_quant", "swa_scale", "use_mtp", "num_mtp", "rotary", "sconv_state")

def spread(n, full):
    """layer_types with `full` layers of full attention, the last of each stretch, and windows before."""
    every = n // full
    return ["full_attention" if (i + 1) % every == 0 and (i + 1) // every <= full else "sliding_attention" for i in range(n)]

def config_of(model):
    f = model["fields"]
    name = max((t for t in TYPES if model["id"].startswith(t)), key=len)
    c = {"model_type": TYPES[name]} | {k: v for k, v in f.items() if not k.startswith(OWN) or k in ("index_head_dim",)}
    n, full = f["num_hidden_layers"], f.get("full_attention_layers")
    if model["formula"] == "qwen_linear_full_hybrid":
        c["full_attention_interval"] = n // full
        c = {"model_type": c["model_type"], "text_config": c}
    if model["formula"].startswith("kimi_kda"):
        every = [4 * (i + 1) for i in range(full - 1)] + [n]
        c["linear_attn_config"] = {"num_heads": f["kda_num_heads"], "head_dim": f["kda_head_dim"], "full_attn_layers": every,
                                   "short_conv_kernel_size": f["kda_conv_kernel_size"]}
    if model["formula"] in ("mixed_full_sliding_gqa", "dots3_note_hybrid", "inkling_hybrid"):
        stored = f.get("stored_layers", n)
        c["layer_types"] = (spread(stored, full) * 3)[:n]
        c.pop("sliding_window_pattern", None)
    if model["formula"] == "mixed_full_sliding_gqa" and "mimo" in model["id"]:
        c["hybrid_layer_pattern"] = [int(t != "full_attention") for t in c.pop("layer_types")]
    if "indexer_shared_layers" in f and f["indexer_shared_layers"]:
        c |= {k: f[k] for k in ("index_topk_freq", "index_skip_topk_offset")}
    if model["formula"] == "minimax_msa":
        sparse = [int(i >= f["full_attention_layers"]) for i in range(n)]
        c["sparse_attention_config"] = {"sparse_index_dim": c.pop("index_head_dim"), "sparse_attention_freq": sparse}
    return c

def simulated(model, **options):
    try:
        return [int(calculator.calculate_cache_size(model, tokens=t, include_linear_attention_state=True, **options).total_bytes)
                for t in TOKENS]
    except ValueError:
        return None

def of_engine(model):
    """What vLLM and SGLang keep where that is something else; None: nothing else."""
    f = model["fields"]
    if model["formula"] == "dsa_mla":
        keys = f.get("indexer_full_layers", f["num_hidden_layers"]) * (f["index_head_dim"] + 4)
        entries = f["num_hidden_layers"] * 2 * (f["kv_lora_rank"] + f["qk_rope_head_dim"])
        return [t * (keys + entries) for t in TOKENS], "indexer keys of 8 bits with a scale of 4 bytes for 128"
    if model["formula"] == "deepseek_v4_hybrid":
        row, key, bytes_ = f["head_dim"] - 64 + 2 * 64 + 8, f["index_head_dim"] + 4, []
        for t in TOKENS:
            rates = [r for r in f["compress_ratios"][:f["num_hidden_layers"]]]
            bytes_.append(sum(min(t, f["sliding_window"]) * row + (t // r * row if r else 0) + (t // 4 * key if r == 4 else 0)
                              for r in rates))
        return bytes_, "rows of fp8_ds_mla, 584 bytes; indexer keys of 8 bits with scales; a window only of tokens there are"
    if model["fields"].get("mamba_ssm_dtype") == "float32" and f.get("default_recurrent_state_precision_id") == "bf16_fp16":
        return simulated(model, recurrent_state_precision="fp32"), "states as mamba_ssm_dtype says, float32"
    if model["formula"] == "dots3_note_hybrid":
        return [t * f["full_attention_layers"] * (2 * (f["kv_lora_rank"] + f["qk_rope_head_dim"]) + f["index_head_dim"] + 4)
                + min(t, f["sliding_window"]) * f["sliding_attention_layers"] * 2 * (f["swa_kv_lora_rank"] + f["swa_qk_rope_head_dim"])
                for t in TOKENS], "no formula in 0.1.3: its fields; indexer keys in layers of full attention"
    if model["formula"] == "inkling_hybrid":
        wide = lambda heads, dim: 2 * f[heads] * f[dim]
        full, window = wide("num_key_value_heads", "head_dim"), wide("swa_num_key_value_heads", "swa_head_dim")
        kinds = ((f["full_attention_layers"], full, 1 << 62), (f["sliding_attention_layers"], window, f["sliding_window"]))
        return [sum(n * (2 * w * min(t, most) + 3 * 2 * (w + 2 * f["hidden_size"])) for n, w, most in kinds)
                for t in TOKENS], "no formula in 0.1.3: its fields; 3 inputs of the convolutions behind k, v, attention, MLP"
    if model["formula"] == "deepseek_v41_shared":
        d, i, n = f["head_dim"], f["index_head_dim"], f["num_hidden_layers"]
        owners = [f["compress_ratios"][l] for l in f["kv_source_layer_ids"]]
        return [min(t, f["sliding_window"]) * n * (d + d // 32) + sum(t // r * (d // 2 + d // 16 + i // 2 + i // 32) for r in owners)
                for t in TOKENS], "no formula in 0.1.3: its fields; entries of four layers that own them"
    if model["formula"] == "kimi_kda_dsa_mla_hybrid":
        k = f["kda_num_heads"] * f["kda_head_dim"]
        state = f["kda_layers"] * (3 * 3 * k * 2 + k * f["kda_head_dim"] * 4)
        return [state + t * f["full_attention_layers"] * 2 * f["kv_lora_rank"]
                + t // f["index_kpool"] * f["full_attention_layers"] * (f["index_head_dim"] + 4)
                for t in TOKENS], "no formula in 0.1.3: its fields; an indexer key for index_kpool tokens"
    return None, None

for model in calculator.load_models_data()["models"]:
    engine, why = of_engine(model) or (None, None)
    row = {"name": model["id"], "config": config_of(model), "bytes": simulated(model)}
    print(json.dumps(row | ({"engine": engine, "why": why} if engine else {})))
