"""world.py OUT.h5 CONTEXTS CONFIGS [hostile] - a scored table with questions and answers, by h5py. hostile: names that
would be markup or commands, if they were anything but text."""
import sys
import h5py, numpy as np

out, C, V = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
hostile = sys.argv[4:] == ["hostile"]
r = np.random.default_rng(5)
text = h5py.string_dtype()
bad = '<script>alert(1)</script>`touch hacked`"\'; system("touch hacked")\n!touch hacked\n'
methods = ["keydiff:drop=%g", "snapkv:drop=%g", "knorm:drop=%g"]
configs = ["none"] + [methods[v % 3] % (0.1 + 0.8 * v / V) for v in range(V - 1)]
size = np.array([1.0] + [0.9 - 0.8 * v / V for v in range(V - 1)])
Q = 4 * C
tokens = r.integers(500, 30000, C)
quality = np.clip(1 - 0.6 * (1 - size)[None, :] ** 2 + r.normal(0, 0.05, (C, V)) * (size < 1), 0, 1)
similarity = np.clip(quality[np.arange(Q) // 4] + r.normal(0, 0.1, (Q, V)) * (size < 1), 0, 1).astype("f4")
with h5py.File(out, "w") as f:
    f.attrs["evp"], f.attrs["version"] = "table", np.int64(2)
    f.attrs["model"], f.attrs["model_digest"] = bad if hostile else "tiny", "ab" * 32
    f.attrs["backend"], f.attrs["dtype"], f.attrs["max_new_tokens"] = "cpu-avx512", "f32", np.int64(32)
    f.attrs["embedder_digest"], f.attrs["lineage"] = "cd" * 32, '{"tool":"world.py","args":[],"from":[]}'
    put = lambda name, data, dtype=None: f.create_dataset(name, data=data, dtype=dtype)
    put("contexts/id", [(f"c{c}" + bad.replace("\n", " ") if hostile else f"context/{c}") for c in range(C)], text)
    put("contexts/dataset", [(bad if hostile and c % 2 else ["qa", "chat"][c % 2]) for c in range(C)], text)
    put("contexts/token_digest", ["%064x" % c for c in range(C)], text)
    put("contexts/n_tokens", tokens)
    put("contexts/kv_bytes", tokens * 1000)
    put("contexts/prefill_s", tokens / 5000)
    put("contexts/question_s", np.full(C, 0.02))
    put("configs/name", configs, text)
    put("questions/id", [f"q{q}" for q in range(Q)], text)
    put("questions/text", [(bad if hostile else f"What is {q}?") for q in range(Q)], text)
    put("questions/split", [["train", "test"][q % 2] for q in range(Q)], text)
    put("questions/context", np.arange(Q) // 4)
    put("answers/text", [[(bad if hostile else f"answer {q} {v}") for v in range(V)] for q in range(Q)], text)
    put("answers/n_tokens", np.full((Q, V), 3, "i4"))
    put("answers/similarity", similarity)
    put("cells/bytes", (tokens[:, None] * 1000 * size[None, :]).astype("i8"))
    put("cells/size_frac", np.tile(size, (C, 1)))
    put("cells/keep_frac", np.tile(size, (C, 1)))
    put("cells/compress_s", np.zeros((C, V)))
    put("cells/decompress_s", np.zeros((C, V)))
    put("quality/train", quality)
    put("quality/test", np.clip(quality - 0.02 * (size < 1), 0, 1))
