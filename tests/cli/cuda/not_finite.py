"""not_finite.py FILE TENSOR I - number I of a tensor of a safetensors file becomes infinite."""
import json, struct, sys

path, name, i = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(path, "r+b") as f:
    n = struct.unpack("<Q", f.read(8))[0]
    tensor = json.loads(f.read(n))[name]
    number = {"F32": struct.pack("<f", float("inf")), "F16": b"\x00\x7c", "BF16": b"\x80\x7f"}[tensor["dtype"]]
    f.seek(8 + n + tensor["data_offsets"][0] + i * len(number))
    f.write(number)
