#!/usr/bin/env python3
"""make.py - write golden.txt: the tensors that tests/unit/cachegen.c must make of its rows, by published.py. Run it with
numpy, torch, torchac and ninja installed.

A line for each case: head_dim, the tokens of each head, layer, k or v, context or chunk, bytes of the streams, and the
SHA-256 of streams, sizes, CDFs, maxima (as payloads hold them) and decoded rows (f32)."""
import hashlib, itertools, os, sys
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import published

LENGTHS = [(300, 300), (257, 0, 600)]  # the second as a layer with a budget leaves it


def rows(seed, n, columns):
    """Sums of three random numbers from 0 to 127 less 190, so that bf16 holds them, times a power of two of the channel;
    every 50th token is 0."""
    x = np.empty((n, columns), np.float32)
    for t, c in itertools.product(range(n), range(columns)):
        total = -190
        for _ in range(3):
            seed = (seed * 1103515245 + 12345) % 2 ** 31
            total += seed >> 16 & 127
        x[t, c] = 0 if t % 50 == 49 else total * 2.0 ** ((c + 6) % 7 - 5)
    return x


with open(os.path.join(here, "golden.txt"), "w") as f:
    for columns, lengths in itertools.product((64, 80, 128), LENGTHS):
        heads = [rows(7 + g, n, columns) for g, n in enumerate(lengths)]
        for layer, side, cdf in ((0, "k", "context"), (0, "k", "chunk"), (12, "k", "context"), (1, "v", "context"),
                                 (2, "v", "chunk")):
            made = published.coded(heads, side, layer, cdf == "chunk")
            f.write(" ".join([str(columns), ",".join(map(str, lengths)), str(layer), side, cdf, str(len(made["streams"])),
                              *(hashlib.sha256(made[p]).hexdigest() for p in ("streams", "sizes", "cdfs", "maxima", "rows"))]) + "\n")
