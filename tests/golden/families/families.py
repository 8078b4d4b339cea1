"""families.py - a small random model of every family, as a folder and as a GGUF file. Standard library only: the same seed
gives the same numbers everywhere, so the models are made where they are needed and only their logits are stored.

usage: families.py OUT_DIR [NAME...]
"""
import array, json, math, os, random, shutil, struct, sys

here = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(here, "..", "..", "data")
sys.path.insert(0, DATA)
import tiny as plain  # tests/data/tiny.py: the tokenizer of all these models, and how GGUF writes a value

VOCAB = plain.VOCAB
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}


YARN = {"type": "yarn", "rope_type": "yarn"}


def longrope(pairs):
    """As Phi-4-mini: the slower a pair turns, the more its turns are stretched."""
    return {"type": "longrope", "short_factor": [1 + i / 16 for i in range(pairs)],
            "long_factor": [1 + 2.0 * i for i in range(pairs)]}


def family(type, layers, width, heads, kv_heads, head_dim, hidden, **more):
    return {"model_type": type, "num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "head_dim": head_dim, "intermediate_size": hidden, "vocab_size": VOCAB,
            "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None,
            "hidden_act": "silu", "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": [2, 0],
            "pad_token_id": None} | more


# What config.json says. The heads that share a kv head are 1, 3 and 7; heads are 64, 80, 96 and 128 wide. ("dtype" is
# this script's: the type of the folder's tensors.)
FAMILIES = {
    "llama-2": family("llama", 2, 80, 2, 2, 64, 112, dtype="F16"),
    "llama-3": family("llama", 3, 72, 3, 1, 80, 96, rope_theta=500000.0, rope_scaling=LLAMA3, tie_word_embeddings=True),
    "llama-bias": family("llama", 2, 64, 4, 2, 32, 96, attention_bias=True, mlp_bias=True),
    "longchat": family("llama", 2, 64, 2, 2, 64, 88, rope_scaling={"type": "linear", "factor": 8.0}),
    "mistral": family("mistral", 2, 56, 7, 1, 64, 96, rope_theta=1000000.0, sliding_window=None, dtype="BF16"),
    "qwen2": family("qwen2", 2, 72, 7, 1, 64, 80, rope_theta=1000000.0, rms_norm_eps=1e-6, tie_word_embeddings=True,
                    use_sliding_window=False, sliding_window=64, max_window_layers=1),
    "qwen3": family("qwen3", 2, 64, 3, 1, 128, 80, rope_theta=1000000.0, rms_norm_eps=1e-6, tie_word_embeddings=True,
                    attention_bias=False, use_sliding_window=False, sliding_window=None, max_window_layers=2),
    "qwen3-moe-8": family("qwen3_moe", 2, 64, 6, 2, 32, 96, num_experts=8, num_experts_per_tok=2, norm_topk_prob=True,
                          moe_intermediate_size=40, decoder_sparse_step=1, mlp_only_layers=[]),
    "qwen3-moe-128": family("qwen3_moe", 2, 32, 3, 1, 64, 96, num_experts=128, num_experts_per_tok=8,
                            norm_topk_prob=True, moe_intermediate_size=8, decoder_sparse_step=1, mlp_only_layers=[]),
    "mixtral": family("mixtral", 2, 64, 4, 2, 32, 40, num_local_experts=4, num_experts_per_tok=2, sliding_window=None,
                      rope_theta=1000000.0),
    "phi-3": family("phi3", 2, 64, 2, 2, 96, 80, sliding_window=2047),
    "phi-4-mini": family("phi3", 2, 72, 3, 1, 128, 80, partial_rotary_factor=0.75, tie_word_embeddings=True,
                         sliding_window=None),
    "qwen3-yarn": family("qwen3", 2, 64, 3, 1, 64, 80, rope_theta=1000000.0, attention_bias=False, sliding_window=None,
                         rope_scaling=YARN | {"factor": 4.0, "original_max_position_embeddings": 64}),
    "phi-4-longrope": family("phi3", 2, 96, 3, 1, 32, 80, partial_rotary_factor=0.75, sliding_window=None,
                             original_max_position_embeddings=64, rope_scaling=longrope(12)),
    "phi-3-longrope": family("phi3", 2, 64, 2, 2, 32, 80, sliding_window=None, original_max_position_embeddings=2048,
                             rope_scaling=longrope(16)),
    "mistral-window": family("mistral", 2, 64, 4, 2, 32, 96, sliding_window=33),
    "qwen2-window": family("qwen2", 3, 72, 7, 1, 64, 80, use_sliding_window=True, sliding_window=50, max_window_layers=1,
                           tie_word_embeddings=True),
    "phi-3-window": family("phi3", 2, 64, 2, 2, 96, 80, sliding_window=128),
    "gemma-3": family("gemma3_text", 3, 64, 4, 1, 256, 96, rope_theta=1e6, rope_local_base_freq=10000.0,
                      rope_scaling={"rope_type": "linear", "factor": 8.0}, sliding_window=33, sliding_window_pattern=2,
                      query_pre_attn_scalar=256, rms_norm_eps=1e-6, tie_word_embeddings=True, dtype="BF16"),
    "gemma-2": family("gemma2", 3, 64, 4, 2, 32, 96, sliding_window=33, query_pre_attn_scalar=32, attn_logit_softcapping=1.5,
                      final_logit_softcapping=3.0, hidden_activation="gelu_pytorch_tanh", rms_norm_eps=1e-6,
                      tie_word_embeddings=True, dtype="BF16"),
    "gemma-2-plain": family("gemma2", 2, 64, 4, 2, 32, 96, sliding_window=33, query_pre_attn_scalar=24, attn_logit_softcapping=None,
                            final_logit_softcapping=None, hidden_activation="gelu_pytorch_tanh", rms_norm_eps=1e-6,
                            tie_word_embeddings=True),
    "gpt-oss": family("gpt_oss", 4, 64, 8, 2, 32, 40, num_local_experts=8, num_experts_per_tok=2, sliding_window=33,
                      rope_theta=150000.0, rope_scaling=YARN | {"factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
                      "truncate": False, "original_max_position_embeddings": 64}, attention_bias=True,
                      layer_types=["sliding_attention", "full_attention"] * 2, dtype="BF16"),
    "granite": family("granite", 2, 64, 4, 2, 16, 96, embedding_multiplier=12.0, residual_multiplier=0.22,
                      attention_multiplier=0.0625 / 2, logits_scaling=8.0, attention_bias=False, mlp_bias=False,
                      tie_word_embeddings=True),
    "smollm3": family("smollm3", 5, 64, 4, 2, 16, 96, rope_theta=5000000.0, no_rope_layers=[1, 1, 1, 0, 1],
                      no_rope_layer_interval=4, use_sliding_window=False, sliding_window=None, tie_word_embeddings=True),
    "seed-oss": family("seed_oss", 2, 64, 4, 2, 32, 96, rope_theta=1e7, attention_bias=True, attention_out_bias=False,
                       mlp_bias=False),
}
# Long prompts: the same, with the number of tokens.
LONG = {
    "long-linear": (32768, family("llama", 2, 32, 2, 1, 16, 48, rope_scaling={"type": "linear", "factor": 8.0},
                                  max_position_embeddings=32768, tie_word_embeddings=True)),
    "long-llama3": (131072, family("llama", 2, 32, 1, 1, 16, 48, rope_theta=500000.0, rope_scaling=LLAMA3,
                                   max_position_embeddings=131072, tie_word_embeddings=True)),
    "long-yarn": (131072, family("qwen2", 2, 32, 1, 1, 16, 48, rope_theta=1000000.0, max_position_embeddings=32768,
                                 use_sliding_window=False, rope_scaling=YARN | {"factor": 4.0,
                                 "original_max_position_embeddings": 32768}, tie_word_embeddings=True)),
    "long-longrope": (131072, family("phi3", 2, 32, 1, 1, 32, 48, sliding_window=None, partial_rotary_factor=0.75,
                                     max_position_embeddings=131072, original_max_position_embeddings=4096,
                                     rope_scaling=longrope(12), tie_word_embeddings=True)),
}
GGUF_ARCH = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "qwen3_moe": "qwen3moe",
             "phi3": "phi3", "mixtral": "llama", "granite": "granite", "smollm3": "smollm3", "seed_oss": "seed_oss",
             "gemma2": "gemma2", "gemma3_text": "gemma3", "gpt_oss": "gpt-oss"}
