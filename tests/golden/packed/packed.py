"""packed.py - a small random Llama, Qwen3-MoE, or gpt-oss, whose matrices are quantised, in each layout that Hugging Face folders
have, and the same model in f32. Codes, zeros and scales are drawn; numbers are computed element by element. Standard
library only.

usage: packed.py OUT_DIR [NAME...]; packed.py tests/fuzz/corpus/hf_packed --seeds
"""
import hashlib, json, os, random, struct, sys, tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "families"))
import families

LLAMA = families.family("llama", 1, 192, 2, 1, 64, 160)
MOE = families.family("qwen3_moe", 1, 64, 2, 1, 32, 96, num_experts=4, num_experts_per_tok=2, norm_topk_prob=True,
                      moe_intermediate_size=32)
GPT_OSS = families.family("gpt_oss", 1, 64, 2, 1, 32, 32, num_local_experts=4, num_experts_per_tok=2, sliding_window=33,
                          attention_bias=True, layer_types=["sliding_attention"])
AWQ = [0, 2, 4, 6, 1, 3, 5, 7]  # the row in each place of a word
GROUP = 32


# ---- number formats ----

def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def bf16(x):
    bits, = struct.unpack("<I", struct.pack("<f", x))
    return struct.unpack("<f", struct.pack("<I", (bits + 0x7fff + (bits >> 16 & 1) & 0xffff0000)))[0]


