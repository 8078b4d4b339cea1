#!/usr/bin/env python3
"""tiny.py [OUT_DIR] - write tiny.gguf and the folder tiny/ (beside this script): one Llama of a single layer in both
containers. Weights are sixteenths from -8 to 7, exact in each of the eight number formats, so both must read the same.
tiny-llama3.gguf is the same with Llama 3.2's rotary scaling, which GGUF keeps as a tensor of divisors."""
import json
import math
import os
import random
import struct
import sys

D, HEADS, KV_HEADS, HEAD, FF = 32, 2, 1, 16, 64
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["h e", "l l", "he ll", "hell o", "\u0120 w", "i n", "o r", "\u0120w or", "l d", "\u0120wor ld", "\u0120 hello",
          "\u0120 \u0120"]
TEMPLATE = ("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
            "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}...")


def alphabet():
    own = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    rest = [b for b in range(256) if b not in own]
    return [chr(b) if b in own else chr(256 + rest.index(b)) for b in range(256)]


TOKENS = SPECIAL + alphabet() + [m.replace(" ", "") for m in MERGES]
VOCAB = len(TOKENS)

# Hugging Face's name -> (GGUF's name, shape, type in GGUF, type in the folder)
TENSORS = {
    "model.embed_tokens": ("token_embd", (VOCAB, D), "Q8_0", "BF16"),
    "model.norm": ("output_norm", (D,), "F32", "F32"),
    "model.layers.0.input_layernorm": ("blk.0.attn_norm", (D,), "F32", "F32"),
    "model.layers.0.self_attn.q_proj": ("blk.0.attn_q", (HEADS * HEAD, D), "Q8_0", "F16"),
    "model.layers.0.self_attn.k_proj": ("blk.0.attn_k", (KV_HEADS * HEAD, D), "Q5_0", "BF16"),
    "model.layers.0.self_attn.v_proj": ("blk.0.attn_v", (KV_HEADS * HEAD, D), "Q5_1", "F32"),
    "model.layers.0.self_attn.o_proj": ("blk.0.attn_output", (D, HEADS * HEAD), "F16", "BF16"),
    "model.layers.0.post_attention_layernorm": ("blk.0.ffn_norm", (D,), "F32", "BF16"),
    "model.layers.0.mlp.gate_proj": ("blk.0.ffn_gate", (FF, D), "Q4_0", "F16"),
    "model.layers.0.mlp.up_proj": ("blk.0.ffn_up", (FF, D), "Q4_1", "BF16"),
    "model.layers.0.mlp.down_proj": ("blk.0.ffn_down", (D, FF), "BF16", "F32"),
}
GGML_TYPE = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "BF16": 30}
STEP = 1 / 16


def nibbles(q):
    return bytes((q[j] & 15) | (q[j + 16] & 15) << 4 for j in range(16))


def fifth(q):
    return struct.pack("<I", sum((v >> 4) << j for j, v in enumerate(q)))


def block(kind, v):
    half = lambda x: struct.pack("<e", x)
    if kind == "Q8_0":
        return half(STEP) + struct.pack("32b", *v)
    if kind == "Q4_0":
        return half(STEP) + nibbles([x + 8 for x in v])
    if kind == "Q4_1":
        return half(STEP) + half(-8 * STEP) + nibbles([x + 8 for x in v])
    q = [x + 16 for x in v] if kind == "Q5_0" else [x + 12 for x in v]
    return half(STEP) + (b"" if kind == "Q5_0" else half(-12 * STEP)) + fifth(q) + nibbles(q)


def encode(kind, v):
    if kind == "F32":
        return b"".join(struct.pack("<f", x * STEP) for x in v)
    if kind == "F16":
        return b"".join(struct.pack("<e", x * STEP) for x in v)
    if kind == "BF16":
        return b"".join(struct.pack("<f", x * STEP)[2:] for x in v)
    return b"".join(block(kind, v[i:i + 32]) for i in range(0, len(v), 32))