FOLDERS = {"mistral-window", "qwen2-window", "gemma-2-plain"}  # GGUF files do not say this
PAIRS = {"llama", "granite", "smollm3"}  # architectures whose GGUF files have rows of q and k in rotary pairs


# Families whose model is also the text's in folders of these types, with tensors under other names.
PICTURES = {"mistral": ("mistral3", lambda t: "language_model." + t),
            "qwen3": ("qwen3_vl", lambda t: t.replace("model.", "model.language_model."))}
PROMPT, CONTEXT, NEW, POSITIONS, LAST = 150, 100, 20, (0, 1, 6, 7, 63, 64, 127), 8
STOPS = {0, 2}


def config_of(name):
    return FAMILIES.get(name) or LONG[name][1]


def prompt(name):
    return random.Random(name).choices(range(3, VOCAB), k=LONG[name][0] if name in LONG else PROMPT)


def is_gemma(c):
    return c["model_type"].startswith("gemma")


# ---- weights ----

def matrices(c):
    """Hugging Face's name -> shape, layer by layer."""
    D, K, F = c["hidden_size"], c["head_dim"], c["intermediate_size"]
    q, kv = c["num_attention_heads"] * K, c["num_key_value_heads"] * K
    yield "model.embed_tokens.weight", (VOCAB, D)
    for layer in range(c["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", (D,)
        if c["model_type"] == "phi3":
            yield at + "self_attn.qkv_proj.weight", (q + 2 * kv, D)
        else:
            for name, n in ("q", q), ("k", kv), ("v", kv):
                yield f"{at}self_attn.{name}_proj.weight", (n, D)
                if c["model_type"] == "qwen2" or c.get("attention_bias"):
                    yield f"{at}self_attn.{name}_proj.bias", (n,)
        yield at + "self_attn.o_proj.weight", (D, q)
        if c.get("attention_bias") and "attention_out_bias" not in c:
            yield at + "self_attn.o_proj.bias", (D,)
        if c["model_type"] == "gpt_oss":
            yield at + "self_attn.sinks", (c["num_attention_heads"],)
        if c["model_type"].startswith(("qwen3", "gemma3")):
            yield at + "self_attn.q_norm.weight", (K,)
            yield at + "self_attn.k_norm.weight", (K,)
        yield at + "post_attention_layernorm.weight", (D,)
        if is_gemma(c):
            yield at + "pre_feedforward_layernorm.weight", (D,)
            yield at + "post_feedforward_layernorm.weight", (D,)
        if c["model_type"] == "phi3":
            yield at + "mlp.gate_up_proj.weight", (2 * F, D)
            yield at + "mlp.down_proj.weight", (D, F)
        elif c["model_type"] == "gpt_oss":
            E = c["num_local_experts"]
            yield at + "mlp.router.weight", (E, D)
            yield at + "mlp.router.bias", (E,)
            yield at + "mlp.experts.gate_up_proj", (E, D, 2 * F)
            yield at + "mlp.experts.gate_up_proj_bias", (E, 2 * F)
            yield at + "mlp.experts.down_proj", (E, F, D)
            yield at + "mlp.experts.down_proj_bias", (E, D)
        elif c["model_type"] == "mixtral":
            yield at + "block_sparse_moe.gate.weight", (c["num_local_experts"], D)
            for e in range(c["num_local_experts"]):
                for name, shape in ("w1", (F, D)), ("w2", (D, F)), ("w3", (F, D)):
                    yield f"{at}block_sparse_moe.experts.{e}.{name}.weight", shape
        elif "num_experts" in c:
            X = c["moe_intermediate_size"]
            yield at + "mlp.gate.weight", (c["num_experts"], D)
            for e in range(c["num_experts"]):
                for name, shape in ("gate", (X, D)), ("up", (X, D)), ("down", (D, X)):
                    yield f"{at}mlp.experts.{e}.{name}_proj.weight", shape
        else:
            for name, shape in ("gate", (F, D)), ("up", (F, D)), ("down", (D, F)):
                yield f"{at}mlp.{name}_proj.weight", shape
                if c.get("mlp_bias"):
                    yield f"{at}mlp.{name}_proj.bias", shape[:1]
    yield "model.norm.weight", (D,)
    if not c["tie_word_embeddings"]:
        yield "lm_head.weight", (VOCAB, D)


def numbers(name, tensor, shape):
    """Around zero, so wide that a row keeps its length; norms around one, Gemma's around zero; biases small. Sixteen bits hold
    them exactly. name: a family's, or another text."""
    rng = random.Random(f"{name} {tensor}")
    n = math.prod(shape)
    if len(shape) == 1:
        middle, width = (0, 32) if tensor.endswith("bias") else (0 if name.startswith("gemma") else 128, 48)
    else:
        middle, width = 0, min(127, int(128 * 3.5 / shape[1] ** 0.5))
    return array.array("f", ((middle + rng.randint(-width, width)) / 128 for _ in range(n)))


def weights(name):
    return {tensor: (shape, numbers(name, tensor, shape)) for tensor, shape in matrices(config_of(name))}


def encoded(values, dtype):
    if dtype == "F16":
        return struct.pack(f"<{len(values)}e", *values)
    raw = values.tobytes() if sys.byteorder == "little" else struct.pack(f"<{len(values)}f", *values)
    return b"".join(raw[i + 2:i + 4] for i in range(0, len(raw), 4)) if dtype == "BF16" else raw


# ---- the folder ----

def write_folder(path, name, tensors):
    os.makedirs(path, exist_ok=True)
    config = dict(config_of(name))
    dtype = config.pop("dtype", "F32")
    names = list(tensors)
    shards = {"model.safetensors": names} if name != "mistral" else {
        "model-00001-of-00002.safetensors": names[:5], "model-00002-of-00002.safetensors": names[5:]}
    for shard, its in shards.items():
        header, data = {}, b""
        for tensor in its:
            shape, values = tensors[tensor]
            start = len(data)
            data += encoded(values, dtype)
            header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [start, len(data)]}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(os.path.join(path, shard), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + data)
    if len(shards) > 1:
        with open(os.path.join(path, "model.safetensors.index.json"), "w") as f:
            json.dump({"metadata": {}, "weight_map": {t: shard for shard, its in shards.items() for t in its}}, f)
    with open(os.path.join(path, "config.json"), "w") as f:
        json.dump(config, f, indent=1)
    for file in "tokenizer.json", "tokenizer_config.json":
        shutil.copy(os.path.join(DATA, "tiny", file), path)


# ---- the GGUF file ----

GGUF_LAYER = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.qkv_proj": "attn_qkv", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm",
    "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up",
    "mlp.gate": "ffn_gate_inp", "mlp.router": "ffn_gate_inp", "experts.gate_proj": "ffn_gate_exps", "experts.up_proj": "ffn_up_exps",
    "experts.down_proj": "ffn_down_exps", "block_sparse_moe.gate": "ffn_gate_inp", "experts.w1": "ffn_gate_exps",
    "experts.w2": "ffn_down_exps", "experts.w3": "ffn_up_exps",
}
GGUF_ENDS = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def paired(values, heads, columns):
    """llama.cpp's order of the rows of q and k: row j of a head and row j + half a head side by side."""
    K = len(values) // columns // heads
    order = [h * K + side * K // 2 + j for h in range(heads) for j in range(K // 2) for side in (0, 1)]
    return array.array("f", (x for r in order for x in values[r * columns:(r + 1) * columns]))


def gguf_name(tensor):
    if tensor.endswith(".sinks"):
        return f"blk.{tensor.split('.')[2]}.attn_sinks.weight"
    stem, kind = tensor.rsplit(".", 1)
    if stem in GGUF_ENDS:
        return f"{GGUF_ENDS[stem]}.{kind}"
    _, _, layer, rest = stem.split(".", 3)
    if ".experts." in rest:
        rest = "experts." + rest.rsplit(".", 1)[1]
    return f"blk.{layer}.{GGUF_LAYER[rest]}.{kind}"


def transposed(values, rows, columns, first=0, step=1):
    """The matrices (rows, columns) of a stack, of their columns every `step` from the first, as rows."""
    return array.array("f", (values[m + r * columns + c] for m in range(0, len(values), rows * columns)
                             for c in range(first, columns, step) for r in range(rows)))


def of_experts(tensors):
    """gpt-oss' matrices of experts as llama.cpp's converter writes them: gate and up apart, rows for columns."""
    out = {}
    for tensor, (shape, values) in tensors.items():
        stem, kind = (tensor[:-5], "bias") if tensor.endswith("_bias") else (tensor, "weight")
        if ".experts." not in tensor:
            out[tensor] = shape, values
        elif kind == "bias":
            for i, part in enumerate(["gate_proj", "up_proj"] if "gate_up" in stem else ["down_proj"]):
                step = 2 if "gate_up" in stem else 1
                out[f"{stem.replace('gate_up_proj', part)}.bias"] = (shape[0], shape[1] // step), values[i::step]
        else:
            step = 2 if "gate_up" in stem else 1
            for i, part in enumerate(["gate_proj", "up_proj"] if step == 2 else ["down_proj"]):
                out[f"{stem.replace('gate_up_proj', part)}.weight"] = (
                    (shape[0], shape[2] // step, shape[1]), transposed(values, shape[1], shape[2], i, step))
    return out


def gguf_tensors(name, tensors):
    """GGUF's name -> shape, numbers, as llama.cpp's converter writes them: matrices F32 here."""
    c, out = FAMILIES[name], {}
    if c["model_type"] == "gpt_oss":
        tensors = of_experts(tensors)
    for tensor, (shape, values) in tensors.items():
        own = gguf_name(tensor)
        if c["model_type"] in ("seed_oss", "gpt_oss"):
            own = own.replace("ffn_norm", "post_attention_norm")
        if is_gemma(c):
            if "post_attention_layernorm" in tensor:
                own = own.replace("ffn_norm", "post_attention_norm")
            if len(shape) == 1:
                values = array.array("f", (1 + x for x in values))
        if GGUF_ARCH[c["model_type"]] in PAIRS and (".q_proj." in tensor or ".k_proj." in tensor):
            heads = c["num_attention_heads" if ".q_proj." in tensor else "num_key_value_heads"]
            values = paired(values, heads, shape[1] if len(shape) > 1 else 1)
        if ".experts." in tensor and c["model_type"] != "gpt_oss":
            had = out.get(own, ((0, *shape), array.array("f")))
            out[own] = ((had[0][0] + 1, *shape), had[1] + values)
        else:
            out[own] = (tuple(shape), values)
    if c["rope_scaling"] and c["rope_scaling"].get("rope_type") == "llama3":
        out["rope_freqs.weight"] = ((c["head_dim"] // 2,), array.array("f", plain.llama3_divisors(
            c["rope_theta"], head=c["head_dim"], factor=c["rope_scaling"]["factor"])))
    if "long_factor" in (c["rope_scaling"] or {}):
        for kind in "long", "short":
            factors = c["rope_scaling"][kind + "_factor"]
            out[f"rope_factors_{kind}.weight"] = (len(factors),), array.array("f", factors)
    return out


def gguf_keys(name):
    c = FAMILIES[name]
    arch, K = GGUF_ARCH[c["model_type"]], c["head_dim"]
    keys = {
        "general.architecture": arch, "general.name": name, f"{arch}.block_count": c["num_hidden_layers"],
        f"{arch}.context_length": c["max_position_embeddings"], f"{arch}.embedding_length": c["hidden_size"],
        f"{arch}.feed_forward_length": c["intermediate_size"],
        f"{arch}.attention.head_count": c["num_attention_heads"],
        f"{arch}.attention.head_count_kv": c["num_key_value_heads"], f"{arch}.attention.key_length": K,
        f"{arch}.attention.value_length": K, f"{arch}.rope.freq_base": c["rope_theta"],
        f"{arch}.rope.dimension_count": int(K * c.get("partial_rotary_factor", 1)),
        f"{arch}.attention.layer_norm_rms_epsilon": c["rms_norm_eps"], f"{arch}.vocab_size": VOCAB,
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": plain.TOKENS,
        "tokenizer.ggml.token_type": [3] * len(plain.SPECIAL) + [1] * (VOCAB - len(plain.SPECIAL)),
        "tokenizer.ggml.merges": plain.MERGES, "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": False, "tokenizer.chat_template": plain.TEMPLATE,
    }
    if c["rope_scaling"] and "linear" in c["rope_scaling"].values():
        keys |= {f"{arch}.rope.scaling.type": "linear", f"{arch}.rope.scaling.factor": c["rope_scaling"]["factor"]}
    if c["rope_scaling"] and c["rope_scaling"].get("type") == "yarn":
        keys |= {f"{arch}.rope.scaling.type": "yarn", f"{arch}.rope.scaling.factor": c["rope_scaling"]["factor"],
                 f"{arch}.rope.scaling.original_context_length": c["rope_scaling"]["original_max_position_embeddings"]}
    if "original_max_position_embeddings" in c:
        original = c["original_max_position_embeddings"]
        attention = math.sqrt(1 + math.log(c["max_position_embeddings"] / original) / math.log(original))
        keys |= {f"{arch}.rope.scaling.original_context_length": original, f"{arch}.rope.scaling.attn_factor": attention}
    if "num_experts" in c:
        keys |= {f"{arch}.expert_count": c["num_experts"], f"{arch}.expert_used_count": c["num_experts_per_tok"],
                 f"{arch}.expert_feed_forward_length": c["moe_intermediate_size"]}
    if "logits_scaling" in c:
        keys |= {f"{arch}.{own}": c[name] for name, own in (
            ("embedding_multiplier", "embedding_scale"), ("residual_multiplier", "residual_scale"),
            ("attention_multiplier", "attention.scale"), ("logits_scaling", "logit_scale"))}
    if "num_local_experts" in c:
        keys |= {f"{arch}.expert_count": c["num_local_experts"], f"{arch}.expert_used_count": c["num_experts_per_tok"]}
    if "sliding_window_pattern" in c:
        keys[f"{arch}.attention.sliding_window_pattern"] = c["sliding_window_pattern"]
    if arch == "gpt-oss":
        keys[f"{arch}.expert_feed_forward_length"] = c["intermediate_size"]
    keys |= {f"{arch}.{key}": c[key] for key in ("attn_logit_softcapping", "final_logit_softcapping") if key in c}
    if arch in ("phi3", "gemma2", "gemma3", "gpt-oss"):
        keys[f"{arch}.attention.sliding_window"] = c["sliding_window"] or 0
    return keys


def write_gguf(path, keys, tensors):
    table, data = b"", b""
    for own, (shape, values) in tensors.items():
        table += plain.gguf_text(own) + struct.pack("<I", len(shape))
        table += b"".join(struct.pack("<Q", d) for d in reversed(shape)) + struct.pack("<IQ", 0, len(data))
        data += encoded(values, "F32")
        data += bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    head += b"".join(plain.gguf_text(k) + plain.gguf_value(v) for k, v in keys.items()) + table
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + data)


def write_gguf_parts(path, keys, tensors, n):
    """In n files; returns the first."""
    names, paths = list(tensors), [f"{path}-{i + 1:05d}-of-{n:05d}.gguf" for i in range(n)]
    for i, part in enumerate(paths):
        its = {t: tensors[t] for t in names[i * len(names) // n:(i + 1) * len(names) // n]}
        of = {"split.no": i, "split.count": n, "split.tensors.count": len(names)}
        write_gguf(part, (keys if i == 0 else {}) | of, its)
    return paths[0]


def make(name, out):
    """Writes both, where there are both; returns their paths."""
    tensors = weights(name)
    folder, gguf = os.path.join(out, name), os.path.join(out, name + ".gguf")
    write_folder(folder, name, tensors)
    if name in FOLDERS:
        return folder,
    if name == "llama-2":
        gguf = write_gguf_parts(os.path.join(out, name), gguf_keys(name), gguf_tensors(name, tensors), 3)
    else:
        write_gguf(gguf, gguf_keys(name), gguf_tensors(name, tensors))
    return folder, gguf


def make_with_pictures(name, out):
    """The same model as the text's in a folder that has another one for pictures."""
    outer, rename = PICTURES[name]
    tensors = {rename(tensor): t for tensor, t in weights(name).items()}
    tensors["visual.patch_embed.proj.weight"] = (1, 1, 1, 1, 4), array.array("f", [0] * 4)
    folder = os.path.join(out, outer)
    write_folder(folder, name, tensors)
    with open(os.path.join(folder, "config.json")) as f:
        text = json.load(f)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"model_type": outer, "text_config": text, "vision_config": {}}, f)
    return folder


def make_long(name, out):
    folder = os.path.join(out, name)
    write_folder(folder, name, weights(name))
    return folder


if __name__ == "__main__":
    for each in sys.argv[2:] or FAMILIES:
        print(*make(each, sys.argv[1]))
