#!/usr/bin/env python3
"""blocks.py [--check] - write blocks.txt beside this script (or compare with it): for every block format of GGUF files,
SHA-256 of the f32 numbers that the gguf package makes of BLOCKS random blocks. tests/unit/dequant.c makes the same bytes.

The bytes are those of a linear congruential generator, seeded by the format's number; f16 scales lose the highest bit of
their exponent, so that all are finite: positive, negative, subnormal and zero."""
import hashlib, os, sys
import numpy as np
import gguf

BLOCKS = 500
FORMATS = {  # name: places of f16 numbers in a block
    "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "IQ4_NL": [0], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_XS": [0], "IQ3_XXS": [0], "IQ3_S": [0], "MXFP4": [],
}


def blocks(name):
    kind = gguf.GGMLQuantizationType[name]
    size = gguf.GGML_QUANT_SIZES[kind][1]
    state, out = int(kind), bytearray(BLOCKS * size)
    for i in range(len(out)):
        state = (state * 1664525 + 1013904223) % 2**32
        out[i] = state >> 24
        if any((i % size) == place + 1 for place in FORMATS[name]):
            out[i] &= 0xBF
    return np.frombuffer(bytes(out), np.uint8).reshape(BLOCKS, size), kind


def main():
    text = ""
    for name in FORMATS:
        raw, kind = blocks(name)
        numbers = gguf.dequantize(raw, kind).astype("<f4")
        assert np.isfinite(numbers).all() or name == "MXFP4"  # its largest powers of two overflow
        text += f"{name} {hashlib.sha256(numbers.tobytes()).hexdigest()}\n"
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "blocks.txt")
    if "--check" in sys.argv:
        same = open(path).read() == text
        print("ok" if same else "FAIL", "blocks.txt is what the gguf package gives")
        sys.exit(not same)
    with open(path, "w") as f:
        f.write(text)


main()