def paired(v, heads):
    """llama.cpp's order of the rows of q and k: row j of a head and row j + HEAD / 2 side by side."""
    rows = [v[i:i + D] for i in range(0, len(v), D)]
    order = [h * HEAD + s * HEAD // 2 + j for h in range(heads) for j in range(HEAD // 2) for s in range(2)]
    return [x for r in order for x in rows[r]]


def gguf_text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def gguf_value(v):
    if isinstance(v, bool):
        return struct.pack("<I?", 7, v)
    if isinstance(v, int):
        return struct.pack("<II", 4, v)
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    if isinstance(v, str):
        return struct.pack("<I", 8) + gguf_text(v)
    kind, items = (8, map(gguf_text, v)) if isinstance(v[0], str) else (5, (struct.pack("<i", x) for x in v))
    return struct.pack("<IIQ", 9, kind, len(v)) + b"".join(items)


def llama3_divisors(theta, head=HEAD, factor=32, low=1, high=4, original=8192):
    """As transformers computes them (modeling_rope_utils.py, _compute_llama3_parameters)."""
    divisors = []
    for j in range(head // 2):
        length = 2 * math.pi * theta ** (2 * j / head)
        smooth = (original / length - low) / (high - low)
        divisors.append(1 if length < original / high else factor if length > original / low
                        else 1 / ((1 - smooth) / factor + smooth))
    return divisors


def write_gguf(path, weights, theta=10000.0, divisors=()):
    keys = {
        "general.architecture": "llama", "general.name": "tiny", "llama.block_count": 1, "llama.embedding_length": D,
        "llama.feed_forward_length": FF, "llama.context_length": 256, "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS, "llama.rope.dimension_count": HEAD, "llama.rope.freq_base": theta,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": TOKENS, "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (VOCAB - len(SPECIAL)),
        "tokenizer.ggml.merges": MERGES, "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": False, "tokenizer.chat_template": TEMPLATE,
    }
    table, data = b"", b""
    for name, (own, shape, kind, _) in TENSORS.items():
        v = weights[name]
        if own.endswith("attn_q") or own.endswith("attn_k"):
            v = paired(v, HEADS if own.endswith("q") else KV_HEADS)
        table += gguf_text(own + ".weight") + struct.pack("<I", len(shape))
        table += b"".join(struct.pack("<Q", d) for d in reversed(shape)) + struct.pack("<IQ", GGML_TYPE[kind], len(data))
        data += encode(kind, v)
        data += bytes(-len(data) % 32)
    if divisors:
        table += gguf_text("rope_freqs.weight") + struct.pack("<IQIQ", 1, len(divisors), GGML_TYPE["F32"], len(data))
        data += struct.pack(f"<{len(divisors)}f", *divisors)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(TENSORS) + bool(divisors), len(keys))
    head += b"".join(gguf_text(k) + gguf_value(v) for k, v in keys.items()) + table
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + data)


def write_safetensors(path, names, weights):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name in names:
        kind, start = TENSORS[name][3], len(data)
        data += encode(kind, weights[name])
        header[name + ".weight"] = {"dtype": kind, "shape": TENSORS[name][1], "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def write_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1)
        f.write("\n")


def write_folder(path, weights):
    os.makedirs(path, exist_ok=True)
    names = list(TENSORS)
    shards = {"model-00001-of-00002.safetensors": names[:4], "model-00002-of-00002.safetensors": names[4:]}
    for shard, its in shards.items():
        write_safetensors(f"{path}/{shard}", its, weights)
    write_json(f"{path}/model.safetensors.index.json",
               {"weight_map": {f"{n}.weight": shard for shard, its in shards.items() for n in its}})
    write_json(f"{path}/config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": D,
        "num_hidden_layers": 1, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "intermediate_size": FF,
        "vocab_size": VOCAB, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "rope_scaling": None, "tie_word_embeddings": True, "eos_token_id": [2, 0]})
    write_json(f"{path}/tokenizer_config.json", {"bos_token": {"content": "<|im_start|>"}, "chat_template": TEMPLATE})
    special = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for i, t in enumerate(SPECIAL)]
    write_json(f"{path}/tokenizer.json", {
        "version": "1.0", "added_tokens": special, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]},
        "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(TOKENS)}, "merges": [m.split(" ") for m in MERGES]}})


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    draw = random.Random(1)
    size = lambda shape: shape[0] * (shape[1] if len(shape) > 1 else 1)
    weights = {name: [draw.randrange(-8, 8) for _ in range(size(t[1]))] for name, t in TENSORS.items()}
    write_gguf(f"{out}/tiny.gguf", weights)
    write_gguf(f"{out}/tiny-llama3.gguf", weights, 500000.0, llama3_divisors(500000.0))
    write_folder(f"{out}/tiny", weights)


if __name__ == "__main__":
    main()
