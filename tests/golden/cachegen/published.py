"""published.py - cachegen as LMCache publishes it, in NumPy and torchac: nothing here comes from this repository's C.

    symbols   lmcache/storage_backend/serde/cachegen_encoder.py (torch_quant_vectorized), in float32
    bounds    csrc/cal_cdf.cu (calculate_cdf with max_bins 32)
    streams   torchac, whose coder csrc/ac_enc.cu is, of 256 tokens of a channel each
"""
import numpy as np
import torch, torchac

CHUNK, MAX_BINS = 256, 32


def steps(side, layer):
    return (32 if layer < (10 if side == "k" else 2) else 16) // 2 - 1


def quantised(heads, M):
    """Symbols of each head, [tokens, channels], and each token's maximum over all heads, of rows that bf16 holds."""
    most = np.zeros(max(map(len, heads)), np.float32)
    for x in heads:
        most[:len(x)] = np.maximum(most[:len(x)], np.abs(x).max(1, initial=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.float32(M) / most
        symbols = [np.where(np.isfinite(factor[:len(x), None]), np.rint(x * factor[:len(x), None] + np.float32(M)), M)
                   for x in heads]
    return [s.astype(np.int16) for s in symbols], most


def bounds(symbols):
    """A CDF of 33 bounds for each channel of [tokens, channels]."""
    count = np.stack([(symbols == s).sum(0) for s in range(MAX_BINS)], 1)
    below = np.concatenate([np.zeros((len(count), 1), np.int64), count.cumsum(1)], 1)
    return (0xffff - MAX_BINS) * below // len(symbols) + np.arange(MAX_BINS + 1)


def stream(symbols, cdf):
    """One channel's bytes."""
    cdf = torch.from_numpy(cdf.astype(np.uint16).view(np.int16)).repeat(len(symbols), 1)
    return torchac.encode_int16_normalized_cdf(cdf, torch.from_numpy(np.ascontiguousarray(symbols)))


def coded(heads, side, layer, by_chunk):
    """What a payload has to hold of one side of a layer: streams, sizes, CDFs, maxima, and the rows they stand for."""
    M = steps(side, layer)
    symbols, most = quantised(heads, M)
    streams, cdfs = [], []
    for of_head in symbols:
        chunks = [of_head[t:t + CHUNK] for t in range(0, len(of_head), CHUNK)]
        of_all = None if by_chunk or not chunks else bounds(of_head)
        for i, chunk in enumerate(chunks):
            cdf = bounds(chunk) if by_chunk else of_all
            if by_chunk or i == 0:
                cdfs.append(cdf[:, 1:2 * M + 1])
            streams += [stream(chunk[:, c], cdf[c]) for c in range(chunk.shape[1])]
    rows = [(s - np.float32(M)) / np.float32(M) * most[:len(s), None] for s in symbols]
    return {"streams": b"".join(streams), "sizes": np.array([len(s) for s in streams], "<u2").tobytes(),
            "cdfs": b"".join(c.astype("<u2").tobytes() for c in cdfs), "maxima": (most.view("<u4") >> 16).astype("<u2").tobytes(),
            "rows": b"".join(r.astype("<f4").tobytes() for r in rows)}
