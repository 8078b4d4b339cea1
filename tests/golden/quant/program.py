"""Runs the program quantise and reads what it wrote. Standard library only."""
import os, struct, subprocess, sys, tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "methods"))
from packing import read_tensors


def run(build, config, backend, shape, numbers):
    """({tensor: bytes} of the payload, bytes of the rows that came back); shape: heads, tokens, head_dim; numbers: f32."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.join(build, "tests/golden/quant/quantise"), config, backend, *map(str, shape), folder],
                       input=numbers, check=True)
        tensors = read_tensors(os.path.join(folder, "payload"))
        with open(os.path.join(folder, "rows"), "rb") as f:
            return {name[len("layers.0."):]: t[2] for name, t in tensors.items() if name.startswith("layers.0.")}, f.read()
