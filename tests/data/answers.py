"""answers.py - writes a scored table with h5py from the similarities of answers; docs/formats/table.md describes it."""
import os, sys
import h5py, numpy as np

sys.path.append(f"{os.path.dirname(os.path.abspath(__file__))}/../golden/belief")
from reference import reference


def write(path, similarity, configs, contexts, share, train=1, read=1, decompress=0):
    """similarity (C, V, Q): of each context's questions the first `train` are its train questions. contexts: n_tokens,
    prefill_s, question_s, kv_bytes, each (C). share (C, V): bytes of a config, of kv_bytes; read: the share of them that is
    read to answer; decompress: seconds; both (C, V) or a number."""
    C, V, Q = similarity.shape
    text, similarity = h5py.string_dtype("utf-8"), np.float32(similarity)
    with h5py.File(path, "w") as f:
        put = lambda name, data, kind: f.create_dataset(name, data=np.array(data, dtype=object if kind is text else kind), dtype=kind)
        f.attrs.update(dict(evp="table", model="recorded", model_digest="ab" * 32, backend="cpu", dtype="f32",
                            embedder_digest="cd" * 32, lineage='{"tool":"answers.py"}', version=np.int64(2)))
        put("/contexts/id", [f"c{c}" for c in range(C)], text)
        put("/contexts/dataset", ["recorded"] * C, text)
        put("/contexts/token_digest", [f"{c:064x}" for c in range(C)], text)
        for name, data in contexts.items():
            put(f"/contexts/{name}", data, np.int64 if name in ("n_tokens", "kv_bytes") else float)
        put("/configs/name", list(configs), text)
        put("/questions/id", [f"c{c}/q{q}" for c in range(C) for q in range(Q)], text)
        put("/questions/text", ["?"] * (C * Q), text)
        put("/questions/split", (["train"] * train + ["test"] * (Q - train)) * C, text)
        put("/questions/context", np.repeat(np.arange(C), Q), np.int64)
        put("/answers/text", np.full((C * Q, V), "!").tolist(), text)
        put("/answers/n_tokens", np.ones((C * Q, V)), np.int32)
        put("/answers/similarity", similarity.transpose(0, 2, 1).reshape(C * Q, V), np.float32)
        put("/cells/bytes", share * contexts["kv_bytes"][:, None], np.int64)
        put("/cells/bytes_read", read * share * contexts["kv_bytes"][:, None], np.int64)
        for name, data in (("size_frac", share), ("keep_frac", np.minimum(share, 1)), ("compress_s", 0 * share), ("decompress_s", decompress + 0 * share)):
            put(f"/cells/{name}", data, float)
        asked = similarity[:, :, :train].astype(float)
        put("/quality/train", asked.mean(2), float)
        put("/quality/test", similarity[:, :, train:].astype(float).mean(2), float)
        fit = reference(asked.mean(2), asked.std(2, ddof=1) if train > 1 else np.zeros((C, V)), np.full((C, V), train))
        for name, column in zip(("mean", "between", "within"), fit[:3 * V].reshape(V, 3).T):
            put(f"/belief/{name}", column, float)
        for name, column in zip(("quality", "sd"), fit[3 * V:].reshape(C, V, 2).transpose(2, 0, 1)):
            put(f"/predicted/{name}", column, float)
        put("/cells/asked", np.full((C, V), train), np.int32)
