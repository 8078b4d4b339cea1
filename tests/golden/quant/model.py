"""model.py - the quantisers of rows in NumPy, written from their published formulas: what codes and scales a head gets, and
what comes back. Codes of numbers in float64, as many as they are; for every code also how near its number is to the border
of two of them, relative to a step, so that one on the border may take either.

e4m3 is torch.float8_e4m3fn where torch is there, e2m1 the nearest of its eight magnitudes.
"""
import math
import numpy as np

E4M3 = np.array([(8 + c % 8) * 2.0 ** (c // 8 - 10) if c > 7 else c * 2.0 ** -9 for c in range(127)])
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def f32(x):
    return np.asarray(x, np.float64).astype(np.float32).astype(np.float64)


def f16(x):
    return np.clip(x, -65504, 65504).astype(np.float16).astype(np.float64)


def nearest(x, table):
    """The code of |x| in a table of ascending numbers, to nearest, at borders even; how far each is from a border."""
    a = np.minimum(np.abs(x), table[-1])
    middle = (table[1:] + table[:-1]) / 2
    code = np.searchsorted(middle, a)  # at a border the lower
    code += (code < len(middle)) & (a == middle[np.minimum(code, len(middle) - 1)]) & (code % 2 == 1)
    gap = np.abs(a[..., None] - middle).min(-1) / np.maximum(a, table[1])
    return code, gap


def signed(code, x, sign_bit):
    return code | np.where(np.signbit(x), sign_bit, 0), np.where(np.signbit(x), -1.0, 1.0)


def packed(codes, bits):
    """The rows of codes as bytes, the first code in the lowest bits."""
    flat = (codes[..., None] >> np.arange(bits)) & 1
    return np.packbits(flat.reshape(codes.shape[0], -1).astype(np.uint8), axis=1, bitorder="little")


# ---- formats: x (rows, columns) of one head -> {tensor: array}, codes, gaps, what comes back

def fp8(x, scale="head"):
    largest = np.abs(x)
    s = {"head": f32(largest.max() / 448), "token": f16(f32(largest.max(1, keepdims=True) / 448)), "one": 1.0}[scale]
    y = f32(np.divide(x, s, out=np.zeros_like(x), where=np.broadcast_to(s, x.shape) > 0))
    code, gap = nearest(y, E4M3)
    whole, sign = signed(code, np.where(np.broadcast_to(s, x.shape) > 0, x, 0), 128)
    parts = {"codes": whole.astype(np.uint8)}
    if scale != "one":
        parts["scales"] = np.float32([s]) if scale == "head" else s.astype(np.float16)
    return parts, whole, gap, sign * E4M3[code] * s


def minmax(x, bits, group):
    g = x.reshape(len(x), -1, group)
    zero = f16(g.min(-1, keepdims=True))
    scale = f16(f32(f32(g.max(-1, keepdims=True) - zero) / (2 ** bits - 1)))
    y = np.clip(np.divide(g - zero, scale, out=np.zeros_like(g), where=np.broadcast_to(scale, g.shape) > 0), 0, 2 ** bits - 1)
    code = np.rint(y).astype(np.int64)
    gap = np.abs(y - np.floor(y) - 0.5)
    return code.reshape(x.shape), gap.reshape(x.shape), scale[..., 0], zero[..., 0], (code * scale + zero).reshape(x.shape)


def integers(x, bits, group=64):
    code, gap, scale, zero, back = minmax(x, bits, group)
    parts = {"codes": packed(code, bits), "scales": scale.astype(np.float16), "zeros": zero.astype(np.float16)}
    return parts, code, gap, back


def nvfp4(x):
    shared = f32(np.abs(x).max() / 448)
    blocks = x.reshape(len(x), -1, 16)
    wanted = f32(f32(np.abs(blocks).max(-1) / 6) / shared) if shared else np.zeros(blocks.shape[:2])
    of_block, gap_block = nearest(wanted, E4M3)
    step = np.broadcast_to(f32(E4M3[of_block] * shared)[..., None], blocks.shape)
    y = f32(np.divide(blocks, step, out=np.zeros_like(blocks), where=step > 0))
    code, gap = nearest(y, E2M1)
    whole, sign = signed(code, np.where(step > 0, blocks, 0), 8)
    gap = np.minimum(gap, gap_block[..., None])
    back = (sign * E2M1[code] * step).reshape(x.shape)
    whole = whole.reshape(x.shape)
    return {"codes": packed(whole, 4), "scales": of_block.astype(np.uint8), "global_scales": np.float32([shared])}, whole, \
        gap.reshape(x.shape), back


def lloyd(bits):
    """Levels of a Lloyd-Max quantiser of N(0, 1): each the mean of its interval, whose borders are half way."""
    level = np.linspace(-3, 3, 2 ** bits)
    phi = lambda t: math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    below = lambda t: math.erfc(-t / math.sqrt(2)) / 2
    for _ in range(20000):
        border = [-math.inf, *(level[1:] + level[:-1]) / 2, math.inf]
        moved = np.array([(phi(a) - phi(b)) / (below(b) - below(a)) for a, b in zip(border, border[1:])])
        if abs(moved - level).max() < 1e-14:
            break
        level = moved
    return (level - level[::-1]) / 2  # they are symmetric


LEVELS = {3: lloyd(3), 4: lloyd(4)}
PI_HEX = "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89"


def hadamard(n):
    """sqrt(n) times Walsh's and Hadamard's rotation behind random signs: bits of pi, each 32 from the lowest up."""
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    words = [int(PI_HEX[i:i + 8], 16) for i in range(0, 64, 8)]
    return h * [1 - 2 * (words[i // 32] >> i % 32 & 1) for i in range(n)]


def splitmix(state):
    while True:
        state = state + 0x9e3779b97f4a7c15 & (1 << 64) - 1
        z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9 & (1 << 64) - 1
        z = (z ^ z >> 27) * 0x94d049bb133111eb & (1 << 64) - 1
        yield z ^ z >> 31


def qr(n):
    """sqrt(n) times Q of a matrix of sums of twelve uniform numbers: LAPACK's QR, with a positive diagonal of R."""
    random = splitmix(42)
    g = np.array([[sum((next(random) >> 11) * 2.0 ** -53 for _ in range(12)) - 6 for _ in range(n)] for _ in range(n)])
    q, r = np.linalg.qr(g.T)
    return math.sqrt(n) * (q * np.sign(np.diag(r))).T


def rotated(x, bits, rotation, f32_norm):
    n = x.shape[1]
    norm = np.sqrt((x * x).sum(1, keepdims=True))
    y = np.divide(x @ rotation.T, norm, out=np.zeros_like(x), where=norm > 0)
    level = LEVELS[bits]
    middle = (level[1:] + level[:-1]) / 2
    code = np.searchsorted(middle, y)
    gap = np.abs(y[..., None] - middle).min(-1)
    stored = f32(norm) if f32_norm else f16(norm)
    c = level[code]
    length = math.sqrt(n) if f32_norm else np.sqrt((c * c).sum(1, keepdims=True))
    return code, gap, stored, c / length @ rotation / math.sqrt(n) * stored


def turboquant(x, bits, rotation="wht", outliers=0, norm="f16", values="mse", side="k"):
    if values == "uniform" and side == "v":
        code, gap, scale, zero, back = minmax(x, bits, x.shape[1])
        return {"codes": packed(code, bits), "scales": np.hstack([scale, zero]).astype(np.float16)}, code, gap, back
    matrix = qr if rotation == "qr" else hadamard
    order = np.argsort(-(x * x).sum(0), kind="stable")
    apart = np.sort(order[:outliers])
    rest = np.setdiff1d(np.arange(x.shape[1]), apart)
    parts, codes, gap, back = {"codes": [], "norms": []}, np.zeros(x.shape, np.int64), np.zeros(x.shape), np.zeros(x.shape)
    for columns, b in ((apart, bits + 1), (rest, bits)):
        if len(columns):
            codes[:, columns], gap[:, columns], stored, back[:, columns] = rotated(x[:, columns], b, matrix(len(columns)),
                                                                                   norm == "f32")
            parts["codes"].append(packed(codes[:, columns], b))
            parts["norms"].append(stored)
    parts["codes"] = np.hstack(parts["codes"])
    parts["norms"] = np.hstack(parts["norms"]).astype(np.float32 if norm == "f32" else np.float16)
    if outliers:
        parts["outliers"] = apart.astype(np.uint8)
    return parts, codes, gap, back


def quantised(config, x, side):
    """The model of a config."""
    name, *params = config.split(":")
    value = {k: int(v) if v.isdigit() else v for k, v in (p.split("=") for p in params)}
    if name == "turboquant":
        return turboquant(x, side=side, **value)
    return {"fp8": fp8, "nvfp4": nvfp4, "int4": lambda x, **v: integers(x, 4, **v),
            "int8": lambda x, **v: integers(x, 8, **v)}[name](x, **value)


# ---- numbers, and our program

def heads(random, n_heads, rows, columns):
    """Heads of bf16: normal numbers; some channels are ten times as large, some rows small, one row is 0."""
    x = random.standard_normal((n_heads, rows, columns))
    x[:, :, random.permutation(columns)[:3]] *= 10
    x[:, rows // 2] *= 2.0 ** -9
    x[0, 1] = 0
    x[-1] += 0.5
    return ((x.astype(np.float32).view(np.uint32) + 0x8000) & 0xffff0000).view(np.float32)
