"""part_transformers.py MODEL FOLDER [WEIGHTS CONFIG...] - the example transformers_cache.py answers over placed contexts what
evp-profile answered over the same variants. Near ties of two tokens may fall the other way: 1 of 20 answers may differ.
WEIGHTS is a folder with a GGUF MODEL's weights and tokenizer, for transformers, whose prompts begin with its BOS token."""
import json, os, subprocess, sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../../../contrib/python/examples"))
try:
    import h5py, torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
except ImportError as e:
    sys.exit(print("skip transformers:", e))
import evp
from transformers_cache import answer

CONFIGS = ["none", "kivi:bits=4", "snapkv:drop=0.5", "snapkv:drop=0.5+kivi:bits=4", "pyramidkv:drop=0.5",
           "adakv+snapkv:drop=0.5", "kvzip:drop=0.5", "kvzip:drop=0.98"]  # the last leaves layers empty
QUESTIONS = ["What is this text about?", "Which names does the text mention first?", "Summarize the text in one sentence.",
             "What happens at the end?"]
CONTEXTS, NEW = 2, 24
model, folder, *given = sys.argv[1:]
weights, CONFIGS = (given[0], given[1:]) if given else (model, CONFIGS)
os.makedirs(os.path.join(folder, "measured"))
os.chdir(os.path.join(folder, "measured"))


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def write_rows(path, head, rows):
    with open(path, "w") as f:
        for row in [{"version": 1, "tool": "part", "args": [], "from": [], **head}] + rows + [{"end": True, "rows": len(rows)}]:
            f.write(json.dumps(row) + "\n")


def place(config, rows, digest):
    """A manifest that places the contexts under one config, packed and loaded."""
    tier = {"name": "disk", "kind": "file", "uri": os.path.abspath("tier"), "capacity_bytes": None, "read_bytes_per_s": 1e9,
            "write_bytes_per_s": 1e9, "latency_s": 0}
    rows = [{**r, "config": config, "tier": "disk", "quality": 1, "utility": 1, "frequency": 1, "operation": "insert",
             "payload": r["id"] + ".safetensors"} for r in rows]
    write_rows("m.jsonl", {"evp": "manifest", "model_digest": digest, "alpha": 1, "tiers": [tier], "solver": "evicpress",
                           "objective": 1}, rows)
    run("rm", "-rf", "payloads")
    run("evp-pack", "-q", "-m", model, "--backend", "cpu", "--dtype", "f32", "-o", "payloads", "m.jsonl", "contexts.jsonl")
    run("evp-load", "-q", "--payloads", "payloads", "m.jsonl")


with open("../contexts.jsonl") as f:
    contexts = [json.loads(line) for line in f][1:1 + CONTEXTS]
write_rows("contexts.jsonl", {"evp": "contexts"}, contexts)
write_rows("questions.jsonl", {"evp": "questions"}, [{"id": f"{c['id']}-{i}", "context": c["id"], "text": q, "split": "train"}
                                                     for c in contexts for i, q in enumerate(QUESTIONS)])
run("evp-profile", "-q", "contexts.jsonl", "questions.jsonl", "-m", model, "--backend", "cpu", "--dtype", "f32",
    "--temperature", "0", "--max-new-tokens", str(NEW), "--configs", ",".join(CONFIGS), "-o", "profile.h5")
text = {c["id"]: c["text"] + c["ask"] for c in contexts}
with h5py.File("profile.h5") as f:
    names, asked = ([x.decode() for x in f[at][:]] for at in ("configs/name", "questions/id"))
    questions = [x.decode() for x in f["questions/text"][:]]
    said, bytes_of, ids = f["answers/text"][:], f["cells/bytes"][:], [x.decode() for x in f["contexts/id"][:]]
    rows = [{"id": c, "n_tokens": int(n), "token_digest": d.decode()}
            for c, n, d in zip(ids, f["contexts/n_tokens"][:], f["contexts/token_digest"][:])]
    digest = f.attrs["model_digest"]
with open("prompts", "w") as f:
    f.write("".join(text[i.rsplit("-", 1)[0]].replace("{question}", q) + "\0" for i, q in zip(asked, questions)))
llm, tokenizer = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32), AutoTokenizer.from_pretrained(weights)
begin = [tokenizer.bos_token_id] if given else []
prompts = [begin + [int(i) for i in line.split()] for line in run("evp-show", "--tokenize", "prompts", model).splitlines()]
failed = 0
for config in CONFIGS:
    v, same, differs = names.index(config), 0, []
    place(config, [{**r, "bytes": int(b[v])} for r, b in zip(rows, bytes_of)], digest)
    with evp.open("m.jsonl") as store:
        for prompt, want in zip(prompts, said[:, v]):
            with store.payload(store.find(prompt)) as payload:
                got = tokenizer.decode(answer(llm, payload, prompt, NEW), skip_special_tokens=True)
            same += got == want.decode()
            differs += [] if got == want.decode() else [(got, want.decode())]
    ok = 20 * len(differs) <= len(prompts)
    failed += not ok
    print("ok" if ok else "FAIL", f"transformers, {config}: {same} of {len(prompts)} answers are evp-profile's", *differs, flush=True)
sys.exit(failed > 0)