def f16(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


def e4m3(code):
    sign, exponent, fraction = (-1 if code & 128 else 1), code >> 3 & 15, code & 7
    return sign * (fraction / 8 * 2**-6 if exponent == 0 else (1 + fraction / 8) * 2.0**(exponent - 7))


E4M3 = [e4m3(code) for code in range(256)]
E2M1 = [sign * x for sign in (1.0, -1.0) for x in (0, 0.5, 1, 1.5, 2, 3, 4, 6)]
ROUND = {"F32": f32, "F16": lambda x: f16(f32(x)), "BF16": lambda x: bf16(f32(x))}


def encode(values, dtype):
    if dtype == "F16":
        return struct.pack(f"<{len(values)}e", *values)
    if dtype == "BF16":
        return b"".join(struct.pack("<f", x)[2:] for x in values)
    return struct.pack(f"<{len(values)}f", *values)


def scales(rng, n, middle, dtype):
    return [ROUND[dtype](middle * rng.uniform(0.5, 1.5)) for _ in range(n)]


def words(codes, bits):
    """Codes one after the other, in words."""
    per = 32 // bits
    return b"".join(struct.pack("<I", sum(c << bits * j for j, c in enumerate(codes[i:i + per])))
                    for i in range(0, len(codes), per))


# ---- layouts: (rng, rows, cols) -> {end of the name: (dtype, shape, bytes)}, numbers ----

def finite_byte(rng):
    code = rng.randrange(256)
    return code if code & 127 != 127 else code & 0xf0


def fp8(scale_end, dtype, shape, also=()):
    """shape: of the scales, from rows and columns."""
    def make(rng, rows, cols):
        codes = [finite_byte(rng) for _ in range(rows * cols)]
        dims = shape(rows, cols)
        high, wide = (dims + [1, 1])[:2]
        scale = scales(rng, high * wide, 0.004, dtype)
        row_block, col_block = (rows if high == 1 else 1 if high == rows else 128), (cols if wide == 1 else 128)
        numbers = [ROUND[dtype](E4M3[codes[r * cols + c]] * scale[r // row_block * wide + c // col_block])
                   for r in range(rows) for c in range(cols)]
        parts = {".weight": ("F8_E4M3", [rows, cols], bytes(codes)), scale_end: (dtype, dims, encode(scale, dtype))}
        return parts | {end: ("F32", [], encode([0.5], "F32")) for end in also}, numbers
    return make


def blocks_of(rows, cols):
    return [-(-rows // 128), -(-cols // 128)]


def int8(rng, rows, cols):
    codes, scale = [rng.randrange(-127, 128) for _ in range(rows * cols)], scales(rng, rows, 0.001, "BF16")
    numbers = [bf16(f32(codes[r * cols + c] * scale[r])) for r in range(rows) for c in range(cols)]
    return {".weight": ("I8", [rows, cols], struct.pack(f"{rows * cols}b", *codes)),
            ".weight_scale": ("BF16", [rows, 1], encode(scale, "BF16"))}, numbers


def qweight(bits, kind, act_order=False, group=GROUP):
    """GPTQ (zeros plus 1 by the first convention, "v1") and AWQ: all by group, then row."""
    def make(rng, rows, cols):
        size = cols if group < 0 else group
        groups, per = cols // size, 32 // bits
        codes = [[rng.randrange(1 << bits) for _ in range(cols)] for _ in range(rows)]
        zeros = [[rng.randrange(1 << bits) for _ in range(rows)] for _ in range(groups)]
        scale = scales(rng, groups * rows, 0.4 / (1 << bits), "F16")
        index = [c // size for c in range(cols)]
        if act_order:
            rng.shuffle(index)
        plus = kind == "v1"
        numbers = [f16((codes[r][c] - zeros[index[c]][r] - plus) * scale[index[c] * rows + r])
                   for r in range(rows) for c in range(cols)]
        order = lambda row: [row[i + j] for i in range(0, rows, 8) for j in AWQ] if kind == "awq" else row
        if kind == "awq":
            packed = words([x for c in range(cols) for x in order([codes[r][c] for r in range(rows)])], bits)
            shape = [cols, rows // per]
        else:
            packed = words([codes[r][c + j] for c in range(0, cols, per) for r in range(rows) for j in range(per)], bits)
            shape = [cols // per, rows]
        parts = {".qweight": ("I32", shape, packed), ".scales": ("F16", [groups, rows], encode(scale, "F16")),
                 ".qzeros": ("I32", [groups, rows // per], words([x for z in zeros for x in order(z)], bits))}
        if kind != "awq":
            parts |= {".g_idx": ("I32", [cols], struct.pack(f"<{cols}i", *index)),
                      ".bias": ("F16", [rows], bytes(2 * rows))}
        return parts, numbers
    return make


def in_words(bits, group, asymmetric=False, dtype="BF16", act_order=False):
    def make(rng, rows, cols):
        size = group or cols
        groups, per = cols // size, 32 // bits
        codes = [rng.randrange(1 << bits) for _ in range(rows * cols)]
        zeros = [[rng.randrange(1 << bits) if asymmetric else 1 << bits - 1 for _ in range(groups)] for _ in range(rows)]
        scale = scales(rng, rows * groups, 0.4 / (1 << bits), dtype)
        index = [c // size for c in range(cols)]
        if act_order:
            rng.shuffle(index)
        numbers = [ROUND[dtype]((codes[r * cols + c] - zeros[r][index[c]]) * scale[r * groups + index[c]])
                   for r in range(rows) for c in range(cols)]
        parts = {".weight_packed": ("I32", [rows, cols // per], words(codes, bits)),
                 ".weight_scale": (dtype, [rows, groups], encode(scale, dtype)),
                 ".weight_shape": ("I64", [2], struct.pack("<2q", rows, cols))}
        if act_order:
            parts[".weight_g_idx"] = ("I32", [cols], struct.pack(f"<{cols}i", *index))
        if asymmetric:
            across = [zeros[r + j][g] for r in range(0, rows, per) for g in range(groups) for j in range(per)]
            parts[".weight_zero_point"] = ("I32", [rows // per, groups], words(across, bits))
        return parts, numbers
    return make


def fp4(codes_end, scale_end, matrix_scale=None):
    def make(rng, rows, cols):
        size = 16 if matrix_scale else 32
        groups = cols // size
        codes = [rng.randrange(16) for _ in range(rows * cols)]
        packed, parts = bytes(a | b << 4 for a, b in zip(codes[::2], codes[1::2])), {}
        if matrix_scale:
            whole = f32(rng.uniform(600, 900) if matrix_scale == ".weight_global_scale" else rng.uniform(0.0005, 0.001))
            raw = [rng.randrange(0x38, 0x60) for _ in range(rows * groups)]
            scale = [f32(E4M3[x] / whole if matrix_scale == ".weight_global_scale" else E4M3[x] * whole) for x in raw]
            parts[matrix_scale] = ("F32", [1], encode([whole], "F32"))
        else:
            raw = [rng.randrange(119, 125) for _ in range(rows * groups)]
            scale = [2.0**(x - 127) for x in raw]
        blocks = codes_end == "_blocks"
        parts[codes_end] = ("U8", [rows, groups, 16] if blocks else [rows, cols // 2], packed)
        parts[scale_end] = ("F8_E4M3" if matrix_scale else "U8", [rows, groups], bytes(raw))
        return parts, [f32(E2M1[codes[r * cols + c]] * scale[r * groups + c // size]) for r in range(rows) for c in range(cols)]
    return make


def compressed(bits, kind, strategy, group=None, symmetric=True):
    return {"quant_method": "compressed-tensors", "format": "any", "ignore": ["lm_head"], "config_groups": {"group_0": {
        "targets": ["Linear"], "weights": {"num_bits": bits, "type": kind, "strategy": strategy, "group_size": group,
                                           "symmetric": symmetric}}}}


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False, "sym": False}
FP8 = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], "modules_to_not_convert": ["lm_head"]}
MODELOPT = {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}
LAYOUTS = {  # name: quantization_config, maker
    "fp8-block": (FP8, fp8(".weight_scale_inv", "F32", blocks_of)),
    "fp8-block-bf16": (FP8, fp8(".weight_scale_inv", "BF16", blocks_of)),
    "fp8-tensor": (compressed(8, "float", "tensor"), fp8(".weight_scale", "F32", lambda r, c: [1], [".input_scale"])),
    "fp8-channel": (compressed(8, "float", "channel"), fp8(".weight_scale", "BF16", lambda r, c: [r, 1])),
    "fp8-modelopt": (None, fp8(".weight_scale", "F32", lambda r, c: [], [".input_scale", ".k_scale"])),
    "int8": (compressed(8, "int", "channel"), int8),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm", "zero_point": True},
            qweight(4, "awq")),
    "gptq": (GPTQ, qweight(4, "v1")),
    "gptq-act-order": (GPTQ | {"desc_act": True}, qweight(4, "v1", act_order=True)),
    "gptq-8": (GPTQ | {"bits": 8, "group_size": -1}, qweight(8, "v1", group=-1)),
    "gptq-v2": (GPTQ | {"checkpoint_format": "gptq_v2"}, qweight(4, "v2")),
    "int4": (compressed(4, "int", "group", GROUP), in_words(4, GROUP)),
    "int4-asymmetric": (compressed(4, "int", "group", GROUP, False), in_words(4, GROUP, True, "F16")),
    "int4-act-order": (compressed(4, "int", "group", GROUP), in_words(4, GROUP, dtype="F32", act_order=True)),
    "int8-words": (compressed(8, "int", "channel"), in_words(8, None)),
    "nvfp4": (compressed(4, "float", "tensor_group", 16), fp4(".weight_packed", ".weight_scale", ".weight_global_scale")),
    "nvfp4-modelopt": (MODELOPT, fp4(".weight", ".weight_scale", ".weight_scale_2")),
    "mxfp4": (compressed(4, "float", "group", 32), fp4(".weight_packed", ".weight_scale")),
    "mxfp4-quark": ({"quant_method": "quark"}, fp4(".weight", ".weight_scale")),
    "mxfp4-blocks": ({"quant_method": "mxfp4"}, fp4("_blocks", "_scales")),
    "mxfp4-gpt-oss": ({"quant_method": "mxfp4"}, fp4("_blocks", "_scales")),
}


# ---- folders ----

def write(path, config, tensors):
    os.makedirs(path, exist_ok=True)
    header, data = {}, []
    at = 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(path, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))
    with open(os.path.join(path, "config.json"), "w") as f:
        json.dump(config, f)
    for file in "tokenizer.json", "tokenizer_config.json":
        with open(os.path.join(families.DATA, "tiny", file), "rb") as a, open(os.path.join(path, file), "wb") as b:
            b.write(a.read())


def together(experts):
    """The parts of a layer's experts as one: a dimension more, before the others."""
    return {end: (dtype, [len(experts)] + shape, b"".join(e[end][2] for e in experts))
            for end, (dtype, shape, _) in experts[0].items()}


def gpt_oss(name):
    """The same as model(): its matrices of experts are rows of what they give in blocks, and columns in f32."""
    make = LAYOUTS[name][1]
    packed, plain, numbers = {}, {}, {}
    for tensor, shape in families.matrices(GPT_OSS):
        values = families.numbers("packed", tensor, shape)
        if tensor.endswith("_proj"):
            E, columns, rows = shape
            experts = [make(random.Random(f"{name} {tensor} {e}"), rows, columns) for e in range(E)]
            packed |= {tensor + end: part for end, part in together([parts for parts, _ in experts]).items()}
            values = numbers[tensor] = [own[r * columns + c] for _, own in experts for c in range(columns) for r in range(rows)]
        else:
            packed[tensor] = ("F32", list(shape), encode(values, "F32"))
        plain[tensor] = ("F32", list(shape), encode(values, "F32"))
    return GPT_OSS, packed, plain, numbers


def model(name):
    """config.json, the quantised tensors, those in f32, and the numbers of all quantised matrices by name."""
    if name == "mxfp4-gpt-oss":
        return gpt_oss(name)
    quantisation, make = LAYOUTS[name]
    blocks = name == "mxfp4-blocks"
    config = MOE if blocks else LLAMA
    packed, plain, numbers, experts = {}, {}, {}, {}
    for tensor, shape in families.matrices(config):
        values = families.numbers("packed", tensor, shape)
        stem = tensor.removesuffix(".weight")
        if stem.endswith("_proj") and (not blocks or ".experts." in stem):
            parts, values = make(random.Random(f"{name} {tensor}"), *shape)
            numbers[tensor] = values
            if blocks:
                experts.setdefault("model.layers.0.mlp.experts." + stem.rsplit(".", 1)[1], []).append(parts)
            else:
                packed |= {stem + end: part for end, part in parts.items()}
        else:
            packed[tensor] = ("F32", list(shape), encode(values, "F32"))
        plain[tensor] = ("F32", list(shape), encode(values, "F32"))
    for stem, parts in experts.items():
        packed |= {stem + end: part for end, part in together(parts).items()}
    return config, packed, plain, numbers


def digest(numbers):
    """Of all matrices, in the order of their names."""
    return hashlib.sha256(b"".join(encode(numbers[name], "F32") for name in sorted(numbers))).hexdigest()


def write_both(name, out):
    """The paths of both folders, and the numbers."""
    config, packed, plain, numbers = model(name)
    paths = [os.path.join(out, kind) for kind in (name, name + "-f32")]
    write(paths[0], config | ({"quantization_config": LAYOUTS[name][0]} if LAYOUTS[name][0] else {}), packed)
    if not LAYOUTS[name][0]:
        with open(os.path.join(paths[0], "hf_quant_config.json"), "w") as f:
            json.dump({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}, f)
    write(paths[1], config, plain)
    return *paths, numbers


def write_seeds(out):
    """Inputs of tests/fuzz/hf_packed.c: the smallest models of all layouts."""
    global LLAMA, MOE, GPT_OSS
    families.VOCAB = 8
    small = {"vocab_size": 8, "tie_word_embeddings": True, "num_attention_heads": 1, "hidden_size": 32, "head_dim": 32}
    LLAMA, MOE = LLAMA | small | {"intermediate_size": 32}, MOE | small | {"num_experts": 2}
    GPT_OSS |= small | {"num_local_experts": 2}
    for name in LAYOUTS:
        with tempfile.TemporaryDirectory() as made:
            folder = write_both(name, made)[0]
            with open(os.path.join(out, name), "wb") as f:
                f.write(b"\0".join(open(os.path.join(folder, part), "rb").read() for part in ("config.json", "model.safetensors")))


if __name__ == "__main__":
    if sys.argv[2:] == ["--seeds"]:
        sys.exit(write_seeds(sys.argv[1]))
    for layout in sys.argv[2:] or LAYOUTS:
        write_both(layout, sys.argv[1])
