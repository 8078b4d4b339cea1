# A method of one's own in Python: it keeps what NumPy says, in every head; a module that it cannot import is an error.
python=/usr/bin/python3
"$python" -c 'import cffi, numpy, sysconfig, os; assert os.path.exists(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null ||
	skip "no python3-cffi, python3-numpy or python3-dev"
[ -f "$MODELS/SmolLM2-135M-Instruct.Q4_1.gguf" ] || skip "no default model"
case $BUILD in *asan | *tsan) skip "the interpreter leaks" ;; esac
"$python" "$TOP/contrib/python/examples/method.py" libfar_keys.so "$TOP/methods" || exit
export PYTHONHOME=/usr # not that of another python3 in PATH
sed 's/keydiff:drop=0.5/far_keys:drop=0.5/' "$DATA/pack/manifest.jsonl" >manifest.jsonl
evp-pack -q manifest.jsonl "$DATA/pack/contexts.jsonl" --shard 1/3 -o far --plugin ./libfar_keys.so
mkdir broken && echo 'raise ImportError("no numbers")' >broken/numpy.py
PYTHONPATH=broken evp-pack -q manifest.jsonl "$DATA/pack/contexts.jsonl" --shard 1/3 -o none --plugin ./libfar_keys.so 2>&1 | grep error:
sed 's/keydiff:drop=0.5/none/;s/"bytes": 944640/"bytes": 1912320/' "$DATA/pack/manifest.jsonl" >manifest.jsonl
evp-pack -q manifest.jsonl "$DATA/pack/contexts.jsonl" --shard 1/3 -o whole
"$python" - far/fox.safetensors whole/fox.safetensors <<'END'
import json, struct, sys
import numpy as np

def tensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    for name, t in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            yield name, np.frombuffer(data[8 + n + a:8 + n + b], {"I32": np.int32, "BF16": np.uint16}[t["dtype"]]).reshape(t["shape"])

far, whole = [dict(tensors(path)) for path in sys.argv[1:]]
heads = equal = 0
for name, kept in far.items():
    if not name.endswith(".positions"):
        continue
    keys = (whole[name.replace("positions", "k")].astype(np.uint32) << 16).view(np.float32)
    for k, mine in zip(keys, kept):
        far_away = np.argsort(-np.linalg.norm(k - k.mean(0), axis=1), kind="stable")[:len(mine)]
        heads, equal = heads + 1, equal + (len(set(far_away) ^ set(mine)) <= 2)
print(f"{equal} of {heads} heads")
END
