"""Runs evp-pack on one text under many configs and reads what it wrote. Standard library only.

A context may be in a manifest once, so each config gets a context of its own with the same text.
"""
import array, hashlib, itertools, json, os, re, struct, subprocess

GGUF = os.path.join(os.environ["MODELS"], "SmolLM2-135M-Instruct.Q4_1.gguf")
LAYERS, HEADS, KV_HEADS, HEAD_DIM = 30, 9, 3, 64


# What may follow a text; together they change the last token of any that ends with a punctuation mark.
FOLLOWERS = ["", '"', " ", "\n", "\n\n", ".", "...", "x", "X", "1", "'", "'s", "-", ")", "\u00e9", "\u0301", " x"]


def context_ids(encode, text):
    """The ids with which those of `text` (head and text of a prompt) begin whatever follows."""
    return os.path.commonprefix([encode(text + more) for more in FOLLOWERS])


def sha256_file(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def n_keep(n, drop):
    return max(1, int(n * (1 - drop)))


def n_kept(config, n):
    """What each layer keeps of each head, or of each on average."""
    value = dict(p.split("=") for p in re.split("[:+]", config) if "=" in p)
    drop = float(value.get("drop", 0))
    if not config.startswith("pyramidkv"):
        return [n_keep(n, drop) if "drop" in value else n] * LAYERS
    window, budget = int(value.get("window", 64)), n * (1 - drop)
    low = budget / int(value.get("beta", 20))
    high = 2 * budget - low
    if high >= n - window:
        high = n - window
        low = 2 * budget - high
    if not n >= high >= low >= window:
        return [max(1, round(budget))] * LAYERS
    return [round(high - layer * (high - low) / (LAYERS - 1)) for layer in range(LAYERS)]


def n_pairs(config, n, layers):
    """What all layers keep."""
    if not config.startswith("kvzip"):
        return sum(KV_HEADS * k for k in layers or n_kept(config, n))
    times, every = (LAYERS, KV_HEADS * n) if "over=layer" in config else (1, LAYERS * KV_HEADS * n)
    return times * (every - int(every * float(re.search("drop=([0-9.]+)", config)[1])))


def size(config, n, layers=None):
    """Bytes of a variant, from the formulas of the methods' papers. Heads of different lengths have one each. layers: what
    each layer keeps of each head, where the config does not say."""
    bits = int((re.search("bits=([0-9]+)", config) or [0, 16])[1])
    total = n_pairs(config, n, layers) * HEAD_DIM * 4
    if bits < 16:
        n = n_kept(config, n)[0]
        keys, values = n - n % 32, max(0, n - 32)
        packed = (keys + values) * (HEAD_DIM * bits // 8 + HEAD_DIM // 32 * 4)
        total = LAYERS * KV_HEADS * (packed + (2 * n - keys - values) * HEAD_DIM * 2)
    total += LAYERS * KV_HEADS * 4 * config.startswith(("adakv", "chunkkv", "kvzip", "impress"))
    return total + LAYERS * n * 4 * ("reorder=yes" in config)


def stream(kind, header, rows):
    head = {"evp": kind, "version": 1, "tool": None, "args": [], "from": [], **header}
    lines = [head, *rows, {"end": True, "rows": len(rows)}]
    return "".join(json.dumps(line) + "\n" for line in lines)


def file_name(config):
    return re.sub(r"[^a-z0-9.]", "-", config) + ".safetensors"


def pack(folder, text, ids, configs, layers):
    """Payloads of `text`, which has the token ids `ids`, under each config: {config: tensors}. layers: {config: as for
    size()}."""
    digest = hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()
    tier = {"name": "dram", "kind": "dram", "uri": folder, "capacity_bytes": None, "read_bytes_per_s": 1e9,
            "write_bytes_per_s": 1e9, "latency_s": 0}
    header = {"model_digest": sha256_file(GGUF), "alpha": 1, "tiers": [tier], "solver": "by hand", "objective": 0,
              "upper_bound": None, "gap": None, "previous": None, "table_digest": None}
    rows = [{"id": c, "token_digest": digest, "n_tokens": len(ids), "config": c, "tier": "dram",
             "bytes": size(c, len(ids), layers.get(c)), "quality": 1, "quality_test": None, "ttft_s": None, "utility": 0,
             "frequency": 1, "operation": "insert", "payload": file_name(c)} for c in configs]
    with open(os.path.join(folder, "manifest.jsonl"), "w") as f:
        f.write(stream("manifest", header, rows))
    with open(os.path.join(folder, "contexts.jsonl"), "w") as f:
        f.write(stream("contexts", {}, [{"id": c, "dataset": "", "text": text} for c in configs]))
    subprocess.run(["evp-pack", "-q", "manifest.jsonl", "contexts.jsonl", "--model", GGUF, "-o", "payloads"],
                   cwd=folder, check=True)
    return {c: read_tensors(os.path.join(folder, "payloads", file_name(c))) for c in configs}


def read_tensors(path):
    """{name: (dtype, shape, bytes)} of a safetensors file, and its metadata under ''."""
    with open(path, "rb") as f:
        data = f.read()
    n, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + n])
    tensors = {"": header.pop("__metadata__")}
    for name, t in header.items():
        first, last = t["data_offsets"]
        tensors[name] = (t["dtype"], t["shape"], data[8 + n + first:8 + n + last])
    return tensors


