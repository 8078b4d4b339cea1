#!/usr/bin/env python3
"""make_merged.py BUILD_DIR - write merged.json: what merging makes of the values of noise, by kvpress' MergingPress and
by the model of CaM's code in definitions.py; and the shares, scores and states of arkv, by the model of its code there.
Run it with kvpress installed and MODELS set as tests/golden/oracles does."""
import json, os, sys

import numpy as np
import torch
from kvpress import KnormPress, MergingPress

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import definitions, packing

CONFIGS = ["snapkv:drop=0.5:window=8+cam:window=8", "knorm:drop=0.7+cam:window=5", "knorm:drop=0.5+merge_cos"]
SIZE = (1, 4, 2, 8, 48, 8)  # L, H, G, K, T, W
ARKV_SIZE, ARKV_DROP = (3, 4, 2, 8, 48, 8), 0.4


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


def shares(stats):
    """Shares, scores before the window, and states of noise in several layers."""
    L, H, G, K, T, W = ARKV_SIZE
    k, _, q = packing.noise_heads(ARKV_SIZE)
    k = np.array(k, np.float32).reshape(L, G, T, K)
    q = np.array(q, np.float32).reshape(L, G, W, H // G, K)
    oq = [definitions.arkv_oq(q[l], k[l], stats) for l in range(L)]
    scores = [definitions.arkv_scores(q[l], k[l]) for l in range(L)]
    states = definitions.arkv_states(scores, oq, int(T * (1 - ARKV_DROP)), W)
    return {"share": [float(f"{x / max(oq):.9g}") for x in oq],
            "score": [[float(f"{x:.8g}") for x in head] for layer in scores for head in layer],
            "state": [[x.tolist() for x in head] for layer in states for head in layer]}


with open(os.path.join(here, "merged.json"), "w") as f:
    json.dump({"size": SIZE, "merged": {config: merged(config) for config in CONFIGS},
               "arkv_size": ARKV_SIZE, "arkv": {f"arkv:drop={ARKV_DROP}:window={ARKV_SIZE[5]}:stats={stats}": shares(stats)
                                                for stats in ("code", "paper")}}, f, separators=(",", ":"))
    f.write("\n")
