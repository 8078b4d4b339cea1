"""placed_world.py - two contexts of the default model, placed as `none` and as `kivi:bits=4`, and their rows decoded from the
payload files by numpy alone, for the checks of the adapters that serve by content hashes."""
import hashlib, json, os, shutil, struct, subprocess, sys
import numpy as np

top = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
MODEL = os.path.expanduser("~/.cache/evp/models/SmolLM2-135M-Instruct.Q4_1.gguf")
GGUF_NAME = "Smollm2 135M 8k Lc100K Mix1 Ep2"  # as the model's file says
CONFIGS = ("none", "kivi:bits=4")
HEADS = 30 * 3  # of all layers, of 64


def run(build, *command):
    subprocess.run([f"{build}/{command[0]}", *command[1:]], check=True, stdin=subprocess.DEVNULL)


def size(config, n):
    """Bytes of a variant, as tables count them."""
    if config == "none":
        return HEADS * n * 256
    k, v = n - n % 32, n - 32
    return HEADS * (k * 32 + k // 32 * 256 + (n - k) * 128 + v * (32 + 8) + (n - v) * 128)


def manifest(ids, config, tier_uri, digest):
    """A manifest that places every context as `config` on one tier."""
    name = config.replace(":", "_").replace("=", "_")
    tier = {"name": "dram", "kind": "dram", "uri": tier_uri, "capacity_bytes": 1 << 32, "read_bytes_per_s": 1e9,
            "write_bytes_per_s": 1e9, "latency_s": 0}
    head = {"evp": "manifest", "version": 1, "tool": "placed_world", "args": [], "from": [], "model_digest": digest,
            "alpha": 1, "tiers": [tier], "solver": "test", "objective": 0, "upper_bound": None, "gap": None, "gain_gap": 0,
            "optimal": False, "prices": [0], "move_cost": 0, "move_price": 0, "max_move": 0, "previous": None,
            "table_digest": None, "totals": []}
    rows = [{"id": id, "token_digest": hashlib.sha256(struct.pack(f"<{len(t)}i", *t)).hexdigest(), "n_tokens": len(t),
             "config": config, "tier": "dram", "bytes": size(config, len(t)), "kv_bytes": 0, "quality": 1, "quality_test": None, "ttft_s": 1,
             "utility": 0, "frequency": 1, "operation": "insert", "payload": f"{id}-{name}.safetensors"} for id, t in ids.items()]
    return [head, *rows, {"end": True, "rows": len(rows)}]


def make(build, folder):
    """Writes CONFIG.jsonl, loaded, for each config; returns the ids of the contexts."""
    os.chdir(folder)
    os.makedirs("txt", exist_ok=True)
    for name, source, n in (("a", "docs/architecture.md", 3600), ("b", "docs/engines.md", 4200)):
        with open(f"{top}/{source}") as f, open(f"txt/{name}.txt", "w") as out:
            out.write(f.read(n))
    with open("contexts.jsonl", "w") as out:
        subprocess.run([f"{build}/evp-import", "-q", "txt/a.txt", "txt/b.txt"], check=True, stdout=out)
    with open("questions.jsonl", "w") as out:
        subprocess.run([f"{build}/evp-qgen", "-q", "contexts.jsonl"], check=True, stdout=out)
    printed = subprocess.run([f"{build}/tests/tools/prompts", MODEL, "contexts.jsonl", "questions.jsonl"], check=True,
                             capture_output=True, text=True).stdout.splitlines()
    ids = {}
    for line in printed:
        if line.startswith("context "):
            words, tokens = line.split(": ", 1)
            ids[words.split()[1]] = [int(word) for word in tokens.split()]
    with open(MODEL + ".evp-digest") as f:
        digest = f.readline().strip()
    for config in CONFIGS:
        name = config.split(":")[0]
        with open(f"{name}.jsonl", "w") as out:
            out.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in manifest(ids, config, f"{folder}/tier-{name}", digest))
        run(build, "evp-pack", "-q", "-m", MODEL, "-o", f"pay-{name}", f"{name}.jsonl", "contexts.jsonl")
        run(build, "evp-load", "-q", f"{name}.jsonl", "-p", f"pay-{name}")
    return ids


def rows(path):
    """[K and V, layers, tokens, heads, head_dim] of a payload file that keeps every token, as float32."""
    with open(path, "rb") as f:
        data = f.read()
    n, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + n])
    config = header["__metadata__"]["config"]
    bits = int(config.split("bits=")[1].split(",")[0]) if "bits=" in config else 0

    def tensor(name):
        at = header.get(name)
        if at is None:
            return None
        raw = np.frombuffer(data, "u1", at["data_offsets"][1] - at["data_offsets"][0], 8 + n + at["data_offsets"][0])
        raw = raw.view({"BF16": "<u2", "F16": "<f2", "I32": "<u4"}[at["dtype"]]).reshape(at["shape"])
        return (raw.astype(np.uint32) << 16).view(np.float32) if at["dtype"] == "BF16" else raw

    def decoded(layer, what):
        full = tensor(f"layers.{layer}.{what}")
        words = tensor(f"layers.{layer}.{what}_codes") if bits else None
        if words is None or not words.size:
            return full
        codes = words[..., None] >> np.arange(0, 32, bits, dtype=np.uint32) & ((1 << bits) - 1)
        codes = codes.reshape(*words.shape[:-1], -1).astype(np.float32)
        scale, zero = (tensor(f"layers.{layer}.{what}_{part}").astype(np.float32) for part in ("scales", "zeros"))
        group = codes.shape[-1] // scale.shape[-1]
        x = codes * np.repeat(scale, group, -1) + np.repeat(zero, group, -1)
        return np.concatenate([x.swapaxes(1, 2) if what == "k" else x, full], 1)

    layers = json.loads(header["__metadata__"]["cache"])["n_layers"]
    return np.stack([np.stack([decoded(layer, what).swapaxes(0, 1) for layer in range(layers)]) for what in "kv"])


def bf16(x):
    """The bits of float32 numbers, rounded to bf16 as usual: to the nearest, ties to even."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def payload(folder, name, id):
    """The file of a context in the tier of a manifest."""
    return next(os.path.join(folder, f"pay-{name}", f) for f in os.listdir(f"{folder}/pay-{name}") if f.startswith(id + "-"))


if __name__ == "__main__":
    os.makedirs(sys.argv[2], exist_ok=True)
    print({id: len(t) for id, t in make(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])).items()})
