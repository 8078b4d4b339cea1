"""python_rows.py MANIFEST PAYLOAD... - puts one payload after another, and compares its rows with a decoder in plain Python."""
import array, functools, math, re, struct, sys

import evp

LAYERS = 0, 29


def numbers(payload, name):
    tensor = payload[name]
    raw = bytes(payload.fetch(name)) if tensor.size else b""
    if tensor.type == "BF16":
        return [struct.unpack("<f", b"\0\0" + raw[i:i + 2])[0] for i in range(0, len(raw), 2)]
    letter = {"F16": "e", "F32": "f", "U8": "B", "I32": "I"}[tensor.type]
    return list(struct.unpack(f"<{len(raw) // struct.calcsize(letter)}{letter}", raw))


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def halves(words):
    return [half for word in words for half in (word & 0xffff, word >> 16)]


def symbols(stream, n, bounds):
    """The n symbols of a stream: the arithmetic coder's definition, bit by bit, with numbers of any length."""
    bits = "".join(f"{byte:08b}" for byte in stream)
    low, high, out, pos = 0, 2 ** 32 - 1, [], 32
    value = int(bits[:32].ljust(32, "0"), 2)
    for _ in range(n):
        span = high - low + 1
        s = next(s for s in range(len(bounds) - 1) if value - low < span * bounds[s + 1] >> 16)
        out.append(s)
        low, high = low + (span * bounds[s] >> 16), low + (span * bounds[s + 1] >> 16) - 1
        while high < 2 ** 31 or low >= 2 ** 31 or (low >= 2 ** 30 and high < 3 * 2 ** 30):
            off = 0 if high < 2 ** 31 else 2 ** 31 if low >= 2 ** 31 else 2 ** 30
            low, high = 2 * (low - off), 2 * (high - off) + 1
            value = 2 * (value - off) + int(bits[pos:pos + 1] or "0")
            pos += 1
    assert len(stream) == -(-(pos - 32 + 2) // 8)
    return out


def streamed(payload, config, layer, side, lengths, dim):
    """The same of cachegen, as methods/cachegen.c says."""
    part = lambda name: numbers(payload, f"layers.{layer}.{side}_{name}")
    M, at, cdf = 15 if layer < (10 if side == "k" else 2) else 7, 0, 0
    sizes, bounds, maxima = iter(halves(part("sizes"))), halves(part("cdfs")), part("maxima")
    streams, heads = bytes(payload.fetch(f"layers.{layer}.{side}_streams")), []
    assert not payload[f"layers.{layer}.{side}"].size and len(maxima) == max(lengths)
    for n in lengths:
        rows = [[0.0] * dim for _ in range(n)]
        for first in range(0, n, 256):
            for c in range(dim):
                i = cdf + c + (first // 256 * dim if "cdf=chunk" in config else 0)
                of_channel = [0, *bounds[2 * M * i:2 * M * (i + 1)], 65503 + 2 * M + 1]
                size, count = next(sizes), min(256, n - first)
                for t, s in enumerate(symbols(streams[at:at + size], count, of_channel), first):
                    rows[t][c] = f32(f32((s - M) / M) * maxima[t])
                at += size
        cdf += dim * (-(-n // 256) if "cdf=chunk" in config else n > 0)
        heads.append(rows)
    assert at == len(streams) and next(sizes, None) is None and cdf * 2 * M == len(bounds)
    return heads


E4M3 = sorted((8 + f) * 2.0 ** (e - 10) if e else f * 2.0 ** -9 for e in range(16) for f in range(8) if (e, f) != (15, 7))


def e4m3(byte):
    return math.copysign(E4M3[byte & 127], -1 if byte & 128 else 1)


def fp8_rows(config, n, dim, part):
    """The rows of one head of n tokens; part(name, n): the next n numbers of that tensor."""
    scale = (re.search("scale=([a-z]+)", config) or (0, "head"))[1]
    shared = part("_scales", 1)[0] if scale == "head" else 1.0
    rows = []
    for _ in range(n):
        own = part("_scales", 1)[0] if scale == "token" else shared
        rows.append([f32(e4m3(code) * own) for code in part("_codes", dim)])
    return rows


def int_rows(config, n, dim, part):
    group, bits = int((re.search("group=([0-9]+)", config) or (0, 64))[1]), 8 if "int8" in config else 4
    rows = []
    for _ in range(n):
        words, scales, zeros = part("_codes", dim * bits // 32), part("_scales", dim // group), part("_zeros", dim // group)
        codes = [words[i * bits // 32] >> i * bits % 32 & (1 << bits) - 1 for i in range(dim)]
        rows.append([f32(f32(code * scales[i // group]) + zeros[i // group]) for i, code in enumerate(codes)])
    return rows


E2M1 = 0.0, 0.5, 1, 1.5, 2, 3, 4, 6


def nvfp4_rows(_, n, dim, part):
    shared, rows = part("_global_scales", 1)[0], []
    for _ in range(n):
        codes, steps = part("_codes", dim // 2), [f32(e4m3(s) * shared) for s in part("_scales", dim // 16)]
        codes = [codes[i // 2] >> i % 2 * 4 & 15 for i in range(dim)]
        rows.append([f32((-1 if code & 8 else 1) * E2M1[code & 7] * steps[i // 16]) for i, code in enumerate(codes)])
    return rows


LEVELS = {3: (0.245094179, 0.756005281, 1.34390928, 2.1519457),
          4: (0.12839503, 0.388048299, 0.656759119, 0.942340456, 1.2562312, 1.61804639, 2.06901723, 2.73258957)}
PI = (0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0x082efa98, 0xec4e6c89)


def hadamard(x):
    """Walsh and Hadamard's transform, then the signs."""
    half = 1
    while half < len(x):
        for i in range(len(x)):
            if not i & half:
                x[i], x[i + half] = f32(x[i] + x[i + half]), f32(x[i] - x[i + half])
        half *= 2
    return [-one if PI[i // 32] >> i % 32 & 1 else one for i, one in enumerate(x)]


def splitmix(state):
    while True:
        state = state + 0x9e3779b97f4a7c15 & (1 << 64) - 1
        z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9 & (1 << 64) - 1
        z = (z ^ z >> 27) * 0x94d049bb133111eb & (1 << 64) - 1
        yield z ^ z >> 31


@functools.cache
def rotation(n):
    """Rows of normal numbers, made orthogonal one after the other."""
    random, rows = splitmix(42), []
    for _ in range(n):
        x = []
        for _ in range(n):
            total = -6.0
            for _ in range(12):
                total += (next(random) >> 11) * 2.0 ** -53
            x.append(total)
        for b in rows:
            along = 0.0
            for one, other in zip(x, b):
                along += one * other
            x = [one - along * other for one, other in zip(x, b)]
        norm = 0.0
        for one in x:
            norm += one * one
        rows.append([one / math.sqrt(norm) for one in x])
    return [[f32(math.sqrt(n) * one) for one in row] for row in rows]


def multiplied(x, matrix):
    out = [0.0] * len(x)
    for one, row in zip(x, matrix):
        out = [f32(a + f32(one * b)) for a, b in zip(out, row)]
    return out


def bits_of(part, n, bits):
    word = int.from_bytes(bytes(part("_codes", n * bits // 8)), "little")
    return [word >> i * bits & (1 << bits) - 1 for i in range(n)]


def turned(config, codes, bits, norm):
    """The numbers that were rotated together."""
    half, n = 1 << bits - 1, len(codes)
    x = [f32(-LEVELS[bits][half - 1 - c] if c < half else LEVELS[bits][c - half]) for c in codes]
    length = 0.0
    for one in x:
        length = f32(length + f32(one * one))
    length = f32(math.sqrt(n if "norm=f32" in config else length))
    x = multiplied(x, rotation(n)) if "rotation=qr" in config else hadamard(x)
    scale = f32(norm / f32(length * f32(math.sqrt(n))))
    return [f32(one * scale) for one in x]


def turboquant_rows(config, n, dim, part):
    bits, outliers = int(re.search("bits=([34])", config)[1]), 32 if "outliers=32" in config else 0
    apart, rows = set(part("_outliers", 32)) if outliers else set(), []
    for _ in range(n):
        if part.side == "v" and "values=uniform" in config:
            scale, zero = part("_scales", 2)
            rows.append([f32(f32(code * scale) + zero) for code in bits_of(part, dim, bits)])
            continue
        norms = part("_norms", 2 if outliers else 1)
        first = iter(turned(config, bits_of(part, outliers, bits + 1), bits + 1, norms[0]) if outliers else [])
        rest = iter(turned(config, bits_of(part, dim - outliers, bits), bits, norms[-1]))
        rows.append([next(first) if i in apart else next(rest) for i in range(dim)])
    return rows


ROWS = {"fp8": fp8_rows, "int4": int_rows, "int8": int_rows, "nvfp4": nvfp4_rows, "turboquant": turboquant_rows}


def rows_decoded(payload, config, layer, side, lengths, dim):
    """decoded() of a config whose quantiser packs row by row, or None."""
    quantiser = re.split("[+]", config)[-1].split(":")[0]
    if quantiser not in [*ROWS, "arkv"]:
        return None
    source = {}

    def part(name, n):
        if name not in source:
            source[name] = iter(numbers(payload, f"layers.{layer}.{side}{name}"))
        return [next(source[name]) for _ in range(n)]
    part.side = side
    if quantiser == "arkv":  # whole rows come last
        whole = payload[f"layers.{layer}.{side}"].shape[1]
        packed = [fp8_rows("fp8:scale=token", n - whole, dim, part) for n in lengths]
        heads = [rows + [part("", dim) for _ in range(whole)] for rows in packed]
        assert 0 < whole <= lengths[0], config
    else:
        heads = [ROWS[quantiser](config, n, dim, part) for n in lengths]
    assert all(next(one, None) is None for one in source.values()), config
    return heads


def decoded(payload, config, layer, side, lengths, dim):
    """[head][row][column] as docs/formats/payload.md says."""
    if "cachegen" in config:
        return streamed(payload, config, layer, side, lengths, dim)
    by_rows = rows_decoded(payload, config, layer, side, lengths, dim)
    if by_rows is not None:
        return by_rows
    number = lambda name, otherwise: int((re.search(name + r"=(\d+)", config[config.find("kivi"):]) or (0, otherwise))[1])
    kivi, bits, group, residual = "kivi" in config, number("bits", 0), number("group", 32), number("residual", 32)
    part = lambda name: iter(numbers(payload, f"layers.{layer}.{side}{name}"))
    take = lambda source, n: [next(source) for _ in range(n)]
    full = part("")
    codes, scales, zeros = (part("_codes"), part("_scales"), part("_zeros")) if kivi else (None,) * 3
    heads = []
    for n in lengths:
        q = 0 if not kivi else n - n % residual if side == "k" else max(0, n - residual)
        lines, length = (dim, q) if side == "k" else (q, dim)
        rows = [[0.0] * dim for _ in range(q)]
        for i in range(lines if q else 0):
            words, scale, zero = (take(source, count) for source, count in
                                  ((codes, length * bits // 32), (scales, length // group), (zeros, length // group)))
            for j in range(length):
                code = words[j * bits // 32] >> j * bits % 32 & (1 << bits) - 1
                row, column = (j, i) if side == "k" else (i, j)
                rows[row][column] = f32(f32(code * scale[j // group]) + zero[j // group])
        heads.append(rows + [take(full, dim) for _ in range(n - q)])
    assert next(full, None) is None
    return heads


def as_type(x, name):
    """The bytes of a number, rounded to nearest even."""
    if name == "f32":
        return struct.pack("<f", x)
    if name == "f16":
        return struct.pack("<e", x)
    if name == "bf16":
        u = struct.unpack("<I", struct.pack("<f", x))[0]
        return struct.pack("<H", u + 0x7fff + (u >> 16 & 1) >> 16)
    code = min(range(127), key=lambda c: (abs(E4M3[c] - min(abs(x), 448)), c & 1))
    return bytes([code | (128 if math.copysign(1, x) < 0 else 0)])


def rows_of(payload, layer, side, shape, **how):
    """[head][row][column] as bytes."""
    heads, dim, size = how.get("heads", (0, shape.n_heads)), shape.head_dim, {"f32": 4, "e4m3": 1}.get(how.get("type"), 2)
    first, end = how["rows"]
    n, count = end - first, heads[1] - heads[0]
    into = array.array("B", bytes(n * count * dim * size + 64))
    payload.rows(layer, side, into, **how)
    assert not any(into[n * count * dim * size:]), "bytes after the rows are written"
    strides = how.get("strides") or (n * dim, dim, 1)
    at = lambda *index: sum(i * s for i, s in zip(index, strides)) * size
    return [[[bytes(into[at(h, r, c):at(h, r, c) + size]) for c in range(dim)] for r in range(n)] for h in range(count)]


def expected(heads, first, end, name, columns):
    return [[[as_type(row[c], name) for c in columns] for row in head[first:end]] for head in heads]


def compare(payload, config):
    shape, compared = payload.shape, 0
    G, K = shape.n_heads, shape.head_dim
    plain, paired = range(K), [c // 2 + c % 2 * (K // 2) for c in range(K)]
    for layer in LAYERS:
        kept = payload.kept(layer)
        assert shape.n_rows in (None, kept[0])
        n = min(kept)
        for side in "kv":
            heads = decoded(payload, config, layer, side, kept, K)
            for how, columns in (
                    (dict(rows=(0, n), type="f32"), plain), (dict(rows=(0, n)), plain), (dict(rows=(n // 3, n - 1), type="f16"), plain),
                    (dict(rows=(5, 6), heads=(1, 2), type="e4m3"), plain), (dict(rows=(0, n), type="e4m3"), plain),
                    (dict(rows=(1, n), pairs=True, type="f32"), paired if side == "k" else plain),
                    (dict(rows=(0, n), strides=(K, G * K, 1)), plain),  # [rows, heads, dim]
                    (dict(rows=(0, n), strides=(K * n, 1, n), type="f16"), plain),  # [heads, dim, rows]
                    (dict(rows=(n - 7, n), heads=(2, 3), verify=False), plain)):
                first, end = how.get("heads", (0, G))
                assert rows_of(payload, layer, side, shape, **how) == expected(heads[first:end], *how["rows"], how.get("type", "bf16"), columns), \
                    (config, layer, side, how)
                compared += 1
    return f"{compared} ways, rows {'differ' if shape.n_rows is None else shape.n_rows}"


def read_by_ranks(store, found):
    """Bytes that three ranks read of all rows of their heads, in payloads."""
    def so_far():
        with open("/proc/self/io") as io:
            return int(io.readline().split()[1])
    before = so_far()
    for rank in range(3):
        with store.payload(found) as payload:
            shape = payload.shape
            into = bytearray(shape.n_tokens * shape.head_dim * 4)
            for layer in range(shape.n_layers):
                for side in "kv":
                    n = payload.kept(layer)[rank]
                    payload.rows(layer, side, into, heads=(rank, rank + 1), rows=(0, n))
    return (so_far() - before - 3 * 65536) / found.size  # beyond the first bytes, with the header


def refused(what, *arguments, **named):
    try:
        what(*arguments, **named)
        return "taken"
    except (evp.Error, ValueError) as e:
        return f"{type(e).__name__} {e}".replace(sys.argv[1], "MANIFEST")


def main():
    with evp.open(sys.argv[1]) as store:
        assert store.list() == []
        for path in sys.argv[2:]:
            with open(path, "rb") as f:
                data = f.read()
            store.put("fox", "slow", data)
            (found,) = store.list()
            with store.payload(found) as payload:
                tokens = array.array("i", bytes(payload.fetch("tokens")))
                assert store.find(tokens).checksum == found.checksum and found.n_tokens == payload.shape.n_tokens == len(tokens)
                print(f"{found.config}: {compare(payload, found.config)}", end="")
            ranks = read_by_ranks(store, found)
            print(", ranks read at most 1.1 payloads" if ranks <= 1.1 else f", ranks read {'whole tensors' if re.search('adakv|cachegen|chunkkv|kvzip', found.config) else ranks}")
        refusals(store, found)


def refusals(store, found):
    with store.payload(found) as payload:
        into = bytearray(100000)
        for layer, how in ((30, {}), (-1, {}), (0, dict(heads=(2, 4))), (0, dict(rows=(0, 84))), (0, {}),
                           (0, dict(rows=(0, 2), heads=(0, 1), strides=(-1, 0, 0))), (0, dict(rows=(0, 2), strides=(1 << 62, 1 << 62, 1 << 62)))):
            print(f"layer {layer} {how}: {refused(payload.rows, layer, 'k', into, **how)}")
        print(refused(payload.rows, 0, "k", memoryview(into)[1:5000], rows=(0, 2)))


main()
