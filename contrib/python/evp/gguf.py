"""evp.gguf - what a GGUF file says about its model: enough to compare a payload with it.

    model = evp.gguf.read("model.gguf")
    reason = model.differs(payload)     # None, or one sentence
"""
import json
import math
import os
import struct

import evp.engine

# Architectures that evp-profile measures: does llama.cpp rotate columns 2i and 2i + 1 of a key together (in pairs),
# or i and i + dims / 2 (in halves)?
PAIRS = {"llama": True, "qwen2": False, "qwen3": False, "qwen3moe": False, "phi3": False}

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MOST = 1 << 24  # entries of metadata, tensors, elements of an array


class _File:
    """Reads little-endian numbers and texts; a file that ends too early, or counts too much, is a ValueError."""

    def __init__(self, path):
        self.file, self.path = open(path, "rb"), path
        self.size = os.fstat(self.file.fileno()).st_size

    def bytes(self, n):
        if n > self.size - self.file.tell():
            raise ValueError(f"'{self.path}' is not a whole GGUF file")
        return self.file.read(n)

    def number(self, letter):
        return struct.unpack("<" + letter, self.bytes(struct.calcsize("<" + letter)))[0]

    def count(self, letter):
        n = self.number(letter)
        if n > _MOST:
            raise ValueError(f"'{self.path}' is damaged: it counts {n} entries")
        return n

    def text(self):
        return self.bytes(self.number("Q")).decode("utf-8", "replace")

    def value(self, kind):
        if kind == _STRING:
            return self.text()
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind != _ARRAY:
            raise ValueError(f"'{self.path}' is damaged: metadata of type {kind}")
        kind, n = self.number("I"), self.count("Q")
        if kind in _SCALARS:
            letter = _SCALARS[kind]
            return list(struct.unpack(f"<{n}{letter}", self.bytes(n * struct.calcsize("<" + letter))))
        if kind != _STRING:
            raise ValueError(f"'{self.path}' is damaged: a list of type {kind}")
        return [self.text() for _ in range(n)]


class Model:
    """path, arch, name, n_layers, n_kv_heads, head_dim; of the rotation theta, dims, pairs, linear: the factor of a linear
    scaling or None, columns: factors of the rotated pairs of columns or None."""

    def __init__(self, path, fields, columns):
        self.path, self.columns = path, columns
        self.arch, self.name = fields.get("general.architecture"), str(fields.get("general.name", ""))
        if self.arch not in PAIRS:
            raise ValueError(f"'{path}': how architecture '{self.arch}' rotates keys is not known")

        def get(key, default=None):
            value = fields.get(f"{self.arch}.{key}", default)
            if not isinstance(value, (int, float, str)):
                raise ValueError(f"'{path}' has no single {self.arch}.{key}")
            return value

        self.n_layers, n_heads = get("block_count"), get("attention.head_count")
        self.n_kv_heads = get("attention.head_count_kv", n_heads)
        self.head_dim = get("attention.key_length", get("embedding_length") // max(1, n_heads))
        self.theta, self.dims = get("rope.freq_base", 10000.0), get("rope.dimension_count", self.head_dim)
        scaling = get("rope.scaling.type", "none")
        self.linear = get("rope.scaling.factor") if scaling == "linear" else None
        self.known = scaling in ("none", "linear") and not get("attention.sliding_window", 0)
        self.pairs = PAIRS[self.arch]

    def rope(self, theirs):
        """This model's rotation as in a payload's `cache`, given the payload's; None: none that payloads can have."""
        rope = {"theta": self.theta, "dims": self.dims, "scaling": "default"}
        if not self.known or self.linear and self.columns:
            return None
        if self.linear:
            return {**rope, "scaling": "linear", "factor": self.linear}
        if not self.columns:
            return rope
        wanted = _llama3(theirs) if theirs.get("scaling") == "llama3" else []
        same = len(wanted) == len(self.columns) and all(abs(a - b) <= 1e-3 * b for a, b in zip(wanted, self.columns))
        return {**theirs, **rope, "scaling": "llama3"} if same else None

    def differs(self, payload, name=None, digest=None):
        """Why a payload is not this model's: a sentence, or None. name, digest: of the model that it is said to be;
        otherwise it is known by the name in the file, or the file's name."""
        cache = json.loads(payload.text("cache") or "null") or {}
        rope = self.rope(cache.get("rope", {}))
        for name in (name,) if name else (self.path, self.name):
            reason = evp.engine.difference(payload, evp.engine.Model(
                self.n_layers, self.n_kv_heads, self.head_dim, rope, cache.get("dtype"), name, digest))
            if not reason:
                return None
        return reason


def _llama3(rope):
    """Factors by which llama3 scaling divides the frequency of each pair of columns."""
    factor, low, high = rope["factor"], rope["low_freq_factor"], rope["high_freq_factor"]
    factors = []
    for i in range(rope["dims"] // 2):
        turns = rope["original_max_position_embeddings"] / (2 * math.pi * rope["theta"] ** (2 * i / rope["dims"]))
        smooth = min(1, max(0, (turns - low) / (high - low)))
        factors.append(1 / ((1 - smooth) / factor + smooth))
    return factors


def read(path):
    """The model of a GGUF file: a Model. A file that is not GGUF, or of an architecture not known here, is a ValueError."""
    file = _File(path)
    with file.file:
        if file.bytes(4) != b"GGUF" or file.number("I") not in (2, 3):
            raise ValueError(f"'{path}' is not a GGUF file of version 2 or 3")
        n_tensors, n_fields = file.count("Q"), file.count("Q")
        fields, at = {}, None
        for _ in range(n_fields):
            key = file.text()
            fields[key] = file.value(file.number("I"))
        for _ in range(n_tensors):
            name = file.text()
            shape = [file.number("Q") for _ in range(file.count("I"))]
            kind, offset = file.number("I"), file.number("Q")
            if name == "rope_freqs.weight" and kind == 0:
                at = offset, shape
            elif name.startswith(("rope_freqs", "rope_factors")):
                raise ValueError(f"'{path}': how its tensor '{name}' scales rotations is not known")
        return Model(path, fields, _columns(file, fields.get("general.alignment", 32), *at) if at else None)


def _columns(file, alignment, offset, shape):
    """The float32 tensor at `offset` of the data, which begin at the next multiple of `alignment`."""
    if len(shape) != 1 or shape[0] > 4096 or not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
        raise ValueError(f"'{file.path}' is damaged: rope_freqs.weight")
    file.file.seek(min(file.size, -(-file.file.tell() // alignment) * alignment + offset))
    return struct.unpack(f"<{shape[0]}f", file.bytes(4 * shape[0]))
