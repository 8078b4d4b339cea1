# Variants of which no answer was measured are placed by what is believed, marked, and left out on request.
. "$TOP/tests/cli/plan/edit.inc"
/usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "no h5py"
/usr/bin/python3 - <<'END' || exit
import json
import h5py, numpy as np
C, V, Q = 12, 3, 4
rng = np.random.default_rng(5)
quality = np.clip(np.array([1, 0.9, 0.7]) + 0.05 * rng.standard_normal((C, V)), 0, 1)
quality[:, 0] = 1
std, n = np.full((C, V), 0.1), np.full((C, V), Q, np.int32)
std[:, 0] = 0
quality[8:, 1:], std[8:, 1:], n[8:, 1:] = np.nan, np.nan, -1
with h5py.File("table.h5", "w") as f:
    f.attrs["evp"], f.attrs["version"], f.attrs["max_new_tokens"] = "table", np.int64(2), np.int64(8)
    for name, value in dict(model="m", model_digest="ab" * 32, backend="cpu", dtype="f32", embedder_digest="", lineage="").items():
        f.attrs[name] = value
    text = lambda path, value: f.create_dataset(path, data=value, dtype=h5py.string_dtype("utf-8"))
    text("/contexts/id", [f"c{c:02}" for c in range(C)])
    text("/contexts/dataset", [""] * C)
    text("/contexts/token_digest", [f"{c:064x}" for c in range(C)])
    f["/contexts/n_tokens"], f["/contexts/kv_bytes"] = np.full(C, 1000), np.full(C, 100000)
    f["/contexts/prefill_s"], f["/contexts/question_s"] = np.full(C, 1.0), np.zeros(C)
    text("/configs/name", ["none", "knorm:drop=0.5", "knorm:drop=0.8"])
    text("/questions/id", [f"q{i}" for i in range(C * Q)])
    text("/questions/text", ["?"] * (C * Q))
    text("/questions/split", ["train"] * (C * Q))
    f["/questions/context"] = np.repeat(np.arange(C), Q)
    text("/answers/text", [["a"] * V] * (C * Q))
    f["/answers/n_tokens"], f["/answers/similarity"] = np.ones((C * Q, V), np.int32), np.ones((C * Q, V), np.float32)
    f["/cells/bytes"] = np.tile([100000, 50000, 20000], (C, 1))
    f["/cells/size_frac"] = f["/cells/keep_frac"] = np.tile([1, 0.5, 0.2], (C, 1))
    f["/cells/compress_s"] = f["/cells/decompress_s"] = np.zeros((C, V))
    f["/quality/train"], f["/quality/train_std"], f["/quality/train_n"] = quality, std, n
    f["/quality/test"] = np.full((C, V), np.nan)
    mean = np.nanmean(quality, 0)
    f["/predicted/quality"], f["/predicted/sd"] = np.where(n < 0, mean, quality), np.where(n < 0, 0.1, 0.05).astype("f4")
    f["/belief/mean"], f["/belief/between"], f["/belief/within"] = mean, [0, 0.0025, 0.0025], [0, 0.01, 0.01]
    f["/cells/asked"] = np.maximum(n, 0)
tier = dict(name="dram", kind="dram", uri="/dev/shm/x", capacity_bytes=500000, read_bytes_per_s=1e9, write_bytes_per_s=1e9, latency_s=0)
json.dump(dict(evp="tiers", version=1, tiers=[tier]), open("tiers.json", "w"))
END
evp-plan table.h5 --tiers tiers.json -q -o m.jsonl || exit
grep '"id"' m.jsonl | grep -c '"measured":0'
grep '"measured":0' m.jsonl | grep -c '"id":"c0[89]\|"id":"c1'
grep -c '"quality_sd"' m.jsonl
evp-plan table.h5 --tiers tiers.json --measured-only -q | grep -c '"measured":0'
evp-plan table.h5 --verify m.jsonl 2>&1 | sed 's/[0-9.]\{4,\}/X/g'
