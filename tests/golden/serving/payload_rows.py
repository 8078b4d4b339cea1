"""payload_rows.py - the rows of a payload file decoded by numpy alone, for the checks of adapters that serve rows."""
import json, struct
import numpy as np


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
