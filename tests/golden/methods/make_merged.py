#!/usr/bin/env python3
"""make_merged.py BUILD_DIR - write merged.json: what merging makes of the values of noise, by kvpress' MergingPress and
by the model of CaM's code in definitions.py. Run it with kvpress installed and MODELS set as tests/golden/oracles does."""
import json, os, sys

import numpy as np
import torch
from kvpress import KnormPress, MergingPress

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import definitions, packing

CONFIGS = ["snapkv:drop=0.5:window=8+cam:window=8", "knorm:drop=0.7+cam:window=5", "knorm:drop=0.5+merge_cos"]
SIZE = (1, 4, 2, 8, 48, 8)  # L, H, G, K, T, W


def window_of(config):
    return int(config.rsplit("window=", 1)[1])


def merged(config):
    """[head] kept positions, which are our drop's, and their values."""
    L, H, G, K, T, W = SIZE
    numbers = packing.noise_heads(SIZE)
    k, v, q = (np.array(x, np.float32).reshape(shape) for x, shape in
               zip(numbers, ((G, T, K), (G, T, K), (G, W, H // G, K))))
    kept = [np.array(positions) for positions, _ in packing.heads(sys.argv[1], config, SIZE, numbers)]
    if "+cam" in config:
        made = definitions.cam(q[:, -window_of(config):], k, v, kept)
    else:
        made = [MergingPress(KnormPress(0.5)).merge(*(torch.tensor(x[None, None]) for x in (*one, at)))[1][0, 0].numpy()[at]
                for *one, at in zip(k, v, kept)]
    return [[at.tolist(), [float(f"{x:.8g}") for x in values.ravel()]] for at, values in zip(kept, made)]


with open(os.path.join(here, "merged.json"), "w") as f:
    json.dump({"size": SIZE, "merged": {config: merged(config) for config in CONFIGS}}, f, separators=(",", ":"))
    f.write("\n")
