"""record.py ZIP OUT [WORK] - makes recorded.npz: answers of the default model to 12 questions about 63 contexts of
LongBench over 12 configs, as similarities to the answers over the uncompressed cache. The tools are in PATH; WORK is
kept and extended, so that an interrupted run goes on. Contexts are the first 2,400 characters of a text, three of each
data set, so that it takes a quarter of an hour of one core.

recorded.npz: context (C), config (V) names, [0] is none; n_tokens (C), prefill_s (C), bytes (C, V), decompress_s (C, V);
similarity (C, V, Q) uint16, in 65535ths, clamped to 0..1.

recorded-qwen.npz is the same of Qwen2.5-Coder-0.5B-Instruct (docs/models.md): the first 1,800 characters of two texts of each
data set, of which 20 minutes of two cores finished 11 in random order. sampled.py takes either.
"""
import json, subprocess, sys, tempfile
from pathlib import Path
import h5py, numpy as np

CHARS, PER_DATASET, QUESTIONS, TOKENS = 2400, 3, 12, 8
CONFIGS = "keydiff:drop=0.1..0.9/0.2,snapkv:drop=0.1..0.9/0.2,kivi:bits=4,kivi:bits=2"
archive, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
work = Path(sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp())
work.mkdir(parents=True, exist_ok=True)


def run(*command):
    print("$", *command, file=sys.stderr)
    return subprocess.run(command, cwd=work, stdout=subprocess.PIPE, text=True).stdout


def rows(text):
    return [row for row in map(json.loads, text.splitlines()) if "evp" not in row and "end" not in row]


def cut():
    """The contexts, cut, that the tool finds enough questions for."""
    short = []
    for row in rows(run("evp-import", str(archive), "-q")):
        text = row["text"][:CHARS].rsplit(None, 1)[0]
        if len(text) > 0.8 * CHARS:
            short.append(dict(id=row["id"], dataset=row["dataset"], text=text))
    (work / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in short))
    asked = rows(run("evp-qgen", "all.jsonl", "--per-context", str(QUESTIONS), "-q"))
    n = {row["id"]: sum(q["context"] == row["id"] for q in asked) for row in short}
    taken, contexts = {}, []
    for row in short:
        if n[row["id"]] == QUESTIONS and taken.get(row["dataset"], 0) < PER_DATASET:
            taken[row["dataset"]] = taken.get(row["dataset"], 0) + 1
            contexts.append(row)
    ids = {row["id"] for row in contexts}
    (work / "contexts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in contexts))
    (work / "questions.jsonl").write_text("".join(json.dumps(q) + "\n" for q in asked if q["context"] in ids))


if not (work / "questions.jsonl").exists():
    cut()
run("evp-profile", "contexts.jsonl", "questions.jsonl", "--configs", CONFIGS, "--max-new-tokens", str(TOKENS), "-j", "1",
    "-o", "profile.h5")
run("evp-score", "profile.h5", "-j", "1", "-o", "table.h5")
with h5py.File(work / "table.h5") as f:
    of, C, V = f["/questions/context"][:], len(f["/contexts/id"]), len(f["/configs/name"])
    similarity = np.zeros((C, V, QUESTIONS))
    for c in range(C):
        similarity[c] = f["/answers/similarity"][:][of == c].T
    text = lambda path: np.array([x.decode() for x in f[path][:]])
    np.savez_compressed(out, context=text("/contexts/id"), config=text("/configs/name"), n_tokens=f["/contexts/n_tokens"][:],
                        prefill_s=np.float32(f["/contexts/prefill_s"][:]), bytes=f["/cells/bytes"][:],
                        decompress_s=np.float32(f["/cells/decompress_s"][:]),
                        similarity=np.uint16(np.round(np.clip(similarity, 0, 1) * 65535)))
print(C, "contexts,", V, "configs", file=sys.stderr)
