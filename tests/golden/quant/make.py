#!/usr/bin/env python3
"""make.py - write golden.json: small heads, and what model.py makes of them. No number of theirs is near a border."""
import json, os, sys
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import model

CONFIGS = {64: ["fp8", "fp8:scale=token", "fp8:scale=one", "int8", "int4", "int4:group=16", "nvfp4", "turboquant:bits=4",
                "turboquant:bits=3", "turboquant:bits=3:outliers=32", "turboquant:bits=4:values=uniform",
                "turboquant:bits=3:values=uniform"],
           80: ["fp8", "int8:group=16", "int4:group=16", "nvfp4", "turboquant:bits=4:rotation=qr"],
           128: ["fp8:scale=token", "int4", "nvfp4", "turboquant:bits=4", "turboquant:bits=4:rotation=qr:norm=f32",
                 "turboquant:bits=3:rotation=qr:outliers=32:norm=f32"]}
HEADS, ROWS, NEAR = 2, 3, 1e-5
EXACT = "fp8:scale=one"  # nothing is rounded before the codes are: borders are borders


def main():
    golden = []
    for columns, configs in CONFIGS.items():
        for seed in range(1000):
            x = model.heads(np.random.default_rng(seed), 2 * HEADS, ROWS, columns)  # of keys, then of values
            made = {c: [model.quantised(c, h.astype(np.float64), "kv"[i >= HEADS]) for i, h in enumerate(x)] for c in configs}
            live = np.abs(x) > 0
            if all(gap[live[i]].min() > NEAR for c, of in made.items() for i, (_, _, gap, _) in enumerate(of) if c != EXACT):
                break
        else:
            sys.exit("every seed has a number near a border")
        tensors = {c: {f"{side}_{name}": "".join(of[i][0][name].tobytes().hex() for i in (0, 1, 2, 3) if (i >= HEADS) == (side == "v"))
                       for side in "kv" for name in of[0 if side == "k" else HEADS][0]} for c, of in made.items()}
        golden.append({"shape": [HEADS, ROWS, columns], "bf16": (x.view(np.uint32) >> 16).astype(np.uint16).tobytes().hex(),
                       "tensors": tensors})
    with open(os.path.join(here, "golden.json"), "w") as f:
        json.dump(golden, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