def kept_positions(tensors):
    """[layer][head]: sorted list. A layer without positions has all."""
    kept, n = [], tensors["tokens"][1][0]
    for layer in range(LAYERS):
        if f"layers.{layer}.positions" not in tensors:
            kept.append([list(range(n))] * KV_HEADS)
            continue
        _, shape, data = tensors[f"layers.{layer}.positions"]
        flat = struct.unpack(f"<{len(data) // 4}i", data)
        lengths = tensors.get(f"layers.{layer}.lengths")
        lengths = struct.unpack(f"<{KV_HEADS}i", lengths[2]) if lengths else [shape[1]] * KV_HEADS
        ends = list(itertools.accumulate(lengths))
        kept.append([list(flat[end - n:end]) for n, end in zip(lengths, ends)])
    return kept


def compare_kept(kept, sure, loose):
    """Heads whose kept set is not `sure` plus any of `loose` (positions tied at the boundary); heads that needed it; the
    share of pairs that are kept by one side alone."""
    wrong, tied, apart, pairs = 0, 0, 0, 0
    for layer in range(LAYERS):
        for head in range(KV_HEADS):
            got, must, may = set(kept[layer][head]), set(sure[layer][head]), set(loose[layer][head])
            wrong += not (must <= got <= must | may)
            tied += bool(may)
            apart += len(must - got | got - must - may)
            pairs += len(got)
    return wrong, tied, apart / pairs


def noise(n, seed):
    """n numbers that are the same everywhere, and that bf16 has exactly."""
    return [((i * 2654435761 + seed * 40503 >> 7) * 2246822519 >> 9 & 255) / 64 - 2 for i in range(1, n + 1)]


def noise_heads(size):
    """Keys, values and queries for heads(); larger queries in each further layer."""
    L, H, G, K, T, W = size
    queries = noise(L * W * H * K, 3)
    return noise(L * G * T * K, 1), noise(L * G * T * K, 2), [x * (1 + i * L // len(queries)) for i, x in enumerate(queries)]


def heads(build, config, size, numbers):
    """[head] (kept positions, f32 values) that a config with a merging method makes of `numbers`."""
    given = array.array("i", size).tobytes() + b"".join(array.array("f", x).tobytes() for x in numbers)
    out = subprocess.run([f"{build}/tests/golden/methods/heads", config], input=given, check=True, capture_output=True).stdout
    made, at = [], 0
    for _ in range(size[0] * size[2]):
        n, = struct.unpack_from("<i", out, at)
        kept = array.array("i", out[at + 4:at + 4 + 4 * n])
        at += 4 + 4 * n
        made.append((list(kept), array.array("f", out[at:at + 4 * n * size[3]]).tolist()))
        at += 4 * n * size[3]
    assert at == len(out)
    return made


def arkv_heads(build, config, size, numbers):
    """Shares (L), scores [head][T], and [head] (packed positions, whole ones) that arkv makes of `numbers`."""
    L, _, G, _, T, _ = size
    given = array.array("i", size).tobytes() + b"".join(array.array("f", x).tobytes() for x in numbers)
    out = subprocess.run([f"{build}/tests/golden/methods/heads", config], input=given, check=True, capture_output=True).stdout
    shares, scores = array.array("d", out[:8 * L]).tolist(), array.array("f", out[8 * L:8 * L + 4 * L * G * T]).tolist()
    at, states = 8 * L + 4 * L * G * T, []
    for _ in range(L * G):
        n, whole = struct.unpack_from("<2i", out, at)
        kept = array.array("i", out[at + 8:at + 8 + 4 * n]).tolist()
        states.append((kept[:n - whole], kept[n - whole:]))
        at += 8 + 4 * n
    assert at == len(out)
    return shares, [scores[i:i + T] for i in range(0, len(scores), T)], states


def report(ok, text):
    print(("ok " if ok else "FAIL ") + text, flush=True)
    return 0 if ok else 1
