"""table.py OUT.h5 [N [reversed|bad|full|full nested]] - write a small scored table with h5py, as docs/formats/table.md
describes it: what evp-plan's tests read.

Three contexts by default, three configs, two tiers; every number is simple enough to check a plan by hand. full: with
more of the datasets that a file may lack; nested: every context begins with all shorter ones. bad: one cell each with a
negative size, a size_frac that is not a number, an infinite time, and qualities of 2 and -0.1.
"""
import sys
import h5py, numpy as np

out, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
configs = ["none", "keydiff:drop=0.5", "kivi:bits=2"]
text = h5py.string_dtype("utf-8")
number = np.arange(n)[::-1] if "reversed" in sys.argv else np.arange(n)
full = np.array([1000, 2000, 4000])[number % 3] * 100
quality = np.array([1.0, 0.9, 0.6])
with h5py.File(out, "w") as f:
    for key, value in dict(evp="table", model="tiny", model_digest="ab" * 32, backend="cpu", dtype="f32",
                           embedder_digest="cd" * 32, lineage='{"tool":"table.py"}').items():
        f.attrs[key] = value
    f.attrs["version"] = np.int64(2)

    def put(name, data, kind):
        f.create_dataset(name, data=np.asarray(data, dtype=kind) if kind is not text else np.array(data, dtype=object),
                         dtype=kind)

    put("/contexts/id", [f"c{i}" for i in number], text)
    put("/contexts/dataset", ["made"] * n, text)
    put("/contexts/token_digest", [f"{i:064x}" for i in number], text)
    put("/contexts/n_tokens", full // 100, np.int64)
    put("/contexts/prefill_s", full / 1e5, np.float64)
    put("/contexts/question_s", np.full(n, 0.01), np.float64)
    put("/contexts/kv_bytes", full, np.int64)
    put("/configs/name", configs, text)
    put("/questions/id", [f"c{i}/q{q}" for i in number for q in range(2)], text)
    put("/questions/text", ["?"] * (2 * n), text)
    put("/questions/split", ["train", "test"] * n, text)
    put("/questions/context", np.repeat(np.arange(n), 2), np.int64)
    put("/answers/text", np.full((2 * n, 3), "!").tolist(), text)
    put("/answers/n_tokens", np.ones((2 * n, 3)), np.int32)
    size = np.array([1.0, 0.5, 0.2])
    size_bytes, decompress, train = (full[:, None] * size).astype(np.int64), np.zeros((n, 3)), np.tile(quality, (n, 1))
    if "bad" in sys.argv:
        size_bytes[0, 1], decompress[1, 0], train[2, 2], train[0, 2] = -7, np.inf, 2, -0.1
    size_frac = np.tile(size, (n, 1))
    if "bad" in sys.argv:
        size_frac[1, 2] = np.nan
    put("/cells/bytes", size_bytes, np.int64)
    put("/cells/size_frac", size_frac, np.float64)
    put("/cells/keep_frac", np.tile([1.0, 0.5, 1.0], (n, 1)), np.float64)
    put("/cells/compress_s", np.zeros((n, 3)), np.float64)
    put("/cells/decompress_s", decompress, np.float64)
    put("/answers/similarity", np.tile(quality, (2 * n, 1)), np.float32)
    put("/quality/train", train, np.float64)
    put("/predicted/quality", np.tile(quality, (n, 1)), np.float64)
    put("/predicted/sd", np.zeros((n, 3)), np.float32)
    put("/belief/mean", quality, np.float64)
    put("/belief/between", np.zeros(3), np.float64)
    put("/belief/within", np.zeros(3), np.float64)
    put("/cells/asked", np.ones((n, 3)), np.int32)
    put("/quality/test", np.tile(quality - [0, 0.1, 0.1], (n, 1)), np.float64)
    if "full" in sys.argv[3:]:
        put("/contexts/profiled_at", 1.75e9 + np.arange(n), np.float64)
        put("/contexts/prefix_digests", [("ef" if "nested" in sys.argv else f"{i:02x}") * 32 * (full[k] // 25600) for k, i in enumerate(number)], text)
        put("/questions/origin", ["dataset", "api:m"] * n, text)
        put("/prefill_curve/context", np.repeat(np.arange(n), 2), np.int64)
        put("/prefill_curve/n_tokens", np.stack([full // 200, full // 100], 1).ravel(), np.int64)
        put("/prefill_curve/seconds", np.stack([full / 4e5, full / 1e5], 1).ravel(), np.float64)
        for split in "train", "test":
            put(f"/quality/{split}_n", np.ones((n, 3)), np.int32)
            put(f"/quality/{split}_std", np.full((n, 3), np.nan), np.float64)
