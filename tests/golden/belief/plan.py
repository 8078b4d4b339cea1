"""plan.py WORK - called by check: plans from tables whose true qualities are known, with predictions and with raw means.
evp-plan is in PATH. Qualities, spread and noise are those measured of SmolLM2 on LongBench: configs from .45 to .95,
.076 between contexts, .27 between questions; six train questions."""
import json, subprocess, sys
import h5py, numpy as np
from reference import reference

work = sys.argv[1]
C, V, QUESTIONS, SIZE, PREFILL = 60, 16, 6, 50e6, 2.0
FRACTION = np.concatenate([[1], np.linspace(0.9, 0.1, V - 1)])
tiers = [dict(name="dram", kind="dram", uri="/dev/shm/x", capacity_bytes=int(0.15 * C * SIZE), read_bytes_per_s=5e8,
              write_bytes_per_s=5e8, latency_s=0.0005),
         dict(name="ssd", kind="file", uri="/tmp/x", capacity_bytes=int(0.3 * C * SIZE), read_bytes_per_s=8e7,
              write_bytes_per_s=8e7, latency_s=0.001)]
json.dump(dict(evp="tiers", version=1, tiers=tiers), open(f"{work}/tiers.json", "w"))


def table(rng):
    """Writes table.h5; returns the true qualities (C, V)."""
    level = np.concatenate([[1], np.linspace(0.95, 0.45, V - 1)])
    true = np.clip(level + 0.076 * rng.standard_normal((C, V)), 0, 1)
    true[:, 0] = 1
    x = np.clip(true[..., None] + 0.27 * rng.standard_normal((C, V, QUESTIONS)), 0, 1)
    x[:, 0] = 1
    many = np.clip(true[..., None] + 0.27 * rng.standard_normal((C, V, 4000)), 0, 1).mean(2)
    many[:, 0] = 1
    with h5py.File(f"{work}/plan.h5", "w") as f:
        f.attrs["evp"], f.attrs["version"] = "table", np.int64(2)
        for name, value in dict(model="m", model_digest="ab" * 32, backend="cpu-avx512", dtype="f32", embedder_digest="",
                                lineage='{"tool":"plan.py"}').items():
            f.attrs[name] = value
        f.attrs["max_new_tokens"] = np.int64(32)
        text = lambda path, value: f.create_dataset(path, data=value, dtype=h5py.string_dtype("utf-8"))
        text("/contexts/id", [f"c{c}" for c in range(C)])
        text("/contexts/dataset", [""] * C)
        text("/contexts/token_digest", [f"{c:064x}" for c in range(C)])
        f["/contexts/n_tokens"], f["/contexts/kv_bytes"] = np.full(C, 2000), np.full(C, int(SIZE))
        f["/contexts/prefill_s"], f["/contexts/question_s"] = np.full(C, PREFILL), np.zeros(C)
        text("/configs/name", ["none"] + [f"knorm:drop={(v) / V:g}" for v in range(1, V)])
        text("/questions/id", ["q"])
        text("/questions/text", ["?"])
        text("/questions/split", ["train"])
        f["/questions/context"] = np.zeros(1, np.int64)
        text("/answers/text", [["a"] * V])
        f["/answers/n_tokens"], f["/answers/similarity"] = np.ones((1, V), np.int32), np.ones((1, V), np.float32)
        f["/cells/bytes"] = np.tile((FRACTION * SIZE).astype(np.int64), (C, 1))
        f["/cells/size_frac"] = f["/cells/keep_frac"] = np.tile(FRACTION, (C, 1))
        f["/cells/compress_s"] = f["/cells/decompress_s"] = np.zeros((C, V))
        f["/quality/train"], f["/quality/train_std"] = x.mean(2), x.std(2, ddof=1)
        f["/quality/train_n"] = np.full((C, V), QUESTIONS, np.int32)
        f["/quality/test"] = many
        fit = reference(x.mean(2), x.std(2, ddof=1), np.full((C, V), QUESTIONS))
        for name, column in zip(("mean", "between", "within"), fit[:3 * V].reshape(V, 3).T):
            f[f"/belief/{name}"] = column
        for name, column in zip(("quality", "sd"), fit[3 * V:].reshape(C, V, 2).transpose(2, 0, 1)):
            f[f"/predicted/{name}"] = column
        f["/cells/asked"] = np.full((C, V), QUESTIONS, np.int32)
    return many


def value(true, alpha, *options):
    """What a plan truly brings: the sum of alpha * true quality - TTFT."""
    r = subprocess.run(["evp-plan", f"{work}/plan.h5", "--tiers", f"{work}/tiers.json", "--alpha", str(alpha), "-q", *options],
                       stdout=subprocess.PIPE, text=True, check=True)
    total = 0
    for line in r.stdout.splitlines():
        row = json.loads(line)
        if "id" in row:
            total += alpha * (1 if row["tier"] == "recompute" else row["quality_test"]) - row["ttft_s"]
    return total


sums = np.zeros(4)
for seed in range(4):
    true = table(np.random.default_rng(seed))
    for alpha in (0.6, 2, 6):
        plain = value(true, alpha, "--min-quality", "1", "--raw")
        sums += [value(true, alpha), value(true, alpha, "--raw"), plain, C * (alpha - PREFILL)]
predicted, raw, plain, recompute = sums
said = f"over recomputing {predicted - recompute:.1f}, raw means {raw - recompute:.1f}, uncompressed {plain - recompute:.1f}"
good = predicted > raw and predicted > plain
print(f"ok belief: plans with predictions are better: {said}" if good else f"FAIL belief: {said}")
sys.exit(not good)
